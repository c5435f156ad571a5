"""Association scores as integers: sums that are exact in any order, and ties that are ties."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Split", "to_grid"]

Integers = NDArray[np.int64]

_GRID_BITS: Final = 40
_EXACT_BITS: Final = 52  # integers up to 2^52 add without rounding in float64 as well, in any order


def to_grid(scores: NDArray[np.float64], *, resolution: float = 0.0) -> Integers:
    """Round scores, less their mean, to integers on a grid.

    The grid's step is 2^-40 of the largest distance from the mean, or `resolution`, whichever is coarser; above 4,095
    scores it is coarser still, so that float64 holds every sum.

    Parameters
    ----------
    scores
        Shape ``(n,)``.
    resolution
        The smallest difference of scores that is not noise: 0 for float64 vectors, 1e-7 for float32 ones.

    Examples
    --------
    >>> to_grid(np.array([0.1, 0.2, 0.3]), resolution=0.1)
    array([-1,  0,  1])
    """
    bits = min(_GRID_BITS, _EXACT_BITS - len(scores).bit_length())
    centred = scores - scores.mean()
    step = max(float(np.abs(centred).max()) * 2.0**-bits, resolution)
    ticks: Integers = np.rint(centred / (step or 1.0)).astype(np.int64)
    return ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Targets of one test on the grid, seen from the smaller of X and Y.

    With the sizes fixed, mean_X s - mean_Y s rises with the sum over X alone, and falls with the sum over Y. So a
    partition is a choice of `n_chosen` items, and its statistic is at least the observed one where their sum reaches
    `observed`; where Y is the smaller set, the signs of all items are turned.

    Attributes
    ----------
    items
        Shape ``(n,)``, the chosen ones first.
    n_chosen
        min(n_x, n_y).
    """

    items: Integers
    n_chosen: int

    @classmethod
    def of(cls, ticks: Integers, n_x: int) -> Self:
        """Split the scores on the grid of X and then Y, of which `n_x` are X's."""
        n_y = len(ticks) - n_x
        return cls(items=ticks, n_chosen=n_x) if n_x <= n_y else cls(items=-np.roll(ticks, -n_x), n_chosen=n_y)

    @property
    def turned(self) -> Self:
        """The same split asked for the other side: what was "at least" becomes "at most"."""
        return type(self)(items=-self.items, n_chosen=self.n_chosen)

    @property
    def observed(self) -> int:
        """Sum over the chosen items."""
        return int(self.items[: self.n_chosen].sum())

    @property
    def threshold(self) -> int:
        """The sum from which on a partition counts.

        Rounding moves each score by half a step at most. Two choices differ in `n_chosen` items on either side at
        most, so sums that are `n_chosen` steps apart or less may be equal: they count as ties.
        """
        return self.observed - self.n_chosen
