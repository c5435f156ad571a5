"""Every byte that is listed, read or committed.

A committed file is whole or absent. Its bytes are complete in memory, written beside the destination, flushed to the
disk and then linked into place: a link appears at once and never replaces another, so of two attempts at one file the
first is kept and the second learns that it lost.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distseat.errors import StorageError

__all__ = ["commit_new", "ensure_writable", "list_files", "local_path", "publish", "read_bytes", "read_tail"]

_TEMPORARY = ".tmp-"


def local_path(location: str) -> Path:
    """Path of a location; a bucket's address is refused with a word on what to do."""
    scheme, separator, _ = location.partition("://")
    if separator:
        raise StorageError(f"{location}: {scheme}:// is not supported yet; give a path that all machines share")
    return Path(location)


def read_bytes(path: Path) -> bytes | None:
    """Content of a file, or None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror})") from error


def read_tail(path: Path, n_bytes: int) -> bytes | None:
    """The last bytes of a file, fewer where it is shorter, or None where there is none."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - n_bytes))
            return stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror})") from error


def list_files(directory: Path, suffix: str) -> list[Path]:
    """Committed files of a directory, by name; none where the directory does not exist."""
    try:
        names = sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"{directory}: cannot be listed ({error.strerror})") from error
    return [directory / name for name in names if name.endswith(suffix) and not name.startswith(_TEMPORARY)]


def commit_new(path: Path, content: bytes) -> bool:
    """Commit a file that must not exist; whether this attempt won.

    Returns
    -------
    bool
        False where the file is there already: another attempt's, which is kept.
    """
    with _written_beside(path, content) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
    return True


def publish(path: Path, content: bytes) -> None:
    """Put a file in place of whatever was there, at once: a reader sees the old content or the new, both whole."""
    with _written_beside(path, content) as temporary:
        temporary.replace(path)


def ensure_writable(directory: Path) -> None:
    """Fail now, with the reason, and not after hours of work.

    Raises
    ------
    StorageError
        The directory cannot be made or written to.
    """
    with _written_beside(directory / "probe", b""):
        pass


@contextmanager
def _written_beside(path: Path, content: bytes) -> Iterator[Path]:
    temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        yield temporary
        _sync_directory(path.parent)
    except OSError as error:
        raise StorageError(
            f"{path.parent}: cannot be written ({error.strerror or error}); choose a directory that you may write to, "
            "on a disk with room"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
