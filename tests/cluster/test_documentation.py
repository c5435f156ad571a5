"""Every command of the README and of docs/ runs, in their order, from the quickstart's results on."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

from distseat.config import ModelEntry, SweepConfig
from distseat.stores.results import ResultRow

PAGES = ("README.md", "docs/methods.md", "docs/formats.md", "docs/cluster.md", "docs/replication.md", "docs/design.md")


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def workplace(repository, tmp_path_factory):
    """A directory that looks like a checkout, in which the quickstart has run."""
    directory = tmp_path_factory.mktemp("checkout")
    shutil.copytree(repository / "examples", directory / "examples")
    done = command(directory, "distseat sweep examples/quickstart.yaml")
    assert done.returncode == 0, done.stderr
    return directory


def command(cwd: Path, line: str) -> subprocess.CompletedProcess[str]:
    name, *arguments = shlex.split(line)
    path = Path(sys.executable).with_name(name)
    return subprocess.run([path, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def test_every_shell_command_of_the_docs_runs(workplace, repository):
    lines = [line for page in PAGES for block in blocks(repository / page, "sh") for line in block.splitlines() if line]
    assert len(lines) >= 10
    makefile = (repository / "Makefile").read_text()
    for line in lines:
        if line.startswith("make "):  # this very test runs under `make test`; `make quickstart` is the sweep above
            assert re.search(rf"^{line.split()[1]}:", makefile, flags=re.MULTILINE), line
        elif line.startswith("ray job submit"):  # tests/cluster/test_jobs.py submits the same jobs
            assert (repository / re.search(r"python (jobs/\w+\.py)", line).group(1)).is_file(), line
        else:
            assert line.startswith("distseat "), line
            done = command(workplace, line)
            assert done.returncode == 0, (line, done.stderr)


def python(cwd: Path, code: str) -> str:
    environment = os.environ | {"POLARS_FMT_MAX_COLS": "20"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 0, (code, done.stderr)
    return done.stdout


@pytest.mark.parametrize("position", range(4))
def test_the_examples_of_reading_results_run(workplace, repository, position):
    shown = python(workplace, blocks(repository / "docs/formats.md", "python")[position])
    assert "effect_size" in shown or "gender" in shown or "c-word" in shown


@pytest.mark.parametrize(
    ("page", "position", "expected"),
    [
        ("README.md", 0, "effect_size="),
        ("docs/methods.md", 0, "exact"),
        ("docs/methods.md", 1, "of words"),
        ("docs/methods.md", 2, "[ True  True False]"),
    ],
)
def test_the_examples_on_arrays_run(tmp_path, repository, page, position, expected):
    assert expected in python(tmp_path, blocks(repository / page, "python")[position])


def test_the_docs_name_every_column_of_the_results(repository):
    text = (repository / "docs/formats.md").read_text()
    for name in ResultRow.__dataclass_fields__:
        assert re.search(rf"\b{name}\b", text), name


def test_the_docs_name_every_key_of_a_configuration_with_its_values(repository):
    text = (repository / "docs/formats.md").read_text()
    for name, field in [*SweepConfig.model_fields.items(), *ModelEntry.model_fields.items()]:
        row = re.search(rf"^\| {name} \|.*$", text, flags=re.MULTILINE)
        assert row, name
        for value in get_args(field.annotation):
            assert not isinstance(value, str) or value in row.group(), (name, value)


def test_the_quickstart_has_every_row_and_the_picture_shows_it(workplace, repository):
    table = pq.read_table(workplace / "out/quickstart/results.parquet")
    assert table.num_rows == 3 * 104
    assert table["void_reason"].null_count == table.num_rows
    picture = (repository / "docs/images/quickstart.svg").read_text()
    row = next(
        r
        for r in table.to_pylist()
        if (r["test"], r["encoding"], r["layer"], r["form"]) == ("weat6", "sent", 6, "sent")
    )
    assert f"{row['effect_size']:+.2f}" in picture


def test_links_between_pages_lead_somewhere(repository):
    for page in [repository / "README.md", *(repository / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)
