"""Tails by importance sampling and in closed form: against choices counted one by one, and against exact fractions."""

import warnings
from fractions import Fraction
from itertools import combinations
from math import comb, exp, isfinite, log, prod, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.statistics.separation import log_count_near_top, loss_from_top
from distseat.statistics.subsets import count_at_least
from distseat.statistics.tilting import TailEstimate, _inclusion, _logits, log_choices, tail_share

FEW = settings(max_examples=60, deadline=None, derandomize=True)


def integers(items) -> np.ndarray:
    return np.array(items, dtype=np.int64)


def on_a_grid(scores) -> np.ndarray:
    return np.rint(np.asarray(scores) * 2**20).astype(np.int64)


def exact_share(items: np.ndarray, k: int, threshold: int) -> float:
    return count_at_least(items, k, (threshold,))[0] / comb(len(items), k)


def estimate(items, k: int, *, seed: int = 0, relative_error: float = 0.02, below: int = 0) -> TailEstimate:
    threshold = int(items[:k].sum()) - below
    return tail_share(items, k, threshold, rng=np.random.default_rng(seed), relative_error=relative_error)


def shifted(seed: int, effect: float, n: int = 32) -> np.ndarray:
    return on_a_grid(np.random.default_rng(seed).normal(size=n) + effect * (np.arange(n) < n // 2))


# ---- number of choices


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (10, 3), (32, 16), (2000, 1000), (10_000, 2)])
def test_the_logarithm_of_the_number_of_choices(n, k):
    assert log_choices(n, k) == pytest.approx(log(comb(n, k)), rel=1e-12, abs=1e-12)


# ---- the highest sums, in closed form


@FEW
@given(items=st.lists(st.integers(-6, 6), min_size=2, max_size=10), allowed=st.integers(0, 15), data=st.data())
def test_choices_near_the_top_are_those_counted_one_by_one(items, allowed, data):
    k = data.draw(st.integers(1, len(items) - 1))
    highest = sum(sorted(items)[-k:])
    expected = sum(sum(chosen) >= highest - allowed for chosen in combinations(items, k))
    assert exp(log_count_near_top(integers(items), k, allowed)) == pytest.approx(expected, rel=1e-12)


@FEW
@given(items=st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=10, unique=True), data=st.data())
def test_one_choice_of_distinct_items_has_the_highest_sum(items, data):
    k = data.draw(st.integers(1, len(items) - 1))
    assert log_count_near_top(integers(items), k, 0) == 0


@pytest.mark.parametrize(("n", "k", "n_tied"), [(1000, 300, 80), (1000, 60, 200)])
def test_tied_items_at_the_border_are_a_binomial(n, k, n_tied):
    n_above = k - n_tied // 4
    items = integers([*range(100, 100 + n_above), *[50] * n_tied, *range(-(n - n_above - n_tied), 0)])
    assert len(items) == n
    assert log_count_near_top(items, k, 0) == pytest.approx(log(comb(n_tied, n_tied // 4)), rel=1e-12)


@FEW
@given(items=st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=10), data=st.data())
def test_the_loss_is_the_distance_from_the_highest_sum(items, data):
    k = data.draw(st.integers(1, len(items) - 1))
    highest = max(map(sum, combinations(items, k)))
    assert loss_from_top(integers(items), k) == highest - sum(items[:k])


# ---- the law that is drawn from


def chosen_of(weights: list[Fraction], k: int) -> Fraction:
    return sum((prod(chosen, start=Fraction(1)) for chosen in combinations(weights, k)), start=Fraction(0))


@FEW
@given(logits=st.lists(st.floats(-4, 4), min_size=1, max_size=7), data=st.data())
def test_inclusion_chances_are_those_of_the_conditional_bernoulli_law(logits, data):
    k = data.draw(st.integers(1, len(logits)))
    weights = np.exp(np.array(logits))
    inclusion_nk, log_normaliser = _inclusion(weights, k)
    exact = [Fraction(w) for w in weights.tolist()]
    assert log_normaliser == pytest.approx(log(chosen_of(exact, k)), rel=1e-12, abs=1e-12)
    for i in range(len(exact)):
        for left in range(1, min(k, len(exact) - i) + 1):
            chance = exact[i] * chosen_of(exact[i + 1 :], left - 1) / chosen_of(exact[i:], left)
            assert inclusion_nk[i, left] == pytest.approx(float(chance), rel=1e-12)


@FEW
@given(logits=st.lists(st.sampled_from([-300.0, -299.0, -20.0, 0.0, 250.0, 300.0]), min_size=1, max_size=7))
def test_inclusion_chances_neither_overflow_nor_cancel(logits):
    exact = [Fraction(w) for w in np.exp(logits).tolist()]
    for k in range(1, len(logits) + 1):
        inclusion_nk, log_normaliser = _inclusion(np.exp(np.array(logits)), k)
        total = chosen_of(exact, k)
        assert log_normaliser == pytest.approx(log(total.numerator) - log(total.denominator), rel=1e-9, abs=1e-9)
        chance = exact[0] * chosen_of(exact[1:], k - 1) / total
        assert inclusion_nk[0, k] == pytest.approx(float(chance), rel=1e-9)


@pytest.mark.parametrize("n", [50, 3000])
def test_inclusion_chances_of_many_items_are_chances(n):
    logits = np.linspace(300, -300, n)
    inclusion_nk, log_normaliser = _inclusion(np.exp(logits), n // 2)
    assert isfinite(log_normaliser)
    assert ((inclusion_nk >= 0) & (inclusion_nk <= 1)).all()
    assert log_normaliser >= logits[: n // 2].sum() - 1e-6


def test_the_last_places_are_filled_for_certain():
    inclusion_nk, _ = _inclusion(np.exp(np.random.default_rng(0).normal(size=9)), 4)
    assert [inclusion_nk[i, 9 - i] for i in range(5, 9)] == [1.0] * 4


@pytest.mark.parametrize("effect", [0.5, 1.0, 2.0])
def test_the_law_is_centred_on_the_observed_sum(effect):
    items = shifted(1, effect)
    observed = int(items[:16].sum())
    chances = 1 / (1 + np.exp(-_logits(items, 16, observed)))
    assert chances.sum() == pytest.approx(16, rel=1e-3)
    assert (chances * items).sum() == pytest.approx(observed, rel=2e-3)


def test_the_law_is_flat_below_the_mean():
    items = np.sort(shifted(1, 0.0))
    logits = _logits(items, 8, int(items[:8].sum()))
    np.testing.assert_allclose(logits, log(8 / 24))
    assert _logits(np.ones(4, dtype=np.int64), 1, 1).tolist() == [log(1 / 3)] * 4


# ---- shares


@pytest.mark.parametrize("effect", [0.3, 0.8, 1.5, 2.5])
def test_shares_are_within_four_of_their_errors(effect):
    for number in range(8):
        items = shifted(number, effect)
        found = estimate(items, 16, seed=number)
        exact = exact_share(items, 16, int(items[:16].sum()))
        assert abs(exp(found.log_share) - exact) <= 4 * found.standard_error + 1e-9 * exact


@pytest.mark.parametrize("effect", [0.4, 1.0, 2.0])
def test_the_mean_over_many_seeds_is_the_share(effect):
    """At a wanted error this large the 1,000 first draws are all, so nothing depends on what was drawn."""
    items = shifted(3, effect)
    exact = exact_share(items, 16, int(items[:16].sum()))
    found = [estimate(items, 16, seed=seed, relative_error=0.5) for seed in range(400)]
    assert {f.n_draws for f in found} == {1000}
    shares = np.array([exp(f.log_share) for f in found])
    assert abs(shares.mean() - exact) < 3.5 * shares.std() / sqrt(len(shares))
    assert shares.std() == pytest.approx(np.mean([f.standard_error for f in found]), rel=0.15)


@pytest.mark.parametrize("effect", [0.4, 0.8, 1.5])
def test_the_share_above_leaves_out_the_ties(effect):
    items = on_a_grid(np.rint(2 * shifted(3, effect) / 2**20))
    observed = int(items[:16].sum())
    for number in range(8):
        found = tail_share(items, 16, observed - 5, rng=np.random.default_rng(number), relative_error=0.02)
        at_least, above = (exact_share(items, 16, threshold) for threshold in (observed, observed + 1))
        assert above < 0.95 * at_least
        assert abs(exp(found.log_share) - at_least) < 4 * found.standard_error
        assert abs(found.share_above - above) < 4 * found.standard_error_above


def test_every_choice_that_counts_weighs_one_in_total():
    """The share of all choices is 1 whatever the law: draws and weights belong together."""
    items = shifted(2, 1.0, n=12)
    threshold = int(np.sort(items)[:6].sum())
    found = tail_share(items, 6, threshold, rng=np.random.default_rng(0), relative_error=0.02)
    assert found.log_share <= 0
    assert abs(exp(found.log_share) - 1) < 5 * found.standard_error + 1e-12
    assert _logits(np.sort(items)[::-1], 6, int(items[:6].sum())).std() > 0.1


@pytest.mark.parametrize("wanted", [0.1, 0.03, 0.02, 0.01])
def test_draws_stop_at_the_wanted_error(wanted):
    for seed in range(5):
        found = estimate(shifted(seed, 1.6), 16, seed=seed, relative_error=wanted)
        assert found.relative_error < 1.06 * wanted
        assert 1000 <= found.n_draws < 1000 + 12 / wanted**2


def test_a_share_that_is_plainly_large_costs_the_first_draws_only():
    for seed in range(10):
        for effect in (0.0, -0.5, -2.0):
            items = shifted(seed, effect)
            found = estimate(items, 16, seed=seed)
            if exact_share(items, 16, int(items[:16].sum())) > 0.2:
                assert found.n_draws == 1000
    assert estimate(shifted(0, -2.0), 16).n_draws == 1000


def test_a_small_share_costs_more_than_the_first_draws():
    assert all(estimate(shifted(seed, 1.0), 16, seed=seed).n_draws > 1000 for seed in range(5))


def test_equal_streams_give_equal_bits():
    items = shifted(0, 1.0)
    assert estimate(items, 16, seed=4) == estimate(items, 16, seed=4) != estimate(items, 16, seed=5)


def test_the_order_within_the_sets_changes_no_share():
    items = shifted(0, 1.0)
    rng = np.random.default_rng(0)
    shuffled = np.concatenate([rng.permutation(items[:16]), rng.permutation(items[16:])])
    assert estimate(shuffled, 16).log_share == pytest.approx(estimate(items, 16).log_share, abs=1e-9)


def test_the_standard_error_is_of_the_share():
    found = estimate(shifted(0, 1.0), 16)
    assert found.standard_error == pytest.approx(exp(found.log_share) * found.relative_error, rel=1e-12)


@pytest.mark.parametrize("n", [64, 500])
@pytest.mark.parametrize("power", [10, 25, 39])
def test_outliers_lead_to_no_overflow(n, power):
    rng = np.random.default_rng(power)
    items = rng.normal(scale=100, size=n).astype(np.int64)
    items[0], items[1], items[-1] = 2**power, -(2**power), -(2 ** (power - 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = estimate(items, n // 2, below=n // 2)
    assert isfinite(found.log_share)
    assert -log_choices(n, n // 2) - 1 < found.log_share <= 0
    assert 0 < found.relative_error < 1


@pytest.mark.parametrize("gap", [1, 100, 2**30])
def test_one_exchange_from_separated_is_one_of_a_few_choices(gap):
    top, low = np.arange(300)[::-1] * 50 + gap + 100, -np.arange(300) * 50 - 100
    items = np.concatenate([top, low])
    items[[299, 300]] = items[[300, 299]]
    found = estimate(items, 300)
    assert exp(found.log_share + log_choices(600, 300)) == pytest.approx(2, rel=0.12)


@pytest.mark.parametrize("size", [2**35, 2**39])
def test_a_far_outlier_hides_no_choice(size):
    items = np.concatenate([[size], shifted(5, 2.0)[:15], shifted(5, 2.0)[16:]])
    found = estimate(items, 16)
    exact = exact_share(items, 16, int(items[:16].sum()))
    assert 1e-9 < exact < 1e-4
    assert abs(exp(found.log_share) - exact) < 5 * found.standard_error
    assert found.n_draws < 100_000
