"""English inflection, as much of it as the published sentences use."""

from distseat.definitions import Grammar

__all__ = ["indefinite", "plural_of", "singular_of"]

_VOWELS = "aeiou"


def plural_of(term: str, grammar: Grammar) -> str:
    """Plural of a term: the grammar's own, of the whole term or of its head noun, else the regular one.

    The head noun is the last word, or the one before "of".

    Examples
    --------
    >>> grammar = Grammar(classes={}, plurals={"woman": "women"}, articles={}, pronouns={}, templates={})
    >>> [plural_of(term, grammar) for term in ("woman of color", "white woman", "poppy", "whip", "blackfly", "crash")]
    ['women of color', 'white women', 'poppies', 'whips', 'blackflies', 'crashes']
    """
    plurals = grammar.plurals
    if term in plurals or term in plurals.values():
        return plurals.get(term, term)
    before, head, after = _parts(term)
    if head in plurals.values():
        return term
    return before + (plurals.get(head) or _regular_plural(head)) + after


def singular_of(term: str, grammar: Grammar) -> str:
    """Singular of a term as it is listed: itself, unless the grammar knows it, or its head noun, as a plural."""
    singulars = {plural: singular for singular, plural in grammar.plurals.items()}
    if term in singulars:
        return singulars[term]
    before, head, after = _parts(term)
    return before + singulars.get(head, head) + after


def _parts(term: str) -> tuple[str, str, str]:
    phrase, of, rest = term.partition(" of ")
    before, space, head = phrase.rpartition(" ")
    return before + space, head, of + rest


def _regular_plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1].lower() not in _VOWELS:
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("ch", "sh", "s")) else "s")


def indefinite(term: str, grammar: Grammar) -> str:
    """The indefinite article of a term.

    Examples
    --------
    >>> grammar = Grammar(classes={}, plurals={}, articles={"honor": "an", "European": "a"}, pronouns={}, templates={})
    >>> [indefinite(term, grammar) for term in ("honor", "European American", "aster", "whip")]
    ['an', 'a', 'an', 'a']
    """
    first = term.split(" ", maxsplit=1)[0]
    return grammar.articles.get(first) or ("an" if term[0].lower() in _VOWELS else "a")
