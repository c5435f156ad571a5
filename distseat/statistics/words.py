"""The word as the unit of permutation: all sentences of a word move together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError
from distseat.statistics.association import Association

__all__ = ["WordScores", "group_means"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordScores:
    """Scores of the words of X and Y, each the unweighted mean over the word's stimuli.

    Sentences of one word are no independent evidence: what is exchanged between X and Y is the word. A and B stay as
    they are, so that both units share the same s. With one stimulus a word this is the plain test.

    Attributes
    ----------
    words_x, words_y
        In the order of their first stimulus.
    association
        Their scores.
    """

    words_x: tuple[str, ...]
    words_y: tuple[str, ...]
    association: Association

    @classmethod
    def of(cls, association: Association, words_x: Sequence[str], words_y: Sequence[str]) -> Self:
        """Average the scores of stimuli by their words.

        Parameters
        ----------
        words_x, words_y
            The word of each target, as many as there are scores.

        Raises
        ------
        AssociationError
            The numbers of words and scores differ, or one word stands in both X and Y.

        Examples
        --------
        >>> found = Association(scores_x=np.array([1.0, 3.0, 5.0]), scores_y=np.array([0.0, 1.0]))
        >>> WordScores.of(found, ["he", "he", "him"], ["she", "her"]).association.scores_x
        array([2., 5.])
        """
        for name, words, scores in (("X", words_x, association.scores_x), ("Y", words_y, association.scores_y)):
            if len(words) != len(scores):
                raise AssociationError(f"set {name}: {len(words)} words for {len(scores)} targets; give one a target")
        both = sorted(set(words_x) & set(words_y))
        if both:
            raise AssociationError(f"the word {both[0]!r} stands in both X and Y; keep it in one set, or in none")
        found_x, scores_x = group_means(association.scores_x, words_x)
        found_y, scores_y = group_means(association.scores_y, words_y)
        return cls(words_x=found_x, words_y=found_y, association=Association(scores_x=scores_x, scores_y=scores_y))

    def in_order_of(self, other: Self) -> Self:
        """The same scores, their words in the order of another variant's.

        Raises
        ------
        AssociationError
            The other has other words.
        """
        own = (self.words_x, self.words_y, self.association.scores_x, self.association.scores_y)
        if (set(self.words_x), set(self.words_y)) != (set(other.words_x), set(other.words_y)):
            raise AssociationError("the variants were measured on different words; compare those that both have")
        scores_x, scores_y = (
            np.array([dict(zip(words, scores, strict=True))[word] for word in order])
            for words, scores, order in zip(own[:2], own[2:], (other.words_x, other.words_y), strict=True)
        )
        association = Association(scores_x=scores_x, scores_y=scores_y)
        return type(self)(words_x=other.words_x, words_y=other.words_y, association=association)


def group_means(values: Floats, groups: Sequence[str]) -> tuple[tuple[str, ...], Floats]:
    """Mean of the values, along the first axis, of each group; groups in the order of their first value."""
    names = tuple(dict.fromkeys(groups))
    number = {name: i for i, name in enumerate(names)}
    index = np.array([number[group] for group in groups], dtype=np.intp)
    totals = np.zeros((len(names), *values.shape[1:]))
    np.add.at(totals, index, values)
    counts = np.bincount(index, minlength=len(names))
    return names, totals / counts.reshape(-1, *(1,) * (values.ndim - 1))
