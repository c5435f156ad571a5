"""Intervals of the effect size: words drawn with replacement within X and within Y, or within all four sets.

Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapter 14: the bias-corrected and accelerated (BCa)
interval, with the acceleration of several samples.
"""

from dataclasses import dataclass
from typing import Final, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from distseat.statistics.association import Association
from distseat.statistics.options import require_option

__all__ = [
    "N_RESAMPLES",
    "Attributes",
    "Interval",
    "IntervalMethod",
    "Resample",
    "Resamples",
    "bca",
    "effect_size_interval",
    "effect_sizes",
    "percentile",
]

Floats = NDArray[np.float64]

IntervalMethod = Literal["bca", "percentile"]
Resample = Literal["targets", "all"]
N_RESAMPLES: Final = 9_999
_ROUNDING: Final = 1e-9  # of effect sizes, and of variances of scores that have variance 1


@dataclass(frozen=True, slots=True)
class Interval:
    """Of the effect size d, at the level asked for; NaN where no resample has a d, or all have one."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What targets have to do with each attribute word, for `resample="all"`.

    Attributes
    ----------
    cosines_xa, cosines_xb, cosines_ya, cosines_yb
        Mean cosine of each target word with each attribute word's stimuli, shape ``(n_x, n_a)`` and so on.
    stimuli_a, stimuli_b
        Stimuli of each attribute word, shape ``(n_a,)`` and ``(n_b,)``: its weight in the mean over all stimuli.
    """

    cosines_xa: Floats
    cosines_xb: Floats
    cosines_ya: Floats
    cosines_yb: Floats
    stimuli_a: Floats
    stimuli_b: Floats

    def scores(self, weights_a: Floats, weights_b: Floats) -> tuple[Floats, Floats]:
        """s(w, A*, B*) for each resample, shape ``(n_resamples, n_x)`` and ``(n_resamples, n_y)``."""
        shares_a, shares_b = (
            weights * stimuli / (weights @ stimuli)[:, None]
            for weights, stimuli in ((weights_a, self.stimuli_a), (weights_b, self.stimuli_b))
        )
        return (
            shares_a @ self.cosines_xa.T - shares_b @ self.cosines_xb.T,
            shares_a @ self.cosines_ya.T - shares_b @ self.cosines_yb.T,
        )


@dataclass(frozen=True, slots=True)
class Resamples:
    """How often each word of each set is drawn, a row a resample.

    Attributes
    ----------
    weights
        One array a set, shape ``(n_resamples, n_words)``: X and Y, or X, Y, A and B.
    """

    weights: tuple[Floats, ...]

    @classmethod
    def draw(cls, sizes: tuple[int, ...], *, seed: np.random.SeedSequence, n_resamples: int = N_RESAMPLES) -> Self:
        """Draw words with replacement within each set of so many words."""
        rng = np.random.default_rng(seed)
        return cls(tuple(_counts(rng.integers(n, size=(n_resamples, n))) for n in sizes))

    @classmethod
    def jackknife(cls, sizes: tuple[int, ...], of: int) -> Self:
        """All sets whole, but for one word of set number `of` in each row."""
        rows = sizes[of]
        weights = [np.ones((rows, n)) for n in sizes]
        np.fill_diagonal(weights[of], 0.0)
        return cls(tuple(weights))


def effect_size_interval(
    words: Association,
    resamples: Resamples,
    *,
    attributes: Attributes | None = None,
    method: IntervalMethod = "bca",
    level: float = 0.95,
) -> Interval:
    """Interval of d over words.

    Parameters
    ----------
    words
        Scores of words, not all equal.
    resamples
        Of X and Y; of A and B as well where `attributes` are given.
    attributes
        Draws A and B with the targets; without them they are held fixed.

    Examples
    --------
    >>> words = Association(scores_x=np.array([3.0, 2.0, 2.5, 1.0]), scores_y=np.array([0.0, 1.0, -1.0, 0.5]))
    >>> drawn = Resamples.draw((4, 4), seed=np.random.SeedSequence(0))
    >>> found = effect_size_interval(words, drawn)
    >>> found.low < words.effect_size < found.high
    True
    """
    require_option("method", method, get_args(IntervalMethod))
    drawn = effect_sizes(words, resamples, attributes)
    if not np.nanmax(drawn, initial=-np.inf) - np.nanmin(drawn, initial=np.inf) > _ROUNDING:
        return Interval(np.nan, np.nan)  # one value or none: a width of 0 would look like certainty
    if method == "percentile":
        return percentile(drawn, level=level)
    sizes = tuple(weights.shape[1] for weights in resamples.weights)
    left_out = [effect_sizes(words, Resamples.jackknife(sizes, i), attributes) for i in range(len(sizes))]
    return bca(drawn, words.effect_size, left_out, level=level)


def percentile(drawn: Floats, *, level: float) -> Interval:
    """Take the central share of the resampled values."""
    defined = drawn[np.isfinite(drawn)]
    if not defined.size:
        return Interval(np.nan, np.nan)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def bca(drawn: Floats, observed: float, left_out: list[Floats], *, level: float) -> Interval:
    """The BCa interval.

    With z0 = Phi^-1(share of resampled values below the observed one), a the acceleration, and z the normal quantile,
    its ends are the quantiles of the resampled values at Phi(z0 + (z0 + z) / (1 - a (z0 + z))).

    Parameters
    ----------
    left_out
        For each sample, the values without each of its members in turn.

    References
    ----------
    Efron & Tibshirani (1993), eq. 14.9-14.15; acceleration of several samples: Davison & Hinkley (1997), Bootstrap
    Methods and their Application, section 5.3: a = sum_k sum_i l_ki^3 / n_k^3 / (6 (sum_k sum_i l_ki^2 / n_k^2)^1.5).
    """
    defined = drawn[np.isfinite(drawn)]
    if not defined.size:
        return Interval(np.nan, np.nan)
    ties = np.abs(defined - observed) <= _ROUNDING  # resamples that are the observed words in another order
    below = ((defined < observed) & ~ties).mean() + 0.5 * ties.mean()
    rim = 0.5 / len(defined)  # where all lie on one side, z0 is as far out as so many values can tell
    z0 = ndtri(min(max(below, rim), 1 - rim))
    z = z0 + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(defined, ndtr(z0 + z / np.maximum(1 - _acceleration(left_out) * z, 1e-3)))
    return Interval(float(low), float(high))


def _acceleration(left_out: list[Floats]) -> float:
    """Empirical influence l_ki = (n_k - 1) (mean of the jackknife - value without i)."""
    cubes = squares = 0.0
    for values in left_out:
        if not np.isfinite(values).any():
            continue
        influence = (len(values) - 1) * (np.nanmean(values) - values)
        cubes += float(np.nansum(influence**3)) / len(values) ** 3
        squares += float(np.nansum(influence**2)) / len(values) ** 2
    return cubes / (6 * squares**1.5) if squares else 0.0


def _counts(indices: NDArray[np.int64]) -> Floats:
    """How often each number stands in each row."""
    n_rows, n = indices.shape
    flat = (indices + n * np.arange(n_rows)[:, None]).ravel()
    return np.bincount(flat, minlength=n_rows * n).reshape(n_rows, n).astype(np.float64)


def effect_sizes(words: Association, resamples: Resamples, attributes: Attributes | None = None) -> Floats:
    """Effect size of each resample, shape ``(n_resamples,)``; NaN where all drawn scores are equal."""
    weights_x, weights_y = resamples.weights[:2]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores_x, scores_y = _standardized(words, attributes, resamples)
        n_x, n_y = weights_x.sum(axis=1), weights_y.sum(axis=1)
        sum_x, sum_y = _weighted(weights_x, scores_x), _weighted(weights_y, scores_y)
        squares = _weighted(weights_x, scores_x**2) + _weighted(weights_y, scores_y**2)
        n = n_x + n_y
        variance = (squares - (sum_x + sum_y) ** 2 / n) / (n - 1)
        return np.where(variance > _ROUNDING, (sum_x / n_x - sum_y / n_y) / np.sqrt(variance), np.nan)


def _standardized(words: Association, attributes: Attributes | None, resamples: Resamples) -> tuple[Floats, Floats]:
    """Scores less their mean, row by row where rows have attributes of their own, over the observed deviation.

    That changes no d, and keeps sums of squares from cancelling.
    """
    scores_x, scores_y = attributes.scores(*resamples.weights[2:]) if attributes else (words.scores_x, words.scores_y)
    mean = np.concatenate([scores_x, scores_y], axis=-1).mean(axis=-1, keepdims=True)
    deviation = float(words.joint.std())
    return (scores_x - mean) / deviation, (scores_y - mean) / deviation


def _weighted(weights_rn: Floats, scores: Floats) -> Floats:
    """Sum of weights times scores, which may differ from row to row."""
    return np.asarray(weights_rn @ scores if scores.ndim == 1 else np.einsum("rn,rn->r", weights_rn, scores))
