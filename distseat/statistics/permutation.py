"""The published permutation test: how often a random partition of the targets separates them as well.

The p-value of Caliskan et al. (2017): over all partitions of X and Y together into sets of
the sizes of X and Y, the share whose statistic is at least the observed one. May et al. (2019), appendix A: all
partitions where there are at most 100,000, else 99,999 drawn ones and the observed one.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_EXACT_PARTITIONS", "N_DRAWS", "PermutationTest", "permutation_test", "seed_sequence"]

Floats = NDArray[np.float64]

MAX_EXACT_PARTITIONS: Final = 100_000
N_DRAWS: Final = 99_999

_GRID_BITS: Final = 40
_EXACT_BITS: Final = 52  # integers up to 2^52 add without rounding in float64, in any order
_BLOCK: Final = 4096  # partitions held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """p-values of one test for several variants.

    Attributes
    ----------
    p_values
        One-sided (greater) p of each variant, shape ``(n_variants,)``, in (0, 1].
    p_floor
        The smallest p that this test can give.
    method
        "exact" over all partitions, or "sampled".
    """

    p_values: Floats
    p_floor: float
    method: Literal["exact", "sampled"]


def seed_sequence(*key: str | int) -> np.random.SeedSequence:
    """Turn a stable key, such as (run seed, test id, form, unit), into a seed; equal keys give equal streams anywhere.

    Examples
    --------
    >>> seed_sequence(0, "weat1", "sent").generate_state(1) == seed_sequence(0, "weat1", "sent").generate_state(1)
    array([ True])
    """
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest, "big"))


def permutation_test(
    scores_nv: Floats, n_x: int, *, seed: np.random.SeedSequence, resolution: float = 0.0
) -> PermutationTest:
    """Test whether the first `n_x` targets score higher than the rest, for several variants with one set of partitions.

    Scores become integers on a grid, so that sums are exact whatever the order of addition, and the result depends on
    no blocking. Rounding moves a sum of n_x scores by n_x / 2 steps at most, so two sums that are n_x steps apart or
    less may be equal: they count as ties. With X's size fixed, the difference of means rises with the sum over X alone,
    so that sum is what is compared (>=, as published).

    Parameters
    ----------
    scores_nv
        s(w, A, B) of X's targets and then Y's, a column a variant, shape ``(n_x + n_y, n_variants)``.
    n_x
        How many of the rows are X's.
    seed
        Of the drawn partitions.
    resolution
        The smallest difference of scores that is not noise: 0 for float64 vectors, 1e-7 for float32 ones. Means over
        X that are no further apart than this tie.

    Examples
    --------
    >>> scores = np.array([[4.0], [3.0], [2.0], [1.0]])
    >>> permutation_test(scores, 2, seed=seed_sequence(0)).p_values
    array([0.16666667])
    """
    n = len(scores_nv)
    ticks_nv = _on_grid(scores_nv, resolution=resolution)
    threshold_v = ticks_nv[:n_x].sum(axis=0) - n_x
    n_partitions = comb(n, n_x)
    exact = n_partitions <= MAX_EXACT_PARTITIONS
    blocks = _all_partitions(n, n_x) if exact else _drawn_partitions(n, n_x, np.random.default_rng(seed))
    reached_v = sum(((block_pn @ ticks_nv) >= threshold_v).sum(axis=0) for block_pn in blocks)
    p_values = reached_v / n_partitions if exact else (reached_v + 1) / (N_DRAWS + 1)
    floor = 1 / n_partitions if exact else 1 / (N_DRAWS + 1)
    return PermutationTest(p_values=np.asarray(p_values), p_floor=floor, method="exact" if exact else "sampled")


def _on_grid(scores_nv: Floats, *, resolution: float) -> Floats:
    """Scores as integers (kept in float64, whose products BLAS sums without rounding below 2^52)."""
    bits = min(_GRID_BITS, _EXACT_BITS - len(scores_nv).bit_length())
    ticks_nv = np.empty_like(scores_nv)
    for variant, column in enumerate(scores_nv.T):  # one at a time: a mean's bits must not depend on the neighbours
        centred = np.ascontiguousarray(column) - np.ascontiguousarray(column).mean()
        step = max(float(np.abs(centred).max()) * 2.0**-bits, resolution)
        ticks_nv[:, variant] = np.rint(centred / (step or 1.0))
    return ticks_nv


def _all_partitions(n: int, n_x: int) -> Iterator[Floats]:
    chosen = np.fromiter(chain.from_iterable(combinations(range(n), n_x)), dtype=np.intp).reshape(-1, n_x)
    for start in range(0, len(chosen), _BLOCK):
        block = chosen[start : start + _BLOCK]
        member_pn = np.zeros((len(block), n))
        np.put_along_axis(member_pn, block, 1.0, axis=1)
        yield member_pn


def _drawn_partitions(n: int, n_x: int, rng: np.random.Generator) -> Iterator[Floats]:
    member_n = np.arange(n) < n_x
    for start in range(0, N_DRAWS, _BLOCK):
        size = min(_BLOCK, N_DRAWS - start)
        yield rng.permuted(np.tile(member_n, (size, 1)), axis=1).astype(np.float64)
