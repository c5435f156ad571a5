"""A Ray to work on: the cluster at an address, or one of our own for the length of a run."""

import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import AuthenticationError

from distseat.errors import ConfigError

__all__ = ["ray_session"]

_OBJECT_STORE_BYTES = 256 << 20  # units travel as arguments of kilobytes; nothing large goes through the store
_CONNECT_TIMEOUT_S = 10.0
_AUTH_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")


@contextmanager
def ray_session(address: str | None) -> Iterator[bool]:
    """Connect to the Ray at `address`, or start one on this machine and end it afterwards.

    A process that is connected to a Ray already stays with that one.

    A Ray of our own asks for a token that only its own temporary directory holds, sends no usage statistics, and leaves
    the user's Ray settings alone.

    Yields
    ------
    bool
        Whether the Ray is our own.

    Raises
    ------
    ConfigError
        No Ray answers at the address, or it asks for a token that is not set.
    """
    if ray.is_initialized():
        yield False
        return
    if address is None:
        with _own_ray():
            yield True
        return
    try:
        _require_listener(address)
        _init(address=address)
    except (AuthenticationError, OSError, RuntimeError, ValueError) as error:
        # Ray reports a missing token as a failed connection as often as by its own error: name the remedy for both.
        raise ConfigError(
            f"no Ray answers at {address} ({error}); start one or leave --address out, and if it asks for a token, set "
            f"{' and '.join(_AUTH_VARIABLES)} as on its nodes"
        ) from error
    try:
        yield False
    finally:
        ray.shutdown()


@contextmanager
def _own_ray() -> Iterator[None]:
    """A Ray in a directory of its own, which only this user can enter: Ray opens the one it is given to everybody."""
    place = tempfile.TemporaryDirectory(prefix="dst", dir=_short_directory(), ignore_cleanup_errors=True)
    with place as directory, _environment(directory):
        try:
            _init(include_dashboard=False, object_store_memory=_OBJECT_STORE_BYTES, _temp_dir=f"{directory}/r")
            yield
        finally:
            ray.shutdown()


def _init(**arguments: Any) -> None:
    """Start or join Ray, quietly, and keep the process's own way to end on SIGTERM, which Ray replaces."""
    before = signal.getsignal(signal.SIGTERM)
    ray.init(log_to_driver=False, logging_level=logging.ERROR, **arguments)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _require_listener(address: str) -> None:
    """Fail in seconds where nothing listens: Ray itself tries for many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "://" not in address:
        socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT_S).close()


def _short_directory() -> str | None:
    """Sockets have paths of at most 107 bytes: a long TMPDIR would break Ray's."""
    return "/tmp" if len(tempfile.gettempdir()) > len("/tmp") and Path("/tmp").is_dir() else None  # noqa: S108 - see above


@contextmanager
def _environment(directory: str) -> Iterator[None]:
    """Ray's variables for a Ray of our own; the user's are put back afterwards.

    RAY_AUTH_MODE is left unset: Ray then turns authentication on by itself, also in a process that imported ray before.
    """
    path = Path(directory) / "token"
    path.touch(mode=0o600)
    path.write_text(_process_token(), encoding="ascii")
    before = {name: os.environ.pop(name, None) for name in (*_AUTH_VARIABLES, "RAY_AUTH_TOKEN", "RAY_ADDRESS")}
    ours = {"RAY_AUTH_TOKEN_PATH": str(path), "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    before |= {name: os.environ.get(name) for name in ours if name not in before}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@cache
def _process_token() -> str:
    """One token a process: Ray reads it once and keeps it."""
    return secrets.token_hex(32)
