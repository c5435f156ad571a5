"""WEFAT: how each word's association goes with a property of the word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError
from distseat.statistics.association import require_as_many, unit_vectors

__all__ = ["Fit", "WefatResult", "wefat"]

Floats = NDArray[np.float64]

_MIN_WORDS: Final = 3  # of a correlation that has a p
_ROUNDING: Final = 1e-12  # of cosines


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How the association goes with the property.

    Attributes
    ----------
    slope, intercept
        Least squares line of the association over the property.
    pearson_r, pearson_p
        Of the line: two-sided p of no linear relation.
    spearman_rho, spearman_p
        Of the ranks.
    """

    slope: float
    intercept: float
    pearson_r: float
    pearson_p: float
    spearman_rho: float
    spearman_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WefatResult:
    """The normalised association of each word, and its relation to the property where one was given.

    Attributes
    ----------
    association
        Shape ``(n,)``.
    """

    association: Floats
    fit: Fit | None


def wefat(
    W: NDArray[np.floating],  # noqa: N803 - the field's names of the sets
    A: NDArray[np.floating],  # noqa: N803 - likewise
    B: NDArray[np.floating],  # noqa: N803 - likewise
    *,
    values: Sequence[float] | Floats | None = None,
    words: Sequence[str] | None = None,
) -> WefatResult:
    """Word-embedding factual association test.

        s(w, A, B) = (mean_a cos(w, a) - mean_b cos(w, b)) / standard deviation of cos(w, c) over A and B (ddof = 1)

    Parameters
    ----------
    W
        Vectors of words, shape ``(n, d)``.
    A, B
        Attribute vectors, shape ``(n_a, d)`` and ``(n_b, d)``.
    values
        A property of each word, such as the share of women in an occupation, shape ``(n,)``.
    words
        What the vectors of W stand for, for the messages of errors.

    Raises
    ------
    AssociationError
        A vector is zero or not finite, dimensions or numbers differ, a word's cosines with A and B are all equal, or a
        property that is constant, not finite or given for fewer than three words.

    References
    ----------
    Caliskan, Bryson, Narayanan (2017), Science 356, WEFAT, eq. 4.

    Examples
    --------
    >>> A, B = np.array([[1.0, 0.0], [1.0, 0.1]]), np.array([[0.0, 1.0], [0.1, 1.0]])
    >>> wefat(np.array([[1.0, 0.0], [1.0, 1.0]]), A, B).association.round(6)
    array([1.727286, 0.      ])
    """
    sets = {name: np.asarray(vectors) for name, vectors in (("W", W), ("A", A), ("B", B))}
    units = {name: _units(vectors, name, words if name == "W" else None) for name, vectors in sets.items()}
    if len({v.shape[1] for v in units.values()}) != 1:
        told = ", ".join(f"{name} {v.shape}" for name, v in units.items())
        raise AssociationError(f"sets of shape {told}, but all need one dimension d; take vectors of one encoder")
    if min(len(A), len(B)) < 2:  # noqa: PLR2004 - a deviation of each set needs two
        raise AssociationError(f"A has {len(A)} vectors and B {len(B)}; each needs two at least")
    with_a, with_b = units["W"] @ units["A"].T, units["W"] @ units["B"].T
    deviation = np.concatenate([with_a, with_b], axis=1).std(axis=1, ddof=1)
    flat = np.flatnonzero(deviation < _ROUNDING)
    if flat.size:
        named = "" if words is None else f" ({words[flat[0]]!r})"
        raise AssociationError(
            f"set W: vector {flat[0]}{named} has one cosine with all attributes; its association is not defined"
        )
    association = (with_a.mean(axis=1) - with_b.mean(axis=1)) / deviation
    return WefatResult(association=association, fit=None if values is None else _fit(association, values))


def _units(vectors: NDArray[np.floating], name: str, words: Sequence[str] | None) -> Floats:
    if vectors.ndim != 2 or not vectors.size:  # noqa: PLR2004 - a matrix has two axes
        raise AssociationError(f"set {name} has shape {vectors.shape}, but (n, d) with n > 0 was expected")
    require_as_many(name, words, vectors)
    return unit_vectors(vectors, name=name, labels=words)


def _fit(association: Floats, values: Sequence[float] | Floats) -> Fit:
    values = np.asarray(values, dtype=np.float64)
    if values.shape != association.shape or len(values) < _MIN_WORDS:
        raise AssociationError(
            f"values of shape {values.shape} for {len(association)} words; give one a word, for three words at least"
        )
    if not np.isfinite(values).all() or not np.ptp(values) or np.ptp(association) < _ROUNDING:
        raise AssociationError("values or associations that are constant or not finite have no correlation")
    from scipy import stats  # noqa: PLC0415 - half a second that only a fit needs

    line = stats.linregress(values, association)
    ranks = stats.spearmanr(values, association)
    return Fit(
        slope=float(line.slope),
        intercept=float(line.intercept),
        pearson_r=float(line.rvalue),
        pearson_p=float(line.pvalue),
        spearman_rho=float(ranks.statistic),
        spearman_p=float(ranks.pvalue),
    )
