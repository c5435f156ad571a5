"""Other measures of the same four sets, to stand beside d: ML-EAT, SAME, RIPA."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from distseat.statistics.association import UnitSets

__all__ = ["CosineSummary", "MlEat", "ml_eat", "ripa", "same"]

Floats = NDArray[np.float64]
AnyFloats = NDArray[np.floating]

_ROUNDING: Final = 1e-12  # of cosines


@dataclass(frozen=True, slots=True)
class CosineSummary:
    """Mean and standard deviation (ddof = 1) of the cosines of all targets of a set with all attributes of another."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MlEat:
    """Levels 2 and 3 of ML-EAT; level 1 is the effect size d.

    Attributes
    ----------
    x, y
        Level 2: the effect size of one set of targets alone; NaN where all attributes have one mean cosine.
    xa, xb, ya, yb
        Level 3: cosines of one set of targets with one set of attributes.
    """

    x: float
    y: float
    xa: CosineSummary
    xb: CosineSummary
    ya: CosineSummary
    yb: CosineSummary


def ml_eat(units: UnitSets) -> MlEat:
    """The second and third level of the multilevel embedding association test.

    For one set of targets T, with m(c) = mean over t in T of cos(c, t) for each attribute c:

        level 2 = (mean over A of m  -  mean over B of m) / standard deviation of m over A and B together (ddof = 1)
        level 3 = mean and standard deviation (ddof = 1) of cos(t, c) over all pairs, for each pair of sets

    References
    ----------
    Wolfe, Hiniker & Howe (2024), ML-EAT, arXiv 2408.01966; formulas as in the authors' program, wolferobert3/ml-eat,
    mleat.py.

    Examples
    --------
    >>> east, north = np.array([[1.0, 0.0], [0.8, 0.6]]), np.array([[0.0, 1.0], [0.6, 0.8]])
    >>> found = ml_eat(UnitSets.of(east, north, a=east, b=north))
    >>> round(found.x, 3), round(found.xa.mean, 3)
    (1.26, 0.9)
    """
    cosines = {(t, c): getattr(units, t) @ getattr(units, c).T for t in "xy" for c in "ab"}
    summaries = {t + c: _summary(found) for (t, c), found in cosines.items()}
    return MlEat(
        x=_single_target(cosines["x", "a"], cosines["x", "b"]),
        y=_single_target(cosines["y", "a"], cosines["y", "b"]),
        **summaries,
    )


def same(units: UnitSets) -> float:
    """SAME: how far the targets lie along the direction from B to A, whichever way.

        SAME(w) = |cos(w, mean(A / |A|) - mean(B / |B|))| = |s(w, A, B)| / |mean(A / |A|) - mean(B / |B|)|

    and its mean over all targets, in [0, 1]; NaN where A and B have one mean.

    References
    ----------
    Schröder, Schulz & Hammer (2022), The SAME score, arXiv 2203.14603; formula for two sets of attributes as in the
    authors' program, HammerLabML/EmbeddingBiasScores, same.py.

    Examples
    --------
    >>> east, north = np.array([[1.0, 0.0]] * 2), np.array([[0.0, 1.0]] * 2)
    >>> round(same(UnitSets.of(east, north, a=east, b=north)), 6)
    0.707107
    """
    length = float(np.linalg.norm(units.direction))
    return float(np.abs(units.association.joint).mean()) / length if length > _ROUNDING else float("nan")


def ripa(x: AnyFloats, y: AnyFloats, *, a: AnyFloats, b: AnyFloats) -> float | None:
    """RIPA: how far X lies beyond Y along the relation of the attribute pairs (a_i, b_i).

    The relation vector r is the first principal component, of length 1, of the differences a_i - b_i (not centred:
    with one pair it is their difference), turned so that the differences lie along it in sum. beta(w) = <w, r>, with w
    at its own length; the measure is mean over X of beta less mean over Y of beta.

    Parameters
    ----------
    x, y
        Target vectors, shape ``(n_x, d)`` and ``(n_y, d)``.
    a, b
        Attribute vectors in pairs, shape ``(n, d)`` each.

    Returns
    -------
    float or None
        None where |A| != |B|, since the attributes form no pairs, or where all pairs are equal.

    References
    ----------
    Ethayarajh, Duvenaud & Hirst (2019), Understanding Undesirable Word Embedding Associations, ACL; definition as in
    the first author's account of it, kawine.github.io, 2019-09-23.

    Examples
    --------
    >>> east, north = np.array([[2.0, 0.0]] * 2), np.array([[0.0, 2.0]] * 2)
    >>> round(ripa(east, north, a=east, b=north), 6)
    2.828427
    """
    if len(a) != len(b):
        return None
    differences = a.astype(np.float64) - b.astype(np.float64)
    if not differences.any():
        return None
    # The first right singular vector, from the small square of the differences: there are fewer pairs than dimensions.
    _, vectors = np.linalg.eigh(differences @ differences.T)
    relation = vectors[:, -1] @ differences
    relation /= np.linalg.norm(relation)
    if (differences @ relation).sum() < 0:
        relation = -relation
    beta_x, beta_y = (vectors.astype(np.float64) @ relation for vectors in (x, y))
    return float(beta_x.mean() - beta_y.mean())


def _single_target(with_a: Floats, with_b: Floats) -> float:
    means_a, means_b = with_a.mean(axis=0), with_b.mean(axis=0)
    deviation = float(np.concatenate([means_a, means_b]).std(ddof=1))
    return float(means_a.mean() - means_b.mean()) / deviation if deviation > _ROUNDING else float("nan")


def _summary(cosines: Floats) -> CosineSummary:
    return CosineSummary(float(cosines.mean()), float(cosines.std(ddof=1)))
