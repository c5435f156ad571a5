"""P-values keep their level: a smaller, seeded version of benchmarks/calibration.py."""

from math import floor, sqrt

import numpy as np
import pytest

from distseat.statistics import Association, WordScores, permutation_test, seed_sequence

N_STANDARD_ERRORS = 4


def deviation(p_values, level, attainable):
    """How far the share of p at or below a level lies from what it should be, in binomial standard errors."""
    share = np.mean(np.asarray(p_values) <= level)
    return abs(share - attainable) / sqrt(attainable * (1 - attainable) / len(p_values))


@pytest.mark.parametrize(
    ("method", "n", "n_values", "n_data_sets"),
    [("exact", 8, 12_870, 10_000), ("importance", 8, 12_870, 4_000), ("sampled", 11, 100_000, 200)],
    ids=["exact", "importance", "sampled"],
)
def test_every_method_keeps_the_attainable_level(method, n, n_values, n_data_sets):
    seed = seed_sequence("level", method)
    rng = np.random.default_rng(seed)
    seeds = seed.spawn(n_data_sets)
    tests = [permutation_test(rng.standard_normal(2 * n), n, seed=each, method=method) for each in seeds]
    p_values = [test.p_value for test in tests]
    assert {test.method_used for test in tests} <= {method, "exact"}  # the highest scores of all: counted
    for level in (0.05, 0.01):
        assert deviation(p_values, level, floor(level * n_values) / n_values) < N_STANDARD_ERRORS, level


@pytest.fixture(scope="module")
def alike_p_values(published):
    """p of sentences and of words, shape (data sets, 2): C7's sentences, nearly alike within a word, no difference."""
    form = next(form for form in published if form.file == "sent-weat7")
    words_x, words_y = ([stimulus.word for stimulus in form.stimuli[role]] for role in ("X", "Y"))
    seed = seed_sequence("alike")
    rng = np.random.default_rng(seed)

    def scores(words):
        _, index = np.unique(words, return_inverse=True)
        return 2 + sqrt(0.9) * rng.standard_normal(index.max() + 1)[index] + sqrt(0.1) * rng.standard_normal(len(words))

    def pair(seeds):
        sentences = Association(scores_x=scores(words_x), scores_y=scores(words_y))
        by_word = WordScores.of(sentences, words_x, words_y).association
        return [
            permutation_test(of.joint, len(of.scores_x), seed=each).p_value
            for of, each in zip((sentences, by_word), seeds, strict=True)
        ]

    return np.array([pair(each.spawn(2)) for each in seed.spawn(800)])


def test_the_sentences_of_c7_are_unequal_in_number(published):
    form = next(form for form in published if form.file == "sent-weat7")
    counts = np.unique([stimulus.word for stimulus in form.stimuli["X"]], return_counts=True)[1]
    assert sorted(set(counts)) == [4, 14]


def test_words_as_units_keep_the_level_where_sentences_are_alike(alike_p_values):
    attainable = floor(0.05 * 12_870) / 12_870
    assert deviation(alike_p_values[:, 1], 0.05, attainable) < N_STANDARD_ERRORS


def test_sentences_as_units_do_not_keep_it(alike_p_values):
    assert np.mean(alike_p_values[:, 0] <= 0.05) > 0.2
