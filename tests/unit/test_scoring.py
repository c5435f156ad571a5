"""Rows against the statistics called directly, void rows, the decision over a run, and rows that depend on no other."""

import dataclasses
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.definitions import ROLES, Stimulus, TestForm
from distseat.errors import AssociationError
from distseat.models import EncodingOptions, ModelSpec, ResolvedModel, VectorSpec
from distseat.scoring import MIN_SPREAD, decide, score_forms
from distseat.statistics import Association, associate, holm, permutation_test, seed_sequence
from distseat.stores import ResultRow, StoredVectors

DIMENSION = 13
MODEL = ResolvedModel(
    spec=ModelSpec(name="tiny", source="owner/tiny", options=EncodingOptions(prefix_bos=True)),
    revision="0123abc",
    n_hidden_states=5,
)
WORD, SENT, CWORD = (
    VectorSpec(encoding, pooling, 4)
    for encoding, pooling in (("word", "mean"), ("sent", "mean"), ("c-word", "first-subword"))
)
ABOUT = {"torch": "2.0", "device": "cpu"}


def form(test_id: str, name: str = "sent", sizes: Sequence[int] = (4, 4, 3, 3)) -> TestForm:
    """A test of which every stimulus is its own, but for the attributes, which all tests share."""
    stimuli = {}
    for role, size in zip(ROLES, sizes, strict=True):
        owner = test_id if role in "XY" else "all"
        words = [f"{owner}{role}{i}" for i in range(size)]
        texts = words if name == "word" else [f"This is {word}." for word in words]
        stimuli[role] = tuple(
            Stimulus(text, word, text.index(word), text.index(word) + len(word))
            for text, word in zip(texts, words, strict=True)
        )
    labels = {role: f"{test_id}-{role}" for role in ROLES}
    return TestForm(test_id, name, f"{name}-{test_id}", f"Title of {test_id}", "own", labels, stimuli)


class Memory:
    """Vectors of any stimulus, made from its key: what a store would read, without one."""

    def __init__(self, *, seed: int = 0, changes: dict[str, object] | None = None, alike: float | None = None) -> None:
        self.seed = seed
        self.changes = changes or {}
        self.alike = alike

    def vector(self, spec: VectorSpec, key: str) -> np.ndarray:
        if key in self.changes:
            return np.full(DIMENSION, self.changes[key], dtype=np.float32)
        rng = np.random.default_rng(
            [self.seed, spec.layer, *spec.pooling.encode(), *spec.encoding.encode(), int(key, 16)]
        )
        drawn = rng.normal(size=DIMENSION)
        return (drawn if self.alike is None else 1 + self.alike * drawn).astype(np.float32)

    def __call__(self, spec: VectorSpec, keys: frozenset[str]) -> StoredVectors:
        ordered = sorted(keys)
        numbers = np.array([int(key, 16) % 5 for key in ordered], dtype=np.int32)
        return StoredVectors(
            vectors=np.array([self.vector(spec, key) for key in ordered]),
            n_subtokens=numbers + 1,
            positions=np.full(len(ordered), -1, np.int32) if spec.pooling == "mean" else numbers % 2,
            rows={key: i for i, key in enumerate(ordered)},
            about=ABOUT,
        )

    def associate(self, spec: VectorSpec, chosen: TestForm) -> Association:
        x, y, a, b = (np.array([self.vector(spec, s.key) for s in chosen.stimuli[role]]) for role in ROLES)
        return associate(x, y, a=a, b=b)


def score(forms: Sequence[TestForm], specs: Sequence[VectorSpec], *, read: Memory, seed: int = 0) -> list[ResultRow]:
    return score_forms(MODEL, forms, specs, read=read, seed=seed)


# ---- rows


@pytest.mark.parametrize("sizes", [(4, 4, 3, 3), (6, 3, 1, 5), (2, 2, 1, 1), (12, 13, 4, 4)])
@pytest.mark.parametrize("spec", [WORD, SENT, CWORD])
def test_a_row_is_what_the_statistics_say(spec, sizes):
    chosen = form("weat1", "word" if spec is WORD else "sent", sizes)
    memory = Memory(seed=3)
    (row,) = score([chosen], [spec], read=memory, seed=7)
    association = memory.associate(spec, chosen)
    stream = seed_sequence(7, "weat1", chosen.form, "stimulus")
    test = permutation_test(association.joint[:, None], sizes[0], seed=stream, resolution=1e-7)
    assert row.statistic == association.statistic
    assert row.effect_size == association.effect_size
    assert row.p_value == test.p_values[0]
    assert (row.p_floor, row.method) == (test.p_floor, test.method)
    assert (row.n_x, row.n_y, row.n_a, row.n_b) == sizes
    assert row.seed == 7


def test_a_row_says_what_was_measured():
    (row,) = score([form("weat1")], [CWORD], read=Memory())
    key = (row.model, row.revision, row.pooling, row.layer, row.encoding, row.test, row.form)
    assert key == ("tiny", "0123abc", "first-subword", 4, "c-word", "weat1", "sent")
    assert (row.file, row.title, row.group) == ("sent-weat1", "Title of weat1", "own")
    assert json.loads(row.options) == {"dtype": "float32", "special_tokens": "include", "prefix_bos": True}
    assert json.loads(row.versions) | ABOUT == json.loads(row.versions)
    assert {"distseat", "numpy"} < json.loads(row.versions).keys()
    assert (row.void_reason, row.decision, row.p_adjusted, row.family_size, row.alpha) == (None,) * 5


def test_sub_tokens_are_averaged_over_the_stimuli_of_a_set():
    chosen = form("weat1")
    (row,) = score([chosen], [CWORD], read=Memory())
    for role, found in (("X", row.subtokens_x), ("Y", row.subtokens_y)):
        assert found == pytest.approx(np.mean([int(s.key, 16) % 5 + 1 for s in chosen.stimuli[role]]))
    assert row.position_0_share == np.mean([int(s.key, 16) % 5 % 2 == 0 for role in "XY" for s in chosen.stimuli[role]])


def test_what_the_tokenizer_cannot_tell_is_null():
    chosen = form("weat1")
    unknown = chosen.stimuli["Y"][1].key

    def read(spec: VectorSpec, keys: frozenset[str]) -> StoredVectors:
        found = Memory()(spec, keys)
        found.n_subtokens[found.rows[unknown]] = found.positions[found.rows[unknown]] = -1
        return found

    (row,) = score_forms(MODEL, [chosen], [CWORD], read=read, seed=0)
    assert row.subtokens_x is not None
    assert row.subtokens_y is None
    assert row.position_0_share is None
    assert row.p_value is not None


def test_a_vector_of_several_tokens_has_no_position():
    assert score([form("weat1")], [SENT], read=Memory())[0].position_0_share is None


def test_every_test_is_measured_in_every_encoding_that_it_has():
    forms = [form("weat1", "word"), form("weat1", "sent"), form("bind", "unbleached"), form("bind", "paragraph_1")]
    rows = score(forms, [WORD, SENT, CWORD], read=Memory())
    assert [(row.encoding, row.test, row.form) for row in rows] == [
        ("word", "weat1", "word"),
        ("sent", "weat1", "sent"),
        ("sent", "bind", "unbleached"),
        ("sent", "bind", "paragraph_1"),
        ("c-word", "weat1", "sent"),
        ("c-word", "bind", "unbleached"),
    ]


def test_only_the_vectors_that_are_needed_are_asked_for_and_each_kind_once():
    asked = []

    def read(spec: VectorSpec, keys: frozenset[str]) -> StoredVectors:
        asked.append((spec, keys))
        return Memory()(spec, keys)

    forms = [form("weat1", "word"), form("weat2", "sent"), form("weat3", "sent")]
    score_forms(MODEL, forms, [WORD, SENT], read=read, seed=0)
    keys = [frozenset(s.key for role in ROLES for s in chosen.stimuli[role]) for chosen in forms]
    assert asked == [(WORD, keys[0]), (SENT, keys[1] | keys[2])]


def test_nothing_asked_gives_no_rows():
    assert score([], [SENT], read=Memory()) == []
    assert score([form("weat1", "word")], [SENT], read=Memory()) == []


# ---- rows depend on no other


SPECS = [VectorSpec("sent", pooling, layer) for pooling in ("cls", "mean") for layer in (0, 2, 4)] + [CWORD]
FORMS = [form("weat1"), form("weat2", sizes=(13, 12, 4, 2)), form("weat3", sizes=(3, 5, 2, 2)), form("weat4")]


def by_key(rows: Sequence[ResultRow]) -> dict[tuple[object, ...], ResultRow]:
    return {(row.encoding, row.pooling, row.layer, row.test, row.form): row for row in rows}


@pytest.fixture(scope="module")
def together() -> dict[tuple[object, ...], ResultRow]:
    return by_key(score(FORMS, SPECS, read=Memory()))


@settings(max_examples=8, deadline=None)
@given(
    forms=st.permutations(FORMS).flatmap(lambda some: st.integers(1, 4).map(lambda n: some[:n])),
    specs=st.permutations(SPECS).flatmap(lambda some: st.integers(1, 3).map(lambda n: some[:n])),
)
def test_a_row_has_the_same_bits_whatever_is_scored_beside_it(forms, specs, together):
    rows = score(forms, specs, read=Memory())
    assert len(rows) == len(forms) * len(specs)
    for key, row in by_key(rows).items():
        assert row == together[key]


def test_another_seed_changes_the_sampled_p_alone(together):
    again = by_key(score(FORMS, SPECS[:2], read=Memory(), seed=1))
    for key, row in again.items():
        before = together[key]
        assert (row.statistic, row.effect_size) == (before.statistic, before.effect_size)
        if row.method == "exact":
            assert row.p_value == before.p_value
    sampled = [key for key, row in again.items() if row.method == "sampled"]
    assert any(again[key].p_value != together[key].p_value for key in sampled)


def test_the_partitions_of_a_test_are_the_same_for_every_model():
    other = ResolvedModel(spec=ModelSpec(name="other", source="a/b"), revision="ffff", n_hidden_states=5)
    (row,) = score_forms(MODEL, FORMS[1:2], [SENT], read=Memory(), seed=0)
    (same,) = score_forms(other, FORMS[1:2], [SENT], read=Memory(), seed=0)
    assert row.method == "sampled"
    assert row.p_value == same.p_value


# ---- void rows


def check_void(row: ResultRow) -> None:
    assert (row.statistic, row.effect_size, row.p_value, row.p_floor, row.method) == (None,) * 5
    assert row.void_reason is not None
    assert row.void_reason.startswith("all targets have one association score: largest less smallest is ")
    assert row.void_reason.endswith("below 1e-06, the noise of float32")
    assert not any(isinstance(value, float) and math.isnan(value) for value in dataclasses.astuple(row))


@pytest.mark.parametrize("alike", [0.0, 1e-9, 1e-7])
def test_vectors_that_are_all_alike_give_a_void_row_with_its_reason(alike):
    chosen, memory = form("weat1"), Memory(alike=alike)
    assert memory.associate(SENT, chosen).spread < MIN_SPREAD
    (row,) = score([chosen], [SENT], read=memory)
    check_void(row)
    assert (row.n_x, row.n_a, row.test) == (4, 3, "weat1")


def test_vectors_that_differ_enough_are_tested():
    chosen, memory = form("weat1"), Memory(alike=0.05)
    assert memory.associate(SENT, chosen).spread > 10 * MIN_SPREAD
    (row,) = score([chosen], [SENT], read=memory)
    assert row.void_reason is None
    assert row.p_value is not None


def test_equal_attributes_give_a_void_row():
    chosen = form("weat1")
    same = {s.key: 1.0 for role in "AB" for s in chosen.stimuli[role]}
    (row,) = score([chosen], [SENT], read=Memory(changes=same))
    check_void(row)


def test_a_void_row_leaves_the_others_as_they_are(together):
    void_form = form("weat9")
    alike = {s.key: 1.0 for role in "XY" for s in void_form.stimuli[role]}
    rows = score([FORMS[0], void_form, FORMS[2]], SPECS[:1], read=Memory(changes=alike))
    check_void(rows[1])
    for row in (rows[0], rows[2]):
        assert row == together[row.encoding, row.pooling, row.layer, row.test, row.form]


# ---- what cannot be scored


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("value", "norm"), [(0.0, r"0\.0"), (np.nan, "nan"), (np.inf, "inf")])
def test_a_vector_without_direction_is_told_with_model_vector_test_and_text(role, value, norm):
    chosen = form("weat7")
    bad = chosen.stimuli[role][2]
    expected = (
        rf"^model tiny, .*sent.*mean.*4.*, test weat7 sent: set {role}: vector 2 of \d has norm {norm}, .*"
        rf"\('{bad.text}'\)$"
    )
    with pytest.raises(AssociationError, match=expected):
        score([form("weat1", "word"), chosen, form("weat2")], [SENT], read=Memory(changes={bad.key: value}))


def test_the_first_texts_without_direction_are_told():
    chosen = form("weat7")
    changes = {s.key: 0.0 for s in chosen.stimuli["X"]}
    with pytest.raises(AssociationError, match=r"\('This is weat7X0\.', 'This is weat7X1\.', 'This is weat7X2\.'\)"):
        score([chosen], [SENT], read=Memory(changes=changes))


# ---- the decision over a run


BASE = score([FORMS[0]], [SENT], read=Memory())[0]
P_VALUES = st.lists(st.none() | st.floats(1e-9, 1.0), min_size=1, max_size=12)


def rows_of(p_values: Sequence[float | None]) -> list[ResultRow]:
    return [
        dataclasses.replace(BASE, p_value=p, test=f"t{i}", void_reason=None if p is not None else "void")
        for i, p in enumerate(p_values)
    ]


@settings(deadline=None)
@given(p_values=P_VALUES, alpha=st.sampled_from([0.001, 0.01, 0.05, 0.5]))
def test_rows_that_are_not_void_are_corrected_together(p_values, alpha):
    decided = decide(rows_of(p_values), alpha=alpha)
    family = [p for p in p_values if p is not None]
    expected = holm(np.array(family, dtype=np.float64), alpha=alpha)
    live = [row for row in decided if row.p_value is not None]
    assert [row.p_adjusted for row in live] == expected.adjusted.tolist()
    assert [row.decision == "reject" for row in live] == expected.rejected.tolist()
    assert {row.family_size for row in decided} == {len(family)}
    assert {row.alpha for row in decided} == {alpha}


@settings(deadline=None)
@given(p_values=P_VALUES)
def test_a_void_row_is_not_decided_and_does_not_count(p_values):
    decided = decide(rows_of(p_values), alpha=0.05)
    without = decide([row for row in rows_of(p_values) if row.p_value is not None], alpha=0.05)
    assert [row for row in decided if row.p_value is not None] == without
    for row in decided:
        if row.p_value is None:
            assert (row.decision, row.p_adjusted) == (None, None)


def test_deciding_changes_the_decision_alone_and_keeps_the_order():
    rows = rows_of([0.2, None, 0.001])
    plain = [
        dataclasses.replace(row, p_adjusted=None, decision=None, family_size=None, alpha=None)
        for row in decide(rows, alpha=0.01)
    ]
    assert plain == rows


def test_a_run_decided_by_hand():
    decided = decide(rows_of([0.004, None, 0.02, 0.003]), alpha=0.01)
    assert [row.p_adjusted for row in decided] == pytest.approx([0.009, None, 0.02, 0.009])
    assert [row.decision for row in decided] == ["reject", None, "retain", "reject"]
    assert [row.family_size for row in decided] == [3] * 4


def test_deciding_twice_decides_the_same():
    once = decide(rows_of([0.004, None, 0.02]), alpha=0.01)
    assert decide(once, alpha=0.01) == once


def test_a_run_of_void_rows_alone_decides_nothing():
    decided = decide(rows_of([None, None]), alpha=0.01)
    assert [(row.decision, row.family_size) for row in decided] == [(None, 0)] * 2
    assert decide([], alpha=0.01) == []
