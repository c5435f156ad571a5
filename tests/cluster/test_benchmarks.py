"""The benchmarks run, and the ways that they compare agree; how fast they are is printed and not asserted."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_every_way_of_encoding_gives_the_same_vectors(repository):
    command = [sys.executable, "benchmarks/encode.py", "--rounds", "1"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)
    print(done.stdout)  # noqa: T201 - the figures belong into the log
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same vectors" in done.stdout
    assert "floor / d" in done.stdout


@pytest.mark.slow
def test_the_quickstart_is_measured(repository):
    command = [sys.executable, "benchmarks/quickstart.py"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)
    print(done.stdout)  # noqa: T201 - the figures belong into the log
    assert done.returncode == 0, done.stdout + done.stderr
    assert "second run" in done.stdout
