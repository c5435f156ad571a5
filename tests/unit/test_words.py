"""Scores of words: the unweighted mean over a word's stimuli, in the order of their first ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distseat.errors import AssociationError
from distseat.statistics import Association, WordScores, group_means

SEEDS = st.integers(0, 2**32 - 1)


def slow_means(values: np.ndarray, groups: list[str]) -> dict[str, list[float]]:
    """Each group's mean, coordinate by coordinate, in the order of its first value."""
    members: dict[str, list[list[float]]] = {}
    for value, group in zip(values.reshape(len(values), -1).tolist(), groups, strict=True):
        members.setdefault(group, []).append(value)
    return {group: [sum(column) / len(column) for column in zip(*rows, strict=True)] for group, rows in members.items()}


def scored(x: list[float], y: list[float]) -> Association:
    return Association(scores_x=np.array(x), scores_y=np.array(y))


@given(
    seed=SEEDS,
    groups=st.lists(st.sampled_from("abcde"), min_size=1, max_size=20),
    shape=st.sampled_from([(), (3,), (2, 2)]),
)
def test_group_means_equal_those_of_a_loop(seed, groups, shape):
    values = np.random.default_rng(seed).normal(size=(len(groups), *shape))
    names, means = group_means(values, groups)
    expected = slow_means(values, groups)
    assert names == tuple(expected)
    assert means.shape == (len(names), *shape)
    np.testing.assert_allclose(means.reshape(len(names), -1), list(expected.values()), atol=1e-14)


@given(seed=SEEDS, n_x=st.integers(1, 12), n_y=st.integers(1, 12), n_words=st.integers(1, 6))
def test_words_have_the_means_of_their_stimuli_in_any_order(seed, n_x, n_y, n_words):
    rng = np.random.default_rng(seed)
    association = Association(scores_x=rng.normal(size=n_x), scores_y=rng.normal(size=n_y))
    words_x = [f"x{i}" for i in rng.integers(n_words, size=n_x)]
    words_y = [f"y{i}" for i in rng.integers(n_words, size=n_y)]
    found = WordScores.of(association, words_x, words_y)
    for words, scores, raw, stimuli in (
        (found.words_x, found.association.scores_x, association.scores_x, words_x),
        (found.words_y, found.association.scores_y, association.scores_y, words_y),
    ):
        expected = slow_means(raw, stimuli)
        assert words == tuple(expected)
        np.testing.assert_allclose(scores, [mean for (mean,) in expected.values()], atol=1e-14)


def test_interleaved_sentences_of_words_computed_by_hand():
    association = scored([1.0, 10.0, 3.0, 20.0, 5.0], [4.0, 0.0, 8.0])
    found = WordScores.of(association, ["he", "him", "he", "him", "he"], ["she", "her", "she"])
    assert (found.words_x, found.words_y) == (("he", "him"), ("she", "her"))
    assert found.association.scores_x.tolist() == [3.0, 15.0]
    assert found.association.scores_y.tolist() == [6.0, 0.0]
    # d of 3, 15 against 6, 0: means 9 and 3, joint mean 6, squared deviations 9 + 81 + 0 + 36 = 126, over 3
    assert found.association.effect_size == pytest.approx(6 / 42**0.5)


def test_a_word_of_many_sentences_counts_as_much_as_a_word_of_one():
    found = WordScores.of(scored([0.0] * 99 + [1.0], [0.0, 0.0]), ["he"] * 99 + ["him"], ["she", "her"])
    assert found.association.statistic == 0.5


@given(seed=SEEDS, n_x=st.integers(1, 9), n_y=st.integers(1, 9))
def test_one_sentence_a_word_is_the_plain_test_to_the_bit(seed, n_x, n_y):
    rng = np.random.default_rng(seed)
    association = Association(scores_x=rng.normal(size=n_x), scores_y=rng.normal(size=n_y))
    found = WordScores.of(association, [f"x{i}" for i in range(n_x)], [f"y{i}" for i in range(n_y)])
    np.testing.assert_array_equal(found.association.joint, association.joint)
    assert len(found.words_x) == n_x
    assert found.association.statistic == association.statistic
    assert found.association.effect_size == association.effect_size


@given(seed=SEEDS)
def test_swapping_x_and_y_negates_the_effect_over_words(seed):
    rng = np.random.default_rng(seed)
    association = Association(scores_x=rng.normal(size=7), scores_y=rng.normal(size=5))
    words_x, words_y = ["a", "b", "a", "c", "b", "a", "a"], ["d", "d", "e", "f", "e"]
    found = WordScores.of(association, words_x, words_y).association.effect_size
    swapped = WordScores.of(association.swapped(), words_y, words_x).association.effect_size
    assert swapped == pytest.approx(-found, abs=1e-12)


def test_a_word_in_both_x_and_y_is_named():
    with pytest.raises(AssociationError, match="the word 'nurse' stands in both X and Y; keep it in one set"):
        WordScores.of(scored([1.0, 2.0], [3.0, 4.0]), ["doctor", "nurse"], ["nurse", "teacher"])


@pytest.mark.parametrize(
    ("words_x", "words_y", "told"),
    [
        (["a"], ["c", "d"], "set X: 1 words for 2 targets"),
        (["a", "b", "e"], ["c", "d"], "set X: 3 words for 2 targets"),
        (["a", "b"], [], "set Y: 0 words for 2 targets"),
        (["a", "b"], ["c", "d", "d"], "set Y: 3 words for 2 targets"),
    ],
)
def test_words_of_the_wrong_number_are_refused_with_both_numbers(words_x, words_y, told):
    with pytest.raises(AssociationError, match=told):
        WordScores.of(scored([1.0, 2.0], [3.0, 4.0]), words_x, words_y)
