"""Bootstrap intervals of d: against scipy's, against loops over repeated words, and where there is little to draw."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from distseat.statistics import (
    Association,
    Attributes,
    Interval,
    Resamples,
    UnitSets,
    effect_size_interval,
    group_means,
)
from distseat.statistics.bootstrap import bca, effect_sizes, percentile

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=25, deadline=None)


def seed_of(number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(number)


def scored(x, y) -> Association:
    return Association(scores_x=np.array(x, dtype=np.float64), scores_y=np.array(y, dtype=np.float64))


def words_of(seed: int, n_x: int = 12, n_y: int = 9) -> Association:
    """Skewed scores, so that BCa and percentile intervals lie apart."""
    rng = np.random.default_rng(seed)
    return scored(0.3 + 0.2 * rng.exponential(size=n_x), 0.2 * rng.normal(size=n_y))


def effect_size(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
    joint = np.concatenate([x, y], axis=axis)
    return (x.mean(axis=axis) - y.mean(axis=axis)) / joint.std(axis=axis, ddof=1)


def scipys(words: Association, method: str, *, seed: int, n_resamples: int = 9_999, level: float = 0.95):
    return stats.bootstrap(
        (words.scores_x, words.scores_y),
        effect_size,
        n_resamples=n_resamples,
        confidence_level=level,
        method=method,
        vectorized=True,
        rng=np.random.default_rng(seed),
    )


def drawn_for(words: Association, seed: int, n_resamples: int = 9_999) -> Resamples:
    sizes = len(words.scores_x), len(words.scores_y)
    return Resamples.draw(sizes, seed=seed_of(seed), n_resamples=n_resamples)


def jackknifed(words: Association) -> list[np.ndarray]:
    sizes = len(words.scores_x), len(words.scores_y)
    return [effect_sizes(words, Resamples.jackknife(sizes, i)) for i in range(2)]


# ---- against scipy


@FEW
@given(seed=SEEDS, n_x=st.integers(8, 15), n_y=st.integers(8, 15), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_on_one_set_of_draws_the_bca_interval_is_scipys(seed, n_x, n_y, level):
    words = words_of(seed, n_x, n_y)
    theirs = scipys(words, "BCa", seed=seed, n_resamples=499, level=level)
    found = bca(theirs.bootstrap_distribution, words.effect_size, jackknifed(words), level=level)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), abs=1e-9)


@FEW
@given(seed=SEEDS, n_x=st.integers(4, 15), n_y=st.integers(4, 15), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_on_one_set_of_draws_the_percentile_interval_is_scipys(seed, n_x, n_y, level):
    words = words_of(seed, n_x, n_y)
    theirs = scipys(words, "percentile", seed=seed, n_resamples=499, level=level)
    found = percentile(theirs.bootstrap_distribution, level=level)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), abs=1e-9)


@pytest.mark.parametrize(("ours", "scipys_name"), [("bca", "BCa"), ("percentile", "percentile")])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intervals_on_draws_of_our_own_are_near_scipys(seed, ours, scipys_name):
    words = words_of(seed)
    found = effect_size_interval(words, drawn_for(words, seed), method=ours)
    theirs = scipys(words, scipys_name, seed=seed).confidence_interval
    # the error of a 2.5% quantile of 9,999 draws of deviation 0.2 is some 0.006; of the difference of two, 0.008
    assert (found.low, found.high) == pytest.approx(tuple(theirs), abs=0.035)


def test_bca_and_percentile_intervals_differ_on_skewed_scores():
    words = words_of(1)
    drawn = drawn_for(words, 1)
    one, other = (effect_size_interval(words, drawn, method=method) for method in ("bca", "percentile"))
    assert abs(one.low - other.low) + abs(one.high - other.high) > 0.05


def test_the_drawn_effect_sizes_have_the_law_of_scipys():
    words = words_of(4)
    theirs = scipys(words, "percentile", seed=1).bootstrap_distribution
    ours = effect_sizes(words, drawn_for(words, 1))
    assert stats.ks_2samp(ours, theirs, method="asymp").pvalue > 1e-4


# ---- effect sizes of resamples


@FEW
@given(seed=SEEDS, n_x=st.integers(2, 8), n_y=st.integers(2, 8))
def test_effect_sizes_are_those_of_the_repeated_words(seed, n_x, n_y):
    words = words_of(seed, n_x, n_y)
    drawn = drawn_for(words, seed, 50)
    for weights_x, weights_y, found in zip(*drawn.weights, effect_sizes(words, drawn), strict=True):
        x = np.repeat(words.scores_x, weights_x.astype(int))
        y = np.repeat(words.scores_y, weights_y.astype(int))
        if len({*x, *y}) == 1:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(effect_size(x, y), abs=1e-8)


@FEW
@given(seed=SEEDS, offset=st.floats(-2, 2), scale=st.sampled_from([1e-6, 1e-3, 1.0]))
def test_offset_and_scale_of_all_scores_change_no_interval(seed, offset, scale):
    words = words_of(seed)
    moved = scored(offset + scale * words.scores_x, offset + scale * words.scores_y)
    drawn = drawn_for(words, seed, 999)
    expected, found = effect_size_interval(words, drawn), effect_size_interval(moved, drawn)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


@FEW
@given(seed=SEEDS)
def test_swapping_x_and_y_turns_the_interval_around(seed):
    words = words_of(seed)
    drawn = drawn_for(words, seed, 999)
    found = effect_size_interval(words, drawn)
    swapped = effect_size_interval(words.swapped(), Resamples(drawn.weights[::-1]))
    assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low), abs=1e-9)


@FEW
@given(seed=SEEDS, method=st.sampled_from(["bca", "percentile"]))
def test_a_higher_level_holds_the_lower_one(seed, method):
    words = words_of(seed)
    drawn = drawn_for(words, seed, 999)
    inner, outer = (effect_size_interval(words, drawn, method=method, level=level) for level in (0.8, 0.95))
    assert outer.low <= inner.low < inner.high <= outer.high


# ---- draws


@given(seed=SEEDS, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_each_set_is_drawn_anew_at_its_own_size(seed, sizes):
    drawn = Resamples.draw(tuple(sizes), seed=seed_of(seed), n_resamples=30)
    assert [weights.shape for weights in drawn.weights] == [(30, n) for n in sizes]
    for weights, n in zip(drawn.weights, sizes, strict=True):
        assert (weights.sum(axis=1) == n).all()
        assert (weights >= 0).all()
        assert (weights == np.rint(weights)).all()


def test_each_word_is_drawn_as_often_as_any_other_and_with_replacement():
    (weights,) = Resamples.draw((5,), seed=seed_of(0), n_resamples=20_000).weights
    for word in range(5):  # binomial: five draws of chance 1/5
        counts = np.bincount(weights[:, word].astype(int), minlength=6)
        expected = stats.binom.pmf(np.arange(6), 5, 0.2) * 20_000
        assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())
        assert counts[5] > 0


def test_the_same_seed_draws_the_same_and_another_seed_does_not():
    one, again, other = (Resamples.draw((6, 7), seed=seed_of(seed)) for seed in (1, 1, 2))
    for mine, same, others in zip(one.weights, again.weights, other.weights, strict=True):
        np.testing.assert_array_equal(mine, same)
        assert not np.array_equal(mine, others)


def test_sets_of_one_size_are_drawn_apart():
    x, y = Resamples.draw((6, 6), seed=seed_of(1)).weights
    assert not np.array_equal(x, y)
    assert abs(np.corrcoef(x[:, 0], y[:, 0])[0, 1]) < 0.05


def test_a_seed_can_be_used_twice():
    seed = seed_of(3)
    one, again = (Resamples.draw((4, 4), seed=seed, n_resamples=20).weights[0] for _ in range(2))
    np.testing.assert_array_equal(one, again)


@pytest.mark.parametrize("of", [0, 1, 2])
def test_the_jackknife_leaves_out_each_word_of_one_set(of):
    sizes = (3, 4, 2)
    weights = Resamples.jackknife(sizes, of).weights
    for number, (found, n) in enumerate(zip(weights, sizes, strict=True)):
        expected = 1 - np.eye(n) if number == of else np.ones((sizes[of], n))
        np.testing.assert_array_equal(found, expected)


@FEW
@given(seed=SEEDS)
def test_the_jackknifed_effect_sizes_are_those_without_each_word(seed):
    words = words_of(seed, 5, 4)
    left_x, left_y = jackknifed(words)
    x, y = words.scores_x, words.scores_y
    np.testing.assert_allclose(left_x, [effect_size(np.delete(x, i), y) for i in range(5)], atol=1e-9)
    np.testing.assert_allclose(left_y, [effect_size(x, np.delete(y, i)) for i in range(4)], atol=1e-9)


# ---- attributes drawn as well


def sentence_level(seed: int) -> tuple[UnitSets, dict[str, list[str]]]:
    """Vectors of sentences, and the word of each; words of unlike numbers of sentences, and interleaved."""
    rng = np.random.default_rng(seed)
    words = {
        "x": ["x0", "x1", "x0", "x2", "x3", "x1"],
        "y": ["y0", "y1", "y2", "y1", "y1"],
        "a": ["a0", "a1", "a1", "a0", "a2", "a1", "a1"],
        "b": ["b0", "b0", "b1", "b2", "b3", "b0"],
    }
    x, y, a, b = (
        rng.normal(size=(len(words[name]), 6)) + shift for name, shift in zip("xyab", (1, 0, 1, 0), strict=True)
    )
    return UnitSets.of(x, y, a=a, b=b), words


def attributes_of(units: UnitSets, words: dict[str, list[str]]) -> Attributes:
    cosines = {
        f"cosines_{t}{c}": group_means(group_means(getattr(units, t) @ getattr(units, c).T, words[t])[1].T, words[c])[
            1
        ].T
        for t, c in product("xy", "ab")
    }
    counts = {
        f"stimuli_{c}": np.array([words[c].count(word) for word in dict.fromkeys(words[c])], dtype=np.float64)
        for c in "ab"
    }
    return Attributes(**cosines, **counts)


def word_scores(units: UnitSets, words: dict[str, list[str]]) -> Association:
    plain = units.association
    return scored(group_means(plain.scores_x, words["x"])[1], group_means(plain.scores_y, words["y"])[1])


@FEW
@given(seed=SEEDS)
def test_at_weights_of_one_attribute_words_give_the_association_of_their_sentences(seed):
    units, words = sentence_level(seed)
    expected = word_scores(units, words)
    scores_x, scores_y = attributes_of(units, words).scores(np.ones((2, 3)), np.ones((2, 4)))
    assert (scores_x.shape, scores_y.shape) == ((2, 4), (2, 3))
    for row in range(2):
        np.testing.assert_allclose(scores_x[row], expected.scores_x, atol=1e-12)
        np.testing.assert_allclose(scores_y[row], expected.scores_y, atol=1e-12)


def slow_effect_size(units: UnitSets, words: dict[str, list[str]], weights: dict[str, np.ndarray]) -> float:
    """d over drawn words, each as often as drawn, against all sentences of the drawn attribute words."""
    cosines = {(t, c): getattr(units, t) @ getattr(units, c).T for t, c in product("xy", "ab")}
    repeated = {c: [int(weights[c][int(word[1])]) for word in words[c]] for c in "ab"}

    def score(t: str, word: str) -> float:
        of_word = [i for i, its in enumerate(words[t]) if its == word]
        with_a, with_b = (np.repeat(cosines[t, c][of_word].mean(axis=0), repeated[c]).mean() for c in "ab")
        return with_a - with_b

    x, y = (np.repeat([score(t, word) for word in dict.fromkeys(words[t])], weights[t].astype(int)) for t in "xy")
    return float(effect_size(x, y))


def test_drawing_all_four_sets_equals_a_loop_over_repeated_sentences():
    units, words = sentence_level(11)
    drawn = Resamples.draw((4, 3, 3, 4), seed=seed_of(5), n_resamples=200)
    found = effect_sizes(word_scores(units, words), drawn, attributes_of(units, words))
    for row, d in enumerate(found):
        weights = {name: of_set[row] for name, of_set in zip("xyab", drawn.weights, strict=True)}
        assert d == pytest.approx(slow_effect_size(units, words, weights), abs=1e-9)


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_drawing_all_four_sets_gives_the_interval_of_a_loop(method):
    units, words = sentence_level(12)
    association, attributes = word_scores(units, words), attributes_of(units, words)
    sizes = (4, 3, 3, 4)
    drawn = Resamples.draw(sizes, seed=seed_of(6), n_resamples=300)

    def looped(resamples: Resamples) -> np.ndarray:
        rows = zip(*resamples.weights, strict=True)
        return np.array([slow_effect_size(units, words, dict(zip("xyab", row, strict=True))) for row in rows])

    left_out = [looped(Resamples.jackknife(sizes, i)) for i in range(4)]
    expected = {
        "bca": bca(looped(drawn), association.effect_size, left_out, level=0.9),
        "percentile": percentile(looped(drawn), level=0.9),
    }[method]
    found = effect_size_interval(association, drawn, attributes=attributes, method=method, level=0.9)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-8)


def test_attributes_that_are_all_alike_add_nothing_to_the_draw_of_the_targets():
    words = words_of(3, 5, 6)
    attributes = Attributes(
        cosines_xa=np.repeat(words.scores_x[:, None], 4, axis=1),
        cosines_xb=np.zeros((5, 3)),
        cosines_ya=np.repeat(words.scores_y[:, None], 4, axis=1),
        cosines_yb=np.zeros((6, 3)),
        stimuli_a=np.array([1.0, 7.0, 2.0, 1.0]),
        stimuli_b=np.ones(3),
    )
    drawn = Resamples.draw((5, 6, 4, 3), seed=seed_of(0), n_resamples=500)
    np.testing.assert_allclose(effect_sizes(words, drawn, attributes), effect_sizes(words, drawn), atol=1e-9)
    found, expected = (effect_size_interval(words, drawn, attributes=given) for given in (attributes, None))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


# ---- little to draw


@pytest.mark.filterwarnings("error")
@given(
    x=st.lists(st.integers(0, 2), min_size=2, max_size=4),
    y=st.lists(st.integers(0, 2), min_size=2, max_size=4),
    method=st.sampled_from(["bca", "percentile"]),
    seed=SEEDS,
)
def test_few_and_partly_equal_scores_give_numbers_and_no_warning(x, y, method, seed):
    if len({*x, *y}) == 1:
        x = [3, *x[1:]]
    words = scored(x, y)
    found = effect_size_interval(words, drawn_for(words, seed, 200), method=method)
    if len({*x}) == len({*y}) == 1:  # each resample is the observed words
        assert np.isnan([found.low, found.high]).all()
    else:
        assert np.isfinite([found.low, found.high]).all()
        assert found.low < found.high


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["bca", "percentile"])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2], [0, 3]),
        ([5, 5, 5], [1, 2, 3]),
        ([1, 1, 1, 1], [0, 1, 1, 1]),
        ([1, 2], [0]),
        ([1], [0, 2, 3]),
    ],
)
def test_sets_of_two_and_equal_scores_give_numbers_and_no_warning(x, y, method):
    words = scored(x, y)
    found = effect_size_interval(words, drawn_for(words, 0), method=method)
    assert np.isfinite([found.low, found.high]).all()
    assert found.low <= found.high


@pytest.mark.filterwarnings("error")
def test_there_is_no_interval_where_no_resample_has_an_effect_size():
    nothing = np.full(10, np.nan)
    for found in (percentile(nothing, level=0.95), bca(nothing, 1.0, [nothing, nothing], level=0.95)):
        assert np.isnan([found.low, found.high]).all()


@pytest.mark.filterwarnings("error")
def test_resamples_without_an_effect_size_are_left_out():
    drawn = np.array([np.nan, 1.0, 2.0, 3.0, np.nan])
    assert percentile(drawn, level=0.5) == Interval(1.5, 2.5)
    found = bca(drawn, 2.0, [np.array([1.0, np.nan, 3.0]), np.array([2.0, 2.0])], level=0.5)
    assert (found.low, found.high) == pytest.approx((1.5, 2.5))  # no bias, no acceleration


@pytest.mark.filterwarnings("error")
def test_an_observed_value_outside_all_resamples_gives_their_rim():
    drawn = np.linspace(0, 1, 101)
    above = bca(drawn, 2.0, [np.zeros(3)], level=0.95)
    below = bca(drawn, -1.0, [np.zeros(3)], level=0.95)
    assert 0 <= below.low <= below.high < 0.1
    assert 0.9 < above.low <= above.high <= 1


def test_intervals_of_normal_scores_hold_the_true_effect_about_as_often_as_they_say():
    # X of mean 1, Y of mean 0, deviation 1: d is 1 over sqrt(1 + 1 / 4); 200 tests of 30 v 30
    rng = np.random.default_rng(0)
    drawn = Resamples.draw((30, 30), seed=seed_of(1), n_resamples=999)
    held = 0
    for _ in range(200):
        found = effect_size_interval(scored(rng.normal(size=30) + 1, rng.normal(size=30)), drawn)
        held += found.low < 1 / 1.25**0.5 < found.high
    assert 0.88 <= held / 200 <= 0.99


def test_the_scale_of_few_scores_changes_no_interval():
    # of 4 v 4 words, nearly a hundredth of all resamples are the observed words in another order
    for seed in range(5):
        words = words_of(seed, 4, 4)
        expected = effect_size_interval(words, drawn_for(words, seed))
        for factor in (0.03, 0.1, 3.0, 7.0):
            of_scaled = scored(factor * words.scores_x, factor * words.scores_y)
            found = effect_size_interval(of_scaled, drawn_for(words, seed))
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-6)


@pytest.mark.filterwarnings("error")
def test_one_word_a_side_gives_no_warning():
    words = scored([1], [0])
    effect_size_interval(words, drawn_for(words, 0))


@pytest.mark.filterwarnings("error")
def test_one_attribute_word_gives_no_warning():
    rng = np.random.default_rng(0)
    attributes = Attributes(
        cosines_xa=rng.normal(size=(3, 1)),
        cosines_xb=rng.normal(size=(3, 2)),
        cosines_ya=rng.normal(size=(3, 1)),
        cosines_yb=rng.normal(size=(3, 2)),
        stimuli_a=np.array([8.0]),
        stimuli_b=np.array([4.0, 4.0]),
    )
    words = scored(*(scores[0] for scores in attributes.scores(np.ones((1, 1)), np.ones((1, 2)))))
    effect_size_interval(words, Resamples.draw((3, 3, 1, 2), seed=seed_of(0)), attributes=attributes)
