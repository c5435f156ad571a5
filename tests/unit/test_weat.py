"""The whole test on four arrays, as a user calls it: `import distseat; distseat.weat(X, Y, A, B)`."""

import json
import subprocess
import sys
from dataclasses import fields
from itertools import combinations
from math import comb, log10

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distseat
from distseat.errors import AssociationError
from distseat.statistics import WordScores, associate, noise_of, permutation_test, seed_sequence

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(st.integers(2, 5), st.integers(2, 5), st.integers(2, 4), st.integers(2, 4))
FEW = settings(max_examples=40, deadline=None)
WORD_FIELDS = [field.name for field in fields(distseat.statistics.WeatResult) if "word" in field.name]


def sets(seed: int, sizes: tuple[int, int, int, int] = (6, 6, 5, 5), *, lift: float = 0.0) -> list[np.ndarray]:
    """Random vectors; `lift` turns X to A, and Y to B."""
    rng = np.random.default_rng(seed)
    found = [rng.normal(size=(n, 8)) for n in sizes]
    for vectors, axis in zip(found, (0, 1, 0, 1), strict=True):
        vectors[:, axis] += lift
    return found


def enumerated(joint: np.ndarray, n_x: int) -> float:
    """The share of all partitions whose difference of means is at least the observed one."""

    def difference(chosen: tuple[int, ...]) -> float:
        return joint[list(chosen)].mean() - np.delete(joint, chosen).mean()

    observed = difference(tuple(range(n_x)))
    found = [difference(chosen) >= observed - 1e-12 for chosen in combinations(range(len(joint)), n_x)]
    return sum(found) / len(found)


# ---- fields


@FEW
@given(seed=SEEDS, sizes=SIZES, alternative=st.sampled_from(["greater", "less", "two-sided"]))
def test_fields_are_those_of_the_association_and_its_permutation_test(seed, sizes, alternative):
    X, Y, A, B = sets(seed, sizes)
    found = distseat.weat(X, Y, A, B, alternative=alternative, seed=7)
    association = associate(X, Y, a=A, b=B)
    test = permutation_test(
        association.joint,
        len(X),
        seed=seed_sequence(7, "weat", "stimulus"),
        alternative=alternative,
        resolution=noise_of(X, Y, A, B).resolution,
    )
    assert found.effect_size == association.effect_size
    assert found.statistic == association.statistic
    assert (found.p_value, found.p_standard_error) == (test.p_value, test.p_standard_error)
    assert (found.p_floor, found.log10_p, found.method_used) == (test.p_floor, test.log10_p, test.method_used)
    assert (found.n_x, found.n_y) == (len(X), len(Y))


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_p_is_the_share_of_partitions_that_separate_as_well(seed, sizes):
    X, Y, A, B = sets(seed, sizes)
    found = distseat.weat(X, Y, A, B)
    assert found.p_value == pytest.approx(enumerated(associate(X, Y, a=A, b=B).joint, len(X)), abs=1e-12)
    assert found.p_floor == 1 / comb(len(X) + len(Y), len(X))
    assert found.p_floor <= found.p_value <= 1
    assert found.log10_p == pytest.approx(log10(found.p_value), abs=1e-12)
    assert found.p_standard_error == 0


def test_without_words_no_field_of_words_is_filled():
    found = distseat.weat(*sets(0))
    assert len(WORD_FIELDS) == 9
    assert all(getattr(found, name) is None for name in WORD_FIELDS)


def test_words_add_the_fields_of_words_and_change_no_other():
    X, Y, A, B = sets(1)
    words_x, words_y = ["a", "b", "a", "c", "b", "a"], ["d", "d", "e", "f", "e", "g"]
    found, plain = distseat.weat(X, Y, A, B, words_x=words_x, words_y=words_y), distseat.weat(X, Y, A, B)
    others = [field.name for field in fields(found) if field.name not in WORD_FIELDS]
    assert [getattr(found, name) for name in others] == [getattr(plain, name) for name in others]
    words = WordScores.of(associate(X, Y, a=A, b=B), words_x, words_y).association
    assert found.effect_size_word == words.effect_size
    assert found.statistic_word == words.statistic
    assert found.p_value_word == pytest.approx(enumerated(words.joint, 3), abs=1e-12)
    assert found.p_floor_word == 1 / comb(7, 3)
    assert found.log10_p_word == pytest.approx(log10(found.p_value_word))
    assert (found.n_words_x, found.n_words_y, found.method_used_word) == (3, 4, "exact")
    assert found.p_standard_error_word == 0


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_one_sentence_a_word_repeats_the_plain_test_to_the_bit(seed, sizes):
    X, Y, A, B = sets(seed, sizes)
    words_x, words_y = [f"x{i}" for i in range(len(X))], [f"y{i}" for i in range(len(Y))]
    found = distseat.weat(X, Y, A, B, words_x=words_x, words_y=words_y)
    for name in ("effect_size", "statistic", "p_value", "p_floor", "log10_p", "method_used"):
        assert getattr(found, f"{name}_word") == getattr(found, name)


def test_sentences_of_few_words_give_no_evidence_for_more():
    # eight sentences a side are two words a side: the p of words cannot be below 1 / 6
    X, Y, A, B = sets(2, (8, 8, 5, 5), lift=4.0)
    found = distseat.weat(X, Y, A, B, words_x=["he", "him"] * 4, words_y=["she", "her"] * 4)
    assert found.p_value == found.p_floor == 1 / comb(16, 8)
    assert found.p_value_word == found.p_floor_word == pytest.approx(1 / 6)


def test_words_may_be_arrays():
    X, Y, A, B = sets(3)
    words_x, words_y = ["a", "b", "c"] * 2, ["d", "e", "f"] * 2
    expected = distseat.weat(X, Y, A, B, words_x=words_x, words_y=words_y)
    assert distseat.weat(X, Y, A, B, words_x=np.array(words_x), words_y=np.array(words_y)) == expected


# ---- alternative


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_less_is_greater_with_the_targets_swapped(seed, sizes):
    X, Y, A, B = sets(seed, sizes)
    less, swapped = distseat.weat(X, Y, A, B, alternative="less"), distseat.weat(Y, X, A, B)
    assert less.p_value == swapped.p_value
    assert less.effect_size == pytest.approx(-swapped.effect_size, abs=1e-12)


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_less_is_greater_with_the_attributes_swapped(seed, sizes):
    X, Y, A, B = sets(seed, sizes)
    less, swapped = distseat.weat(X, Y, A, B, alternative="less"), distseat.weat(X, Y, B, A)
    assert less.p_value == swapped.p_value
    assert less.effect_size == pytest.approx(-swapped.effect_size, abs=1e-12)


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_two_sided_is_twice_the_smaller_of_both(seed, sizes):
    X, Y, A, B = sets(seed, sizes)
    p_values = [
        distseat.weat(X, Y, A, B, alternative=alternative).p_value for alternative in ("greater", "less", "two-sided")
    ]
    assert p_values[2] == min(2 * min(p_values[:2]), 1)
    assert p_values[0] + p_values[1] > 1  # the observed partition counts on both sides


# ---- method


@pytest.mark.parametrize("method", ["auto", "exact", "sampled"])
def test_few_partitions_are_counted(method):
    X, Y, A, B = sets(4, (6, 7, 4, 4))
    assert distseat.weat(X, Y, A, B, method=method).method_used == "exact"


@pytest.mark.parametrize("method", ["exact", "importance", "sampled", "normal"])
def test_the_method_asked_for_is_used_and_near_the_exact_one(method):
    X, Y, A, B = sets(5, (11, 11, 6, 6), lift=1.1)
    exact = distseat.weat(X, Y, A, B, method="exact").p_value
    found = distseat.weat(X, Y, A, B, method=method)
    assert 1e-4 < exact < 0.05
    assert found.method_used == method
    tolerance = 0.3 * exact if method == "normal" else 4 * found.p_standard_error
    assert found.p_value == pytest.approx(exact, rel=1e-12, abs=tolerance)
    assert (found.p_standard_error > 0) == (method in {"importance", "sampled"})


def test_an_exact_count_beyond_memory_is_refused_and_auto_is_named():
    with pytest.raises(AssociationError, match=r"exact p of 40 v 40 .* take method auto"):
        distseat.weat(*sets(6, (40, 40, 5, 5)), method="exact")


# ---- seeds and types


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    X, Y, A, B = sets(7, (40, 40, 5, 5), lift=0.5)
    words = {"words_x": [f"x{i // 2}" for i in range(40)], "words_y": [f"y{i}" for i in range(40)]}
    one, again, other = (distseat.weat(X, Y, A, B, seed=seed, **words) for seed in (1, 1, 2))
    assert one == again
    assert one.method_used == one.method_used_word == "importance"
    assert one.p_value != other.p_value
    assert one.p_value_word != other.p_value_word
    combined = np.hypot(one.p_standard_error, other.p_standard_error)
    assert one.p_value == pytest.approx(other.p_value, abs=5 * combined)


def test_the_global_random_state_is_neither_read_nor_changed():
    X, Y, A, B = sets(7, (40, 40, 5, 5), lift=0.5)
    np.random.seed(1)  # noqa: NPY002 - the state that is not to be touched
    one, before = distseat.weat(X, Y, A, B), np.random.get_state()[1].tolist()  # noqa: NPY002 - likewise
    again = distseat.weat(X, Y, A, B)
    assert one == again
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002 - likewise


@FEW
@given(seed=SEEDS, sizes=SIZES)
def test_float32_vectors_give_what_their_float64_copies_do(seed, sizes):
    narrow = [v.astype(np.float32) for v in sets(seed, sizes)]
    found, wide = distseat.weat(*narrow), distseat.weat(*(v.astype(np.float64) for v in narrow))
    assert (found.effect_size, found.statistic) == (wide.effect_size, wide.statistic)
    # the coarser grid can only add ties, here next to none
    assert wide.p_value <= found.p_value <= wide.p_value + 3 * found.p_floor


@FEW
@given(seed=SEEDS)
def test_float32_vectors_give_nearly_what_the_float64_originals_do(seed):
    X, Y, A, B = sets(seed)
    found = distseat.weat(*(v.astype(np.float32) for v in (X, Y, A, B)))
    assert found.effect_size == pytest.approx(distseat.weat(X, Y, A, B).effect_size, abs=1e-5)


def test_ties_that_rounding_of_float32_parts_are_ties():
    # X and Y hold the same vectors at other lengths: every partition into the same scores is at least as good
    X, _, A, B = sets(8, (4, 4, 5, 5))
    lengths = np.array([[0.1], [3.0], [7.7], [0.013]])
    found = distseat.weat(X.astype(np.float32), (X * lengths).astype(np.float32), A, B)
    assert abs(found.effect_size) < 1e-5
    exact = [X, X, A, B]
    assert found.p_value == distseat.weat(*exact).p_value > 0.5


# ---- errors


@pytest.mark.parametrize("words", [{"words_x": ["a"] * 6}, {"words_y": ["a"] * 6}])
def test_words_for_one_side_only_are_refused(words):
    with pytest.raises(AssociationError, match="give words_x and words_y, or neither"):
        distseat.weat(*sets(0), **words)


@pytest.mark.parametrize(
    ("n_x", "n_y", "told"),
    [
        (5, 6, "set X: 5 labels for 6 vectors"),
        (6, 7, "set Y: 7 labels for 6 vectors"),
        (0, 0, "set X: 0 labels for 6 vectors"),
    ],
)
def test_words_of_the_wrong_number_are_refused_with_both_numbers(n_x, n_y, told):
    with pytest.raises(AssociationError, match=told):
        distseat.weat(*sets(0), words_x=["a"] * n_x, words_y=["b"] * n_y)


def test_a_word_in_both_x_and_y_is_named():
    words_x, words_y = ["he", "him", "his", "man", "boy", "nurse"], ["she", "her", "hers", "woman", "girl", "nurse"]
    with pytest.raises(AssociationError, match="'nurse' stands in both X and Y"):
        distseat.weat(*sets(0), words_x=words_x, words_y=words_y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_targets_that_are_all_alike_are_refused(dtype):
    X, _, A, B = sets(9)
    alike = X[:1] * np.array([[1.0], [3.0], [0.1], [7.7], [2.2], [100.0]])
    with pytest.raises(AssociationError, match=r"all targets have one association score \(largest less smallest"):
        distseat.weat(alike.astype(dtype), alike.astype(dtype), A, B)


def test_attributes_that_cancel_are_refused():
    X, Y, A, _ = sets(9)
    with pytest.raises(AssociationError, match="all targets have one association score"):
        distseat.weat(X, Y, A, A[::-1])


def test_a_zero_vector_is_named_by_its_word():
    X, Y, A, B = sets(0)
    Y[4] = 0
    with pytest.raises(AssociationError, match=r"set Y: vector 4 of 6 \('queen'\) is zero"):
        distseat.weat(X, Y, A, B, words_x=["king"] * 6, words_y=["she", "her", "hers", "woman", "queen", "girl"])


def test_a_set_of_one_is_refused():
    X, Y, A, B = sets(0)
    with pytest.raises(AssociationError, match="X needs two vectors at least"):
        distseat.weat(X[:1], Y, A, B)


def test_a_single_word_a_side_leaves_the_test_of_stimuli_alone():
    sets = np.random.default_rng(0).normal(size=(4, 8, 20))
    assert distseat.weat(*sets, words_x=["a"] * 8, words_y=["b"] * 8) == distseat.weat(*sets)


def test_one_stimulus_a_word_is_one_test_where_p_is_drawn():
    sets = np.random.default_rng(0).normal(size=(4, 40, 20))
    found = distseat.weat(*sets, words_x=[f"x{i}" for i in range(40)], words_y=[f"y{i}" for i in range(40)])
    assert found.method_used == "importance"
    assert (found.p_value, found.p_standard_error) == (found.p_value_word, found.p_standard_error_word)


def test_words_that_all_have_one_score_leave_the_test_of_stimuli_alone():
    east, north = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    mixed = np.array([east, north])
    sets = (mixed, mixed[::-1], np.array([east, east]), np.array([north, north]))
    found = distseat.weat(*sets, words_x=["he", "he"], words_y=["she", "she"])
    assert found == distseat.weat(*sets)
    assert (found.effect_size_word, found.p_value_word) == (None, None)


@pytest.mark.parametrize("options", [{"alternative": "two_sided"}, {"method": "montecarlo"}])
def test_an_unknown_option_is_refused(options):
    with pytest.raises((AssociationError, ValueError, KeyError)):
        distseat.weat(*sets(0), **options)


# ---- the package's own name


def test_importing_distseat_loads_nothing_heavy():
    script = "import sys, json, distseat; print(json.dumps([distseat.__version__, sorted(sys.modules)]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    version, loaded = json.loads(done.stdout)
    assert version == distseat.__version__
    assert "distseat" in loaded
    assert not {"ray", "torch", "tensorflow", "pandas", "numba", "scipy", "numpy"} & set(loaded)


def test_the_statistics_load_neither_ray_nor_a_framework():
    script = "import sys, json, distseat; distseat.weat; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    loaded = set(json.loads(done.stdout))
    assert "distseat.statistics" in loaded
    assert not {"ray", "torch", "tensorflow", "pandas", "transformers", "pyarrow", "pydantic"} & loaded


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'distseat' has no attribute 'nothing'"):
        _ = distseat.nothing


def test_all_names_of_the_package_can_be_had():
    assert {name: getattr(distseat, name) is not None for name in distseat.__all__} == dict.fromkeys(
        ["__version__", "holm", "weat", "wefat"], True
    )


def test_holm_corrects_what_weat_found():
    p_values = np.array([distseat.weat(*sets(seed, lift=lift)).p_value for seed, lift in ((0, 5.0), (1, 0.0))])
    decision = distseat.holm(p_values, alpha=0.05)
    assert decision.rejected.tolist() == [True, False]
    assert decision.adjusted[0] == 2 * p_values[0]
