"""Corrections over all rows of a run, and what they can reject at all."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError

__all__ = ["Decision", "Reach", "benjamini_hochberg", "holm", "holm_over_families", "reach"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision on a family of p-values, in the order they came.

    Attributes
    ----------
    rejected
        Whether each null hypothesis is rejected at alpha, shape ``(m,)``.
    adjusted
        Adjusted p-values, shape ``(m,)``: a hypothesis is rejected at alpha exactly if its adjusted p is <= alpha.
    """

    rejected: NDArray[np.bool_]
    adjusted: Floats


def holm(p_values: Floats, *, alpha: float = 0.01) -> Decision:
    """Holm-Bonferroni: hold the chance of any false rejection in the family at `alpha`, whatever the dependence.

    With p_(1) <= ... <= p_(m): adjusted p_(i) = min(1, max over j <= i of (m - j + 1) p_(j)).

    Parameters
    ----------
    p_values
        Shape ``(m,)``, each in (0, 1].
    alpha
        The level of the family.

    Raises
    ------
    AssociationError
        A value is no p-value.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure; used by May et al. (2019), section 4.

    Examples
    --------
    >>> decision = holm(np.array([0.01, 0.04, 0.03, 0.005]), alpha=0.05)
    >>> decision.adjusted
    array([0.03, 0.06, 0.06, 0.02])
    >>> decision.rejected
    array([ True, False, False,  True])
    """
    p_values = _checked(p_values)
    m = len(p_values)
    order = np.argsort(p_values, kind="stable")
    stepped = np.minimum(1.0, np.maximum.accumulate(p_values[order] * (m - np.arange(m))))
    return _decision(stepped, order, alpha)


def benjamini_hochberg(p_values: Floats, *, alpha: float = 0.01) -> Decision:
    """Benjamini-Hochberg: hold the expected share of false ones among the rejections at `alpha`.

    With p_(1) <= ... <= p_(m): adjusted p_(i) = min(1, min over j >= i of m / j p_(j)). Valid for independent tests
    and under positive dependence.

    Parameters
    ----------
    p_values
        Shape ``(m,)``, each in (0, 1].
    alpha
        The false discovery rate.

    Raises
    ------
    AssociationError
        A value is no p-value.

    References
    ----------
    Benjamini & Hochberg (1995), J. R. Stat. Soc. B 57.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03, 0.005]), alpha=0.05).adjusted
    array([0.02, 0.04, 0.04, 0.02])
    """
    p_values = _checked(p_values)
    m = len(p_values)
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * m / np.arange(1, m + 1)
    stepped = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return _decision(stepped, order, alpha)


def holm_over_families(adjusted: Floats, families: NDArray[np.intp], *, alpha: float = 0.01) -> Decision:
    """Holm's procedure over families whose members have been corrected within each family already.

    Families stand in the order of their smallest adjusted p (of equal ones, the lower number first). A member is
    rejected if its adjusted p is at most its family's Holm threshold, alpha / (m - i + 1) for the i-th of m families,
    and every family before it was rejected: by its smallest adjusted p at its own threshold. As an adjusted p-value:

        max( max over families j <= i of (m - j + 1) smallest_(j),  (m - i + 1) own )

    The chance that any family of true nulls alone has a member rejected is at most `alpha`, whatever the dependence; in
    a family of which some nulls are false, the chance of a false rejection is at most its threshold. No level holds for
    all members of all partly false families together: a family passes its alpha on as soon as one member is rejected.

    Parameters
    ----------
    adjusted
        Adjusted p-values within their families, shape ``(n,)``.
    families
        Number of each member's family, 0 to m - 1, shape ``(n,)``.

    Examples
    --------
    >>> holm_over_families(np.array([0.001, 0.02, 0.01]), np.array([0, 0, 1]), alpha=0.05).adjusted
    array([0.002, 0.04 , 0.01 ])
    """
    adjusted = _checked(adjusted)
    if not len(adjusted):
        return Decision(rejected=np.zeros(0, dtype=np.bool_), adjusted=adjusted)
    m = int(families.max()) + 1
    smallest = np.full(m, np.inf)
    np.minimum.at(smallest, families, adjusted)
    order = np.argsort(smallest, kind="stable")
    factor = np.empty(m)
    factor[order] = m - np.arange(m)
    stepped = np.empty(m)
    stepped[order] = np.maximum.accumulate(smallest[order] * factor[order])
    overall = np.minimum(1.0, np.maximum(stepped[families], factor[families] * adjusted))
    return Decision(rejected=overall <= alpha, adjusted=overall)


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether a hypothesis with a smallest possible p can be rejected by Holm among `m`.

    Attributes
    ----------
    possible
        Whether it can be at all.
    n_before
        How many others must be rejected first, for its floor to be low enough.
    """

    possible: bool
    n_before: int


def reach(p_floor: float, *, m: int, alpha: float = 0.01) -> Reach:
    """Ask whether Holm can reject a hypothesis whose p cannot be below `p_floor`, among `m`.

    After i rejections the threshold is alpha / (m - i): the floor must be at most that.

    Examples
    --------
    >>> reach(1 / 70, m=104)  # 4 v 4
    Reach(possible=False, n_before=104)
    >>> reach(1 / 12870, m=644)  # 8 v 8: the last 128 only
    Reach(possible=True, n_before=516)
    """
    if p_floor > alpha:
        return Reach(possible=False, n_before=m)
    n_before = max(0, ceil(m - alpha / p_floor))
    if n_before and (m - n_before + 1) * p_floor <= alpha:  # the division was rounded, where Holm multiplies
        n_before -= 1
    return Reach(possible=n_before < m, n_before=n_before)


def _checked(p_values: Floats) -> Floats:
    found = np.asarray(p_values, dtype=np.float64)
    if found.ndim != 1:
        raise AssociationError(f"p-values of shape {found.shape}, but one axis was expected; flatten them")
    wrong = np.flatnonzero(~((found > 0) & (found <= 1)))
    if wrong.size:
        raise AssociationError(
            f"p-value {wrong[0]} of {len(found)} is {found[wrong[0]]}, but (0, 1] was expected; leave void rows out"
        )
    return found


def _decision(stepped: Floats, order: NDArray[np.intp], alpha: float) -> Decision:
    adjusted = np.empty(len(stepped))
    adjusted[order] = stepped
    return Decision(rejected=adjusted <= alpha, adjusted=adjusted)
