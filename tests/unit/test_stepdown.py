"""Westfall and Young's step-down maxT: against the definition, partition by partition, and its laws."""

from fractions import Fraction
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.statistics import permutation_test, seed_sequence, step_down_floor, stepdown, westfall_young
from distseat.statistics.permutation import ALTERNATIVES, N_DRAWS, drawn_partitions

SEED = seed_sequence(0, "step-down")
FEW = settings(max_examples=30, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)
SIZES = pytest.mark.parametrize(("n_x", "n_y"), [(4, 4), (2, 6), (6, 2), (1, 7), (7, 1), (5, 6)])


def variants(n: int, m: int, seed: int = 0, *, n_x: int = 0, effects: float = 0.0) -> np.ndarray:
    """Scores of variants that share part of what they measure, on scales of their own."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    scores = common + rng.normal(size=(n, m)) + np.outer(np.arange(n) < n_x, effects * rng.random(m))
    return scores * 10.0 ** rng.integers(-3, 4, size=m) + rng.normal(size=m)


def adjusted_of(scores_nv, n_x: int, **options) -> np.ndarray:
    return westfall_young(np.asarray(scores_nv, dtype=np.float64), n_x, seed=SEED, **options).adjusted


def z_by_definition(scores_nv: np.ndarray, is_x: np.ndarray, alternative: str) -> list[float]:
    """d sqrt(n_x n_y / N), with d the difference of means over the deviation of all scores (ddof = 1)."""
    found = []
    for scores in scores_nv.T:
        d = (scores[is_x].mean() - scores[~is_x].mean()) / scores.std(ddof=1)
        z = d * sqrt(is_x.sum() * (~is_x).sum() / len(scores))
        found.append({"greater": z, "less": -z, "two-sided": abs(z)}[alternative])
    return found


def by_definition(scores_nv, n_x: int, alternative: str, partitions: list[np.ndarray]) -> list[float]:
    """Ge, Dudoit & Speed (2003), box 2, word for word; sums that differ by rounding alone are equal."""
    observed = z_by_definition(scores_nv, np.arange(len(scores_nv)) < n_x, alternative)
    order = sorted(range(len(observed)), key=lambda v: -observed[v])
    permuted = [z_by_definition(scores_nv, is_x, alternative) for is_x in partitions]
    adjusted, highest = [0.0] * len(observed), 0.0
    for rank, variant in enumerate(order):
        n_reached = sum(max(z[v] for v in order[rank:]) >= observed[variant] - 1e-9 for z in permuted)
        highest = max(highest, n_reached / len(permuted))
        adjusted[variant] = highest
    return adjusted


def all_partitions(n: int, n_x: int) -> list[np.ndarray]:
    return [np.isin(np.arange(n), chosen) for chosen in combinations(range(n), n_x)]


# ---- against the definition


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@SIZES
def test_adjusted_values_equal_the_definition(n_x, n_y, alternative):
    scores_nv = variants(n_x + n_y, 4, seed=n_x, n_x=n_x, effects=2.0)
    expected = by_definition(scores_nv, n_x, alternative, all_partitions(n_x + n_y, n_x))
    np.testing.assert_allclose(adjusted_of(scores_nv, n_x, alternative=alternative), expected, rtol=1e-14)


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 6), m=st.integers(1, 4), alternative=st.sampled_from(ALTERNATIVES))
def test_adjusted_values_of_whole_scores_count_every_tie(seed, n_x, m, alternative):
    scores_nv = np.random.default_rng(seed).integers(-2, 3, size=(7, m)).astype(np.float64)
    scores_nv[0], scores_nv[6] = 3, -3  # no variant is constant
    expected = by_definition(scores_nv, n_x, alternative, all_partitions(7, n_x))
    np.testing.assert_allclose(adjusted_of(scores_nv, n_x, alternative=alternative), expected, rtol=1e-14)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_drawn_partitions_are_counted_by_the_definition_with_the_observed_one(monkeypatch, alternative):
    monkeypatch.setattr(stepdown, "N_DRAWS", 999)
    monkeypatch.setattr(stepdown, "MAX_ENUMERATED", 100)
    scores_nv = variants(13, 3, seed=5, n_x=5, effects=1.5)
    drawn = drawn_partitions(13, 5, 999, np.random.default_rng(SEED)) > 0
    expected = by_definition(scores_nv, 5, alternative, [*drawn, np.arange(13) < 5])
    found = westfall_young(scores_nv, 5, seed=SEED, alternative=alternative)
    np.testing.assert_allclose(found.adjusted, expected, rtol=1e-14)
    assert found.p_floor == 1 / 1000


@pytest.mark.parametrize(("n_x", "n_y"), [(8, 13), (13, 8)])
def test_drawn_values_are_near_those_of_all_partitions(monkeypatch, n_x, n_y):
    scores_nv = variants(n_x + n_y, 5, seed=2, n_x=n_x, effects=1.5)
    drawn = adjusted_of(scores_nv, n_x)
    monkeypatch.setattr(stepdown, "MAX_ENUMERATED", 10**6)
    whole = adjusted_of(scores_nv, n_x)
    assert whole.min() < 0.05
    assert (np.abs(drawn - whole) < 4 * np.sqrt(whole * (1 - whole) / N_DRAWS) + 1e-5).all()
    assert (drawn != whole).any()


def test_two_variants_of_four_words_by_hand():
    # X has 4 + 3 of the first variant, as only this pair has, and 4 + 3 of the second stand in rows 1 and 4: 2 of 6.
    # The second has 4 + 1 = 5 in X, as have 4 + 1 and 2 + 3, and 4 + 2 and 4 + 3 are more: 4 of 6.
    scores_nv = np.array([[4.0, 4.0], [3.0, 1.0], [2.0, 2.0], [1.0, 3.0]])
    assert adjusted_of(scores_nv, 2) == pytest.approx([2 / 6, 4 / 6])
    assert adjusted_of(scores_nv[:, :1], 2) == pytest.approx([1 / 6])


@SIZES
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_statistics_are_the_standardized_differences_of_means(n_x, n_y, alternative):
    scores_nv = variants(n_x + n_y, 3, seed=n_y)
    expected = z_by_definition(scores_nv, np.arange(n_x + n_y) < n_x, alternative)
    found = westfall_young(scores_nv, n_x, seed=SEED, alternative=alternative).statistics
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@SIZES
def test_statistics_have_variance_one_over_all_partitions(n_x, n_y):
    scores_nv = variants(n_x + n_y, 3, seed=1)
    found = []
    for is_x in all_partitions(n_x + n_y, n_x):
        ordered = np.concatenate([scores_nv[is_x], scores_nv[~is_x]])
        found.append(westfall_young(ordered, n_x, seed=SEED).statistics)
    np.testing.assert_allclose(np.mean(found, axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.var(found, axis=0), 1, rtol=1e-9)


# ---- against the permutation test


@SIZES
@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_variant_alone_has_its_own_p(n_x, n_y, alternative):
    for seed in range(5):
        for scores in (variants(n_x + n_y, 1, seed), np.round(variants(n_x + n_y, 1, seed), 1)):
            if np.ptp(scores) > 0:
                p = permutation_test(scores[:, 0], n_x, seed=SEED, alternative=alternative, method="exact").p_value
                assert adjusted_of(scores, n_x, alternative=alternative).tolist() == [p]


@pytest.mark.parametrize("n", [4, 5, 7])
def test_one_variant_alone_has_its_own_two_sided_p_where_the_sets_are_of_one_size(n):
    scores = variants(2 * n, 1, seed=n)
    p = permutation_test(scores[:, 0], n, seed=SEED, alternative="two-sided", method="exact").p_value
    assert adjusted_of(scores, n, alternative="two-sided") == pytest.approx([p])


def test_one_variant_alone_has_its_own_p_at_a_coarse_resolution():
    scores = np.array([4.0, 2.0, 2.0, 2.0, 3.0, 2.0])
    p = permutation_test(scores, 2, seed=SEED, resolution=1.0).p_value
    assert adjusted_of(scores[:, None], 2, resolution=1.0).tolist() == [p]


def test_noise_below_the_resolution_breaks_no_tie():
    scores_nv = np.random.default_rng(3).integers(-3, 4, size=(9, 3)) / 7
    noisy = scores_nv + np.random.default_rng(4).uniform(-1e-9, 1e-9, size=(9, 3))
    np.testing.assert_array_equal(adjusted_of(noisy, 4, resolution=1e-7), adjusted_of(scores_nv, 4))
    assert (adjusted_of(noisy, 4) != adjusted_of(scores_nv, 4)).any()


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 7), alternative=st.sampled_from(["greater", "less"]))
def test_adjusted_values_lie_between_their_own_p_and_one(seed, n_x, alternative):
    scores_nv = variants(8, 3, seed)
    own = [permutation_test(s, n_x, seed=SEED, alternative=alternative, method="exact").p_value for s in scores_nv.T]
    adjusted = adjusted_of(scores_nv, n_x, alternative=alternative)
    assert (adjusted >= np.array(own)).all()
    assert (adjusted <= 1).all()


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_of_all_partitions_no_more_than_alpha_are_rejected_at_alpha(alternative):
    """Each partition in turn as the observed one: under the full null they are equally likely."""
    scores_nv = variants(8, 3, seed=9)
    smallest = []
    for is_x in all_partitions(8, 4):
        ordered = np.concatenate([scores_nv[is_x], scores_nv[~is_x]])
        smallest.append(adjusted_of(ordered, 4, alternative=alternative).min())
    for alpha in (1 / 70, 0.03, 0.05, 0.1, 0.25, 0.5):
        assert np.mean(np.array(smallest) <= alpha + 1e-12) <= alpha + 1e-12
    assert np.mean(np.array(smallest) <= 0.5) > 0.4


# ---- laws


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 7), alternative=st.sampled_from(ALTERNATIVES))
def test_adjusted_values_fall_as_the_statistics_rise(seed, n_x, alternative):
    found = westfall_young(variants(8, 5, seed), n_x, seed=SEED, alternative=alternative)
    assert (np.diff(found.adjusted[np.argsort(-found.statistics)]) >= 0).all()


@FEW
@given(
    seed=SEEDS,
    factors=st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3),
    alternative=st.sampled_from(ALTERNATIVES),
)
def test_the_scale_and_the_origin_of_a_variant_change_nothing(seed, factors, alternative):
    scores_nv = np.random.default_rng(seed).normal(size=(8, 3))
    moved = adjusted_of(scores_nv * factors + 3.0, 3, alternative=alternative)
    np.testing.assert_array_equal(moved, adjusted_of(scores_nv, 3, alternative=alternative))


@pytest.mark.parametrize("n", [9, 18])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_copies_of_a_variant_change_no_adjusted_value(n, alternative):
    scores_nv = variants(n, 3, seed=n, n_x=n // 2, effects=1.0)
    alone = adjusted_of(scores_nv, n // 2, alternative=alternative)
    copied = adjusted_of(scores_nv[:, [0, 1, 2, 1, 1, 0]], n // 2, alternative=alternative)
    np.testing.assert_array_equal(copied, alone[[0, 1, 2, 1, 1, 0]])
    stretched = np.concatenate([scores_nv, 3.7 * scores_nv + 0.1], axis=1)
    np.testing.assert_array_equal(adjusted_of(stretched, n // 2, alternative=alternative), [*alone, *alone])


@pytest.mark.parametrize("n", [9, 18])
def test_a_further_variant_lowers_no_adjusted_value(n):
    scores_nv = variants(n, 4, seed=n)
    assert (adjusted_of(scores_nv, n // 2)[:3] >= adjusted_of(scores_nv[:, :3], n // 2)).all()


@pytest.mark.parametrize("n", [9, 18])
def test_the_order_of_the_variants_changes_nothing(n):
    scores_nv = variants(n, 6, seed=n)
    order = np.random.default_rng(0).permutation(6)
    np.testing.assert_array_equal(adjusted_of(scores_nv[:, order], 4), adjusted_of(scores_nv, 4)[order])


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_swapping_x_and_y_turns_the_alternative(alternative):
    scores_nv = variants(9, 4, seed=3)
    other = {"greater": "less", "less": "greater"}[alternative]
    swapped = adjusted_of(np.roll(scores_nv, -3, axis=0), 6, alternative=other)
    np.testing.assert_array_equal(swapped, adjusted_of(scores_nv, 3, alternative=alternative))


@pytest.mark.parametrize("n", [10, 18])
def test_the_size_of_blocks_changes_no_bit(monkeypatch, n):
    scores_nv = variants(n, 3, seed=n)
    expected = adjusted_of(scores_nv, n // 2)
    for held in (1, 100, 3 * 1000 + 1):
        if n == 10 or held > 3000:
            monkeypatch.setattr(stepdown, "_HELD", held)
            np.testing.assert_array_equal(adjusted_of(scores_nv, n // 2), expected)
    monkeypatch.setattr(stepdown, "_DRAWN_AT_ONCE", 777)
    np.testing.assert_array_equal(adjusted_of(scores_nv, n // 2), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_layout_in_memory_changes_nothing(order):
    scores_nv = variants(10, 5, seed=1)
    laid_out = np.asarray(np.repeat(scores_nv, 2, axis=1), order=order)[:, ::2]
    np.testing.assert_array_equal(adjusted_of(laid_out, 5), adjusted_of(scores_nv, 5))


def test_equal_seeds_give_equal_bits_and_others_draw_other_partitions():
    scores_nv = variants(20, 3, seed=1)
    seed = seed_sequence("a")
    first = westfall_young(scores_nv, 10, seed=seed).adjusted
    np.testing.assert_array_equal(westfall_young(scores_nv, 10, seed=seed).adjusted, first)
    np.testing.assert_array_equal(westfall_young(scores_nv, 10, seed=seed_sequence("a")).adjusted, first)
    assert (westfall_young(scores_nv, 10, seed=seed_sequence("b")).adjusted != first).any()


# ---- the floor


@pytest.mark.parametrize(
    ("n", "k", "floor"), [(8, 4, 1 / 70), (16, 8, 1 / 12_870), (17, 8, 1e-5), (50, 25, 1e-5), (200, 2, 1 / 19_900)]
)
def test_floors_of_known_sizes(n, k, floor):
    assert step_down_floor(n, k) == step_down_floor(n, n - k) == floor


@pytest.mark.parametrize(("n_x", "n_y"), [(4, 4), (3, 6), (6, 3), (15, 15)])
def test_separated_variants_reach_the_floor(n_x, n_y):
    rng = np.random.default_rng(n_x)
    scores_nv = rng.random((n_x + n_y, 2)) + 10 * (np.arange(n_x + n_y) < n_x)[:, None]
    found = westfall_young(scores_nv[:, :1], n_x, seed=SEED)
    assert found.adjusted.tolist() == [found.p_floor]
    assert found.p_floor == (float(Fraction(1, comb(n_x + n_y, n_x))) if n_x + n_y < 19 else 1e-5)
    assert (westfall_young(scores_nv, n_x, seed=SEED).adjusted >= found.p_floor).all()
