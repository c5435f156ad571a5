"""The published JSON format: what is exported is read back, stimulus by stimulus, and faulty files are told."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from distseat.definitions import ROLES, AssociationTest, FormRecipe, Grammar, load_definitions, published_directory
from distseat.errors import DefinitionError, DistseatError
from distseat.templates import expand, export_tests, load_tests, read_published_format

KEYS = {"X": "targ1", "Y": "targ2", "A": "attr1", "B": "attr2"}
SENTENCE_SETS = Path(__file__).parents[1] / "reference" / "sentence_sets.tsv"


def spans(form):
    return {role: [(s.text, s.word, s.start, s.end) for s in form.stimuli[role]] for role in ROLES}


def content(x=("rose", "tulip"), y=("ant", "flea"), a=("love", "peace"), b=("hate", "war"), **more):
    """One file's object; by default a word-level one."""
    sets = {
        key: {"category": f"set {key}", "examples": list(texts)}
        for key, texts in zip(KEYS.values(), (x, y, a, b), strict=True)
    }
    return sets | more


SENTENCES = {
    "x": ("This is a rose.", "Tulips are things."),
    "y": ("The ants are here.", "A flea is a thing."),
    "a": ("It is love.", "It is peace."),
    "b": ("It is hate.", "It is war."),
}


@pytest.fixture
def write(tmp_path):
    """Write files of a directory, an object or bytes each; "__" stands for "-" in their names."""

    def written(**files):
        for name, what in files.items():
            data = what if isinstance(what, bytes) else json.dumps(what).encode()
            (tmp_path / (name.replace("__", "-") + ".jsonl")).write_bytes(data)
        return tmp_path

    return written


def faults(directory):
    with pytest.raises(DefinitionError) as caught:
        load_tests([str(directory)])
    heading, *lines = str(caught.value).splitlines()
    assert heading == f"test files: {len(lines)} fault{'s' * (len(lines) > 1)}"
    return [line.strip() for line in lines]


@pytest.fixture(scope="module")
def exported(published, tmp_path_factory):
    directory = tmp_path_factory.mktemp("published")
    return directory, export_tests(published, directory)


@pytest.fixture(scope="module")
def read_back(exported):
    directory, _ = exported
    return {(form.test_id, form.form): form for form in load_tests([str(directory)])}


# The published tests


def test_every_stimulus_of_every_published_form_is_read_back_as_it_was(published, read_back):
    assert len(read_back) == len(published) == 70
    for form in published:
        assert spans(read_back[form.test_id, form.form]) == spans(form), form.file


def test_a_published_form_keeps_its_file_title_group_and_labels(published, read_back):
    for form in published:
        again = read_back[form.test_id, form.form]
        assert (again.file, again.title, again.group) == (form.file, form.title, form.group)
        assert again.labels == form.labels


def test_every_file_is_one_object_on_one_line_of_utf8(published, exported):
    directory, written = exported
    assert len(written) == len(set(written)) == 70
    assert set(directory.iterdir()) == set(written)
    for form, path in zip(published, written, strict=True):
        text = path.read_text(encoding="utf-8")
        assert text.endswith("}\n")
        assert text.count("\n") == 1
        read = json.loads(text)
        assert list(read) == ["targ1", "targ2", "attr1", "attr2"]
        for role, key in KEYS.items():
            assert read[key] == {"category": form.labels[role], "examples": form.texts(role)}


def test_the_files_have_their_published_names(exported):
    lines = SENTENCE_SETS.read_text(encoding="utf-8").splitlines()[1:]
    sentence_files = {line.split("\t")[0] for line in lines}
    assert len(sentence_files) == 40
    words = {
        *(f"weat{number}" for number in [1, 2, 3, "3b", 4, 5, "5b", 6, "6b", 7, "7b", 8, "8b", 9, 10]),
        *(f"weat+{number}" for number in [11, 12, 13, "i1", "i2", "i3", "i4", "i5", "occ"]),
        *(f"weat_{race}hdb_{trait}" for race in ("", "r_") for trait in ("competent", "likable")),
        "weat_angry_black_woman_stereotype",
        "weat_angry_black_woman_stereotype_b",
    }
    assert {path.name for path in exported[1]} == {f"{name}.jsonl" for name in sentence_files | words}


def test_a_published_sentence_file_without_its_words_keeps_its_name_and_has_no_words(exported, tmp_path):
    name = "sent-weat_hdb_unbleach_competent.jsonl"
    (tmp_path / name).write_bytes((exported[0] / name).read_bytes())
    (form,) = load_tests([str(tmp_path)])
    assert (form.test_id, form.form, form.group) == ("weat_hdb_competent", "unbleached", "gender")
    assert {(s.word, s.start, s.end) for role in ROLES for s in form.stimuli[role]} == {("", 0, 0)}


def test_export_into_a_directory_that_cannot_be_made_says_so(published, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DistseatError, match=r"taken: cannot write the tests .* choose another directory"):
        export_tests(published, tmp_path / "taken")


def test_no_form_is_lost_where_two_have_one_file_name(tmp_path):
    own = tmp_path / "own.yaml"
    sets = "title: Own, X: flowers, Y: insects, A: pleasant_8, B: unpleasant_8"
    own.write_text(
        f"tests: [{{id: sent-own, {sets}, forms: [word]}}, {{id: own, {sets}, forms: [word, sent]}}]\n",
        encoding="utf-8",
    )
    with pytest.raises(DefinitionError, match="sent-own"):
        export_tests(load_tests([str(own)]), tmp_path / "exported")


# Files of one's own


def test_sentences_find_their_words_in_the_file_of_the_same_name(write):
    forms = load_tests([str(write(foo=content(), sent__foo=content(**SENTENCES)))])
    word, sent = sorted(forms, key=lambda form: form.form, reverse=True)
    assert (word.test_id, word.form, word.file) == ("foo", "word", "foo")
    assert (sent.test_id, sent.form, sent.file) == ("foo", "sent", "sent-foo")
    assert (sent.title, sent.group, sent.labels["X"]) == ("foo", "own", "set targ1")
    assert spans(word)["X"] == [("rose", "rose", 0, 4), ("tulip", "tulip", 0, 5)]
    assert spans(sent) == {
        "X": [("This is a rose.", "rose", 10, 14), ("Tulips are things.", "tulip", 0, 6)],
        "Y": [("The ants are here.", "ant", 4, 8), ("A flea is a thing.", "flea", 2, 6)],
        "A": [("It is love.", "love", 6, 10), ("It is peace.", "peace", 6, 11)],
        "B": [("It is hate.", "hate", 6, 10), ("It is war.", "war", 6, 9)],
    }


def test_without_the_word_file_the_stimuli_have_no_word(write):
    (form,) = load_tests([str(write(sent__foo=content(**SENTENCES)))])
    assert (form.test_id, form.form) == ("foo", "sent")
    assert form.texts("X") == list(SENTENCES["x"])
    assert {(s.word, s.start, s.end) for role in ROLES for s in form.stimuli[role]} == {("", 0, 0)}


def test_the_longest_of_the_words_that_lie_on_each_other_is_taken(write):
    words = content(x=("American", "African American"))
    sentences = content(**SENTENCES | {"x": ("African Americans are people.", "An American is here.")})
    forms = load_tests([str(write(foo=words, sent__foo=sentences))])
    assert spans(forms[1])["X"] == [
        ("African Americans are people.", "African American", 0, 17),
        ("An American is here.", "American", 3, 11),
    ]


def test_a_word_is_not_found_inside_another(write):
    words = content(x=("male", "rose"))
    sentences = content(**SENTENCES | {"x": ("A female and a male.", "The primrose and the rose.")})
    forms = load_tests([str(write(foo=words, sent__foo=sentences))])
    assert [span[2:] for span in spans(forms[1])["X"]] == [(15, 19), (21, 25)]


@pytest.mark.parametrize("word", ["C++", "short-term", "(sic)", "a.b", "l'amie", "50%"])
def test_a_word_with_punctuation_is_found_as_it_is(write, word):
    sentences = content(**SENTENCES | {"x": (f"This is {word}.", f"{word} is here.")})
    forms = load_tests([str(write(foo=content(x=(word, "tulip")), sent__foo=sentences))])
    assert [span[1:] for span in spans(forms[1])["X"]] == [(word, 8, 8 + len(word)), (word, 0, len(word))]


def test_a_letter_that_grows_when_lower_case_does_not_hide_the_word(write):
    dotted = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"
    assert len(dotted.lower()) == 2
    texts = (f"{dotted}zmir has a rose.", f"This is {dotted}pek.")
    directory = write(foo=content(x=("rose", f"{dotted}pek")), sent__foo=content(**SENTENCES | {"x": texts}))
    sent = next(form for form in load_tests([str(directory)]) if form.form == "sent")
    assert spans(sent)["X"] == [(texts[0], "rose", 12, 16), (texts[1], f"{dotted}pek", 8, 12)]


def test_words_that_differ_in_capitals_only_are_told_apart_or_refused(write):
    sentences = content(**SENTENCES | {"x": ("This is us.", "This is US.")})
    directory = write(foo=content(x=("us", "US")), sent__foo=sentences)
    try:
        forms = load_tests([str(directory)])
    except DefinitionError as error:
        assert "sent-foo.jsonl: targ1.examples[0]: " in str(error)  # noqa: PT017 - one of two good ends
    else:
        assert [span[1] for span in spans(forms[1])["X"]] == ["us", "US"]


# Faults


def test_a_sentence_without_a_word_is_told_with_its_file_and_key(write):
    sentences = content(**SENTENCES | {"y": ("A flea is here.", "The wasp is here.")})
    (line,) = faults(write(foo=content(), sent__foo=sentences))
    assert line.startswith("sent-foo.jsonl: targ2.examples[1]: ")
    assert "one word" in line
    assert "'The wasp is here.'" in line
    assert "none" in line


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("rose", "lily"), "A rose is no lily."),
        (("he", "person"), "He is a person."),
        (("he", "person"), "A person is not always he."),
    ],
    ids=["of one length", "the second longer", "the first longer"],
)
def test_a_sentence_with_two_words_is_told_with_its_file_its_key_and_both_words(write, words, text):
    sentences = content(**SENTENCES | {"x": (text, "The other is here.")})
    directory = write(foo=content(x=(*words, "other")), sent__foo=sentences)
    (line,) = faults(directory)
    assert line.startswith("sent-foo.jsonl: targ1.examples[0]: ")
    assert all(repr(piece) in line for piece in (text, *words)), line


def test_all_faults_of_all_files_are_told_at_once(write):
    directory = write(
        bar=content(x=("rose",)),
        both=content(x=("rose", "ant", "flea")),
        cut=b'{"targ1": ',
        foo=content(),
        keys={"target1": {"category": "c", "examples": ["a", "b"]}} | {k: content()[k] for k in ("targ2", "attr1")},
        latin=b"\xff",
        none=content(a=(), b=()),
        one=content(a=("love",), b=("hate",)),
        sent__foo=content(**SENTENCES | {"a": ("It is joy.", "It is peace.")}),
        types=content(x=("rose", 7, True, ""), y=("ant", " ")),
        two=json.dumps(content()).encode() + b"\n" + json.dumps(content()).encode(),
    )
    lines = faults(directory)
    expected = [
        ("bar.jsonl: targ1.examples: ", "at least 2"),
        ("both.jsonl: targ2.examples: ", "'ant' is in targ1 too"),
        ("both.jsonl: targ2.examples: ", "'flea' is in targ1 too"),
        ("cut.jsonl: ", "one JSON object in UTF-8"),
        ("keys.jsonl: targ1: ", "required"),
        ("keys.jsonl: attr2: ", "required"),
        ("keys.jsonl: target1: ", "did you mean 'targ1'"),
        ("latin.jsonl: ", "UTF-8"),
        ("none.jsonl: attr1.examples: ", "has 0, at least 2"),
        ("none.jsonl: attr2.examples: ", "has 0, at least 2"),
        ("one.jsonl: attr1.examples: ", "has 1, at least 2"),
        ("one.jsonl: attr2.examples: ", "has 1, at least 2"),
        ("sent-foo.jsonl: attr1.examples[0]: ", "'It is joy.'"),
        ("types.jsonl: targ1.examples[1]: ", "a text was expected"),
        ("types.jsonl: targ1.examples[2]: ", "True"),
        ("types.jsonl: targ1.examples[3]: ", "''"),
        ("types.jsonl: targ2.examples[1]: ", "' '"),
        ("two.jsonl: ", "one JSON object"),
    ]
    for start, piece in expected:
        assert any(line.startswith(start) and piece in line for line in lines), (start, piece, lines)
    assert len(lines) == len(expected), lines


def test_a_faulty_word_file_does_not_make_its_sentences_faulty(write):
    (line,) = faults(write(foo=content(x=("rose",)), sent__foo=content(**SENTENCES | {"x": ("A rose.", "My rose.")})))
    assert line.startswith("foo.jsonl: targ1.examples: ")


def test_a_key_that_stands_twice_is_told(write):
    twice = json.dumps(content())[:-1] + ', "targ1": {"category": "another", "examples": ["oak", "ash"]}}'
    (line,) = faults(write(foo=twice.encode()))
    assert line.startswith("foo.jsonl: ")
    assert "targ1" in line


def test_a_word_that_stands_twice_in_a_set_is_told(write):
    (line,) = faults(write(foo=content(x=("rose", "tulip", "rose"))))
    assert line.startswith("foo.jsonl: targ1.examples")
    assert "'rose'" in line


@pytest.mark.parametrize("role", ROLES)
def test_a_set_of_one_word_is_told_with_its_key_and_how_many_are_needed(write, role):
    (line,) = faults(write(foo=content(**{role.lower(): ("calm",)})))
    assert line == f"foo.jsonl: {KEYS[role]}.examples: has 1, at least 2 are needed"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("words", [{}, {"foo": content()}], ids=["sentences alone", "with their words"])
def test_a_set_of_one_sentence_is_told_with_its_key_and_how_many_are_needed(write, words, role):
    set_ = role.lower()
    (line,) = faults(write(sent__foo=content(**SENTENCES | {set_: SENTENCES[set_][:1]}), **words))
    assert line == f"sent-foo.jsonl: {KEYS[role]}.examples: has 1, at least 2 are needed"


def test_a_word_in_both_targets_is_told_with_its_file_and_key(write):
    (line,) = faults(write(foo=content(y=("ant", "rose", "flea"))))
    assert line == "foo.jsonl: targ2.examples: 'rose' is in targ1 too; keep one"


@pytest.mark.parametrize(
    "words", [{}, {"foo": content(y=("ant", "flea", "Rose"))}], ids=["sentences alone", "with their words"]
)
def test_a_sentence_in_both_targets_is_told_once_with_its_file_and_key(write, words):
    x, y = ("Rose is here.", "Tulips are things.", "Rose is here."), (*SENTENCES["y"], "Rose is here.", "Rose is here.")
    (line,) = faults(write(sent__foo=content(**SENTENCES | {"x": x, "y": y}), **words))
    assert line == "sent-foo.jsonl: targ2.examples: 'Rose is here.' is in targ1 too; keep one"


def test_only_the_targets_may_not_share_a_word(write):
    (form,) = load_tests([str(write(foo=content(a=("rose", "love"), b=("love", "ant"))))])
    assert [form.texts(role) for role in "AB"] == [["rose", "love"], ["love", "ant"]]


@pytest.mark.parametrize("what", [[], None, "rose", 7])
def test_a_file_that_is_no_object_is_told_without_the_parser_s_words(write, what):
    (line,) = faults(write(foo=what))
    assert line.startswith("foo.jsonl: ")
    assert "object" in line
    assert "_File" not in line
    assert "dictionary" not in line


def test_the_fault_of_an_empty_text_says_what_was_expected_in_words(write):
    (line,) = faults(write(foo=content(a=("love", " "))))
    assert line.startswith("foo.jsonl: attr1.examples[1]: ")
    assert "pattern" not in line


def test_one_file_of_the_format_in_place_of_its_directory_is_told_what_to_give(write):
    directory = write(foo=content())
    with pytest.raises(DefinitionError, match="directory"):
        load_tests([str(directory / "foo.jsonl")])


def test_yaml_beside_the_json_files_is_not_passed_over_in_silence(write):
    directory = write(foo=content())
    (directory / "own.yaml").write_text("no such section: 1\n", encoding="utf-8")
    with pytest.raises(DefinitionError, match=r"own\.yaml"):
        load_tests([str(directory)])


# Any test of one's own, there and back


@cache
def published_grammar():
    return load_definitions([published_directory()]).grammar


def written_and_read(words, class_of):
    """The forms of a test, made from its words, and what comes back from its files; None where they are refused."""
    grammar = published_grammar()
    own = Grammar(class_of, grammar.plurals, grammar.articles, grammar.pronouns, grammar.templates)
    recipes = (FormRecipe("word", "own", {}), FormRecipe("sent", "sent-own", {}))
    test = AssociationTest("own", "own", "own", "own", {role: f"set {role}" for role in ROLES}, words, recipes)
    made = list(expand(test, own))
    with TemporaryDirectory() as directory:
        export_tests(made, Path(directory))
        try:
            return made, read_published_format(Path(directory), own, {})
        except DefinitionError:
            return made, None


CLASSES = ["name", "adjective", "verb", "mass_noun", "count_noun", "person_noun", "possessive_pronoun"]
# No vowel: in no template. No s, h or y: one regular plural, which is no other word.
consonants = st.text("bcdfgjklmnpqrtvwxzBDF", min_size=3, max_size=6)


@st.composite
def four_sets(draw, word):
    """Sets of two to four words; the targets share none."""
    targets = draw(st.lists(word, min_size=4, max_size=8, unique_by=str.lower))
    n_x = draw(st.integers(max(2, len(targets) - 4), min(4, len(targets) - 2)))
    attributes = [draw(st.lists(word, min_size=2, max_size=4, unique_by=str.lower)) for _ in "AB"]
    return dict(zip(ROLES, map(tuple, (targets[:n_x], targets[n_x:], *attributes)), strict=True))


@settings(deadline=None, max_examples=50)
@given(words=four_sets(consonants), names=st.lists(st.sampled_from(CLASSES), min_size=16, max_size=16))
def test_words_that_no_template_holds_always_come_back(words, names):
    class_of = dict(zip(dict.fromkeys(word for role in ROLES for word in words[role]), names, strict=False))
    made, read = written_and_read(words, class_of)
    assert read is not None
    assert [spans(form) for form in read] == [spans(form) for form in made]


CLASHING = ["it", "is", "he", "person", "thing", "people", "here", "this", "fly", "flies", "new", "news", "us", "US"]
FINE = {"Y": ("ant", "bee"), "A": ("bcd", "bcg"), "B": ("bcf", "bck")}


@settings(deadline=None, max_examples=50)
@given(
    words=four_sets(st.sampled_from([*CLASHING, "rose", "African American", "American"])), name=st.sampled_from(CLASSES)
)
@example(words=FINE | {"X": ("it", "rose")}, name="mass_noun")
@example(words=FINE | {"X": ("person", "rose")}, name="name")
@example(words=FINE | {"X": ("new", "news")}, name="count_noun")
@example(words=FINE | {"X": ("us", "rose"), "Y": ("US", "bee")}, name="name")
@example(words=FINE | {"X": ("new", "rose"), "Y": ("news", "bee")}, name="count_noun")
def test_words_that_templates_hold_come_back_as_they_were_or_are_told(words, name):
    class_of = dict.fromkeys((word for role in ROLES for word in words[role]), name)
    made, read = written_and_read(words, class_of)
    assert read is None or [spans(form) for form in read] == [spans(form) for form in made]
