"""Association scores and effect sizes: the definition word for word, a case by hand, laws, and the errors' words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distseat.errors import AssociationError, DistseatError
from distseat.statistics import Association, associate

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(*[st.integers(1, 6)] * 4)


def vectors(n: int, seed: int, d: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def sets(seed: int, sizes: tuple[int, int, int, int] = (5, 5, 5, 5)) -> list[np.ndarray]:
    return [vectors(n, seed + i) for i, n in enumerate(sizes)]


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return sum(u * v) / (sum(u * u) ** 0.5 * sum(v * v) ** 0.5)


def slow_scores(targets: np.ndarray, a: np.ndarray, b: np.ndarray) -> list[float]:
    """The definition, word for word: mean cosine with A less mean cosine with B."""
    return [sum(cosine(w, u) for u in a) / len(a) - sum(cosine(w, u) for u in b) / len(b) for w in targets]


@given(seed=SEEDS, sizes=SIZES)
def test_scores_equal_the_definition(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    result = associate(x, y, a=a, b=b)
    np.testing.assert_allclose(result.scores_x, slow_scores(x, a, b), atol=1e-12)
    np.testing.assert_allclose(result.scores_y, slow_scores(y, a, b), atol=1e-12)


def test_a_case_computed_by_hand():
    # s((1,0)) = cos 0 - cos 90 = 1; s((3,4)) = 3/5 - 4/5 = -1/5; s((0,2)) = -1; s((-5,0)) = -1
    x, y = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [-5.0, 0.0]])
    a, b = np.array([[7.0, 0.0]]), np.array([[0.0, 0.5]])
    result = associate(x, y, a=a, b=b)
    np.testing.assert_allclose(result.scores_x, [1.0, -0.2])
    np.testing.assert_allclose(result.scores_y, [-1.0, -1.0])
    assert result.statistic == pytest.approx(0.4 - -1.0)
    # mean -0.3; squared deviations 1.69 + 0.01 + 0.49 + 0.49 = 2.68, over 3
    assert result.effect_size == pytest.approx(1.4 / (2.68 / 3) ** 0.5)
    assert result.spread == pytest.approx(2.0)


def test_attributes_count_equally_however_many_they_are():
    # one attribute of A points east, three of B: east, north, west; their mean cosine with east is 0
    east, north = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    result = associate(east, north, a=east, b=np.concatenate([east, north, -east]))
    np.testing.assert_allclose(result.scores_x, [1.0])
    np.testing.assert_allclose(result.scores_y, [-1 / 3])


@given(seed=SEEDS, sizes=st.tuples(st.integers(1, 9), st.integers(2, 9), st.integers(1, 6), st.integers(1, 6)))
def test_effect_size_is_the_difference_of_means_over_the_sample_deviation_of_all(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    joint = np.array(slow_scores(x, a, b) + slow_scores(y, a, b))
    expected = (joint[: len(x)].mean() - joint[len(x) :].mean()) / np.std(joint, ddof=1)
    assert associate(x, y, a=a, b=b).effect_size == pytest.approx(expected, abs=1e-10)


@given(seed=SEEDS, sizes=st.tuples(st.integers(1, 6), st.integers(2, 6), st.integers(1, 6), st.integers(1, 6)))
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


@given(seed=SEEDS, exponents=st.tuples(*[st.floats(-6, 6)] * 4))
def test_the_length_of_a_vector_changes_nothing(seed, exponents):
    originals = sets(seed)
    x, y, a, b = (
        v * 10.0 ** (e * np.linspace(-1, 1, len(v))[:, None]) for v, e in zip(originals, exponents, strict=True)
    )
    expected = associate(originals[0], originals[1], a=originals[2], b=originals[3])
    np.testing.assert_allclose(associate(x, y, a=a, b=b).joint, expected.joint, atol=1e-12)


@given(seed=SEEDS)
def test_the_order_of_the_stimuli_changes_no_effect(seed):
    x, y, a, b = sets(seed, (5, 3, 4, 6))
    shuffled = associate(x[::-1], y[::-1], a=a[::-1], b=b[::-1])
    assert shuffled.effect_size == pytest.approx(associate(x, y, a=a, b=b).effect_size, abs=1e-12)


@given(seed=SEEDS, sizes=SIZES)
def test_scores_lie_within_two_of_zero(seed, sizes):
    x, y, a, b = sets(seed, sizes)
    assert np.abs(associate(x, y, a=a, b=b).joint).max() <= 2 + 1e-12


def test_the_largest_score_is_two():
    east = np.array([[1.0, 0.0]])
    assert associate(east, -east, a=east, b=-east).scores_x == pytest.approx(2.0)


def test_targets_of_unequal_number_are_compared_by_their_means():
    result = Association(scores_x=np.array([1.0, 2.0, 3.0]), scores_y=np.array([1.0]))
    assert result.statistic == 1.0
    assert result.effect_size == pytest.approx(1.0 / np.std([1.0, 2.0, 3.0, 1.0], ddof=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_narrow_vectors_are_computed_in_float64(dtype):
    narrow = [v.astype(dtype) for v in sets(7, (4, 3, 5, 2))]
    x, y, a, b = narrow
    wide_x, wide_y, wide_a, wide_b = (v.astype(np.float64) for v in narrow)
    result = associate(x, y, a=a, b=b)
    assert result.scores_x.dtype == result.scores_y.dtype == np.float64
    np.testing.assert_array_equal(result.joint, associate(wide_x, wide_y, a=wide_a, b=wide_b).joint)


def test_the_vectors_given_are_not_changed():
    given_sets = sets(3)
    kept = [v.copy() for v in given_sets]
    associate(given_sets[0], given_sets[1], a=given_sets[2], b=given_sets[3])
    for before, after in zip(kept, given_sets, strict=True):
        np.testing.assert_array_equal(before, after)


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


@pytest.mark.parametrize("role", "xyab")
@pytest.mark.parametrize(("value", "norm"), [(0.0, r"0\.0"), (np.nan, "nan"), (np.inf, "inf"), (-np.inf, "inf")])
def test_a_vector_that_has_no_direction_is_named(role, value, norm):
    chosen = broken(role, with_vector(3, value))
    expected = rf"set {role.upper()}: vector 3 of 5 has norm {norm}, .*finite norm above 0; .*encode it again"
    with pytest.raises(AssociationError, match=expected):
        associate(chosen["x"], chosen["y"], a=chosen["a"], b=chosen["b"])


def test_one_coordinate_that_is_not_a_number_is_enough():
    x, y, a, b = sets(0)
    y[2, 4] = np.nan
    with pytest.raises(AssociationError, match="set Y: vector 2 of 5 has norm nan"):
        associate(x, y, a=a, b=b)


@pytest.mark.parametrize("role", "xyab")
@pytest.mark.parametrize(
    ("change", "shape"),
    [
        (lambda v: v[:0], r"\(0, 7\)"),
        (lambda v: v[:, :6], r"\(5, 6\)"),
        (lambda v: v[0], r"\(7,\)"),
        (lambda v: v[None], r"\(1, 5, 7\)"),
    ],
    ids=["empty", "other dimension", "one axis", "three axes"],
)
def test_a_set_of_the_wrong_shape_is_refused_with_all_shapes(role, change, shape):
    chosen = broken(role, change)
    expected = rf"'{role.upper()}': {shape}.*\(n, d\) with n > 0 and one d for all; check their encoding"
    with pytest.raises(AssociationError, match=expected):
        associate(chosen["x"], chosen["y"], a=chosen["a"], b=chosen["b"])


def test_the_error_is_also_a_value_error():
    assert issubclass(AssociationError, ValueError)
    assert issubclass(AssociationError, DistseatError)
