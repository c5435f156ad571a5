"""How strongly each target goes with A rather than B, and how far X and Y differ in that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError

__all__ = [
    "FLOAT32_NOISE",
    "FLOAT64_NOISE",
    "Association",
    "Noise",
    "UnitSets",
    "associate",
    "noise_of",
    "require_as_many",
    "unit_vectors",
]

Floats = NDArray[np.float64]
AnyFloats = NDArray[np.floating]
SetName = Literal["X", "Y", "A", "B"]
Labels = Mapping[SetName, Sequence[str]]

_MIN_MEMBERS: Final = 2  # a set of one has no spread, and nothing to exchange or to leave out
_AXES: Final = 2
_BYTES_64: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What rounding of the vectors leaves in association scores.

    Attributes
    ----------
    resolution
        The smallest difference of two scores that is not noise; the least step of the grid that ties are judged on.
    min_spread
        Where the largest and the smallest score of all targets differ by less, there is only rounding.
    """

    resolution: float
    min_spread: float


FLOAT32_NOISE: Final = Noise(resolution=1e-7, min_spread=1e-6)
FLOAT64_NOISE: Final = Noise(resolution=1e-15, min_spread=1e-12)


def noise_of(*sets: AnyFloats) -> Noise:
    """Tell the noise of scores of these vectors: that of float32 if one is of less than 64 bits."""
    is_short = any(vectors.dtype.kind == "f" and vectors.dtype.itemsize < _BYTES_64 for vectors in sets)
    return FLOAT32_NOISE if is_short else FLOAT64_NOISE


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
        deviation = float(self.joint.std(ddof=1))
        if not deviation:
            raise AssociationError("all targets have one association score, so that there is no effect size")
        return self.statistic / deviation

    def swapped(self) -> Self:
        """The same test with the targets exchanged; its effect size is the negative."""
        return type(self)(scores_x=self.scores_y, scores_y=self.scores_x)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSets:
    """The vectors of one test at length 1, float64, shape ``(n, d)`` each."""

    x: Floats
    y: Floats
    a: Floats
    b: Floats

    @classmethod
    def of(cls, x: AnyFloats, y: AnyFloats, *, a: AnyFloats, b: AnyFloats, labels: Labels | None = None) -> Self:
        """Check four sets of vectors and bring each vector to length 1.

        Raises
        ------
        AssociationError
            As `associate` does.
        """
        sets: dict[SetName, AnyFloats] = {"X": x, "Y": y, "A": a, "B": b}
        _check_shapes(sets)
        for name, told in (labels or {}).items():
            require_as_many(name, told, sets[name])
        _check_apart(labels or {})
        units = {name: unit_vectors(v, name=name, labels=(labels or {}).get(name)) for name, v in sets.items()}
        return cls(x=units["X"], y=units["Y"], a=units["A"], b=units["B"])

    @property
    def direction(self) -> Floats:
        """mean(A / |A|) - mean(B / |B|), shape ``(d,)``."""
        return np.asarray(self.a.mean(axis=0) - self.b.mean(axis=0))

    @property
    def association(self) -> Association:
        """s(w, A, B) of all targets."""
        direction = self.direction
        return Association(scores_x=self.x @ direction, scores_y=self.y @ direction)


def associate(x: AnyFloats, y: AnyFloats, *, a: AnyFloats, b: AnyFloats, labels: Labels | None = None) -> Association:
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
    labels
        What the vectors stand for, by set, for the messages of errors.

    Raises
    ------
    AssociationError
        A set has fewer than two vectors, a vector is zero or not finite, the dimensions differ, or one label stands in
        both X and Y. The message names the stimulus, by its label where there is one.

    References
    ----------
    Caliskan, Bryson, Narayanan (2017), Science 356, eq. 1 and 2.

    Examples
    --------
    >>> east, north = np.array([[1.0, 0.0]] * 2), np.array([[0.0, 1.0]] * 2)
    >>> associate(east, north, a=east, b=north).scores_x
    array([1., 1.])
    """
    return UnitSets.of(x, y, a=a, b=b, labels=labels).association


def unit_vectors(vectors: AnyFloats, *, name: str, labels: Sequence[str] | None = None) -> Floats:
    """Bring vectors to length 1, shape ``(n, d)``, float64.

    Raises
    ------
    AssociationError
        A vector is zero or not finite.
    """
    wide = vectors.astype(np.float64)
    largest = np.abs(wide).max(axis=1, keepdims=True)  # scaled by it, no square over- or underflows
    unusable = np.flatnonzero(~(np.isfinite(largest[:, 0]) & (largest[:, 0] > 0)))
    if unusable.size:
        first = int(unusable[0])
        fault = "is zero" if largest[first, 0] == 0 else "holds values that are not finite"
        told = "" if labels is None else f" ({labels[first]!r})"
        more = f", and {unusable.size - 1} more" if unusable.size > 1 else ""
        raise AssociationError(
            f"set {name}: vector {first} of {len(vectors)}{told} {fault}{more}, but cosine needs a finite norm "
            "above 0; drop the stimulus or encode it again"
        )
    scaled = wide / largest
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


def require_as_many(name: str, labels: Sequence[str] | None, vectors: AnyFloats) -> None:
    """Check that there is a label, such as a word, for each vector.

    Raises
    ------
    AssociationError
        There are more or fewer.
    """
    if labels is not None and len(labels) != len(vectors):
        raise AssociationError(f"set {name}: {len(labels)} labels for {len(vectors)} vectors; give one a vector")


def _check_shapes(sets: Mapping[SetName, AnyFloats]) -> None:
    told = ", ".join(f"{name} {vectors.shape}" for name, vectors in sets.items())
    if any(vectors.ndim != _AXES or not vectors.shape[1] for vectors in sets.values()):
        raise AssociationError(f"sets of shape {told}, but each needs shape (n, d) with d > 0; stack vectors as rows")
    if len({vectors.shape[1] for vectors in sets.values()}) != 1:
        raise AssociationError(f"sets of shape {told}, but all need one dimension d; take vectors of one encoder")
    few = [name for name, vectors in sets.items() if len(vectors) < _MIN_MEMBERS]
    if few:
        raise AssociationError(f"sets of shape {told}: {', '.join(few)} needs two vectors at least; add stimuli")


def _check_apart(labels: Labels) -> None:
    both = sorted(set(labels.get("X", ())) & set(labels.get("Y", ())))
    if both:
        more = f" (and {len(both) - 1} more)" if len(both) > 1 else ""
        raise AssociationError(
            f"{both[0]!r}{more} stands in both X and Y, so that nothing is exchanged; keep it in one set, or in none"
        )
