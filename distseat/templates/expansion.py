"""Word class -> sentences: every stimulus of a test, with its word, its span and its template."""

from collections.abc import Iterator
from string import Formatter

from distseat.definitions import ROLES, AssociationTest, FormRecipe, Grammar, Role, Stimulus, TestForm
from distseat.templates.inflection import indefinite, plural_of, singular_of

__all__ = ["expand", "expand_form"]

_PART_SEPARATOR = "  "  # the published paragraphs have two spaces between their sentences


def expand(test: AssociationTest, grammar: Grammar) -> Iterator[TestForm]:
    """Every form of a test with its stimuli, in the order of its definition."""
    for recipe in test.forms:
        yield expand_form(test, recipe, grammar)


def expand_form(test: AssociationTest, recipe: FormRecipe, grammar: Grammar) -> TestForm:
    """One form of a test: its words alone, or the sentences that the templates make of them."""
    stimuli: dict[Role, tuple[Stimulus, ...]] = {}
    for role in ROLES:
        words = test.words[role]
        if recipe.name == "word":
            stimuli[role] = tuple(Stimulus(word, word, 0, len(word)) for word in words)
        else:
            chosen = recipe.templates.get(role)
            stimuli[role] = tuple(s for word in words for s in _sentences(word, chosen, grammar))
    return TestForm(test.id, recipe.name, recipe.file, test.title, test.group, test.labels, stimuli)


def _sentences(word: str, chosen: str | None, grammar: Grammar) -> Iterator[Stimulus]:
    for parts in grammar.templates[chosen or grammar.classes[word]]:
        yield _fill(_PART_SEPARATOR.join(parts), word, grammar)


def _fill(template: str, word: str, grammar: Grammar) -> Stimulus:
    """Put a word into a template; its span is that of its first mention."""
    singular = singular_of(word, grammar)
    values = {"word": word, "singular": singular, "a_singular": singular, "plural": plural_of(word, grammar)}
    values |= _pronouns(grammar.pronouns.get(word))
    text, span = "", (0, 0)
    for literal, name, _, _ in Formatter().parse(template):
        text += literal
        if name == "a_singular":
            text += indefinite(singular, grammar) + " "
        if name is not None:
            if name in ("word", "singular", "a_singular", "plural") and span == (0, 0):
                span = (len(text), len(text) + len(values[name]))
            text += values[name]
    return Stimulus(_capitalised(text), word, *span, template=template)


def _capitalised(text: str) -> str:
    """Upper case for the first letter, where that is one letter too: the spans must hold."""
    first = text[:1].upper()
    return first + text[1:] if len(first) == 1 else text


def _pronouns(pronoun: str | None) -> dict[str, str]:
    if pronoun is None:
        return {}
    possessive = {"he": "his", "she": "her"}[pronoun]
    return {"he": pronoun, "He": pronoun.title(), "his": possessive, "His": possessive.title()}
