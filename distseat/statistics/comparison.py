"""Two variants on one test: whether their effect sizes differ, judged on the same words."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from distseat.errors import AssociationError
from distseat.statistics.association import FLOAT64_NOISE, Association, Noise
from distseat.statistics.bootstrap import (
    N_RESAMPLES,
    Interval,
    IntervalMethod,
    Resamples,
    bca,
    effect_sizes,
    percentile,
)
from distseat.statistics.permutation import Method, PermutationTest, permutation_test
from distseat.statistics.words import WordScores

__all__ = ["PairedDifference", "paired_difference"]

Floats = NDArray[np.float64]

_ROUNDING: Final = 1e-12  # of scores over their deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """How far the effect sizes of two variants lie apart.

    Attributes
    ----------
    difference
        d1 - d2, over words.
    test
        Two-sided permutation test of no difference.
    interval
        Of the difference.
    """

    difference: float
    test: PermutationTest
    interval: Interval


def paired_difference(
    first: WordScores,
    second: WordScores,
    *,
    seed: np.random.SeedSequence,
    method: Method = "auto",
    interval: IntervalMethod = "bca",
    level: float = 0.95,
    noise: Noise = FLOAT64_NOISE,
) -> PairedDifference:
    """Compare two variants on the words that both were measured on.

    With delta_w = s1_w / sd1 - s2_w / sd2, sd the joint deviation (ddof = 1) of each variant's word scores,

        d1 - d2 = mean over X of delta  -  mean over Y of delta,

    so that a permutation test of delta is one of the difference, word by word. For the interval, words are drawn
    jointly: one draw serves both variants, and each has its deviations anew.

    Parameters
    ----------
    noise
        What rounding of the vectors leaves in scores: FLOAT32_NOISE for vectors of an embedding store.

    Raises
    ------
    AssociationError
        The variants were not measured on the same words, or the scores of one are all equal.

    Examples
    --------
    >>> scores = {"scores_x": np.array([3.0, 2.0, 2.5]), "scores_y": np.array([0.0, 1.0, -1.0])}
    >>> words = {"words_x": ("a", "b", "c"), "words_y": ("d", "e", "f")}
    >>> one = WordScores(**words, association=Association(**scores))
    >>> paired_difference(one, one, seed=np.random.SeedSequence(0)).difference
    0.0
    """
    one, two = first.association, second.in_order_of(first).association
    if min(one.spread, two.spread) < noise.min_spread:
        raise AssociationError("all words of a variant have one association score; there is nothing to compare")
    deviations = [float(association.joint.std(ddof=1)) for association in (one, two)]
    delta = one.joint / deviations[0] - two.joint / deviations[1]
    test = permutation_test(
        delta,
        len(one.scores_x),
        seed=np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0)),
        method=method,
        alternative="two-sided",
        resolution=max(noise.resolution / min(deviations), _ROUNDING),
    )
    return PairedDifference(
        difference=one.effect_size - two.effect_size,
        test=test,
        interval=_interval(
            one, two, np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1)), interval, level
        ),
    )


def _interval(
    one: Association, two: Association, seed: np.random.SeedSequence, method: IntervalMethod, level: float
) -> Interval:
    sizes = (len(one.scores_x), len(one.scores_y))

    def differences(resamples: Resamples) -> Floats:
        found = effect_sizes(one, resamples) - effect_sizes(two, resamples)
        return np.where(np.abs(found) < _ROUNDING, 0.0, found)

    drawn = differences(Resamples.draw(sizes, seed=seed, n_resamples=N_RESAMPLES))
    if method == "percentile":
        return percentile(drawn, level=level)
    left_out = [differences(Resamples.jackknife(sizes, i)) for i in range(len(sizes))]
    return bca(drawn, one.effect_size - two.effect_size, left_out, level=level)
