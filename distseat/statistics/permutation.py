"""The permutation test: how often a random partition of the targets separates them as well as the observed one.

The p-value of Caliskan et al. (2017): over all partitions of X and Y together into sets of the sizes of X and Y, the
share whose statistic is at least the observed one. It is counted where it can be, and estimated at any depth, with its
own error, where it cannot.
"""

from dataclasses import dataclass
from math import comb, exp, log, log10, sqrt
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from distseat.errors import AssociationError
from distseat.statistics.grid import Split, to_grid
from distseat.statistics.options import require_option
from distseat.statistics.separation import log_choices, log_count_near_top, loss_from_top
from distseat.statistics.subsets import count_at_least, n_sums
from distseat.statistics.tilting import (
    LEAST_RELATIVE_ERROR,
    PLAINLY_ABOVE,
    SURELY,
    TailEstimate,
    tail_share,
)

__all__ = [
    "ALTERNATIVES",
    "METHODS",
    "N_DRAWS",
    "Alternative",
    "Method",
    "MethodUsed",
    "PermutationTest",
    "drawn_partitions",
    "p_floor",
    "permutation_test",
]

Floats = NDArray[np.float64]

Method = Literal["auto", "exact", "importance", "sampled", "normal"]
METHODS: Final[tuple[Method, ...]] = ("auto", "exact", "importance", "sampled", "normal")
MethodUsed = Literal["exact", "importance", "sampled", "normal"]
Alternative = Literal["greater", "less", "two-sided"]
ALTERNATIVES: Final[tuple[Alternative, ...]] = ("greater", "less", "two-sided")

N_DRAWS: Final = 99_999
RELATIVE_ERROR: Final = 0.02
_AUTO_SUMS: Final = 1 << 23  # below it, an exact count is a matter of a second
_MAX_ENUMERATED: Final = 100_000  # partitions that May et al. (2019) count one by one
_BLOCK: Final = 4096  # partitions held at once
_FEW: Final = 20.0  # logarithm of a count that is known to the last one
_SMALLEST: Final = float(np.finfo(np.float64).tiny)  # p below it is told by its logarithm alone


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """A p-value, how sure it is, and how small it could have been.

    Attributes
    ----------
    p_value
        Of the alternative asked for, in (0, 1]; not below 2.2e-308, where `log10_p` goes on.
    log10_p
        Its decimal logarithm, at any depth.
    p_standard_error
        Of `p_value`, by drawing; 0 where nothing was drawn.
    p_floor
        The smallest p that this test can give; not below 2.2e-308.
    p_greater, p_less
        One-sided p-values.
    log_n_partitions
        Natural logarithm of the number of partitions.
    method_used
        How `p_value` was found.
    """

    p_value: float
    log10_p: float
    p_standard_error: float
    p_floor: float
    p_greater: float
    p_less: float
    log_n_partitions: float
    method_used: MethodUsed


@dataclass(frozen=True, slots=True)
class _Tail:
    """A one-sided p with its decimal logarithm, which holds where p itself underflows."""

    p: float
    log10_p: float
    relative_error: float
    method: MethodUsed

    @classmethod
    def counted(cls, count: int, total: int, method: MethodUsed = "exact", relative_error: float = 0.0) -> Self:
        """So many of all."""
        return cls(count / total, log10(count) - log10(total), relative_error, method)

    @classmethod
    def estimated(cls, log_p: float, method: MethodUsed, relative_error: float = 0.0) -> Self:
        """From its natural logarithm."""
        return cls(exp(log_p), log_p / log(10), relative_error, method)


def permutation_test(
    scores: Floats,
    n_x: int,
    *,
    seed: np.random.SeedSequence,
    method: Method = "auto",
    alternative: Alternative = "greater",
    resolution: float = 0.0,
    relative_error: float = RELATIVE_ERROR,
) -> PermutationTest:
    """Test whether the first `n_x` targets score higher than the rest.

    Scores become integers on a grid (see `to_grid`), so that sums and comparisons are exact and the result depends on
    no order of addition; sums that rounding may have parted count as ties, and a tie as "at least", as published.

    - exact: all partitions, by meeting in the middle.
    - importance: partitions drawn where they count, weighted back (see `tail_share`); counted in closed form where X
      holds the highest scores.
    - auto: exact while at most 2^23 sums are held (22 v 22), else importance.
    - sampled: May et al. (2019), appendix A: all partitions up to 100,000, else 99,999 drawn ones and the observed one.
    - normal: Caliskan et al. (2017), with the mean and variance that the statistic has over all partitions.

    Parameters
    ----------
    scores
        s(w, A, B) of X's targets and then Y's, shape ``(n_x + n_y,)``.
    n_x
        How many of them are X's.
    seed
        Of what is drawn.
    alternative
        greater: X goes with A, as published; less: X goes with B; two-sided: twice the smaller of both.
    resolution
        The smallest difference of scores that is not noise: 0 for float64 vectors, 1e-7 for float32 ones. Means over
        the smaller set that are no further apart than this tie.
    relative_error
        Standard error, as a share of p, at which importance sampling stops.

    Raises
    ------
    AssociationError
        Fewer than one target in X or Y, scores that are not finite, or an exact count that memory does not hold.
    ConfigError
        An unknown method or alternative.

    Examples
    --------
    >>> permutation_test(np.array([4.0, 3.0, 2.0, 1.0]), 2, seed=np.random.SeedSequence(0)).p_value
    0.16666666666666666
    """
    require_option("method", method, METHODS)
    require_option("alternative", alternative, ALTERNATIVES)
    _check(scores, n_x)
    split = Split.of(to_grid(scores, resolution=resolution), n_x)
    chosen = _resolved(method, split)
    if chosen == "importance":
        greater, less = _by_importance(split, seed, relative_error)
    elif chosen == "exact":
        greater, less = _counted(split)
    elif chosen == "sampled":
        greater, less = _sampled(split, np.random.default_rng(seed))
    else:
        greater, less = _normal(split)
    return _result(greater, less, split, alternative)


def p_floor(n_x: int, n_y: int, *, method: Method = "auto", alternative: Alternative = "greater") -> float:
    """The smallest p that a test of these sizes can give.

    1 / C(n_x + n_y, n_x), or 1 / 100,000 where partitions are drawn, doubled for a two-sided test; not below 2.2e-308.

    Examples
    --------
    >>> p_floor(8, 8) == 1 / 12870, p_floor(25, 25, method="sampled")
    (True, 1e-05)
    """
    n_partitions = comb(n_x + n_y, n_x)
    is_drawn = method == "sampled" and n_partitions > _MAX_ENUMERATED
    return _told((2 if alternative == "two-sided" else 1) / (N_DRAWS + 1 if is_drawn else n_partitions))


def drawn_partitions(n: int, n_chosen: int, n_draws: int, rng: np.random.Generator) -> Floats:
    """Random partitions, a row each: 1.0 where an item is chosen, shape ``(n_draws, n)``."""
    member_n = np.arange(n) < n_chosen
    return rng.permuted(np.tile(member_n, (n_draws, 1)), axis=1).astype(np.float64)


def _check(scores: Floats, n_x: int) -> None:
    if not 0 < n_x < len(scores):
        raise AssociationError(f"{n_x} of {len(scores)} targets in X: X and Y need one each; give both sets")
    if not np.isfinite(scores).all():
        where = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise AssociationError(f"score {where} of {len(scores)} is {scores[where]}; give finite scores")


def _resolved(method: Method, split: Split) -> MethodUsed:
    n, k = len(split.items), split.n_chosen
    if method == "auto":
        return "exact" if n_sums(n, k) <= _AUTO_SUMS else "importance"
    if method == "sampled" and comb(n, k) <= _MAX_ENUMERATED:
        return "exact"
    return method


def _counted(split: Split) -> tuple[_Tail, _Tail]:
    k = split.n_chosen
    at_least, above = count_at_least(split.items, k, (split.threshold, split.observed + k + 1))
    total = comb(len(split.items), k)
    return _Tail.counted(at_least, total), _Tail.counted(total - above, total)


def _by_importance(split: Split, seed: np.random.SeedSequence, relative_error: float) -> tuple[_Tail, _Tail]:
    """Both sides, from draws on the side of the mean where the observed partition lies.

    The other side is all that does not lie surely beyond the observed one; where that is little, since few sums of a
    skewed law can lie far below their mean, it gets draws of its own.
    """
    lies_high = split.observed * len(split.items) >= split.n_chosen * int(split.items.sum())
    side = split if lies_high else split.turned
    n, k = len(side.items), side.n_chosen
    loss = loss_from_top(side.items, k)
    if loss <= k:  # nothing lies above but ties
        near, far = _near_top(side, loss + k), _Tail.counted(1, 1)
    else:
        found = _drawn(side, seed, 0, relative_error)
        near, rest = _estimated(found, n, k), 1 - found.share_above
        error = found.standard_error_above
        if rest - SURELY * error > PLAINLY_ABOVE:
            far = _Tail.estimated(log(rest), "importance", max(error / rest, LEAST_RELATIVE_ERROR))
        else:
            far = _estimated(_drawn(side.turned, seed, 1, relative_error), n, k)
    return (near, far) if lies_high else (far, near)


def _drawn(side: Split, seed: np.random.SeedSequence, number: int, relative_error: float) -> TailEstimate:
    """Draw from a stream of its own; unlike `SeedSequence.spawn`, the same one each time it is asked for."""
    rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number)))
    return tail_share(side.items, side.n_chosen, side.threshold, rng=rng, relative_error=relative_error)


def _estimated(found: TailEstimate, n: int, k: int) -> _Tail:
    floor = -log_choices(n, k)  # the observed partition is one that counts
    return _Tail.estimated(max(found.log_share, floor), "importance", found.relative_error)


def _near_top(side: Split, allowed: int) -> _Tail:
    n, k = len(side.items), side.n_chosen
    log_count = log_count_near_top(side.items, k, allowed)
    if log_count < _FEW:
        return _Tail.counted(round(exp(log_count)), comb(n, k))
    return _Tail.estimated(min(log_count - log_choices(n, k), 0.0), "exact")


def _sampled(split: Split, rng: np.random.Generator) -> tuple[_Tail, _Tail]:
    items = split.items.astype(np.float64)
    n_greater = n_less = 1  # the observed partition
    for start in range(0, N_DRAWS, _BLOCK):
        sums = drawn_partitions(len(items), split.n_chosen, min(_BLOCK, N_DRAWS - start), rng) @ items
        n_greater += int((sums >= split.threshold).sum())
        n_less += int((sums <= split.observed + split.n_chosen).sum())
    return _of_drawn(n_greater), _of_drawn(n_less)


def _of_drawn(count: int) -> _Tail:
    total = N_DRAWS + 1
    return _Tail.counted(count, total, "sampled", sqrt((1 - count / total) / count))


def _normal(split: Split) -> tuple[_Tail, _Tail]:
    """The sum of k of n items has mean k times theirs and variance k (n - k) / n times theirs (ddof = 1)."""
    items = split.items.astype(np.float64)
    n, k = len(items), split.n_chosen
    deviation = sqrt(k * (n - k) / n) * float(items.std(ddof=1))
    if not deviation:
        return _Tail.counted(1, 1, "normal"), _Tail.counted(1, 1, "normal")
    z = (split.observed - k * float(items.mean())) / deviation
    floor = -log_choices(n, k)
    greater, less = (_Tail.estimated(max(float(log_ndtr(side)), floor), "normal") for side in (-z, z))
    return greater, less


def _result(greater: _Tail, less: _Tail, split: Split, alternative: Alternative) -> PermutationTest:
    n, k = len(split.items), split.n_chosen
    sides = {"greater": greater, "less": less}
    tail = sides.get(alternative, min(greater, less, key=lambda side: side.log10_p))
    factor = 2 if alternative == "two-sided" else 1
    floor = p_floor(k, n - k, method=tail.method, alternative=alternative)
    p_value = max(_told(factor * tail.p), floor)
    return PermutationTest(
        p_value=p_value,
        log10_p=min(tail.log10_p + log10(factor), 0.0),
        p_standard_error=tail.relative_error * p_value,
        p_floor=floor,
        p_greater=_told(greater.p),
        p_less=_told(less.p),
        log_n_partitions=log_choices(n, k),
        method_used=tail.method,
    )


def _told(p: float) -> float:
    return min(max(p, _SMALLEST), 1.0)
