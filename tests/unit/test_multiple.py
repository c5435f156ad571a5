"""Corrections against the textbook and statsmodels, and the laws that any family obeys."""

from math import comb, nan

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from distseat.errors import AssociationError
from distseat.statistics import benjamini_hochberg, holm, holm_over_families, permutation_test, reach, seed_sequence

P_VALUES = st.lists(
    st.one_of(st.floats(1e-12, 1.0), st.sampled_from([1e-5, 0.001, 0.01, 0.05, 0.5, 1.0])), min_size=1, max_size=30
)
ALPHAS = st.floats(1e-6, 0.999)
FEW = settings(max_examples=100, deadline=None, derandomize=True)
CORRECTIONS = pytest.mark.parametrize(("correct", "name"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])


def stepped_down(p_values: list[float], alpha: float) -> list[bool]:
    """Holm (1979) as it is told: from the smallest p on, reject while p <= alpha / (hypotheses left), then stop."""
    rejected = [False] * len(p_values)
    left = sorted(range(len(p_values)), key=lambda i: p_values[i])
    while left and p_values[left[0]] * len(left) <= alpha:
        rejected[left.pop(0)] = True
    return rejected


def adjusted_by_definition(p_values: list[float]) -> list[float]:
    """The largest, over all p up to this one, of p times the number of p-values that are not before it; at most 1."""
    order = sorted(range(len(p_values)), key=lambda i: (p_values[i], i))
    rank = {i: place for place, i in enumerate(order)}
    m = len(p_values)
    return [min(1.0, max((m - rank[j]) * p_values[j] for j in order[: rank[i] + 1])) for i in range(m)]


@given(p_values=P_VALUES)
def test_adjusted_values_equal_the_definition(p_values):
    decision = holm(np.array(p_values), alpha=0.05)
    np.testing.assert_allclose(decision.adjusted, adjusted_by_definition(p_values), rtol=1e-15)


@given(p_values=P_VALUES, alpha=ALPHAS)
def test_rejections_equal_the_step_down_procedure(p_values, alpha):
    assert holm(np.array(p_values), alpha=alpha).rejected.tolist() == stepped_down(p_values, alpha)


def test_a_family_computed_by_hand():
    # sorted .001 .01 .02 .03 .6, times 5 4 3 2 1: .005 .04 .06 .06 .6
    decision = holm(np.array([0.03, 0.001, 0.6, 0.01, 0.02]), alpha=0.05)
    np.testing.assert_allclose(decision.adjusted, [0.06, 0.005, 0.6, 0.04, 0.06])
    assert decision.rejected.tolist() == [False, True, False, True, False]


def test_a_small_p_behind_a_retained_one_is_retained():
    # .02 alone would pass its own step .05 / 2, but the step before it fails
    decision = holm(np.array([0.018, 0.018, 0.02]), alpha=0.05)
    assert not decision.rejected.any()


@given(p_values=P_VALUES, alpha=ALPHAS)
def test_rejected_is_adjusted_at_most_alpha(p_values, alpha):
    decision = holm(np.array(p_values), alpha=alpha)
    np.testing.assert_array_equal(decision.rejected, decision.adjusted <= alpha)


@given(p_values=P_VALUES)
def test_adjusted_values_rise_with_the_p_values(p_values):
    adjusted = holm(np.array(p_values), alpha=0.05).adjusted
    assert (np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= 0).all()


@given(p_values=P_VALUES)
def test_adjusted_values_lie_between_p_and_one(p_values):
    adjusted = holm(np.array(p_values), alpha=0.05).adjusted
    assert (adjusted >= np.array(p_values)).all()
    assert (adjusted <= 1).all()


@given(p_values=P_VALUES, alpha=ALPHAS, data=st.data())
def test_the_order_of_the_family_changes_no_decision(p_values, alpha, data):
    order = np.array(data.draw(st.permutations(range(len(p_values)))))
    straight, shuffled = holm(np.array(p_values), alpha=alpha), holm(np.array(p_values)[order], alpha=alpha)
    np.testing.assert_array_equal(shuffled.adjusted, straight.adjusted[order])
    np.testing.assert_array_equal(shuffled.rejected, straight.rejected[order])


@given(p_values=P_VALUES, p=st.sampled_from([1e-5, 0.01, 0.3]), alpha=ALPHAS)
def test_equal_p_values_get_one_decision(p_values, p, alpha):
    decision = holm(np.array([p, *p_values, p]), alpha=alpha)
    assert decision.adjusted[0] == decision.adjusted[-1]
    assert decision.rejected[0] == decision.rejected[-1]


@given(p_values=P_VALUES, alpha=ALPHAS, p=st.floats(1e-12, 1.0))
def test_a_larger_family_rejects_no_more(p_values, alpha, p):
    alone, joined = holm(np.array(p_values), alpha=alpha), holm(np.array([*p_values, p]), alpha=alpha)
    assert (joined.adjusted[:-1] >= alone.adjusted).all()


@given(p=st.floats(1e-12, 1.0), alpha=ALPHAS)
def test_one_p_value_is_not_adjusted(p, alpha):
    decision = holm(np.array([p]), alpha=alpha)
    assert decision.adjusted.tolist() == [p]
    assert decision.rejected.tolist() == [p <= alpha]


def test_an_empty_family_has_no_decision():
    decision = holm(np.array([], dtype=np.float64), alpha=0.05)
    assert decision.adjusted.shape == decision.rejected.shape == (0,)
    assert decision.rejected.dtype == bool


def test_the_family_given_is_not_changed():
    p_values = np.array([0.04, 0.01, 0.03])
    holm(p_values, alpha=0.05)
    assert p_values.tolist() == [0.04, 0.01, 0.03]


@pytest.mark.parametrize("m", [2, 644])
def test_bonferroni_decides_on_the_smallest_p(m):
    p_values = np.full(m, 1.0)
    p_values[m // 2] = 0.05 / m
    assert np.flatnonzero(holm(p_values, alpha=0.05 * (1 + 1e-12)).rejected).tolist() == [m // 2]


# ---- against statsmodels


@CORRECTIONS
@settings(FEW, max_examples=25)  # statsmodels collects garbage at each call
@given(p_values=P_VALUES, alpha=ALPHAS)
def test_decisions_equal_those_of_statsmodels(correct, name, p_values, alpha):
    decision = correct(np.array(p_values), alpha=alpha)
    rejected, adjusted, _, _ = multipletests(p_values, alpha=alpha, method=name)
    np.testing.assert_allclose(decision.adjusted, adjusted, rtol=1e-13)
    assume((np.abs(adjusted / alpha - 1) > 1e-12).all())  # there, rounding decides
    np.testing.assert_array_equal(decision.rejected, rejected)


@CORRECTIONS
def test_a_family_of_thousands_equals_that_of_statsmodels(correct, name):
    p_values = 1 - np.random.default_rng(0).random(5000) ** np.linspace(0.01, 1, 5000)
    p_values = np.round(p_values, 3) + 1e-4
    p_values = np.minimum(p_values, 1.0)
    rejected, adjusted, _, _ = multipletests(p_values, alpha=0.2, method=name)
    decision = correct(p_values, alpha=0.2)
    np.testing.assert_allclose(decision.adjusted, adjusted, rtol=1e-13)
    np.testing.assert_array_equal(decision.rejected, rejected)
    assert 0 <= rejected.sum() < 5000


# ---- Benjamini and Hochberg


def stepped_up(p_values: list[float], alpha: float) -> list[bool]:
    """Benjamini & Hochberg (1995) as it is told: reject all up to the last p_(i) that is at most i alpha / m."""
    m = len(p_values)
    order = sorted(range(m), key=lambda i: p_values[i])
    last = max((place for place in range(1, m + 1) if p_values[order[place - 1]] * m / place <= alpha), default=0)
    return [i in order[:last] for i in range(m)]


@given(p_values=P_VALUES, alpha=ALPHAS)
def test_discoveries_equal_the_step_up_procedure(p_values, alpha):
    assert benjamini_hochberg(np.array(p_values), alpha=alpha).rejected.tolist() == stepped_up(p_values, alpha)


def test_discoveries_computed_by_hand():
    # sorted .001 .01 .02 .03 .6, times 5/1 5/2 5/3 5/4 5/5: .005 .025 .0333 .0375 .6
    decision = benjamini_hochberg(np.array([0.03, 0.001, 0.6, 0.01, 0.02]), alpha=0.035)
    np.testing.assert_allclose(decision.adjusted, [0.0375, 0.005, 0.6, 0.025, 0.1 / 3])
    assert decision.rejected.tolist() == [False, True, False, True, True]


def test_a_larger_p_carries_the_smaller_ones_along():
    # .03 fails its own step .05 / 2, but .04 passes .05
    assert benjamini_hochberg(np.array([0.03, 0.04]), alpha=0.05).rejected.all()


@given(p_values=P_VALUES)
def test_holm_is_no_bolder_than_benjamini_hochberg(p_values):
    strict, mild = holm(np.array(p_values)).adjusted, benjamini_hochberg(np.array(p_values)).adjusted
    assert (mild <= strict * (1 + 1e-12)).all()
    assert (mild >= np.array(p_values) * (1 - 1e-12)).all()


@given(p_values=P_VALUES, data=st.data())
def test_the_order_of_the_family_changes_no_discovery(p_values, data):
    order = np.array(data.draw(st.permutations(range(len(p_values)))))
    straight, shuffled = benjamini_hochberg(np.array(p_values)), benjamini_hochberg(np.array(p_values)[order])
    np.testing.assert_array_equal(shuffled.adjusted, straight.adjusted[order])


# ---- families of families


@st.composite
def families_of_p(draw):
    p_values = draw(P_VALUES)
    m = draw(st.integers(1, len(p_values)))
    rest = draw(st.lists(st.integers(0, m - 1), min_size=len(p_values) - m, max_size=len(p_values) - m))
    return p_values, draw(st.permutations([*range(m), *rest]))


def overall(p_values, families, alpha: float = 0.01):
    return holm_over_families(np.array(p_values, dtype=np.float64), np.array(families, dtype=np.intp), alpha=alpha)


def walked(p_values: list[float], families: list[int], alpha: float) -> list[bool]:
    """Family after family, by the smallest p: reject what is at most alpha / (families left); stop at a family kept."""
    rejected = [False] * len(p_values)
    members = {f: [i for i, g in enumerate(families) if g == f] for f in sorted(set(families))}
    left = sorted(members, key=lambda f: min(p_values[i] for i in members[f]))
    while left:
        passed = [i for i in members[left[0]] if p_values[i] * len(left) <= alpha]
        if not passed:
            break
        for i in passed:
            rejected[i] = True
        left.pop(0)
    return rejected


@FEW
@given(drawn=families_of_p(), alpha=ALPHAS)
@example(drawn=([0.02, 0.02, 0.001, 0.6], [0, 1, 0, 1]), alpha=0.05)
def test_rejections_in_families_equal_the_walk_over_them(drawn, alpha):
    assert overall(*drawn, alpha=alpha).rejected.tolist() == walked(*drawn, alpha)


@pytest.mark.parametrize(("m", "n_null"), [(2, 1), (2, 2), (5, 3), (20, 20), (20, 7)])
def test_families_of_true_nulls_alone_are_rejected_at_their_share_of_alpha_and_no_higher(m, n_null):
    """The other families are plain effects beside a null; of the null ones one has p, and the rest do worse."""
    null_p = np.linspace(0.0001, 0.06, 600)
    families = np.repeat(np.arange(m), 2)
    rejected = []
    for p in null_p:
        p_values = np.tile([1e-9, 1.0], m)
        p_values[: 2 * n_null] = 1.0
        p_values[0] = p
        rejected.append(overall(p_values, families, alpha=0.05).rejected[0])
    assert max(null_p[rejected]) == pytest.approx(0.05 / n_null, abs=1e-4)
    assert max(null_p[rejected]) <= 0.05 / n_null + 1e-12


def test_a_null_beside_a_plain_effect_is_rejected_at_its_familys_threshold():
    """What the docs say no level holds for: with m such families the chances add up beyond alpha."""
    m, p = 4, 0.05 / 3
    p_values, families = np.tile([1e-9, 1.0], m), np.repeat(np.arange(m), 2)
    for family, rejected in enumerate([False, True, True, True]):  # thresholds .05 / 4, .05 / 3, .05 / 2, .05
        changed = p_values.copy()
        changed[2 * family + 1] = p
        assert overall(changed, families, alpha=0.05).rejected[2 * family + 1] == rejected


def test_families_computed_by_hand():
    # smallest: .001 (family 1), .01 (family 0), .2 (family 2); factors 3, 2, 1
    decision = overall([0.01, 0.03, 0.001, 0.012, 0.2], [0, 0, 1, 1, 2], alpha=0.05)
    np.testing.assert_allclose(decision.adjusted, [0.02, 0.06, 0.003, 0.036, 0.2])
    assert decision.rejected.tolist() == [True, False, True, True, False]


@FEW
@given(drawn=families_of_p(), alpha=ALPHAS)
def test_rejected_in_families_is_adjusted_at_most_alpha(drawn, alpha):
    decision = overall(*drawn, alpha=alpha)
    np.testing.assert_array_equal(decision.rejected, decision.adjusted <= alpha)
    assert (decision.adjusted >= np.array(drawn[0])).all()
    assert (decision.adjusted <= 1).all()


@FEW
@given(p_values=P_VALUES, alpha=ALPHAS, data=st.data())
def test_families_of_one_member_are_decided_by_holm(p_values, alpha, data):
    numbers = data.draw(st.permutations(range(len(p_values))))
    found, expected = overall(p_values, numbers, alpha=alpha), holm(np.array(p_values), alpha=alpha)
    np.testing.assert_array_equal(found.adjusted, expected.adjusted)
    np.testing.assert_array_equal(found.rejected, expected.rejected)


@FEW
@given(p_values=P_VALUES, alpha=ALPHAS)
def test_one_family_alone_is_not_corrected_again(p_values, alpha):
    decision = overall(p_values, [0] * len(p_values), alpha=alpha)
    assert decision.adjusted.tolist() == p_values
    assert decision.rejected.tolist() == [p <= alpha for p in p_values]


@FEW
@given(drawn=families_of_p(), data=st.data())
def test_the_order_of_members_and_the_names_of_families_change_nothing(drawn, data):
    p_values, families = drawn
    assume(
        len({min(p for p, g in zip(p_values, families, strict=True) if g == f) for f in families}) == len({*families})
    )
    order = data.draw(st.permutations(range(len(p_values))))
    names = data.draw(st.permutations(range(max(families) + 1)))
    shuffled = overall([p_values[i] for i in order], [names[families[i]] for i in order])
    np.testing.assert_array_equal(shuffled.adjusted, overall(p_values, families).adjusted[list(order)])


@FEW
@given(drawn=families_of_p(), p=st.floats(1e-12, 1.0))
def test_a_further_family_lowers_no_adjusted_value(drawn, p):
    p_values, families = drawn
    joined = overall([*p_values, p], [*families, max(families) + 1])
    assert (joined.adjusted[:-1] >= overall(p_values, families).adjusted * (1 - 1e-12)).all()


def test_no_members_have_no_decision():
    decision = overall([], [])
    assert decision.adjusted.shape == decision.rejected.shape == (0,)


# ---- what can be rejected at all


def pushed_through(p_floor: float, n_before: int, m: int, alpha: float) -> bool:
    """Whether Holm rejects a p at its floor after `n_before` others that nobody doubts; the rest is no effect."""
    p_values = np.concatenate([np.full(n_before, 1e-300), [p_floor], np.full(m - n_before - 1, 1.0)])
    return bool(holm(p_values, alpha=alpha).rejected[n_before])


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.001])
@pytest.mark.parametrize("m", [1, 2, 104, 644])
@pytest.mark.parametrize("n_partitions", [comb(2 * n, n) for n in range(2, 11)])
def test_what_is_within_reach_is_what_holm_rejects(n_partitions, m, alpha):
    found = reach(1 / n_partitions, m=m, alpha=alpha)
    passing = [i for i in range(m) if pushed_through(1 / n_partitions, i, m, alpha)]
    assert found.possible == bool(passing)
    assert found.n_before == (passing[0] if passing else m)


def test_four_against_four_are_never_rejected_at_one_percent():
    assert not any(reach(1 / 70, m=m, alpha=0.01).possible for m in range(1, 700))
    p = permutation_test(np.arange(8.0)[::-1], 4, seed=seed_sequence(0)).p_value
    assert p == 1 / 70
    assert not holm(np.full(104, p), alpha=0.01).rejected.any()


def test_eight_against_eight_are_rejected_by_holm_among_a_hundred_and_twenty_eight():
    p = permutation_test(np.arange(16.0)[::-1], 8, seed=seed_sequence(0)).p_value
    assert p == 1 / 12_870
    assert holm(np.full(128, p), alpha=0.01).rejected.all()
    assert not holm(np.full(129, p), alpha=0.01).rejected.any()
    assert (reach(p, m=128).n_before, reach(p, m=129).n_before) == (0, 1)


@pytest.mark.parametrize(("p_floor", "m", "alpha"), [(0.01, 1, 0.01), (0.05, 1, 0.05), (1 / 1024, 16, 1 / 64)])
def test_a_floor_at_the_threshold_is_within_reach(p_floor, m, alpha):
    assert reach(p_floor, m=m, alpha=alpha).n_before == 0
    assert reach(p_floor, m=m, alpha=alpha).possible


def test_the_floor_of_drawn_partitions_is_within_reach_among_a_thousand():
    assert pushed_through(1e-5, 0, 1000, 0.01)
    assert reach(1e-5, m=1000, alpha=0.01).n_before == 0


# ---- errors


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.0000001, nan])
@pytest.mark.parametrize("correct", [holm, benjamini_hochberg, lambda p: holm_over_families(p, np.zeros(3, dtype=int))])
def test_what_is_no_p_value_is_named(correct, wrong):
    with pytest.raises(
        AssociationError, match=rf"p-value 1 of 3 is {wrong}.*\(0, 1\] was expected; leave void rows out"
    ):
        correct(np.array([0.5, wrong, 0.1]))


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_p_values_on_two_axes_are_refused(correct):
    with pytest.raises(AssociationError, match=r"shape \(2, 2\).*flatten them"):
        correct(np.full((2, 2), 0.1))
