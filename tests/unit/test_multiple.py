"""Holm's correction against the textbook, and the laws that any family obeys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distseat.statistics import holm

P_VALUES = st.lists(
    st.one_of(st.floats(1e-12, 1.0), st.sampled_from([1e-5, 0.001, 0.01, 0.05, 0.5, 1.0])), min_size=1, max_size=30
)
ALPHAS = st.floats(1e-6, 0.999)


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
