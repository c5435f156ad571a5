"""English inflection, as much of it as the published sentences use."""

from distseat.definitions import Grammar

__all__ = ["indefinite", "plural_of", "singular_of"]

_VOWELS = "aeiou"


def plural_of(term: str, grammar: Grammar) -> str:
    """Plural of a term: the grammar's own, of the term or of a word inside it, else the regular one.

    Examples
    --------
    >>> grammar = Grammar(classes={}, plurals={"woman": "women"}, articles={}, pronouns={}, templates={})
    >>> [plural_of(term, grammar) for term in ("woman of color", "poppy", "whip", "wasp", "blackfly", "crash")]
    ['women of color', 'poppies', 'whips', 'wasps', 'blackflies', 'crashes']
    """
    words = term.split(" ")
    if any(word in grammar.plurals for word in words):
        return " ".join(grammar.plurals.get(word, word) for word in words)
    if any(word in grammar.plurals.values() for word in words):
        return term
    if term.endswith("y") and term[-2:-1].lower() not in _VOWELS:
        return term[:-1] + "ies"
    return term + ("es" if term.endswith(("ch", "sh", "s")) else "s")


def singular_of(term: str, grammar: Grammar) -> str:
    """Singular of a term as it is listed: itself, unless the grammar knows it, or a word inside it, as a plural."""
    singulars = {plural: singular for singular, plural in grammar.plurals.items()}
    return " ".join(singulars.get(word, word) for word in term.split(" "))


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
