"""How strongly each target goes with A rather than B, and how far X and Y differ in that."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError

__all__ = ["Association", "associate"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """The association scores of the targets of one test.

    Attributes
    ----------
    scores_x, scores_y
        s(w, A, B) of every target, shape ``(n_x,)`` and ``(n_y,)``, float64, in [-2, 2].
    """

    scores_x: Floats
    scores_y: Floats

    @property
    def joint(self) -> Floats:
        """The scores of X and then Y, shape ``(n_x + n_y,)``."""
        return np.concatenate([self.scores_x, self.scores_y])

    @property
    def spread(self) -> float:
        """Largest less smallest score of all targets; next to nothing where the vectors are all alike."""
        return float(np.ptp(self.joint))

    @property
    def statistic(self) -> float:
        """mean_X s - mean_Y s.

        Caliskan et al. (2017), eq. 1 has sums; with sets of equal size that is n times this number, which orders
        partitions alike and so has the same p. With sets of unequal size only the means compare like with like.
        """
        return float(self.scores_x.mean() - self.scores_y.mean())

    @property
    def effect_size(self) -> float:
        """Cohen-style d of Caliskan et al. (2017), eq. 3: difference of means over the joint deviation (ddof = 1)."""
        return self.statistic / float(self.joint.std(ddof=1))

    def swapped(self) -> Self:
        """The same test with the targets exchanged; its effect size is the negative."""
        return type(self)(scores_x=self.scores_y, scores_y=self.scores_x)


def associate(
    x: NDArray[np.floating], y: NDArray[np.floating], *, a: NDArray[np.floating], b: NDArray[np.floating]
) -> Association:
    """Score targets X and Y against attributes A and B.

    Since the mean of cosines with a set is the inner product with the mean of its unit vectors,

        s(w, A, B) = mean_a cos(w, a) - mean_b cos(w, b) = <w / |w|, mean(A / |A|) - mean(B / |B|)>,

    one pass over the targets is enough: O((n_x + n_y + n_a + n_b) d) instead of O((n_x + n_y)(n_a + n_b) d).

    Parameters
    ----------
    x, y
        Target vectors, shape ``(n_x, d)`` and ``(n_y, d)``, any float dtype; computed in float64.
    a, b
        Attribute vectors, shape ``(n_a, d)`` and ``(n_b, d)``.

    Raises
    ------
    AssociationError
        A set is empty, a vector is zero or not finite, or the dimensions differ.

    References
    ----------
    Caliskan, Bryson, Narayanan (2017), Science 356, eq. 1 and 2.

    Examples
    --------
    >>> east, north = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> associate(east, north, a=east, b=north).scores_x
    array([1.])
    """
    _check_dimensions({"X": x, "Y": y, "A": a, "B": b})
    direction = _unit(a, name="A").mean(axis=0) - _unit(b, name="B").mean(axis=0)
    return Association(scores_x=_unit(x, name="X") @ direction, scores_y=_unit(y, name="Y") @ direction)


def _check_dimensions(sets: dict[str, NDArray[np.floating]]) -> None:
    told = {name: vectors.shape for name, vectors in sets.items()}
    whole = all(vectors.ndim == 2 and len(vectors) for vectors in sets.values())  # noqa: PLR2004 - a matrix has two axes
    if not whole or len({shape[-1] for shape in told.values()}) != 1:
        raise AssociationError(
            f"sets of shape {told}, but each needs shape (n, d) with n > 0 and one d for all; check their encoding"
        )


def _unit(vectors: NDArray[np.floating], *, name: str) -> Floats:
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    unusable = np.flatnonzero(~(np.isfinite(norms[:, 0]) & (norms[:, 0] > 0)))
    if unusable.size:
        raise AssociationError(
            f"set {name}: vector {unusable[0]} of {len(vectors)} has norm {norms[unusable[0], 0]}, "
            "but cosine needs a finite norm above 0; drop the stimulus or encode it again"
        )
    return np.asarray(wide / norms)
