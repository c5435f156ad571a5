"""Westfall-Young step-down maxT: correct the variants of one test by what they do together on the same partitions.

Variants of one test (models, layers, encodings) are measured on the same words, so their scores rise and fall
together. A partition of the words is applied to all of them at once; the maximum over variants of the permuted
statistic is what a family of true nulls would show, with their dependence in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError
from distseat.statistics.compiled import compiled
from distseat.statistics.grid import Split, to_grid
from distseat.statistics.permutation import N_DRAWS, Alternative, drawn_partitions

__all__ = ["StepDown", "step_down_floor", "westfall_young"]

Floats = NDArray[np.float64]

MAX_ENUMERATED: Final = 20_000
_DRAWN_AT_ONCE: Final = 4096
_HELD: Final = 1 << 22  # statistics of a block, 32 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDown:
    """Adjusted p-values of the variants of one test.

    Attributes
    ----------
    adjusted
        Shape ``(n_variants,)``, in (0, 1]: no false rejection within the test at this level, in the strong sense.
    statistics
        z = d sqrt(n_x n_y / N) of each variant, whose variance over all partitions is 1.
    p_floor
        The smallest adjusted p that the test can give.
    """

    adjusted: Floats
    statistics: Floats
    p_floor: float


def westfall_young(
    scores_nv: Floats,
    n_x: int,
    *,
    seed: np.random.SeedSequence,
    alternative: Alternative = "greater",
    resolution: float = 0.0,
) -> StepDown:
    """Step-down maxT over the variants of one test.

    With variants in descending order of z and q_r the share of partitions on which the largest z of variants r,
    r + 1, ... reaches the observed z_r: adjusted p_r = max over j <= r of q_j. All partitions are enumerated up to
    20,000, else 99,999 are drawn and the observed one is added.

    Parameters
    ----------
    scores_nv
        Scores of X's words and then Y's, a column a variant, shape ``(n_x + n_y, n_variants)``; no column constant.
    n_x
        How many of the rows are X's.
    seed
        Of the drawn partitions.
    alternative
        greater: z; less: -z; two-sided: its absolute value.

    Raises
    ------
    AssociationError
        A variant has one score for all words.

    References
    ----------
    Westfall & Young (1993), Resampling-Based Multiple Testing, algorithm 2.8; Ge, Dudoit & Speed (2003), Test 12,
    box 2.

    Examples
    --------
    >>> scores = np.array([[4.0, 4.0], [3.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
    >>> westfall_young(scores, 2, seed=np.random.SeedSequence(0)).adjusted
    array([0.33333333, 0.66666667])
    """
    n = len(scores_nv)
    splits = [Split.of(to_grid(np.ascontiguousarray(column), resolution=resolution), n_x) for column in scores_nv.T]
    items_nv = np.stack([split.items for split in splits], axis=1).astype(np.float64)
    k = splits[0].n_chosen
    mean_v = k * items_nv.mean(axis=0)
    deviation_v = np.sqrt(k * (n - k) / n * items_nv.var(axis=0, ddof=1))
    if not deviation_v.all():
        raise AssociationError(
            f"variant {int(np.argmin(deviation_v))} of {len(deviation_v)} has one score for all words; leave it out"
        )
    observed_v = _standardized(items_nv[:k].sum(axis=0), mean_v, deviation_v, alternative)
    order = np.argsort(-observed_v, kind="stable")
    slack_v = (k + 0.5) / deviation_v  # sums k steps apart may be equal but for the rounding of scores
    reached_v = np.zeros(len(order), dtype=np.int64)
    is_whole = comb(n, k) <= MAX_ENUMERATED
    n_total = 0
    for block_pn in _enumerated(n, k) if is_whole else _drawn(n, k, np.random.default_rng(seed)):
        height = max(1, _HELD // len(order))
        for start in range(0, len(block_pn), height):
            sums_pv = block_pn[start : start + height] @ items_nv
            z_pv = _standardized(sums_pv, mean_v, deviation_v, alternative)
            _count_maxima(z_pv, order, observed_v - slack_v, reached_v)
            n_total += len(sums_pv)
    share_v = reached_v / n_total if is_whole else (reached_v + 1) / (n_total + 1)
    adjusted_v = np.empty(len(order))
    adjusted_v[order] = np.maximum.accumulate(share_v[order])
    return StepDown(adjusted=adjusted_v, statistics=observed_v, p_floor=step_down_floor(n, k, alternative=alternative))


def step_down_floor(n: int, k: int, *, alternative: Alternative = "greater") -> float:
    """The smallest adjusted p of a test with k of n words in one set.

    Of sets of one size, a partition and the one with both exchanged have the same absolute z: two-sided, both count.

    Examples
    --------
    >>> step_down_floor(16, 8) == 1 / 12870, step_down_floor(50, 25)
    (True, 1e-05)
    """
    n_partitions = comb(n, k)
    if n_partitions > MAX_ENUMERATED:
        return 1 / (N_DRAWS + 1)
    return (2 if alternative == "two-sided" and n == 2 * k else 1) / n_partitions


def _standardized(sums_v: Floats, mean_v: Floats, deviation_v: Floats, alternative: Alternative) -> Floats:
    z = (sums_v - mean_v) / deviation_v
    return {"greater": z, "less": -z}.get(alternative, np.abs(z))


def _enumerated(n: int, k: int) -> Iterator[Floats]:
    chosen = np.fromiter(chain.from_iterable(combinations(range(n), k)), dtype=np.intp).reshape(-1, k)
    member_pn = np.zeros((len(chosen), n))
    np.put_along_axis(member_pn, chosen, 1.0, axis=1)
    yield member_pn


def _drawn(n: int, k: int, rng: np.random.Generator) -> Iterator[Floats]:
    for start in range(0, N_DRAWS, _DRAWN_AT_ONCE):
        yield drawn_partitions(n, k, min(_DRAWN_AT_ONCE, N_DRAWS - start), rng)


@compiled
def _count_maxima(z_pv: Floats, order: NDArray[np.intp], thresholds_v: Floats, reached_v: NDArray[np.int64]) -> None:
    """Count, for each variant, the partitions on which it or one that stands lower reaches its threshold."""
    for p in range(z_pv.shape[0]):
        highest = -np.inf
        for rank in range(len(order) - 1, -1, -1):
            variant = order[rank]
            highest = max(highest, z_pv[p, variant])
            if highest >= thresholds_v[variant]:
                reached_v[variant] += 1
