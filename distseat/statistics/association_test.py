"""The whole test on four arrays: effect size and p-value, of stimuli and of words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError
from distseat.statistics.association import Association, Labels, Noise, UnitSets, noise_of
from distseat.statistics.permutation import Alternative, Method, MethodUsed, permutation_test
from distseat.statistics.seeds import seed_sequence
from distseat.statistics.words import WordScores

__all__ = ["WeatResult", "weat"]

_MIN_WORDS: Final = 2  # a side


@dataclass(frozen=True, slots=True, kw_only=True)
class WeatResult:
    """What an association test says.

    Attributes
    ----------
    effect_size
        d of Caliskan et al. (2017), over stimuli.
    statistic
        mean_X s - mean_Y s.
    p_value, p_standard_error, p_floor, log10_p, method_used
        Of the permutation test of stimuli; see `PermutationTest`.
    n_x, n_y
        Targets.
    effect_size_word, statistic_word, ..., n_words_x, n_words_y
        The same with the word as unit: each word's score is the mean over its stimuli. None where no words were given,
        X or Y has a single one, or all words have one score.
    """

    effect_size: float
    statistic: float
    p_value: float
    p_standard_error: float
    p_floor: float
    log10_p: float
    method_used: MethodUsed
    n_x: int
    n_y: int
    effect_size_word: float | None = None
    statistic_word: float | None = None
    p_value_word: float | None = None
    p_standard_error_word: float | None = None
    p_floor_word: float | None = None
    log10_p_word: float | None = None
    method_used_word: MethodUsed | None = None
    n_words_x: int | None = None
    n_words_y: int | None = None


def weat(  # noqa: PLR0913 - four sets and the options of a whole test
    X: NDArray[np.floating],  # noqa: N803 - the field's names of the sets
    Y: NDArray[np.floating],  # noqa: N803 - likewise
    A: NDArray[np.floating],  # noqa: N803 - likewise
    B: NDArray[np.floating],  # noqa: N803 - likewise
    *,
    method: Method = "auto",
    words_x: Sequence[str] | None = None,
    words_y: Sequence[str] | None = None,
    alternative: Alternative = "greater",
    seed: int = 0,
) -> WeatResult:
    """Embedding association test: whether X goes with A, and Y with B.

    Parameters
    ----------
    X, Y
        Target vectors, shape ``(n_x, d)`` and ``(n_y, d)``, any float dtype; computed in float64.
    A, B
        Attribute vectors, shape ``(n_a, d)`` and ``(n_b, d)``.
    method
        auto, exact, importance, sampled or normal; see `permutation_test`.
    words_x, words_y
        The word that each target stands for. With them the test of words is made as well: sentences of one word are no
        independent evidence.
    alternative
        greater, as published; less; two-sided.
    seed
        Of what is drawn; the same seed gives the same bits.

    Raises
    ------
    AssociationError
        A set has fewer than two vectors, a vector is zero or not finite, dimensions differ, a word stands in both X and
        Y, or all targets have one score. The message names the stimulus.

    References
    ----------
    Caliskan, Bryson, Narayanan (2017), Science 356; May et al. (2019), NAACL.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(2, 8, 50)) + np.eye(2, 50)[:, None] * 5
    >>> X, Y = rng.normal(size=(2, 8, 50)) + np.eye(2, 50)[:, None] * 5
    >>> found = weat(X, Y, A, B)
    >>> round(found.effect_size, 2), found.p_value == 1 / 12870, found.method_used
    (1.88, True, 'exact')
    """
    X, Y, A, B = (np.asarray(vectors) for vectors in (X, Y, A, B))
    if (words_x is None) != (words_y is None):
        raise AssociationError("words were given for one of X and Y; give words_x and words_y, or neither")
    labels: Labels = {} if words_x is None or words_y is None else {"X": list(words_x), "Y": list(words_y)}
    association = UnitSets.of(X, Y, a=A, b=B, labels=labels).association
    noise = noise_of(X, Y, A, B)
    if association.spread < noise.min_spread:
        raise AssociationError(
            f"all targets have one association score (largest less smallest: {association.spread:.1e}); there is "
            "nothing to test: check that the vectors differ"
        )

    options = _Options(method, alternative, seed, noise)
    found = _told(association, "stimulus", options)
    words = WordScores.of(association, labels["X"], labels["Y"]).association if labels else None
    if words is None or min(len(words.scores_x), len(words.scores_y)) < _MIN_WORDS or words.spread < noise.min_spread:
        return WeatResult(**found, n_x=len(X), n_y=len(Y))
    is_plain = len(words.joint) == len(association.joint)  # one stimulus a word: one test, told twice
    by_word = found if is_plain else _told(words, "word", options)
    return WeatResult(
        **found,
        n_x=len(X),
        n_y=len(Y),
        **{f"{name}_word": value for name, value in by_word.items()},
        n_words_x=len(words.scores_x),
        n_words_y=len(words.scores_y),
    )


@dataclass(frozen=True, slots=True)
class _Options:
    method: Method
    alternative: Alternative
    seed: int
    noise: Noise


def _told(association: Association, unit: str, options: _Options) -> dict[str, Any]:
    test = permutation_test(
        association.joint,
        len(association.scores_x),
        seed=seed_sequence(options.seed, "weat", unit),
        method=options.method,
        alternative=options.alternative,
        resolution=options.noise.resolution,
    )
    names = ("p_value", "p_standard_error", "p_floor", "log10_p", "method_used")
    of_test = {name: getattr(test, name) for name in names}
    return {"effect_size": association.effect_size, "statistic": association.statistic, **of_test}
