"""The main job on a real local Ray with tiny real models: whole, repeatable, resumable, honest about failure."""

import hashlib
import json
import random
import shutil
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
import torch
import transformers

from distseat.actors import driver
from distseat.actors.progress import Silent
from distseat.actors.sweep import placement, require_resources, run_sweep
from distseat.actors.workers import EncodingWorker, Placement, score_and_commit
from distseat.config import SweepConfig, load_config
from distseat.errors import ConfigError, IncompleteRunError, StorageError
from distseat.models import CATALOGUE
from distseat.planning import plan_sweep
from distseat.templates import load_tests

TESTS = ["weat6", "weat_hdb_competent", "weat7"]
PUBLISHED_FILES = ("results.parquet", "results.tsv", "manifest.json")

pytestmark = pytest.mark.usefixtures("local_ray")


class Watching(Silent):
    """Remembers what was planned and noted."""

    def __init__(self) -> None:
        self.plan: dict[str, int] = {}
        self.notes: list[str] = []

    def planned(self, *, n_models: int, n_stimuli: int, n_rows: int) -> None:
        self.plan = {"models": n_models, "stimuli": n_stimuli, "rows": n_rows}

    def note(self, text: str) -> None:
        self.notes.append(text)


class Killing(Watching):
    """Kills every encoder actor's process with SIGKILL after a number of encoded units."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def encoded(self, n_stimuli: int) -> None:
        self.after -= 1
        if self.after == 0:
            for process in psutil.Process().children(recursive=True):
                if "EncodingWorker" in " ".join(process.cmdline()):
                    process.kill()


def digests(out: Path, *patterns: str) -> dict[str, str]:
    """Sha256 of the committed files of an output directory, by relative path."""
    found = (path for pattern in patterns for path in out.glob(pattern))
    files = sorted(path for path in found if path.is_file() and not path.name.startswith(".tmp-"))
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def config_of(tiny_model):
    def make(out: Path, **changes: object) -> SweepConfig:
        models = [
            {"name": "tiny-bert", "source": str(tiny_model("bert")), "pooling": ["cls", "mean"]},
            {"name": "tiny-gpt2", "source": str(tiny_model("gpt2")), "pooling": "last"},
        ]
        content = {"models": models, "tests": TESTS, "layers": ["first", "last"], "device": "cpu", "out": out}
        return SweepConfig.model_validate(content | changes)

    return make


@pytest.fixture(scope="module")
def undisturbed(config_of, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    return out, run_sweep(config_of(out))


def test_every_planned_row_is_there_once(undisturbed):
    _, rows = undisturbed
    # 3 word forms, 3 sent, 1 unbleached, 3 paragraphs; BERT has two sentence poolings, each model one c-word rule.
    forms = {"word": 3, "sent": 3 + 1 + 3, "c-word": 3 + 1}
    poolings = {"tiny-bert": 2, "tiny-gpt2": 1}
    planned = sum(2 * (p * (forms["word"] + forms["sent"]) + forms["c-word"]) for p in poolings.values())
    keys = {(r.model, r.revision, r.pooling, r.layer, r.encoding, r.test, r.form) for r in rows}
    assert len(rows) == len(keys) == planned


def test_rows_say_what_was_measured(undisturbed):
    _, rows = undisturbed
    cls_0 = [r for r in rows if (r.model, r.pooling, r.layer) == ("tiny-bert", "cls", 0)]
    assert cls_0
    assert all(r.void_reason and r.effect_size is None and r.p_value is None and r.decision is None for r in cls_0)
    live = [r for r in rows if r.void_reason is None]
    assert all(0 < r.p_value <= 1 and np.isfinite(r.effect_size) and r.decision in ("reject", "retain") for r in live)
    assert {r.family_size for r in rows} == {len(live)}
    assert all(r.revision.startswith("sha256:") for r in rows)
    causal = [
        r for r in live if r.model == "tiny-gpt2" and r.encoding == "c-word" and r.test == "weat6" and r.form == "sent"
    ]
    # John is the first word of 3 of a name's 8 sentences ("John is here.", "... there.", "... a person.").
    assert {r.position_0_share for r in causal} == {3 / 8}
    assert all(r.subtokens_x >= 1 for r in live)


def test_a_row_equals_the_definition_computed_by_hand(undisturbed, tiny_model):
    """d of SEAT 6 in words of the paper: plain transformers one text at a time, double loops, no code of ours."""
    _, rows = undisturbed
    key = ("tiny-bert", "mean", 3, "sent", "weat6", "sent")
    row = next(r for r in rows if (r.model, r.pooling, r.layer, r.encoding, r.test, r.form) == key)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("bert"))
    model = transformers.AutoModel.from_pretrained(tiny_model("bert")).eval()
    form = next(f for f in load_tests() if (f.test_id, f.form) == ("weat6", "sent"))

    def vector(text: str) -> np.ndarray:
        with torch.no_grad():
            return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0).double().numpy()

    x, y, a, b = ([vector(text) for text in form.texts(role)] for role in "XYAB")

    def s(w: np.ndarray) -> float:
        cosine = lambda u: float(w @ u / np.linalg.norm(w) / np.linalg.norm(u))  # noqa: E731 - the definition, in a line
        return float(np.mean([cosine(u) for u in a]) - np.mean([cosine(u) for u in b]))

    s_x, s_y = [s(w) for w in x], [s(w) for w in y]
    d = (np.mean(s_x) - np.mean(s_y)) / np.std(s_x + s_y, ddof=1)
    assert row.effect_size == pytest.approx(d, abs=1e-4)
    assert row.statistic == pytest.approx(np.mean(s_x) - np.mean(s_y), abs=1e-6)


def test_a_second_run_does_nothing_and_gives_the_same_bytes(undisturbed, config_of):
    out, _ = undisturbed
    before = digests(out, "**/*")
    stamps = {path: path.stat().st_mtime_ns for path in (out / "store").rglob("*.parquet")}
    watching = Watching()
    run_sweep(config_of(out), progress=watching)
    assert watching.plan == {"models": 0, "stimuli": 0, "rows": 0}
    assert digests(out, "**/*") == before
    assert {path: path.stat().st_mtime_ns for path in (out / "store").rglob("*.parquet")} == stamps


def test_the_workers_called_one_by_one_without_ray_give_the_same_bytes(undisturbed, config_of, tmp_path):
    plan = plan_sweep(config_of(tmp_path))
    place = Placement(device="cpu", num_gpus=0, threads=1, token_budget=1024)
    for model in plan.models:
        worker = EncodingWorker(model.model, plan.store.root, place)
        for unit in reversed(model.units):
            worker.encode(unit)
        for unit in reversed(plan.score_units(model)):
            score_and_commit(unit, plan.store.root, plan.rows_path(unit))
    run_sweep(config_of(tmp_path), phase="score")
    assert digests(tmp_path, "**/*") == digests(undisturbed[0], "**/*")


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_actor_changes_nothing_in_the_results(undisturbed, config_of, tmp_path, seed):
    killing = Killing(after=random.Random(seed).randint(1, 4))  # noqa: S311 - a seeded moment
    run_sweep(config_of(tmp_path), progress=killing)
    assert any("its actor was lost, starting another" in note for note in killing.notes)
    assert digests(tmp_path, "**/*") == digests(undisturbed[0], "**/*")


def test_encode_and_then_score_is_a_sweep(undisturbed, config_of, tmp_path):
    assert run_sweep(config_of(tmp_path), phase="encode") == []
    assert not (tmp_path / "results.tsv").exists()
    run_sweep(config_of(tmp_path), phase="score")
    assert digests(tmp_path, "**/*") == digests(undisturbed[0], "**/*")


def test_score_says_what_is_not_encoded(config_of, tmp_path):
    with pytest.raises(IncompleteRunError, match=r"not encoded yet: tiny-bert \(\d units\), .*distseat encode"):
        run_sweep(config_of(tmp_path), phase="score")


def test_a_further_layer_alone_is_encoded(undisturbed, config_of, tmp_path):
    out, _ = undisturbed
    shutil.copytree(out, tmp_path / "copy")
    held = digests(tmp_path / "copy", "store/**/*")
    watching = Watching()
    rows = run_sweep(config_of(tmp_path / "copy", layers=["first", 1, "last"]), progress=watching)
    after = digests(tmp_path / "copy", "store/**/*")
    assert held.items() <= after.items()
    layers = [set(pq.read_table(tmp_path / "copy" / name)["layer"].to_pylist()) for name in after.keys() - held.keys()]
    assert layers
    assert all(each == {1} for each in layers)
    assert {r.layer for r in rows} == {0, 1, 3}


def test_a_failing_model_leaves_no_table_and_loses_no_other_models_work(config_of, tiny_model, tmp_path):
    broken = shutil.copytree(tiny_model("gpt"), tmp_path / "broken")
    weights = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    models = [
        {"name": "tiny-bert", "source": str(tiny_model("bert")), "pooling": "mean"},
        {"name": "broken", "source": str(broken), "pooling": "last"},
    ]
    config = config_of(tmp_path / "out", models=models)
    with pytest.raises(
        IncompleteRunError, match=r"(?s)not whole.*model broken: ModelError: .*cannot be loaded.*run again"
    ):
        run_sweep(config)
    assert not any((tmp_path / "out" / name).exists() for name in PUBLISHED_FILES)
    assert list((tmp_path / "out" / "rows").glob("*.parquet"))
    (broken / "model.safetensors").write_bytes(weights)
    watching = Watching()
    rows = run_sweep(config, progress=watching)
    assert watching.plan["models"] == 1
    assert {r.model for r in rows} == {"tiny-bert", "broken"}


def test_a_model_changed_after_planning_is_not_encoded_under_its_old_revision(config_of, tiny_model, tmp_path):
    directory = shutil.copytree(tiny_model("gpt"), tmp_path / "changing")
    models = [{"name": "changing", "source": str(directory), "pooling": "last"}]
    plan = plan_sweep(config_of(tmp_path / "out", models=models))
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"note": "another"}))
    worker = EncodingWorker(
        plan.models[0].model, plan.store.root, Placement(device="cpu", num_gpus=0, threads=1, token_budget=64)
    )
    with pytest.raises(LookupError, match="but the plan was made for sha256:"):
        worker.load()


def test_own_tests_run_beside_the_published(config_of, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("""
word_lists: {seas: [Baltic, Aegean, Caspian]}
word_classes: {name: [Baltic, Aegean, Caspian]}
tests:
  - {id: seas, title: Seas and flowers, X: seas, Y: flowers, A: pleasant_8, B: unpleasant_8, forms: [word, sent]}
""")
    rows = run_sweep(config_of(tmp_path / "out", test_sources=["published", str(own)], tests=["seas", "weat6"]))
    mine = [r for r in rows if r.test == "seas"]
    assert {(r.encoding, r.n_x, r.n_y) for r in mine} == {("word", 3, 25), ("sent", 24, 350), ("c-word", 24, 350)}


def test_no_path_of_the_machine_is_in_a_result(undisturbed):
    out, _ = undisturbed
    for path in out.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".tsv"):
            assert str(out.parent) not in path.read_text(), path
    for path in out.rglob("*.parquet"):
        assert str(out.parent) not in str(pq.read_table(path).to_pylist()), path
        assert str(out.parent) not in str(pq.read_metadata(path).metadata), path


@pytest.mark.parametrize(
    ("device", "own", "gpus", "expected"),
    [
        ("auto", True, 0.0, ("cpu", 0.0)),
        ("auto", True, 2.0, ("cuda", 1.0)),
        ("auto", False, 0.0, ("cuda", 1.0)),  # never a silent CPU on a cluster: the actor waits for a GPU
        ("cpu", False, 4.0, ("cpu", 0.0)),
        ("cuda", True, 0.0, ("cuda", 1.0)),
    ],
)
def test_a_device_is_chosen_by_the_rule(device, own, gpus, expected):
    config = SweepConfig.model_validate({"models": ["gpt2"], "device": device})
    place = placement(config, CATALOGUE["gpt2"], own=own, gpus=gpus)
    assert (place.device, place.num_gpus) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threads": 10_000}, "asks for 10000 CPU cores, this machine has"),
        ({"device": "cuda"}, "asks for 1 GPUs, this machine has 0"),
    ],
)
def test_what_this_machine_has_not_is_told_and_not_waited_for(changes, message):
    config = SweepConfig.model_validate({"models": ["gpt2"], "device": "cpu"} | changes)
    place = placement(config, CATALOGUE["gpt2"], own=True, gpus=0.0)
    with pytest.raises(ConfigError, match=message):
        require_resources(place, "gpt2", gpus=0.0, cpus=2.0)


def test_a_test_that_is_renamed_gives_rows_of_its_new_name(config_of, tmp_path):
    own = tmp_path / "own.yaml"
    text = "tests: [{id: own, title: Old, X: math, Y: science, A: career, B: family, forms: [word]}]"
    titles = []
    for title in ("Old", "New"):
        own.write_text(text.replace("Old", title).replace("Y: science", "Y: arts_c7"))
        rows = run_sweep(config_of(tmp_path / "out", test_sources=[str(own)], tests="all", encodings=["word"]))
        titles.append({row.title for row in rows})
    assert titles == [{"Old"}, {"New"}]


def test_a_plan_whose_parts_are_in_another_store_says_so(undisturbed, config_of, tmp_path):
    shutil.copytree(undisturbed[0] / "store", tmp_path / "full")
    out = tmp_path / "out"
    assert plan_sweep(config_of(out, store=tmp_path / "full")).models[0].units == ()
    with pytest.raises(StorageError, match="give the store that it was made with, or delete this plan"):
        plan_sweep(config_of(out, store=tmp_path / "empty"))


def test_cword_alone_needs_no_sentence_pooling(config_of, tiny_model, tmp_path):
    models = [{"name": "unpublished", "source": str(tiny_model("bert"))}]
    plan = plan_sweep(config_of(tmp_path, models=models, encodings=["c-word"]))
    assert {spec.pooling for spec in plan.models[0].specs} == {"first-subword"}


def test_a_gpu_that_the_cluster_has_not_is_waited_for_and_then_told(config_of, tiny_model, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "RESOURCES_LIMIT_S", 3.0)
    models = [{"name": "tiny-gpt2", "source": str(tiny_model("gpt2")), "pooling": "last"}]
    with pytest.raises(IncompleteRunError, match=r"tiny-gpt2: asks for 1 GPUs and 1 CPU cores, .*num_gpus"):
        run_sweep(config_of(tmp_path, models=models, device="auto"))


def test_an_actor_that_answers_too_late_is_replaced_and_in_the_end_given_up(config_of, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "MAX_SYSTEM_RETRIES", 1)
    monkeypatch.setattr(driver._Call.__init__, "__defaults__", (0.0, *driver._Call.__init__.__defaults__[1:]))
    watching = Watching()
    models = [config_of(tmp_path).models[0]]
    with pytest.raises(
        IncompleteRunError, match="its actor was lost 2 times; the last time: no answer for 120 minutes"
    ):
        run_sweep(config_of(tmp_path, models=models), progress=watching)
    assert len([note for note in watching.notes if "starting another (1 of 1)" in note]) == 1


def test_more_models_than_cores_take_turns(config_of, tiny_model, tmp_path):
    models = [
        {"name": f"model-{number}", "source": str(tiny_model(family)), "pooling": "mean"}
        for number, family in enumerate(("bert", "gpt", "gpt2", "llama"))
    ]
    rows = run_sweep(config_of(tmp_path, models=models, encodings=["word"], tests=["weat6"]))
    assert [row.model for row in rows[::2]] == [f"model-{number}" for number in range(4)]


def test_the_quickstart_configuration_is_valid(repository):
    config = load_config(repository / "examples" / "quickstart.yaml")
    assert [model.name for model in config.models] == ["all-MiniLM-L6-v2"]
