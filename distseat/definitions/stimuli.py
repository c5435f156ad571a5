"""What an association test is made of: roles, stimuli, the recipe of a form, and the form made ready to encode."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "ENCODINGS",
    "ROLES",
    "AssociationTest",
    "Encoding",
    "FormRecipe",
    "Grammar",
    "Role",
    "Stimulus",
    "TestForm",
    "encodings_of",
]

Role = Literal["X", "Y", "A", "B"]
ROLES: Final[tuple[Role, ...]] = ("X", "Y", "A", "B")

Encoding = Literal["word", "sent", "c-word"]
ENCODINGS: Final[tuple[Encoding, ...]] = ("word", "sent", "c-word")


def encodings_of(form: str) -> tuple[Encoding, ...]:
    """Which vectors the stimuli of a form can be given: the lone word, the sentence, the word inside its sentence."""
    if form == "word":
        return ("word",)
    return ("sent",) if form.startswith("paragraph") else ("sent", "c-word")


@dataclass(frozen=True, slots=True)
class Stimulus:
    """One text of a set, with the word it stands for.

    Attributes
    ----------
    text
        What the encoder reads.
    word
        The word as it stands in its list; empty where a sentence came without one.
    start, end
        Span of the word in `text`, in characters, end exclusive; the word may be inflected or capitalised there.
        Both 0 where the word is not known.
    template
        The template that the text was made from; empty for a lone word or a sentence that came ready made.
    """

    text: str
    word: str
    start: int
    end: int
    template: str = ""

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("a stimulus has an empty text; remove it from its set")
        if not (0 <= self.start <= self.end <= len(self.text)):
            raise ValueError(
                f"span {self.start}:{self.end} lies outside the {len(self.text)} characters of {self.text!r}; "
                "give the span of the word in characters, end exclusive"
            )
        if not self.word and self.end:
            raise ValueError(f"{self.text!r} has the span {self.start}:{self.end} but no word; give both or neither")
        if self.word and self.start == self.end:
            raise ValueError(f"the span of {self.word!r} in {self.text!r} is empty; give the characters of the word")

    @property
    def key(self) -> str:
        """Stable id of (text, span), the unit that is encoded once: 32 hexadecimal digits."""
        return hashlib.sha256(f"{self.start}:{self.end}:{self.text}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class FormRecipe:
    """How a test presents its words: the form's name, the published file's name, and templates by role.

    A role that is not in `templates` uses the templates of each word's class.
    """

    name: str
    file: str
    templates: Mapping[Role, str]


@dataclass(frozen=True, slots=True)
class AssociationTest:
    """Targets X, Y and attributes A, B as lists of words; asks whether X goes with A and Y with B."""

    id: str
    title: str
    group: str
    introduced_by: str
    labels: Mapping[Role, str]
    words: Mapping[Role, tuple[str, ...]]
    forms: tuple[FormRecipe, ...]


@dataclass(frozen=True, slots=True)
class Grammar:
    """What templates need to know of words.

    Attributes
    ----------
    classes
        Word -> its class.
    plurals
        Singular -> plural, where the regular rule does not hold or a list holds the plural.
    articles
        First word of a term -> "a" or "an", where its first letter misleads.
    pronouns
        Name -> "he" or "she".
    templates
        Name of a class or of a set of templates -> its texts, each a tuple of parts.
    """

    classes: Mapping[str, str]
    plurals: Mapping[str, str]
    articles: Mapping[str, str]
    pronouns: Mapping[str, str]
    templates: Mapping[str, tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, slots=True)
class TestForm:
    """One association test in one form, its stimuli in order: what is encoded and scored.

    Attributes
    ----------
    test_id, form
        The row's key, as ("weat1", "sent").
    file
        The name that the published data give it, as "sent-weat1".
    labels
        Role -> the name of its set.
    stimuli
        Role -> its stimuli.
    """

    test_id: str
    form: str
    file: str
    title: str
    group: str
    labels: Mapping[Role, str]
    stimuli: Mapping[Role, tuple[Stimulus, ...]]

    __test__ = False  # pytest would collect a class of this name

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The encodings that this form can be measured in."""
        return encodings_of(self.form)

    def texts(self, role: Role) -> list[str]:
        """The texts of a role, in order."""
        return [stimulus.text for stimulus in self.stimuli[role]]

    @property
    def digest(self) -> str:
        """Sha256 over all that enters a row: two forms of one digest give one result."""
        content = [self.test_id, self.form, self.file, self.title, self.group] + [
            [s.key, s.word, s.template] for role in ROLES for s in (*self.stimuli[role],)
        ]
        sizes = [len(self.stimuli[role]) for role in ROLES]
        return hashlib.sha256(json.dumps([content, sizes]).encode()).hexdigest()
