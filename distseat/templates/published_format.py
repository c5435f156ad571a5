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
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for form in forms:
            path = directory / (form.file + _SUFFIX)
            content = {
                key: {"category": form.labels[role], "examples": form.texts(role)} for role, key in _KEYS.items()
            }
            path.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise StorageError(
            f"{directory}: cannot write the tests ({error.strerror}); choose another directory"
        ) from error
    return written


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
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        return _File.model_validate(content)
    except ValidationError as error:
        faults.add_validation(path.name, error, known_keys=list(_KEYS.values()))
    except (OSError, ValueError) as error:
        faults.add(path.name, "", f"one JSON object in UTF-8 was expected: {error}")
    return None


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
        least = 2 if role in ("X", "Y") else 1
        if len(texts) < least:
            faults.add(stem + _SUFFIX, f"{key}.examples", f"has {len(texts)} texts, at least {least} are needed")
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
    labels = {role: content.role(role).category for role in ROLES}
    test_id = known.test_id if known else _words_stem(stem, published)
    return TestForm(
        test_id, form, stem, known.title if known else test_id, known.group if known else "own", labels, stimuli
    )


def _inflected(words: list[str], grammar: Grammar) -> dict[str, str]:
    """Every shape that a word takes in a sentence, lower case, to the word; a word's own shape goes first."""
    shapes = {word.lower(): word for word in words}
    for word in words:
        for shape in (singular_of(word, grammar), plural_of(word, grammar)):
            shapes.setdefault(shape.lower(), word)
    return shapes


def _located(text: str, shapes: Mapping[str, str], faults: Faults, *, where: tuple[str, str]) -> Stimulus:
    """The one word of the set that a sentence holds, by its longest shape."""
    lower = text.lower()
    found = [
        (match.start(), match.end(), shapes[shape])
        for shape in shapes
        for match in re.finditer(rf"(?<!\w){re.escape(shape)}(?!\w)", lower)
    ]
    longest = max((end - start for start, end, _ in found), default=0)
    best = sorted((start, end, word) for start, end, word in found if end - start == longest)
    if len({word for _, _, word in best}) != 1 or len(lower) != len(text):
        told = " and ".join(repr(word) for _, _, word in best) or "none"
        faults.add(*where, f"one word of the word-level file was expected in {text!r}, found {told}")
        return Stimulus(text, "", 0, 0)
    start, end, word = best[0]
    return Stimulus(text, word, start, end)
