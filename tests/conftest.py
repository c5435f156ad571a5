"""Shared by all tests: tiny real models in the published file layouts, the published tests, one local Ray."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from distseat.definitions import Stimulus, TestForm
from distseat.templates import load_tests

settings.register_profile("distseat", deadline=None)  # a busy machine is no fault
settings.load_profile("distseat")


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def published() -> list[TestForm]:
    return load_tests()


@pytest.fixture(scope="session")
def published_stimuli(published: list[TestForm]) -> list[Stimulus]:
    """Each distinct published stimulus once, in the order that units are cut in."""
    distinct = {s.key: s for form in published for stimuli in form.stimuli.values() for s in stimuli}
    return sorted(distinct.values(), key=lambda s: (len(s.text), s.text, s.start))


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory, published_stimuli: list[Stimulus]) -> Callable[[str], Path]:
    """Directory of a tiny model of a family, made on first use: real files, random weights."""
    from tiny_models import BUILDERS

    root = tmp_path_factory.mktemp("models")
    texts = [s.text for s in published_stimuli]

    def build(family: str) -> Path:
        directory = root / family
        if not directory.exists():
            BUILDERS[family](directory, texts)
        return directory

    return build


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """One Ray for all tests that work in this process; run_sweep stays with it."""
    from distseat.actors.runtime import ray_session

    with ray_session(None):
        yield


@pytest.fixture
def write_config(tmp_path: Path) -> Callable[..., Path]:
    """Write a configuration file (JSON is YAML) for a CPU sweep into tmp_path and return its path."""

    def write(name: str = "config.yaml", **content: object) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"device": "cpu", **content}))
        return path

    return write
