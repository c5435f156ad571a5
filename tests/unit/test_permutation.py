"""Permutation p-values: exact against enumeration in whole numbers, sampled against exact ones, and their laws."""

from fractions import Fraction
from itertools import combinations
from math import comb, erfc, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from distseat.statistics import PermutationTest, permutation_test, seed_sequence
from distseat.statistics.permutation import MAX_EXACT_PARTITIONS, N_DRAWS

SEED = seed_sequence(0, "test")
FEW = settings(max_examples=60, deadline=None)

INTEGERS = st.lists(st.integers(-6, 6), min_size=2, max_size=9)
FLOATS = st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=2, max_size=9)


def outcome_of(scores, n_x: int, *, seed: np.random.SeedSequence = SEED, resolution: float = 0.0) -> PermutationTest:
    column = np.asarray(scores, dtype=np.float64)
    return permutation_test(column.reshape(len(column), -1), n_x, seed=seed, resolution=resolution)


def p_of(scores, n_x: int, *, seed: np.random.SeedSequence = SEED, resolution: float = 0.0) -> float:
    return float(outcome_of(scores, n_x, seed=seed, resolution=resolution).p_values[0])


def enumerated(scores, n_x: int) -> Fraction:
    """The definition: the share of partitions whose difference of means is at least the observed one, no rounding."""
    exact = [Fraction(s) for s in scores]
    n_y = len(exact) - n_x

    def difference(chosen: tuple[int, ...]) -> Fraction:
        inside = sum(exact[i] for i in chosen)
        return Fraction(inside, n_x) - Fraction(sum(exact) - inside, n_y)

    observed = difference(tuple(range(n_x)))
    partitions = list(combinations(range(len(exact)), n_x))
    return Fraction(sum(difference(chosen) >= observed for chosen in partitions), len(partitions))


def counted(scores: list[int], n_x: int) -> float:
    """Exact p of whole scores of any number of targets: how many subsets of each size have each sum."""
    ways: list[dict[int, int]] = [{0: 1}] + [{} for _ in range(n_x)]
    for score in scores:
        for size in range(n_x, 0, -1):
            for total, n in ways[size - 1].items():
                ways[size][total + score] = ways[size].get(total + score, 0) + n
    observed = sum(scores[:n_x])
    return sum(n for total, n in ways[n_x].items() if total >= observed) / comb(len(scores), n_x)


def standard_error(p: float) -> float:
    return sqrt(p * (1 - p) / N_DRAWS)


@st.composite
def splits(draw, scores):
    drawn = draw(scores)
    return drawn, draw(st.integers(1, len(drawn) - 1))


# ---- exact


@FEW
@given(seed=st.integers(0, 2**32 - 1), n_x=st.integers(1, 5), n_y=st.integers(1, 5))
def test_exact_p_of_random_scores_equals_enumeration(seed, n_x, n_y):
    scores = np.random.default_rng(seed).normal(size=n_x + n_y)
    assert p_of(scores, n_x) == pytest.approx(float(enumerated(scores, n_x)), abs=1e-12)


@FEW
@given(split=splits(INTEGERS))
@example(split=([-4, -4, 0, 1, 3, -1, -5, -3], 6))
@example(split=([-3, -4, -4, 1, -4, -1, -5, -1, 0], 5))
def test_exact_p_of_whole_scores_equals_enumeration(split):
    """Different sets of whole numbers often have equal sums: each of them is a tie, and counts."""
    scores, n_x = split
    assert p_of(scores, n_x) == pytest.approx(float(enumerated(scores, n_x)), abs=1e-12)


@FEW
@given(split=splits(st.lists(st.sampled_from([-0.75, 0.0, 0.125, 0.5]), min_size=2, max_size=9)))
def test_exact_p_of_tied_scores_equals_enumeration(split):
    scores, n_x = split
    assert p_of(scores, n_x) == pytest.approx(float(enumerated(scores, n_x)), abs=1e-12)


def test_four_scores_by_hand():
    # 6 partitions of {4, 3, 2, 1} in pairs: 7 once, 6 once, 5 twice, 4 once, 3 once
    assert p_of([4, 3, 2, 1], 2) == pytest.approx(1 / 6)
    assert p_of([4, 2, 3, 1], 2) == pytest.approx(2 / 6)
    assert p_of([4, 1, 3, 2], 2) == p_of([3, 2, 4, 1], 2) == pytest.approx(4 / 6)
    assert p_of([2, 1, 4, 3], 2) == 1.0


def test_sums_that_tie_on_paper_tie_in_floats():
    """In floats 0.1 + 0.2 is more than 0.3 + 0.0, and 0.1 + 0.5 less than 0.2 + 0.4."""
    tenths = [3, 0, 1, 2, 5, 4]
    assert p_of([t / 10 for t in tenths], 2) == pytest.approx(float(enumerated(tenths, 2)))


@FEW
@given(split=splits(FLOATS))
def test_exact_p_lies_between_its_floor_and_one(split):
    scores, n_x = split
    result = outcome_of(scores, n_x)
    assert result.method == "exact"
    assert result.p_floor == 1 / comb(len(scores), n_x)
    assert result.p_floor <= result.p_values[0] <= 1


@FEW
@given(n_x=st.integers(1, 6), n_y=st.integers(1, 6), score=st.floats(-2, 2))
def test_equal_scores_give_p_of_one(n_x, n_y, score):
    assert p_of([score] * (n_x + n_y), n_x) == 1.0


@FEW
@given(n_x=st.integers(1, 6), n_y=st.integers(1, 6))
def test_complete_separation_gives_the_floor(n_x, n_y):
    result = outcome_of([*np.linspace(0.5, 0.6, n_x), *np.linspace(-0.3, 0.4, n_y)], n_x)
    assert result.p_values[0] == result.p_floor


@FEW
@given(split=splits(INTEGERS))
def test_p_and_the_p_of_the_swapped_targets_share_the_ties_alone(split):
    scores, n_x = split
    observed = sum(scores[:n_x])
    ties = sum(sum(chosen) == observed for chosen in combinations(scores, n_x)) / comb(len(scores), n_x)
    swapped = [*scores[n_x:], *scores[:n_x]]
    assert p_of(scores, n_x) + p_of(swapped, len(scores) - n_x) == pytest.approx(1 + ties, abs=1e-12)


@FEW
@given(seed=st.integers(0, 2**32 - 1), n_x=st.integers(1, 4), factor=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
def test_shifting_and_stretching_random_scores_changes_nothing(seed, n_x, factor, shift):
    scores = np.random.default_rng(seed).normal(size=9)
    assert p_of(factor * (scores + shift), n_x) == p_of(scores, n_x)


@FEW
@given(split=splits(INTEGERS), factor=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
def test_shifting_and_stretching_whole_scores_changes_nothing(split, factor, shift):
    """Whole numbers tie; rounding on the way to other units must not break a tie."""
    scores, n_x = split
    moved = factor * (np.array(scores, dtype=np.float64) + shift)
    assert p_of(moved, n_x) == pytest.approx(float(enumerated(scores, n_x)), abs=1e-12)


@FEW
@given(split=splits(INTEGERS), seed=st.integers(0, 2**32 - 1))
def test_noise_below_the_resolution_breaks_no_tie(split, seed):
    scores, n_x = split
    noise = np.random.default_rng(seed).uniform(-1e-9, 1e-9, size=len(scores))
    noisy = np.array(scores) / 97 + noise
    assert p_of(noisy, n_x, resolution=1e-7) == pytest.approx(float(enumerated(scores, n_x)), abs=1e-12)


@FEW
@given(split=splits(INTEGERS), seed=st.integers(0, 2**32 - 1))
def test_differences_above_the_resolution_are_kept(split, seed):
    scores, n_x = split
    distinct = [Fraction(s) + Fraction(3**i, 10**6) for i, s in enumerate(scores)]  # no two sums of n_x are equal
    order = np.random.default_rng(seed).permutation(len(scores))
    shuffled = [distinct[i] for i in order]
    expected = float(enumerated(shuffled, n_x))
    assert p_of([float(s) for s in shuffled], n_x, resolution=1e-8) == pytest.approx(expected, abs=1e-12)


def test_scores_alike_within_the_resolution_give_p_of_one():
    scores = 0.25 + np.random.default_rng(0).uniform(-1e-9, 1e-9, size=12)
    assert p_of(scores, 6, resolution=1e-7) == 1.0
    assert p_of(scores, 6, resolution=0.0) < 1.0


# ---- exact or sampled


@pytest.mark.parametrize(
    ("n", "n_x", "n_partitions", "method"),
    [(19, 8, 75_582, "exact"), (19, 9, 92_378, "exact"), (20, 8, 125_970, "sampled"), (20, 10, 184_756, "sampled")],
)
def test_all_partitions_are_tried_up_to_a_hundred_thousand(n, n_x, n_partitions, method):
    assert comb(n, n_x) == n_partitions
    assert (n_partitions <= 100_000 == MAX_EXACT_PARTITIONS) == (method == "exact")
    result = outcome_of(np.random.default_rng(n).normal(size=n), n_x)
    assert result.method == method
    assert result.p_floor == (1 / n_partitions if method == "exact" else 1e-5)


def test_the_largest_exact_test_counts_every_partition():
    scores = np.random.default_rng(5).integers(-20, 21, size=19).tolist()
    assert p_of(scores, 8) == pytest.approx(counted(scores, 8), abs=1e-12)


def test_two_targets_against_many_are_exact():
    scores = np.random.default_rng(5).integers(-20, 21, size=447).tolist()
    result = outcome_of(scores, 2)
    assert result.method == "exact"
    assert result.p_values[0] == pytest.approx(counted(scores, 2), abs=1e-12)


# ---- sampled


@pytest.mark.parametrize("effect", [0.0, 0.3, 0.8, 1.2])
def test_sampled_p_is_within_four_standard_errors_of_the_enumerated_one(effect):
    scores = np.random.default_rng(11).normal(size=20) + effect * (np.arange(20) < 10)
    sets = np.arange(2**20, dtype=np.uint32)
    sets = sets[np.bitwise_count(sets) == 10]
    assert len(sets) == 184_756
    sums = ((sets[:, None] >> np.arange(20, dtype=np.uint32)) & 1) @ scores
    exact = float((sums >= scores[:10].sum() - 1e-12).mean())
    assert abs(p_of(scores, 10) - exact) < 4 * standard_error(exact) + 1e-5


@pytest.mark.parametrize(("n", "n_x"), [(24, 12), (40, 13), (60, 45)])
def test_sampled_p_of_whole_scores_counts_ties(n, n_x):
    scores = np.random.default_rng(n).integers(0, 4, size=n).tolist()
    exact = counted(scores, n_x)
    assert 0.01 < exact < 0.99
    assert abs(p_of(scores, n_x) - exact) < 4 * standard_error(exact) + 1e-5


def test_sampled_p_is_never_below_the_share_of_the_observed_partition():
    result = outcome_of([*range(100, 130), *range(30)], 30)
    assert result.method == "sampled"
    assert result.p_values[0] == result.p_floor == 1e-5


def test_sampled_p_of_the_opposite_effect_is_one():
    assert p_of([*range(30), *range(100, 130)], 30) == 1.0


def test_sampled_p_of_equal_scores_is_one():
    assert p_of([0.1] * 60, 30) == 1.0


def test_a_test_of_many_hundred_targets_agrees_with_the_normal_approximation():
    n, n_x = 700, 300
    scores = np.random.default_rng(2).normal(size=n) + 0.1 * (np.arange(n) < n_x)
    mean, variance = n_x * scores.mean(), n_x * (n - n_x) / n * scores.var(ddof=1)
    normal = erfc((scores[:n_x].sum() - mean) / sqrt(2 * variance)) / 2
    assert 0.001 < normal < 0.5
    assert p_of(scores, n_x) == pytest.approx(normal, abs=0.005)


def test_one_seed_gives_one_p():
    scores = np.random.default_rng(0).normal(size=30)
    seed = seed_sequence(3, "weat1", "sent", "stimulus")
    again = seed_sequence(3, "weat1", "sent", "stimulus")
    p = p_of(scores, 15, seed=seed)
    assert p == p_of(scores, 15, seed=seed) == p_of(scores, 15, seed=again)


def test_another_seed_draws_other_partitions():
    scores = np.random.default_rng(0).normal(size=30)
    assert len({p_of(scores, 15, seed=seed_sequence(i)) for i in range(4)}) > 1


def test_an_exact_p_needs_no_seed():
    scores = np.random.default_rng(0).normal(size=12)
    assert len({p_of(scores, 6, seed=seed_sequence(i)) for i in range(4)}) == 1


# ---- several variants at once


@pytest.mark.parametrize(("n", "n_x"), [(11, 5), (26, 13)], ids=["exact", "sampled"])
def test_a_column_does_not_depend_on_its_neighbours(n, n_x):
    rng = np.random.default_rng(n)
    scales = np.array([1.0, 1e-6, 1e6, 1.0, 1e-3, 0.0, 3.0])
    scores_nv = rng.normal(size=(n, len(scales))) * scales + rng.normal(size=len(scales))
    together = permutation_test(scores_nv, n_x, seed=SEED, resolution=1e-9).p_values
    alone = [p_of(column, n_x, resolution=1e-9) for column in scores_nv.T]
    assert together.tolist() == alone
    order = rng.permutation(len(scales))
    shuffled = permutation_test(scores_nv[:, order], n_x, seed=SEED, resolution=1e-9).p_values
    np.testing.assert_array_equal(shuffled, together[order])


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_layout_in_memory_changes_nothing(order):
    scores_nv = np.random.default_rng(1).normal(size=(24, 9))
    expected = permutation_test(scores_nv, 12, seed=SEED).p_values
    laid_out = np.asarray(np.repeat(scores_nv, 2, axis=1), order=order)[:, ::2]
    np.testing.assert_array_equal(permutation_test(laid_out, 12, seed=SEED).p_values, expected)


def test_the_scores_given_are_not_changed():
    scores_nv = np.random.default_rng(1).normal(size=(10, 3))
    kept = scores_nv.copy()
    permutation_test(scores_nv, 5, seed=SEED)
    np.testing.assert_array_equal(scores_nv, kept)


# ---- seeds


@given(keys=st.lists(st.tuples(st.integers(0, 99), st.text(max_size=5), st.text(max_size=5)), min_size=2, unique=True))
def test_different_keys_give_different_streams(keys):
    plain = [key for key in keys if "\x1f" not in key[1] + key[2]]  # the separator is in no id of a test
    states = {tuple(seed_sequence(*key).generate_state(4).tolist()) for key in plain}
    assert len(states) == len(plain)


def test_a_key_is_more_than_its_letters():
    assert seed_sequence("ab", "c").entropy != seed_sequence("a", "bc").entropy
    assert seed_sequence(1, 2).entropy != seed_sequence(12).entropy
    assert seed_sequence("x").entropy != seed_sequence("x", "").entropy


def test_the_stream_of_a_key_is_the_same_on_every_machine():
    assert seed_sequence(0, "weat1", "sent", "stimulus").generate_state(2).tolist() == [3155997969, 313689256]
