"""Compiled kernels: numba's machine code, kept on disk where only this user can write.

A cache of machine code is code: it is read from a directory that nobody else can write to, or not at all. The first
process of a machine compiles, the others wait for it and load what it made.
"""

import functools
import os
import pickle
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from filelock import FileLock

from distseat import __version__

__all__ = ["cache_directory", "compiled"]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# What reading a damaged file of the cache may raise:
_DAMAGED: Final = (pickle.PickleError, EOFError, ValueError, TypeError, LookupError, AttributeError, ImportError)


def compiled(function: Kernel) -> Kernel:
    """Compile a function of arrays and numbers at its first call, or load it from the cache.

    Until then the compiler itself is not loaded either: most commands need none.
    """
    kernel: Any = None

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        nonlocal kernel
        if kernel is not None:
            return kernel(*arguments)
        directory = cache_directory()
        with _only_one(directory):
            kernel, result = _first_call(function, directory, arguments)
        return result

    return call  # type: ignore[return-value]  # it takes and gives what the function does


def cache_directory() -> Path | None:
    """Where machine code is kept: NUMBA_CACHE_DIR, or a directory of this user, version and processor.

    None where no such directory can be made, or where others could write to it.
    """
    from llvmlite import binding  # noqa: PLC0415 - see `compiled`

    try:
        if chosen := os.environ.get("NUMBA_CACHE_DIR"):
            directory = Path(chosen)
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME", ""))
            base = base if base.is_absolute() else Path.home() / ".cache"
            directory = base / "distseat" / f"{__version__}-{binding.get_host_cpu_name()}"
            base.mkdir(parents=True, exist_ok=True)
            for part in (directory.parent, directory):
                part.mkdir(mode=0o700, exist_ok=True)
        found = directory.stat()
    except (OSError, RuntimeError):  # no home, or none that can be written
        return None
    is_own = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o022
    return directory if is_own and os.access(directory, os.W_OK) else None


def _first_call(function: Callable[..., Any], directory: Path | None, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """The kernel, loaded or compiled, and its first result; what a killed process left of a cache is thrown away."""
    kernel = _declared(function, directory)
    try:
        return kernel, kernel(*arguments)
    except _DAMAGED:
        if directory is None:
            raise
    for path in directory.rglob(f"*.{function.__name__}-*.nb[ic]"):
        path.unlink(missing_ok=True)
    kernel = _declared(function, directory)
    return kernel, kernel(*arguments)


def _declared(function: Callable[..., Any], directory: Path | None) -> Any:
    """The function as a kernel of numba, whose cache is set for as long as this one is declared: others keep theirs."""
    import numba  # noqa: PLC0415 - see `compiled`
    from numba.core import config  # noqa: PLC0415 - likewise

    settings: Any = config  # made at run time, so that no type is known
    before = settings.CACHE_DIR
    settings.CACHE_DIR = "" if directory is None else str(directory)
    try:
        return numba.njit(cache=directory is not None, nogil=True)(function)
    finally:
        settings.CACHE_DIR = before


@contextmanager
def _only_one(directory: Path | None) -> Iterator[None]:
    if directory is None:
        yield
        return
    with FileLock(directory / "compiling.lock"):
        yield
