"""Association scores and effect sizes: the definition word for word, a case by hand, laws, and the errors' words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distseat.errors import AssociationError, DistseatError
from distseat.statistics import FLOAT32_NOISE, FLOAT64_NOISE, Association, UnitSets, associate, noise_of

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(*[st.integers(2, 6)] * 4)


def vectors(n: int, seed: int, d: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def sets(seed: int, sizes: tuple[int, int, int, int] = (5, 5, 5, 5)) -> list[np.ndarray]:
    return [vectors(n, seed + i) for i, n in enumerate(sizes)]


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return sum(u * v) / (sum(u * u) ** 0.5 * sum(v * v) ** 0.5)


def slow_scores(targets: np.ndarray, a: np.ndarray, b: np.ndarray) -> list[float]:
    """The definition, word for word: mean cosine with A less mean cosine with B."""
    return [sum(cosine(w, u) for u in a) / len(a) - sum(cosine(w, u) for u in b) / len(b) for w in targets]


# ---- scores


@given(seed=SEEDS, sizes=SIZES)
def test_scores_equal_the_definition(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    result = associate(x, y, a=a, b=b)
    np.testing.assert_allclose(result.scores_x, slow_scores(x, a, b), atol=1e-12)
    np.testing.assert_allclose(result.scores_y, slow_scores(y, a, b), atol=1e-12)


def test_a_case_computed_by_hand():
    # unit vectors of A: (1, 0), (0.8, 0.6), mean (0.9, 0.3); of B: mean (0.3, 0.9); the difference is (0.6, -0.6)
    x, y = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [-5.0, 0.0]])
    a, b = np.array([[7.0, 0.0], [8.0, 6.0]]), np.array([[0.0, 0.5], [0.03, 0.04]])
    result = associate(x, y, a=a, b=b)
    np.testing.assert_allclose(result.scores_x, [0.6, 0.6 * 0.6 - 0.6 * 0.8])
    np.testing.assert_allclose(result.scores_y, [-0.6, -0.6])
    assert result.statistic == pytest.approx(0.24 - -0.6)
    # mean -0.18; squared deviations 0.6084 + 0.0036 + 0.1764 + 0.1764 = 0.9648, over 3
    assert result.effect_size == pytest.approx(0.84 / 0.3216**0.5)
    assert result.spread == pytest.approx(1.2)


def test_attributes_count_equally_however_many_they_are():
    # the two attributes of A point east, B's point east, north and west; their mean cosine with east is 0
    east, north = np.array([[1.0, 0.0]] * 2), np.array([[0.0, 1.0]] * 2)
    result = associate(east, north, a=east, b=np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    np.testing.assert_allclose(result.scores_x, [1.0, 1.0])
    np.testing.assert_allclose(result.scores_y, [-1 / 3, -1 / 3])


@given(seed=SEEDS, sizes=SIZES)
def test_scores_lie_within_two_of_zero(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    assert np.abs(associate(x, y, a=a, b=b).joint).max() <= 2 + 1e-12


def test_the_largest_score_is_two():
    east = np.array([[1.0, 0.0]] * 2)
    assert associate(east, -east, a=east, b=-east).scores_x == pytest.approx(2.0)


@given(seed=SEEDS, sizes=SIZES)
def test_unit_sets_give_the_same_scores_from_vectors_of_length_1(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    units = UnitSets.of(x, y, a=a, b=b)
    for unit, given_set in zip((units.x, units.y, units.a, units.b), (x, y, a, b), strict=True):
        np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0, rtol=1e-15)
        np.testing.assert_allclose(unit * np.linalg.norm(given_set, axis=1, keepdims=True), given_set, rtol=1e-14)
    np.testing.assert_array_equal(units.association.joint, associate(x, y, a=a, b=b).joint)


# ---- effect sizes


@given(seed=SEEDS, sizes=SIZES)
def test_effect_size_is_the_difference_of_means_over_the_sample_deviation_of_all(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    joint = np.array(slow_scores(x, a, b) + slow_scores(y, a, b))
    expected = (joint[: len(x)].mean() - joint[len(x) :].mean()) / np.std(joint, ddof=1)
    assert associate(x, y, a=a, b=b).effect_size == pytest.approx(expected, abs=1e-10)


def test_targets_of_unequal_number_are_compared_by_their_means():
    result = Association(scores_x=np.array([1.0, 2.0, 3.0]), scores_y=np.array([1.0]))
    assert result.statistic == 1.0
    assert result.effect_size == pytest.approx(1.0 / np.std([1.0, 2.0, 3.0, 1.0], ddof=1))


@given(seed=SEEDS, n=st.integers(2, 8))
def test_effect_size_of_equal_sets_stays_within_its_bound(seed, n):
    # of 2n scores: |d| is largest where X and Y have one score each, 2 / sqrt(2n / (2n - 1)) < 2
    x, y, a, b = sets(seed, (n, n, 4, 4))
    assert abs(associate(x, y, a=a, b=b).effect_size) <= 2 * ((2 * n - 1) / (2 * n)) ** 0.5 + 1e-12


# ---- laws


@given(seed=SEEDS, sizes=SIZES)
def test_swapping_the_targets_negates_the_effect(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    result, swapped = associate(x, y, a=a, b=b), associate(y, x, a=a, b=b)
    assert swapped.effect_size == pytest.approx(-result.effect_size, abs=1e-12)
    assert result.swapped().effect_size == pytest.approx(-result.effect_size, abs=1e-12)
    np.testing.assert_array_equal(result.swapped().scores_x, result.scores_y)


@given(seed=SEEDS)
def test_swapping_the_attributes_negates_every_score(seed):
    x, y, a, b = sets(seed, (4, 6, 3, 5))
    np.testing.assert_allclose(associate(x, y, a=b, b=a).joint, -associate(x, y, a=a, b=b).joint, atol=1e-12)


@given(
    seed=SEEDS,
    role=st.sampled_from("xyab"),
    row=st.integers(0, 4),
    factor=st.one_of(
        st.sampled_from([1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300]), st.floats(-30, 30).map(lambda e: 10.0**e)
    ),
)
def test_the_length_of_one_vector_changes_nothing(seed, role, row, factor):
    chosen = dict(zip("xyab", sets(seed), strict=True))
    expected = associate(chosen["x"], chosen["y"], a=chosen["a"], b=chosen["b"]).joint
    chosen[role] = chosen[role].copy()
    chosen[role][row] *= factor
    found = associate(chosen["x"], chosen["y"], a=chosen["a"], b=chosen["b"]).joint
    np.testing.assert_allclose(found, expected, atol=1e-14)


@given(seed=SEEDS, exponents=st.tuples(*[st.floats(-6, 6)] * 4))
def test_the_lengths_of_all_vectors_change_nothing(seed, exponents):
    originals = sets(seed)
    x, y, a, b = (
        v * 10.0 ** (e * np.linspace(-1, 1, len(v))[:, None]) for v, e in zip(originals, exponents, strict=True)
    )
    expected = associate(originals[0], originals[1], a=originals[2], b=originals[3])
    np.testing.assert_allclose(associate(x, y, a=a, b=b).joint, expected.joint, atol=1e-14)


@given(seed=SEEDS)
def test_turning_one_target_around_negates_its_score_alone(seed):
    x, y, a, b = sets(seed)
    turned = x.copy()
    turned[2] *= -3.0
    before, after = associate(x, y, a=a, b=b), associate(turned, y, a=a, b=b)
    expected = before.scores_x * np.array([1.0, 1.0, -1.0, 1.0, 1.0])
    np.testing.assert_allclose(after.scores_x, expected, atol=1e-14)
    np.testing.assert_array_equal(after.scores_y, before.scores_y)


@given(seed=SEEDS)
def test_the_order_of_the_stimuli_changes_no_effect(seed):
    x, y, a, b = sets(seed, (5, 3, 4, 6))
    shuffled = associate(x[::-1], y[::-1], a=a[::-1], b=b[::-1])
    assert shuffled.effect_size == pytest.approx(associate(x, y, a=a, b=b).effect_size, abs=1e-12)


# ---- types


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_vectors_are_computed_in_float64(dtype):
    narrow = [v.astype(dtype) for v in sets(7, (4, 3, 5, 2))]
    x, y, a, b = narrow
    wide_x, wide_y, wide_a, wide_b = (v.astype(np.float64) for v in narrow)
    result = associate(x, y, a=a, b=b)
    assert result.scores_x.dtype == result.scores_y.dtype == np.float64
    np.testing.assert_array_equal(result.joint, associate(wide_x, wide_y, a=wide_a, b=wide_b).joint)


def test_the_largest_and_smallest_float32_values_have_scores():
    x, y, a, b = sets(4)
    limits = np.finfo(np.float32)
    x[0] *= float(limits.max) / np.abs(x[0]).max() * 0.999
    x[1] *= float(limits.tiny) / np.abs(x[1]).min()
    found = associate(x.astype(np.float32), y, a=a, b=b)
    np.testing.assert_allclose(found.joint, associate(x, y, a=a, b=b).joint, atol=1e-6)


def test_the_vectors_given_are_not_changed():
    given_sets = sets(3)
    kept = [v.copy() for v in given_sets]
    associate(given_sets[0], given_sets[1], a=given_sets[2], b=given_sets[3])
    for before, after in zip(kept, given_sets, strict=True):
        np.testing.assert_array_equal(before, after)


def test_noise_is_that_of_float64_only_where_all_vectors_are():
    wide, narrow, half = (np.ones((2, 3), dtype=dtype) for dtype in (np.float64, np.float32, np.float16))
    assert noise_of(wide, wide) == FLOAT64_NOISE
    assert noise_of(wide, narrow) == noise_of(narrow) == noise_of(half, wide) == FLOAT32_NOISE


@given(seed=SEEDS, d=st.sampled_from([50, 300, 1024]))
def test_rounding_to_float32_moves_no_score_by_more_than_its_noise(seed, d):
    x, y, a, b = (vectors(6, seed + i, d) for i in range(4))
    narrow_x, narrow_y, narrow_a, narrow_b = (v.astype(np.float32) for v in (x, y, a, b))
    moved = np.abs(associate(narrow_x, narrow_y, a=narrow_a, b=narrow_b).joint - associate(x, y, a=a, b=b).joint)
    assert moved.max() < FLOAT32_NOISE.resolution


@given(seed=SEEDS, d=st.sampled_from([3, 50, 300, 1024]))
def test_targets_that_are_all_alike_have_less_than_the_least_spread(seed, d):
    one, a, b = vectors(1, seed, d), vectors(6, seed + 1, d), vectors(6, seed + 2, d)
    lengths = np.random.default_rng(seed).uniform(0.1, 10, size=(8, 1))
    assert associate(one * lengths[:4], one * lengths[4:], a=a, b=b).spread < FLOAT64_NOISE.min_spread
    narrow = (one * lengths).astype(np.float32)
    assert associate(narrow[:4], narrow[4:], a=a, b=b).spread < FLOAT32_NOISE.min_spread


# ---- errors


def broken(role: str, change) -> dict[str, np.ndarray]:
    """Five good vectors a set, one set changed."""
    good = dict(zip("xyab", sets(0), strict=True))
    good[role] = change(good[role])
    return good


def with_vector(row: int, value: float):
    def change(v: np.ndarray) -> np.ndarray:
        v = v.copy()
        v[row] = value
        return v

    return change


FAULTS = [(0.0, "is zero"), (np.nan, "not finite"), (np.inf, "not finite"), (-np.inf, "not finite")]


@pytest.mark.parametrize("role", "xyab")
@pytest.mark.parametrize(("value", "fault"), FAULTS)
def test_a_vector_that_has_no_direction_is_named_by_its_number(role, value, fault):
    chosen = broken(role, with_vector(3, value))
    expected = rf"set {role.upper()}: vector 3 of 5 .*{fault}, but cosine needs a finite norm above 0; .*encode it"
    with pytest.raises(AssociationError, match=expected):
        associate(chosen["x"], chosen["y"], a=chosen["a"], b=chosen["b"])


@pytest.mark.parametrize("role", "xyab")
@pytest.mark.parametrize(("value", "fault"), FAULTS)
def test_a_vector_that_has_no_direction_is_named_by_its_label(role, value, fault):
    chosen = broken(role, with_vector(3, value))
    labels = {name: [f"{name}{i}" for i in range(5)] for name in "XYAB"}
    expected = rf"set {role.upper()}: vector 3 of 5 \('{role.upper()}3'\) .*{fault}"
    with pytest.raises(AssociationError, match=expected):
        associate(chosen["x"], chosen["y"], a=chosen["a"], b=chosen["b"], labels=labels)


def test_one_coordinate_that_is_not_a_number_is_enough():
    x, y, a, b = sets(0)
    y[2, 4] = np.nan
    with pytest.raises(AssociationError, match="set Y: vector 2 of 5 holds values that are not finite"):
        associate(x, y, a=a, b=b)


def test_the_first_of_several_is_named_and_the_others_are_counted():
    x, y, a, b = sets(0)
    b[[1, 2, 4]] = 0
    with pytest.raises(AssociationError, match="set B: vector 1 of 5 is zero, and 2 more"):
        associate(x, y, a=a, b=b)


@pytest.mark.parametrize("role", "xyab")
@pytest.mark.parametrize(
    ("change", "shape", "told"),
    [
        (lambda v: v[:0], r"\(0, 7\)", "needs two vectors at least; add stimuli"),
        (lambda v: v[:1], r"\(1, 7\)", "needs two vectors at least; add stimuli"),
        (lambda v: v[:, :6], r"\(5, 6\)", "all need one dimension d; take vectors of one encoder"),
        (lambda v: v[0], r"\(7,\)", r"each needs shape \(n, d\) with d > 0"),
        (lambda v: v[None], r"\(1, 5, 7\)", r"each needs shape \(n, d\) with d > 0"),
        (lambda v: v[:, :0], r"\(5, 0\)", r"each needs shape \(n, d\) with d > 0"),
    ],
    ids=["empty", "one vector", "other dimension", "one axis", "three axes", "no dimension"],
)
def test_a_set_of_the_wrong_shape_is_refused_with_all_shapes(role, change, shape, told):
    chosen = broken(role, change)
    with pytest.raises(AssociationError, match=rf"{role.upper()} {shape}.*{told}") as caught:
        associate(chosen["x"], chosen["y"], a=chosen["a"], b=chosen["b"])
    assert str(caught.value).count("(5, 7)") == 3


def test_all_sets_that_are_too_small_are_named():
    x, y, a, b = sets(0)
    with pytest.raises(AssociationError, match="X, B needs two"):
        associate(x[:1], y, a=a, b=b[:1])


def test_a_label_in_both_x_and_y_is_named_and_the_others_are_counted():
    x, y, a, b = sets(0)
    labels = {"X": ["he", "him", "his", "man", "boy"], "Y": ["she", "her", "his", "woman", "boy"]}
    with pytest.raises(AssociationError, match=r"'boy' \(and 1 more\) stands in both X and Y"):
        associate(x, y, a=a, b=b, labels=labels)


def test_a_label_may_stand_twice_in_one_set_and_in_a_target_and_an_attribute():
    x, y, a, b = sets(0)
    labels = {"X": ["he"] * 5, "Y": ["she"] * 5, "A": ["he"] * 5, "B": ["he"] * 5}
    expected = associate(x, y, a=a, b=b).joint
    np.testing.assert_array_equal(associate(x, y, a=a, b=b, labels=labels).joint, expected)


def test_labels_of_the_wrong_number_are_refused():
    x, y, a, b = sets(0)
    x[3] = 0
    with pytest.raises(AssociationError):
        associate(x, y, a=a, b=b, labels={"X": ["he"]})


def test_the_error_is_also_a_value_error():
    assert issubclass(AssociationError, ValueError)
    assert issubclass(AssociationError, DistseatError)
