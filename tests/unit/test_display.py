"""What a person sees of results."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from distseat.cli.display import results_table
from distseat.stores import ResultRow

ROW = ResultRow(
    model="m", revision="sha256:0123456789", encoding="sent", pooling="mean", layer=3, test="t", form="sent",
    file="sent-t", title="Title", group="own", n_x=8, n_y=8, n_a=8, n_b=8, statistic=0.1, effect_size=0.5,
    p_value=0.02, p_floor=1e-5, method="sampled", seed=0, subtokens_x=1.0, subtokens_y=1.0, position_0_share=None,
    options="{}", versions="{}", p_adjusted=0.04, decision="retain", family_size=2, alpha=0.01,
)  # fmt: skip


def shown(*rows: ResultRow) -> str:
    sink = io.StringIO()
    results_table(rows, Console(file=sink, width=100))
    return sink.getvalue()


def test_each_revision_of_a_model_has_a_table_of_its_own():
    text = shown(ROW, replace(ROW, revision="step2", effect_size=0.99))
    assert "m 01234567 mean layer 3" in text
    assert "m step2 mean layer 3" in text
    assert "+0.50" in text
    assert "+0.99" in text


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
        ({}, "+0.50   0.02 "),
        ({"p_value": None, "effect_size": None, "decision": None, "void_reason": "alike"}, "void"),
    ],
)
def test_a_cell_says_d_p_and_the_decision(changes, cell):
    assert cell in shown(replace(ROW, **changes))


def test_only_the_last_layer_is_shown_and_all_rows_are_counted():
    text = shown(ROW, replace(ROW, layer=0, effect_size=-0.77, decision="reject"))
    assert "-0.77" not in text
    assert "1 of 2 rows are significant, 0 are void" in text
