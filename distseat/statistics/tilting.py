"""Tail probabilities of any depth by importance sampling.

Choices of k among n items are drawn with probability proportional to the product of weights exp(l_i) of the chosen
ones (the conditional Bernoulli law; Chen, Dempster & Liu 1994, Biometrika 81), with l_i = theta s_i + lambda and theta
such that the mean sum lies at the observed one. A draw C counts, if its sum is high enough, with

    [1 / C(n, k)] / [exp(l(C)) / e_k],    l(C) = sum of l_i over C,   e_k = sum of exp(l(C)) over all choices C,

so that the mean over draws is the share of all choices without bias. Every choice that counts is at least as likely
to be drawn as the observed one, whatever the scores: none hides behind a weight that was never seen. (Weights that
float64 could not hold are narrowed, across gaps between scores that no likely draw crosses.)
"""

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from distseat.statistics.compiled import compiled
from distseat.statistics.separation import log_choices

__all__ = ["LEAST_RELATIVE_ERROR", "PLAINLY_ABOVE", "SURELY", "TailEstimate", "tail_share"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FIRST_DRAWS: Final = 1_000
_MAX_DRAWS: Final = 1 << 20
_AT_ONCE: Final = 64  # draws side by side
_AMPLE: Final = 1.1  # draws beyond what the first estimate of the error asks for, to be done in one go
PLAINLY_ABOVE: Final = 0.1  # a p that is surely higher than this is not worth more digits
SURELY: Final = 5.0  # standard errors
_MAX_LOGIT: Final = 300.0  # of a single weight: beyond it, ratios of weights leave float64
_MAX_EXPONENT: Final = 700.0  # of a float64
_MAX_GAP: Final = 40.0  # of neighbouring logits: odds of 4e-18
_NEWTON_STEPS: Final = 100
_SMALLEST_STEP: Final = 1e-6
_ENOUGH: Final = 1e-6  # gain of a step: closer to the solution, no draw is saved
LEAST_RELATIVE_ERROR: Final = 1e-12  # rounding; the draws of a law of two atoms may have no spread at all


@dataclass(frozen=True, slots=True)
class TailEstimate:
    """The share of all choices that reach the threshold, and of those that are surely above the observed one.

    Attributes
    ----------
    log_share
        Natural logarithm, since the share may be far below the smallest float64.
    relative_error
        Standard error over share.
    share_above
        Of the choices whose sum is as far above the observed one as the threshold is below it, or further: what is
        left when ties are no part of the tail.
    standard_error_above
        Of `share_above`.
    """

    log_share: float
    relative_error: float
    share_above: float
    standard_error_above: float
    n_draws: int

    @property
    def standard_error(self) -> float:
        """Of the share itself."""
        return exp(self.log_share) * self.relative_error


def tail_share(
    items: Integers, k: int, threshold: int, *, rng: np.random.Generator, relative_error: float
) -> TailEstimate:
    """Estimate the share of the choices of `k` items whose sum is at least `threshold`.

    Draws until the standard error is `relative_error` of the share, or the share is plainly no small one.

    Parameters
    ----------
    items
        Shape ``(n,)``; the first `k` are the observed choice, whose sum the law is centred on.
    rng
        Used up to an unforeseeable point: give each estimate its own.
    """
    law = _tilted(items, k)
    above = 2 * int(items[:k].sum()) - threshold
    sums = np.zeros(4)
    n_draws, wanted = 0, _FIRST_DRAWS
    while n_draws < wanted:
        sums += _draw(
            rng, wanted - n_draws, law.inclusion_nk, law.items, law.logits, threshold, above, law.observed_logit
        )
        n_draws = wanted
        mean, error = _mean_and_error(float(sums[0]), float(sums[1]), n_draws)
        if sums[0] < 1:  # hardly a hit: as much as one of the observed weight, which is on the safe side, and no surer
            mean = error = 1 / n_draws
        share = exp(min(law.log_weight + log(mean), 0.0))
        is_plain = share * (1 - SURELY * error / mean) > PLAINLY_ABOVE
        needed = n_draws * (error / mean / relative_error) ** 2
        if not is_plain and needed > n_draws:
            wanted = min(_MAX_DRAWS, int(_AMPLE * needed) + 1)
    mean_above, error_above = _mean_and_error(float(sums[2]), float(sums[3]), n_draws)
    weight = exp(min(law.log_weight, _MAX_EXPONENT))
    return TailEstimate(
        log_share=min(law.log_weight + log(mean), 0.0),
        relative_error=max(error / mean, 1 / n_draws),  # draws all alike have seen no more than that
        share_above=min(weight * mean_above, 1.0),
        standard_error_above=weight * error_above,
        n_draws=n_draws,
    )


@dataclass(frozen=True, slots=True)
class _Law:
    """The law that choices are drawn from.

    Attributes
    ----------
    items
        In descending order.
    logits
        Of the items.
    inclusion_nk
        Chance that an item is drawn when so many places are left for it and those after it.
    observed_logit
        Sum over the observed choice.
    log_weight
        Logarithm of what a draw like the observed one counts.
    """

    items: Integers
    logits: Floats
    inclusion_nk: Floats
    observed_logit: float
    log_weight: float


def _tilted(items: Integers, k: int) -> _Law:
    order = np.argsort(-items, kind="stable")
    logits = _logits(items[order], k, int(items[:k].sum()))
    inclusion_nk, log_normaliser = _inclusion(np.exp(logits), k)
    observed_logit = float(logits[np.argsort(order)[:k]].sum())
    log_weight = log_normaliser - log_choices(len(items), k) - observed_logit
    return _Law(items[order], logits, inclusion_nk, observed_logit, log_weight)


def _mean_and_error(total: float, total_of_squares: float, n_draws: int) -> tuple[float, float]:
    mean = total / n_draws
    return mean, sqrt(max(total_of_squares / n_draws - mean**2, 0.0) / n_draws)


def _logits(ordered: Integers, k: int, observed: int) -> Floats:
    """Logits theta s_i + lambda: theta such that the mean sum of k draws is the observed one, or 0 below the mean.

    Solved for independent draws, whose number is k in the mean only; a law that is a little beside the best one costs
    draws, not truth.
    """
    n = len(ordered)
    flat = log(k / (n - k))
    centred = ordered - ordered.mean()
    deviation = float(centred.std())
    target = (observed - k * float(ordered.mean())) / (deviation or 1.0)
    if target <= 0:
        return np.full(n, flat)
    return _bounded(np.asarray(_solve(centred / deviation, float(k), target, flat)), k)


def _bounded(logits: Floats, k: int) -> Floats:
    """Narrow the gaps that nobody crosses, so that all weights are in reach of float64, and the tilt beside them stays.

    Logits descend; what matters is their differences, so the k-th and the next are put on either side of 0.
    """
    if float(np.abs(logits).max()) <= _MAX_LOGIT:
        return logits
    narrow = -np.concatenate([[0.0], np.cumsum(np.minimum(-np.diff(logits), _MAX_GAP))])
    middle = (narrow[k - 1] + narrow[k]) / 2
    return np.asarray(np.clip(narrow - middle, -_MAX_LOGIT, _MAX_LOGIT))


@compiled
def _solve(scores: Floats, k: float, target: float, flat: float) -> Floats:
    """Damped Newton on the convex sum of log(1 + exp(theta s + lambda)) - theta target - lambda k.

    Each step takes scores from their weighted mean, which parts theta from lambda: beside an outlier the scores of all
    others may differ by next to nothing, and still decide.
    """
    theta, shift = 0.0, flat
    value = np.inf
    step_theta = step_shift = 0.0
    logits = np.full(len(scores), flat)
    for _ in range(_NEWTON_STEPS):
        size = 1.0
        while True:  # halve the step until it does not lead upwards
            tried = (theta + size * step_theta) * scores + (shift + size * step_shift)
            next_value = -(theta + size * step_theta) * target - (shift + size * step_shift) * k
            for logit in tried:
                next_value += max(logit, 0.0) + np.log1p(np.exp(-abs(logit)))
            if next_value <= value or size < _SMALLEST_STEP:
                break
            size *= 0.5
        if next_value > value:
            break
        gain = value - next_value
        theta += size * step_theta
        shift += size * step_shift
        value, logits = next_value, tried
        if gain < _ENOUGH:
            break
        chances = 1.0 / (1.0 + np.exp(-logits))
        weights = chances * (1.0 - chances)
        curve_shift = weights.sum()
        if curve_shift <= 0.0:
            break
        middle = (weights * scores).sum() / curve_shift
        apart = scores - middle
        curve_theta = (weights * apart * apart).sum()
        if curve_theta <= 0.0:
            break
        slope_shift = chances.sum() - k
        step_theta = -((chances * apart).sum() - (target - middle * k)) / curve_theta
        step_shift = -slope_shift / curve_shift - middle * step_theta
    return logits


@compiled
def _inclusion(weights: Floats, k: int) -> tuple[Floats, float]:
    """Chance that item i is drawn when j places are left for items i, i + 1, ...; and log e_k of all items.

    With e_i(j) the elementary symmetric polynomial of degree j in the weights from i on,
    e_i(j) = e_(i+1)(j) + w_i e_(i+1)(j-1), the chance is w_i e_(i+1)(j-1) / e_i(j) = w_i / (r_(i+1)(j) + w_i) with
    r_i(j) = e_i(j) / e_i(j-1), and r_i(j) = (r_(i+1)(j) + w_i) / (1 + w_i / r_(i+1)(j-1)): ratios of positive numbers,
    which neither cancel nor overflow.
    """
    n = len(weights)
    inclusion_nk = np.zeros((n, k + 1))
    ratio = np.zeros(k + 1)
    for i in range(n - 1, -1, -1):
        weight = weights[i]
        before = np.inf  # r_(i+1)(0): e(-1) is 0
        for j in range(1, min(k, n - i) + 1):
            old = ratio[j]
            inclusion_nk[i, j] = weight / (old + weight)
            ratio[j] = (old + weight) / (1.0 + weight / before)
            before = old
    log_normaliser = 0.0
    for j in range(1, k + 1):
        log_normaliser += np.log(ratio[j])
    return inclusion_nk, log_normaliser


@compiled
def _draw(
    rng: np.random.Generator,
    n_draws: int,
    inclusion_nk: Floats,
    ordered: Integers,
    logits: Floats,
    threshold: int,
    above: int,
    observed_logit: float,
) -> Floats:
    """Sums and sums of squares of exp(observed logit - own logit), over draws that reach each of two thresholds.

    Returns
    -------
    ndarray
        Sum and sum of squares from `threshold` on, sum and sum of squares beyond `above`.
    """
    n, k = len(ordered), inclusion_nk.shape[1] - 1
    sums = np.zeros(4)
    left = np.empty(_AT_ONCE, dtype=np.int64)
    total = np.empty(_AT_ONCE, dtype=np.int64)
    logit = np.empty(_AT_ONCE)
    uniform = np.empty(_AT_ONCE)
    for start in range(0, n_draws, _AT_ONCE):  # item by item for many draws, so that none waits for another
        width = min(_AT_ONCE, n_draws - start)
        left[:], total[:], logit[:] = k, 0, 0.0
        for i in range(n):
            chance_k, item, own_logit = inclusion_nk[i], ordered[i], logits[i]
            for draw in range(width):
                uniform[draw] = rng.random()
            for draw in range(width):
                is_taken = uniform[draw] < chance_k[left[draw]]
                left[draw] -= is_taken
                total[draw] += item * is_taken
                logit[draw] += own_logit * is_taken
        for draw in range(width):
            if total[draw] >= threshold:
                weight = np.exp(observed_logit - logit[draw])
                sums[0] += weight
                sums[1] += weight * weight
                if total[draw] > above:
                    sums[2] += weight
                    sums[3] += weight * weight
    return sums
