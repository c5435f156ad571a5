"""`ray job submit` of the jobs to a real Ray head with its job server and token authentication."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

RAY = str(Path(sys.executable).with_name("ray"))

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a client of a running head, with everything of Ray's in a temporary directory."""
    directory = tmp_path_factory.mktemp("ray")
    (directory / "token").write_text("0123456789abcdef" * 4)
    (directory / "token").chmod(0o600)
    dashboard = free_port()
    temporary = Path("/tmp") / f"dst{os.getpid()}"  # noqa: S108 - Ray's sockets need a short path
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # a job runs the `python` of its head
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(directory / "token"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{dashboard}",
    }
    start = [RAY, "start", "--head", "--port", str(free_port()), "--dashboard-port", str(dashboard), "--num-cpus", "2"]
    process = subprocess.Popen(
        [*start, "--temp-dir", str(temporary), "--include-dashboard", "true", "--block"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for line in process.stdout or ():
        if "Ray runtime started" in line:
            break
    yield environment
    process.terminate()
    process.communicate(timeout=60)
    shutil.rmtree(temporary, ignore_errors=True)


def submit(head: dict[str, str], working_dir: Path, *command: str) -> subprocess.CompletedProcess[str]:
    job = [RAY, "job", "submit", "--working-dir", str(working_dir), "--", "python", *command]
    return subprocess.run(job, env=head, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def checkout(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user has: the files that git knows, as working_dir."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in ("distseat", "jobs", "data", "examples"):
        shutil.copytree(repository / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def committed(out: Path) -> dict[str, bytes]:
    files = sorted(path for path in out.rglob("*") if path.is_file() and not path.name.startswith(".tmp-"))
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def test_a_submitted_sweep_gives_the_bytes_of_a_local_one(head, checkout, tiny_model, tmp_path):
    model = {"name": "tiny-bert", "source": str(tiny_model("bert")), "pooling": "mean"}
    config = {"models": [model], "tests": ["weat6"], "device": "cpu"}
    (checkout / "sweep.json").write_text(json.dumps(config))
    done = submit(head, checkout, "jobs/sweep.py", "sweep.json", "--out", str(tmp_path / "submitted"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"tiny-bert [0-9a-f]{8} mean layer 3", done.stdout)
    local = [str(Path(sys.executable).with_name("distseat")), "sweep", "sweep.json", "--out", str(tmp_path / "local")]
    subprocess.run(local, cwd=checkout, check=True, capture_output=True, timeout=300)
    submitted, here = (committed(tmp_path / name) for name in ("submitted", "local"))
    assert submitted == here
    folders = {name.split("/")[0] for name in here}
    assert {"store", "rows", "words", "families", "results.parquet", "results.tsv", "words.parquet"} < folders


def test_the_halves_are_jobs_too(head, checkout, tiny_model, tmp_path):
    model = {"name": "tiny-gpt2", "source": str(tiny_model("gpt2")), "pooling": "last"}
    (checkout / "halves.json").write_text(json.dumps({"models": [model], "tests": ["weat6"], "device": "cpu"}))
    out = str(tmp_path / "out")
    encoded = submit(head, checkout, "jobs/encode.py", "halves.json", "--out", out)
    assert encoded.returncode == 0, encoded.stdout + encoded.stderr
    assert {name.split("/")[0] for name in committed(tmp_path / "out")} == {"store", "plan"}
    scored = submit(head, checkout, "jobs/score.py", "halves.json", "--out", out)
    assert scored.returncode == 0, scored.stdout + scored.stderr
    made = {name.split("/")[0] for name in committed(tmp_path / "out")} - {"store", "plan"}
    published = {"results.parquet", "results.tsv", "words.parquet", "manifest.json"}
    assert made == {"rows", "words", "families"} | published


def test_a_users_mistake_fails_the_job_with_its_message(head, checkout, tmp_path):
    (checkout / "wrong.json").write_text(json.dumps({"models": ["bert-base-case"], "device": "cpu"}))
    done = submit(head, checkout, "jobs/sweep.py", "wrong.json", "--out", str(tmp_path / "out"))
    assert done.returncode == 1  # Ray's command line has no other code for a failed driver
    assert "did you mean 'bert-base-cased'" in done.stdout + done.stderr
    assert "exit code 2" in done.stdout + done.stderr


def test_a_client_without_the_token_is_told_which_variables_it_needs(head, checkout, tmp_path):
    """A driver that joins the running head from outside a job, without the token's variables."""
    (checkout / "outside.json").write_text(
        json.dumps({"models": ["all-MiniLM-L6-v2"], "tests": ["weat6"], "device": "cpu"})
    )
    bare = {k: v for k, v in head.items() if not k.startswith("RAY_AUTH")} | {"HOME": str(tmp_path)}
    command = [str(Path(sys.executable).with_name("distseat")), "sweep", "outside.json", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*command, "--address", "auto"],
        cwd=checkout,
        env=bare,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH" in done.stderr
