"""How much of an effect size hangs on one word or one template."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distseat.statistics.association import Association

__all__ = ["Range", "leave_one_out"]

Floats = NDArray[np.float64]


class Range(NamedTuple):
    """The lowest and the highest effect size."""

    low: float
    high: float


def leave_one_out(association: Association, groups_x: Sequence[str], groups_y: Sequence[str]) -> Range | None:
    """The range of d when each group of targets, such as the sentences of one word or template, is left out in turn.

    A and B stay as they are. From the count, sum and sum of squares of each group, in one pass.

    Parameters
    ----------
    groups_x, groups_y
        The group of each target, as many as there are scores.

    Returns
    -------
    Range or None
        None where no group can be left out: each would empty X or Y, or leave equal scores.

    Examples
    --------
    >>> found = Association(scores_x=np.array([3.0, 2.0]), scores_y=np.array([1.0, 0.0]))
    >>> low, high = leave_one_out(found, ["a", "b"], ["c", "d"])
    >>> round(low, 3), round(high, 3)
    (1.5, 1.637)
    """
    joint = association.joint
    scale = float(joint.std()) or 1.0
    number = {group: i for i, group in enumerate(dict.fromkeys([*groups_x, *groups_y]))}
    sums_x, sums_y = (
        _moments((scores - joint.mean()) / scale, np.array([number[group] for group in groups]), len(number))
        for scores, groups in ((association.scores_x, groups_x), (association.scores_y, groups_y))
    )
    n_x, n_y = (sums[0].sum() - sums[0] for sums in (sums_x, sums_y))
    total_x, total_y = (sums[1].sum() - sums[1] for sums in (sums_x, sums_y))
    squares = sum(sums[2].sum() - sums[2] for sums in (sums_x, sums_y))
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (squares - (total_x + total_y) ** 2 / (n_x + n_y)) / (n_x + n_y - 1)
        effect_sizes = (total_x / n_x - total_y / n_y) / np.sqrt(variance)
    defined = effect_sizes[(n_x > 0) & (n_y > 0) & (variance > 1e-12)]  # noqa: PLR2004 - rounding
    return Range(float(defined.min()), float(defined.max())) if defined.size else None


def _moments(scores: Floats, groups: NDArray[np.int64], n_groups: int) -> tuple[Floats, Floats, Floats]:
    """Count, sum and sum of squares of each group."""
    return (
        np.bincount(groups, minlength=n_groups).astype(np.float64),
        np.bincount(groups, weights=scores, minlength=n_groups).astype(np.float64),
        np.bincount(groups, weights=scores**2, minlength=n_groups).astype(np.float64),
    )
