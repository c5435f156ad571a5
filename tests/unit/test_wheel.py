"""The wheel: what it holds, and that the tests load from it where no checkout is."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from distseat import __version__

NO_INDEX = re.compile(r"No matching distribution|Could not find a version|ConnectionError|name resolution|Retry\(")


@pytest.fixture(scope="module")
def wheel(repository, tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", directory, repository],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if built.returncode and (reason := NO_INDEX.search(built.stdout + built.stderr)):
        pytest.skip(f"the build's own environment needs a package index: {reason[0]}")
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = directory.iterdir()
    return path


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_is_pure_python_of_this_version(wheel):
    assert wheel.name == f"distseat-{__version__}-py3-none-any.whl"


def test_the_wheel_holds_the_package_and_its_metadata_and_nothing_beside(names):
    assert {name.split("/")[0] for name in names} == {"distseat", f"distseat-{__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_carries_every_published_test_file_inside_the_package(names, repository):
    carried = {name for name in names if name.startswith("distseat/data/")}
    files = [path.relative_to(repository) for path in (repository / "data" / "tests").rglob("*") if path.is_file()]
    assert carried == {f"distseat/{path.as_posix()}" for path in files}
    assert "distseat/data/tests/tests.yaml" in carried


def test_the_wheel_holds_every_module_of_the_package_and_its_type_marker(names, repository):
    modules = {path.relative_to(repository).as_posix() for path in (repository / "distseat").rglob("*.py")}
    assert modules == {name for name in names if name.endswith(".py")}
    assert "distseat/py.typed" in names


def test_the_wheel_names_its_command_and_holds_its_licence(wheel, names):
    info = f"distseat-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        assert "distseat = distseat.cli:main" in archive.read(f"{info}/entry_points.txt").decode()
    assert f"{info}/licenses/LICENSE" in names


def test_the_tests_load_from_an_installed_wheel_where_no_checkout_is(wheel, tmp_path):
    target = tmp_path / "site-packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run(install, capture_output=True, text=True, check=True, timeout=120)
    code = (
        "import distseat\n"
        "from distseat.definitions import published_directory\n"
        "from distseat.templates import load_tests\n"
        "print(distseat.__file__, published_directory(), len(load_tests()), sep='\\n')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    package, published, n_forms = ran.stdout.splitlines()
    assert Path(package) == (target / "distseat" / "__init__.py").resolve()
    assert Path(published) == (target / "distseat" / "data" / "tests").resolve()
    assert n_forms == "70"
