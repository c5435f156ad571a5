"""The main job on a real local Ray with tiny real models: whole, repeatable, resumable, honest about failure."""

import csv
import dataclasses
import hashlib
import json
import math
import random
import shutil
import threading
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Self

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
import torch
import transformers

from distseat import planning
from distseat.actors import driver
from distseat.actors.progress import Silent
from distseat.actors.sweep import placement, require_resources, run_sweep
from distseat.actors.workers import EncodingWorker, Placement, correct_and_commit, score_and_commit
from distseat.config import SweepConfig, load_config
from distseat.errors import ConfigError, IncompleteRunError, StorageError
from distseat.models import CATALOGUE
from distseat.planning import plan_sweep
from distseat.stores import ResultRow, commit_members, read_members
from distseat.templates import export_tests, load_tests

TESTS = ["weat6", "weat_hdb_competent", "weat7"]
MANY_WORDS = ["weat3", "weat+12", "weat_r_hdb_competent", "weat_r_hdb_likable"]  # 32 words a set: drawn, not enumerated
PUBLISHED_FILES = ("results.parquet", "results.tsv", "words.parquet", "manifest.json")
NOTHING = {"models": 0, "stimuli": 0, "rows": 0, "tests": 0}
OVER_THE_RUN = {"p_adjusted", "decision", "family_size", "alpha"}
OVER_THE_RUN |= {"p_adjusted_word", "decision_word", "family_size_word"}

pytestmark = pytest.mark.usefixtures("local_ray")


class Watching(Silent):
    """Remembers what was planned and noted."""

    def __init__(self) -> None:
        self.plan: dict[str, int] = {}
        self.notes: list[str] = []

    def planned(self, *, n_models: int, n_stimuli: int, n_rows: int, n_tests: int) -> None:
        self.plan = {"models": n_models, "stimuli": n_stimuli, "rows": n_rows, "tests": n_tests}

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


class KillingTasks(Watching):
    """Kills with SIGKILL the first worker that is seen at a task of a kind, and `more` others, each after a moment."""

    def __init__(self, task: str, seed: int, *, more: int = 0) -> None:
        super().__init__()
        self.task = task
        self.random = random.Random(seed)  # noqa: S311 - seeded moments
        self.left = 1 + more
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def _watch(self) -> None:
        while self.left and not self.ended.wait(0.005):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):  # it may have ended by itself
                    self._kill(process)

    def _kill(self, process: psutil.Process) -> None:
        if self.left and self._is_at_it(process):
            self.ended.wait(self.random.uniform(0, 0.1))
            if self._is_at_it(process):
                process.kill()
                self.left -= 1

    def _is_at_it(self, process: psutil.Process) -> bool:
        return any(self.task in part for part in process.cmdline())


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


@pytest.fixture
def copied(undisturbed, tmp_path) -> Path:
    """The directory of a whole run, to be damaged or run on."""
    return shutil.copytree(undisturbed[0], tmp_path / "copied")


def keyed(rows: list[ResultRow], *, decided: bool = True) -> dict[tuple, ResultRow]:
    """Rows by their key, with or without what depends on all the others."""
    without = {} if decided else dict.fromkeys(OVER_THE_RUN)
    found = {row.key: dataclasses.replace(row, **without) for row in rows}
    assert len(found) == len(rows)
    return found


def lines_of_words(out: Path) -> set[tuple]:
    lines = [tuple(line.values()) for line in pq.read_table(out / "words.parquet").to_pylist()]
    assert len(set(lines)) == len(lines)
    return set(lines)


def test_every_planned_row_is_there_once(undisturbed):
    _, rows = undisturbed
    # 3 word forms, 3 sent, 1 unbleached, 3 paragraphs; BERT has two sentence poolings, each model one c-word rule.
    forms = {"word": 3, "sent": 3 + 1 + 3, "c-word": 3 + 1}
    poolings = {"tiny-bert": 2, "tiny-gpt2": 1}
    planned = sum(2 * (p * (forms["word"] + forms["sent"]) + forms["c-word"]) for p in poolings.values())
    keys = {(r.model, r.revision, r.pooling, r.layer, r.postprocessing, r.encoding, r.test, r.form) for r in rows}
    assert len(rows) == len(keys) == planned


def test_rows_say_what_was_measured(undisturbed):
    _, rows = undisturbed
    cls_0 = [r for r in rows if (r.model, r.pooling, r.layer) == ("tiny-bert", "cls", 0)]
    assert cls_0
    assert all(r.void_reason and r.effect_size is None and r.p_value is None and r.decision is None for r in cls_0)
    live = [r for r in rows if r.void_reason is None]
    assert all(0 < r.p_value <= 1 and np.isfinite(r.effect_size) for r in live)
    assert all(0 < r.p_value_word <= 1 and np.isfinite(r.effect_size_word) for r in live)
    assert all(r.interval_low <= r.effect_size_word <= r.interval_high for r in live)
    assert all(r.revision.startswith("sha256:") for r in rows)
    causal = [
        r for r in live if r.model == "tiny-gpt2" and r.encoding == "c-word" and r.test == "weat6" and r.form == "sent"
    ]
    # John is the first word of 3 of a name's 8 sentences ("John is here.", "... there.", "... a person.").
    assert {r.position_0_share for r in causal} == {3 / 8}
    assert all(r.subtokens_x >= 1 for r in live)


@pytest.mark.parametrize("correction", ["holm", "bh"])
def test_decisions_are_written_for_both_units_and_another_level_needs_no_other_work(config_of, copied, correction):
    watching = Watching()
    rows = run_sweep(config_of(copied, alpha=0.5, correction=correction), progress=watching)
    assert watching.plan == NOTHING
    live = [r for r in rows if r.void_reason is None]
    for unit in ("", "_word"):
        found = [(getattr(r, f"p_adjusted{unit}"), getattr(r, f"decision{unit}")) for r in live]
        assert {decision for _, decision in found} == {"reject", "retain"}
        assert all((decision == "reject") == (p <= 0.5) for p, decision in found)
    assert {(r.family_size, r.family_size_word, r.alpha) for r in live} == {(len(live), len(TESTS), 0.5)}
    void = [r for r in rows if r.void_reason is not None]
    assert void
    assert {(r.decision, r.decision_word, r.family_size, r.family_size_word) for r in void} == {(None,) * 4}
    with (copied / "results.tsv").open(newline="") as stream:
        told = [(line["decision"], line["decision_word"]) for line in csv.DictReader(stream, delimiter="\t")]
    assert told == [(r.decision or "void", r.decision_word or "NA") for r in rows]


def test_benjamini_hochberg_changes_the_decision_of_stimuli_alone(undisturbed, config_of, copied):
    rows = run_sweep(config_of(copied, correction="bh"))
    holm, bh = keyed(undisturbed[1]), keyed(rows)
    assert any(bh[key].p_adjusted < holm[key].p_adjusted for key in holm if holm[key].p_value is not None)
    plain = {"p_adjusted": None, "decision": None}
    assert all(dataclasses.replace(bh[key], **plain) == dataclasses.replace(holm[key], **plain) for key in holm)


def partitions_of_16() -> np.ndarray:
    """A line for each choice of 8 of 16 words; the first chooses the first 8."""
    members = np.zeros((math.comb(16, 8), 16))
    for number, chosen in enumerate(combinations(range(16), 8)):
        members[number, list(chosen)] = 1
    return members


def step_down(scores: np.ndarray, *, steps: int) -> np.ndarray:
    """Adjusted p of each line of scores by definition; each sum may be off by so many steps of 1e-7 of its scores."""
    deviation = scores.std(axis=1, ddof=1, keepdims=True)
    statistics = (scores - scores.mean(axis=1, keepdims=True)) / deviation @ partitions_of_16().T
    margin = np.copysign(1e-9, steps) + steps * 1e-7 / deviation
    order = np.argsort(-statistics[:, 0])
    adjusted = np.zeros(len(scores))
    highest = 0.0
    for rank, row in enumerate(order):
        highest_z = (statistics + margin)[order[rank:]].max(axis=0)
        reached = highest_z >= statistics[row, 0] - margin[row, 0]
        adjusted[row] = highest = max(highest, float(reached.mean()))
    return adjusted


def test_the_correction_by_words_equals_its_definition_on_the_published_words(undisturbed):
    """Step-down maxT and Holm over tests from words.parquet alone, without and with every tie that rounding leaves."""
    out, rows = undisturbed
    scores: dict[tuple, dict[tuple[str, str], float]] = {}
    for line in pq.read_table(out / "words.parquet").to_pylist():
        *key, chosen_set, word, score = line.values()
        scores.setdefault(tuple(key), {})[chosen_set, word] = score
    live = {row.key: row for row in rows if row.void_reason is None}
    assert scores.keys() == live.keys()
    bounds = []
    for steps in (-(2 * 8 + 1), 2 * 8 + 1):
        own = {}
        for test in TESTS:
            keys = [key for key in scores if live[key].test == test]
            words = {tuple(sorted(scores[key])) for key in keys}
            assert len(words) == 1
            values = np.array([[scores[key][word] for word in min(words)] for key in keys])
            own |= dict(zip(keys, step_down(values, steps=steps), strict=True))
        smallest = {test: min(own[key] for key in own if live[key].test == test) for test in TESTS}
        ranked = sorted(TESTS, key=smallest.__getitem__)
        before = {t: max((3 - i) * smallest[ranked[i]] for i in range(ranked.index(t) + 1)) for t in TESTS}
        bounds.append({k: min(1, max(before[live[k].test], (3 - ranked.index(live[k].test)) * own[k])) for k in own})
    low, high = bounds
    for key, row in live.items():
        assert low[key] - 1e-12 <= row.p_adjusted_word <= high[key] + 1e-12
    assert max(high[key] - low[key] for key in low) < 0.02
    assert min(high.values()) < 0.5


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

    def of_words(role: str, scores: list[float]) -> dict[str, float]:
        words = [stimulus.word for stimulus in form.stimuli[role]]
        pairs = list(zip(words, scores, strict=True))
        return {word: float(np.mean([score for other, score in pairs if other == word])) for word in words}

    words_x, words_y = of_words("X", s_x), of_words("Y", s_y)
    both = np.array([*words_x.values(), *words_y.values()])
    d_word = (both[:8].mean() - both[8:].mean()) / both.std(ddof=1)
    assert (row.n_words_x, row.n_words_y) == (8, 8)
    assert row.effect_size_word == pytest.approx(d_word, abs=1e-4)
    sums = partitions_of_16() @ both
    assert row.method_used_word == "exact"
    assert row.p_value_word == pytest.approx(float((sums >= both[:8].sum() - 1e-9).mean()), abs=2e-3)
    table = pq.read_table(undisturbed[0] / "words.parquet")
    mine = [line for line in table.to_pylist() if tuple(line[name] for name in row.key._fields) == row.key]
    assert [(line["set"], line["word"]) for line in mine] == [("X", w) for w in words_x] + [("Y", w) for w in words_y]
    assert [line["score"] for line in mine] == pytest.approx(both, abs=1e-6)


def test_a_second_run_does_nothing_and_gives_the_same_bytes(undisturbed, config_of):
    out, _ = undisturbed
    before, stamps = digests(out, "**/*"), committed_at(out)
    watching = Watching()
    run_sweep(config_of(out), progress=watching)
    assert watching.plan == NOTHING
    assert digests(out, "**/*") == before
    assert committed_at(out) == stamps


def committed_at(out: Path) -> dict[Path, int]:
    """When each file was committed that is never replaced."""
    folders = ("store", "rows", "words", "families")
    return {path: path.stat().st_mtime_ns for folder in folders for path in (out / folder).rglob("*.parquet")}


@pytest.mark.parametrize(("folder", "seed"), [("rows", 0), ("words", 1), ("families", 2), ("families", 3)])
def test_a_lost_file_alone_is_made_again(undisturbed, config_of, copied, folder, seed):
    lost = random.Random(seed).choice(sorted((copied / folder).iterdir()))  # noqa: S311 - a seeded choice
    n_rows = 0 if folder == "families" else pq.read_metadata(copied / "rows" / lost.name).num_rows
    lost.unlink()
    kept = committed_at(copied)
    watching = Watching()
    run_sweep(config_of(copied), progress=watching)
    assert watching.plan == NOTHING | {"rows": n_rows, "tests": int(folder == "families")}
    assert digests(copied, "**/*") == digests(undisturbed[0], "**/*")
    again = committed_at(copied)
    assert again.keys() - kept.keys() == {lost}
    assert kept.items() <= again.items()


def test_scores_and_corrections_are_made_again_from_the_store_alone(undisturbed, config_of, copied):
    for folder in ("rows", "words", "families"):
        shutil.rmtree(copied / folder)
    watching = Watching()
    run_sweep(config_of(copied), phase="score", progress=watching)
    assert watching.plan == NOTHING | {"rows": len(undisturbed[1]), "tests": len(TESTS)}
    assert digests(copied, "**/*") == digests(undisturbed[0], "**/*")


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def change_a_byte(path: Path) -> None:
    parquet = pq.read_metadata(path).row_group(0)
    largest = max((parquet.column(i) for i in range(parquet.num_columns)), key=lambda c: c.total_compressed_size)
    start = largest.dictionary_page_offset or largest.data_page_offset
    content = bytearray(path.read_bytes())
    content[start + largest.total_compressed_size - 1] ^= 1  # the last byte of values
    path.write_bytes(content)


def put_other_rows(path: Path) -> None:
    shutil.copy(path.parent.parent / "results.parquet", path)


@pytest.mark.parametrize(
    ("folder", "damage"),
    [
        *((folder, damage) for folder in ("rows", "words", "families") for damage in (halve, change_a_byte)),
        ("words", put_other_rows),  # which the rows' own folder would take
        ("families", put_other_rows),
    ],
)
def test_a_damaged_file_is_told_and_not_counted(undisturbed, config_of, copied, folder, damage):
    path = min((copied / folder).iterdir())
    damage(path)
    published = digests(copied, *PUBLISHED_FILES)
    with pytest.raises(StorageError, match=rf"{folder}/{path.name}: .*; delete it and run again"):
        run_sweep(config_of(copied))
    assert digests(copied, *PUBLISHED_FILES) == published
    path.unlink()
    run_sweep(config_of(copied))
    assert digests(copied, "**/*") == digests(undisturbed[0], "**/*")


def lose_a_member(path: Path) -> None:
    members = read_members(path)
    path.unlink()
    commit_members(path, members[1:])


def take_anothers_place(path: Path) -> None:
    shutil.copy(max(path.parent.iterdir()), path)


@pytest.mark.parametrize("damage", [lose_a_member, take_anothers_place])
def test_families_that_lack_a_row_are_told_and_not_counted(undisturbed, config_of, copied, damage):
    damage(min((copied / "families").iterdir()))
    published = digests(copied, *PUBLISHED_FILES)
    with pytest.raises(
        IncompleteRunError, match=r"rows and their families do not agree; delete .*families in .*, and run again"
    ):
        run_sweep(config_of(copied))
    assert digests(copied, *PUBLISHED_FILES) == published
    shutil.rmtree(copied / "families")
    run_sweep(config_of(copied))
    assert digests(copied, "**/*") == digests(undisturbed[0], "**/*")


def test_damaged_words_fail_the_corrections_that_need_them(undisturbed, config_of, copied):
    path = min((copied / "words").iterdir())
    halve(path)
    shutil.rmtree(copied / "families")
    with pytest.raises(IncompleteRunError) as failure:
        run_sweep(config_of(copied))
    for test in TESTS:
        assert f"correcting test {test}: StorageError: " in str(failure.value)
    assert f"words/{path.name}: cannot be read" in str(failure.value)
    assert "the results in" in str(failure.value)
    path.unlink()
    run_sweep(config_of(copied))
    assert digests(copied, "**/*") == digests(undisturbed[0], "**/*")


def test_the_workers_called_one_by_one_without_ray_give_the_same_bytes(undisturbed, config_of, tmp_path):
    plan = plan_sweep(config_of(tmp_path))
    place = Placement(device="cpu", num_gpus=0, threads=1, token_budget=1024)
    for model in plan.models:
        worker = EncodingWorker(model.model, plan.store.root, place)
        for unit in reversed(model.units):
            worker.encode(unit)
        for unit in reversed(plan.score_units(model)):
            score_and_commit(unit, plan.store.root, plan.rows_path(unit.unit_id), plan.words_path(unit.unit_id))
    for family in reversed(plan.family_units()):
        words = [plan.words_path(unit_id) for unit_id in reversed(family.score_units)]
        correct_and_commit(family, words, plan.family_path(family))
    watching = Watching()
    run_sweep(config_of(tmp_path), phase="score", progress=watching)
    assert watching.plan == NOTHING
    assert digests(tmp_path, "**/*") == digests(undisturbed[0], "**/*")


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_actor_changes_nothing_in_the_results(undisturbed, config_of, tmp_path, seed):
    killing = Killing(after=random.Random(seed).randint(1, 4))  # noqa: S311 - a seeded moment
    run_sweep(config_of(tmp_path), progress=killing)
    assert any("its actor was lost, starting another" in note for note in killing.notes)
    assert digests(tmp_path, "**/*") == digests(undisturbed[0], "**/*")


@pytest.fixture(scope="module")
def of_many_words(config_of, tmp_path_factory):
    """A whole run whose corrections take longest."""

    def config(out: Path) -> SweepConfig:
        return config_of(out, models=[config_of(out).models[0]], encodings=["word"], layers="all", tests=MANY_WORDS)

    out = tmp_path_factory.mktemp("many_words")
    run_sweep(config(out))
    return out, config


@pytest.mark.parametrize(
    ("task", "folders", "seed", "more"),
    [
        ("score_and_commit", ("rows", "words", "families"), 0, 0),
        ("correct_and_commit", ("families",), 1, 0),
        ("correct_and_commit", ("families",), 2, 2),
    ],
)
def test_a_killed_task_changes_nothing_in_the_results(of_many_words, tmp_path, task, folders, seed, more):
    whole, config = of_many_words
    out = shutil.copytree(whole, tmp_path / "out")
    for folder in folders:
        shutil.rmtree(out / folder)
    with KillingTasks(task, seed, more=more) as killing:
        run_sweep(config(out), progress=killing)
    what = {"score_and_commit": "scoring unit", "correct_and_commit": "correcting test"}[task]
    assert any(note.startswith(what) and "lost, trying again (1 of 3)" in note for note in killing.notes)
    assert digests(out, "**/*") == digests(whole, "**/*")


def test_a_correction_that_is_lost_too_often_leaves_no_table(of_many_words, tmp_path, monkeypatch):
    whole, config = of_many_words
    out = shutil.copytree(whole, tmp_path / "out")
    shutil.rmtree(out / "families")
    for name in PUBLISHED_FILES:
        (out / name).unlink()
    monkeypatch.setattr(driver, "MAX_SYSTEM_RETRIES", 0)
    with (
        KillingTasks("correct_and_commit", 0) as killing,
        pytest.raises(IncompleteRunError, match=r"1 units failed(?s:.)*correcting test .*: lost 1 times"),
    ):
        run_sweep(config(out), progress=killing)
    assert not any((out / name).exists() for name in PUBLISHED_FILES)
    assert len(list((out / "families").iterdir())) == len(MANY_WORDS) - 1
    watching = Watching()
    run_sweep(config(out), progress=watching)
    assert watching.plan == NOTHING | {"tests": 1}
    assert digests(out, "**/*") == digests(whole, "**/*")


def test_tests_in_another_order_give_the_same_rows(undisturbed, config_of, tmp_path):
    rows = run_sweep(config_of(tmp_path, tests=TESTS[::-1]))
    assert keyed(rows) == keyed(undisturbed[1])
    assert lines_of_words(tmp_path) == lines_of_words(undisturbed[0])


OWN_TEST = """
word_lists: {seas: [Baltic, Aegean, Caspian]}
word_classes: {name: [Baltic, Aegean, Caspian]}
tests:
  - {id: seas, title: Seas and flowers, X: seas, Y: flowers, A: pleasant_8, B: unpleasant_8, forms: [word, sent]}
"""


def test_test_files_in_another_order_give_the_same_rows(config_of, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(OWN_TEST)
    found = []
    models = config_of(tmp_path).models[1:]
    chosen = {"models": models, "tests": ["seas", "weat6"], "encodings": "word", "postprocessing": "center"}
    for name, sources in (("one", ["published", str(own)]), ("other", [str(own), "published"])):
        found.append(run_sweep(config_of(tmp_path / name, test_sources=sources, **chosen)))
    one, other = found
    assert [row.test for row in one] != [row.test for row in other]
    assert keyed(one) == keyed(other)
    assert lines_of_words(tmp_path / "one") == lines_of_words(tmp_path / "other")


def test_work_cut_smaller_gives_the_same_rows(undisturbed, config_of, copied, monkeypatch):
    monkeypatch.setattr(planning, "_UNIT_TARGETS", 1)
    n_units = len(list((copied / "rows").iterdir()))
    run_sweep(config_of(copied))
    assert len(list((copied / "rows").iterdir())) >= n_units + 2 * (3 + 3 + 4)
    same = ("results.parquet", "results.tsv")
    assert digests(copied, *same) == digests(undisturbed[0], *same)
    assert lines_of_words(copied) == lines_of_words(undisturbed[0])


def test_models_in_another_order_give_the_same_rows(undisturbed, config_of, copied):
    watching = Watching()
    rows = run_sweep(config_of(copied, models=config_of(copied).models[::-1]), progress=watching)
    assert watching.plan["rows"] == 0
    assert [row.model for row in rows] != [row.model for row in undisturbed[1]]
    assert keyed(rows) == keyed(undisturbed[1])


def test_a_test_measured_alone_differs_in_nothing_but_its_correction(undisturbed, config_of, copied):
    rows = run_sweep(config_of(copied, tests=["weat7"]))
    among = [row for row in undisturbed[1] if row.test == "weat7"]
    assert keyed(rows, decided=False) == keyed(among, decided=False)
    live = [row for row in rows if row.void_reason is None]
    assert {(row.family_size, row.family_size_word) for row in live} == {(len(live), 1)}


def test_another_seed_draws_anew_and_changes_no_exact_number(undisturbed, config_of, copied):
    before = keyed(undisturbed[1])
    after = keyed(run_sweep(config_of(copied, seed=1)))
    drawn = [key for key, row in before.items() if row.method_used == "importance"]
    exact = [key for key, row in before.items() if row.method_used == "exact"]
    assert drawn
    assert exact
    assert any(before[key].p_value != after[key].p_value for key in drawn)
    assert all(before[key].p_value == after[key].p_value for key in exact)
    assert all(before[key].effect_size == after[key].effect_size for key in before)
    assert any(before[key].interval_low != after[key].interval_low for key in exact)


POSTPROCESSINGS = ["none", "center", "standardize"]


@pytest.fixture(scope="module")
def postprocessed(undisturbed, config_of, tmp_path_factory):
    """A run on the same vectors, postprocessed in every way, with other options of scoring."""
    out = shutil.copytree(undisturbed[0], tmp_path_factory.mktemp("postprocessed") / "out")
    changes = {"method": "sampled", "alternative": "two-sided", "interval": "percentile", "resample": "all"}
    watching = Watching()
    rows = run_sweep(config_of(out, postprocessing=POSTPROCESSINGS, **changes), progress=watching)
    assert watching.plan == NOTHING | {"rows": 3 * len(undisturbed[1]), "tests": len(TESTS)}
    return out, rows


def test_every_postprocessing_gives_every_row(undisturbed, postprocessed):
    plain = [row.key for row in undisturbed[1]]
    expected = {key._replace(postprocessing=how) for key in plain for how in POSTPROCESSINGS}
    assert keyed(postprocessed[1]).keys() == expected
    assert all(row.alternative == "two-sided" for row in postprocessed[1])


def test_the_embedding_of_cls_is_void_after_every_postprocessing(postprocessed):
    _, rows = postprocessed
    void = [row for row in rows if row.void_reason is not None]
    assert {(r.model, r.pooling, r.layer) for r in void} == {("tiny-bert", "cls", 0)}
    reasons = {row.postprocessing: row.void_reason for row in void}
    assert reasons.keys() == set(POSTPROCESSINGS)
    assert reasons["none"].startswith("all targets have one association score")
    for how in ("center", "standardize"):
        assert reasons[how].startswith("nothing is left of ")
        assert f" after {how}: " in reasons[how]
    assert not any(row.p_value or row.p_value_word or row.decision or row.decision_word for row in void)
    cls_0 = [row for row in rows if (row.model, row.pooling, row.layer) == ("tiny-bert", "cls", 0)]
    assert len(cls_0) == len(void)


def test_options_of_scoring_are_followed(undisturbed, postprocessed):
    _, rows = postprocessed
    live = [row for row in rows if row.void_reason is None]
    n_partitions = {row.key: math.comb(row.n_x + row.n_y, row.n_x) for row in live}
    for row in live:
        drawn = n_partitions[row.key] > 100_000
        assert row.method_used == ("sampled" if drawn else "exact")
        assert row.p_floor == pytest.approx(2 / (100_000 if drawn else n_partitions[row.key]))
        assert row.p_floor <= row.p_value <= 1
        assert row.p_floor_word == pytest.approx(2 / math.comb(16, 8))
        assert row.p_floor_word <= row.p_value_word <= 1
    plain = keyed(undisturbed[1])
    unchanged = [row for row in live if row.postprocessing == "none"]
    of_options = {
        name for name in dataclasses.asdict(live[0]) if name.startswith(("p_", "log10", "method", "interval"))
    }
    of_options |= {"alternative"} | OVER_THE_RUN
    for row in unchanged:
        before, after = dataclasses.asdict(plain[row.key]), dataclasses.asdict(row)
        assert {name: after[name] for name in after.keys() - of_options} == {
            name: before[name] for name in before.keys() - of_options
        }
    assert any(row.interval_low != plain[row.key].interval_low for row in unchanged)
    exact = [row for row in unchanged if row.method_used == plain[row.key].method_used == "exact"]
    assert exact
    for row in exact:
        one_sided = plain[row.key]
        assert row.p_value == pytest.approx(min(1, 2 * min(one_sided.p_value, one_sided.p_less)), rel=1e-12)
    # Of unequal spread in its dimensions, a model is measured otherwise after each: the choice is not without effect.
    means = [row for row in live if (row.model, row.pooling, row.layer) == ("tiny-bert", "mean", 3)]
    sizes = {how: [row.effect_size for row in means if row.postprocessing == how] for how in POSTPROCESSINGS}
    assert sizes["none"] != sizes["center"] != sizes["standardize"]
    assert {row.family_size for row in live} == {len(live)}
    assert {row.family_size_word for row in live} == {len(TESTS)}


@pytest.mark.parametrize("how", ["center", "standardize"])
def test_a_postprocessed_row_equals_the_definition_computed_by_hand(postprocessed, tiny_model, how):
    """Plain transformers one text at a time; the population is every distinct text that a chosen test encodes so."""
    _, rows = postprocessed
    key = ("tiny-bert", "mean", 3, how, "sent", "weat6", "sent")
    row = next(r for r in rows if (r.model, r.pooling, r.layer, r.postprocessing, r.encoding, r.test, r.form) == key)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model("bert"))
    model = transformers.AutoModel.from_pretrained(tiny_model("bert")).eval()
    forms = [form for form in load_tests() if form.test_id in TESTS and "sent" in form.encodings]
    vectors = {}
    for text in {text for form in forms for role in "XYAB" for text in form.texts(role)}:
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vectors[text] = hidden.mean(dim=0).double().numpy()
    everyone = np.stack(list(vectors.values()))
    deviation = everyone.std(axis=0) if how == "standardize" else 1.0
    unit = {}
    for text, vector in vectors.items():
        centred = (vector - everyone.mean(axis=0)) / deviation
        unit[text] = centred / np.linalg.norm(centred)
    form = next(form for form in forms if (form.test_id, form.form) == ("weat6", "sent"))
    x, y, a, b = (np.stack([unit[text] for text in form.texts(role)]) for role in "XYAB")
    s_x, s_y = ((w @ a.T).mean(axis=1) - (w @ b.T).mean(axis=1) for w in (x, y))
    assert row.effect_size == pytest.approx((s_x.mean() - s_y.mean()) / np.std([*s_x, *s_y], ddof=1), abs=1e-4)
    assert row.statistic == pytest.approx(s_x.mean() - s_y.mean(), abs=1e-5)


def test_a_run_of_void_rows_alone_is_whole_and_decides_nothing(config_of, copied):
    bert = config_of(copied).models[0].model_copy(update={"pooling": ["cls"]})
    rows = run_sweep(config_of(copied, models=[bert], layers=[0], encodings=["word", "sent"]))
    assert len(rows) == 3 + 7
    assert all(row.void_reason and row.decision is None and row.decision_word is None for row in rows)
    assert pq.read_table(copied / "words.parquet").num_rows == 0
    assert (copied / "manifest.json").exists()


def test_sentences_whose_words_are_not_known_are_decided_as_published_alone(config_of, tmp_path):
    seat = [form for form in load_tests() if (form.test_id, form.form) == ("weat6", "sent")]
    export_tests(seat, tmp_path / "tests")
    models = config_of(tmp_path).models[1:]
    changes = {"test_sources": str(tmp_path / "tests"), "tests": "all", "encodings": "sent", "models": models}
    config = config_of(tmp_path / "out", **changes)
    live = [row for row in run_sweep(config) if row.void_reason is None]
    assert live
    assert {row.decision for row in live} <= {"reject", "retain"}
    assert {(row.p_value_word, row.n_words_x, row.decision_word, row.family_size_word) for row in live} == {(None,) * 4}
    assert pq.read_table(tmp_path / "out" / "words.parquet").num_rows == 0


def test_a_person_is_told_beforehand_which_tests_are_too_small(config_of, copied):
    for path in (copied / "rows").iterdir():
        path.unlink()
    watching = Watching()
    run_sweep(config_of(copied, alpha=1e-5), phase="score", progress=watching)
    by_word = [note for note in watching.notes if note.startswith("by word, never significant at 1e-05")]
    by_stimulus = [note for note in watching.notes if note.startswith("by stimulus, never significant at 1e-05")]
    assert len(by_word) == len(by_stimulus) == 1
    assert all(test in by_word[0] for test in TESTS)
    assert "weat6 word" in by_stimulus[0]
    assert "weat6 sent" not in by_stimulus[0]  # 64 and 64 sentences
    watching = Watching()
    run_sweep(config_of(copied, alpha=1e-5), progress=watching)
    assert watching.notes == []  # nothing is left to do that it could be said before


def test_encode_and_then_score_is_a_sweep(undisturbed, config_of, tmp_path):
    assert run_sweep(config_of(tmp_path), phase="encode") == []
    assert not (tmp_path / "results.tsv").exists()
    run_sweep(config_of(tmp_path), phase="score")
    assert digests(tmp_path, "**/*") == digests(undisturbed[0], "**/*")


def test_encoding_alone_scores_and_corrects_nothing(config_of, copied):
    for folder in ("rows", "words", "families"):
        shutil.rmtree(copied / folder)
    watching = Watching()
    assert run_sweep(config_of(copied), phase="encode", progress=watching) == []
    assert watching.plan == NOTHING
    assert not any((copied / folder).exists() for folder in ("rows", "words", "families"))


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
    assert not (tmp_path / "out" / "families").exists()  # a correction over some of the rows would be too mild
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
    own.write_text(OWN_TEST)
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
