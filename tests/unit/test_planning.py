"""A plan is cut once, frozen, and asks for what the store lacks and for nothing else."""

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from math import comb
from pathlib import Path

import numpy as np
import pytest

from distseat.config import ModelEntry, SweepConfig, load_config
from distseat.definitions import ENCODINGS, ROLES, Stimulus
from distseat.errors import ConfigError, DefinitionError, DistseatError, FormatVersionError, ModelError, StorageError
from distseat.models import ModelSpec, VectorSpec, resolve
from distseat.planning import EncodeUnit, FloorWarning, ModelPlan, ScoreUnit, SweepPlan, plan_sweep, preflight
from distseat.statistics import Reach, p_floor
from distseat.stores import EmbeddingStore, EncodedUnit

OWN_TESTS = """
word_lists:
  own_x: [oak, elm]
  own_y: [trout, pike, eel]
  own_a: [warm, soft]
  own_b: [cold, hard]
templates:
  own_sentences: ["Here is {word}.", "There is {word}, they say."]
tests:
  - id: trees
    title: Trees and fish
    X: own_x
    Y: own_y
    A: own_a
    B: own_b
    forms:
      word:
      sent: {X: own_sentences, Y: own_sentences, A: own_sentences, B: own_sentences}
  - id: fish
    title: Fish and trees
    X: own_y
    Y: own_x
    A: own_a
    B: own_b
    forms: [word]
"""
N_WORDS = 9
PRINT_PLANS = """
import sys
from pathlib import Path
from distseat.config import load_config
from distseat.planning import plan_sweep
plan = plan_sweep(load_config(Path(sys.argv[1]), out=Path(sys.argv[2])))
print([unit.unit_id for model in plan.models for unit in plan.score_units(model)])
"""


def make_model(directory: Path, **changes: object) -> Path:
    """What planning reads of a model: its config.json, the names and the bytes of its files."""
    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps({"num_hidden_layers": 4} | changes))
    (directory / "tokenizer_config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(b"")
    return directory


@pytest.fixture
def model(tmp_path) -> Path:
    return make_model(tmp_path / "models" / "tiny")


@pytest.fixture
def config(tmp_path, model) -> Callable[..., SweepConfig]:
    """A sweep of the tiny model over two small tests; any key may be given another value, any key of the model too."""
    (tmp_path / "own.yaml").write_text(OWN_TESTS)

    def make(*, entry: dict[str, object] | None = None, **changes: object) -> SweepConfig:
        tiny = {"name": "tiny", "source": str(model), "pooling": "mean"} | (entry or {})
        plain = {"models": [tiny], "test_sources": str(tmp_path / "own.yaml"), "out": str(tmp_path / "out")}
        return SweepConfig.model_validate(plain | changes)

    return make


def only_model(plan: SweepPlan) -> ModelPlan:
    (only,) = plan.models
    return only


def plan_files(out: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in (out / "plan").iterdir()}


def commit(store: EmbeddingStore, plan: ModelPlan, unit: EncodeUnit) -> None:
    """Commit a unit as an encoder would, with vectors of no meaning."""
    n = len(unit.stimuli)
    vectors = {spec: np.full((n, 3), spec.layer + 1, dtype=np.float32) for spec in unit.specs}
    encoded = EncodedUnit(vectors=vectors, n_subtokens=np.ones(n, np.int32), positions={}, n_tokens=n)
    store.commit(plan.model.key, unit.unit_id, unit.stimuli, encoded, {"device": "cpu"})


def planned_vectors(plan: ModelPlan) -> list[tuple[str, VectorSpec]]:
    return [(stimulus.key, spec) for unit in plan.units for stimulus in unit.stimuli for spec in unit.specs]


def needed_vectors(plan: SweepPlan) -> set[tuple[str, VectorSpec]]:
    return {
        (stimulus.key, spec)
        for form in plan.forms
        for role in ROLES
        for stimulus in form.stimuli[role]
        for spec in only_model(plan).specs
        if spec.encoding in form.encodings
    }


def in_order(stimuli: tuple[Stimulus, ...]) -> list[Stimulus]:
    return sorted(stimuli, key=lambda s: (len(s.text), s.text, s.start, s.end))


# ---- which vectors


def test_layers_are_numbers_of_hidden_states(config, model):
    cases = [
        ("first", [0]),
        ("middle", [2]),
        ("last", [4]),
        ("all", [0, 1, 2, 3, 4]),
        (["first", "middle", "last"], [0, 2, 4]),
        (0, [0]),
        (3, [3]),
        (-1, [4]),
        (-5, [0]),
        ([-1, "last", 4, 1], [1, 4]),
        ([3, 1], [1, 3]),
        (["all", 2, "first"], [0, 1, 2, 3, 4]),
    ]
    entry = {"source": str(model), "pooling": "mean"}
    entries = [entry | {"name": f"case{i}", "layers": asked} for i, (asked, _) in enumerate(cases)]
    plan = plan_sweep(config(models=entries, encodings="word"))
    for (asked, layers), each in zip(cases, plan.models, strict=True):
        assert each.model.n_hidden_states == 5
        assert each.specs == tuple(VectorSpec("word", "mean", layer) for layer in layers), asked


@pytest.mark.parametrize("layer", [5, -6, 99])
def test_a_layer_that_the_model_lacks_is_told_with_those_it_has(config, layer):
    expected = rf"model tiny: has no layer {layer}; its 5 hidden states are 0 \(embeddings\) to 4, or -5 to -1"
    with pytest.raises(ModelError, match=expected):
        plan_sweep(config(layers=["last", layer]))


def test_a_model_may_have_layers_of_its_own(config):
    plan = only_model(plan_sweep(config(entry={"layers": [1, 2]}, layers="last", encodings="word")))
    assert [spec.layer for spec in plan.specs] == [1, 2]


def test_every_encoding_pooling_and_layer_is_measured(config):
    chosen = config(entry={"pooling": ["cls", "mean"]}, layers=[0, 4], cword_pooling=["first-subword", "mean-subword"])
    assert only_model(plan_sweep(chosen)).specs == tuple(
        VectorSpec(encoding, pooling, layer)
        for encoding, poolings in (
            ("word", ("cls", "mean")),
            ("sent", ("cls", "mean")),
            ("c-word", ("first-subword", "mean-subword")),
        )
        for pooling in poolings
        for layer in (0, 4)
    )


@pytest.mark.parametrize("encodings", [["word"], ["sent"], ["c-word"], ["c-word", "word"]])
def test_only_the_asked_encodings_are_planned(config, encodings):
    plan = plan_sweep(config(encodings=encodings))
    assert {spec.encoding for spec in only_model(plan).specs} == set(encodings)
    assert set(planned_vectors(only_model(plan))) == needed_vectors(plan)
    assert all(set(form.encodings) & set(encodings) for form in plan.forms)


@pytest.mark.parametrize(
    "twice",
    [
        {"entry": {"pooling": ["cls", "cls"]}},
        {"cword_pooling": ["first-subword", "first-subword"]},
        {"encodings": ["sent", "word", "sent"]},
        {"layers": ["last", "last", -1, 4]},
        {"tests": ["trees", "trees"]},
    ],
    ids=lambda twice: next(iter(twice)),
)
def test_what_stands_twice_is_refused_or_measured_once(config, twice):
    """A row that stands twice would make the correction of all others stricter."""
    try:
        plan = plan_sweep(config(**twice))
    except ValueError as error:
        assert "twice" in str(error)  # noqa: PT017 - one of two lawful ends
        return
    specs = only_model(plan).specs
    assert len(set(specs)) == len(specs)
    assert len({(form.test_id, form.form) for form in plan.forms}) == len(plan.forms)


def test_a_model_that_is_not_in_the_catalogue_needs_a_pooling(config):
    expected = (
        r"models: tiny: no pooling is published for it; give `pooling`, one or several of cls, mean, max, last "
        r"\(usual: cls for BERT"
    )
    with pytest.raises(ConfigError, match=expected):
        plan_sweep(config(entry={"pooling": None}))


def test_a_model_of_the_catalogue_has_its_published_pooling(config):
    plan = only_model(plan_sweep(config(entry={"name": "gpt2", "pooling": None}, encodings="word")))
    assert {spec.pooling for spec in plan.specs} == {"last"}


# ---- units


@pytest.fixture
def published_config(tmp_path, model) -> SweepConfig:
    entry = {"name": "tiny", "source": str(model), "pooling": "mean"}
    return SweepConfig.model_validate({"models": [entry], "out": str(tmp_path / "out")})


def test_the_published_tests_are_cut_into_ordered_units_of_at_most_512(published_config):
    plan = plan_sweep(published_config)
    units = only_model(plan).units
    assert all(1 <= len(unit.stimuli) <= 512 for unit in units)
    assert len({unit.unit_id for unit in units}) == len(units)
    for specs in {unit.specs for unit in units}:
        own = [unit for unit in units if unit.specs == specs]
        assert all(len(unit.stimuli) == 512 for unit in own[:-1])
        joined = tuple(stimulus for unit in own for stimulus in unit.stimuli)
        assert list(joined) == in_order(joined)


def test_each_distinct_text_and_span_is_planned_once_and_each_needed_vector_too(published_config):
    plan = plan_sweep(published_config)
    planned = planned_vectors(only_model(plan))
    assert len(planned) == len(set(planned))
    assert set(planned) == needed_vectors(plan)
    keys = [stimulus.key for unit in only_model(plan).units for stimulus in unit.stimuli]
    assert len(keys) == len(set(keys))


def test_the_order_of_the_tests_changes_no_unit(config, tmp_path):
    straight = plan_sweep(config(out=tmp_path / "a", tests=["trees", "fish"]))
    reverse = plan_sweep(config(out=tmp_path / "b", tests=["fish", "trees"]))
    assert only_model(straight).units == only_model(reverse).units


def test_the_small_tests_have_the_units_that_one_counts_by_hand(config):
    """Nine words; of each two sentences, which have `sent` and `c-word` from one pass."""
    plan = only_model(plan_sweep(config()))
    assert [(unit.encodings, len(unit.stimuli)) for unit in plan.units] == [
        (("word",), N_WORDS),
        (("sent", "c-word"), 2 * N_WORDS),
    ]


# ---- frozen plans


def test_the_same_configuration_reads_the_frozen_plan(config, tmp_path):
    first = plan_sweep(config())
    frozen = plan_files(tmp_path / "out")
    assert len(frozen) == 1
    again = plan_sweep(config())
    assert plan_files(tmp_path / "out") == frozen
    assert again.models == first.models
    assert again.forms == first.forms


def test_one_configuration_gives_one_plan_in_any_directory_and_process(config, tmp_path):
    path = tmp_path / "sweep.json"
    path.write_text(config(layers="all", encodings=["sent", "word"]).model_dump_json())
    told = []
    for seed in ("0", "1"):
        command = [sys.executable, "-c", PRINT_PLANS, str(path), str(tmp_path / f"out{seed}")]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        contents = {name: content for name, (content, _) in plan_files(tmp_path / f"out{seed}").items()}
        told.append((done.stdout, contents))
    assert told[0] == told[1]


def test_what_changes_no_vector_keeps_the_plan(config, tmp_path):
    first = plan_sweep(config())
    options = {"method": "normal", "alternative": "less", "interval": "percentile", "resample": "all"}
    options |= {"correction": "bh", "postprocessing": ["center", "none"]}
    places = {"threads": 3, "token_budget": 64, "device": "cpu", "entry": {"num_gpus": 0}}
    again = plan_sweep(config(alpha=0.5, seed=7, **options, **places))
    assert only_model(again).units == only_model(first).units
    assert len(plan_files(tmp_path / "out")) == 1


def test_another_configuration_in_the_same_directory_has_a_plan_of_its_own(config, tmp_path):
    first = only_model(plan_sweep(config()))
    for changes in (
        {"layers": "first"},
        {"encodings": "word"},
        {"tests": ["fish"], "layers": 1},
        {"cword_pooling": "last-subword"},
        {"entry": {"pooling": "max"}},
        {"entry": {"dtype": "bfloat16"}},
        {"entry": {"special_tokens": "exclude"}},
        {"entry": {"prefix_bos": True}},
        {"entry": {"name": "other"}},
    ):
        before = plan_files(tmp_path / "out")
        plan_sweep(config(**changes))
        after = plan_files(tmp_path / "out")
        assert len(after) == len(before) + 1, changes
        assert after.items() > before.items(), changes
    assert only_model(plan_sweep(config())) == first


def test_a_plan_does_not_depend_on_what_was_planned_in_its_directory_before(config, tmp_path):
    """The words of both tests are the same; that one sweep asks for no sentences must not show in the other's plan."""
    plan_sweep(config(encodings="word"))
    after_another = plan_sweep(config(tests=["fish"]))
    alone = plan_sweep(config(tests=["fish"], out=tmp_path / "fresh"))
    assert after_another.models == alone.models


def test_no_path_of_the_machine_enters_a_plan(config, tmp_path):
    plan_sweep(config())
    ((content, _),) = plan_files(tmp_path / "out").values()
    assert str(tmp_path).encode() not in content


def test_a_plan_does_not_change_while_the_store_fills(config):
    before = plan_sweep(config())
    for unit in only_model(before).units[:1]:
        commit(before.store, only_model(before), unit)
    after = plan_sweep(config())
    assert after.models == before.models
    assert only_model(after).pending(after.store) == list(only_model(before).units[1:])


def test_a_plan_file_cut_short_anywhere_is_told(config, tmp_path):
    plan_sweep(config())
    (path,) = (tmp_path / "out" / "plan").iterdir()
    content = path.read_bytes()
    for n_left in [len(content) - 1, *np.random.default_rng(0).integers(1, len(content), size=7).tolist()]:
        path.write_bytes(content[:n_left])
        with pytest.raises(StorageError, match=rf"{path.name}: is not a plan \(.+\); delete it to plan anew"):
            plan_sweep(config())


def test_a_file_that_is_no_plan_is_told_with_what_to_do(config, tmp_path):
    plan_sweep(config())
    (path,) = (tmp_path / "out" / "plan").iterdir()
    for content in (b"", b"[]", b"3", b"null", b"{}", b"\xff\xfe", b'{"units": []}'):
        path.write_bytes(content)
        with pytest.raises(StorageError, match=rf"{path.name}: is not a plan \(.+\); delete it to plan anew"):
            plan_sweep(config())


def test_a_plan_with_a_wrong_value_is_told_with_what_to_do(config, tmp_path):
    plan_sweep(config())
    (path,) = (tmp_path / "out" / "plan").iterdir()
    whole = json.loads(path.read_bytes())
    for wrong in (
        {"units": 3},
        {"units": [3]},
        {"units": [{"id": "a", "specs": [], "stimuli": ["0" * 32]}]},
        {"units": [{"id": "a", "specs": [["word"]], "stimuli": []}]},
        {"specs": None},
        {"specs": [["word"]]},
        {"reused": {"sent": 3}},
        {"reused": []},
        {"reused": "sent"},
    ):
        path.write_text(json.dumps(whole | wrong))
        with pytest.raises(StorageError, match=r"is not a plan \(.+\); delete it to plan anew"):
            plan_sweep(config())


# ---- what the store has


def test_a_full_store_leaves_nothing_to_encode(config, tmp_path):
    first = plan_sweep(config())
    for unit in only_model(first).units:
        commit(first.store, only_model(first), unit)
    assert only_model(first).pending(first.store) == []
    shared = only_model(plan_sweep(config(out=tmp_path / "elsewhere", store=str(tmp_path / "out" / "store"))))
    assert shared.units == ()
    word, sentences = (unit.unit_id for unit in only_model(first).units)
    assert shared.reused == {"word": (word,), "sent": (sentences,), "c-word": (sentences,)}
    for encoding in ("word", "sent", "c-word"):
        assert shared.parts(encoding) == list(shared.reused[encoding])


def test_only_what_the_store_lacks_is_planned(config, tmp_path):
    store = str(tmp_path / "vectors")
    small = plan_sweep(config(store=store, tests=["fish"], out=tmp_path / "small"))
    (unit,) = only_model(small).units
    commit(small.store, only_model(small), unit)
    whole = plan_sweep(config(store=store, out=tmp_path / "whole"))
    planned = planned_vectors(only_model(whole))
    held = {(stimulus.key, spec) for stimulus in unit.stimuli for spec in unit.specs}
    assert set(planned).isdisjoint(held)
    assert set(planned) | held == needed_vectors(whole)
    assert only_model(whole).reused == {"word": (unit.unit_id,)}


def test_some_stimuli_of_a_unit_in_the_store_leave_the_rest(published_config, tmp_path):
    store = str(tmp_path / "vectors")
    few = plan_sweep(published_config.model_copy(update={"tests": ["weat1"], "store": Path(store)}))
    for unit in only_model(few).units:
        commit(few.store, only_model(few), unit)
    more = plan_sweep(
        published_config.model_copy(
            update={"tests": ["weat1", "weat2"], "store": Path(store), "out": tmp_path / "more"}
        )
    )
    planned = planned_vectors(only_model(more))
    held = set(planned_vectors(only_model(few)))
    assert planned
    assert set(planned).isdisjoint(held)
    assert set(planned) | held == needed_vectors(more)
    for unit in only_model(more).units:
        assert list(unit.stimuli) == in_order(unit.stimuli)


def test_one_more_layer_plans_that_layer_alone(config):
    first = plan_sweep(config(layers=["first", "last"]))
    for unit in only_model(first).units:
        commit(first.store, only_model(first), unit)
    more = only_model(plan_sweep(config(layers=["first", 2, "last"])))
    assert {spec.layer for unit in more.units for spec in unit.specs} == {2}
    assert {spec.layer for spec in more.specs} == {0, 2, 4}
    assert sum(len(unit.stimuli) for unit in more.units) == 3 * N_WORDS
    for encoding in ("word", "sent", "c-word"):
        reused = list(more.reused[encoding])
        assert more.parts(encoding) == reused + [u.unit_id for u in more.units if encoding in u.encodings]


def test_one_more_pooling_plans_that_pooling_alone(config):
    first = plan_sweep(config())
    for unit in only_model(first).units:
        commit(first.store, only_model(first), unit)
    more = only_model(plan_sweep(config(entry={"pooling": ["mean", "max"]})))
    assert {spec for unit in more.units for spec in unit.specs} == {
        VectorSpec("word", "max", 4),
        VectorSpec("sent", "max", 4),
    }


def test_the_planned_parts_give_every_vector_once_all_is_encoded(config):
    first = plan_sweep(config(layers="last", tests=["fish"]))
    for unit in only_model(first).units:
        commit(first.store, only_model(first), unit)
    second = plan_sweep(config(layers=["middle", "last"]))
    plan = only_model(second)
    for unit in plan.pending(second.store):
        commit(second.store, plan, unit)
    for spec in plan.specs:
        keys = frozenset(key for key, other in needed_vectors(second) if other == spec)
        found = second.store.read(plan.model.key, spec, plan.parts(spec.encoding), keys)
        assert found.rows.keys() == keys
        assert set(found.vectors.ravel().tolist()) == {spec.layer + 1}


def test_the_vectors_of_another_model_are_not_used(config):
    first = plan_sweep(config())
    for unit in only_model(first).units:
        commit(first.store, only_model(first), unit)
    other = only_model(plan_sweep(config(entry={"dtype": "float16"})))
    assert other.reused == {}
    assert sum(len(unit.stimuli) for unit in other.units) == 3 * N_WORDS


def test_a_unit_of_which_one_encoding_is_missing_is_pending(config):
    plan = plan_sweep(config())
    sentences = only_model(plan).units[1]
    commit(plan.store, only_model(plan), sentences)
    plan.store.path(only_model(plan).model.key, "c-word", sentences.unit_id).unlink()
    assert sentences in only_model(plan).pending(plan.store)


def test_a_damaged_part_in_the_store_is_told_while_planning(config, tmp_path):
    first = plan_sweep(config())
    unit = only_model(first).units[0]
    commit(first.store, only_model(first), unit)
    path = first.store.path(only_model(first).model.key, "word", unit.unit_id)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StorageError, match=rf"{path.name}: is damaged .*; delete it and run again"):
        plan_sweep(config(out=tmp_path / "elsewhere", store=str(tmp_path / "out" / "store")))


def test_a_store_of_another_format_is_told_while_planning(config, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "store.json").write_text('{"format_version": 0}')
    with pytest.raises(FormatVersionError, match="choose another store"):
        plan_sweep(config(store=str(tmp_path / "old")))


# ---- units of scoring


def test_every_form_is_scored_once_in_batches_of_bounded_size(published_config):
    plan = plan_sweep(published_config)
    units = plan.score_units(only_model(plan))
    assert [form for unit in units for form in unit.forms] == list(plan.forms)
    for unit in units:
        n_targets = sum(len(form.stimuli["X"]) + len(form.stimuli["Y"]) for form in unit.forms)
        assert n_targets <= 1_000 or len(unit.forms) == 1
    paths = {place(unit.unit_id) for unit in units for place in (plan.rows_path, plan.words_path)}
    assert len(paths) == 2 * len(units) > 2
    n_rows = sum(spec.encoding in form.encodings for form in plan.forms for spec in only_model(plan).specs)
    assert sum(unit.n_rows for unit in units) == n_rows


def rescored(plan: SweepPlan, **changes: object) -> SweepPlan:
    # As of a configuration that scores or decides in another way, without reading all tests again.
    changed = json.loads(plan.config.model_dump_json()) | changes
    return dataclasses.replace(plan, config=SweepConfig.model_validate(changed))


def of_tests(plan: SweepPlan, *test_ids: str) -> SweepPlan:
    return dataclasses.replace(plan, forms=tuple(form for form in plan.forms if form.test_id in test_ids))


@pytest.fixture(scope="module")
def published_plan(tmp_path_factory) -> SweepPlan:
    directory = tmp_path_factory.mktemp("published")
    entry = {"name": "tiny", "source": str(make_model(directory / "tiny")), "pooling": "mean"}
    return plan_sweep(SweepConfig.model_validate({"models": [entry], "out": str(directory / "out")}))


def at_layers(plan: SweepPlan, n: int) -> SweepPlan:
    models = [
        dataclasses.replace(model, specs=tuple(spec._replace(layer=i) for spec in model.specs for i in range(n)))
        for model in plan.models
    ]
    return dataclasses.replace(plan, models=tuple(models))


def twice(plan: SweepPlan) -> SweepPlan:
    (first,) = plan.models
    second = dataclasses.replace(first, model=dataclasses.replace(first.model, revision="sha256:other"))
    return dataclasses.replace(plan, models=(first, second))


def score_units(plan: SweepPlan) -> list[ScoreUnit]:
    return [unit for model in plan.models for unit in plan.score_units(model)]


def unit_ids(plan: SweepPlan) -> tuple[list[str], list[str]]:
    return [unit.unit_id for unit in score_units(plan)], [unit.unit_id for unit in plan.family_units()]


CHANGES_OF_ROWS = [
    {"seed": 1},
    {"method": "exact"},
    {"method": "sampled"},
    {"alternative": "less"},
    {"alternative": "two-sided"},
    {"interval": "percentile"},
    {"resample": "all"},
    {"postprocessing": "center"},
    {"postprocessing": "standardize"},
    {"postprocessing": ["none", "center"]},
]
CHANGES_OF_VECTORS = [
    {"layers": 0},
    {"cword_pooling": "last-subword"},
    {"entry": {"pooling": "max", "dtype": "float16"}},
]


def test_units_of_scoring_and_families_are_the_same_again_and_others_where_a_row_would_differ(config):
    plan = plan_sweep(config())
    plain = unit_ids(plan)
    assert unit_ids(plan_sweep(config())) == plain
    others = [unit_ids(rescored(plan, **changes)) for changes in CHANGES_OF_ROWS]
    others += [unit_ids(plan_sweep(config(**changes))) for changes in CHANGES_OF_VECTORS]
    for of_rows, of_families in others:
        assert len(of_rows) == len(plain[0])
        assert len(of_families) == len(plain[1])
    for kind in (0, 1):
        every = [name for found in [plain, *others] for name in found[kind]]
        assert len(set(every)) == len(every)


def test_how_rows_are_decided_or_encoded_changes_no_unit_of_scoring_and_no_family(config):
    plan = plan_sweep(config())
    for changes in ({"alpha": 0.2}, {"correction": "bh"}, {"threads": 3}, {"token_budget": 64}, {"device": "cpu"}):
        other = rescored(plan, **changes)
        assert other.config != plan.config
        assert score_units(other) == score_units(plan)
        assert other.family_units() == plan.family_units()


def test_what_is_scored_goes_with_its_unit(config):
    options = {"seed": 3, "method": "normal", "alternative": "less", "interval": "percentile", "resample": "all"}
    plan = plan_sweep(config(**options))
    for unit in (*score_units(plan), *plan.family_units()):
        assert dataclasses.asdict(unit.options) == options
        assert pickle.loads(pickle.dumps(unit)) == unit  # noqa: S301 - as it goes to a worker and back


def test_a_row_is_planned_for_every_postprocessing(config):
    plan = plan_sweep(config())
    (plain,), (three,) = (
        score_units(rescored(plan, postprocessing=hows)) for hows in ("none", ["standardize", "none", "center"])
    )
    assert plain.n_rows == 2 + 1 + 1  # words of two tests, sent and c-word of one
    assert three.n_rows == 3 * plain.n_rows
    assert three.postprocessings == ("standardize", "none", "center")


def test_vectors_are_centred_on_every_planned_stimulus_of_their_encoding_whatever_unit_it_is_in(published_plan):
    plan = of_tests(rescored(published_plan, postprocessing="center"), "weat1", "weat3", "weat_hdb_likable")
    units = score_units(plan)
    assert len(units) > 1
    for encoding in ENCODINGS:
        expected = {
            s.key for form in plan.forms if encoding in form.encodings for role in ROLES for s in form.stimuli[role]
        }
        for unit in units:
            assert list(unit.population[encoding]) == sorted(expected)
    assert len(set(units[0].population["sent"]) - set(units[0].population["c-word"])) > 0  # paragraphs have sent only


@pytest.mark.parametrize("hows", [["none", "center"], "standardize"])
def test_a_population_is_of_the_measured_encodings_alone(config, hows):
    (unit,) = score_units(plan_sweep(config(postprocessing=hows, encodings=["word", "c-word"])))
    assert {encoding: len(keys) for encoding, keys in unit.population.items()} == {
        "word": N_WORDS,
        "c-word": 2 * N_WORDS,
    }


def test_without_postprocessing_there_is_no_population(published_plan):
    assert [unit.population for unit in score_units(published_plan)] == [{}] * len(score_units(published_plan))


def test_another_population_is_another_unit_even_of_the_same_tests(published_plan):
    first = score_units(published_plan)[0]
    for how, is_same in (("none", True), ("center", False)):
        whole = rescored(published_plan, postprocessing=how)
        (alone,) = score_units(dataclasses.replace(whole, forms=first.forms))
        assert alone.forms == score_units(whole)[0].forms
        assert (alone.unit_id == score_units(whole)[0].unit_id) is is_same


# ---- families


def test_a_family_holds_every_unit_of_scoring_that_has_its_test(published_plan):
    plan = twice(published_plan)
    families = plan.family_units()
    assert [family.test_id for family in families] == list(dict.fromkeys(form.test_id for form in plan.forms))
    assert len({family.unit_id for family in families}) == len(families)
    assert len({plan.family_path(family) for family in families}) == len(families)
    held = [(unit.unit_id, {form.test_id for form in unit.forms}) for unit in score_units(plan)]
    several = 0
    for family in families:
        holding = [unit_id for unit_id, test_ids in held if family.test_id in test_ids]
        assert list(family.score_units) == holding
        several += len(holding) > len(plan.models)
    assert several  # tests whose forms are in several units of one model


def test_a_family_is_another_with_one_more_model(published_plan):
    alone, both = published_plan.family_units(), twice(published_plan).family_units()
    assert {family.unit_id for family in alone}.isdisjoint(family.unit_id for family in both)
    for one, two in zip(alone, both, strict=True):
        assert two.score_units[: len(one.score_units)] == one.score_units
        assert len(two.score_units) == 2 * len(one.score_units)


def test_rows_words_and_families_have_places_of_their_own(config, tmp_path):
    plan = plan_sweep(config())
    (unit,), family = score_units(plan), plan.family_units()[0]
    out = tmp_path / "out"
    assert plan.rows_path(unit.unit_id) == out / "rows" / f"{unit.unit_id}.parquet"
    assert plan.words_path(unit.unit_id) == out / "words" / f"{unit.unit_id}.parquet"
    assert plan.family_path(family) == out / "families" / f"{family.unit_id}.parquet"


# ---- tests that are too small


def warned(plan: SweepPlan, unit: str, *, possible: bool) -> dict[tuple[str, str], FloorWarning]:
    return {
        (warning.test_id, warning.form): warning
        for warning in preflight(plan)
        if (warning.unit, warning.reach.possible) == (unit, possible)
    }


def test_a_test_of_four_against_four_is_never_significant_in_either_unit(published_plan):
    test_id = "weat_angry_black_woman_stereotype_b"
    assert warned(published_plan, "stimulus", possible=False) == {
        (test_id, "word"): FloorWarning(test_id, "word", "stimulus", 1 / 70, 104, Reach(possible=False, n_before=104))
    }
    (by_word,) = warned(published_plan, "word", possible=False).values()
    assert (by_word.test_id, by_word.p_floor, by_word.n_rivals) == (test_id, 1 / 70, 30)


def test_eight_against_eight_are_late_among_many_rows_and_not_among_few(published_plan):
    assert preflight(of_tests(published_plan, "weat7")) == []
    many = at_layers(published_plan, 5)
    late = warned(many, "stimulus", possible=True)
    assert late["weat7", "word"] == FloorWarning(
        "weat7", "word", "stimulus", 1 / 12870, 520, Reach(possible=True, n_before=392)
    )
    assert ("weat7", "sent") not in late  # many sentences
    assert ("weat1", "word") not in late  # 25 v 25
    assert ("weat_hdb_likable", "unbleached") in late  # one sentence a word
    assert "weat7" not in {test_id for test_id, _ in warned(many, "word", possible=True)}  # 30 tests, not 520 rows


def test_the_rows_of_all_models_and_postprocessings_count(published_plan):
    plan = rescored(twice(published_plan), postprocessing=["none", "center"])
    found = warned(plan, "stimulus", possible=True)["weat7", "word"]
    assert (found.n_rivals, found.reach.n_before) == (4 * 104, 4 * 104 - 128)
    assert {warning.n_rivals for warning in preflight(plan) if warning.unit == "word"} == {30}


def test_late_is_what_the_first_thresholds_of_holm_do_not_reach(published_plan):
    for alpha in (0.0001, 0.01, 0.2):
        plan = rescored(published_plan, alpha=alpha)
        n_rows = sum(unit.n_rows for unit in score_units(plan))
        expected = set()
        for form in plan.forms:
            n_x, n_y = len(form.stimuli["X"]), len(form.stimuli["Y"])
            if 1 / comb(n_x + n_y, n_x) > alpha / n_rows:
                expected.add((form.test_id, form.form))
        found = {(w.test_id, w.form) for w in preflight(plan) if w.unit == "stimulus"}
        assert found == expected
        assert found or alpha == 0.2


def test_the_floor_is_that_of_the_method_and_the_alternative(published_plan):
    plan = rescored(published_plan, method="sampled", alternative="two-sided", alpha=0.001)
    found = {(w.test_id, w.form): w.p_floor for w in preflight(plan) if w.unit == "stimulus"}
    assert found["weat1", "word"] == 2e-5
    assert found["weat7", "word"] == 2 / 12870
    for (test_id, form), floor in found.items():
        (chosen,) = (each for each in plan.forms if (each.test_id, each.form) == (test_id, form))
        sizes = (len(chosen.stimuli["X"]), len(chosen.stimuli["Y"]))
        assert floor == p_floor(*sizes, method="sampled", alternative="two-sided")


def test_no_row_waits_for_others_under_benjamini_hochberg(published_plan):
    plan = rescored(at_layers(published_plan, 5), correction="bh")
    assert warned(plan, "stimulus", possible=True) == {}
    assert warned(plan, "word", possible=False)


def test_the_words_of_a_test_decide_by_word_whatever_the_number_of_its_sentences(config):
    plan = plan_sweep(config(tests=["trees"], encodings=["sent", "c-word"], alpha=0.05))
    (form,) = plan.forms
    assert (len(form.stimuli["X"]), len(form.stimuli["Y"])) == (4, 6)
    (warning,) = preflight(plan)
    assert (warning.unit, warning.p_floor, warning.n_rivals) == ("word", 1 / 10, 1)
    assert warning.reach == Reach(possible=False, n_before=1)


def test_by_word_tests_are_rivals_and_not_their_rows(config):
    plan = plan_sweep(config(alpha=0.15))  # 1/10 is enough for the last of two tests, not for the first
    late = warned(plan, "word", possible=True)
    assert {test_id for test_id, _ in late} == {"trees", "fish"}
    assert {(w.n_rivals, w.reach.n_before) for w in late.values()} == {(2, 1)}


def test_sentences_without_words_are_no_test_by_word(config, tmp_path):
    sources = tmp_path / "published"
    write_published_format(sources, "sent-trees", prefix="Here is ", suffix=".")
    plan = plan_sweep(config(test_sources=str(sources), encodings="sent"))
    (warning,) = preflight(plan)
    assert (warning.unit, warning.p_floor) == ("stimulus", 1 / 6)


def test_a_two_sided_test_by_word_of_equal_sets_has_twice_the_floor(published_plan):
    # z and -z of a partition and its complement are equally far out: no p is below 2 / C(8, 4)
    plan = of_tests(published_plan, "weat_angry_black_woman_stereotype_b")
    assert warned(rescored(plan, alpha=0.02), "word", possible=False) == {}
    (warning,) = warned(rescored(plan, alpha=0.02, alternative="two-sided"), "word", possible=False).values()
    assert (warning.unit, warning.p_floor) == ("word", 2 / 70)


# ---- which tests


def test_a_test_that_is_not_there_is_told_with_the_nearest(config):
    with pytest.raises(DefinitionError, match=r"no test has the id 'tree'; did you mean 'trees'"):
        plan_sweep(config(tests=["tree"]))


def test_tests_without_any_asked_encoding_are_told(config):
    with pytest.raises(ConfigError, match=r"no chosen test has an encoding of sent, c-word; choose other encodings"):
        plan_sweep(config(tests=["fish"], encodings=["sent", "c-word"]))


def write_published_format(directory: Path, name: str, *, prefix: str = "", suffix: str = "") -> None:
    directory.mkdir(exist_ok=True)
    words = {
        "targ1": ["oak", "elm"],
        "targ2": ["trout", "pike"],
        "attr1": ["warm", "soft"],
        "attr2": ["cold", "hard"],
    }
    content = {
        key: {"category": key, "examples": [f"{prefix}{word}{suffix}" for word in some]} for key, some in words.items()
    }
    (directory / f"{name}.jsonl").write_text(json.dumps(content))


def test_c_word_of_ready_made_sentences_needs_the_file_of_their_words(config, tmp_path):
    sources = tmp_path / "published"
    write_published_format(sources, "sent-trees", prefix="Here is ", suffix=".")
    write_published_format(sources, "sent-fish", prefix="There is ", suffix=".")
    write_published_format(sources, "fish")
    expected = r"c-word needs the word inside each sentence.*: sent-trees\.jsonl needs trees\.jsonl; add the files, or "
    with pytest.raises(DefinitionError, match=expected):
        plan_sweep(config(test_sources=str(sources)))
    plan_sweep(config(test_sources=str(sources), encodings=["word", "sent"]))
    plan_sweep(config(test_sources=str(sources), tests=["fish"]))
    write_published_format(sources, "trees")
    assert {unit.encodings for unit in only_model(plan_sweep(config(test_sources=str(sources)))).units} == {
        ("word",),
        ("sent", "c-word"),
    }


# ---- which model


def test_changed_files_are_another_revision(config, model):
    found = [only_model(plan_sweep(config())).model]
    for name, content in (
        ("model.safetensors", "weights"),
        ("tokenizer_config.json", '{"do_lower_case": true}'),
        ("vocab.txt", "the"),
        ("config.json", '{"num_hidden_layers": 4, "hidden_act": "relu"}'),
    ):
        (model / name).write_text(content)
        found.append(resolve(found[0].spec))
    found.append(only_model(plan_sweep(config())).model)
    assert found[-1] == found[-2]
    assert len({each.revision for each in found}) == len({each.key for each in found}) == 5
    assert all(each.revision.startswith("sha256:") for each in found)


def test_files_that_loading_does_not_read_change_no_revision(config, model):
    before = only_model(plan_sweep(config())).model
    (model / "README.md").write_text("A model.")
    (model / "pytorch_model.bin").write_bytes(b"weights that are never read")
    assert only_model(plan_sweep(config())).model == before


def test_the_revision_of_a_directory_does_not_depend_on_where_it_is(config, tmp_path):
    copy = make_model(tmp_path / "elsewhere" / "copy")
    first, second = only_model(plan_sweep(config())), only_model(plan_sweep(config(entry={"source": str(copy)})))
    assert first.model.revision == second.model.revision
    assert first.units == second.units
    assert len(plan_files(tmp_path / "out")) == 1


def test_a_directory_is_measured_at_the_revision_that_is_asked_for_or_not_at_all(config):
    revision = only_model(plan_sweep(config())).model.revision
    assert only_model(plan_sweep(config(entry={"revision": revision}))).model.revision == revision
    expected = rf"model tiny: the files in .* have revision {revision}, but v2 is asked for; give the directory"
    with pytest.raises(ModelError, match=expected):
        plan_sweep(config(entry={"revision": "v2"}))


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("config.json", r"no config\.json in .*; give a Hugging Face model directory"),
        (
            "model.safetensors",
            r"no \.safetensors file in .*can run code.*; convert it where you trust it: .*save_pretr",
        ),
        ("tokenizer_config.json", r"neither tokenizer\.json nor tokenizer_config\.json in .*; save the tokenizer"),
    ],
)
def test_a_directory_that_lacks_a_file_is_told_with_what_to_do(model, missing, told):
    (model / missing).unlink()
    with pytest.raises(ModelError, match=f"model tiny: {told}"):
        resolve(ModelSpec(name="tiny", source=str(model)))


def test_pickled_weights_are_not_enough(config, model):
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"model tiny: no \.safetensors file in "):
        plan_sweep(config())


@pytest.mark.parametrize("source", ["./absent", "../absent", "/absent/model", "~/absent-model"])
def test_a_directory_that_is_not_there_is_told(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=f"model tiny: there is no directory {source}; check `source`"):
        resolve(ModelEntry(name="tiny", source=source).spec())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "its config.json cannot be read: "),
        ("\xff", "its config.json cannot be read: "),
        ("[]", "config.json"),
        ("3", "config.json"),
        ("{}", "its config.json tells no number of layers under num_hidden_layers, n_layer, n_layers, num_layers"),
        ('{"num_hidden_layers": "4"}', "its config.json tells no number of layers"),
        ('{"text_config": "bert"}', "its config.json"),
        ('{"num_layers": 4, "is_encoder_decoder": true}', "encoder-decoder models are not supported; give an enc"),
    ],
)
def test_a_config_that_does_not_tell_the_layers_is_told(model, content, told):
    (model / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ModelError, match=f"model tiny: .*{told}"):
        resolve(ModelSpec(name="tiny", source=str(model)))


@pytest.mark.parametrize(
    "content", [{"n_layer": 6}, {"num_layers": 6}, {"text_config": {"num_hidden_layers": 6}}, {"num_hidden_layers": 6}]
)
def test_the_number_of_layers_is_found_under_the_name_of_any_family(model, content):
    (model / "config.json").write_text(json.dumps(content))
    assert resolve(ModelSpec(name="tiny", source=str(model))).n_hidden_states == 7


def test_one_model_twice_is_told_with_what_to_do(config, model):
    entry = {"name": "tiny", "source": str(model), "pooling": "mean"}
    for second in (entry, entry | {"pooling": "max"}, entry | {"dtype": "float16"}):
        with pytest.raises(ConfigError, match=r"models: tiny at revision sha256:\w+ stands twice; give one a `name`"):
            plan_sweep(config(models=[entry, second]))


def test_one_model_under_two_names_is_two(config, model, tmp_path):
    entry = {"source": str(model), "pooling": "mean"}
    plan = plan_sweep(config(models=[entry | {"name": "first"}, entry | {"name": "second", "dtype": "float16"}]))
    assert [each.model.spec.name for each in plan.models] == ["first", "second"]
    assert len({each.model.key for each in plan.models}) == len(plan_files(tmp_path / "out")) == 2


# ---- which places


@pytest.mark.parametrize("key", ["out", "store"])
@pytest.mark.parametrize("below", ["file", "file/deeper"])
def test_a_place_below_a_file_is_told_with_what_to_do_before_any_work(config, tmp_path, key, below):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match=r"file.*: cannot be .*; choose a directory that you may write to"):
        plan_sweep(config(**{key: str(tmp_path / below)}))
    assert (tmp_path / "file").read_text() == "mine"
    assert not list(tmp_path.rglob("plan"))


@pytest.mark.parametrize("key", ["out", "store"])
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_bucket_is_refused_and_no_directory_of_its_name_is_made(config, tmp_path, monkeypatch, key, scheme):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(json.loads(config().model_dump_json()) | {key: f"{scheme}://bucket/run"}))
    with pytest.raises(DistseatError, match=rf"{scheme}:// is not supported yet; give a path that all machines share"):
        plan_sweep(load_config(path))
    assert not (tmp_path / f"{scheme}:").exists()
