"""WEFAT: the normalised association of single words, its fit to a property, and the errors' words."""

from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from distseat import wefat
from distseat.errors import AssociationError

SEEDS = st.integers(0, 2**32 - 1)


def sets(seed: int, n_words: int = 6, n_a: int = 4, n_b: int = 5, d: int = 7) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for n in (n_words, n_a, n_b)]


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return sum(u * v) / (sum(u * u) ** 0.5 * sum(v * v) ** 0.5)


def slow_association(words: np.ndarray, a: np.ndarray, b: np.ndarray) -> list[float]:
    """Caliskan et al. (2017), eq. 4, word by word."""
    found = []
    for word in words:
        with_a, with_b = [cosine(word, u) for u in a], [cosine(word, u) for u in b]
        found.append((mean(with_a) - mean(with_b)) / stdev(with_a + with_b))
    return found


def test_a_case_computed_by_hand():
    # cosines of east with A: 1, 0.8; with B: 0, 0.6; all four: mean 0.6, squared deviations 0.56 over 3
    W = np.array([[2.0, 0.0], [3.0, 3.0], [0.0, 0.1]])
    A, B = np.array([[1.0, 0.0], [4.0, 3.0]]), np.array([[0.0, 5.0], [0.3, 0.4]])
    found = wefat(W, A, B)
    expected = 0.6 / (0.56 / 3) ** 0.5
    np.testing.assert_allclose(found.association, [expected, 0.0, -expected], atol=1e-12)
    assert found.fit is None


@given(seed=SEEDS, n_words=st.integers(1, 5), n_a=st.integers(2, 5), n_b=st.integers(2, 5))
def test_association_equals_the_definition(seed, n_words, n_a, n_b):
    W, A, B = sets(seed, n_words, n_a, n_b)
    np.testing.assert_allclose(wefat(W, A, B).association, slow_association(W, A, B), atol=1e-10)


@given(seed=SEEDS, exponents=st.lists(st.integers(-200, 200), min_size=15, max_size=15))
def test_the_lengths_of_vectors_change_nothing(seed, exponents):
    W, A, B = sets(seed)
    scaled = np.concatenate([W, A, B]) * (10.0 ** np.array(exponents))[:, None]
    values = np.arange(6.0)
    before, after = wefat(W, A, B, values=values), wefat(scaled[:6], scaled[6:10], scaled[10:], values=values)
    np.testing.assert_allclose(after.association, before.association, atol=1e-11)
    assert after.fit.pearson_r == pytest.approx(before.fit.pearson_r, abs=1e-9)


@given(seed=SEEDS)
def test_swapping_the_attributes_negates_association_and_correlation(seed):
    W, A, B = sets(seed)
    values = np.random.default_rng(seed).uniform(0, 100, size=6)
    before, after = wefat(W, A, B, values=values), wefat(W, B, A, values=values)
    np.testing.assert_allclose(after.association, -before.association, atol=1e-11)
    assert after.fit.pearson_r == pytest.approx(-before.fit.pearson_r, abs=1e-9)
    assert after.fit.pearson_p == pytest.approx(before.fit.pearson_p, rel=1e-6)


@given(seed=SEEDS, n_words=st.integers(4, 30))
def test_the_fit_is_that_of_numpy_and_scipy(seed, n_words):
    W, A, B = sets(seed, n_words)
    values = np.random.default_rng(seed + 1).uniform(0, 100, size=n_words)
    found = wefat(W, A, B, values=values.tolist())
    slope, intercept = np.polynomial.Polynomial.fit(values, found.association, 1).convert().coef[::-1]
    pearson, spearman = stats.pearsonr(values, found.association), stats.spearmanr(values, found.association)
    assert found.fit.slope == pytest.approx(slope, abs=1e-10)
    assert found.fit.intercept == pytest.approx(intercept, abs=1e-8)
    assert found.fit.pearson_r == pytest.approx(pearson.statistic, abs=1e-10)
    assert found.fit.pearson_p == pytest.approx(pearson.pvalue, rel=1e-6)
    assert (found.fit.spearman_rho, found.fit.spearman_p) == (spearman.statistic, spearman.pvalue)


@given(seed=SEEDS)
def test_units_of_the_property_change_the_slope_alone(seed):
    W, A, B = sets(seed)
    shares = np.random.default_rng(seed).uniform(0, 1, size=6)
    fraction, percent = (wefat(W, A, B, values=v).fit for v in (shares, 100 * shares))
    assert percent.slope == pytest.approx(fraction.slope / 100, rel=1e-9)
    assert percent.intercept == pytest.approx(fraction.intercept, abs=1e-10)
    assert percent.pearson_r == pytest.approx(fraction.pearson_r, abs=1e-10)
    assert percent.spearman_rho == fraction.spearman_rho


def test_float32_vectors_are_computed_in_float64():
    narrow = [v.astype(np.float32) for v in sets(5)]
    found = wefat(*narrow).association
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, wefat(*(v.astype(np.float64) for v in narrow)).association)


# ---- errors


@pytest.mark.parametrize(("value", "fault"), [(0.0, "is zero"), (np.nan, "not finite"), (np.inf, "not finite")])
def test_a_word_that_has_no_direction_is_named(value, fault):
    W, A, B = sets(0)
    W[4] = value
    with pytest.raises(AssociationError, match=rf"set W: vector 4 of 6 \('nurse'\) .*{fault}"):
        wefat(W, A, B, words=["a", "b", "c", "d", "nurse", "f"])


@pytest.mark.parametrize("name", ["A", "B"])
def test_an_attribute_that_has_no_direction_is_named_by_its_set_and_not_by_a_word(name):
    W, A, B = sets(0)
    {"A": A, "B": B}[name][1] = 0
    with pytest.raises(AssociationError, match=rf"set {name}: vector 1 of \d is zero"):
        wefat(W, A, B, words=list("abcdef"))


def test_a_word_that_has_one_cosine_with_all_attributes_is_named():
    W = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    with pytest.raises(AssociationError, match=r"set W: vector 1 \('baker'\) has one cosine with all attributes"):
        wefat(W, A, -A, words=["nurse", "baker"])


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        (((6, 7), (4, 7), (5, 6)), r"W \(6, 7\), A \(4, 7\), B \(5, 6\), but all need one dimension"),
        (((6, 7), (1, 7), (5, 7)), "A has 1 vectors and B 5; each needs two at least"),
        (((6, 7), (4, 7), (1, 7)), "A has 4 vectors and B 1; each needs two at least"),
        (((0, 7), (4, 7), (5, 7)), r"set W has shape \(0, 7\)"),
        (((7,), (4, 7), (5, 7)), r"set W has shape \(7,\)"),
        (((6, 7), (4, 0), (5, 7)), r"set A has shape \(4, 0\)"),
    ],
)
def test_sets_of_the_wrong_shape_are_refused_with_their_shape(shapes, told):
    rng = np.random.default_rng(0)
    with pytest.raises(AssociationError, match=told):
        wefat(*(rng.normal(size=shape) for shape in shapes))


@pytest.mark.parametrize(
    ("n_words", "values", "told"),
    [
        (6, [1.0] * 5, r"values of shape \(5,\) for 6 words"),
        (2, [1.0, 2.0], "for three words at least"),
        (6, [[1.0] * 6], r"values of shape \(1, 6\) for 6 words"),
        (6, 3.0, r"values of shape \(\) for 6 words"),
        (4, [2.0] * 4, "constant or not finite"),
        (4, [1.0, 2.0, np.nan, 3.0], "constant or not finite"),
        (4, [1.0, 2.0, np.inf, 3.0], "constant or not finite"),
    ],
)
def test_values_that_no_correlation_can_be_computed_from_are_refused(n_words, values, told):
    W, A, B = sets(0, n_words)
    with pytest.raises(AssociationError, match=told):
        wefat(W, A, B, values=values)


def test_words_that_all_have_one_association_have_no_correlation():
    W = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    A = np.array([[1.0, 0.0], [0.8, 0.6]])
    with pytest.raises(AssociationError, match="constant or not finite"):
        wefat(W, A, A[:, ::-1], values=[1.0, 2.0, 3.0])


def test_words_that_differ_in_length_alone_have_no_correlation():
    # ten draws: in one of them, rounding may happen to leave no difference
    for seed in range(10):
        W, A, B = sets(seed)
        alike = W[:1] * np.array([[1.0], [2.0], [3.0], [7.7], [0.3]])
        with pytest.raises(AssociationError):
            wefat(alike, A, B, values=[1.0, 2.0, 3.0, 4.0, 5.0])


def test_words_of_the_wrong_number_are_refused():
    W, A, B = sets(0)
    W[4] = 0
    with pytest.raises(AssociationError):
        wefat(W, A, B, words=["nurse"])


def test_words_may_be_an_array():
    W, A, B = sets(0)
    W[4] = 0
    with pytest.raises(AssociationError, match="nurse"):
        wefat(W, A, B, words=np.array(["a", "b", "c", "d", "nurse", "f"]))
