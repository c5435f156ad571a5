"""Embeddings and tests to rows, and rows to decisions."""

from distseat.scoring.decisions import correct_words, decide
from distseat.scoring.measuring import ReadVectors
from distseat.scoring.rows import Scored, score_forms

__all__ = ["ReadVectors", "Scored", "correct_words", "decide", "score_forms"]
