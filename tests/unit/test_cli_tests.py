"""`distseat tests`, `distseat models`, `distseat --version`: what they print, where, and how they exit."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distseat import __version__
from distseat.cli import main
from distseat.definitions import ROLES
from distseat.models import CATALOGUE

COMMAND = Path(sys.executable).with_name("distseat")
HEAVY = ("ray", "torch", "tensorflow", "pandas", "transformers")
OWN = """
tests:
  - {id: own1, title: Own, X: flowers, Y: insects, A: pleasant_8, B: unpleasant_8, forms: [word, sent]}
"""


@pytest.fixture
def distseat(capsys):
    """Run the command line in this process; its exit code, standard output and standard error."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    yield run
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(OWN, encoding="utf-8")
    return path


def lines(text):
    return [line.split("\t") for line in text.splitlines()]


# list


def test_list_shows_every_test_once_with_its_group_forms_and_title(distseat, published):
    code, out, err = distseat("tests", "list")
    assert (code, err) == (0, "")
    rows = lines(out)
    assert rows[0] == ["weat1", "neutral", "word sent", "C1: Flowers/Insects, P/U"]
    assert [row[0] for row in rows] == list(dict.fromkeys(form.test_id for form in published))
    assert len(rows) == 30
    double_bind = next(row for row in rows if row[0] == "weat_hdb_competent")
    assert double_bind[2] == "word sent unbleached paragraph_1 paragraph_1- paragraph_1+3-"


def test_list_shows_the_tests_of_the_sources_asked_for(distseat, own):
    assert lines(distseat("tests", "list", "--tests", own)[1]) == [["own1", "own", "word sent", "Own"]]
    both = lines(distseat("tests", "list", "--tests", "published", "--tests", own)[1])
    assert len(both) == 31


# show


def test_show_outlines_the_sets_and_forms_of_a_test(distseat):
    code, out, err = distseat("tests", "show", "weat1")
    assert (code, err) == (0, "")
    first, x, _, a, _, word, sent = out.splitlines()
    assert first == "weat1: C1: Flowers/Insects, P/U (group neutral)"
    assert x.startswith("X flowers (25): aster, clover, hyacinth, ")
    assert a.startswith("A pleasant_25 (25): caress, freedom, ")
    assert word == "form word [word]: X 25, Y 25, A 25, B 25; first: 'aster'"
    assert sent == "form sent [sent c-word]: X 350, Y 350, A 215, B 250; first: 'This is an aster.'"


def test_show_a_form_prints_every_stimulus_with_role_word_span_and_text(distseat, published):
    code, out, err = distseat("tests", "show", "weat1", "--form", "sent")
    assert (code, err) == (0, "")
    form = next(form for form in published if form.file == "sent-weat1")
    expected = [[role, s.word, f"{s.start}:{s.end}", s.text] for role in ROLES for s in form.stimuli[role]]
    assert lines(out) == expected
    assert len(expected) == 1165


def test_show_an_unknown_id_exits_2_and_names_the_nearest(distseat):
    code, out, err = distseat("tests", "show", "weat_1")
    assert (code, out) == (2, "")
    assert err.startswith("error: no test has the id 'weat_1'; did you mean 'weat1'")
    assert "`distseat tests list`" in err


def test_show_an_unknown_form_exits_2_and_names_the_known_ones(distseat):
    code, out, err = distseat("tests", "show", "weat1", "--form", "sentence")
    assert (code, out) == (2, "")
    assert "--form" in err
    assert "weat1 has the forms word, sent" in err


def test_show_a_test_of_sentences_without_words_shows_the_sentences(distseat, tmp_path):
    keys = ("targ1", "targ2", "attr1", "attr2")
    sets = {key: {"category": key, "examples": [f"One {key}.", f"Two {key}."]} for key in keys}
    (tmp_path / "sent-foo.jsonl").write_text(json.dumps(sets), encoding="utf-8")
    code, out, _ = distseat("tests", "show", "foo", "--tests", tmp_path)
    assert code == 0
    assert "X targ1 (2): One targ1., Two targ1." in out


# validate


def test_validate_counts_what_a_sound_file_holds(distseat, own):
    code, out, err = distseat("tests", "validate", own)
    assert (code, err) == (0, "")
    pleasant, unpleasant = 5 * 4 + 2 * 3 + 14, 4 + 5 * 3 + 2 * 14  # mass nouns, adjectives, count nouns
    n_stimuli = (25 + 25 + 8 + 8) + (25 * 14 + 25 * 14 + pleasant + unpleasant)
    assert re.fullmatch(rf"{re.escape(str(own))}: 1 tests?, 2 forms, {n_stimuli} stimuli; no faults\n", out)


def test_validate_a_faulty_file_exits_2_and_tells_every_fault_on_stderr(distseat, tmp_path):
    path = tmp_path / "faulty.yaml"
    path.write_text(OWN.replace("flowers", "flower").replace("unpleasant_8", "unplesant_8"), encoding="utf-8")
    code, out, err = distseat("tests", "validate", path)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "error: test files: 2 faults",
        "  faulty.yaml: tests[0].X: no word list is named 'flower'; did you mean 'flowers'",
        "  faulty.yaml: tests[0].B: no word list is named 'unplesant_8'; did you mean 'unpleasant_8'",
    ]


@pytest.mark.parametrize("content", [b"tests: [", b"\xff\xfe", b"hello", b"tests: 1", b"word_lists: {a: [2020-99-99]}"])
def test_whatever_is_wrong_with_a_file_ends_in_a_message_and_never_in_a_traceback(distseat, tmp_path, content):
    path = tmp_path / "faulty.yaml"
    path.write_bytes(content)
    code, out, err = distseat("tests", "validate", path)
    assert (code, out) == (2, "")
    assert err.startswith("error: test files: 1 fault\n  faulty.yaml: ")


def test_validate_a_missing_file_exits_2_and_names_it(distseat, tmp_path):
    code, out, err = distseat("tests", "validate", tmp_path / "gone.yaml")
    assert (code, out) == (2, "")
    assert str(tmp_path / "gone.yaml") in err


# export


def test_export_writes_every_form_and_what_it_wrote_is_valid(distseat, tmp_path):
    code, out, err = distseat("tests", "export", "--format", "sent-bias", tmp_path / "json")
    assert (code, err) == (0, "")
    assert out == f"{tmp_path / 'json'}: 70 files in the format sent-bias\n"
    assert len(list((tmp_path / "json").glob("*.jsonl"))) == 70
    code, out, _ = distseat("tests", "validate", tmp_path / "json")
    assert code == 0
    assert out == f"{tmp_path / 'json'}: 30 tests, 70 forms, 18221 stimuli; no faults\n"


def test_export_of_one_s_own_tests_holds_them_alone(distseat, own, tmp_path):
    distseat("tests", "export", "--tests", own, tmp_path / "json")
    assert {path.name for path in (tmp_path / "json").iterdir()} == {"own1.jsonl", "sent-own1.jsonl"}


def test_export_onto_a_file_exits_2_and_says_why(distseat, own):
    code, out, err = distseat("tests", "export", own)
    assert (code, out) == (2, "")
    assert "cannot write the tests" in err
    assert own.read_text(encoding="utf-8") == OWN


def test_export_in_an_unknown_format_exits_2_and_names_the_known_one(distseat, tmp_path):
    code, _, err = distseat("tests", "export", "--format", "csv", tmp_path / "json")
    assert code == 2
    assert "sent-bias" in err
    assert not (tmp_path / "json").exists()


# models, version, help


def test_models_list_shows_the_catalogue(distseat):
    code, out, err = distseat("models", "list")
    assert (code, err) == (0, "")
    header, *rows = lines(out)
    assert header == ["name", "source", "parameters", "pooling", "revision"]
    assert [row[0] for row in rows] == [spec.name for spec in CATALOGUE.values()]
    assert {len(row) for row in rows} == {5}
    mini = next(row for row in rows if row[0] == "all-MiniLM-L6-v2")
    assert mini[4].startswith("1110a243")


def test_version_prints_the_version_and_exits_0(distseat):
    assert distseat("--version") == (0, f"distseat {__version__}\n", "")


@pytest.mark.parametrize("arguments", [("tets",), ("tests", "lst"), ("tests", "show"), ("tests", "list", "--nope")])
def test_a_wrong_command_line_exits_2_with_its_usage_on_stderr(distseat, arguments):
    code, out, err = distseat(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: " in err


def test_the_console_command_is_installed_and_exits_as_main_does(tmp_path):
    listed = subprocess.run([COMMAND, "tests", "list"], capture_output=True, text=True, check=True, timeout=60)
    assert len(listed.stdout.splitlines()) == 30
    failed = subprocess.run(
        [COMMAND, "tests", "validate", "gone.yaml"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.startswith("error: test files: 1 fault\n  gone.yaml: cannot be read")


# Quick to start


def loaded_by(code):
    """Which heavy packages a fresh interpreter has loaded after some code."""
    ended = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint('loaded', *sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", ended], capture_output=True, text=True, check=True, timeout=60)
    loaded = ran.stdout.splitlines()[-1].split()
    assert loaded[0] == "loaded"
    assert "distseat" in loaded
    return [name for name in HEAVY if name in loaded]


def test_the_import_of_distseat_loads_nothing_heavy():
    assert loaded_by("import distseat") == []


@pytest.mark.parametrize(
    "arguments", [["--help"], ["sweep", "--help"], ["tests", "list"], ["models", "list"]], ids=" ".join
)
def test_help_and_lists_load_nothing_heavy(arguments):
    assert loaded_by(f"from distseat.cli import main; main({arguments})") == []
