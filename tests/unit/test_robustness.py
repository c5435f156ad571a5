"""Leave-one-out ranges of d: against d of what is left, computed anew."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from distseat.statistics import Association, leave_one_out

SEEDS = st.integers(0, 2**32 - 1)
SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=6)


def scored(x, y) -> Association:
    return Association(scores_x=np.array(x, dtype=np.float64), scores_y=np.array(y, dtype=np.float64))


def slow_range(association: Association, groups_x: list[str], groups_y: list[str]) -> tuple[float, float] | None:
    """d of what is left without each group in turn, where X, Y and a spread are left."""
    found = []
    for group in {*groups_x, *groups_y}:
        x = [s for s, g in zip(association.scores_x.tolist(), groups_x, strict=True) if g != group]
        y = [s for s, g in zip(association.scores_y.tolist(), groups_y, strict=True) if g != group]
        if x and y and len({*x, *y}) > 1:
            found.append(scored(x, y).effect_size)
    return (min(found), max(found)) if found else None


def same_range(found, expected) -> bool:
    if found is None or expected is None:
        return found is expected
    return tuple(found) == pytest.approx(expected, abs=1e-6)


@given(seed=SEEDS, n_x=st.integers(1, 12), n_y=st.integers(1, 12), n_groups=st.integers(1, 6))
def test_words_of_x_and_of_y_are_left_out_in_turn(seed, n_x, n_y, n_groups):
    rng = np.random.default_rng(seed)
    association = scored(rng.normal(size=n_x), rng.normal(size=n_y))
    groups_x = [f"x{i}" for i in rng.integers(n_groups, size=n_x)]
    groups_y = [f"y{i}" for i in rng.integers(n_groups, size=n_y)]
    assert same_range(leave_one_out(association, groups_x, groups_y), slow_range(association, groups_x, groups_y))


@given(seed=SEEDS, n_x=st.integers(1, 12), n_y=st.integers(1, 12), n_groups=st.integers(1, 6))
def test_a_template_is_left_out_of_x_and_y_at_once(seed, n_x, n_y, n_groups):
    rng = np.random.default_rng(seed)
    association = scored(rng.normal(size=n_x), rng.normal(size=n_y))
    groups_x, groups_y = ([f"t{i}" for i in rng.integers(n_groups, size=n)] for n in (n_x, n_y))
    assert same_range(leave_one_out(association, groups_x, groups_y), slow_range(association, groups_x, groups_y))


@pytest.mark.filterwarnings("error")
@given(x=SCORES, y=SCORES, data=st.data())
@example(x=[1, 1, 1], y=[1, 1], data=None)
def test_scores_that_are_partly_equal_give_no_warning_and_the_same_range(x, y, data):
    groups = st.sampled_from("abc")
    groups_x, groups_y = (
        [data.draw(groups) for _ in scores] if data else list("abcabc"[: len(scores)]) for scores in (x, y)
    )
    association = scored(x, y)
    assert same_range(leave_one_out(association, groups_x, groups_y), slow_range(association, groups_x, groups_y))


@given(seed=SEEDS, offset=st.sampled_from([-1.5, 0.0, 1.5]), scale=st.sampled_from([1e-5, 1e-2, 1.0]))
def test_scores_far_from_zero_lose_no_digits(seed, offset, scale):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 6))
    groups_x, groups_y = list("aabbcc"), list("ddeeff")
    expected = leave_one_out(scored(x, y), groups_x, groups_y)
    found = leave_one_out(scored(offset + scale * x, offset + scale * y), groups_x, groups_y)
    assert tuple(found) == pytest.approx(tuple(expected), abs=1e-7)


def test_a_case_computed_by_hand():
    # without 3: 2 against 1, 0: d = 1.5 / 1; without 2: 3 against 1, 0: 2.5 / sqrt(7/3); without 1: 2.5 / sqrt(7/3)
    # again; without 0: 3, 2 against 1: 1.5
    found = leave_one_out(scored([3, 2], [1, 0]), ["a", "b"], ["c", "d"])
    assert found.low == pytest.approx(1.5)
    assert found.high == pytest.approx(2.5 / (7 / 3) ** 0.5)


def test_a_word_of_many_sentences_is_left_out_as_one():
    # without the two sentences of "a", X has 0 alone
    found = leave_one_out(scored([9, 9, 0], [1, 2]), ["a", "a", "b"], ["c", "c"])
    without_a, without_b = scored([0], [1, 2]).effect_size, scored([9, 9], [1, 2]).effect_size
    assert tuple(found) == pytest.approx((without_a, without_b))


@given(seed=SEEDS)
def test_swapping_x_and_y_turns_the_range_around(seed):
    rng = np.random.default_rng(seed)
    association = scored(rng.normal(size=6), rng.normal(size=4))
    found = leave_one_out(association, list("aabbcc"), list("bdde"))
    swapped = leave_one_out(association.swapped(), list("bdde"), list("aabbcc"))
    assert tuple(swapped) == pytest.approx((-found.high, -found.low), abs=1e-9)


@given(seed=SEEDS)
def test_the_order_of_the_stimuli_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    x, y, groups_x, groups_y = rng.normal(size=6), rng.normal(size=4), list("aabbcc"), list("bdde")
    order_x, order_y = rng.permutation(6), rng.permutation(4)
    found = leave_one_out(scored(x, y), groups_x, groups_y)
    shuffled = leave_one_out(
        scored(x[order_x], y[order_y]), [groups_x[i] for i in order_x], [groups_y[i] for i in order_y]
    )
    assert tuple(shuffled) == pytest.approx(tuple(found), abs=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("x", "y", "groups_x", "groups_y"),
    [
        ([1.0, 2.0], [0.0, 1.0], ["a", "a"], ["b", "b"]),
        ([1.0, 2.0], [0.0, 1.0], ["t", "t"], ["t", "t"]),
        ([0.1, 0.1, 0.1], [0.1, 0.1], ["a", "b", "c"], ["d", "e"]),
        ([1.0], [0.0], ["a"], ["b"]),
        ([5.0, 1.0], [1.0, 5.0], ["t", "u"], ["u", "t"]),
    ],
    ids=["one word a side", "one template", "equal scores", "one stimulus a side", "equal scores are left"],
)
def test_there_is_no_range_where_no_group_can_be_left_out(x, y, groups_x, groups_y):
    assert leave_one_out(scored(x, y), groups_x, groups_y) is None
