"""Moments of a population of vectors, and vectors less what all of them share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distseat.statistics import Moments
from distseat.statistics.postprocessing import POSTPROCESSINGS

SEEDS = st.integers(0, 2**32 - 1)


def population(seed: int, n: int = 20, d: int = 6) -> np.ndarray:
    """Dimensions of unlike means and spreads, as those of a contextual layer are."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=d) + 10 * rng.normal(size=d)


@given(seed=SEEDS, n=st.integers(2, 30), dtype=st.sampled_from([np.float32, np.float64]))
def test_moments_are_those_of_numpy_in_float64(seed, n, dtype):
    vectors = population(seed, n).astype(dtype)
    found = Moments.of(vectors)
    assert found.mean.dtype == found.deviation.dtype == np.float64
    for column, mean, deviation in zip(vectors.T.astype(np.float64), found.mean, found.deviation, strict=True):
        assert mean == pytest.approx(sum(column) / n, rel=1e-12, abs=1e-12)
        assert deviation == pytest.approx((sum((column - sum(column) / n) ** 2) / n) ** 0.5, rel=1e-9)


def test_moments_of_a_case_computed_by_hand():
    found = Moments.of(np.array([[1.0, 5.0, -2.0], [3.0, 5.0, 2.0], [5.0, 5.0, 0.0]]))
    np.testing.assert_allclose(found.mean, [3.0, 5.0, 0.0])
    np.testing.assert_allclose(found.deviation, [(8 / 3) ** 0.5, 0.0, (8 / 3) ** 0.5])


@given(seed=SEEDS, n=st.integers(2, 30))
def test_centred_vectors_have_mean_0_and_keep_their_differences(seed, n):
    vectors = population(seed, n)
    found = Moments.of(vectors).apply(vectors, "center")
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(found - found[0], vectors - vectors[0], atol=1e-10)


@given(seed=SEEDS, n=st.integers(2, 30))
def test_standardized_vectors_have_mean_0_and_deviation_1(seed, n):
    vectors = population(seed, n)
    found = Moments.of(vectors).apply(vectors, "standardize")
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-7)
    np.testing.assert_allclose(found.std(axis=0), 1.0, rtol=1e-9)


@given(seed=SEEDS)
def test_the_units_of_a_dimension_change_no_standardized_vector(seed):
    vectors = population(seed)
    units = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, size=vectors.shape[1])
    found = Moments.of(vectors * units).apply(vectors * units, "standardize")
    np.testing.assert_allclose(found, Moments.of(vectors).apply(vectors, "standardize"), atol=1e-6)


def test_none_leaves_every_vector_as_it_is():
    vectors = population(0)
    vectors[:, 2] = 7.0
    found = Moments.of(vectors).apply(vectors.astype(np.float32), "none")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, vectors.astype(np.float32).astype(np.float64))


def test_vectors_outside_the_population_are_measured_by_it():
    moments = Moments.of(np.array([[1.0, 10.0], [3.0, 30.0]]))
    outside = np.array([[4.0, 20.0], [2.0, 0.0]])
    np.testing.assert_allclose(moments.apply(outside, "center"), [[2.0, 0.0], [0.0, -20.0]])
    np.testing.assert_allclose(moments.apply(outside, "standardize"), [[2.0, 0.0], [0.0, -2.0]])


@pytest.mark.filterwarnings("error")
@given(
    seed=SEEDS,
    value=st.sampled_from([0.1, -3.3e-5, 1e4, 7.123e-30]),
    how=st.sampled_from(["center", "standardize"]),
    n=st.integers(2, 200),
)
def test_a_dimension_that_is_constant_but_for_float32_rounding_becomes_0(seed, value, how, n):
    rng = np.random.default_rng(seed)
    vectors = population(seed, n).astype(np.float32)
    narrow = np.float32(value)
    vectors[:, 3] = [np.nextafter(narrow, np.float32(np.inf) * side) for side in rng.choice([-1, 1], size=n)]
    moments = Moments.of(vectors)
    assert moments.deviation[3] == 0
    assert (np.delete(moments.deviation, 3) > 0).all()
    found = moments.apply(vectors, how)
    assert (found[:, 3] == 0).all()
    assert np.abs(np.delete(found, 3, axis=1)).max() > 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", ["center", "standardize"])
def test_a_dimension_that_is_zero_everywhere_stays_0(how):
    vectors = population(0)
    vectors[:, 1] = 0
    found = Moments.of(vectors).apply(vectors, how)
    assert (found[:, 1] == 0).all()
    assert np.isfinite(found).all()


def test_a_small_spread_on_a_large_mean_is_kept():
    # a millionth of the mean is rounding, a ten-thousandth is not
    rng = np.random.default_rng(0)
    vectors = 1.0 + np.stack([rng.normal(size=100) * scale for scale in (1e-8, 1e-4)], axis=1)
    np.testing.assert_allclose(Moments.of(vectors).deviation, [0.0, 1e-4], rtol=0.3)


@pytest.mark.filterwarnings("error")
@given(seed=SEEDS, n=st.integers(1, 50), how=st.sampled_from(["center", "standardize"]))
def test_vectors_that_are_all_alike_become_zero(seed, n, how):
    vectors = np.repeat(population(seed, 1).astype(np.float32), n, axis=0)
    assert not Moments.of(vectors).apply(vectors, how).any()


@pytest.mark.parametrize("how", POSTPROCESSINGS)
def test_the_vectors_given_are_not_changed(how):
    vectors = population(0)
    kept = vectors.copy()
    moments = Moments.of(vectors)
    moments.apply(vectors, how)[:] = 0
    np.testing.assert_array_equal(vectors, kept)
