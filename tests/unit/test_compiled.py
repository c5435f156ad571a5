"""Compiled kernels: the machine code lies where only this user writes, is loaded again, and says what Python says."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numba.core import config

from distseat import __version__
from distseat.statistics import stepdown, subsets, tilting
from distseat.statistics.compiled import cache_directory, compiled

COUNT = """
import numpy as np
from distseat.statistics.subsets import count_at_least
print("counts", count_at_least(np.arange(12), 6, (30, 33, 36)))
"""
COUNTED = "counts [652, 491, 323]"
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory away")


@pytest.fixture(autouse=True)
def umask_of_a_group():
    before = os.umask(0o002)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home of its own, and no setting of numba's."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    config.reload_config()
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def content(directory: Path) -> dict[str, tuple[int, bytes]]:
    """All cached machine code with its time and bytes."""
    return {
        str(path.relative_to(directory)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*.nb*")
    }


def environment(home: Path, **settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    return {**kept, "HOME": str(home), "NUMBA_DEBUG_CACHE": "1", **settings}


def started(environ: dict[str, str], code: str = COUNT) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def output_of(process: subprocess.Popen) -> str:
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


# ---- where


def test_the_directory_lies_in_the_home_and_is_of_this_user_alone(home):
    directory = cache_directory()
    assert directory is not None
    assert directory.parent == home / ".cache" / "distseat"
    assert directory.name.startswith(f"{__version__}-")
    assert permissions(directory) == 0o700


def test_the_directory_is_the_same_when_asked_again(home):
    assert cache_directory() == cache_directory()


def test_xdg_cache_home_is_followed(home, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    directory = cache_directory()
    assert directory is not None
    assert directory.parent == tmp_path / "elsewhere" / "distseat"
    assert permissions(directory) == 0o700
    assert not (home / ".cache").exists()


def test_an_empty_xdg_cache_home_is_none(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    directory = cache_directory()
    assert directory is not None
    assert directory.is_relative_to(home)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o770, 0o777, 0o1777])
def test_a_directory_that_others_can_write_is_refused(home, mode):
    directory = cache_directory()
    assert directory is not None
    directory.chmod(mode)
    assert cache_directory() is None
    assert permissions(directory) == mode


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
def test_a_directory_that_others_can_read_is_taken(home, mode):
    directory = cache_directory()
    assert directory is not None
    directory.chmod(mode)
    assert cache_directory() == directory


@AS_ROOT
def test_a_directory_of_someone_else_is_refused(home):
    directory = cache_directory()
    assert directory is not None
    os.chown(directory, 12345, 12345)
    assert cache_directory() is None


def test_the_directories_above_are_written_by_this_user_alone(home):
    directory = cache_directory()
    assert directory is not None
    assert not permissions(directory.parent) & 0o022


def test_there_is_none_where_the_home_cannot_be_written(tmp_path, home, monkeypatch):
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert cache_directory() is None


def test_there_is_none_where_a_file_stands_in_its_place(home):
    (home / ".cache").mkdir()
    (home / ".cache" / "distseat").write_text("no directory")
    assert cache_directory() is None


@pytest.mark.skipif(os.getuid() == 0, reason="root writes anywhere")
def test_there_is_none_where_the_home_is_only_read(home):
    home.chmod(0o500)
    assert cache_directory() is None


def test_a_directory_set_for_numba_is_taken_as_it_is(home, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "set"))
    assert cache_directory() == tmp_path / "set"
    assert not (home / ".cache").exists()


# ---- what a kernel gives


def summed(numbers: np.ndarray) -> int:
    total = 0
    for number in numbers:
        total += number
    return total


def refused(numbers: np.ndarray) -> int:
    if len(numbers) > 2:
        raise ValueError("too many")
    return len(numbers)


def test_the_first_call_leaves_the_settings_of_others_alone(home, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "theirs"))
    assert compiled(summed)(np.arange(3)) == 3
    assert str(tmp_path / "theirs") == config.CACHE_DIR
    assert not (tmp_path / "theirs").exists()
    assert content(home)


def test_the_compiler_is_not_loaded_before_a_kernel_is_called(tmp_path):
    code = "import sys, distseat.statistics; print('loaded', sorted({'numba', 'llvmlite'} & set(sys.modules)))"
    assert output_of(started(environment(tmp_path), code)) == "loaded []\n"
    assert content(tmp_path) == {}


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_kernel_gives_what_the_function_gives(home, is_cached):
    if not is_cached:
        (home / ".cache").write_text("no directory")
    kernel = compiled(summed)
    assert kernel.__name__ == "summed"
    assert kernel(np.arange(10)) == kernel(np.arange(10)) == 45
    assert kernel(np.array([0.5, 0.25])) == 0.75
    assert bool(content(home)) == is_cached


def test_a_kernel_called_by_many_threads_at_once_gives_each_its_answer(home):
    kernel = compiled(summed)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: kernel(np.arange(n)), range(64)))
    assert found == [n * (n - 1) // 2 for n in range(64)]


def test_an_error_in_the_first_call_leaves_the_kernel_usable(home):
    kernel = compiled(refused)
    for _ in range(2):
        with pytest.raises(ValueError, match="too many"):
            kernel(np.arange(3))
    assert kernel(np.arange(2)) == 2


def test_kernels_of_the_statistics_give_what_their_python_gives():
    rng = np.random.default_rng(0)
    left, right = (np.sort(rng.integers(-9, 9, size=n)) for n in (12, 7))
    np.testing.assert_array_equal(subsets._merged(left, right, 3), subsets._merged.__wrapped__(left, right, 3))
    assert subsets._pairs_at_least(left, right, 2) == subsets._pairs_at_least.__wrapped__(left, right, 2)
    scores = np.sort(rng.normal(size=12))[::-1].copy()
    scores = (scores - scores.mean()) / scores.std()
    solved = tilting._solve(scores, 5.0, 3.0, np.log(5 / 7))
    np.testing.assert_allclose(solved, tilting._solve.__wrapped__(scores, 5.0, 3.0, np.log(5 / 7)), rtol=1e-9)
    inclusion_nk, log_normaliser = tilting._inclusion(np.exp(scores), 5)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected_nk, expected = tilting._inclusion.__wrapped__(np.exp(scores), 5)
    np.testing.assert_allclose(inclusion_nk, expected_nk, rtol=1e-12)
    assert log_normaliser == pytest.approx(expected, rel=1e-12)
    z_pv, order = rng.normal(size=(50, 4)), np.array([2, 0, 3, 1])
    counts = [np.zeros(4, dtype=np.int64) for _ in range(2)]
    for count, reached_v in zip((stepdown._count_maxima, stepdown._count_maxima.__wrapped__), counts, strict=True):
        count(z_pv, order, np.array([0.5, 0.1, 1.0, 0.2]), reached_v)
    np.testing.assert_array_equal(counts[0], counts[1])
    assert counts[0].min() > 0


# ---- from process to process


def test_a_second_process_loads_what_the_first_has_compiled(tmp_path):
    environ = environment(tmp_path)
    first = output_of(started(environ))
    made = content(tmp_path)
    second = output_of(started(environ))
    assert COUNTED in first
    assert COUNTED in second
    assert "data saved to" in first
    assert "data loaded from" in second
    assert "data saved to" not in second
    assert made
    assert content(tmp_path) == made
    assert {Path(name).parts[:2] for name in made} == {(".cache", "distseat")}


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [b"", b"no code at all", None])
def test_a_damaged_file_of_the_cache_is_made_anew(tmp_path, suffix, damage):
    environ = environment(tmp_path)
    output_of(started(environ))
    for path in tmp_path.rglob(f"*.{suffix}"):
        path.write_bytes(path.read_bytes()[:100] if damage is None else damage)
    assert COUNTED in output_of(started(environ))
    assert "data saved to" not in output_of(started(environ))


def test_a_numba_cache_dir_that_is_a_file_is_done_without(tmp_path):
    (tmp_path / "own").write_text("")
    assert COUNTED in output_of(started(environment(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "own"))))


def test_numba_cache_dir_is_where_a_process_compiles_to(tmp_path):
    home, own = tmp_path / "home", tmp_path / "own"
    home.mkdir()
    said = output_of(started(environment(home, NUMBA_CACHE_DIR=str(own))))
    assert COUNTED in said
    assert content(own)
    assert list(home.iterdir()) == []


def test_two_processes_at_once_give_the_right_answer_and_compile_once(tmp_path):
    both = [started(environment(tmp_path)) for _ in range(2)]
    said = [output_of(process) for process in both]
    assert all(COUNTED in text for text in said)
    saved = [text.count("data saved to") for text in said]
    assert sum(saved) == len([name for name in content(tmp_path) if name.endswith(".nbc")])


def test_a_process_without_a_cache_gives_the_right_answer(tmp_path):
    (tmp_path / "file").write_text("no directory")
    said = output_of(started(environment(tmp_path / "file")))
    assert COUNTED in said
    assert "[cache]" not in said


def test_a_process_does_not_read_code_from_a_directory_that_others_can_write(tmp_path):
    environ = environment(tmp_path)
    output_of(started(environ))
    directory = next(path for path in (tmp_path / ".cache" / "distseat").iterdir())
    directory.chmod(0o777)
    said = output_of(started(environ))
    assert COUNTED in said
    assert "data loaded from" not in said
