"""Vectors less what all of them share: contextual layers are dominated by a few dimensions of large mean or spread."""

from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError
from distseat.statistics.options import require_option

__all__ = ["POSTPROCESSINGS", "Moments", "Postprocessing"]

Floats = NDArray[np.float64]

Postprocessing = Literal["none", "center", "standardize"]
POSTPROCESSINGS: Final[tuple[Postprocessing, ...]] = ("none", "center", "standardize")

_CONSTANT: Final = 1e-6  # deviation of a dimension, as a share of its root mean square: below it there is only rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Mean and standard deviation (ddof = 0) of each dimension over a population of vectors, shape ``(d,)`` each.

    The deviation is 0 where a dimension is constant but for the rounding of float32.
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, vectors: NDArray[np.floating]) -> Self:
        """Measure a population, shape ``(n, d)``, in float64.

        Raises
        ------
        AssociationError
            A vector is not finite.

        Examples
        --------
        >>> Moments.of(np.array([[1.0, 5.0], [3.0, 5.0]])).deviation
        array([1., 0.])
        """
        wide = vectors.astype(np.float64)
        faulty = np.flatnonzero(~np.isfinite(wide).all(axis=1))
        if faulty.size:
            raise AssociationError(
                f"vector {faulty[0]} of {len(wide)} holds values that are not finite, so that there is no mean; "
                "encode its stimulus again"
            )
        mean, deviation = wide.mean(axis=0), wide.std(axis=0)
        is_constant = deviation <= _CONSTANT * np.sqrt(np.square(wide).mean(axis=0))
        return cls(mean=mean, deviation=np.where(is_constant, 0.0, deviation))

    def apply(self, vectors: NDArray[np.floating], how: Postprocessing) -> Floats:
        """Center or standardize vectors, shape ``(n, d)``, float64; a constant dimension becomes 0.

        Examples
        --------
        >>> Moments.of(np.array([[1.0, 5.0], [3.0, 5.0]])).apply(np.array([[4.0, 6.0]]), "standardize")
        array([[2., 0.]])
        """
        require_option("how", how, POSTPROCESSINGS)
        wide = vectors.astype(np.float64)
        if how == "none":
            return wide
        centred = np.where(self.deviation > 0, wide - self.mean, 0.0)
        if how == "center":
            return centred
        return np.asarray(centred / np.where(self.deviation > 0, self.deviation, 1.0))
