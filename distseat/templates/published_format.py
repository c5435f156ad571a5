"""The JSON format of the published test data: read a directory of it, and write one.

One object a file named .jsonl: {"targ1": {"category": NAME, "examples": [TEXT, ...]}, "targ2": ..., "attr1": ...,
"attr2": ...}. Sentence tests are named sent-NAME; the words that their sentences hold are in the file NAME.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from distseat.definitions import ROLES, Faults, Grammar, Role, Stimulus, TestForm
from distseat.errors import DefinitionError, StorageError
from distseat.templates.inflection import plural_of, singular_of

__all__ = ["export_tests", "read_published_format"]

_KEYS: dict[Role, str] = {"X": "targ1", "Y": "targ2", "A": "attr1", "B": "attr2"}
_SUFFIX = ".jsonl"
_SENTENCE_PREFIX = "sent-"
_MIN_EXAMPLES = 2
_TEST_ID = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_+.-]*")

_Text = Annotated[str, StringConstraints(strict=True, min_length=1, pattern=r"\S")]


class _Set(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    category: _Text
    examples: list[_Text]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    targ1: _Set
    targ2: _Set
    attr1: _Set
    attr2: _Set

    def role(self, role: Role) -> _Set:
        chosen: _Set = getattr(self, _KEYS[role])
        return chosen


def export_tests(forms: Iterable[TestForm], directory: Path) -> list[Path]:
    """Write every form as a file of the published format, under its published name; every sentence is kept."""
    forms = list(forms)
    faults = Faults()
    for file in sorted({form.file for form in forms if sum(form.file == other.file for other in forms) > 1}):
        same = [f"{form.test_id} {form.form}" for form in forms if form.file == file]
        faults.add(file + _SUFFIX, "", f"{' and '.join(same)} would be this one file; give one another `file`")
    if faults:
        raise DefinitionError(faults.told("export"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return [_export(form, directory / (form.file + _SUFFIX)) for form in forms]
    except OSError as error:
        raise StorageError(
            f"{directory}: cannot write the tests ({error.strerror}); choose another directory"
        ) from error


def _export(form: TestForm, path: Path) -> Path:
    content = {key: {"category": form.labels[role], "examples": form.texts(role)} for role, key in _KEYS.items()}
    path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_published_format(directory: Path, grammar: Grammar, published: Mapping[str, TestForm]) -> list[TestForm]:
    """Read every .jsonl file of a directory as a test form.

    Parameters
    ----------
    directory
        Holds the files; a sentence file finds its words in the word-level file of the same name.
    grammar
        Inflects the words, to find them in their sentences.
    published
        The published forms by file name: such a file keeps its published id, form, title and group.

    Raises
    ------
    DefinitionError
        With every fault of every file.
    """
    faults = Faults()
    files = {path.name.removesuffix(_SUFFIX): path for path in sorted(directory.glob("*" + _SUFFIX))}
    parsed = {stem: _parse(path, faults) for stem, path in files.items()}
    forms = []
    for stem, content in parsed.items():
        if not _TEST_ID.fullmatch(_words_stem(stem, published)):
            faults.add(stem + _SUFFIX, "", "a file name of letters, digits, _ . + - was expected: it is the test's id")
        if content is not None:
            words_stem = _words_stem(stem, published)
            words = parsed.get(words_stem) if words_stem != stem else None
            forms.append(_form(stem, content, words, grammar, published, faults))
    if not files:
        faults.add(str(directory), "", f"no {_SUFFIX} file is in this directory")
    if faults:
        raise DefinitionError(faults.told("test files"))
    return forms


def _parse(path: Path, faults: Faults) -> _File | None:
    content: Any = None
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text, object_pairs_hook=_unique_object)
        if isinstance(content, dict):
            return _File.model_validate(content)
        faults.add(path.name, "", f"one JSON object was expected, found a {type(content).__name__}")
    except ValidationError as error:
        faults.add_validation(path.name, error, content, known_keys=list(_KEYS.values()))
    except (OSError, ValueError, RecursionError) as error:
        faults.add(path.name, "", f"one JSON object in UTF-8 was expected: {error}")
    return None


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the key {twice!r} stands twice")
    return dict(pairs)


def _words_stem(stem: str, published: Mapping[str, TestForm]) -> str:
    if stem in published:
        return published[stem].test_id
    return stem.removeprefix(_SENTENCE_PREFIX)


def _form(
    stem: str, content: _File, words: _File | None, grammar: Grammar, published: Mapping[str, TestForm], faults: Faults
) -> TestForm:
    known = published.get(stem)
    form = known.form if known else "sent" if stem.startswith(_SENTENCE_PREFIX) else "word"
    stimuli: dict[Role, tuple[Stimulus, ...]] = {}
    for role, key in _KEYS.items():
        texts = content.role(role).examples
        if len(texts) < _MIN_EXAMPLES:
            faults.add(stem + _SUFFIX, f"{key}.examples", f"has {len(texts)}, at least {_MIN_EXAMPLES} are needed")
        for text in sorted({text for text in texts if form == "word" and texts.count(text) > 1}):
            faults.add(stem + _SUFFIX, f"{key}.examples", f"{text!r} stands more than once; keep one")
        if form == "word":
            stimuli[role] = tuple(Stimulus(text, text, 0, len(text)) for text in texts)
        elif words is None:
            stimuli[role] = tuple(Stimulus(text, "", 0, 0) for text in texts)
        else:
            forms_of = _inflected(words.role(role).examples, grammar)
            stimuli[role] = tuple(
                _located(text, forms_of, faults, where=(stem + _SUFFIX, f"{key}.examples[{position}]"))
                for position, text in enumerate(texts)
            )
    for text in sorted(set(content.role("X").examples) & set(content.role("Y").examples)):
        faults.add(stem + _SUFFIX, f"{_KEYS['Y']}.examples", f"{text!r} is in {_KEYS['X']} too; keep one")
    labels = {role: content.role(role).category for role in ROLES}
    test_id = known.test_id if known else _words_stem(stem, published)
    return TestForm(
        test_id, form, stem, known.title if known else test_id, known.group if known else "own", labels, stimuli
    )


def _inflected(words: list[str], grammar: Grammar) -> dict[str, set[str]]:
    """Every shape that a word takes in a sentence, to the words that take it."""
    shapes: dict[str, set[str]] = {}
    for word in words:
        inflected = (singular_of(word, grammar), plural_of(word, grammar)) if _has_plural(word, grammar) else ()
        for shape in (word, *inflected):
            shapes.setdefault(shape, set()).add(word)
            shapes.setdefault(shape[:1].upper() + shape[1:], set()).add(word)
    return shapes


def _has_plural(word: str, grammar: Grammar) -> bool:
    """Whether the templates of a word's class inflect it; a word of no known class may be a noun."""
    templates = grammar.templates.get(grammar.classes.get(word, ""))
    return templates is None or any("plural}" in part or "singular}" in part for text in templates for part in text)


def _located(text: str, shapes: Mapping[str, set[str]], faults: Faults, *, where: tuple[str, str]) -> Stimulus:
    """The one word of the set that a sentence holds, and its place.

    Of shapes that overlap the longest counts ("white woman", not "woman"); a letter's case is overlooked only where no
    shape fits with it. Two words, or one in two places, are a fault: nobody can tell which is meant.
    """
    found = _outermost(_occurrences(text, shapes, 0)) or _outermost(_occurrences(text, shapes, re.IGNORECASE))
    if len(found) == 1 and len(found[0][2]) == 1:
        start, end, words = found[0]
        return Stimulus(text, min(words), start, end)
    told = " and ".join(f"{'/'.join(map(repr, sorted(words)))} at {start}" for start, _, words in found) or "none"
    faults.add(*where, f"one word of the word-level file was expected in {text!r}, found {told}")
    return Stimulus(text, "", 0, 0)


def _occurrences(text: str, shapes: Mapping[str, set[str]], flags: int) -> list[tuple[int, int, frozenset[str]]]:
    places: dict[tuple[int, int], set[str]] = {}
    for shape, words in shapes.items():
        for match in re.finditer(rf"(?<!\w){re.escape(shape)}(?!\w)", text, flags):
            places.setdefault(match.span(), set()).update(words)
    return [(start, end, frozenset(words)) for (start, end), words in sorted(places.items())]


def _outermost(found: list[tuple[int, int, frozenset[str]]]) -> list[tuple[int, int, frozenset[str]]]:
    def inside(one: tuple[int, int, frozenset[str]]) -> bool:
        return any(start <= one[0] and one[1] <= end and (start, end) != one[:2] for start, end, _ in found)

    return [one for one in found if not inside(one)]
