"""What a person sees of results."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from distseat.cli.display import results_table
from distseat.stores import ResultRow

ROW = ResultRow(
    model="m", revision="sha256:0123456789", encoding="sent", pooling="mean", layer=3, postprocessing="none", test="t",
    form="sent", file="sent-t", title="Title", group="own", n_x=8, n_y=8, n_a=8, n_b=8, statistic=0.1, effect_size=0.5,
    p_value=0.02, p_floor=1e-5, method_used="sampled", alternative="greater", seed=0, subtokens_x=1.0, subtokens_y=1.0,
    position_0_share=None, options="{}", versions="{}", p_adjusted=0.04, decision="retain", family_size=2, alpha=0.01,
)  # fmt: skip
BY_WORD = {
    "effect_size_word": 0.6,
    "p_value_word": 0.03,
    "p_adjusted_word": 0.06,
    "decision_word": "retain",
    "family_size_word": 5,
}
VOID = {"p_value": None, "effect_size": None, "decision": None, "void_reason": "alike"}


def shown(*rows: ResultRow, width: int = 100) -> str:
    sink = io.StringIO()
    results_table(rows, Console(file=sink, width=width))
    return sink.getvalue()


def legend(*rows: ResultRow) -> str:
    return " ".join(shown(*rows, width=400).split("\n")[-5:])


def test_each_revision_of_a_model_has_a_table_of_its_own():
    text = shown(ROW, replace(ROW, revision="step2", effect_size=0.99))
    assert "m 01234567 mean layer 3" in text
    assert "m step2 mean layer 3" in text
    assert "+0.50" in text
    assert "+0.99" in text


def test_each_postprocessing_has_a_table_of_its_own():
    centred = [replace(row, postprocessing="center") for row in (ROW, replace(ROW, test="u", effect_size=0.98))]
    text = shown(ROW, *centred, replace(ROW, postprocessing="standardize", effect_size=0.97))
    titles = [line.strip() for line in text.split("\n") if "layer 3" in line]
    assert titles == [f"m 01234567 mean layer 3{how}" for how in ("", " center", " standardize")]
    assert (text.count("+0.50"), text.count("+0.98"), text.count("+0.97")) == (2, 1, 1)


def test_two_tests_of_one_title_have_a_line_each():
    text = shown(ROW, replace(ROW, test="u", effect_size=-0.25))
    assert text.count("Title") == 2
    assert "+0.50" in text
    assert "-0.25" in text


@pytest.mark.parametrize("title", ["Jobs [gender]", "Jobs [/x]", "[red]Jobs"])
def test_a_title_is_text_and_no_markup(title):
    assert title in shown(replace(ROW, title=title))


@pytest.mark.parametrize(
    ("changes", "cell"),
    [
        ({"decision": "reject", "p_value": 1e-5}, "+0.50  1e-05**"),
        ({"p_value": 0.004}, "+0.50  0.004*"),
        ({"p_value": 0.01}, "+0.50   0.01*"),
        ({}, "+0.50   0.02"),
        ({"decision": "reject", "p_value": 3e-68}, "+0.50  3e-68**"),
        ({"decision": "reject", "p_value": 2.2250738585072014e-308}, "+0.50 2e-308**"),
        ({"decision": "reject", "p_value": 1e-5, "decision_word": "reject"}, "+0.50  1e-05**†"),
        ({"p_value": 0.004, "decision_word": "reject"}, "+0.50  0.004*†"),
        ({"decision_word": "reject"}, "+0.50   0.02†"),
        ({"decision_word": "retain"}, "+0.50   0.02"),
        (VOID, "void"),
    ],
)
def test_a_cell_says_d_p_and_both_decisions(changes, cell):
    (line,) = (line for line in shown(replace(ROW, **changes)).split("\n") if "Title" in line)
    assert line.split("Title")[1].strip() == cell


def test_the_marks_are_explained_with_what_they_were_corrected_over():
    rows = [replace(ROW, **BY_WORD), ROW, replace(ROW, **VOID)]
    told = legend(*rows)
    assert "* p <= 0.01, ** after correction over 2 rows" in told
    assert "† by word, after correction over 5 tests" in told
    assert "Sentences of one word are no independent evidence: trust the mark by word." in told
    assert "A test can show bias; that none is shown does not mean that there is none." in told


def test_only_the_last_layer_is_shown_and_all_rows_are_counted():
    early = replace(ROW, layer=0, effect_size=-0.77, decision="reject", **BY_WORD | {"decision_word": "reject"})
    text = shown(ROW, early, replace(ROW, test="v", **VOID), replace(ROW, test="u", **BY_WORD))
    assert "-0.77" not in text
    assert "significant: 1 of 3 rows by stimulus, 1 of 2 by word; 1 rows are void" in text


def test_a_run_without_any_words_says_so_and_marks_none():
    text = legend(ROW, replace(ROW, test="u"))
    assert "0 of 0 by word" in text
    assert "after correction over 0 tests" in text
    assert "†" not in shown(ROW).split("d, p of stimuli")[0]


def test_a_run_of_void_rows_alone_is_shown():
    text = shown(replace(ROW, **VOID), replace(ROW, test="u", **VOID))
    assert text.count("void") == 3
    assert "significant: 0 of 0 rows by stimulus, 0 of 0 by word; 2 rows are void" in text


def test_a_sub_token_rule_of_its_own_column_where_there_are_several():
    cword = [replace(ROW, encoding="c-word", pooling=f"{which}-subword") for which in ("first", "last")]
    one, several = shown(ROW, cword[0]), shown(ROW, *cword)
    assert "first-subword" not in one
    assert {"first-subword", "last-subword"} < set(several.split())
    assert several.count("+0.50") == 3


def test_the_numbers_of_a_narrow_terminal_are_whole():
    cells = [replace(ROW, encoding=encoding, p_value=1e-5, decision="reject", decision_word="reject", title="A" * 60)
             for encoding in ("word", "sent", "c-word")]  # fmt: skip
    text = shown(*cells, width=80)
    assert text.count("+0.50  1e-05**†") == 3
