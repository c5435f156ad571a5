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


@pytest.mark.slow
def test_the_speed_of_p_values_is_measured_and_they_agree_with_the_published_algorithm(repository):
    command = [sys.executable, "benchmarks/statistics.py", "--quick"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)
    print(done.stdout)  # noqa: T201 - the figures belong into the log
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("times faster") == 2
    assert done.stdout.count("they agree") == 2
    assert "memory of 1000 v 1000" in done.stdout


@pytest.mark.slow
def test_the_calibration_is_measured_and_levels_are_kept(repository):
    command = [sys.executable, "benchmarks/calibration.py", "--quick"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)
    print(done.stdout)  # noqa: T201 - the figures belong into the log
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| method | words | data sets | level | attainable |" in done.stdout
    assert "| word | 8 v 8 |" in done.stdout
    assert "| words | true d | data sets | BCa | percentile |" in done.stdout


def test_a_benchmark_called_statistics_hides_no_module_of_python(repository, tmp_path):
    script = tmp_path / "beside.py"
    script.write_text("from statistics import median\nprint(median([1, 2, 6]))\n")
    (tmp_path / "statistics.py").write_text((repository / "benchmarks" / "statistics.py").read_text())
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "2\n", done.stderr
