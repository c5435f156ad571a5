"""Decisions over all rows of a run, in both units of permutation."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from threadpoolctl import threadpool_limits

from distseat.config import Correction, ScoringOptions
from distseat.statistics import (
    FLOAT32_NOISE,
    benjamini_hochberg,
    holm,
    holm_over_families,
    seed_sequence,
    westfall_young,
)
from distseat.stores import FamilyMember, ResultRow, RowWords

__all__ = ["correct_words", "decide"]

_DECISIONS: Final = ("p_adjusted", "decision", "family_size")
_UNDECIDED: Final[dict[str, Any]] = dict.fromkeys((*_DECISIONS, *(f"{name}_word" for name in _DECISIONS)))
_STANDARD_ERRORS: Final = 3  # added to an estimated p before it is decided on


def correct_words(rows: Sequence[RowWords], *, test: str, options: ScoringOptions) -> list[FamilyMember]:
    """Correct the rows of one test, all variants and forms, by step-down maxT; a family for each set of words.

    Rows whose words differ, since a variant lacks some, are no exchange of the same things: each such set is a family.
    """
    families: dict[tuple[tuple[str, ...], tuple[str, ...]], list[RowWords]] = {}
    for row in sorted(rows, key=lambda row: row.key):
        families.setdefault((tuple(sorted(row.words_x)), tuple(sorted(row.words_y))), []).append(row)
    members = []
    for words, mine in sorted(families.items()):
        scores_nv = np.array(
            [[*_in_order(row.words_x, row.scores_x), *_in_order(row.words_y, row.scores_y)] for row in mine]
        )
        with threadpool_limits(limits=1):
            corrected = westfall_young(
                np.ascontiguousarray(scores_nv.T),
                len(words[0]),
                seed=seed_sequence(options.seed, test, "word"),
                alternative=options.alternative,
                resolution=FLOAT32_NOISE.resolution,
            )
        family = hashlib.sha256(json.dumps([test, words]).encode()).hexdigest()[:32]
        members += [
            FamilyMember(key=row.key, family=family, p_adjusted=float(p))
            for row, p in zip(mine, corrected.adjusted, strict=True)
        ]
    return members


def decide(
    rows: Sequence[ResultRow], members: Sequence[FamilyMember], *, alpha: float, correction: Correction = "holm"
) -> list[ResultRow]:
    """Write both decisions into every row that is not void.

    The rows must be all that the run planned, and the members all their words' families: a missing one would make the
    correction too mild.

    - decision: Holm (or Benjamini-Hochberg) over all rows, on the p-values of stimuli; an estimated one counts with
      three standard errors on top.
    - decision_word: Holm over the families that words were corrected in.
    """
    decided = [replace(row, alpha=alpha, **_UNDECIDED) for row in rows]
    family = [i for i, row in enumerate(rows) if row.p_value is not None]
    correct = holm if correction == "holm" else benjamini_hochberg
    found = correct(np.array([_decided_on(rows[i]) for i in family], dtype=np.float64), alpha=alpha)
    for i, p, rejected in zip(family, found.adjusted, found.rejected, strict=True):
        decided[i] = replace(
            decided[i], p_adjusted=float(p), decision="reject" if rejected else "retain", family_size=len(family)
        )
    return _decide_words(decided, members, alpha)


def _decided_on(row: ResultRow) -> float:
    p, error = row.p_value or 0.0, row.p_standard_error or 0.0
    return min(1.0, p + _STANDARD_ERRORS * error) if row.method_used == "importance" else p


def _decide_words(rows: list[ResultRow], members: Sequence[FamilyMember], alpha: float) -> list[ResultRow]:
    position = {row.key: i for i, row in enumerate(rows)}
    names = sorted({(member.key.test, member.family) for member in members})
    number = {name: i for i, name in enumerate(names)}
    families = np.array([number[member.key.test, member.family] for member in members], dtype=np.intp)
    found = holm_over_families(np.array([member.p_adjusted for member in members]), families, alpha=alpha)
    decided = list(rows)
    for member, p, rejected in zip(members, found.adjusted, found.rejected, strict=True):
        i = position[member.key]
        decided[i] = replace(
            decided[i],
            p_adjusted_word=float(p),
            decision_word="reject" if rejected else "retain",
            family_size_word=len(names),
        )
    return decided


def _in_order(words: Sequence[str], scores: Sequence[float]) -> list[float]:
    return [score for _, score in sorted(zip(words, scores, strict=True))]
