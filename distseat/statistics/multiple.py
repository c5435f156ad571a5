"""Corrections over all rows of a run."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["HolmDecision", "holm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HolmDecision:
    """Holm's decision on a family of p-values, in the order they came.

    Attributes
    ----------
    rejected
        Whether each null hypothesis is rejected at alpha, shape ``(m,)``.
    adjusted
        Adjusted p-values, shape ``(m,)``: a hypothesis is rejected at alpha exactly if its adjusted p is <= alpha.
    """

    rejected: NDArray[np.bool_]
    adjusted: NDArray[np.float64]


def holm(p_values: NDArray[np.float64], *, alpha: float) -> HolmDecision:
    """Holm-Bonferroni: hold the chance of any false rejection in the family at `alpha`, whatever the dependence.

    With p_(1) <= ... <= p_(m): adjusted p_(i) = min(1, max over j <= i of (m - j + 1) p_(j)).

    Parameters
    ----------
    p_values
        Shape ``(m,)``, each in (0, 1].
    alpha
        The level of the family.

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
    m = len(p_values)
    order = np.argsort(p_values, kind="stable")
    stepped = np.minimum(1.0, np.maximum.accumulate(p_values[order] * (m - np.arange(m))))
    adjusted = np.empty(m)
    adjusted[order] = stepped
    return HolmDecision(rejected=adjusted <= alpha, adjusted=adjusted)
