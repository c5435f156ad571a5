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
    forms: list[TestForm] = []
    for source in sources:
        path = Path(source)
        if source == PUBLISHED:
            forms += published
        elif path.is_dir() and any(path.glob("*.jsonl")):
            forms += read_published_format(path, shipped.grammar, by_file)
        else:
            own = load_definitions([path])
            forms += [form for test in own.tests for form in expand(test, own.grammar)]
    _check_unique(forms)
    return forms


def select_tests(forms: Sequence[TestForm], ids: Sequence[str] | None) -> list[TestForm]:
    """The forms of the tests of some ids, in the order of `forms`; all of them for None."""
    if ids is None:
        return list(forms)
    known = list(dict.fromkeys(form.test_id for form in forms))
    unknown = [test_id for test_id in ids if test_id not in known]
    if unknown:
        told = ", ".join(f"{test_id!r}{nearest(test_id, known)}" for test_id in unknown)
        raise DefinitionError(f"no test has the id {told}; `distseat tests list` shows all")
    return [form for form in forms if form.test_id in ids]


def _check_unique(forms: Sequence[TestForm]) -> None:
    faults, seen = Faults(), set[tuple[str, str]]()
    for form in forms:
        if (form.test_id, form.form) in seen:
            faults.add(form.file, form.form, f"two tests have the id {form.test_id!r} in this form; rename one")
        seen.add((form.test_id, form.form))
    if faults:
        raise DefinitionError(faults.told("tests"))
