"""Where tests come from: the published ones, YAML files of one's own, directories of the published JSON format."""

from collections.abc import Sequence
from pathlib import Path

from distseat.definitions import Faults, TestForm, load_definitions, nearest, published_directory
from distseat.errors import DefinitionError
from distseat.templates.expansion import expand
from distseat.templates.published_format import read_published_format

__all__ = ["PUBLISHED", "load_tests", "select_tests"]

PUBLISHED = "published"


def load_tests(sources: Sequence[str] = (PUBLISHED,)) -> list[TestForm]:
    """Every form of every test of some sources, in their order.

    Parameters
    ----------
    sources
        "published", paths of YAML test files or directories of them, directories of the published JSON format.

    Raises
    ------
    DefinitionError
        A faulty file, or two tests with one id and form.
    """
    shipped = load_definitions([published_directory()])
    published = [form for test in shipped.tests for form in expand(test, shipped.grammar)]
    by_file = {form.file: form for form in published}
    forms: list[tuple[str, TestForm]] = []
    for source in sources:
        path = Path(source)
        if source == PUBLISHED:
            own = published
        elif path.suffix == ".jsonl" and path.is_file():
            raise DefinitionError(f"{path}: give the directory of the .jsonl files: a test is looked up among them")
        elif path.is_dir() and any(path.glob("*.jsonl")):
            if beside := sorted([*path.glob("*.yaml"), *path.glob("*.yml")]):
                raise DefinitionError(f"{path}: holds .jsonl files and {beside[0].name}; make it two directories")
            own = read_published_format(path, shipped.grammar, by_file)
        else:
            own = _own_yaml(path)
        forms += [(source, form) for form in own]
    _check_unique(forms)
    return [form for _, form in forms]


def _own_yaml(path: Path) -> list[TestForm]:
    own = load_definitions([path])
    if not own.tests:
        faults = Faults()
        faults.add(path.name, "", "holds no tests; list them under `tests`")
        raise DefinitionError(faults.told("test files"))
    return [form for test in own.tests for form in expand(test, own.grammar)]


def select_tests(forms: Sequence[TestForm], ids: Sequence[str] | None) -> list[TestForm]:
    """The forms of the tests of some ids, in the order of `forms`; all of them for None."""
    if ids is None:
        return list(forms)
    known = list(dict.fromkeys(form.test_id for form in forms))
    unknown = [test_id for test_id in ids if test_id not in known]
    if unknown:
        told = ", ".join(f"{test_id!r}{nearest(test_id, known)}" for test_id in unknown)
        raise DefinitionError(f"no test has the id {told}; `distseat tests list` shows all of a source")
    return [form for form in forms if form.test_id in ids]


def _check_unique(forms: Sequence[tuple[str, TestForm]]) -> None:
    faults = Faults()
    sources: dict[tuple[str, str], list[str]] = {}
    for source, form in forms:
        sources.setdefault((form.test_id, form.form), []).append(source)
    twice = {test_id: told for (test_id, _), told in sources.items() if len(told) > 1}
    for test_id, told in twice.items():
        sources_told = " and ".join(told)
        faults.add(sources_told, "", f"two tests have the id {test_id!r}; rename one, or leave a source out")
    if faults:
        raise DefinitionError(faults.told("tests"))
