"""Choices of k among n integers, counted by meeting in the middle: against one by one, and against a table of sums."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.errors import AssociationError
from distseat.statistics.subsets import _MAX_SUMS, _merged, _pairs_at_least, _sums_by_size, count_at_least, n_sums

FEW = settings(max_examples=100, deadline=None, derandomize=True)
LARGE = 1 << 40

ITEMS = st.one_of(
    st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.lists(st.integers(-LARGE, LARGE), min_size=1, max_size=12)
)


def integers(items: list[int]) -> np.ndarray:
    return np.array(items, dtype=np.int64)


def one_by_one(items: list[int], k: int, threshold: int) -> int:
    return sum(sum(chosen) >= threshold for chosen in combinations(items, k))


@FEW
@given(items=ITEMS, data=st.data())
def test_counts_equal_those_of_all_choices(items, data):
    k = data.draw(st.integers(0, len(items)))
    sums = sorted({sum(chosen) for chosen in combinations(items, k)})
    near = data.draw(st.lists(st.tuples(st.sampled_from(sums), st.integers(-2, 2)), min_size=1, max_size=4))
    thresholds = tuple(at + by for at, by in near)
    expected = [one_by_one(items, k, threshold) for threshold in thresholds]
    assert count_at_least(integers(items), k, thresholds) == expected


@FEW
@given(items=ITEMS, data=st.data())
def test_every_choice_lies_between_the_lowest_and_the_highest_sum(items, data):
    k = data.draw(st.integers(0, len(items)))
    low, high = sum(sorted(items)[:k]), sum(sorted(items)[len(items) - k :])
    ties = one_by_one(items, k, high)
    assert count_at_least(integers(items), k, (low, high, high + 1)) == [comb(len(items), k), ties, 0]


@FEW
@given(items=ITEMS, data=st.data())
def test_the_order_of_the_items_changes_no_count(items, data):
    k = data.draw(st.integers(0, len(items)))
    threshold = sum(items[:k])
    shuffled = data.draw(st.permutations(items))
    assert count_at_least(integers(shuffled), k, (threshold,)) == count_at_least(integers(items), k, (threshold,))


@FEW
@given(items=ITEMS, data=st.data())
def test_what_is_chosen_and_what_is_left_are_counted_alike(items, data):
    k = data.draw(st.integers(0, len(items)))
    threshold = sum(items[:k])
    left_over = count_at_least(-integers(items), len(items) - k, (threshold - sum(items),))
    assert left_over == count_at_least(integers(items), k, (threshold,))


def test_no_thresholds_have_no_counts():
    assert count_at_least(integers([1, 2, 3]), 2, ()) == []


@pytest.mark.parametrize(("k", "total"), [(0, 0), (3, 6)])
def test_none_or_all_of_the_items_are_one_choice(k, total):
    assert count_at_least(integers([1, 2, 3]), k, (total, total + 1)) == [1, 0]


@pytest.mark.parametrize(("n", "k"), [(40, 20), (41, 7), (38, 31), (100, 3)])
def test_counts_of_many_items_equal_a_table_of_sums(n, k):
    items = np.random.default_rng(n).integers(0, 12, size=n)
    ways = np.zeros((k + 1, int(items.sum()) + 1), dtype=object)
    ways[0, 0] = 1
    for item in items:
        for size in range(k, 0, -1):
            ways[size, item:] += ways[size - 1, : ways.shape[1] - item]
    thresholds = tuple(int(items.mean() * k) + by for by in (-9, 0, 14))
    counts = count_at_least(items, k, thresholds)
    assert counts == [int(ways[k, threshold:].sum()) for threshold in thresholds]
    assert comb(n, k) > counts[0] > counts[1] > counts[2] > 0


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (2, 1), (9, 3), (9, 8), (16, 8), (17, 17), (20, 2)])
def test_as_many_sums_are_held_as_were_foreseen(n, k):
    items = np.random.default_rng(n).integers(-9, 9, size=n)
    halves = [_sums_by_size(half, k) for half in (items[: n // 2], items[n // 2 :])]
    assert sum(len(sums) for half in halves for sums in half) == n_sums(n, k)


@FEW
@given(items=st.lists(st.integers(-LARGE, LARGE), max_size=8), data=st.data())
def test_sums_by_size_are_all_there_in_ascending_order(items, data):
    k = data.draw(st.integers(0, 9))
    found = _sums_by_size(integers(items), k)
    expected = [sorted(map(sum, combinations(items, size))) for size in range(min(k, len(items)) + 1)]
    assert [sums.tolist() for sums in found] == expected


@FEW
@given(left=st.lists(st.integers(-9, 9)), right=st.lists(st.integers(-9, 9)), shift=st.integers(-9, 9))
def test_two_ascending_arrays_are_merged_into_one(left, right, shift):
    merged = _merged(integers(sorted(left)), integers(sorted(right)), shift)
    assert merged.tolist() == sorted([*left, *(item + shift for item in right)])


@FEW
@given(left=st.lists(st.integers(-9, 9)), right=st.lists(st.integers(-9, 9)), threshold=st.integers(-20, 20))
def test_pairs_are_counted_by_two_pointers_as_one_by_one(left, right, threshold):
    expected = sum(a + b >= threshold for a in left for b in right)
    assert _pairs_at_least(integers(sorted(left)), integers(sorted(right)), threshold) == expected


def test_twenty_six_of_fifty_two_are_held_and_no_more():
    assert n_sums(52, 26) <= _MAX_SUMS < n_sums(54, 27)


def test_more_sums_than_memory_holds_are_refused_before_any_is_made():
    with pytest.raises(AssociationError, match=r"exact p of 40 v 60 targets needs .*e\+\d+ sums.*take method auto"):
        count_at_least(np.zeros(100, dtype=np.int64), 40, (0,))
