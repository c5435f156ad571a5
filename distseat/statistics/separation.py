"""Choices of k items whose sum is the highest there is, or ties with it: counted in closed form.

A choice is what it takes from the top k items and adds from the rest, as many as it takes. Measured from the lowest of
the top k, each exchange loses a number of steps; the choices that tie with the highest sum are those whose losses come
to no more than the allowed ones. With items that are tied outright (loss 0) this is a product of binomials.
"""

from math import lgamma

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_choices", "log_count_near_top", "loss_from_top"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def log_choices(n: int, k: int) -> float:
    """Natural logarithm of C(n, k)."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def loss_from_top(items: Integers, k: int) -> int:
    """How far the sum of the first `k` items lies below the highest sum of k items."""
    return int(np.sort(items)[::-1][:k].sum() - items[:k].sum())


def log_count_near_top(items: Integers, k: int, allowed: int) -> float:
    """Natural logarithm of the number of choices of `k` items whose sum is at most `allowed` below the highest.

    Examples
    --------
    >>> np.exp(log_count_near_top(np.array([5, 3, 3, 3, 1]), 2, 0)).round(9)
    np.float64(3.0)
    """
    descending = np.sort(items)[::-1]
    taken, added = descending[:k] - descending[k - 1], descending[k - 1] - descending[k:]
    taken_jl, added_jl = (_log_counts(losses[losses <= allowed], allowed) for losses in (taken, added))
    added_within_jl = np.logaddexp.accumulate(added_jl, axis=1)
    n_exchanged = min(len(taken_jl), len(added_jl))
    pairs_jl = taken_jl[:n_exchanged] + added_within_jl[:n_exchanged, ::-1]
    return float(np.logaddexp.reduce(pairs_jl, axis=None))


def _log_counts(losses: Integers, allowed: int) -> Floats:
    """Logarithm of the number of choices of j of the losses with sum l, for all j and all l up to `allowed`."""
    counts_jl = np.full((len(losses) + 1, allowed + 1), -np.inf)
    tied = int((losses == 0).sum())
    counts_jl[: tied + 1, 0] = [log_choices(tied, j) for j in range(tied + 1)]
    for loss in losses[losses > 0]:
        counts_jl[1:, loss:] = np.logaddexp(counts_jl[1:, loss:], counts_jl[:-1, : allowed + 1 - loss])
    return counts_jl
