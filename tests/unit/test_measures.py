"""ML-EAT, SAME and RIPA: cases by hand, the definitions word for word, and laws."""

from dataclasses import astuple
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.statistics import UnitSets, associate, ml_eat, ripa, same

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(*[st.integers(2, 5)] * 4)
FEW = settings(max_examples=50, deadline=None)
EAST, NORTH = np.array([1.0, 0.0]), np.array([0.0, 1.0])


def sets(seed: int, sizes: tuple[int, int, int, int] = (4, 5, 3, 6), d: int = 7) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for n in sizes]


def units_of(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> UnitSets:
    return UnitSets.of(x, y, a=a, b=b)


def lengthened(vectors: list[np.ndarray], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [v * 10.0 ** rng.uniform(-50, 50, size=(len(v), 1)) for v in vectors]


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return sum(u * v) / (sum(u * u) ** 0.5 * sum(v * v) ** 0.5)


# ---- ML-EAT


def slow_level_2(targets: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    with_a, with_b = ([fmean(cosine(t, c) for t in targets) for c in attributes] for attributes in (a, b))
    return (fmean(with_a) - fmean(with_b)) / stdev(with_a + with_b)


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_level_2_of_ml_eat_equals_the_definition(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    found = ml_eat(units_of(x, y, a, b))
    assert found.x == pytest.approx(slow_level_2(x, a, b), abs=1e-9)
    assert found.y == pytest.approx(slow_level_2(y, a, b), abs=1e-9)


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_level_3_of_ml_eat_is_the_mean_and_deviation_of_all_cosines(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    found = ml_eat(units_of(x, y, a, b))
    for summary, targets, attributes in ((found.xa, x, a), (found.xb, x, b), (found.ya, y, a), (found.yb, y, b)):
        cosines = [cosine(t, c) for t in targets for c in attributes]
        assert summary.mean == pytest.approx(fmean(cosines), abs=1e-12)
        assert summary.deviation == pytest.approx(stdev(cosines), abs=1e-12)


def test_ml_eat_of_a_case_computed_by_hand():
    # the mean of X is (0.9, 0.3): mean cosines with A are 0.9 and 0.72 + 0.18 = 0.9, with B 0.3 and 0.54 + 0.24 = 0.78;
    # 0.9 - 0.54 = 0.36; mean of all 0.72, squared deviations 0.0324 + 0.0324 + 0.1764 + 0.0036 = 0.2448, over 3
    x = np.array([[1.0, 0.0], [0.8, 0.6]])
    y, a, b = x[:, ::-1], x, x[:, ::-1]
    expected = 0.36 / 0.0816**0.5
    found = ml_eat(units_of(x, y, a, b))
    assert found.x == pytest.approx(expected)
    assert found.y == pytest.approx(-expected)
    # cosines of X with A: 1, 0.8, 0.8, 1
    assert found.xa.mean == pytest.approx(0.9)
    assert found.xa.deviation == pytest.approx((0.04 / 3) ** 0.5)


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_the_means_of_ml_eat_are_those_of_the_association(seed, sizes):
    units = units_of(*sets(seed, sizes))
    found, association = ml_eat(units), units.association
    assert found.xa.mean - found.xb.mean == pytest.approx(association.scores_x.mean(), abs=1e-12)
    assert found.ya.mean - found.yb.mean == pytest.approx(association.scores_y.mean(), abs=1e-12)
    # the numerator of level 2 is that mean of s
    means_x = units.x.mean(axis=0) @ np.concatenate([units.a, units.b]).T
    assert found.x * means_x.std(ddof=1) == pytest.approx(association.scores_x.mean(), abs=1e-12)


@FEW
@given(seed=SEEDS)
def test_swapping_the_attributes_negates_level_2_and_swaps_level_3(seed):
    x, y, a, b = sets(seed)
    found, swapped = ml_eat(units_of(x, y, a, b)), ml_eat(units_of(x, y, b, a))
    assert (swapped.x, swapped.y) == pytest.approx((-found.x, -found.y), abs=1e-12)
    for name, turned in (("xa", "xb"), ("xb", "xa"), ("ya", "yb"), ("yb", "ya")):
        assert astuple(getattr(swapped, name)) == pytest.approx(astuple(getattr(found, turned)), abs=1e-12)


@FEW
@given(seed=SEEDS)
def test_swapping_the_targets_swaps_both_levels(seed):
    x, y, a, b = sets(seed)
    found, swapped = ml_eat(units_of(x, y, a, b)), ml_eat(units_of(y, x, a, b))
    assert (swapped.x, swapped.y) == pytest.approx((found.y, found.x), abs=1e-12)
    for name, turned in (("xa", "ya"), ("xb", "yb"), ("ya", "xa"), ("yb", "xb")):
        assert astuple(getattr(swapped, name)) == pytest.approx(astuple(getattr(found, turned)), abs=1e-12)


@FEW
@given(seed=SEEDS)
def test_the_lengths_of_vectors_change_no_level_of_ml_eat(seed):
    vectors = sets(seed)
    before, after = ml_eat(units_of(*vectors)), ml_eat(units_of(*lengthened(vectors, seed)))
    assert (after.x, after.y) == pytest.approx((before.x, before.y), abs=1e-10)
    for name in ("xa", "xb", "ya", "yb"):
        assert astuple(getattr(after, name)) == pytest.approx(astuple(getattr(before, name)), abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_level_2_is_not_a_number_where_all_attributes_are_one():
    attributes = np.array([EAST] * 3)
    found = ml_eat(units_of(np.array([EAST, NORTH]), np.array([NORTH, NORTH]), attributes, attributes))
    assert np.isnan([found.x, found.y]).all()
    assert (found.xa.mean, found.ya.mean) == (0.5, 0.0)


def test_level_2_is_not_a_number_where_all_attributes_are_alike_but_for_rounding():
    for seed in range(20):
        x, y, one, _ = sets(seed, (4, 4, 1, 1))
        alike = one * np.array([[1.0], [2.3], [3.1], [4.0], [5.5]])
        found = ml_eat(units_of(x, y, alike[:3], alike[3:]))
        assert np.isnan([found.x, found.y]).all()


# ---- SAME


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_same_is_the_mean_of_the_absolute_cosines_with_the_direction(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    direction = sum(v / sum(v * v) ** 0.5 for v in a) / len(a) - sum(v / sum(v * v) ** 0.5 for v in b) / len(b)
    expected = fmean(abs(cosine(w, direction)) for w in [*x, *y])
    assert same(units_of(x, y, a, b)) == pytest.approx(expected, abs=1e-12)
    assert 0 <= expected <= 1


def test_same_of_a_case_computed_by_hand():
    # the direction is (1, -1) / sqrt 2; the targets lie at 45, 135, 0 and 180 degrees to it
    x, y = np.array([EAST, -NORTH - EAST]), np.array([EAST - NORTH, 3 * NORTH - 3 * EAST])
    attributes = np.array([EAST, EAST]), np.array([NORTH, NORTH])
    assert same(units_of(x, y, *attributes)) == pytest.approx((0.5**0.5 + 0 + 1 + 1) / 4)


@FEW
@given(seed=SEEDS)
def test_same_is_blind_to_which_targets_and_attributes_are_which(seed):
    x, y, a, b = sets(seed)
    expected = same(units_of(x, y, a, b))
    assert same(units_of(y, x, a, b)) == pytest.approx(expected, abs=1e-12)
    assert same(units_of(x, y, b, a)) == pytest.approx(expected, abs=1e-12)
    assert same(units_of(-x, y, a, b)) == pytest.approx(expected, abs=1e-12)


@FEW
@given(seed=SEEDS)
def test_the_lengths_of_vectors_do_not_change_same(seed):
    vectors = sets(seed)
    expected = same(units_of(*vectors))
    assert same(units_of(*lengthened(vectors, seed))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("error")
def test_same_is_not_a_number_where_both_attributes_have_one_mean():
    x, y, a, _ = sets(0)
    assert np.isnan(same(units_of(x, y, a, a)))


def test_same_is_not_a_number_where_both_attributes_have_one_mean_but_for_rounding():
    for seed in range(20):
        x, y, a, _ = sets(seed, (4, 4, 5, 2))
        assert np.isnan(same(units_of(x, y, a, a[[3, 0, 4, 2, 1]])))


# ---- RIPA


def slow_ripa(x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """With the relation from a singular value decomposition of the pairs' differences."""
    differences = a - b
    relation = np.linalg.svd(differences)[2][0]
    relation *= np.sign(sum(sum(difference * relation) for difference in differences))
    return fmean(sum(w * relation) for w in x) - fmean(sum(w * relation) for w in y)


@FEW
@given(seed=SEEDS, n_x=st.integers(1, 5), n_y=st.integers(1, 5), n=st.integers(1, 10))
def test_ripa_equals_the_definition(seed, n_x, n_y, n):
    # a common part of all differences keeps the first component apart from the second
    x, y, a, b = sets(seed, (n_x, n_y, n, n))
    a[:, 0] += 6.0
    assert ripa(x, y, a=a, b=b) == pytest.approx(slow_ripa(x, y, a, b), abs=1e-9)


@FEW
@given(seed=SEEDS)
def test_ripa_of_one_pair_is_the_projection_on_their_difference(seed):
    x, y, a, b = sets(seed, (4, 5, 1, 1))
    relation = (a - b)[0] / np.linalg.norm(a - b)
    assert ripa(x, y, a=a, b=b) == pytest.approx((x @ relation).mean() - (y @ relation).mean(), abs=1e-10)


def test_ripa_of_a_case_computed_by_hand():
    # differences 2 and 4 east: r is east; mean of X's eastings 3, of Y's -1
    x, y = np.array([[2.0, 9.0], [4.0, -9.0]]), np.array([[-1.0, 5.0]])
    a, b = np.array([[3.0, 1.0], [5.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 2.0]])
    assert ripa(x, y, a=a, b=b) == pytest.approx(4.0)


def test_ripa_is_positive_where_x_lies_towards_a():
    assert ripa(np.array([EAST]), np.array([-EAST]), a=np.array([EAST]), b=np.array([-EAST])) == pytest.approx(2.0)
    assert ripa(np.array([EAST]), np.array([-EAST]), a=np.array([-EAST]), b=np.array([EAST])) == pytest.approx(-2.0)


def test_a_pair_the_other_way_round_is_outvoted_and_the_direction_stays():
    a, b = np.array([-EAST, EAST, EAST]), np.array([EAST, -EAST, -EAST])
    assert ripa(np.array([EAST]), np.array([-EAST]), a=a, b=b) == pytest.approx(2.0)


@FEW
@given(seed=SEEDS, n=st.integers(1, 6))
def test_swapping_targets_or_attributes_negates_ripa(seed, n):
    x, y, a, b = sets(seed, (3, 4, n, n))
    a[:, 0] += 6.0
    expected = -ripa(x, y, a=a, b=b)
    assert ripa(y, x, a=a, b=b) == pytest.approx(expected, abs=1e-10)
    assert ripa(x, y, a=b, b=a) == pytest.approx(expected, abs=1e-10)


@FEW
@given(seed=SEEDS, factor=st.floats(1e-3, 1e3))
def test_ripa_grows_with_the_targets_and_not_with_the_attributes(seed, factor):
    x, y, a, b = sets(seed, (3, 4, 5, 5))
    a[:, 0] += 6.0
    found = ripa(x, y, a=a, b=b)
    assert ripa(factor * x, factor * y, a=a, b=b) == pytest.approx(factor * found, rel=1e-9, abs=1e-12 * factor)
    assert ripa(x, y, a=factor * a, b=factor * b) == pytest.approx(found, rel=1e-9, abs=1e-12)


@FEW
@given(seed=SEEDS, n=st.integers(2, 6))
def test_the_order_of_the_pairs_changes_nothing_but_their_pairing_does(seed, n):
    x, y, a, b = sets(seed, (3, 4, n, n))
    a[:, 0] += 6.0
    order = np.random.default_rng(seed).permutation(n)
    found = ripa(x, y, a=a, b=b)
    assert ripa(x, y, a=a[order], b=b[order]) == pytest.approx(found, abs=1e-9)
    assert ripa(x, y, a=a, b=np.roll(b, 1, axis=0)) != pytest.approx(found, abs=1e-12)


def test_attributes_of_unequal_number_form_no_pairs():
    x, y, a, b = sets(0, (4, 5, 3, 4))
    assert ripa(x, y, a=a, b=b) is None


@pytest.mark.filterwarnings("error")
def test_pairs_that_are_all_equal_have_no_relation():
    x, y, a, _ = sets(0)
    assert ripa(x, y, a=a, b=a.copy()) is None


def test_float32_vectors_are_computed_in_float64():
    x, y, a, b = (v.astype(np.float32) for v in sets(3, (4, 5, 6, 6)))
    wide_x, wide_y, wide_a, wide_b = (v.astype(np.float64) for v in (x, y, a, b))
    assert ripa(x, y, a=a, b=b) == ripa(wide_x, wide_y, a=wide_a, b=wide_b)


def test_the_measures_agree_in_sign_on_targets_that_go_with_their_attributes():
    x, y, a, b = sets(4, (6, 6, 6, 6))
    for vectors, axis in ((x, 0), (a, 0), (y, 1), (b, 1)):
        vectors[:, axis] += 6.0
    units = units_of(x, y, a, b)
    found = ml_eat(units)
    assert associate(x, y, a=a, b=b).effect_size > 1
    assert found.x > 0 > found.y
    assert ripa(x, y, a=a, b=b) > 0
    assert same(units) > 0.5
