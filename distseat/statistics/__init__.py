"""Pure statistics on arrays: association scores, permutation p-values, corrections."""

from distseat.statistics.association import Association, associate
from distseat.statistics.multiple import HolmDecision, holm
from distseat.statistics.permutation import PermutationTest, permutation_test, seed_sequence

__all__ = [
    "Association",
    "HolmDecision",
    "PermutationTest",
    "associate",
    "holm",
    "permutation_test",
    "seed_sequence",
]
