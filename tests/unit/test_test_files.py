"""Test files of one's own, the faults of faulty ones, the places of the published ones, and what a stimulus refuses."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.definitions import Stimulus, load_definitions, published_directory
from distseat.errors import DefinitionError
from distseat.templates import load_tests

TEST = """
tests:
  - id: own1
    title: Own
    X: flowers
    Y: insects
    A: pleasant_25
    B: unpleasant_25
    forms: [word, sent]
"""
OWN_X = TEST.replace("X: flowers", "X: mine")


def with_forms(forms):
    return TEST.replace("[word, sent]", forms)


@pytest.fixture
def write(tmp_path):
    """Write a test file; text is encoded as UTF-8."""

    def written(content, name="own.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else dedent(content).encode())
        return path

    return written


def told(*paths):
    """The message that faulty sources end with."""
    with pytest.raises(DefinitionError) as caught:
        load_tests([str(path) for path in paths])
    return str(caught.value)


def faults(*paths):
    """Its faults, a line each."""
    heading, *lines = told(*paths).splitlines()
    assert heading == f"test files: {len(lines)} fault{'s' * (len(lines) > 1)}"
    return [line.strip() for line in lines]


def assert_told(lines, expected):
    """Every expected (key, words of the message) has its line, and there is no other line."""
    for key, *pieces in expected:
        assert any(
            line.startswith(f"own.yaml: {key}: ") and all(piece in line for piece in pieces) for line in lines
        ), (key, pieces, lines)
    assert len(lines) == len(expected), lines


# Files as they should be


def test_a_file_may_mix_published_lists_with_its_own_lists_classes_and_templates(write):
    path = write(
        """
        word_lists:
          trees: [oak, ash, hourglass tree, "yes"]
          feelings: [calm, uneasy]
        word_classes:
          count_noun: [oak, ash, hourglass tree]
          adjective: [uneasy]
          exclamation: ["yes"]
        plurals: {oak: oaken}
        articles: {an: [hourglass]}
        templates:
          exclamation: ["{word}, she said."]
          feeling: ["It feels {word}.", ["{word}?", "Yes."]]
        tests:
          - id: trees
            title: "Trees/Insects, feelings"
            X: trees
            Y: insects
            A: feelings
            B: unpleasant_8
            forms:
              word:
              sent: {A: feeling, file: my-trees}
        """
    )
    word, sent = load_tests([str(path)])
    assert (word.test_id, word.form, word.file, word.group) == ("trees", "word", "trees", "own")
    assert (sent.test_id, sent.form, sent.file, sent.title) == ("trees", "sent", "my-trees", "Trees/Insects, feelings")
    assert sent.labels == {"X": "trees", "Y": "insects", "A": "feelings", "B": "unpleasant_8"}
    assert word.texts("X") == ["oak", "ash", "hourglass tree", "yes"]
    assert len(word.texts("Y")) == 25
    assert len(sent.texts("X")) == 3 * 14 + 1
    assert sent.texts("X")[-1] == "Yes, she said."
    assert {"This is an oak.", "Oaken are things.", "An hourglass tree is a thing."} <= set(sent.texts("X"))
    assert sent.texts("A") == ["It feels calm.", "Calm?  Yes.", "It feels uneasy.", "Uneasy?  Yes."]
    assert "This will kill." not in sent.texts("B")
    assert sent.texts("B")[0] == "This is agony."


def test_the_tests_of_a_file_are_its_own_and_follow_the_sources_before_it(write):
    path = write(TEST)
    assert {form.test_id for form in load_tests([str(path)])} == {"own1"}
    both = load_tests(["published", str(path)])
    assert [form.test_id for form in both[-2:]] == ["own1", "own1"]
    assert len(both) == 72


def test_a_test_of_one_s_own_may_have_the_id_of_a_published_one_that_is_not_used_beside_it(write):
    forms = load_tests([str(write(TEST.replace("own1", "weat1")))])
    assert [form.test_id for form in forms] == ["weat1", "weat1"]


def test_a_directory_is_all_its_yaml_files_together(write, tmp_path):
    write(OWN_X.replace("own1", "first"), "own/a.yaml")
    write(TEST.replace("own1", "second"), "own/b.yml")
    write("word_lists: {mine: [rose, tulip]}", "own/c.yaml")
    write("not a test file", "own/notes.txt")
    forms = load_tests([str(tmp_path / "own")])
    assert [form.test_id for form in forms] == ["first", "first", "second", "second"]
    assert forms[0].texts("X") == ["rose", "tulip"]


def test_the_order_of_a_directory_is_that_of_the_names_whatever_the_ending(write, tmp_path):
    for name in ("b.yaml", "a.yml", "c.yml"):
        write(with_forms("[word]").replace("own1", name[0]), f"own/{name}")
    assert [form.test_id for form in load_tests([str(tmp_path / "own")])] == ["a", "b", "c"]


def test_without_the_published_files_a_file_stands_on_its_own(write):
    path = write("word_lists: {x: [a, b], y: [c, d]}\n" + TEST.replace("insects", "y").replace("flowers", "x"))
    with pytest.raises(DefinitionError, match="no word list is named 'pleasant_25'"):
        load_definitions([path], with_published=False)


def test_yaml_s_merge_key_merges(write):
    path = write(
        """
        tests:
          - &first
            {id: one, title: One, X: flowers, Y: insects, A: pleasant_8, B: unpleasant_8, forms: [word]}
          - <<: *first
            id: two
        """
    )
    assert [form.test_id for form in load_tests([str(path)])] == ["one", "two"]


def test_braces_of_the_text_are_doubled_and_are_no_placeholder(write):
    path = write("templates: {t: ['{{he}} {word}']}\n" + with_forms("{sent: {X: t}}"))
    (form,) = load_tests([str(path)])
    assert form.texts("X")[0] == "{he} aster"


words = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=10)


@settings(deadline=None)
@given(mine=st.lists(words, min_size=2, max_size=6, unique=True))
def test_any_word_without_blanks_may_stand_in_a_list(tmp_path_factory, mine):
    path = tmp_path_factory.mktemp("any") / "own.yaml"
    content = {
        "word_lists": {"mine": mine, "other": ["another target", "one more"]},
        "tests": [
            {"id": "own", "title": "Own", "X": "mine", "Y": "other", "A": "mine", "B": "mine", "forms": ["word"]}
        ],
    }
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")  # JSON is YAML
    (test,) = load_definitions([path], with_published=False).tests
    assert [test.words[role] for role in "XAB"] == [tuple(mine)] * 3


# Faults, one at a time: (file, (key, what the message says), ...)


FAULTS = {
    "unknown key, nearest hint": (
        TEST.replace("title: Own", "title: Own\n    groop: gender"),
        ("tests[0].groop", "no such key", "did you mean 'group'"),
    ),
    "unknown section, nearest hint": (
        "word_list: {mine: [a]}",
        ("word_list", "no such key", "did you mean 'word_lists'"),
    ),
    "missing keys": (
        "tests: [{id: own1, title: Own, X: flowers, Y: insects, A: pleasant_8}]",
        ("tests[0].B", "required"),
        ("tests[0].forms", "required"),
    ),
    "yes and no in a list": (
        "word_lists: {mine: [yes, maybe, no]}",
        ("word_lists.mine[0]", "a text was expected", "yes/no", "True", "in quotes"),
        ("word_lists.mine[2]", "a text was expected", "yes/no", "False", "in quotes"),
    ),
    "yes as a class's word": (
        "word_classes: {adjective: [on]}",
        ("word_classes.adjective[0]", "yes/no", "in quotes"),
    ),
    "a number as a word": ("word_lists: {mine: [rose, 42]}", ("word_lists.mine[1]", "a text was expected", "42")),
    "a number as a word asks for quotes": ("word_lists: {mine: [rose, 42]}", ("word_lists.mine[1]", "in quotes")),
    "nothing as a word": ("word_lists: {mine: [rose, ~]}", ("word_lists.mine[1]", "a text was expected", "None")),
    "empty attribute set": (
        "word_lists: {mine: []}\n" + TEST.replace("A: pleasant_25", "A: mine"),
        ("tests[0].A", "'mine'", "0 words", "at least 2"),
    ),
    "list without words": ("word_lists: {mine: }", ("word_lists.mine", "list", "None")),
    "text in place of a list": ("word_lists: {mine: rose}", ("word_lists.mine", "list", "'rose'")),
    "one-word target": (
        "word_lists: {mine: [rose]}\n" + OWN_X,
        ("tests[0].X", "'mine'", "has 1 word", "at least 2 are needed"),
    ),
    "one-word attribute sets": (
        "word_lists: {calm: [calm], joy: [joy]}\n"
        + TEST.replace("A: pleasant_25", "A: calm").replace("B: unpleasant_25", "B: joy"),
        ("tests[0].A", "word list 'calm' has 1 word, at least 2 are needed"),
        ("tests[0].B", "word list 'joy' has 1 word, at least 2 are needed"),
    ),
    "word in both targets": (
        "word_lists: {mine: [rose, ant]}\n" + OWN_X,
        ("tests[0].Y", "'ant' is in X too"),
    ),
    "unknown list, nearest hint": (
        TEST.replace("X: flowers", "X: flower"),
        ("tests[0].X", "no word list is named 'flower'", "did you mean 'flowers'"),
    ),
    "word twice in a list": (
        "word_lists: {mine: [rose, tulip, rose]}\n" + OWN_X,
        ("word_lists.mine", "'rose' stands more than once"),
    ),
    "word without class": (
        "word_lists: {mine: [rose, oak, ash]}\n" + OWN_X,
        ("tests[0].forms.sent.X", "no class for 2 words, such as 'oak'", "word_classes"),
    ),
    "word in two classes": (
        "word_classes: {adjective: [oak], verb: [oak]}",
        ("word_classes.verb", "'oak'", "adjective"),
    ),
    "word of a published class in another": (
        "word_classes: {adjective: [rose]}",
        ("word_classes.adjective", "'rose'", "count_noun"),
    ),
    "word with two articles": ("articles: {a: [honor]}", ("articles.a", "'honor'", "an")),
    "name with two pronouns": ("pronouns: {she: [John]}", ("pronouns.she", "'John'", "he")),
    "third article": ("articles: {the: [oak]}", ("articles.the", "'an' or 'a'")),
    "class without templates": (
        "word_classes: {tree: [oak, ash]}\nword_lists: {mine: [oak, ash]}\n" + OWN_X,
        ("tests[0].forms.sent.X", "no templates are named 'tree'"),
    ),
    "unknown templates, nearest hint": (
        with_forms("{sent: {X: nam}}"),
        ("tests[0].forms.sent.X", "no templates are named 'nam'", "did you mean 'name'"),
    ),
    "unknown placeholder, nearest hint": (
        "templates: {t: ['{word} is {sigular}.']}",
        ("templates.t[0]", "unknown placeholder {sigular}", "known are word,", "did you mean 'singular'"),
    ),
    "template without the word": (
        "templates: {t: ['{word}.', 'He is here.']}",
        ("templates.t[1]", "{word}, {singular}, {a_singular}, {plural}"),
    ),
    "no template": ("templates: {t: []}", ("templates.t", "empty", "at least one")),
    "lone brace": ("templates: {t: ['A brace { and {word}.']}", ("templates.t[0]", "{{")),
    "conversion of a placeholder": ("templates: {t: ['{word!r}.']}", ("templates.t[0]", "{word!r}")),
    "width of a placeholder": ("templates: {t: ['{word:>10}.']}", ("templates.t[0]", "{word:>10}")),
    "pronoun missing": (
        with_forms("{paragraph_1-: {X: vice_president_competent_1-}}"),
        ("tests[0].forms.paragraph_1-.X", "pronoun of 25 words, such as 'aster'", "pronouns"),
    ),
    "form named wrongly": (
        with_forms("[word, sentence, paragraph]"),
        ("tests[0].forms.sentence", "word, sent, unbleached or paragraph_"),
        ("tests[0].forms.paragraph", "word, sent, unbleached or paragraph_"),
    ),
    "form twice": (with_forms("[sent, word, sent]"), ("tests[0].forms", "'sent'")),
    "form word with templates": (
        with_forms("{word: {X: name}}"),
        ("tests[0].forms.word", "takes no templates"),
    ),
    "unknown key of a form": (
        with_forms("{sent: {templates: name}}"),
        ("tests[0].forms.sent.templates", "no such key"),
    ),
    "no form": (with_forms("[]"), ("tests[0].forms", "at least 1")),
    "two tests of one id": (
        TEST + TEST.replace("tests:\n", ""),
        ("tests[1].id", "'own1'", "tests[0]", "unique"),
    ),
    "list of a published name": (
        "word_lists: {flowers: [rose, tulip]}",
        ("word_lists.flowers", "words.yaml", "another name"),
    ),
    "templates of a published name": (
        "templates: {name: ['{word}!']}",
        ("templates.name", "templates.yaml", "another name"),
    ),
    "plural of a published word": ("plurals: {man: mans}", ("plurals.man", "grammar.yaml")),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_told_with_its_file_its_key_and_what_was_expected(write, case):
    content, *expected = FAULTS[case]
    assert_told(faults(write(content)), expected)


# Faults of the YAML itself


def test_a_key_that_stands_twice_is_told_with_its_line(write):
    message = told(write("word_lists:\n  mine: [rose]\n  mine: [tulip]\n"))
    assert "own.yaml: " in message
    assert "the key 'mine' stands twice" in message
    assert "line 3" in message


def test_a_section_that_stands_twice_is_told_with_its_line(write):
    message = told(write("word_lists: {a: [rose]}\nplurals: {}\nword_lists: {b: [tulip]}\n"))
    assert "the key 'word_lists' stands twice" in message
    assert "line 3" in message


@pytest.mark.parametrize(
    "content",
    [
        "tests: [\n",
        "tests:\n\t- id: own1\n",
        "templates:\n  t:\n    - {word} is here.\n",
        "tests: *nowhere\n",
        "a: b\n---\nc: d\n",
        "tests: !!python/object/apply:os.getcwd []\n",
        "word_lists: {mine: [\x00]}\n",
    ],
    ids=["cut", "tab", "unquoted braces", "alias", "two documents", "object", "control character"],
)
def test_a_file_that_is_not_plain_yaml_is_told(write, content):
    assert "own.yaml: is not valid YAML" in told(write(content))


@pytest.mark.parametrize(
    "content",
    [
        "word_lists: {mine: [2020-13-45]}\n",
        "word_lists: {mine: [!!int rose]}\n",
        "plurals: {{word}: words}\n",
        "[a]: b\n",
    ],
    ids=["no such day", "no number", "mapping as key", "list as key"],
)
def test_a_value_that_yaml_cannot_build_is_a_fault_of_its_file(write, content):
    assert "own.yaml: " in told(write(content))


def test_a_file_that_is_not_utf8_is_told(write):
    message = told(write("word_lists: {mine: [caf\N{LATIN SMALL LETTER E WITH ACUTE}]}".encode("latin-1")))
    assert "own.yaml: " in message
    assert "UTF-8" in message


def test_a_missing_file_is_told_with_its_whole_path(tmp_path):
    (line,) = faults(tmp_path / "gone.yaml")
    assert line.startswith("gone.yaml: ")
    assert str(tmp_path / "gone.yaml") in line
    assert "No such file" in line


def test_a_directory_without_test_files_is_told(tmp_path):
    assert f"{tmp_path}: no .yaml file" in told(tmp_path)


# All at once


def test_all_faults_of_a_file_are_told_at_once(write):
    path = write(
        """
        word_lists: {mine: [rose], none: [], twice: [oak, oak]}
        word_classes: {adjective: [elm], verb: [elm]}
        templates: {t: ["{wrod}.", "{word} {she}."], u: []}
        tests:
          - {id: own1, title: One, X: mine, Y: insect, A: none, B: twice, forms: [word, sentence, sent]}
          - {id: own1, title: Two, X: flowers, Y: insects, A: joy, B: unpleasant_8, forms: {word: {X: name}}}
        """
    )
    assert_told(
        faults(path),
        [
            ("word_classes.verb", "'elm'"),
            ("templates.t[0]", "{wrod}"),
            ("templates.t[0]", "does not hold the word"),
            ("templates.t[1]", "{she}"),
            ("templates.u", "empty"),
            ("tests[0].X", "at least 2"),
            ("tests[0].Y", "'insect'"),
            ("tests[0].A", "at least 2"),
            ("word_lists.twice", "'oak' stands more than once"),
            ("tests[0].forms.sentence", "was expected"),
            ("tests[0].forms.sent.B", "'oak'"),
            ("tests[1].id", "'own1'"),
            ("tests[1].A", "'joy'"),
            ("tests[1].forms.word", "takes no templates"),
        ],
    )


def test_all_wrong_types_and_keys_of_a_file_are_told_at_once(write):
    path = write(
        """
        word_lists: {mine: [yes, 3], a b: [x]}
        plural: {}
        tests: [{id: 7, titel: x, X: flowers, Y: insects, A: pleasant_8, B: unpleasant_8, forms: 1}]
        """
    )
    keys = [line.split(": ")[1] for line in faults(path)]
    assert {"word_lists.mine[0]", "word_lists.mine[1]", "plural", "tests[0].id", "tests[0].titel"} <= set(keys)
    assert {"tests[0].title", "tests[0].forms"} <= set(keys)
    assert len(keys) == 8


def test_the_faults_of_all_files_of_a_directory_are_told_at_once(write, tmp_path):
    write("word_lists: {a: [on]}", "own/a.yaml")
    write(TEST.replace("X: flowers", "X: flowrs"), "own/b.yaml")
    write(b"\xff", "own/c.yaml")
    write("templates: {t: [none]}", "own/d.yaml")
    lines = faults(tmp_path / "own")
    for start in ("a.yaml: word_lists.a[0]: ", "b.yaml: tests[0].X: ", "c.yaml: is not", "d.yaml: templates.t[0]: "):
        assert sum(line.startswith(start) for line in lines) == 1, (start, lines)
    assert len(lines) == 4


def test_a_wrong_type_hides_no_other_fault_of_its_file(write):
    lines = faults(write("word_lists: {mine: [yes, oak]}\n" + TEST.replace("X: flowers", "X: flowrs")))
    assert any(line.startswith("own.yaml: word_lists.mine[0]: ") for line in lines), lines
    assert any(line.startswith("own.yaml: tests[0].X: ") for line in lines), lines


def test_a_fault_of_a_list_does_not_make_its_users_faulty(write, tmp_path):
    write("word_lists: {mine: [yes, oak]}", "own/lists.yaml")
    write(OWN_X.replace(", sent", ""), "own/tests.yaml")
    (line,) = faults(tmp_path / "own")
    assert line.startswith("lists.yaml: word_lists.mine[0]: ")


def test_one_id_in_two_files_of_a_directory_is_told_with_both_places(write, tmp_path):
    write(TEST, "own/a.yaml")
    write(TEST, "own/b.yaml")
    (line,) = faults(tmp_path / "own")
    assert line.startswith("b.yaml: tests[0].id: 'own1' is the id of a.yaml: tests[0] too")


def test_one_id_in_two_sources_is_told_with_both_sources(write):
    message = told(write(TEST, "first.yaml"), write(TEST, "second.yaml"))
    assert "two tests have the id 'own1'" in message
    assert "first.yaml" in message
    assert "second.yaml" in message


def test_an_id_of_the_published_tests_is_not_taken_beside_them(write):
    assert "two tests have the id 'weat1'" in told("published", write(TEST.replace("own1", "weat1")))


def test_an_id_that_two_sources_have_is_one_fault_and_not_one_of_every_form(write):
    path = write(TEST)
    assert told(path, path).splitlines()[0] == "tests: 1 fault"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("words.yaml", "word_lists: {flowers: [rose, tulip]}\n"),
        ("templates.yaml", "templates: {count_noun: ['My {word}.']}\n"),
        ("grammar.yaml", "plurals: {man: mans}\n"),
    ],
)
def test_a_file_that_has_the_name_of_a_published_one_may_not_replace_its_content(write, name, content):
    (line,) = faults(write(content + TEST, name))
    assert "already" in line


def test_two_files_of_one_name_may_not_define_one_list(write):
    paths = [write("word_lists: {mine: [oak, ash]}", "a/own.yaml"), write("word_lists: {mine: [elm]}", "b/own.yaml")]
    with pytest.raises(DefinitionError, match=r"word_lists\.mine"):
        load_definitions(paths)


# In the words of the field, not of the parser


PARSER_INSIDES = {
    "list in place of sections": "- one\n- two\n",
    "text in place of sections": "only words\n",
    "nothing in place of a test": "tests: [~]",
    "text in place of forms": with_forms("word"),
    "no form": with_forms("[]"),
    "blank in an id": TEST.replace("own1", "'own 1'"),
    "blank before a title": TEST.replace("title: Own", "title: ' Own'"),
    "blank after a word": "word_lists: {mine: ['rose ', tulip]}",
    "empty word": "word_lists: {mine: ['']}",
    "blank in a list's name": "word_lists: {a b: [rose, tulip]}",
    "yes as a list's name": "word_lists: {yes: [rose, tulip]}",
    "template without quotes": "templates: {t: [{word}]}",
    "key twice": "word_lists: {a: [x]}\nword_lists: {b: [y]}",
}


@pytest.mark.parametrize("case", PARSER_INSIDES)
def test_a_message_does_not_speak_of_the_parser_s_insides(write, case):
    message = told(write(PARSER_INSIDES[case]))
    jargon = ["dictionary", "instance of", "string should", "pattern", "constrained-str", "[key]", "<unicode", "item"]
    assert not [word for word in jargon if word in message], message


# Where the published files lie


def published_layout(place):
    place.mkdir(parents=True)
    (place / "tests.yaml").touch()
    return place


def test_an_installed_package_carries_the_published_files_inside(tmp_path):
    place = published_layout(tmp_path / "site-packages" / "distseat" / "data" / "tests")
    assert published_directory(tmp_path / "site-packages" / "distseat") == place


def test_a_checkout_has_the_published_files_beside_the_package(tmp_path):
    (tmp_path / "distseat").mkdir()
    place = published_layout(tmp_path / "data" / "tests")
    assert published_directory(tmp_path / "distseat") == place


def test_the_files_inside_the_package_go_before_those_beside_it(tmp_path):
    published_layout(tmp_path / "data" / "tests")
    inside = published_layout(tmp_path / "distseat" / "data" / "tests")
    assert published_directory(tmp_path / "distseat") == inside


def test_where_the_published_files_are_missing_both_places_are_told(tmp_path):
    (tmp_path / "data" / "tests").mkdir(parents=True)
    with pytest.raises(DefinitionError) as caught:
        published_directory(tmp_path / "distseat")
    assert str(tmp_path / "distseat" / "data" / "tests") in str(caught.value)
    assert str(tmp_path / "data" / "tests") in str(caught.value)
    assert "install distseat again, or send data/ along" in str(caught.value)


def test_a_copy_as_ray_s_working_dir_makes_it_reads_its_own_files(repository, tmp_path):
    copy = tmp_path / "working_dir_files"
    shutil.copytree(repository / "distseat", copy / "distseat", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(repository / "data", copy / "data")
    code = (
        "import distseat\n"
        "from distseat.definitions import published_directory\n"
        "from distseat.templates import load_tests\n"
        "print(distseat.__file__, published_directory(), len(load_tests()), sep='\\n')\n"
    )
    environment = os.environ | {"PYTHONPATH": str(copy)}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=copy, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    package, published, n_forms = ran.stdout.splitlines()
    assert Path(package) == (copy / "distseat" / "__init__.py").resolve()
    assert Path(published) == (copy / "data" / "tests").resolve()
    assert n_forms == "70"


# Stimulus


def test_a_stimulus_without_text_is_refused():
    with pytest.raises(ValueError, match="a stimulus has an empty text; remove it from its set"):
        Stimulus("", "rose", 0, 0)


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (8, 12), (5, 4), (12, 12)])
def test_a_span_outside_its_text_is_refused(start, end):
    expected = rf"span {start}:{end} lies outside the 11 characters of 'Red are all'; give the span .* end exclusive"
    with pytest.raises(ValueError, match=expected):
        Stimulus("Red are all", "red", start, end)


def test_a_word_with_an_empty_span_is_refused():
    with pytest.raises(ValueError, match=r"the span of 'rose' in 'This is a rose\.' is empty; give the characters"):
        Stimulus("This is a rose.", "rose", 10, 10)


def test_a_sentence_may_come_without_its_word():
    s = Stimulus("This is a rose.", "", 0, 0)
    assert (s.word, s.start, s.end, s.template) == ("", 0, 0, "")


def test_stimuli_of_one_text_and_span_have_one_key_and_others_another():
    rose = Stimulus("Rose is a rose.", "rose", 0, 4, "{word} is a {word}.")
    assert rose.key == Stimulus("Rose is a rose.", "Rose", 0, 4).key
    others = [Stimulus("Rose is a rose.", "rose", 10, 14), Stimulus("Rose is a rose!", "rose", 0, 4)]
    assert len({rose.key, *(other.key for other in others)}) == 3
    assert len(rose.key) == 32


@settings(deadline=None)
@given(text=st.text(min_size=1), start=st.integers(-3, 30), end=st.integers(-3, 30))
def test_a_stimulus_with_a_word_is_made_just_where_its_span_holds_a_character(text, start, end):
    if 0 <= start < end <= len(text):
        assert Stimulus(text, "rose", start, end).text[start:end]
    else:
        with pytest.raises(ValueError, match="span"):
            Stimulus(text, "rose", start, end)
