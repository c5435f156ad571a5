"""Commits are whole or absent, once, whatever races or dies; and what cannot be written says so at once."""

import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.errors import DistseatError, StorageError
from distseat.storage import commit_new, ensure_writable, list_files, local_path, publish, read_bytes

N_RACERS = 8
N_ROUNDS = 25
ENDLESS_COMMITS = """
import sys
from pathlib import Path
from distseat.storage import commit_new, publish
directory = Path(sys.argv[1])
for i in range(1_000_000):
    content = bytes([i % 256]) * 4_000_000
    commit_new(directory / f"{i:07}.part", content)
    publish(directory / "latest.part", content)
    print(i, flush=True)
"""
ONE_RACER = """
import sys
from pathlib import Path
from distseat.storage import commit_new
directory, racer, n_rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for i in range(n_rounds):
    print(commit_new(directory / f"{i}.part", bytes([racer]) * (100_000 + racer)))
"""


def temporaries(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.name.startswith(".tmp-")]


# ---- commits


def test_a_commit_makes_its_directories_and_holds_the_content(tmp_path):
    path = tmp_path / "a" / "b" / "part.parquet"
    assert commit_new(path, b"content") is True
    assert path.read_bytes() == read_bytes(path) == b"content"


def test_the_first_commit_of_a_file_is_kept_and_the_second_learns_that_it_lost(tmp_path):
    path = tmp_path / "part"
    assert commit_new(path, b"first") is True
    assert commit_new(path, b"second, and longer") is False
    assert commit_new(path, b"") is False
    assert path.read_bytes() == b"first"


def test_publishing_replaces_what_was_there(tmp_path):
    path = tmp_path / "deep" / "results.tsv"
    publish(path, b"a long first content")
    publish(path, b"second")
    assert path.read_bytes() == b"second"


@settings(deadline=None, max_examples=50)
@given(content=st.binary(max_size=300))
def test_content_comes_back_byte_for_byte(content, tmp_path_factory):
    directory = tmp_path_factory.mktemp("bytes")
    assert commit_new(directory / "committed", content)
    publish(directory / "published", content)
    assert read_bytes(directory / "committed") == read_bytes(directory / "published") == content


def test_nothing_temporary_stays_behind(tmp_path):
    commit_new(tmp_path / "part", b"1")
    commit_new(tmp_path / "part", b"2")
    publish(tmp_path / "part", b"3")
    ensure_writable(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_nothing_temporary_stays_behind_when_the_destination_cannot_be_replaced(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        publish(tmp_path / "taken", b"content")
    assert temporaries(tmp_path) == []


def test_a_file_that_is_not_there_has_no_content(tmp_path):
    assert read_bytes(tmp_path / "absent") is None
    assert read_bytes(tmp_path / "absent" / "deeper") is None


def test_what_cannot_be_read_is_told(tmp_path):
    with pytest.raises(StorageError, match=f"{tmp_path.name}: cannot be read"):
        read_bytes(tmp_path)


# ---- races


def racer_content(racer: int) -> bytes:
    return bytes([racer]) * (100_000 + racer)


def check_race(directory: Path, won: list[list[bool]]) -> None:
    for i in range(N_ROUNDS):
        winners = [racer for racer, rounds in enumerate(won) if rounds[i]]
        assert len(winners) == 1
        assert (directory / f"{i}.part").read_bytes() == racer_content(winners[0])
    assert temporaries(directory) == []


def test_of_many_racing_processes_exactly_one_commits_each_file(tmp_path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_RACER, str(tmp_path), str(racer), str(N_ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for racer in range(N_RACERS)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    told = [racer.communicate()[0].split() for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * N_RACERS
    check_race(tmp_path, [[word == "True" for word in words] for words in told])


def test_of_many_racing_threads_exactly_one_commits_each_file(tmp_path):
    start = threading.Barrier(N_RACERS)

    def race(racer: int) -> list[bool]:
        start.wait()
        return [commit_new(tmp_path / f"{i}.part", racer_content(racer)) for i in range(N_ROUNDS)]

    with ThreadPoolExecutor(N_RACERS) as pool:
        won = list(pool.map(race, range(N_RACERS)))
    check_race(tmp_path, won)


def test_a_reader_of_a_published_file_sees_only_whole_contents(tmp_path):
    path = tmp_path / "results"
    publish(path, racer_content(0))
    done = threading.Event()

    def write() -> None:
        for i in range(40):
            publish(path, racer_content(i % N_RACERS))
        done.set()

    whole = {racer_content(racer) for racer in range(N_RACERS)}
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        while not done.is_set() and not writer.done():
            assert read_bytes(path) in whole
        writer.result()


# ---- death in the middle


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_writer_leaves_only_whole_files_in_sight(tmp_path, seed):
    command = [sys.executable, "-c", ENDLESS_COMMITS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()  # the first commit is done: the rest of the time is spent in writing
        time.sleep(random.Random(seed).uniform(0.0, 0.12))  # noqa: S311 - a moment, not a secret
        writer.send_signal(signal.SIGKILL)
        told = 1 + len(writer.stdout.read().split())
    assert writer.returncode == -signal.SIGKILL
    seen = list_files(tmp_path, ".part")
    assert len(seen) >= told + 1  # each commit that was told, and the published file
    for path in seen:
        content = path.read_bytes()
        assert len(content) == 4_000_000
        assert content == content[:1] * 4_000_000
    for path in seen[:-1]:
        assert path.read_bytes()[0] == int(path.stem) % 256


# ---- lists


def test_files_are_listed_by_name_and_suffix(tmp_path):
    for name in ("b.parquet", "a.parquet", "c.tsv", "parquet"):
        commit_new(tmp_path / name, b"")
    assert [path.name for path in list_files(tmp_path, ".parquet")] == ["a.parquet", "b.parquet"]


def test_a_temporary_file_is_never_listed(tmp_path):
    commit_new(tmp_path / "a.parquet", b"")
    for name in (".tmp-0123456789abcdef", ".tmp-0123456789abcdef.parquet"):
        (tmp_path / name).write_bytes(b"half of")
    assert [path.name for path in list_files(tmp_path, ".parquet")] == ["a.parquet"]
    assert [path.name for path in list_files(tmp_path, "")] == ["a.parquet"]


def test_a_directory_that_is_not_there_has_no_files(tmp_path):
    assert list_files(tmp_path / "absent", ".parquet") == []


def test_a_file_cannot_be_listed(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file: cannot be listed"):
        list_files(tmp_path / "file", ".parquet")


# ---- places


def test_a_writable_directory_is_made_and_left_empty(tmp_path):
    ensure_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


@pytest.mark.parametrize("below", ["file", "file/out", "file/out/deeper"])
def test_a_directory_below_a_file_is_refused_with_what_to_do(tmp_path, below):
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(StorageError, match=r"cannot be written \(.+\); choose a directory that you may write to"):
        ensure_writable(tmp_path / below)
    with pytest.raises(StorageError, match="choose a directory that you may write to"):
        commit_new(tmp_path / below / "part", b"content")
    assert (tmp_path / "file").read_bytes() == b"mine"


@pytest.mark.parametrize("location", ["s3://bucket/sweep", "gs://bucket/sweep", "https://host/sweep"])
def test_the_address_of_a_bucket_is_refused_with_what_to_do(location):
    scheme = location.split(":")[0]
    expected = f"^{location}: {scheme}:// is not supported yet; give a path that all machines share$"
    with pytest.raises(StorageError, match=expected):
        local_path(location)


@pytest.mark.parametrize("location", ["out", "./out", "../a:b/out", "out/s3:/x"])
def test_a_path_is_a_path(location):
    assert local_path(location) == Path(location)


def test_the_error_is_also_an_os_error():
    assert issubclass(StorageError, OSError)
    assert issubclass(StorageError, DistseatError)
