"""Two variants on the same words: the identity behind the test, its p by enumeration, its interval by a loop."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from distseat.errors import AssociationError
from distseat.statistics import Association, PairedDifference, WordScores, paired_difference

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=15, deadline=None)


def words_of(x, y) -> WordScores:
    association = Association(scores_x=np.array(x, dtype=np.float64), scores_y=np.array(y, dtype=np.float64))
    return WordScores(
        words_x=tuple(f"x{i}" for i in range(len(x))),
        words_y=tuple(f"y{i}" for i in range(len(y))),
        association=association,
    )


def variants(seed: int, n_x: int = 7, n_y: int = 6, *, common: float = 1.0) -> list[WordScores]:
    """Two variants that share a part of each word's score."""
    rng = np.random.default_rng(seed)
    shared = common * rng.normal(size=n_x + n_y)
    return [
        words_of(*np.split(0.1 * (shared + rng.normal(size=n_x + n_y) + shift * (np.arange(n_x + n_y) < n_x)), [n_x]))
        for shift in (1.0, 0.3)
    ]


def compared(first: WordScores, second: WordScores, *, seed: int = 0, **options) -> PairedDifference:
    return paired_difference(first, second, seed=np.random.SeedSequence(seed), **options)


def scaled(words: WordScores, factor: float) -> WordScores:
    return words_of(factor * words.association.scores_x, factor * words.association.scores_y)


def effect_size(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    joint = np.concatenate([x, y], axis=-1)
    return (x.mean(axis=-1) - y.mean(axis=-1)) / joint.std(axis=-1, ddof=1)


def slow_deltas(first: WordScores, second: WordScores) -> np.ndarray:
    one, two = ([*words.association.scores_x, *words.association.scores_y] for words in (first, second))
    return np.array(one) / np.std(one, ddof=1) - np.array(two) / np.std(two, ddof=1)


# ---- the difference and its p


@FEW
@given(seed=SEEDS, n_x=st.integers(2, 8), n_y=st.integers(2, 8))
def test_the_difference_is_that_of_the_effect_sizes_and_the_statistic_of_the_deltas(seed, n_x, n_y):
    first, second = variants(seed, n_x, n_y)
    found = compared(first, second, interval="percentile")
    assert found.difference == first.association.effect_size - second.association.effect_size
    deltas = slow_deltas(first, second)
    assert found.difference == pytest.approx(deltas[:n_x].mean() - deltas[n_x:].mean(), abs=1e-9)


@FEW
@given(seed=SEEDS, n_x=st.integers(2, 5), n_y=st.integers(2, 5))
def test_p_is_twice_the_smaller_share_of_all_partitions_of_the_deltas(seed, n_x, n_y):
    first, second = variants(seed, n_x, n_y)
    deltas = slow_deltas(first, second)

    def statistic(chosen: tuple[int, ...]) -> float:
        return deltas[list(chosen)].mean() - np.delete(deltas, chosen).mean()

    observed = statistic(tuple(range(n_x)))
    all_of_them = np.array([statistic(chosen) for chosen in combinations(range(n_x + n_y), n_x)])
    above, below = (all_of_them >= observed - 1e-9).mean(), (all_of_them <= observed + 1e-9).mean()
    found = compared(first, second, interval="percentile").test
    assert found.method_used == "exact"
    assert found.p_value == pytest.approx(min(1, 2 * min(above, below)), abs=1e-12)
    assert (found.p_greater, found.p_less) == pytest.approx((above, below), abs=1e-12)


def test_a_case_computed_by_hand():
    # scores of deviation 1 each: 1, 0 v 0, -1 has (ddof = 1) variance 2 / 3; 1, 0 v 0, 1 has 1 / 3
    first, second = words_of([1, 0], [0, -1]), words_of([1, 0], [0, 1])
    found = compared(first, second)
    assert found.difference == pytest.approx(1 / (2 / 3) ** 0.5 - 0)
    # deltas 1.225 - 1.732, 0, 0, -1.225 - 1.732: the top two are zeros; the observed X holds -0.507 and 0, as does the
    # choice with the other 0: 3 of 6 choices reach it, 5 of 6 stay below or tie
    assert found.test.p_greater == pytest.approx(3 / 6)
    assert found.test.p_less == pytest.approx(5 / 6)
    assert found.test.p_value == 1.0


@FEW
@given(seed=SEEDS)
def test_exchanging_the_variants_negates_the_difference_and_keeps_p(seed):
    first, second = variants(seed)
    found, exchanged = compared(first, second), compared(second, first)
    assert exchanged.difference == -found.difference
    assert exchanged.test.p_value == pytest.approx(found.test.p_value, abs=1e-12)
    assert (exchanged.interval.low, exchanged.interval.high) == pytest.approx(
        (-found.interval.high, -found.interval.low), abs=1e-9
    )


@FEW
@given(seed=SEEDS, factors=st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)))
def test_the_scale_of_a_variants_scores_changes_nothing(seed, factors):
    # of 12 v 10 words no resample is the observed one: whether it ties would be judged after rounding
    first, second = variants(seed, 12, 10)
    expected = compared(first, second)
    found = compared(scaled(first, factors[0]), scaled(second, factors[1]))
    assert found.difference == pytest.approx(expected.difference, abs=1e-9)
    assert found.test.p_value == pytest.approx(expected.test.p_value, abs=1e-12)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (expected.interval.low, expected.interval.high), abs=1e-6
    )


def test_a_common_offset_of_a_variants_scores_changes_nothing():
    first, second = variants(3)
    one = first.association
    moved = words_of(one.scores_x + 0.5, one.scores_y + 0.5)
    found, expected = compared(moved, second), compared(first, second)
    assert found.difference == pytest.approx(expected.difference, abs=1e-9)
    assert found.test.p_value == expected.test.p_value


def test_what_both_variants_share_makes_the_comparison_sharper():
    # the same shift, with a large common part of each word: judged word by word, it stands out
    rng = np.random.default_rng(0)
    shared, shift = rng.normal(size=20), np.repeat([0.5, -0.5], 10)
    first = words_of(*np.split(shared + shift + 0.05 * rng.normal(size=20), 2))
    second = words_of(*np.split(shared + 0.05 * rng.normal(size=20), 2))
    found = compared(first, second)
    assert found.test.p_value < 1e-4
    assert found.interval.low > 0


# ---- the interval


def drawn_differences(first: WordScores, second: WordScores, seed: int, n: int = 20_000) -> np.ndarray:
    """d1 - d2 of words drawn jointly, by indices."""
    rng = np.random.default_rng(seed)
    one, two = first.association, second.association
    i_x, i_y = (rng.integers(size, size=(n, size)) for size in (len(one.scores_x), len(one.scores_y)))
    return effect_size(one.scores_x[i_x], one.scores_y[i_y]) - effect_size(two.scores_x[i_x], two.scores_y[i_y])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_percentile_interval_is_that_of_words_drawn_jointly(seed):
    first, second = variants(seed, 12, 10, common=3.0)
    found = compared(first, second, interval="percentile", level=0.9).interval
    drawn = drawn_differences(first, second, seed)
    # the error of a 5% quantile of 9,999 draws is some 2% of the deviation
    tolerance = 0.1 * drawn.std()
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.05, 0.95])), abs=tolerance)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bca_interval_is_that_of_scipy_over_words(seed):
    first, second = variants(seed, 12, 10, common=3.0)
    one, two = first.association, second.association

    def difference(i_x, i_y, axis=-1):
        assert axis == -1
        return effect_size(one.scores_x[i_x], one.scores_y[i_y]) - effect_size(two.scores_x[i_x], two.scores_y[i_y])

    theirs = stats.bootstrap(
        (np.arange(12), np.arange(10)), difference, method="BCa", vectorized=True, rng=np.random.default_rng(seed)
    )
    found = compared(first, second).interval
    tolerance = 0.15 * theirs.standard_error  # some 2.7% for each of two 2.5% quantiles, and the bias drawn as well
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), abs=tolerance)


@FEW
@given(seed=SEEDS)
def test_a_higher_level_holds_the_lower_one(seed):
    first, second = variants(seed)
    inner, outer = (compared(first, second, level=level).interval for level in (0.8, 0.95))
    assert outer.low <= inner.low < inner.high <= outer.high


# ---- seeds


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    first, second = variants(5, 40, 40)
    one, again, other = (compared(first, second, seed=seed, method="importance") for seed in (1, 1, 2))
    assert one == again
    assert one.interval != other.interval
    assert one.test.p_value != other.test.p_value
    assert one.difference == other.difference


# ---- nothing to compare


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("interval", ["bca", "percentile"])
def test_a_variant_does_not_differ_from_itself(interval):
    first, _ = variants(0)
    found = compared(first, first, interval=interval)
    assert found.difference == 0
    assert found.test.p_value == found.test.p_greater == found.test.p_less == 1
    assert (found.interval.low, found.interval.high) == (0, 0)


@pytest.mark.parametrize("factor", [0.1, 3.0, 7.0])
def test_the_difference_from_a_multiple_of_itself_is_nothing(factor):
    first, _ = variants(0)
    found = compared(first, scaled(first, factor))
    assert found.difference == pytest.approx(0, abs=1e-12)
    assert (found.test.p_value, found.interval.low, found.interval.high) == (1, 0, 0)


def test_a_variant_does_not_differ_from_a_multiple_of_itself():
    for seed in range(10):
        first, _ = variants(seed)
        assert compared(first, scaled(first, 7.0), interval="percentile").test.p_value == 1


@pytest.mark.parametrize(
    "change",
    [
        {"words_x": ("a", "b")},
        {"words_y": ("a", "b")},
        {"words_x": ("y0", "y1"), "words_y": ("x0", "x1")},
    ],
)
def test_variants_on_different_words_are_refused(change):
    first = words_of([1, 2], [0, 1])
    other = WordScores(**{"words_x": first.words_x, "words_y": first.words_y, **change}, association=first.association)
    with pytest.raises(AssociationError, match="measured on different words; compare those that both have"):
        compared(first, other)


def test_a_variant_of_more_words_is_refused():
    with pytest.raises(AssociationError, match="different words"):
        compared(words_of([1, 2, 3], [0, 1]), words_of([1, 2], [0, 1]))


@pytest.mark.parametrize("alike_first", [True, False])
def test_a_variant_whose_scores_are_all_equal_is_refused(alike_first):
    pair = words_of([0.5, 0.5], [0.5, 0.5]), words_of([1, 2], [0, 1])
    with pytest.raises(AssociationError, match="one association score; there is nothing to compare"):
        compared(*(pair if alike_first else pair[::-1]))


def test_a_variant_whose_scores_are_all_equal_is_refused_whatever_they_are():
    for score in (0.1, 0.2, 0.3, 0.7, 1.1):
        with pytest.raises(AssociationError):
            compared(words_of([score] * 3, [score] * 3), words_of([1, 2, 3], [0, 1, 2]))


@pytest.mark.filterwarnings("error")
def test_two_words_a_side_and_equal_scores_in_x_give_numbers_and_no_warning():
    found = compared(words_of([1, 1], [0, 0]), words_of([2, 3], [1, 0]))
    assert np.isfinite([found.interval.low, found.interval.high, found.test.p_value]).all()
