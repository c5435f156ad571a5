"""Permutation p-values: exact against enumeration in whole numbers, drawn ones against exact ones, and their laws."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from math import comb, erfc, inf, lcm, log, log10, nan, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from distseat.errors import AssociationError
from distseat.statistics import PermutationTest, permutation_test, seed_sequence
from distseat.statistics.grid import Split, to_grid
from distseat.statistics.permutation import ALTERNATIVES, METHODS, N_DRAWS, drawn_partitions, p_floor

SEED = seed_sequence(0, "test")
FEW = settings(max_examples=60, deadline=None, derandomize=True)

INTEGERS = st.lists(st.integers(-6, 6), min_size=2, max_size=9)
TIED = st.lists(st.sampled_from([-0.75, 0.0, 0.125, 0.5]), min_size=2, max_size=9)
FLOATS = st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=2, max_size=9)
SEEDS = st.integers(0, 2**32 - 1)


def result_of(scores, n_x: int, *, seed: np.random.SeedSequence = SEED, **options) -> PermutationTest:
    return permutation_test(np.asarray(scores, dtype=np.float64), n_x, seed=seed, **options)


def p_of(scores, n_x: int, **options) -> float:
    return result_of(scores, n_x, **options).p_value


def as_integers(scores: Iterable) -> list[int]:
    """The scores times their common denominator: nothing is rounded."""
    exact = [Fraction(s) for s in scores]
    denominator = lcm(*(s.denominator for s in exact))
    return [int(s * denominator) for s in exact]


def enumerated(scores, n_x: int, alternative: str = "greater") -> Fraction:
    """The definition: the share of partitions whose difference of means is at least the observed one, no rounding."""
    whole = as_integers(scores)
    total, n_y = sum(whole), len(whole) - n_x
    observed = n_y * sum(whole[:n_x]) - n_x * sum(whole[n_x:])
    greater = less = 0
    for chosen in combinations(whole, n_x):
        inside = sum(chosen)
        difference = n_y * inside - n_x * (total - inside)
        greater += difference >= observed
        less += difference <= observed
    of_side = {"greater": greater, "less": less, "two-sided": 2 * min(greater, less)}
    return min(Fraction(of_side[alternative], comb(len(whole), n_x)), Fraction(1))


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
@given(seed=SEEDS, n_x=st.integers(1, 6), n_y=st.integers(1, 6), alternative=st.sampled_from(ALTERNATIVES))
def test_exact_p_of_random_scores_equals_enumeration(seed, n_x, n_y, alternative):
    scores = np.random.default_rng(seed).normal(size=n_x + n_y)
    expected = float(enumerated(scores, n_x, alternative))
    assert p_of(scores, n_x, alternative=alternative) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n_x", "n_y"), [(10, 10), (6, 11), (11, 6), (1, 12), (12, 1)])
def test_exact_p_of_larger_tests_equals_enumeration(n_x, n_y, alternative):
    rng = np.random.default_rng(n_x)
    scores = [rng.normal(size=n_x + n_y), rng.integers(-9, 10, size=n_x + n_y).tolist()][n_x % 2]
    result = result_of(scores, n_x, alternative=alternative)
    assert result.method_used == "exact"
    assert result.p_value == pytest.approx(float(enumerated(scores, n_x, alternative)), rel=1e-15)


@FEW
@given(split=splits(INTEGERS), alternative=st.sampled_from(ALTERNATIVES))
@example(split=([-4, -4, 0, 1, 3, -1, -5, -3], 6), alternative="greater")
@example(split=([-3, -4, -4, 1, -4, -1, -5, -1, 0], 5), alternative="less")
def test_exact_p_of_whole_scores_counts_every_tie(split, alternative):
    scores, n_x = split
    expected = float(enumerated(scores, n_x, alternative))
    assert p_of(scores, n_x, alternative=alternative) == pytest.approx(expected, rel=1e-15)


@FEW
@given(split=splits(TIED), alternative=st.sampled_from(ALTERNATIVES))
def test_exact_p_of_tied_scores_equals_enumeration(split, alternative):
    scores, n_x = split
    expected = float(enumerated(scores, n_x, alternative))
    assert p_of(scores, n_x, alternative=alternative) == pytest.approx(expected, rel=1e-15)


def test_four_scores_by_hand():
    # 6 partitions of {4, 3, 2, 1} in pairs: 7 once, 6 once, 5 twice, 4 once, 3 once
    assert p_of([4, 3, 2, 1], 2) == 1 / 6
    assert p_of([4, 2, 3, 1], 2) == 2 / 6
    assert p_of([4, 1, 3, 2], 2) == p_of([3, 2, 4, 1], 2) == 4 / 6
    assert p_of([2, 1, 4, 3], 2) == 1.0
    assert p_of([2, 1, 4, 3], 2, alternative="less") == 1 / 6
    assert p_of([2, 1, 4, 3], 2, alternative="two-sided") == 2 / 6


def test_sums_that_tie_on_paper_tie_in_floats():
    """In floats 0.1 + 0.2 is more than 0.3 + 0.0, and 0.1 + 0.5 less than 0.2 + 0.4."""
    tenths = [3, 0, 1, 2, 5, 4]
    for order in ([0, 1, 2, 3, 4, 5], [2, 3, 0, 1, 4, 5], [2, 4, 3, 5, 0, 1], [3, 5, 2, 4, 1, 0]):
        whole = [tenths[i] for i in order]
        assert p_of([t / 10 for t in whole], 2) == float(enumerated(whole, 2))


@pytest.mark.parametrize(("tie", "expected"), [(0.1 + 0.2, 2 / 3), (0.3, 2 / 3), (0.31, 1 / 3)])
def test_a_single_score_that_differs_by_rounding_is_a_tie(tie, expected):
    assert p_of([tie, 0.3, 0.1], 1) == expected


@FEW
@given(split=splits(st.lists(st.integers(-30, 30), min_size=2, max_size=9)), seed=SEEDS)
def test_sums_in_any_order_give_one_p(split, seed):
    scores, n_x = split
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(n_x), n_x + rng.permutation(len(scores) - n_x)])
    tenths = np.array(scores) / 10
    assert p_of(tenths[order], n_x) == p_of(tenths, n_x) == pytest.approx(float(enumerated(scores, n_x)), rel=1e-15)


@FEW
@given(n_x=st.integers(1, 6), n_y=st.integers(1, 6))
def test_complete_separation_gives_the_floor(n_x, n_y):
    result = result_of([*np.linspace(0.5, 0.6, n_x), *np.linspace(-0.3, 0.4, n_y)], n_x)
    assert result.p_value == result.p_floor == 1 / comb(n_x + n_y, n_x)
    assert result.p_less == 1.0


@FEW
@given(split=splits(INTEGERS))
def test_both_sides_share_the_ties_alone(split):
    scores, n_x = split
    observed = sum(scores[:n_x])
    ties = sum(sum(chosen) == observed for chosen in combinations(scores, n_x)) / comb(len(scores), n_x)
    result = result_of(scores, n_x)
    assert result.p_greater + result.p_less == pytest.approx(1 + ties, abs=1e-12)


@FEW
@given(split=splits(st.one_of(INTEGERS, FLOATS)), resolution=st.sampled_from([0.0, 1e-7]))
def test_swapping_x_and_y_exchanges_the_sides(split, resolution):
    scores, n_x = split
    straight = result_of(scores, n_x, resolution=resolution)
    swapped = result_of([*scores[n_x:], *scores[:n_x]], len(scores) - n_x, resolution=resolution)
    assert (swapped.p_greater, swapped.p_less) == (straight.p_less, straight.p_greater)
    assert swapped.p_floor == straight.p_floor


@pytest.mark.parametrize("method", ["importance", "sampled", "normal"])
@pytest.mark.parametrize("n_x", [12, 19])
def test_swapping_x_and_y_exchanges_the_sides_of_other_methods(method, n_x):
    scores = np.random.default_rng(n_x).normal(size=31) + 0.5 * (np.arange(31) < n_x)
    straight = result_of(scores, n_x, method=method)
    swapped = result_of(np.roll(scores, -n_x), 31 - n_x, method=method)
    tolerance = {"importance": 0.12, "sampled": 0.1, "normal": 1e-9}[method]
    assert swapped.p_less == pytest.approx(straight.p_greater, rel=tolerance)
    assert swapped.p_greater == pytest.approx(straight.p_less, rel=tolerance)
    assert straight.p_greater < 0.3 < straight.p_less


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 8), factor=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
def test_shifting_and_stretching_random_scores_changes_nothing(seed, n_x, factor, shift):
    scores = np.random.default_rng(seed).normal(size=9)
    assert p_of(factor * (scores + shift), n_x) == p_of(scores, n_x)


@FEW
@given(split=splits(INTEGERS), factor=st.floats(1e-3, 1e3), shift=st.floats(-10, 10))
def test_rounding_on_the_way_to_other_units_breaks_no_tie(split, factor, shift):
    scores, n_x = split
    moved = factor * (np.array(scores, dtype=np.float64) + shift)
    if len(set(scores)) > 1:  # of equal scores nothing but rounding is left
        assert p_of(moved, n_x) == pytest.approx(float(enumerated(scores, n_x)), rel=1e-15)


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 8))
def test_the_opposite_scores_exchange_the_sides(seed, n_x):
    scores = np.random.default_rng(seed).normal(size=9)
    straight, opposite = result_of(scores, n_x), result_of(-scores, n_x)
    assert (opposite.p_greater, opposite.p_less) == (straight.p_less, straight.p_greater)


@pytest.mark.parametrize("method", ["auto", "exact", "importance", "sampled"])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n_x", "n_y"), [(1, 1), (3, 5), (5, 3), (11, 12)])
def test_equal_scores_give_p_of_one(method, alternative, n_x, n_y):
    result = result_of([0.1] * (n_x + n_y), n_x, method=method, alternative=alternative)
    assert (result.p_value, result.log10_p, result.p_greater, result.p_less) == pytest.approx((1, 0, 1, 1), abs=1e-9)


@pytest.mark.parametrize("n_x", [30, 100])
def test_equal_scores_of_large_tests_give_p_of_one(n_x):
    result = result_of([0.1] * 200, n_x)
    assert (result.p_greater, result.p_less) == pytest.approx((1, 1), abs=1e-9)
    assert max(result.p_greater, result.p_less) <= 1


# ---- resolution


@FEW
@given(split=splits(INTEGERS), seed=SEEDS)
def test_noise_below_the_resolution_breaks_no_tie(split, seed):
    scores, n_x = split
    noise = np.random.default_rng(seed).uniform(-1e-9, 1e-9, size=len(scores))
    noisy = np.array(scores) / 97 + noise
    assert p_of(noisy, n_x, resolution=1e-7) == pytest.approx(float(enumerated(scores, n_x)), rel=1e-15)


@FEW
@given(split=splits(INTEGERS), seed=SEEDS)
def test_differences_above_the_resolution_are_kept(split, seed):
    scores, n_x = split
    distinct = [Fraction(s) + Fraction(3**i, 10**6) for i, s in enumerate(scores)]  # no two sums of n_x are equal
    order = np.random.default_rng(seed).permutation(len(scores))
    shuffled = [distinct[i] for i in order]
    expected = float(enumerated(shuffled, n_x))
    assert p_of([float(s) for s in shuffled], n_x, resolution=1e-8) == pytest.approx(expected, rel=1e-15)


def test_scores_alike_within_the_resolution_give_p_of_one():
    scores = 0.25 + np.random.default_rng(0).uniform(-1e-9, 1e-9, size=12)
    assert p_of(scores, 6, resolution=1e-7) == 1.0
    assert p_of(scores, 6, resolution=0.0) < 1.0


@FEW
@given(split=splits(INTEGERS))
def test_sums_as_many_steps_apart_as_items_are_chosen_tie_and_no_further(split):
    ticks = to_grid(np.array(split[0], dtype=np.float64), resolution=1.0)
    found = Split.of(ticks, split[1])
    sums = np.array([sum(chosen) for chosen in combinations(found.items.tolist(), found.n_chosen)])
    greater = (sums >= found.observed - found.n_chosen).mean()
    less = (sums <= found.observed + found.n_chosen).mean()
    result = result_of(*split, resolution=1.0)
    assert (result.p_greater, result.p_less) == pytest.approx((greater, less), rel=1e-14)


@pytest.mark.parametrize("n", [2, 33, 4095, 4096, 100_000])
def test_no_sum_on_the_grid_is_beyond_what_float64_holds(n):
    scores = np.random.default_rng(n).standard_cauchy(size=n)
    ticks = to_grid(scores)
    assert np.abs(ticks).max() >= 2**34
    assert sum(abs(int(t)) for t in ticks) <= 2**52


def test_the_grid_is_no_finer_than_the_resolution():
    scores = np.array([-0.5, 0.25, 1.75, 2.5])
    assert to_grid(scores, resolution=0.25).tolist() == [-6, -3, 3, 6]
    assert to_grid(np.zeros(3)).tolist() == [0, 0, 0]


@FEW
@given(split=splits(st.lists(st.integers(-(2**20), 2**20), min_size=2, max_size=9)))
def test_a_split_counts_from_the_smaller_set(split):
    ticks, n_x = np.array(split[0]), split[1]
    found = Split.of(ticks, n_x)
    n_y = len(ticks) - n_x
    assert found.n_chosen == min(n_x, n_y)
    assert found.observed == (ticks[:n_x].sum() if n_x <= n_y else -ticks[n_x:].sum())
    assert found.turned.observed == -found.observed
    assert found.threshold == found.observed - found.n_chosen
    assert sorted(np.abs(found.items)) == sorted(np.abs(ticks))


# ---- what the result says


@FEW
@given(split=splits(FLOATS), method=st.sampled_from(["auto", "exact", "importance", "sampled"]), data=st.data())
def test_p_lies_between_its_floor_and_one(split, method, data):
    scores, n_x = split
    result = result_of(scores, n_x, method=method, alternative=data.draw(st.sampled_from(ALTERNATIVES)))
    assert result.p_floor <= result.p_value <= 1
    assert 0 < result.p_greater <= 1
    assert 0 < result.p_less <= 1


@pytest.mark.parametrize("n", [3, 8, 9])
def test_p_of_the_normal_approximation_is_not_below_the_floor(n):
    result = result_of([*(1 + 0.001 * np.arange(n)), *np.zeros(n)], n, method="normal")
    assert result.p_floor <= result.p_value


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 9), method=st.sampled_from(METHODS), alternative=st.sampled_from(ALTERNATIVES))
def test_the_fields_agree(seed, n_x, method, alternative):
    scores = np.random.default_rng(seed).normal(size=10)
    result = result_of(scores, n_x, method=method, alternative=alternative)
    smaller = min(result.p_greater, result.p_less)
    of_side = {"greater": result.p_greater, "less": result.p_less, "two-sided": min(1.0, 2 * smaller)}
    assert result.p_value == of_side[alternative]
    assert 10**result.log10_p == pytest.approx(result.p_value, rel=1e-12)
    assert result.log_n_partitions == pytest.approx(log(comb(10, n_x)), abs=1e-12)
    factor = 2 if alternative == "two-sided" else 1
    assert result.p_floor == pytest.approx(min(1.0, factor / comb(10, n_x)), rel=1e-15)
    assert result.p_standard_error >= 0
    assert (result.p_standard_error > 0) == (result.method_used == "importance")


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n_x", "n_y"), [(1, 1), (4, 4), (3, 9), (10, 10)])
def test_the_floor_is_known_before_the_test(method, alternative, n_x, n_y):
    scores = np.random.default_rng(0).normal(size=n_x + n_y)
    floor = p_floor(n_x, n_y, method=method, alternative=alternative)
    assert result_of(scores, n_x, method=method, alternative=alternative).p_floor == floor
    assert p_floor(n_y, n_x, method=method, alternative=alternative) == floor


def test_floors_of_known_sizes():
    assert p_floor(4, 4) == 1 / 70
    assert p_floor(8, 8, alternative="two-sided") == 2 / 12_870
    assert p_floor(8, 8, method="sampled") == 1 / 12_870
    assert p_floor(10, 10, method="sampled") == 1e-5
    assert p_floor(1, 1, alternative="two-sided") == 1
    assert p_floor(1000, 1000) == 2.0**-1022


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("method", METHODS)
def test_equal_seeds_give_equal_bits(method, alternative):
    scores = np.random.default_rng(0).normal(size=40)
    seed = seed_sequence(3, "weat1", "sent")
    first = result_of(scores, 20, seed=seed, method=method, alternative=alternative)
    seed.spawn(3)
    assert result_of(scores, 20, seed=seed, method=method, alternative=alternative) == first
    again = seed_sequence(3, "weat1", "sent")
    assert result_of(scores, 20, seed=again, method=method, alternative=alternative) == first


@pytest.mark.parametrize("method", ["importance", "sampled"])
def test_another_seed_draws_other_partitions(method):
    scores = np.random.default_rng(0).normal(size=30)
    children = seed_sequence(0).spawn(2)
    seeds = [seed_sequence(0), seed_sequence(1), *children]
    assert len({p_of(scores, 15, seed=seed, method=method) for seed in seeds}) == 4


@pytest.mark.parametrize("method", ["exact", "normal"])
def test_what_is_not_drawn_needs_no_seed(method):
    scores = np.random.default_rng(0).normal(size=12)
    results = [result_of(scores, 6, seed=seed_sequence(i), method=method) for i in range(3)]
    assert results[0] == results[1] == results[2]


def test_the_scores_given_are_not_changed_and_may_lie_apart():
    scores = np.random.default_rng(1).normal(size=10)
    kept = scores.copy()
    scores.flags.writeable = False
    straight = result_of(scores, 5, method="importance")
    np.testing.assert_array_equal(scores, kept)
    assert result_of(np.repeat(scores, 3)[::3], 5, method="importance") == straight


# ---- by importance


def swapped_over_the_border(scores, rng: np.random.Generator, *, least: int = 1, most: int = 7) -> np.ndarray:
    """X with the highest 16 of 32 scores, but for some that have changed places, mostly near the border."""
    ordered = np.sort(scores)[::-1]
    for _ in range(rng.integers(least, most + 1)):
        near = rng.random() < 0.7
        i, j = np.minimum(rng.exponential(1.5, size=2).astype(int), 15) if near else rng.integers(0, 16, size=2)
        ordered[[15 - i, 16 + j]] = ordered[[16 + j, 15 - i]]
    return ordered


def of_normals(rng):
    return rng.normal(size=32) + rng.uniform(0, 2.5) * (np.arange(32) < 16)


def heavy_tailed(rng):
    return swapped_over_the_border(rng.standard_cauchy(size=32), rng)


def in_two_clusters(rng):
    return swapped_over_the_border(rng.normal(size=32) + rng.choice([10, 100]) * rng.integers(0, 2, size=32), rng)


def with_an_outlier(rng):
    return swapped_over_the_border(np.append(rng.normal(size=31), rng.choice([-30, 30])), rng)


def tied(rng):
    return swapped_over_the_border(rng.integers(0, 8, size=32) / 10, rng, most=4)


def in_three_lumps(rng):
    return swapped_over_the_border(rng.integers(0, 3, size=32) + 1e-3 * rng.normal(size=32), rng)


def one_swap_from_separated(rng):
    return swapped_over_the_border(rng.normal(size=32), rng, most=1)


def separated(rng):
    return swapped_over_the_border(rng.normal(size=32), rng, least=0, most=0)


LAWS = [
    of_normals,
    heavy_tailed,
    in_two_clusters,
    with_an_outlier,
    tied,
    in_three_lumps,
    one_swap_from_separated,
    separated,
]


def both_ways(law, number: int) -> tuple[PermutationTest, PermutationTest]:
    scores = law(np.random.default_rng([LAWS.index(law), number]))
    seed = seed_sequence(law.__name__, number)
    return result_of(scores, 16, method="exact"), result_of(scores, 16, method="importance", seed=seed)


@pytest.mark.parametrize("law", LAWS)
def test_p_by_importance_is_within_four_of_its_errors(law):
    for number in range(26):
        exact, found = both_ways(law, number)
        allowed = 4 * found.p_standard_error if found.method_used == "importance" else 1e-9 * exact.p_value
        assert abs(found.p_value - exact.p_value) <= allowed, (number, exact, found)
        assert abs(found.p_less - exact.p_less) <= 0.2 * exact.p_less, (number, exact, found)
        if found.method_used == "importance" and exact.p_value < 0.05:
            assert 0.005 < found.p_standard_error / found.p_value < 0.022


def test_the_cases_by_importance_reach_from_large_p_to_the_smallest():
    p_values = [both_ways(law, number)[0].p_value for law in LAWS for number in range(26)]
    assert min(p_values) == 1 / comb(32, 16)
    assert max(p_values) > 0.5
    for low, high in ((1e-9, 1e-8), (1e-8, 1e-6), (1e-6, 1e-4), (1e-4, 0.01), (0.01, 0.5)):
        assert sum(low < p < high for p in p_values) >= 10


def test_complete_separation_is_counted_and_not_drawn():
    for number in range(5):
        _, found = both_ways(separated, number)
        assert found.method_used == "exact"
        assert found.p_standard_error == 0
        assert found.p_value == found.p_floor == 1 / comb(32, 16)


def test_the_errors_by_importance_are_those_that_p_has():
    scores = of_normals(np.random.default_rng(5)) + 0.3 * (np.arange(32) < 16)
    exact = result_of(scores, 16, method="exact").p_value
    found = [result_of(scores, 16, method="importance", seed=seed_sequence(i)) for i in range(100)]
    parts = np.array([(f.p_value - exact) / f.p_standard_error for f in found])
    assert exact < 0.01
    assert abs(parts.mean()) < 0.4
    assert 0.8 < parts.std() < 1.2


@pytest.mark.parametrize("wanted", [0.1, 0.01])
def test_a_smaller_error_can_be_asked_for(wanted):
    scores = in_two_clusters(np.random.default_rng(3))
    exact = result_of(scores, 16, method="exact").p_value
    found = result_of(scores, 16, method="importance", relative_error=wanted)
    assert exact < 0.01
    assert found.p_standard_error / found.p_value < 1.05 * wanted
    assert abs(found.p_value / exact - 1) < 4 * wanted


@pytest.mark.parametrize(("n_x", "n_y"), [(6, 30), (30, 6), (3, 60), (60, 3), (1, 40), (40, 1)])
def test_sets_of_unequal_sizes_by_importance_agree_with_exact_p(n_x, n_y):
    for number in range(6):
        rng = np.random.default_rng([n_x, number])
        scores = rng.normal(size=n_x + n_y) + number / 4 * (np.arange(n_x + n_y) < n_x)
        for alternative in ("greater", "less", "two-sided"):
            exact = result_of(scores, n_x, method="exact", alternative=alternative)
            found = result_of(scores, n_x, method="importance", alternative=alternative, seed=seed_sequence(number))
            if exact.p_value < 0.95:
                assert abs(found.p_value - exact.p_value) <= 4 * found.p_standard_error + 1e-9


def test_p_near_one_by_importance_is_not_told_as_certain():
    scores = np.random.default_rng([30, 5]).normal(size=36) + 1.25 * (np.arange(36) < 30)
    exact, found = (result_of(scores, 30, method=method, alternative="less") for method in ("exact", "importance"))
    assert 0.999 < exact.p_value < 0.99999
    assert abs(found.p_value - exact.p_value) <= 4 * found.p_standard_error + 1e-9


def test_a_small_p_on_the_far_side_of_a_skewed_law_is_found():
    """Above the mean, and yet few sums are as low: those with the outlier, which is one of Y's 998."""
    scores = np.concatenate([[-1.0, -1.0], np.random.default_rng(0).random(997), [-1e4]])
    exact = result_of(scores, 2, method="exact", alternative="less")
    assert exact.p_value == pytest.approx(0.002, rel=0.01)
    for number in range(2):  # a million draws each, as many as are ever made
        found = result_of(scores, 2, method="importance", alternative="less", seed=seed_sequence(number))
        assert abs(found.p_value - exact.p_value) <= 5 * found.p_standard_error


@pytest.mark.parametrize("size", [3e3, 1e4, 1e6])
def test_an_outlier_far_beyond_the_rest_leaves_p_by_importance_true(size):
    for number in range(12):
        rng = np.random.default_rng(number)
        scores = swapped_over_the_border(np.append(rng.normal(size=31), size), rng, most=2)
        exact, found = (result_of(scores, 16, method=method) for method in ("exact", "importance"))
        assert abs(found.p_value - exact.p_value) <= 5 * found.p_standard_error + 1e-9 * exact.p_value


# ---- deep tails


@pytest.mark.parametrize(("n_x", "n_y"), [(256, 256), (1000, 1000), (300, 900), (900, 300)])
def test_separated_scores_are_counted_at_any_depth(n_x, n_y):
    rng = np.random.default_rng(n_x)
    result = result_of([*(10 + rng.random(n_x)), *rng.random(n_y)], n_x)
    assert result.method_used == "exact"
    assert result.log10_p == pytest.approx(-log10(comb(n_x + n_y, n_x)), rel=1e-12)
    assert result.p_value == result.p_floor == max(float(Fraction(1, comb(n_x + n_y, n_x))), 2.0**-1022)
    assert result.p_less == pytest.approx(1.0, abs=1e-9)


def test_the_logarithm_goes_on_where_p_ends():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=2000) + 4 * (np.arange(2000) < 1000)
    result = result_of(scores, 1000, alternative="two-sided")
    assert result.method_used == "importance"
    assert result.p_value == 2.0**-1022
    assert -log10(comb(2000, 1000)) < result.log10_p < -308


def test_a_deep_tail_agrees_with_the_normal_law_where_that_holds():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=4000) + 0.12 * (np.arange(4000) < 2000)
    drawn, normal = (result_of(scores, 2000, method=method) for method in ("importance", "normal"))
    assert -6 < normal.log10_p < -3
    assert drawn.log10_p == pytest.approx(normal.log10_p, abs=0.1)


@pytest.mark.parametrize(("n_x", "n_tied_x", "n_tied_y", "n_y"), [(40, 7, 9, 40), (25, 25, 30, 60), (60, 1, 5, 26)])
def test_ties_at_the_border_of_large_tests_are_a_binomial(n_x, n_tied_x, n_tied_y, n_y):
    scores = [*range(2, n_x - n_tied_x + 2), *[0] * (n_tied_x + n_tied_y), *range(-(n_y - n_tied_y) - 1, -1)]
    result = result_of(scores, n_x, method="importance")
    expected = Fraction(comb(n_tied_x + n_tied_y, n_tied_x), comb(n_x + n_y, n_x))
    assert result.method_used == "exact"
    assert result.p_value == pytest.approx(float(expected), rel=1e-9)


@FEW
@given(split=splits(st.lists(st.integers(0, 4), min_size=2, max_size=11)), lower=st.booleans())
def test_top_scores_with_ties_at_the_border_equal_enumeration(split, lower):
    scores, n_x = sorted(split[0], reverse=not lower), split[1]
    alternative = "less" if lower else "greater"
    result = result_of(scores, n_x, method="importance", alternative=alternative)
    assert result.method_used == "exact"
    assert result.p_value == pytest.approx(float(enumerated(scores, n_x, alternative)), rel=1e-15)


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 9))
def test_ties_within_the_resolution_are_counted_alike_in_closed_form(seed, n_x):
    scores = np.sort(np.random.default_rng(seed).integers(0, 40, size=10) / 10)[::-1]
    closed, exact = (result_of(scores, n_x, method=method, resolution=0.1) for method in ("importance", "exact"))
    assert closed.method_used == "exact"
    assert closed.p_value == pytest.approx(exact.p_value, rel=1e-12)


# ---- exact or drawn


@pytest.mark.parametrize(("n_x", "n_y", "method"), [(22, 22, "exact"), (22, 23, "importance"), (4, 400, "importance")])
def test_auto_counts_up_to_what_a_second_allows(n_x, n_y, method):
    scores = np.random.default_rng(0).normal(size=n_x + n_y)
    assert result_of(scores, n_x).method_used == method


def test_two_targets_against_many_are_exact():
    scores = np.random.default_rng(5).integers(-20, 21, size=447).tolist()
    result = result_of(scores, 2)
    assert result.method_used == "exact"
    assert result.p_value == pytest.approx(counted(scores, 2), abs=1e-12)


@pytest.mark.parametrize("n_x", [18, 20, 22])
def test_exact_p_of_large_tests_of_whole_scores_counts_ties(n_x):
    scores = np.random.default_rng(n_x).integers(-9, 10, size=40).tolist()
    assert p_of(scores, n_x, method="exact") == pytest.approx(counted(scores, n_x), rel=1e-14)


@pytest.mark.parametrize(
    ("n", "n_x", "n_partitions", "method"),
    [(19, 8, 75_582, "exact"), (19, 9, 92_378, "exact"), (20, 8, 125_970, "sampled"), (20, 12, 125_970, "sampled")],
)
def test_sampled_tries_all_partitions_up_to_a_hundred_thousand(n, n_x, n_partitions, method):
    assert comb(n, n_x) == n_partitions
    scores = np.random.default_rng(n).integers(-20, 21, size=n).tolist()
    result = result_of(scores, n_x, method="sampled")
    assert result.method_used == method
    assert result.p_floor == (1 / n_partitions if method == "exact" else 1e-5)
    exact = counted(scores, n_x)
    tolerance = 1e-12 if method == "exact" else 4 * standard_error(exact) + 1e-5
    assert result.p_value == pytest.approx(exact, abs=tolerance)


# ---- sampled


@pytest.mark.parametrize("effect", [0.0, 0.3, 0.8, 1.2])
def test_sampled_p_is_within_four_standard_errors_of_the_exact_one(effect):
    scores = np.random.default_rng(11).normal(size=24) + effect * (np.arange(24) < 12)
    exact = result_of(scores, 12, method="exact")
    found = result_of(scores, 12, method="sampled")
    assert abs(found.p_greater - exact.p_greater) < 4 * standard_error(exact.p_greater) + 1e-5
    assert abs(found.p_less - exact.p_less) < 4 * standard_error(exact.p_less) + 1e-5
    assert found.p_standard_error == pytest.approx(sqrt(found.p_value * (1 - found.p_value) / 1e5), rel=1e-9)


@pytest.mark.parametrize(("n", "n_x"), [(24, 12), (40, 13), (60, 45)])
def test_sampled_p_of_whole_scores_counts_ties(n, n_x):
    scores = np.random.default_rng(n).integers(0, 4, size=n).tolist()
    exact = counted(scores, n_x)
    assert 0.01 < exact < 0.99
    assert abs(p_of(scores, n_x, method="sampled") - exact) < 4 * standard_error(exact) + 1e-5


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_sampled_p_is_never_below_the_share_of_the_observed_partition(alternative):
    result = result_of([*range(100, 130), *range(30)], 30, method="sampled", alternative=alternative)
    assert result.method_used == "sampled"
    assert result.p_value == result.p_floor == (1e-5 if alternative == "greater" else 2e-5)
    assert result.p_less == 1.0


def test_sampled_p_is_a_count_of_a_hundred_thousand():
    scores = np.random.default_rng(4).normal(size=30)
    assert p_of(scores, 15, method="sampled") * 1e5 == pytest.approx(round(p_of(scores, 15, method="sampled") * 1e5))


@pytest.mark.parametrize(("n", "k"), [(5, 2), (9, 1), (8, 8)])
def test_every_drawn_partition_has_its_size(n, k):
    drawn = drawn_partitions(n, k, 500, np.random.default_rng(0))
    assert drawn.shape == (500, n)
    assert set(np.unique(drawn)) <= {0.0, 1.0}
    assert (drawn.sum(axis=1) == k).all()


def test_drawn_partitions_are_equally_likely():
    drawn = drawn_partitions(5, 2, 40_000, np.random.default_rng(0))
    _, times = np.unique(drawn, axis=0, return_counts=True)
    assert len(times) == 10
    assert ((times - 4000) ** 2 / 4000).sum() < 27.9  # chi-square with 9 degrees of freedom: 0.1% lie above


# ---- normal


@pytest.mark.parametrize(("n_x", "n_y"), [(5, 5), (3, 7), (7, 3), (2, 9)])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_normal_law_has_the_mean_and_variance_of_all_partitions(n_x, n_y, alternative):
    scores = np.random.default_rng(n_x).normal(size=n_x + n_y)
    differences = []
    for chosen in combinations(range(n_x + n_y), n_x):
        is_x = np.isin(np.arange(n_x + n_y), chosen)
        differences.append(scores[is_x].mean() - scores[~is_x].mean())
    z = (differences[0] - np.mean(differences)) / np.std(differences)
    sides = {"greater": erfc(z / sqrt(2)) / 2, "less": erfc(-z / sqrt(2)) / 2}
    expected = sides.get(alternative, 2 * min(sides.values()))
    result = result_of(scores, n_x, method="normal", alternative=alternative)
    assert result.method_used == "normal"
    assert result.p_value == pytest.approx(expected, rel=1e-6)
    assert result.p_standard_error == 0


def test_the_normal_law_goes_no_lower_than_one_partition():
    result = result_of([*range(50, 54), *range(4)], 4, method="normal")
    assert result.p_value == pytest.approx(1 / 70)
    deep = result_of([*range(2000, 3000), *range(1000)], 1000, method="normal")
    assert log(2.2e-308) > deep.log10_p * log(10) > -log(comb(2000, 1000))


def test_a_test_of_many_hundred_targets_agrees_with_the_normal_approximation():
    n, n_x = 700, 300
    scores = np.random.default_rng(2).normal(size=n) + 0.1 * (np.arange(n) < n_x)
    normal = p_of(scores, n_x, method="normal")
    assert 0.001 < normal < 0.5
    assert p_of(scores, n_x, method="sampled") == pytest.approx(normal, abs=0.005)


# ---- errors


@pytest.mark.parametrize("n_x", [0, 4, 5, -1])
def test_an_empty_set_is_refused(n_x):
    with pytest.raises(AssociationError, match=f"{n_x} of 4 targets in X.*give both sets"):
        result_of([1, 2, 3, 4], n_x)


@pytest.mark.parametrize("wrong", [nan, inf, -inf])
def test_a_score_that_is_not_finite_is_named(wrong):
    with pytest.raises(AssociationError, match=f"score 2 of 4 is {wrong}; give finite scores"):
        result_of([1, 2, wrong, 4], 2)


def test_an_exact_count_that_memory_does_not_hold_names_the_way_out():
    scores = np.random.default_rng(0).normal(size=60)
    with pytest.raises(AssociationError, match=r"exact p of 30 v 30 targets.*take method auto"):
        result_of(scores, 30, method="exact")
    assert 0 < p_of(scores, 30, method="auto") <= 1


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
