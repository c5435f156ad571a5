"""Read and validate test files: word lists, grammar, templates and tests, in YAML that a researcher writes.

A test file holds any of the sections `word_lists`, `word_classes`, `plurals`, `articles`, `pronouns`, `templates`,
`tests`; the published ones are spread over the files of data/tests. A file of one's own may use every list, class and
template of the published files.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from distseat.definitions.faults import Faults, nearest
from distseat.definitions.places import published_directory
from distseat.definitions.stimuli import ROLES, AssociationTest, FormRecipe, Grammar, Role
from distseat.definitions.yaml_text import read_yaml
from distseat.errors import DefinitionError

__all__ = ["PLACEHOLDERS", "Definitions", "load_definitions"]

PLACEHOLDERS = ("word", "singular", "a_singular", "plural", "he", "He", "his", "His")
_WORD_PLACEHOLDERS = frozenset(PLACEHOLDERS[:4])
_PRONOUN_PLACEHOLDERS = frozenset(PLACEHOLDERS[4:])
_FORM_NAME = re.compile(r"word|sent|unbleached|paragraph_[0-9A-Za-z+-]+")
_MIN_WORDS = 2  # a set of one has no spread, and nothing to exchange or to leave out

Text = Annotated[str, StringConstraints(strict=True, min_length=1, pattern=r"^\S(.*\S)?$")]
Name = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9_+][A-Za-z0-9_+.-]*$")]
Parts = Annotated[list[Text], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


@dataclass(frozen=True, slots=True)
class Definitions:
    """The tests of some files, and the grammar to make their sentences with."""

    tests: tuple[AssociationTest, ...]
    grammar: Grammar


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Form(_Part):
    X: Name | None = None
    Y: Name | None = None
    A: Name | None = None
    B: Name | None = None
    file: Name | None = None


class _Test(_Part):
    id: Name
    title: Text
    group: Text = "own"
    introduced_by: Text = "own"
    X: Name
    Y: Name
    A: Name
    B: Name
    forms: dict[str, _Form | None] = Field(min_length=1)

    @field_validator("forms", mode="before")
    @classmethod
    def _names_alone(cls, forms: object) -> object:
        if not isinstance(forms, list) or not all(isinstance(form, str) for form in forms):
            return forms
        if len(set(forms)) < len(forms):
            raise ValueError("a form stands twice; keep one")
        return dict.fromkeys(forms)


class _TestFile(_Part):
    word_lists: dict[Name, list[Text]] = Field(default_factory=dict)
    word_classes: dict[Name, list[Text]] = Field(default_factory=dict)
    plurals: dict[Text, Text] = Field(default_factory=dict)
    articles: dict[Literal["an", "a"], list[Text]] = Field(default_factory=dict)
    pronouns: dict[Literal["he", "she"], list[Text]] = Field(default_factory=dict)
    templates: dict[Name, list[Parts]] = Field(default_factory=dict)
    tests: list[_Test] = Field(default_factory=list)


_KNOWN_KEYS = tuple(_TestFile.model_fields) + tuple(_Test.model_fields)


@dataclass(slots=True)
class _Merged:
    """All files together.

    Every named thing remembers the file that it came from; what was left out as faulty is known by name, so that its
    users are not called faulty too.
    """

    faults: Faults = field(default_factory=Faults)
    origin: dict[tuple[str, str], str] = field(default_factory=dict)
    faulty: set[tuple[str, str]] = field(default_factory=set)
    word_lists: dict[str, list[str]] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    plurals: dict[str, str] = field(default_factory=dict)
    articles: dict[str, str] = field(default_factory=dict)
    pronouns: dict[str, str] = field(default_factory=dict)
    templates: dict[str, list[list[str]]] = field(default_factory=dict)
    tests: list[tuple[str, str, _Test]] = field(default_factory=list)

    def claim(self, section: str, name: str, file: str) -> bool:
        """Whether `name` is new to `section`; otherwise a fault that names both files."""
        first = self.origin.setdefault((section, name), file)
        if first == file:
            return True
        self.faults.add(file, f"{section}.{name}", f"is defined in {first} already; choose another name")
        return False

    def add(self, file: str, content: _TestFile) -> None:
        for name, words in content.word_lists.items():
            if self.claim("word_lists", name, file):
                self.word_lists[name] = words
        self._invert("word_classes", content.word_classes, self.classes, file)
        self._invert("articles", content.articles, self.articles, file)
        self._invert("pronouns", content.pronouns, self.pronouns, file)
        for singular, plural in content.plurals.items():
            if self.claim("plurals", singular, file):
                self.plurals[singular] = plural
        for name, texts in content.templates.items():
            if self.claim("templates", name, file):
                self.templates[name] = texts
        self.tests += [(file, f"tests[{position}]", test) for position, test in enumerate(content.tests)]

    def _invert(self, section: str, lists: Mapping[Any, list[str]], into: dict[str, str], file: str) -> None:
        for value, words in lists.items():
            for word in words:
                first = into.setdefault(word, value)
                if first != value:
                    self.faults.add(file, f"{section}.{value}", f"{word!r} is listed under {first} already; keep one")


def load_definitions(paths: Iterable[Path], *, with_published: bool = True) -> Definitions:
    """Read test files and return their tests, every one checked.

    Parameters
    ----------
    paths
        YAML files, or directories of them. The tests returned are these files' own.
    with_published
        Whether the files may use the published word lists, classes and templates.

    Raises
    ------
    DefinitionError
        With every fault of every file: file, key, what was expected.
    """
    merged = _Merged()
    own = _yaml_files(paths)
    shipped = _yaml_files([published_directory()]) if with_published else []
    for path in shipped:
        if path not in own:
            _read_into(merged, path, f"published {path.name}", keep_tests=False)
    names = [path.name for path in own]
    for path in own:
        label = path.name if names.count(path.name) == 1 else str(path)
        _read_into(merged, path, label, keep_tests=True)
    _check_lists(merged)
    _check_templates(merged)
    tests = _checked_tests(merged)
    if merged.faults:
        raise DefinitionError(merged.faults.told("test files"))
    return Definitions(tests=tuple(tests), grammar=_grammar(merged))


def _yaml_files(paths: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted([*path.glob("*.yaml"), *path.glob("*.yml")]) if path.is_dir() else [path]
        if not found:
            raise DefinitionError(f"{path}: no .yaml file in this directory; give a test file or a directory of them")
        files += found
    return files


def _read_into(merged: _Merged, path: Path, label: str, *, keep_tests: bool) -> None:
    try:
        content = read_yaml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        merged.faults.add(label, "", f"cannot be read ({error.strerror}: {path}); check the path")
        return
    except UnicodeDecodeError as error:
        merged.faults.add(label, "", f"is not text in UTF-8 ({error}); save it as UTF-8")
        return
    except ValueError as error:
        merged.faults.add(label, "", str(error))
        return
    if isinstance(content, dict):
        parsed = _sound_part(merged, label, content)
        merged.add(label, parsed if keep_tests else parsed.model_copy(update={"tests": []}))
    elif content is not None:
        sections = ", ".join(_TestFile.model_fields)
        merged.faults.add(label, "", f"a mapping with the sections {sections} was expected")


def _sound_part(merged: _Merged, label: str, content: dict[Any, Any]) -> _TestFile:
    """Note every fault of a file and return the rest, so that one fault hides no other."""
    try:
        return _TestFile.model_validate(content)
    except ValidationError as error:
        merged.faults.add_validation(label, error, content, known_keys=_KNOWN_KEYS)
        places = {detail["loc"][:2] for detail in error.errors()}
    merged.faulty |= {(str(place[0]), str(place[-1])) for place in places}
    sound: dict[str, Any] = {}
    for section in _TestFile.model_fields:
        entries = content.get(section)
        if isinstance(entries, dict) and (section,) not in places:
            sound[section] = {k: v for k, v in entries.items() if (section, str(k)) not in merged.faulty}
        elif isinstance(entries, list) and (section,) not in places:
            sound[section] = [entry for i, entry in enumerate(entries) if (section, i) not in places]
    return _TestFile.model_validate(sound)


def _check_lists(merged: _Merged) -> None:
    for name, words in merged.word_lists.items():
        for word in sorted({word for word in words if words.count(word) > 1}):
            merged.faults.add(
                merged.origin["word_lists", name], f"word_lists.{name}", f"{word!r} stands more than once; keep one"
            )


def _check_templates(merged: _Merged) -> None:
    for name, texts in merged.templates.items():
        file = merged.origin["templates", name]
        if not texts:
            merged.faults.add(file, f"templates.{name}", "is empty; give at least one sentence")
        for position, text in enumerate(texts):
            for fault in _template_faults("".join(text)):
                merged.faults.add(file, f"templates.{name}[{position}]", fault)


def _template_faults(template: str) -> Iterable[str]:
    try:
        fields = list(Formatter().parse(template))
    except ValueError as error:
        yield f"{error}; write {{{{ for a brace of the text"
        return
    used = {name for _, name, _, _ in fields if name is not None}
    for unknown in sorted(used - set(PLACEHOLDERS)):
        known = f"known are {', '.join(PLACEHOLDERS)}{nearest(unknown, PLACEHOLDERS)}"
        yield f"unknown placeholder {{{unknown}}}; {known}"
    for _, name, layout, conversion in fields:
        if layout or conversion:
            written = f"{name}{'!' + conversion if conversion else ''}{':' + layout if layout else ''}"
            yield f"{{{written}}} holds a format, which templates have not; write {{{name}}}"
    if not used & _WORD_PLACEHOLDERS:
        yield "does not hold the word: one of {word}, {singular}, {a_singular}, {plural} is expected"


def _placeholders(template: str) -> set[str]:
    try:
        return {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError:
        return set()  # told by _template_faults already


def _checked_tests(merged: _Merged) -> list[AssociationTest]:
    ids: dict[str, str] = {}
    tests = []
    for file, key, test in merged.tests:
        where = f"{file}: {key}"
        if test.id in ids:
            merged.faults.add(file, f"{key}.id", f"{test.id!r} is the id of {ids[test.id]} too; ids are unique")
        ids.setdefault(test.id, where)
        tests.append(_checked_test(merged, file, key, test))
    return tests


def _checked_test(merged: _Merged, file: str, key: str, test: _Test) -> AssociationTest:
    labels: dict[Role, str] = {role: getattr(test, role) for role in ROLES}
    words = {role: _checked_words(merged, file, f"{key}.{role}", labels[role]) for role in ROLES}
    for word in (word for word in words["X"] if word in words["Y"]):
        merged.faults.add(file, f"{key}.Y", f"{word!r} is in X too; a word is a target of one side")
    forms = []
    for name, form in test.forms.items():
        where = f"{key}.forms.{name}"
        recipe = _recipe(test.id, name, form or _Form())
        if not _FORM_NAME.fullmatch(name):
            merged.faults.add(file, where, "word, sent, unbleached or paragraph_... was expected")
        elif name == "word" and recipe.templates:
            merged.faults.add(file, where, "the form word takes no templates: it is the words alone")
        elif name != "word":
            _check_recipe(merged, file, where, recipe, words)
        forms.append(recipe)
    return AssociationTest(test.id, test.title, test.group, test.introduced_by, labels, words, tuple(forms))


def _checked_words(merged: _Merged, file: str, key: str, label: str) -> tuple[str, ...]:
    if label not in merged.word_lists:
        if ("word_lists", label) not in merged.faulty:
            known = sorted(merged.word_lists)
            merged.faults.add(file, key, f"no word list is named {label!r}{nearest(label, known)}")
        return ()
    words = merged.word_lists[label]
    words_told = "1 word" if len(words) == 1 else f"{len(words)} words"
    if len(words) < _MIN_WORDS:
        merged.faults.add(file, key, f"word list {label!r} has {words_told}, at least {_MIN_WORDS} are needed")
    return tuple(words)


def _recipe(test_id: str, name: str, form: _Form) -> FormRecipe:
    templates = {role: getattr(form, role) for role in ROLES if getattr(form, role)}
    ordinary = {"word": test_id, "sent": f"sent-{test_id}"}
    return FormRecipe(name, form.file or ordinary.get(name, f"sent-{test_id}_{name}"), templates)


def _check_recipe(
    merged: _Merged, file: str, where: str, recipe: FormRecipe, words: Mapping[Role, tuple[str, ...]]
) -> None:
    for role in ROLES:
        if role in recipe.templates:
            used = dict.fromkeys(words[role], recipe.templates[role])
        else:
            used = {word: merged.classes.get(word, "") for word in words[role]}
        classless = [word for word, name in used.items() if not name]
        if classless:
            told = f"{len(classless)} words, such as {classless[0]!r}"
            merged.faults.add(file, f"{where}.{role}", f"no class for {told}; add them under word_classes")
        for name in sorted({name for name in used.values() if name}):
            chosen = [word for word in used if used[word] == name]
            _check_choice(merged, file, f"{where}.{role}", name, chosen)


def _check_choice(merged: _Merged, file: str, where: str, name: str, words: list[str]) -> None:
    if name not in merged.templates:
        if ("templates", name) in merged.faulty:
            return
        merged.faults.add(file, where, f"no templates are named {name!r}{nearest(name, sorted(merged.templates))}")
        return
    if any(_PRONOUN_PLACEHOLDERS & _placeholders("".join(text)) for text in merged.templates[name]):
        lacking = [word for word in words if word not in merged.pronouns]
        if lacking:
            told = f"{len(lacking)} words, such as {lacking[0]!r}"
            merged.faults.add(file, where, f"templates {name!r} need the pronoun of {told}; add them under pronouns")


def _grammar(merged: _Merged) -> Grammar:
    templates = {name: tuple(tuple(parts) for parts in texts) for name, texts in merged.templates.items()}
    return Grammar(merged.classes, merged.plurals, merged.articles, merged.pronouns, templates)
