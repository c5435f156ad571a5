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


def test_a_sweep_ends_with_a_table_and_says_where_the_results_are(undisturbed):
    out, done = undisturbed
    assert done.returncode == 0, done.stderr
    assert re.search(r"tiny-bert [0-9a-f]{8} mean layer 3", done.stdout)
    assert "C6: M/F Names, Career/Family" in done.stdout
    assert "that none is shown does not mean that there is none" in done.stdout
    assert f"results: {out}/results.tsv" in done.stdout
    assert "to do: 533 stimuli with 1 models" in done.stderr, done.stderr


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
    out = tmp_path / "out"
    command = [DISTSEAT, "sweep", str(config), "--out", str(out)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for_parts(out, process)
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
    assert run("sweep", config, "--out", out, cwd=tmp_path).returncode == 0
    assert committed(out) == committed(undisturbed[0])


def wait_for_parts(out: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not list(out.rglob("store/*/*/*.parquet")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)


def test_sigterm_ends_as_cleanly_as_ctrl_c(config, tmp_path):
    command = [DISTSEAT, "sweep", str(config), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for_parts(tmp_path / "out", process)
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
        family = [process, *psutil.Process(process.pid).children(recursive=True)]
        for member in family:  # the whole machine, as it were
            member.kill()
    kept = committed(out)
    assert run("sweep", config, "--out", out, cwd=tmp_path).returncode == 0
    assert committed(out) == committed(undisturbed[0])
    parts = {name: digest for name, digest in kept.items() if name.endswith(".parquet")}
    assert parts.items() <= committed(out).items()


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
