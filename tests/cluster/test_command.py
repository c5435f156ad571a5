"""The command as a user runs it: its exit codes and messages, Ctrl-C, a killed driver, a second run."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

DISTSEAT = str(Path(sys.executable).with_name("distseat"))
TESTS = ["weat6", "weat_hdb_likable"]
MANY_WORDS = [
    "weat3",
    "weat+12",
    "weat_r_hdb_competent",
    "weat_r_hdb_likable",
]  # on drawn partitions: seconds


def run(*arguments: object, cwd: Path, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    command = [DISTSEAT, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)


def committed(out: Path) -> dict[str, str]:
    files = sorted(path for path in out.rglob("*") if path.is_file() and not path.name.startswith(".tmp-"))
    return {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def config(tiny_model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("config") / "sweep.yaml"
    model = {"name": "tiny-bert", "source": str(tiny_model("bert")), "pooling": "mean"}
    path.write_text(json.dumps({"models": [model], "tests": TESTS, "layers": "all", "device": "cpu"}))
    return path


@pytest.fixture(scope="module")
def undisturbed(config, tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    directory = tmp_path_factory.mktemp("undisturbed")
    return directory / "out", run("sweep", config, "--out", "out", cwd=directory)


@pytest.fixture(scope="module")
def of_many_words(config, tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A configuration whose corrections take longest, and what a whole run of it commits."""
    directory = tmp_path_factory.mktemp("many_words")
    changed = with_changes(config, directory, tests=MANY_WORDS, encodings="word")
    done = run("sweep", changed, "--out", "out", cwd=directory)
    assert done.returncode == 0, done.stderr
    return changed, committed(directory / "out")


def test_a_sweep_ends_with_a_table_and_says_where_the_results_are(undisturbed):
    out, done = undisturbed
    assert done.returncode == 0, done.stderr
    assert re.search(r"tiny-bert [0-9a-f]{8} mean layer 3", done.stdout)
    assert "C6: M/F Names, Career/Family" in done.stdout
    assert "that none is shown does not mean that there is none" in done.stdout
    assert f"results: {out}/results.tsv" in done.stdout
    assert "to do: 533 stimuli with 1 models" in done.stderr, done.stderr
    assert "2 of 2 tests" in done.stderr
    assert re.search(r"significant: \d+ of \d+ rows by stimulus, \d+ of \d+ by word", done.stdout)
    assert {"results.parquet", "results.tsv", "words.parquet", "manifest.json"} < committed(out).keys()


def test_a_damaged_family_is_told_and_not_counted(undisturbed, config, tmp_path):
    out = shutil.copytree(undisturbed[0], tmp_path / "out")
    damaged = min((out / "families").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-10])
    before = committed(out)
    done = run("sweep", config, "--out", out, cwd=tmp_path)
    assert done.returncode == 2
    assert f"families/{damaged.name}: cannot be read" in done.stderr
    assert "delete it and run again" in done.stderr
    assert "Traceback" not in done.stderr
    assert committed(out) == before
    damaged.unlink()
    assert run("sweep", config, "--out", out, cwd=tmp_path).returncode == 0
    assert committed(out) == committed(undisturbed[0])


def test_words_that_cannot_be_read_leave_the_run_not_whole(undisturbed, config, tmp_path):
    out = shutil.copytree(undisturbed[0], tmp_path / "out")
    damaged = min((out / "words").iterdir())
    damaged.write_bytes(b"")
    shutil.rmtree(out / "families")
    done = run("sweep", config, "--out", out, cwd=tmp_path)
    assert done.returncode == 3
    assert "the run is not whole: 2 units failed" in done.stderr
    assert f"words/{damaged.name}: cannot be read" in done.stderr
    assert "delete it and run again" in done.stderr
    assert "Traceback" not in done.stderr


def test_postprocessing_and_options_of_scoring_reach_the_table(undisturbed, config, tmp_path):
    out = shutil.copytree(undisturbed[0], tmp_path / "out")
    changes = {"postprocessing": ["none", "standardize"], "method": "sampled", "alternative": "two-sided"}
    done = run("score", with_changes(config, tmp_path, **changes), "--out", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"tiny-bert [0-9a-f]{8} mean layer 3 *\n", done.stdout)
    assert re.search(r"tiny-bert [0-9a-f]{8} mean layer 3 standardize *\n", done.stdout)
    table = pq.read_table(out / "results.parquet")
    assert table.num_rows == 2 * pq.read_metadata(undisturbed[0] / "results.parquet").num_rows
    assert set(table["postprocessing"].to_pylist()) == {"none", "standardize"}
    assert set(table["method_used"].to_pylist()) <= {"sampled", "exact", None}
    assert set(table["alternative"].to_pylist()) == {"two-sided"}


def test_ray_leaves_nothing_in_the_users_home_and_no_process(undisturbed, config, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    command = [DISTSEAT, "sweep", str(config), "--out", str(tmp_path / "out")]
    environment = os.environ | {"HOME": str(home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        family = watch_family(process)
    assert process.returncode == 0
    assert not (home / ".ray").exists()
    assert gone(family)


def watch_family(process: subprocess.Popen[bytes]) -> set[psutil.Process]:
    """Every process that a running command starts, until it ends."""
    family: set[psutil.Process] = set()
    while process.poll() is None:
        try:
            family |= set(psutil.Process(process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            break
        time.sleep(0.2)
    return family


def gone(family: set[psutil.Process], *, within_s: float = 20) -> bool:
    _, alive = psutil.wait_procs(family, timeout=within_s)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(("seed", "to_group"), [(0, True), (1, False), (2, True)])
def test_ctrl_c_ends_cleanly_keeps_whole_parts_and_the_next_run_goes_on(undisturbed, config, tmp_path, seed, to_group):
    """A terminal sends Ctrl-C to the whole group of processes; `kill -INT` to one."""
    interrupt(config, tmp_path / "out", "store/*/*/*.parquet", seed=seed, to_group=to_group)
    assert run("sweep", config, "--out", "out", cwd=tmp_path).returncode == 0
    assert committed(tmp_path / "out") == committed(undisturbed[0])


@pytest.mark.parametrize(("seed", "to_group"), [(3, True), (4, False)])
def test_ctrl_c_while_tests_are_corrected_does_the_same(of_many_words, tmp_path, seed, to_group):
    config, whole = of_many_words
    interrupt(config, tmp_path / "out", "rows/*.parquet", seed=seed, to_group=to_group)
    assert not (tmp_path / "out" / "results.tsv").exists()
    assert run("sweep", config, "--out", "out", cwd=tmp_path).returncode == 0
    assert committed(tmp_path / "out") == whole


def interrupt(config: Path, out: Path, after: str, *, seed: int, to_group: bool) -> None:
    """Send SIGINT at most a second after a file is committed, and see the command end as it should."""
    command = [DISTSEAT, "sweep", str(config), "--out", str(out)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(out, after, process)
        time.sleep(random.Random(seed).uniform(0, 1.0))  # noqa: S311 - a seeded moment
        family = set(psutil.Process(process.pid).children(recursive=True))
        if to_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"the same command goes on from there" in told
    assert b"Traceback" not in told
    assert gone(family)
    for part in (path for path in out.rglob("*.parquet")):
        pq.read_table(part, page_checksum_verification=True)


def wait_for(out: Path, pattern: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not list(out.glob(pattern)) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)


def test_sigterm_ends_as_cleanly_as_ctrl_c(config, tmp_path):
    command = [DISTSEAT, "sweep", str(config), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(tmp_path / "out", "store/*/*/*.parquet", process)
        process.terminate()
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in told


@pytest.mark.parametrize("seed", range(2))
def test_a_driver_killed_at_a_random_moment_is_resumed_to_the_same_bytes(undisturbed, config, tmp_path, seed):
    out = tmp_path / "out"
    command = [DISTSEAT, "sweep", str(config), "--out", str(out)]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(random.Random(seed).uniform(1, 12))  # noqa: S311 - a seeded moment
        kill_all(process)
    resume(config, out, committed(undisturbed[0]))


@pytest.mark.parametrize(("seed", "after"), [(2, "rows/*.parquet"), (3, "families/*.parquet")])
def test_a_driver_killed_while_tests_are_corrected_is_resumed_to_the_same_bytes(of_many_words, tmp_path, seed, after):
    config, whole = of_many_words
    out = tmp_path / "out"
    command = [DISTSEAT, "sweep", str(config), "--out", str(out)]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(out, after, process)
        time.sleep(random.Random(seed).uniform(0, 0.2))  # noqa: S311 - a seeded moment
        kill_all(process)
    assert list(out.glob(after))
    assert len(list(out.glob("families/*.parquet"))) < len(MANY_WORDS)
    resume(config, out, whole)


def test_two_runs_at_once_into_one_directory_give_the_bytes_of_one(of_many_words, tmp_path):
    config, whole = of_many_words
    command = [DISTSEAT, "sweep", str(config), "--out", str(tmp_path / "out")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as one, subprocess.Popen(command, **quiet) as other:
        assert (one.wait(timeout=240), other.wait(timeout=240)) == (0, 0)
    assert committed(tmp_path / "out") == whole


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """The whole machine, as it were."""
    for member in [process, *psutil.Process(process.pid).children(recursive=True)]:
        member.kill()


def resume(config: Path, out: Path, whole: dict[str, str]) -> None:
    """Run again, and see that nothing of what was committed is made again or differs."""
    kept = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet") if not path.name.startswith(".tmp-")}
    done = run("sweep", config, "--out", out, cwd=out.parent)
    assert done.returncode == 0, done.stderr
    assert committed(out) == whole
    published = {out / "results.parquet", out / "words.parquet"}
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in kept.items() if path not in published)


def with_changes(config: Path, tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "changed.yaml"
    path.write_text(json.dumps(json.loads(config.read_text()) | changes))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": ["bert-bas-cased"]}, "did you mean 'bert-base-cased'"),
        ({"layers": [99]}, "has no layer 99; its 4 hidden states are 0 (embeddings) to 3"),
        ({"tests": ["weat66"]}, "no test has the id 'weat66'; did you mean"),
        ({"modles": []}, "modles: no such key is known here; did you mean 'models'"),
        ({"test_sources": ["nowhere.yaml"]}, "nowhere.yaml: cannot be read"),
    ],
)
def test_a_users_mistake_is_told_at_once_with_exit_code_2(config, tmp_path, changes, message):
    done = run("sweep", with_changes(config, tmp_path, **changes), "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unwritable_directory_is_told_before_any_work(config, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("sweep", config, "--out", tmp_path / "file" / "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_a_store_of_another_version_is_told(undisturbed, config, tmp_path):
    shutil.copytree(undisturbed[0] / "store", tmp_path / "store")
    (tmp_path / "store" / "store.json").write_text('{"format_version": 99}')
    done = run("sweep", config, "--out", tmp_path / "out", "--store", tmp_path / "store", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a store of format 99" in done.stderr


def test_a_run_that_is_not_whole_has_exit_code_3(config, tiny_model, tmp_path):
    broken = shutil.copytree(tiny_model("bert"), tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"not safetensors")
    models = [{"name": "broken", "source": str(broken), "pooling": "mean"}]
    done = run("sweep", with_changes(config, tmp_path, models=models), "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 3
    assert "the run is not whole: 1 units failed" in done.stderr
    assert "model broken: ModelError" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_ray_at_an_address_is_told(config, tmp_path):
    done = run("sweep", config, "--out", tmp_path / "out", "--address", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 2
    assert "no Ray answers at 127.0.0.1:1" in done.stderr
