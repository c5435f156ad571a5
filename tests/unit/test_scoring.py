"""Rows against the statistics called directly, void rows, rows that depend on no other, the decisions over a run."""

import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.config import Correction, ScoringOptions
from distseat.definitions import ROLES, Stimulus, TestForm
from distseat.errors import AssociationError
from distseat.models import EncodingOptions, ModelSpec, ResolvedModel, VectorSpec
from distseat.scoring import ReadVectors, Scored, correct_words, decide, score_forms
from distseat.statistics import (
    FLOAT32_NOISE,
    Association,
    Attributes,
    Resamples,
    UnitSets,
    WordScores,
    associate,
    benjamini_hochberg,
    effect_size_interval,
    holm,
    ml_eat,
    permutation_test,
    ripa,
    same,
    seed_sequence,
    westfall_young,
)
from distseat.stores import FamilyMember, ResultRow, RowKey, RowWords, StoredVectors

DIMENSION = 13
MODEL = ResolvedModel(
    spec=ModelSpec(name="tiny", source="owner/tiny", options=EncodingOptions(prefix_bos=True)),
    revision="0123abc",
    n_hidden_states=5,
)
OTHER_MODEL = ResolvedModel(spec=ModelSpec(name="other", source="a/b"), revision="ffff", n_hidden_states=5)
WORD, SENT, CWORD = (
    VectorSpec(encoding, pooling, 4)
    for encoding, pooling in (("word", "mean"), ("sent", "mean"), ("c-word", "first-subword"))
)
ABOUT = {"torch": "2.0", "device": "cpu"}
TEMPLATES = ("This is {}.", "Here they see {}, and", "There is {} for them.")
LARGE = (24, 24, 3, 3)  # more sums than are counted one by one

NULLABLE = {field.name for field in dataclasses.fields(ResultRow) if type(None) in get_args(field.type)}
DECIDED = {"p_adjusted", "decision", "family_size", "p_adjusted_word", "decision_word", "family_size_word", "alpha"}
P_FIELDS = ("p_value", "log10_p", "p_standard_error", "p_floor", "p_less", "method_used")
WORD_FIELDS = {f"{name}_word" for name in P_FIELDS} | {
    "n_words_x",
    "n_words_y",
    "effect_size_word",
    "interval_low",
    "interval_high",
}


def options(**changes: object) -> ScoringOptions:
    plain = {"seed": 0, "method": "auto", "alternative": "greater", "interval": "bca", "resample": "targets"}
    return ScoringOptions(**plain | changes)


def form(test_id: str, name: str = "sent", sizes: Sequence[int] = (4, 4, 3, 3), *, n_sentences: int = 1) -> TestForm:
    # A test of so many words a role; each word has 1 to `n_sentences` sentences; all tests share the attributes.
    stimuli = {}
    for role, size in zip(ROLES, sizes, strict=True):
        owner = test_id if role in "XY" else "all"
        stimuli[role] = tuple(
            stimulus(f"{owner}{role}{i}", "" if name == "word" else TEMPLATES[k])
            for k in range(n_sentences)
            for i in range(size)
            if k <= i % n_sentences
        )
    labels = {role: f"{test_id}-{role}" for role in ROLES}
    return TestForm(test_id, name, f"{name}-{test_id}", f"Title of {test_id}", "own", labels, stimuli)


def stimulus(word: str, template: str = "") -> Stimulus:
    text = template.format(word) if template else word
    return Stimulus(text, word, text.index(word), text.index(word) + len(word), template)


def without_words(chosen: TestForm, roles: str = "XYAB", *, first_only: bool = False) -> TestForm:
    # The test as of sentences that came ready made.

    def bare(i: int, role: str, known: Stimulus) -> Stimulus:
        return Stimulus(known.text, "", 0, 0) if role in roles and not (first_only and i) else known

    stimuli = {role: tuple(bare(i, role, s) for i, s in enumerate(chosen.stimuli[role])) for role in ROLES}
    return dataclasses.replace(chosen, stimuli=stimuli)


class Memory:
    # Vectors of any stimulus, made from its key: what a store would read, without one.

    def __init__(
        self, *, seed: int = 0, changes: Mapping[str, object] | None = None, alike: float | None = None
    ) -> None:
        self.seed = seed
        self.changes = changes or {}
        self.alike = alike

    def vector(self, spec: VectorSpec, key: str) -> np.ndarray:
        if key in self.changes:
            return np.broadcast_to(np.asarray(self.changes[key], dtype=np.float32), DIMENSION)
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

    def sets(self, spec: VectorSpec, chosen: TestForm) -> dict[str, np.ndarray]:
        return {role: np.array([self.vector(spec, s.key) for s in chosen.stimuli[role]]) for role in ROLES}

    def associate(self, spec: VectorSpec, chosen: TestForm) -> Association:
        sets = self.sets(spec, chosen)
        return associate(sets["X"], sets["Y"], a=sets["A"], b=sets["B"])


def words_of(chosen: TestForm, role: str) -> list[str]:
    return [s.word for s in chosen.stimuli[role]]


def word_scores(association: Association, chosen: TestForm) -> WordScores:
    return WordScores.of(association, words_of(chosen, "X"), words_of(chosen, "Y"))


def keys_of(*forms: TestForm) -> list[str]:
    return sorted({s.key for chosen in forms for role in ROLES for s in chosen.stimuli[role]})


def score(
    forms: Sequence[TestForm],
    specs: Sequence[VectorSpec],
    *,
    read: ReadVectors,
    model: ResolvedModel = MODEL,
    postprocessings: Sequence[str] = ("none",),
    population: Mapping[str, Sequence[str]] | None = None,
    **changes: object,
) -> list[Scored]:
    return score_forms(
        model,
        forms,
        specs,
        read=read,
        options=options(**changes),
        postprocessings=postprocessings,
        population=population,
    )


def score_rows(*arguments: object, **named: object) -> list[ResultRow]:
    return [each.row for each in score(*arguments, **named)]


def score_one(
    chosen: TestForm, *, read: ReadVectors | None = None, spec: VectorSpec = SENT, **named: object
) -> ResultRow:
    (found,) = score([chosen], [spec], read=read or Memory(), **named)
    return found.row


def fields_of(row: ResultRow, names: Sequence[str], unit: str = "") -> dict[str, object]:
    return {name: getattr(row, name + unit) for name in names}


# ---- rows


@pytest.mark.parametrize("sizes", [(4, 4, 3, 3), (6, 3, 2, 5), (2, 2, 2, 2), (12, 13, 4, 4), LARGE])
@pytest.mark.parametrize("spec", [WORD, SENT, CWORD])
def test_a_row_is_what_the_statistics_say_of_stimuli_and_of_words(spec, sizes):
    chosen = form("weat1", "word") if spec is WORD else form("weat1", sizes=sizes, n_sentences=3)
    memory = Memory(seed=3)
    row = score_one(chosen, read=memory, spec=spec, seed=7)
    association = memory.associate(spec, chosen)
    words = word_scores(association, chosen).association
    for unit, scores in (("", association), ("_word", words)):
        stream = seed_sequence(7, "weat1", chosen.form, "word" if unit else "stimulus", MODEL.key, *spec, "none")
        test = permutation_test(scores.joint, len(scores.scores_x), seed=stream, resolution=1e-7)
        assert fields_of(row, P_FIELDS, unit) == {name: getattr(test, name) for name in P_FIELDS}
    assert (row.statistic, row.effect_size) == (association.statistic, association.effect_size)
    assert row.effect_size_word == words.effect_size
    assert (row.n_x, row.n_y, row.n_a, row.n_b) == tuple(len(chosen.stimuli[role]) for role in ROLES)
    assert (row.n_words_x, row.n_words_y) == tuple(len(set(words_of(chosen, role))) for role in "XY")
    assert (row.seed, row.alternative) == (7, "greater")


def test_both_ways_of_finding_a_p_were_compared_above():
    small, large = (score_one(form("weat1", sizes=sizes, n_sentences=3)) for sizes in ((4, 4, 3, 3), LARGE))
    assert (small.method_used, small.method_used_word) == ("exact", "exact")
    assert (large.method_used, large.method_used_word) == ("importance", "importance")
    assert large.p_standard_error > 0 < large.p_standard_error_word


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("method", ["exact", "importance", "sampled", "normal"])
def test_method_and_alternative_reach_both_units(method, alternative):
    chosen, memory = form("weat1", sizes=(10, 11, 3, 3), n_sentences=2), Memory(seed=5)
    row = score_one(chosen, read=memory, method=method, alternative=alternative)
    association = memory.associate(SENT, chosen)
    words = word_scores(association, chosen).association
    own = () if method == "sampled" else (MODEL.key, *SENT, "none")
    for unit, scores in (("", association), ("_word", words)):
        test = permutation_test(
            scores.joint,
            len(scores.scores_x),
            seed=seed_sequence(0, "weat1", "sent", "word" if unit else "stimulus", *own),
            method=method,
            alternative=alternative,
            resolution=1e-7,
        )
        assert test.method_used == method
        assert fields_of(row, P_FIELDS, unit) == {name: getattr(test, name) for name in P_FIELDS}
    assert row.alternative == alternative


def test_p_less_is_the_p_of_the_other_side():
    chosen, memory = form("weat1", n_sentences=2), Memory(seed=2)
    greater, less, both = (
        score_one(chosen, read=memory, alternative=alternative) for alternative in ("greater", "less", "two-sided")
    )
    for unit in ("", "_word"):
        p, p_less = (getattr(greater, f"{name}{unit}") for name in ("p_value", "p_less"))
        assert getattr(less, f"p_value{unit}") == getattr(less, f"p_less{unit}") == p_less
        assert getattr(both, f"p_value{unit}") == min(1.0, 2 * min(p, p_less))
        assert p + p_less > 1  # the observed partition counts on both sides
        assert getattr(both, f"p_less{unit}") == p_less


def test_a_row_says_what_was_measured():
    row = score_one(form("weat1"), spec=CWORD)
    key = ("tiny", "0123abc", "c-word", "first-subword", 4, "none", "weat1", "sent")
    assert row.key == RowKey(*key)
    assert (row.key.model, row.key.layer, row.key.postprocessing, row.key.form) == ("tiny", 4, "none", "sent")
    assert (row.file, row.title, row.group) == ("sent-weat1", "Title of weat1", "own")
    assert json.loads(row.options) == {"dtype": "float32", "special_tokens": "include", "prefix_bos": True}
    assert json.loads(row.versions) | ABOUT == json.loads(row.versions)
    assert {"distseat", "numpy"} < json.loads(row.versions).keys()
    assert (row.void_reason, *(getattr(row, name) for name in sorted(DECIDED))) == (None,) * 8


def test_a_row_that_is_not_void_and_not_decided_lacks_nothing_else():
    row = score_one(form("weat1", n_sentences=3), spec=CWORD)
    assert {name for name in NULLABLE if getattr(row, name) is None} == DECIDED | {"void_reason"}


def test_sub_tokens_are_averaged_over_the_stimuli_of_a_set():
    chosen = form("weat1")
    row = score_one(chosen, spec=CWORD)
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

    row = score_one(chosen, read=read, spec=CWORD)
    assert row.subtokens_x is not None
    assert row.subtokens_y is None
    assert row.position_0_share is None
    assert row.p_value is not None


def test_a_vector_of_several_tokens_has_no_position():
    assert score_one(form("weat1")).position_0_share is None


def test_every_test_is_measured_in_every_encoding_that_it_has():
    forms = [form("weat1", "word"), form("weat1", "sent"), form("bind", "unbleached"), form("bind", "paragraph_1")]
    rows = score_rows(forms, [WORD, SENT, CWORD], read=Memory())
    assert [(row.encoding, row.test, row.form) for row in rows] == [
        ("word", "weat1", "word"),
        ("sent", "weat1", "sent"),
        ("sent", "bind", "unbleached"),
        ("sent", "bind", "paragraph_1"),
        ("c-word", "weat1", "sent"),
        ("c-word", "bind", "unbleached"),
    ]


def test_rows_come_in_the_order_of_vectors_then_postprocessing_then_tests():
    forms = [form("weat2"), form("weat1")]
    specs = [VectorSpec("sent", "mean", layer) for layer in (3, 1)]
    hows = ("standardize", "none")
    rows = score_rows(forms, specs, read=Memory(), postprocessings=hows, population={"sent": keys_of(*forms)})
    assert [(row.layer, row.postprocessing, row.test) for row in rows] == list(
        itertools.product((3, 1), hows, ("weat2", "weat1"))
    )


def test_only_the_vectors_that_are_needed_are_asked_for_and_each_kind_once():
    asked = []

    def read(spec: VectorSpec, keys: frozenset[str]) -> StoredVectors:
        asked.append((spec, keys))
        return Memory()(spec, keys)

    forms = [form("weat1", "word"), form("weat2", "sent"), form("weat3", "sent")]
    everyone = {"word": keys_of(form("weat9", "word")), "sent": keys_of(form("weat9"))}
    keys = [frozenset(keys_of(chosen)) for chosen in forms]
    score(forms, [WORD, SENT], read=read)
    score(forms, [WORD, SENT], read=read, postprocessings=("none", "center"), population=everyone)
    assert asked == [
        (WORD, keys[0]),
        (SENT, keys[1] | keys[2]),
        (WORD, keys[0] | set(everyone["word"])),
        (SENT, keys[1] | keys[2] | set(everyone["sent"])),
    ]


def test_nothing_asked_gives_no_rows():
    assert score([], [SENT], read=Memory()) == []
    assert score([form("weat1", "word")], [SENT], read=Memory()) == []


# ---- words


def test_with_one_sentence_a_word_both_units_say_the_same():
    for sizes in ((4, 4, 3, 3), (3, 6, 2, 2), (10, 11, 3, 3)):
        row = score_one(form("weat1", sizes=sizes), read=Memory(seed=4))
        assert fields_of(row, ("effect_size", *P_FIELDS)) == fields_of(row, ("effect_size", *P_FIELDS), "_word")
        assert (row.n_words_x, row.n_words_y) == (row.n_x, row.n_y)


def test_where_p_is_drawn_one_sentence_a_word_is_still_one_test():
    row = score_one(form("weat1", sizes=LARGE))
    assert row.method_used == row.method_used_word == "importance"
    assert (row.effect_size, row.p_value) == (row.effect_size_word, row.p_value_word)
    assert (row.p_less, row.p_standard_error) == (row.p_less_word, row.p_standard_error_word)


def test_the_words_of_a_row_are_their_mean_scores_in_the_order_of_their_first_sentence():
    chosen, memory = form("weat1", sizes=(5, 3, 3, 3), n_sentences=3), Memory(seed=6)
    (found,) = score([chosen], [CWORD], read=memory)
    association = memory.associate(CWORD, chosen)
    for role, words, scores, every in (
        ("X", found.words.words_x, found.words.scores_x, association.scores_x),
        ("Y", found.words.words_y, found.words.scores_y, association.scores_y),
    ):
        assert words == tuple(dict.fromkeys(words_of(chosen, role)))
        naive = [every[[w == word for w in words_of(chosen, role)]].mean() for word in words]
        assert scores == pytest.approx(naive, rel=1e-12)
        assert all(type(value) is float for value in scores)
    assert found.words.key == found.row.key
    joint = np.array([*found.words.scores_x, *found.words.scores_y])
    by_hand = (np.mean(found.words.scores_x) - np.mean(found.words.scores_y)) / joint.std(ddof=1)
    assert found.row.effect_size_word == pytest.approx(by_hand)


@pytest.mark.parametrize("roles", ["XYAB", "XY", "X", "Y"])
@pytest.mark.parametrize("first_only", [True, False])
def test_without_the_words_of_targets_the_word_columns_are_null_and_the_others_are_not(roles, first_only):
    known = form("weat1", n_sentences=2)
    chosen = without_words(known, roles, first_only=first_only)
    texts = {s.text: s for role in ROLES for s in known.stimuli[role]}
    same_vectors = {s.key: Memory().vector(SENT, texts[s.text].key) for role in ROLES for s in chosen.stimuli[role]}
    (found,) = score([chosen], [SENT], read=Memory(changes=same_vectors))
    before = score_one(known)
    assert found.words is None
    assert {name for name in WORD_FIELDS if getattr(found.row, name) is not None} == set()
    assert (found.row.leave_word_low, found.row.leave_word_high) == (None, None)
    assert found.row.p_value == before.p_value
    assert found.row.effect_size == before.effect_size
    assert found.row.void_reason is None


def test_words_of_attributes_are_not_needed_for_the_words_of_targets():
    (found,) = score([without_words(form("weat1", n_sentences=2), "AB")], [SENT], read=Memory())
    assert found.words is not None
    assert {name for name in WORD_FIELDS if getattr(found.row, name) is None} == set()


def test_words_that_all_have_one_mean_score_leave_the_word_columns_null():
    chosen = form("weat1", sizes=(4, 4, 2, 2), n_sentences=2)
    east, north, up = np.eye(DIMENSION)[:3]
    two_each = {role: [s for s in chosen.stimuli[role] if int(s.word[-1]) % 2] for role in "XY"}
    chosen = dataclasses.replace(chosen, stimuli={**chosen.stimuli, **{r: tuple(s) for r, s in two_each.items()}})
    changes = {s.key: east if s.template == TEMPLATES[0] else north for role in "XY" for s in two_each[role]}
    changes |= {s.key: east + up for s in chosen.stimuli["A"]} | {s.key: up for s in chosen.stimuli["B"]}
    (found,) = score([chosen], [SENT], read=Memory(changes=changes))
    assert found.row.void_reason is None
    assert found.row.effect_size == pytest.approx(0.0, abs=1e-12)
    assert found.row.p_value is not None
    assert found.words is None
    assert {name for name in WORD_FIELDS if getattr(found.row, name) is not None} == set()


def test_a_set_of_one_word_is_tested_by_stimulus_alone():
    chosen = form("weat1", sizes=(3, 4, 2, 2), n_sentences=3)
    one = tuple(s for s in chosen.stimuli["X"] if s.word.endswith("2"))
    (found,) = score([dataclasses.replace(chosen, stimuli={**chosen.stimuli, "X": one})], [SENT], read=Memory())
    assert found.row.n_x == 3
    assert found.row.p_value is not None
    assert {getattr(found.row, name) for name in ("n_words_x", "effect_size_word", "p_value_word", "interval_low")} == {
        None
    }
    assert found.words is None


def test_a_word_in_both_sets_of_targets_is_told():
    chosen = form("weat1")
    twin = stimulus(chosen.stimuli["X"][0].word, TEMPLATES[1])
    both = dataclasses.replace(chosen, stimuli={**chosen.stimuli, "Y": (*chosen.stimuli["Y"], twin)})
    with pytest.raises(AssociationError, match=r"^model tiny, .*test weat1 sent: the word 'weat1X0' stands in both X"):
        score_one(both)


# ---- intervals


@pytest.mark.parametrize("interval", ["bca", "percentile"])
def test_the_interval_is_of_the_effect_size_over_words(interval):
    chosen, memory = form("weat1", sizes=(6, 7, 3, 3), n_sentences=3), Memory(seed=8)
    row = score_one(chosen, read=memory, interval=interval, seed=5)
    words = word_scores(memory.associate(SENT, chosen), chosen).association
    drawn = Resamples.draw((6, 7), seed=seed_sequence(5, "weat1", "sent", "bootstrap"))
    expected = effect_size_interval(words, drawn, method=interval)
    assert (row.interval_low, row.interval_high) == (expected.low, expected.high)
    assert row.interval_low < row.effect_size_word < row.interval_high


def naive_attributes(chosen: TestForm, memory: Memory, spec: VectorSpec) -> Attributes:
    # Mean cosine of each target word with each attribute word, pair of stimuli by pair of stimuli.
    units = {
        role: [
            (s.word, vector / np.linalg.norm(vector)) for s, vector in zip(chosen.stimuli[role], vectors, strict=True)
        ]
        for role, vectors in ((r, v.astype(np.float64)) for r, v in memory.sets(spec, chosen).items())
    }

    def cosines(targets: str, attributes: str) -> np.ndarray:
        rows, columns = (list(dict.fromkeys(words_of(chosen, role))) for role in (targets, attributes))
        return np.array(
            [
                [np.mean([t @ a for w, t in units[targets] for v, a in units[attributes] if (w, v) == (row, column)])
                 for column in columns]
                for row in rows
            ]
        )  # fmt: skip

    stimuli = {
        role: np.array([float(words_of(chosen, role).count(word)) for word in dict.fromkeys(words_of(chosen, role))])
        for role in "AB"
    }
    return Attributes(
        cosines_xa=cosines("X", "A"),
        cosines_xb=cosines("X", "B"),
        cosines_ya=cosines("Y", "A"),
        cosines_yb=cosines("Y", "B"),
        stimuli_a=stimuli["A"],
        stimuli_b=stimuli["B"],
    )


@pytest.mark.parametrize("interval", ["bca", "percentile"])
def test_all_four_sets_are_drawn_where_that_is_asked_for(interval):
    chosen, memory = form("weat1", sizes=(5, 4, 4, 5), n_sentences=3), Memory(seed=9)
    row = score_one(chosen, read=memory, interval=interval, resample="all")
    words = word_scores(memory.associate(SENT, chosen), chosen).association
    drawn = Resamples.draw((5, 4, 4, 5), seed=seed_sequence(0, "weat1", "sent", "bootstrap"))
    attributes = naive_attributes(chosen, memory, SENT)
    expected = effect_size_interval(words, drawn, attributes=attributes, method=interval)
    assert (row.interval_low, row.interval_high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    fixed = score_one(chosen, read=memory, interval=interval)
    assert (row.interval_low, row.interval_high) != pytest.approx((fixed.interval_low, fixed.interval_high), rel=1e-3)
    assert {
        field.name for field in dataclasses.fields(row) if getattr(row, field.name) != getattr(fixed, field.name)
    } == {
        "interval_low",
        "interval_high",
    }


def test_every_model_and_layer_has_the_same_resamples_of_a_test():
    chosen, vectors = form("weat1", n_sentences=2), {}
    for s in (s for role in ROLES for s in chosen.stimuli[role]):
        vectors[s.key] = Memory().vector(SENT, s.key)
    rows = [
        score_one(chosen, read=Memory(changes=vectors), model=model, spec=spec)
        for model in (MODEL, OTHER_MODEL)
        for spec in (SENT, VectorSpec("sent", "mean", 2))
    ]
    assert len({(row.interval_low, row.interval_high) for row in rows}) == 1


# ---- robustness, other measures


def naive_range(association: Association, groups_x: Sequence[str], groups_y: Sequence[str]) -> tuple[float, float]:
    found = []
    for group in {*groups_x, *groups_y}:
        x = association.scores_x[[other != group for other in groups_x]]
        y = association.scores_y[[other != group for other in groups_y]]
        if len(x) and len(y):
            found.append((x.mean() - y.mean()) / np.concatenate([x, y]).std(ddof=1))
    return min(found), max(found)


@pytest.mark.parametrize("sizes", [(4, 4, 3, 3), (3, 7, 2, 4), (2, 2, 2, 2)])
def test_ranges_without_one_word_and_without_one_template_are_those_of_d_anew(sizes):
    chosen, memory = form("weat1", sizes=sizes, n_sentences=3), Memory(seed=11)
    row = score_one(chosen, read=memory)
    association = memory.associate(SENT, chosen)
    for what in ("word", "template"):
        groups = ([getattr(s, what) for s in chosen.stimuli[role]] for role in "XY")
        found = (getattr(row, f"leave_{what}_low"), getattr(row, f"leave_{what}_high"))
        assert found == pytest.approx(naive_range(association, *groups), rel=1e-9)
    assert row.leave_word_low < row.leave_word_high


def test_stimuli_without_a_template_leave_its_range_null():
    row = score_one(form("weat1", "word"), spec=WORD)
    assert (row.leave_template_low, row.leave_template_high) == (None, None)
    assert row.leave_word_low < row.leave_word_high
    some = form("weat1", n_sentences=2)
    bare = dataclasses.replace(some.stimuli["X"][0], template="")
    mixed = dataclasses.replace(some, stimuli={**some.stimuli, "X": (bare, *some.stimuli["X"][1:])})
    assert score_one(mixed).leave_template_low is None


def test_one_template_alone_leaves_nothing_when_it_is_left_out():
    row = score_one(form("weat1", n_sentences=1))
    assert (row.leave_template_low, row.leave_template_high) == (None, None)


@pytest.mark.parametrize("sizes", [(4, 4, 3, 3), (3, 6, 2, 4)])
def test_other_measures_are_those_of_the_same_vectors(sizes):
    chosen, memory = form("weat1", sizes=sizes, n_sentences=2), Memory(seed=12)
    row = score_one(chosen, read=memory, spec=CWORD)
    sets = memory.sets(CWORD, chosen)
    units = UnitSets.of(sets["X"], sets["Y"], a=sets["A"], b=sets["B"])
    levels = ml_eat(units)
    assert (row.mleat_x, row.mleat_y, row.same) == (levels.x, levels.y, same(units))
    for pair in ("xa", "xb", "ya", "yb"):
        cosines = getattr(units, pair[0]) @ getattr(units, pair[1]).T
        found = (getattr(row, f"cos_{pair}"), getattr(row, f"sd_{pair}"))
        assert found == pytest.approx((cosines.mean(), cosines.std(ddof=1)))
        assert found == (getattr(levels, pair).mean, getattr(levels, pair).deviation)
    assert row.statistic == pytest.approx(row.cos_xa - row.cos_xb - row.cos_ya + row.cos_yb)
    assert row.ripa == ripa(sets["X"], sets["Y"], a=sets["A"], b=sets["B"])


def test_ripa_is_null_where_attributes_form_no_pairs():
    equal, unequal = (form("weat1", sizes=sizes) for sizes in ((4, 4, 3, 3), (4, 4, 3, 4)))
    assert score_one(equal).ripa is not None
    row = score_one(unequal)
    assert row.ripa is None
    assert None not in (row.same, row.mleat_x, row.p_value)


def test_what_is_not_defined_of_one_set_of_targets_is_null_and_not_nan():
    chosen = form("weat1")
    axes = np.eye(DIMENSION)
    changes = {s.key: axes[5] for s in chosen.stimuli["X"]}  # at right angles to every attribute
    for i, role in enumerate("AB"):
        changes |= {s.key: axes[i] for s in chosen.stimuli[role]}
    row = score_one(chosen, read=Memory(changes=changes))
    assert row.mleat_x is None
    assert row.mleat_y is not None
    assert (row.cos_xa, row.sd_xa) == (0.0, 0.0)
    check_no_nan(row)


# ---- postprocessing


def naive_postprocessed(
    memory: Memory, spec: VectorSpec, chosen: TestForm, keys: Sequence[str], how: str
) -> Association:
    everyone = np.array([memory.vector(spec, key) for key in keys], dtype=np.float64)
    scale = everyone.std(axis=0) if how == "standardize" else np.ones(DIMENSION)
    x, y, a, b = ((v - everyone.mean(axis=0)) / scale for v in memory.sets(spec, chosen).values())
    return associate(x, y, a=a, b=b)


@pytest.mark.parametrize("how", ["center", "standardize"])
def test_vectors_are_centred_on_all_planned_stimuli_of_their_encoding(how):
    forms, memory = [form("weat1", n_sentences=2), form("weat2", n_sentences=2)], Memory(seed=1, alike=0.3)
    everyone = keys_of(*forms, form("weat3", n_sentences=2))
    for spec in (SENT, CWORD):
        rows = score_rows(
            forms, [spec], read=memory, postprocessings=(how,), population={"word": [], spec.encoding: everyone}
        )
        for chosen, row in zip(forms, rows, strict=True):
            expected = naive_postprocessed(memory, spec, chosen, everyone, how)
            words = word_scores(expected, chosen).association
            assert row.postprocessing == how
            assert row.effect_size == pytest.approx(expected.effect_size, rel=1e-9)
            assert row.effect_size_word == pytest.approx(words.effect_size, rel=1e-9)
            exact = permutation_test(expected.joint, row.n_x, seed=seed_sequence(0), resolution=1e-7)
            assert row.p_value == exact.p_value


def test_vectors_are_centred_on_their_population_whether_they_are_of_it_or_not():
    chosen, memory = form("weat1"), Memory(alike=0.3)
    for everyone in (keys_of(form("weat2")), keys_of(chosen)[:5]):
        row = score_one(chosen, read=memory, postprocessings=("center",), population={"sent": everyone})
        expected = naive_postprocessed(memory, SENT, chosen, everyone, "center")
        assert row.effect_size == pytest.approx(expected.effect_size, rel=1e-9)


def test_centring_matters_and_its_population_does_too():
    chosen, memory = form("weat1"), Memory(alike=0.3)
    found = [
        score_one(chosen, read=memory, postprocessings=(how,), population={"sent": keys}).effect_size
        for how, keys in (
            ("none", keys_of(chosen)),
            ("center", keys_of(chosen)),
            ("standardize", keys_of(chosen)),
            ("center", keys_of(chosen, form("weat2"))),
        )
    ]
    assert len({round(value, 6) for value in found}) == 4


def test_a_dimension_that_never_changes_is_dropped_before_it_is_divided_by_nothing():
    chosen, everyone = form("weat1"), keys_of(form("weat1"), form("weat2"))
    moving = {key: np.where(np.arange(DIMENSION) == 7, 1e3, Memory().vector(SENT, key)) for key in everyone}
    still = {key: np.where(np.arange(DIMENSION) == 7, 0.0, value) for key, value in moving.items()}
    for how in ("center", "standardize"):
        with_it, without_it = (
            score_one(chosen, read=Memory(changes=changes), postprocessings=(how,), population={"sent": everyone})
            for changes in (moving, still)
        )
        assert with_it == without_it
        assert with_it.void_reason is None


def test_ripa_and_the_interval_are_of_the_postprocessed_vectors():
    chosen, memory = form("weat1", n_sentences=2), Memory(seed=1, alike=0.3)
    everyone = keys_of(chosen, form("weat2"))
    row = score_one(chosen, read=memory, postprocessings=("center",), population={"sent": everyone})
    mean = np.mean([memory.vector(SENT, key) for key in everyone], axis=0, dtype=np.float64)
    centred = {role: vectors - mean for role, vectors in memory.sets(SENT, chosen).items()}
    assert row.ripa == pytest.approx(ripa(centred["X"], centred["Y"], a=centred["A"], b=centred["B"]), rel=1e-9)
    words = word_scores(naive_postprocessed(memory, SENT, chosen, everyone, "center"), chosen).association
    drawn = Resamples.draw((4, 4), seed=seed_sequence(0, "weat1", "sent", "bootstrap"))
    expected = effect_size_interval(words, drawn)
    assert (row.interval_low, row.interval_high) == pytest.approx((expected.low, expected.high), rel=1e-9)


@pytest.mark.parametrize("alike", [0.0, 1e-9, 1e-7])
@pytest.mark.parametrize("how", ["center", "standardize"])
def test_a_population_that_is_all_alike_gives_a_void_row_with_its_reason(how, alike):
    chosen = form("weat1")
    everyone = keys_of(chosen, form("weat2"))
    (found,) = score([chosen], [SENT], read=Memory(alike=alike), postprocessings=(how,), population={"sent": everyone})
    check_nothing_said(found)
    assert found.row.postprocessing == how
    assert found.row.void_reason == (
        f"nothing is left of a vector after {how}: it lies at the mean of all, as where all are alike"
    )


@pytest.mark.parametrize("how", ["center", "standardize"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_told_whatever_else_is_centred_on_it(how, value):
    chosen, beside = form("weat1"), form("weat2")
    bad = beside.stimuli["X"][1]
    with pytest.raises(AssociationError, match=r"not finite"):
        score(
            [chosen],
            [SENT],
            read=Memory(changes={bad.key: value}),
            postprocessings=(how,),
            population={"sent": keys_of(chosen, beside)},
        )


def test_postprocessing_asks_for_its_population():
    with pytest.raises((KeyError, ValueError)):
        score_one(form("weat1"), postprocessings=("center",))
    with pytest.raises((KeyError, ValueError)):
        score_one(form("weat1"), postprocessings=("center",), population={"word": keys_of(form("weat1"))})


# ---- rows depend on no other


SPECS = [VectorSpec("sent", pooling, layer) for pooling in ("cls", "mean") for layer in (0, 4)] + [CWORD]
FORMS = [
    form("weat1"),
    form("weat2", sizes=(11, 10, 4, 2), n_sentences=3),
    form("weat3", sizes=(3, 5, 2, 2), n_sentences=2),
    form("weat3", "unbleached", n_sentences=2),
    without_words(form("weat4"), "XY"),
]
POPULATION = {encoding: keys_of(*FORMS) for encoding in ("sent", "c-word")}
POSTPROCESSINGS = ["none", "center", "standardize"]
WAYS = [
    {"method": "importance"},
    {"resample": "all", "alternative": "two-sided"},
    {"method": "sampled", "interval": "percentile"},
]


def by_key(found: Sequence[Scored]) -> dict[RowKey, Scored]:
    return {each.row.key: each for each in found}


@pytest.fixture(scope="module", params=WAYS, ids=str)
def together(request) -> tuple[dict[str, object], dict[RowKey, Scored]]:
    found = score(
        FORMS,
        SPECS,
        read=Memory(alike=0.3),
        postprocessings=POSTPROCESSINGS,
        population=POPULATION,
        **request.param,
    )
    assert len(by_key(found)) == len(found) == len(FORMS) * len(SPECS) * len(POSTPROCESSINGS)
    return request.param, by_key(found)


def some(values: Sequence[object]) -> st.SearchStrategy[list[object]]:
    return st.permutations(values).flatmap(lambda mixed: st.integers(1, len(mixed)).map(lambda n: mixed[:n]))


@settings(max_examples=5, deadline=None)
@given(forms=some(FORMS), specs=some(SPECS).map(lambda found: found[:2]), hows=some(POSTPROCESSINGS))
def test_a_row_has_the_same_bits_whatever_is_scored_beside_it(forms, specs, hows, together):
    way, expected = together
    found = score(forms, specs, read=Memory(alike=0.3), postprocessings=hows, population=POPULATION, **way)
    assert len(found) == len(forms) * len(specs) * len(hows)
    for key, each in by_key(found).items():
        assert repr(each) == repr(expected[key])


def test_another_seed_changes_what_is_drawn_and_nothing_else():
    forms = [form("weat1", n_sentences=2), form("weat2", sizes=LARGE)]
    for before, after in zip(*(score_rows(forms, [SENT], read=Memory(), seed=seed) for seed in (0, 1)), strict=True):
        changed = {name for name in before.__slots__ if getattr(before, name) != getattr(after, name)}
        drawn = {"seed", "interval_low", "interval_high"}
        if before.method_used == "importance":
            drawn |= {
                f"{name}{unit}"
                for name in ("p_value", "log10_p", "p_standard_error", "p_less")
                for unit in ("", "_word")
            }
        assert changed == drawn


def rows_of_both_models(chosen: TestForm, **changes: object) -> tuple[ResultRow, ResultRow]:
    return tuple(score_one(chosen, model=model, **changes) for model in (MODEL, OTHER_MODEL))


def test_sampled_partitions_of_a_test_are_the_same_for_every_model_layer_and_encoding():
    chosen = form("weat2", sizes=(10, 11, 2, 2), n_sentences=2)
    first, second = rows_of_both_models(chosen, method="sampled")
    assert (first.method_used, first.method_used_word) == ("sampled", "sampled")
    assert fields_of(first, P_FIELDS) == fields_of(second, P_FIELDS)
    assert fields_of(first, P_FIELDS, "_word") == fields_of(second, P_FIELDS, "_word")
    vectors = {key: Memory().vector(SENT, key) for key in keys_of(chosen)}
    for spec in (VectorSpec("sent", "cls", 0), CWORD):
        row = score_one(chosen, read=Memory(changes=vectors), spec=spec, method="sampled")
        assert fields_of(row, P_FIELDS) == fields_of(first, P_FIELDS)
    again = score_one(chosen, method="sampled", seed=1)
    assert again.p_value != first.p_value


def test_importance_samples_are_a_models_own():
    first, second = rows_of_both_models(form("weat2", sizes=LARGE))
    assert first.method_used == first.method_used_word == "importance"
    for unit in ("", "_word"):
        p, q = (getattr(row, f"p_value{unit}") for row in (first, second))
        assert p != q
        error = math.hypot(*(getattr(row, f"p_standard_error{unit}") for row in (first, second)))
        assert abs(p - q) < 5 * error
    assert (first.interval_low, first.effect_size) == (second.interval_low, second.effect_size)


def test_importance_samples_are_a_layers_own():
    chosen = form("weat2", sizes=LARGE)
    vectors = {key: Memory().vector(SENT, key) for key in keys_of(chosen)}
    rows = [
        score_one(chosen, read=Memory(changes=vectors), spec=spec)
        for spec in (SENT, VectorSpec("sent", "cls", 4), VectorSpec("sent", "mean", 3), VectorSpec("c-word", "mean", 4))
    ]
    assert len({row.p_value for row in rows}) == len({row.p_value_word for row in rows}) == 4
    assert len({row.effect_size for row in rows}) == 1


# ---- void rows


def check_no_nan(row: ResultRow) -> None:
    assert not any(isinstance(value, float) and math.isnan(value) for value in dataclasses.astuple(row))


def check_nothing_said(found: Scored) -> None:
    row = found.row
    known = {name for name in NULLABLE if getattr(row, name) is not None}
    assert known - {"position_0_share"} == {"subtokens_x", "subtokens_y", "void_reason"}
    assert found.words is None
    check_no_nan(row)


def check_void(found: Scored) -> None:
    check_nothing_said(found)
    assert found.row.void_reason.startswith("all targets have one association score: largest less smallest is ")
    assert found.row.void_reason.endswith("below 1e-06, the noise of float32")


@pytest.mark.parametrize("alike", [0.0, 1e-9, 1e-7])
def test_vectors_that_are_all_alike_give_a_void_row_with_its_reason(alike):
    chosen, memory = form("weat1", n_sentences=2), Memory(alike=alike)
    assert memory.associate(SENT, chosen).spread < FLOAT32_NOISE.min_spread
    (found,) = score([chosen], [SENT], read=memory)
    check_void(found)
    assert (found.row.n_x, found.row.n_a, found.row.test) == (6, 4, "weat1")


def test_vectors_that_differ_enough_are_tested():
    chosen, memory = form("weat1"), Memory(alike=0.05)
    assert memory.associate(SENT, chosen).spread > 10 * FLOAT32_NOISE.min_spread
    row = score_one(chosen, read=memory)
    assert row.void_reason is None
    assert row.p_value is not None


def test_equal_attributes_give_a_void_row():
    chosen = form("weat1")
    equal = {s.key: 1.0 for role in "AB" for s in chosen.stimuli[role]}
    (found,) = score([chosen], [SENT], read=Memory(changes=equal))
    check_void(found)


def test_a_void_row_leaves_the_others_as_they_are():
    void_form = form("weat9")
    alike = {s.key: 1.0 for role in "XY" for s in void_form.stimuli[role]}
    first, void, last = score([FORMS[0], void_form, FORMS[2]], SPECS[:1], read=Memory(changes=alike))
    check_void(void)
    assert [first, last] == score([FORMS[0], FORMS[2]], SPECS[:1], read=Memory())


# ---- what cannot be scored


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("value", "fault"), [(0.0, "is zero"), (np.nan, "holds values that are not"), (np.inf, "holds values that are not")]
)
def test_a_vector_without_direction_is_told_with_model_vector_test_and_text(role, value, fault):
    chosen = form("weat7")
    bad = chosen.stimuli[role][2]
    expected = (
        rf"^model tiny, .*sent.*mean.*4.*, test weat7 sent: set {role}: vector 2 of \d "
        rf"\('{bad.text}'\) {fault}.*, but cosine needs"
    )
    with pytest.raises(AssociationError, match=expected):
        score([form("weat1", "word"), chosen, form("weat2")], [SENT], read=Memory(changes={bad.key: value}))


def test_the_first_text_without_direction_is_told_with_the_number_of_others():
    chosen = form("weat7")
    changes = {s.key: 0.0 for s in chosen.stimuli["X"]}
    with pytest.raises(
        AssociationError, match=r"vector 0 of 4 \('This is weat7X0\.'\) is zero, and 3 more, but cosine"
    ):
        score([chosen], [SENT], read=Memory(changes=changes))


def test_too_many_targets_to_count_are_told_with_their_test():
    with pytest.raises(AssociationError, match=r"test weat2 sent: .*exact p of 60 v 60 .*take method auto"):
        score([form("weat1"), form("weat2", sizes=(60, 60, 2, 2))], [SENT], read=Memory(), method="exact")


# ---- the published unit's decision


BASE = score_one(form("weat1"))
P_VALUES = st.lists(st.none() | st.floats(1e-9, 1.0), min_size=1, max_size=12)
STEPS: dict[Correction, Callable] = {"holm": holm, "bh": benjamini_hochberg}


def rows_of(p_values: Sequence[float | None]) -> list[ResultRow]:
    return [
        dataclasses.replace(BASE, p_value=p, test=f"t{i}", void_reason=None if p is not None else "void")
        for i, p in enumerate(p_values)
    ]


@settings(deadline=None)
@given(p_values=P_VALUES, alpha=st.sampled_from([0.001, 0.01, 0.05, 0.5]), correction=st.sampled_from(["holm", "bh"]))
def test_rows_that_are_not_void_are_corrected_together(p_values, alpha, correction):
    decided = decide(rows_of(p_values), [], alpha=alpha, correction=correction)
    family = [p for p in p_values if p is not None]
    expected = STEPS[correction](np.array(family, dtype=np.float64), alpha=alpha)
    live = [row for row in decided if row.p_value is not None]
    assert [row.p_adjusted for row in live] == expected.adjusted.tolist()
    assert [row.decision == "reject" for row in live] == expected.rejected.tolist()
    assert all(row.family_size == len(family) for row in live)
    assert {row.alpha for row in decided} == {alpha}


@settings(deadline=None)
@given(p_values=P_VALUES)
def test_a_void_row_is_not_decided_and_does_not_count(p_values):
    decided = decide(rows_of(p_values), [], alpha=0.05)
    without = decide([row for row in rows_of(p_values) if row.p_value is not None], [], alpha=0.05)
    assert [row for row in decided if row.p_value is not None] == without
    for row in decided:
        if row.p_value is None:
            assert {name for name in DECIDED if getattr(row, name) is not None} == {"alpha"}


@settings(deadline=None)
@given(p_values=P_VALUES, data=st.data(), correction=st.sampled_from(["holm", "bh"]))
def test_the_order_of_rows_changes_no_decision(p_values, data, correction):
    rows = rows_of(p_values)
    mixed = data.draw(st.permutations(rows))
    first, second = (decide(some, [], alpha=0.05, correction=correction) for some in (rows, mixed))
    assert {row.test: row for row in first} == {row.test: row for row in second}


def test_deciding_changes_the_decisions_alone_and_keeps_the_order():
    rows, members = run_of(np.random.default_rng(0), alternative="greater")
    decided = decide(rows, members, alpha=0.01)
    assert [dataclasses.replace(row, **dict.fromkeys(DECIDED)) for row in decided] == rows
    assert {row.decision_word for row in decided} <= {"reject", "retain"}


def test_a_run_decided_by_hand():
    decided = decide(rows_of([0.004, None, 0.02, 0.003]), [], alpha=0.01)
    assert [row.p_adjusted for row in decided] == pytest.approx([0.009, None, 0.02, 0.009])
    assert [row.decision for row in decided] == ["reject", None, "retain", "reject"]
    assert [row.family_size for row in decided] == [3, None, 3, 3]
    decided = decide(rows_of([0.004, None, 0.02, 0.009]), [], alpha=0.014, correction="bh")
    assert [row.p_adjusted for row in decided] == pytest.approx([0.012, None, 0.02, 0.0135])
    assert [row.decision for row in decided] == ["reject", None, "retain", "reject"]


def test_an_estimate_is_decided_on_three_standard_errors_above_it():
    ways = ["importance", "sampled", "exact", "normal"]
    rows = [
        dataclasses.replace(BASE, test=way, p_value=0.002, p_standard_error=0.0004, method_used=way) for way in ways
    ]
    decided = {row.test: row for row in decide(rows, [], alpha=0.01)}
    assert {way: decided[way].p_adjusted for way in ways} == pytest.approx(
        {"importance": 0.008, "sampled": 0.008, "exact": 0.008, "normal": 0.008}
    )
    alone = {way: decide([row], [], alpha=0.003)[0] for way, row in zip(ways, rows, strict=True)}
    assert {way: row.p_adjusted for way, row in alone.items()} == pytest.approx(
        {"importance": 0.0032, "sampled": 0.002, "exact": 0.002, "normal": 0.002}
    )
    assert {way: row.decision for way, row in alone.items()} == {
        "importance": "retain",
        "sampled": "reject",
        "exact": "reject",
        "normal": "reject",
    }
    assert all(row.p_value == 0.002 for row in alone.values())


def test_standard_errors_put_no_p_above_one():
    row = dataclasses.replace(BASE, p_value=0.95, p_standard_error=0.05, method_used="importance")
    for correction in ("holm", "bh"):
        (decided,) = decide([row], [], alpha=0.01, correction=correction)
        assert (decided.p_adjusted, decided.decision) == (1.0, "retain")


def test_deciding_twice_decides_the_same():
    rows, members = run_of(np.random.default_rng(1), alternative="greater")
    once = decide(rows, members, alpha=0.01)
    assert decide(once, members, alpha=0.01) == once


def test_a_run_of_void_rows_alone_decides_nothing():
    for row in decide(rows_of([None, None]), [], alpha=0.01):
        assert {name for name in DECIDED if getattr(row, name) is not None} == {"alpha"}
    assert decide([], [], alpha=0.01) == []


# ---- words corrected within a test


def words_of_row(scores: Mapping[str, float], n_x: int, **key: object) -> RowWords:
    # The words of a row, of which the first `n_x` are X's.
    names, values = list(scores), list(scores.values())
    return RowWords(
        key=BASE.key._replace(**key),
        words_x=tuple(names[:n_x]),
        words_y=tuple(names[n_x:]),
        scores_x=tuple(values[:n_x]),
        scores_y=tuple(values[n_x:]),
    )


def variants(
    rng: np.random.Generator, *, test: str = "t", sizes: tuple[int, int] = (4, 4), n: int = 4, effect: float = 1.0
) -> list[RowWords]:
    # Variants of one test whose scores rise and fall together; scores have two digits, so that there are ties.
    n_x, n_words = sizes[0], sum(sizes)
    shared = rng.normal(size=n_words)
    rows = []
    for layer in range(n):
        scores = 0.7 * shared + 0.7 * rng.normal(size=n_words)
        scores[:n_x] += effect * rng.uniform(0, 2)
        scores *= 10.0 ** rng.integers(-1, 2)
        named = {f"{test}{i}": round(float(s), 2) for i, s in enumerate(scores)}
        rows.append(words_of_row(named, n_x, test=test, layer=layer))
    return rows


def without_word(row: RowWords, word: str) -> RowWords:
    x, y = (
        [(w, s) for w, s in zip(words, scores, strict=True) if w != word]
        for words, scores in ((row.words_x, row.scores_x), (row.words_y, row.scores_y))
    )
    return dataclasses.replace(
        row,
        words_x=tuple(w for w, _ in x),
        words_y=tuple(w for w, _ in y),
        scores_x=tuple(s for _, s in x),
        scores_y=tuple(s for _, s in y),
    )


def naive_step_down(rows: Sequence[RowWords], alternative: str) -> dict[RowKey, float]:
    # Adjusted p-values by every partition of the words, written out as the procedure is told.
    words = sorted([*rows[0].words_x, *rows[0].words_y])
    n_x, n = len(rows[0].words_x), len(words)

    def z(scores: Mapping[str, float], chosen: set[str]) -> float:
        x, y = ([scores[w] for w in words if (w in chosen) is inside] for inside in (True, False))
        d = (np.mean(x) - np.mean(y)) / np.std([*x, *y], ddof=1)
        found = d * math.sqrt(len(x) * len(y) / n)
        return {"greater": found, "less": -found, "two-sided": abs(found)}[alternative]

    scores = {
        row.key: dict(zip([*row.words_x, *row.words_y], [*row.scores_x, *row.scores_y], strict=True)) for row in rows
    }
    observed = {row.key: z(scores[row.key], set(row.words_x)) for row in rows}
    partitions = [set(chosen) for chosen in itertools.combinations(words, n_x)]
    permuted = {key: [z(mine, chosen) for chosen in partitions] for key, mine in scores.items()}
    adjusted, before = {}, 0.0
    order = sorted(observed, key=lambda key: -observed[key])
    for r, key in enumerate(order):
        maxima = [max(permuted[other][p] for other in order[r:]) for p in range(len(partitions))]
        before = max(before, sum(m >= observed[key] - 1e-9 for m in maxima) / len(partitions))
        adjusted[key] = before
    return adjusted


def adjusted_of(members: Sequence[FamilyMember]) -> dict[RowKey, float]:
    assert len({member.key for member in members}) == len(members)
    return {member.key: member.p_adjusted for member in members}


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (5, 2), (2, 2)])
def test_words_are_corrected_as_the_procedure_is_told(sizes, alternative):
    for seed in range(3):
        rows = variants(np.random.default_rng([seed, *sizes]), sizes=sizes)
        members = correct_words(rows, test="t", options=options(alternative=alternative))
        assert adjusted_of(members) == pytest.approx(naive_step_down(rows, alternative))
        assert len({member.family for member in members}) == 1


@pytest.mark.parametrize("sizes", [(4, 4), (9, 9)])
def test_words_are_corrected_by_the_test_of_all_variants_on_one_stream(sizes):
    rows = variants(np.random.default_rng(5), sizes=sizes, n=5)
    members = correct_words(rows, test="t", options=options(seed=3))
    scores = [
        [s for _, s in sorted(zip(w, s, strict=True))]
        for row in rows
        for w, s in ((row.words_x, row.scores_x), (row.words_y, row.scores_y))
    ]
    scores_nv = np.array([scores[2 * i] + scores[2 * i + 1] for i in range(len(rows))]).T.copy()
    expected = westfall_young(scores_nv, sizes[0], seed=seed_sequence(3, "t", "word"), resolution=1e-7)
    assert adjusted_of(members) == dict(zip([row.key for row in rows], expected.adjusted.tolist(), strict=True))
    other = correct_words(rows, test="t", options=options(seed=4))
    assert (adjusted_of(other) == adjusted_of(members)) is (sizes == (4, 4))


def mixed_words(row: RowWords, rng: np.random.Generator) -> RowWords:
    x, y = rng.permutation(len(row.words_x)), rng.permutation(len(row.words_y))
    return dataclasses.replace(
        row,
        words_x=tuple(row.words_x[i] for i in x),
        words_y=tuple(row.words_y[i] for i in y),
        scores_x=tuple(row.scores_x[i] for i in x),
        scores_y=tuple(row.scores_y[i] for i in y),
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), sizes=st.sampled_from([(3, 4), (9, 9)]))
def test_the_order_of_rows_and_of_their_words_changes_nothing(seed, sizes):
    rng = np.random.default_rng(seed)
    rows = variants(rng, sizes=sizes)
    rows.append(without_word(dataclasses.replace(rows[0], key=rows[0].key._replace(layer=9)), "t0"))
    members = correct_words(rows, test="t", options=options())
    mixed = [mixed_words(rows[i], rng) for i in rng.permutation(len(rows))]
    assert correct_words(mixed, test="t", options=options()) == members


@pytest.mark.parametrize("lacking", ["t1", "t6"])
def test_a_variant_that_lacks_a_word_forms_a_family_of_its_own(lacking):
    rows = variants(np.random.default_rng(2), n=5)
    short = [without_word(row, lacking) for row in rows[3:]]
    members = correct_words([*rows[:3], *short], test="t", options=options())
    assert adjusted_of(members) == pytest.approx(
        naive_step_down(rows[:3], "greater") | naive_step_down(short, "greater")
    )
    family = {member.key: member.family for member in members}
    assert len({family[row.key] for row in rows[:3]}) == len({family[row.key] for row in short}) == 1
    assert family[rows[0].key] != family[short[0].key]


def test_the_same_words_on_other_sides_are_another_family():
    row, other = variants(np.random.default_rng(3), n=2)
    turned = dataclasses.replace(
        other, words_x=other.words_y, words_y=other.words_x, scores_x=other.scores_y, scores_y=other.scores_x
    )
    members = correct_words([row, turned], test="t", options=options())
    assert len({member.family for member in members}) == 2
    assert adjusted_of(members) == adjusted_of(
        correct_words([row], test="t", options=options()) + correct_words([turned], test="t", options=options())
    )


def test_a_variant_of_another_scale_has_the_same_adjusted_p():
    (row,) = variants(np.random.default_rng(4), n=1)
    larger = dataclasses.replace(
        row,
        key=row.key._replace(layer=7),
        scores_x=tuple(1000 * s + 5 for s in row.scores_x),
        scores_y=tuple(1000 * s + 5 for s in row.scores_y),
    )
    alone = correct_words([row], test="t", options=options())[0].p_adjusted
    assert {member.p_adjusted for member in correct_words([row, larger], test="t", options=options())} == {alone}


def test_equal_words_of_two_tests_are_two_families():
    (row,) = variants(np.random.default_rng(4), n=1)
    (first,) = correct_words([row], test="t", options=options())
    (second,) = correct_words([row], test="u", options=options())
    assert first.family != second.family
    assert first.p_adjusted == second.p_adjusted


def test_no_rows_make_no_members():
    assert correct_words([], test="t", options=options()) == []


def test_a_row_alone_is_corrected_to_its_own_p():
    for sizes in ((4, 4, 3, 3), (3, 5, 2, 2)):
        for alternative in ("greater", "less", "two-sided"):
            (found,) = score(
                [form("weat1", sizes=sizes, n_sentences=2)], [SENT], read=Memory(), alternative=alternative
            )
            (member,) = correct_words([found.words], test="weat1", options=options(alternative=alternative))
            assert member.key == found.row.key
            if alternative != "two-sided" or sizes[0] == sizes[1]:  # else |z| is no twice one side
                assert member.p_adjusted == pytest.approx(found.row.p_value_word)


# ---- the decision by word


def run_of(
    rng: np.random.Generator, *, alternative: str, n_tests: int = 4
) -> tuple[list[ResultRow], list[FamilyMember]]:
    # A run of tests of some effect or none; in some of them a variant lacks a word.
    words: list[RowWords] = []
    for t in range(n_tests):
        effect = float(rng.choice([0.0, 4.0]))
        mine = variants(rng, test=f"t{t}", sizes=(5, 5), n=int(rng.integers(1, 5)), effect=effect)
        if t % 2:
            mine[-1] = without_word(mine[-1], f"t{t}{int(rng.integers(10))}")
        words += mine
    members = [
        member
        for t in range(n_tests)
        for member in correct_words(
            [row for row in words if row.key.test == f"t{t}"], test=f"t{t}", options=options(alternative=alternative)
        )
    ]
    return [dataclasses.replace(BASE, **row.key._asdict()) for row in words], members


def naive_walk(families: Mapping[tuple[str, str], Mapping[RowKey, float]], alpha: float) -> set[RowKey]:
    # Holm over tests on each test's smallest adjusted p; a test is reached if every one before it was rejected.
    rejected: set[RowKey] = set()
    order = sorted(families, key=lambda name: (min(families[name].values()), name))
    for i, name in enumerate(order):
        threshold = alpha / (len(order) - i)
        rejected |= {key for key, p in families[name].items() if p <= threshold}
        if min(families[name].values()) > threshold:
            break
    return rejected


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
@pytest.mark.parametrize("alpha", [0.0701, 0.2003])
def test_rows_are_rejected_by_word_as_the_procedure_is_told(alternative, alpha):
    n_rejected = n_retained = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, len(alternative)])
        rows, members = run_of(rng, alternative=alternative)
        families: dict[tuple[str, str], dict[RowKey, float]] = {}
        for member in members:
            families.setdefault((member.key.test, member.family), {})[member.key] = member.p_adjusted
        expected = naive_walk(families, alpha)
        decided = decide(rows, [members[i] for i in rng.permutation(len(members))], alpha=alpha)
        assert {row.key for row in decided if row.decision_word == "reject"} == expected
        assert {row.key for row in decided if row.decision_word == "retain"} == {row.key for row in rows} - expected
        assert {row.family_size_word for row in decided} == {len(families)}
        assert all((row.p_adjusted_word <= alpha) == (row.decision_word == "reject") for row in decided)
        n_rejected += len(expected)
        n_retained += len(rows) - len(expected)
    assert min(n_rejected, n_retained) > 10  # else nothing was compared


def test_by_word_a_run_decided_by_hand():
    p_values = {"a": [0.002, 0.004, 0.03], "b": [0.012, 0.04], "c": [0.03]}
    members = [
        FamilyMember(key=BASE.key._replace(test=test, layer=i), family="f", p_adjusted=p)
        for test, some in p_values.items()
        for i, p in enumerate(some)
    ]
    rows = [dataclasses.replace(BASE, **member.key._asdict()) for member in members]
    decided = decide(rows, members, alpha=0.025)  # thresholds .0083 for a, .0125 for b, .025 for c
    assert [row.decision_word for row in decided] == ["reject", "reject", "retain", "reject", "retain", "retain"]
    assert [row.p_adjusted_word for row in decided] == pytest.approx([0.006, 0.012, 0.09, 0.024, 0.08, 0.03])
    decided = decide(rows, members, alpha=0.0239)  # b is missed by little, so c is not reached
    assert [row.decision_word for row in decided] == ["reject", "reject", *["retain"] * 4]


def test_a_test_behind_one_that_is_retained_is_retained():
    # Its own threshold would let it pass: .04 <= .05 / 1.
    members = [
        FamilyMember(key=BASE.key._replace(test=test), family="f", p_adjusted=p)
        for test, p in (("a", 0.03), ("b", 0.04))
    ]
    rows = [dataclasses.replace(BASE, **member.key._asdict()) for member in members]
    assert [row.decision_word for row in decide(rows, members, alpha=0.05)] == ["retain", "retain"]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_order_of_tests_rows_and_members_changes_no_decision_by_word(seed):
    rng = np.random.default_rng(seed)
    rows, members = run_of(rng, alternative="greater")
    straight = decide(rows, members, alpha=0.1)
    mixed = decide(
        [rows[i] for i in rng.permutation(len(rows))],
        [members[i] for i in rng.permutation(len(members))],
        alpha=0.1,
    )
    assert {row.key: row for row in mixed} == {row.key: row for row in straight}


def test_the_two_decisions_do_not_touch_each_other():
    rows, members = run_of(np.random.default_rng(7), alternative="greater")
    rows = [dataclasses.replace(row, p_value=(i + 1) / 120) for i, row in enumerate(rows)]
    by_word = {"p_adjusted_word", "decision_word", "family_size_word"}
    together, without, bh = (
        decide(rows, members, alpha=0.1),
        decide(rows, [], alpha=0.1),
        decide(rows, members, alpha=0.1, correction="bh"),
    )
    assert [dataclasses.replace(row, **dict.fromkeys(by_word)) for row in together] == without
    assert [fields_of(row, sorted(by_word)) for row in bh] == [fields_of(row, sorted(by_word)) for row in together]
    assert any(a.decision != b.decision for a, b in zip(bh, together, strict=True))


def test_void_rows_and_rows_without_words_have_no_decision_by_word_and_do_not_count():
    forms = [form("weat1", n_sentences=2), without_words(form("weat2")), form("weat3")]
    alike = {s.key: 1.0 for s in forms[2].stimuli["X"] + forms[2].stimuli["Y"]}
    found = score(forms, [SENT], read=Memory(changes=alike))
    members = [
        member
        for each in found
        if each.words
        for member in correct_words([each.words], test=each.row.test, options=options())
    ]
    plain, wordless, void = decide([each.row for each in found], members, alpha=0.01)
    assert (plain.decision_word, plain.family_size_word, plain.family_size) == ("retain", 1, 2)
    assert (wordless.decision_word, wordless.p_adjusted_word, wordless.family_size_word) == (None, None, None)
    assert (wordless.decision, wordless.family_size) == ("retain", 2)
    assert void.void_reason is not None
    assert {name for name in DECIDED if getattr(void, name) is not None} == {"alpha"}


def test_a_strong_effect_is_rejected_in_both_units_through_the_whole_chain():
    chosen, weak = form("weat1", sizes=(8, 8, 3, 3), n_sentences=2), form("weat2", n_sentences=2)
    axes = np.eye(DIMENSION)
    changes = {}
    for role, axis in zip("XYAB", (0, 1, 0, 1), strict=True):
        for s in chosen.stimuli[role]:
            changes[s.key] = axes[axis] + 0.1 * Memory().vector(SENT, s.key)
    specs = [VectorSpec("sent", "mean", layer) for layer in range(3)]
    found = score([chosen, weak], specs, read=Memory(changes=changes))
    members = [
        member
        for test in ("weat1", "weat2")
        for member in correct_words(
            [each.words for each in found if each.row.test == test], test=test, options=options()
        )
    ]
    decided = decide([each.row for each in found], members, alpha=0.01)
    assert {(row.test, row.decision, row.decision_word) for row in decided} == {
        ("weat1", "reject", "reject"),
        ("weat2", "retain", "retain"),
    }
    assert all(row.p_value_word == 1 / 12870 for row in decided if row.test == "weat1")
