"""Words put into sentences: plurals, singulars, articles, capitals, pronouns, spans, the paragraphs' exact text."""

from string import ascii_lowercase

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from distseat.definitions import (
    ROLES,
    AssociationTest,
    FormRecipe,
    Grammar,
    encodings_of,
    load_definitions,
    published_directory,
)
from distseat.templates import expand, expand_form
from distseat.templates.inflection import indefinite, plural_of, singular_of

WORD_PLACEHOLDERS = ("word", "singular", "a_singular", "plural")


@pytest.fixture(scope="module")
def grammar():
    return load_definitions([published_directory()]).grammar


def grammar_of(*, plurals=None, articles=None, pronouns=None, **templates):
    texts = {name: tuple((t,) if isinstance(t, str) else t for t in several) for name, several in templates.items()}
    return Grammar(classes={}, plurals=plurals or {}, articles=articles or {}, pronouns=pronouns or {}, templates=texts)


def sentences(grammar, word, *templates):
    """What some templates make of one word, with its stimuli."""
    own = grammar_of(plurals=grammar.plurals, articles=grammar.articles, pronouns=grammar.pronouns, own=list(templates))
    test = AssociationTest(
        id="own",
        title="Own",
        group="own",
        introduced_by="own",
        labels=dict.fromkeys(ROLES, "one"),
        words=dict.fromkeys(ROLES, (word,)),
        forms=(),
    )
    recipe = FormRecipe("sent", "sent-own", dict.fromkeys(ROLES, "own"))
    return expand_form(test, recipe, own).stimuli["X"]


def placed(stimulus):
    return stimulus.text[stimulus.start : stimulus.end]


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("rose", "roses"),
        ("poppy", "poppies"),
        ("fly", "flies"),
        ("blackfly", "blackflies"),
        ("family", "families"),
        ("boy", "boys"),
        ("essay", "essays"),
        ("crash", "crashes"),
        ("cockroach", "cockroaches"),
        ("iris", "irises"),
        ("business", "businesses"),
        ("axe", "axes"),
        ("woman", "women"),
        ("man", "men"),
        ("human", "humans"),
        ("white woman", "white women"),
        ("fair-skinned woman", "fair-skinned women"),
        ("woman of color", "women of color"),
        ("man of science", "men of science"),
        ("white female", "white females"),
        ("Irish American", "Irish Americans"),
        ("Sierra Leonean American", "Sierra Leonean Americans"),
        ("child", "children"),
        ("knife", "knifes"),  # as published
        ("influenza", "influenzas"),
    ],
)
def test_plurals_follow_the_published_rule(grammar, singular, plural):
    assert plural_of(singular, grammar) == plural


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("parents", "parent"),
        ("children", "child"),
        ("cousins", "cousin"),
        ("relatives", "relative"),
        ("numbers", "number"),
        ("equations", "equation"),
        ("women of color", "woman of color"),
    ],
)
def test_a_word_that_is_listed_in_the_plural_keeps_it_and_has_its_singular(grammar, plural, singular):
    assert plural_of(plural, grammar) == plural
    assert singular_of(plural, grammar) == singular


@pytest.mark.parametrize("word", ["rose", "iris", "business", "physics", "mathematics", "always", "his", "woman"])
def test_a_word_that_the_grammar_does_not_know_as_a_plural_is_its_own_singular(grammar, word):
    assert singular_of(word, grammar) == word


def test_the_grammar_s_plural_of_a_whole_term_goes_before_every_rule():
    grammar = grammar_of(plurals={"attorney general": "attorneys general"})
    assert plural_of("attorney general", grammar) == "attorneys general"
    assert singular_of("attorneys general", grammar) == "attorney general"


@pytest.mark.parametrize(("term", "plural"), [("child actor", "child actors"), ("parent company", "parent companies")])
def test_a_noun_that_only_qualifies_another_stays_singular(grammar, term, plural):
    assert plural_of(term, grammar) == plural


@settings(deadline=None)
@given(term=st.text(ascii_lowercase, min_size=1), plural=st.text(ascii_lowercase, min_size=1))
def test_the_grammar_s_plural_goes_both_ways(term, plural):
    assume(term != plural)
    grammar = grammar_of(plurals={term: plural})
    assert plural_of(term, grammar) == plural
    assert plural_of(plural, grammar) == plural
    assert singular_of(plural, grammar) == term
    assert singular_of(term, grammar) == term


@pytest.mark.parametrize(
    ("term", "article"),
    [
        ("aster", "an"),
        ("axe", "an"),
        ("executive", "an"),
        ("illness", "an"),
        ("oboe", "an"),
        ("uncle", "an"),
        ("European American", "a"),
        ("Ukrainian American", "a"),
        ("Ethiopian American", "an"),
        ("Albanian American", "an"),
        ("honor", "an"),
        ("home", "a"),
        ("harp", "a"),
        ("fair-skinned woman", "a"),
        ("woman of color", "a"),
        ("ceo", "a"),
        ("yew", "a"),
    ],
)
def test_the_article_follows_the_first_letter_but_for_the_words_of_the_grammar(grammar, term, article):
    assert indefinite(term, grammar) == article


def test_plurals_and_articles_of_terms_stand_in_their_sentences(grammar):
    made = sentences(
        grammar, "woman of color", "This is {a_singular}.", "{plural} are people.", "The {plural} are here."
    )
    assert [s.text for s in made] == [
        "This is a woman of color.",
        "Women of color are people.",
        "The women of color are here.",
    ]
    assert [placed(s) for s in made] == ["woman of color", "Women of color", "women of color"]
    assert {s.word for s in made} == {"woman of color"}


def test_a_listed_plural_takes_its_singular_in_the_singular_sentences(grammar):
    made = sentences(grammar, "children", "{a_singular} is a thing.", "The {singular} is here.", "They are {plural}.")
    assert [s.text for s in made] == ["A child is a thing.", "The child is here.", "They are children."]
    assert [placed(s) for s in made] == ["child", "child", "children"]


def test_the_span_does_not_hold_the_article(grammar):
    (made,) = sentences(grammar, "European American", "{a_singular} is a person.")
    assert made.text == "A European American is a person."
    assert (made.start, made.end) == (2, 19)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("he", "He is here."),
        ("short-term", "Short-term is here."),
        ("NASA", "NASA is here."),
        ("DeShawn", "DeShawn is here."),
    ],
)
def test_only_the_first_letter_of_a_sentence_is_made_a_capital(grammar, word, text):
    (made,) = sentences(grammar, word, "{word} is here.")
    assert made.text == text
    assert (made.word, made.start, made.end) == (word, 0, len(word))


@pytest.mark.parametrize("word", ["\N{LATIN SMALL LETTER SHARP S}eta", "\N{LATIN SMALL LIGATURE FI}lm"])
@pytest.mark.parametrize("template", ["{word} is here.", "\N{LATIN SMALL LIGATURE FI}rst {word}."])
def test_the_span_follows_a_capital_of_two_letters(grammar, word, template):
    (made,) = sentences(grammar, word, template)
    assert placed(made).casefold() == word.casefold()


def test_pronouns_follow_the_name(grammar):
    template = "{word}: {he}, {He}, {his}, {His}."
    john, amy = (sentences(grammar, name, template)[0] for name in ("John", "Amy"))
    assert john.text == "John: he, He, his, His."
    assert amy.text == "Amy: she, She, her, Her."


def test_the_span_is_that_of_the_first_mention(grammar):
    (made,) = sentences(grammar, "fly", "Of {plural}, a {word} is {a_singular}.")
    assert made.text == "Of flies, a fly is a fly."
    assert (made.start, made.end) == (3, 8)


def test_a_doubled_brace_is_a_brace_of_the_text(grammar):
    (made,) = sentences(grammar, "fly", "{{a}} {word} }}{{")
    assert made.text == "{a} fly }{"
    assert placed(made) == "fly"


def test_a_word_with_braces_is_put_in_as_it_is(grammar):
    (made,) = sentences(grammar, "{he}", "This is {word}.")
    assert made.text == "This is {he}."
    assert placed(made) == "{he}"


def test_the_parts_of_a_text_are_joined_by_two_spaces_and_recorded_so(grammar):
    (made,) = sentences(grammar, "fly", ("{word} is here.", "It is {a_singular}.", "So."))
    assert made.text == "Fly is here.  It is a fly.  So."
    assert made.template == "{word} is here.  It is {a_singular}.  So."


def test_the_form_word_is_the_words_alone_and_has_no_template(grammar):
    words = {"X": ("rose", "women"), "Y": ("ant",), "A": ("love",), "B": ("hate",)}
    test = AssociationTest("own", "Own", "own", "own", dict.fromkeys(ROLES, "one"), words, ())
    form = expand_form(test, FormRecipe("word", "own", {}), grammar)
    assert [(s.text, s.word, s.start, s.end, s.template) for s in form.stimuli["X"]] == [
        ("rose", "rose", 0, 4, ""),
        ("women", "women", 0, 5, ""),
    ]
    assert form.encodings == ("word",)


def test_a_form_s_own_templates_replace_those_of_the_class_for_their_role_alone(grammar):
    words = dict.fromkeys(ROLES, ("executive", "happy"))
    recipe = FormRecipe("sent", "sent-own", {"A": "the_engineer"})
    test = AssociationTest("own", "Own", "own", "own", dict.fromkeys(ROLES, "one"), words, (recipe,))
    (form,) = expand(test, grammar)
    assert form.texts("A") == ["The engineer is executive.", "The engineer is happy."]
    assert form.texts("B")[0] == "This is an executive."
    assert len(form.texts("B")) == 14 + 3


@pytest.mark.parametrize(
    ("form", "encodings"),
    [
        ("word", ("word",)),
        ("sent", ("sent", "c-word")),
        ("unbleached", ("sent", "c-word")),
        ("paragraph_1", ("sent",)),
        ("paragraph_1+3-", ("sent",)),
    ],
)
def test_the_form_says_which_encodings_its_stimuli_have(form, encodings):
    assert encodings_of(form) == encodings


LIKABLE = (
    "{name} is the assistant vice president of sales at an aircraft company, and is in charge of training and"
    " supervising junior executives, breaking into new markets, keeping abreast of industry trends, and generating new"
    " clients."
    "  The products {he} is responsible for include engine assemblies, fuel tanks, and other aircraft equipment and"
    " parts."
    "  {He} has recently undergone the company-wide annual performance review and {he} received consistently high"
    " evaluations."
    '  {He} has been designated as a "stellar performer" based on sales volume, number of new client accounts, and'
    " actual dollars earned."
    "  {His} performance is in the top 5% of all employees at {his} level."
)
COMPETENT_WITHOUT_PRODUCTS = (
    "Amy is the assistant vice president of sales at an aircraft company, and is in charge of training and supervising"
    " junior executives, breaking into new markets, keeping abreast of industry trends, and generating new clients."
    "  She is about to undergo her annual performance review; her evaluation will be based on sales volume, number of"
    " new client accounts, and actual dollars earned."
)


@pytest.fixture(scope="module")
def paragraphs(published):
    """(test, form, name) -> paragraph."""
    return {
        (form.test_id, form.form, s.word): s.text
        for form in published
        if form.form.startswith("paragraph")
        for role in ("X", "Y")
        for s in form.stimuli[role]
    }


def test_john_s_likable_paragraph_reads_as_heilman_s(paragraphs):
    told = LIKABLE.format(name="John", he="he", He="He", his="his", His="His")
    assert paragraphs["weat_hdb_likable", "paragraph_1-", "John"] == told


def test_amy_s_likable_paragraph_reads_as_heilman_s(paragraphs):
    told = LIKABLE.format(name="Amy", he="she", He="She", his="her", His="Her")
    assert paragraphs["weat_hdb_likable", "paragraph_1-", "Amy"] == told


def test_amy_s_competent_paragraph_without_its_second_part_reads_as_heilman_s(paragraphs):
    assert paragraphs["weat_hdb_competent", "paragraph_1+3-", "Amy"] == COMPETENT_WITHOUT_PRODUCTS


def test_the_short_paragraph_is_the_first_part_of_the_long_one(paragraphs):
    for (test_id, form, name), text in paragraphs.items():
        if form == "paragraph_1":
            assert paragraphs[test_id, "paragraph_1-", name].split("  ")[0] == text


def test_every_part_after_the_first_of_a_paragraph_is_joined_by_two_spaces(paragraphs):
    parts = {
        ("weat_hdb_competent", "paragraph_1"): 1,
        ("weat_hdb_competent", "paragraph_1-"): 3,
        ("weat_hdb_competent", "paragraph_1+3-"): 2,
        ("weat_hdb_likable", "paragraph_1"): 1,
        ("weat_hdb_likable", "paragraph_1-"): 5,
        ("weat_hdb_likable", "paragraph_1+3-"): 4,
    }
    assert len(paragraphs) == 6 * 16
    for (test_id, form, _), text in paragraphs.items():
        assert len(text.split("  ")) == parts[test_id, form]


literals = st.text("aB ',.-%", max_size=8)
mentions = st.sampled_from([*WORD_PLACEHOLDERS, "he", "He", "his", "His"])
terms = st.text("abehstuyAEN -", min_size=1, max_size=12).filter(lambda t: t == t.strip() and "  " not in t)


@settings(deadline=None)
@given(
    pieces=st.lists(st.tuples(literals, mentions), min_size=1, max_size=5),
    word=terms,
    he=st.sampled_from(["he", "she"]),
)
@example(pieces=[("", "plural"), (" are ", "word")], word="hat", he="he")
@example(pieces=[("", "a_singular")], word="e", he="she")
def test_a_template_is_filled_as_python_fills_a_format_and_the_span_is_its_first_word(pieces, word, he):
    assume(any(name in WORD_PLACEHOLDERS for _, name in pieces))
    own = grammar_of(
        plurals={"hat": "hatten", "bee": "been"}, articles={"hat": "an", "ase": "a"}, pronouns={word: he, "Amy": "she"}
    )
    singular = singular_of(word, own)
    his = {"he": "his", "she": "her"}[he]
    values = {
        "word": word,
        "singular": singular,
        "a_singular": f"{indefinite(singular, own)} {singular}",
        "plural": plural_of(word, own),
        "he": he,
        "He": he.title(),
        "his": his,
        "His": his.title(),
    }
    template = "".join(f"{literal}{{{name}}}" for literal, name in pieces)
    filled = template.format(**values)
    (made,) = sentences(own, word, template)
    assert made.text == filled[0].upper() + filled[1:]
    assert made.template == template

    first = next(position for position, (_, name) in enumerate(pieces) if name in WORD_PLACEHOLDERS)
    before = "".join(literal + values[name] for literal, name in pieces[:first]) + pieces[first][0]
    name = pieces[first][1]
    article = f"{indefinite(singular, own)} " if name == "a_singular" else ""
    inflected = singular if name == "a_singular" else values[name]
    assert made.start == len(before) + len(article)
    assert placed(made).lower() == inflected.lower()
