"""How many choices of k among n integers have a sum at or above a threshold: exactly, by meeting in the middle.

The items are cut into halves. All sums of a half, by the number of items, come in ascending order when each further
item merges the old sums with the old sums plus itself. For j items of the left half and k - j of the right one, two
pointers count the pairs whose sum is high enough. Work and memory are those of 2^(n/2) sums, not of C(n, k).
"""

from itertools import pairwise
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError
from distseat.statistics.compiled import compiled

__all__ = ["count_at_least", "is_countable", "n_sums"]

Integers = NDArray[np.int64]

_MAX_SUMS: Final = 1 << 27  # 1 GiB of sums; 26 v 26


def n_sums(n: int, k: int) -> int:
    """Sums that `count_at_least` holds for k of n items.

    Examples
    --------
    >>> n_sums(16, 8)
    512
    """
    return sum(comb(half, j) for half in (n // 2, n - n // 2) for j in range(min(k, half) + 1))


def is_countable(n_x: int, n_y: int) -> bool:
    """Whether memory holds the sums that an exact count of these sizes needs."""
    return n_sums(n_x + n_y, min(n_x, n_y)) <= _MAX_SUMS


def count_at_least(items: Integers, k: int, thresholds: tuple[int, ...]) -> list[int]:
    """Count the choices of `k` items whose sum is at least each threshold.

    Parameters
    ----------
    items
        Shape ``(n,)``.

    Raises
    ------
    AssociationError
        There are more sums than memory holds.

    Examples
    --------
    >>> count_at_least(np.array([1, 2, 3, 4]), 2, (5, 7))
    [4, 1]
    """
    n = len(items)
    if n_sums(n, k) > _MAX_SUMS:
        raise AssociationError(
            f"exact p of {k} v {n - k} targets needs {n_sums(n, k):.1e} sums in memory, at most {_MAX_SUMS:.1e} are "
            "held; take method auto, which samples such tests by importance at any depth"
        )
    left, right = (_sums_by_size(half, k) for half in (items[: n // 2], items[n // 2 :]))
    counts = [0] * len(thresholds)
    for j, sums in enumerate(left):
        if k - j < len(right):
            for i, threshold in enumerate(thresholds):
                counts[i] += int(_pairs_at_least(sums, right[k - j], threshold))
    return counts


def _sums_by_size(items: Integers, k: int) -> list[Integers]:
    """Sums of 0, 1, ..., k of the items, each in ascending order."""
    sums = [np.zeros(1, dtype=np.int64)]
    for item in items:
        grown = [_merged(more, fewer, item) for fewer, more in pairwise(sums)]
        top = [sums[-1] + item] if len(sums) <= k else []
        sums = [sums[0], *grown, *top]
    return sums


@compiled
def _merged(left: Integers, right: Integers, shift: int) -> Integers:
    """`left` and `right` + shift, both ascending, as one ascending array."""
    merged = np.empty(len(left) + len(right), dtype=np.int64)
    i = j = 0
    for out in range(len(merged)):
        if j == len(right) or (i < len(left) and left[i] <= right[j] + shift):
            merged[out] = left[i]
            i += 1
        else:
            merged[out] = right[j] + shift
            j += 1
    return merged


@compiled
def _pairs_at_least(left: Integers, right: Integers, threshold: int) -> int:
    """Pairs, one of each ascending array, whose sum is at least the threshold."""
    count = 0
    first = len(right)  # of `right`'s sums that are high enough for the current one of `left`
    for low in left:
        while first > 0 and low + right[first - 1] >= threshold:
            first -= 1
        count += len(right) - first
    return count
