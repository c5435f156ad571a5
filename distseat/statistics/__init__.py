"""Pure statistics on arrays: association scores, permutation p-values, corrections, intervals."""

from distseat.statistics.association import (
    FLOAT32_NOISE,
    FLOAT64_NOISE,
    Association,
    Noise,
    UnitSets,
    associate,
    noise_of,
)
from distseat.statistics.association_test import WeatResult, weat
from distseat.statistics.bootstrap import (
    Attributes,
    Interval,
    IntervalMethod,
    Resample,
    Resamples,
    effect_size_interval,
)
from distseat.statistics.comparison import PairedDifference, paired_difference
from distseat.statistics.factual_association import WefatResult, wefat
from distseat.statistics.measures import MlEat, ml_eat, ripa, same
from distseat.statistics.multiple import Decision, Reach, benjamini_hochberg, holm, holm_over_families, reach
from distseat.statistics.permutation import (
    Alternative,
    Method,
    MethodUsed,
    PermutationTest,
    p_floor,
    permutation_test,
)
from distseat.statistics.postprocessing import Moments, Postprocessing
from distseat.statistics.robustness import Range, leave_one_out
from distseat.statistics.seeds import seed_sequence
from distseat.statistics.stepdown import StepDown, step_down_floor, westfall_young
from distseat.statistics.subsets import is_countable
from distseat.statistics.words import WordScores, group_means

__all__ = [
    "FLOAT32_NOISE",
    "FLOAT64_NOISE",
    "Alternative",
    "Association",
    "Attributes",
    "Decision",
    "Interval",
    "IntervalMethod",
    "Method",
    "MethodUsed",
    "MlEat",
    "Moments",
    "Noise",
    "PairedDifference",
    "PermutationTest",
    "Postprocessing",
    "Range",
    "Reach",
    "Resample",
    "Resamples",
    "StepDown",
    "UnitSets",
    "WeatResult",
    "WefatResult",
    "WordScores",
    "associate",
    "benjamini_hochberg",
    "effect_size_interval",
    "group_means",
    "holm",
    "holm_over_families",
    "is_countable",
    "leave_one_out",
    "ml_eat",
    "noise_of",
    "p_floor",
    "paired_difference",
    "permutation_test",
    "reach",
    "ripa",
    "same",
    "seed_sequence",
    "step_down_floor",
    "weat",
    "wefat",
    "westfall_young",
]
