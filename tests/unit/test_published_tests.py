"""The published tests, sentence for sentence: digests of every set, the rows of the table, spans and counts."""

import csv
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from distseat.definitions import ROLES, load_definitions, published_directory
from distseat.errors import DefinitionError
from distseat.templates import load_tests, select_tests
from distseat.templates.inflection import indefinite, plural_of, singular_of

REFERENCE = Path(__file__).parents[1] / "reference"


def table(name):
    with (REFERENCE / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


SETS = [
    (row["test"], row["set"], int(row["n_sentences"]), row["sha256_of_newline_joined"])
    for row in table("sentence_sets.tsv")
]
ROWS = sorted(
    {(row["section"], row["test"], row["encoding"]) for row in table("published/tan_celis_2019_tables_7_8.tsv")}
)


@pytest.fixture(scope="module")
def by_file(published):
    return {form.file: form for form in published}


@pytest.fixture(scope="module")
def grammar():
    return load_definitions([published_directory()]).grammar


def every_stimulus(forms):
    return [(form, role, stimulus) for form in forms for role in ROLES for stimulus in form.stimuli[role]]


def table_row(form, encoding):
    """Our row as Tan & Celis name it; None for the paragraphs, which their tables do not have."""
    if form.form.startswith("paragraph"):
        return None
    return form.group, form.title, encoding + " (u)" * (form.form == "unbleached")


@pytest.mark.parametrize(("file", "role", "n_sentences", "digest"), SETS, ids=[f"{row[0]}-{row[1]}" for row in SETS])
def test_every_published_set_has_the_published_sentences(by_file, file, role, n_sentences, digest):
    texts = by_file[file].texts(role)
    assert len(texts) == n_sentences
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest() == digest


def test_the_digests_cover_all_four_sets_of_every_sentence_form_and_no_other(published):
    assert len(SETS) == 160
    sentence_files = [form.file for form in published if form.form != "word"]
    assert sorted((file, role) for file, role, *_ in SETS) == sorted((f, r) for f in sentence_files for r in ROLES)


def test_a_word_form_holds_the_words_of_its_sentences_in_their_order(published, by_file):
    for form in published:
        for role in ROLES:
            words = list(dict.fromkeys(stimulus.word for stimulus in form.stimuli[role]))
            assert words == by_file[form.test_id].texts(role), (form.file, role)


def test_the_30_tests_have_70_forms_and_104_rows(published):
    assert len({form.test_id for form in published}) == 30
    assert len(published) == 70
    kinds = Counter(
        "paragraph" if form.form.startswith("paragraph") else encoding
        for form in published
        for encoding in form.encodings
    )
    assert kinds == {"word": 30, "sent": 34, "c-word": 34, "paragraph": 6}


def test_row_keys_and_file_names_are_unique(published):
    keys = [(form.test_id, form.form, encoding) for form in published for encoding in form.encodings]
    assert len(keys) == len(set(keys)) == 104
    assert len({form.file for form in published}) == 70


def test_paragraphs_are_measured_as_sentences_only(published):
    paragraphs = [form for form in published if form.form.startswith("paragraph")]
    assert [form.encodings for form in paragraphs] == [("sent",)] * 6
    assert {form.form for form in paragraphs} == {"paragraph_1", "paragraph_1-", "paragraph_1+3-"}


@pytest.mark.parametrize("row", ROWS, ids=["-".join(row) for row in ROWS])
def test_every_row_of_tan_and_celis_is_one_of_ours(published, row):
    section, title, encoding = row
    ours = [table_row(form, each) for form in published for each in form.encodings]
    assert ours.count((section.lower(), title, encoding)) == 1


def test_no_row_of_ours_is_missing_from_tan_and_celis(published):
    ours = {table_row(form, encoding) for form in published for encoding in form.encodings} - {None}
    assert ours == {(section.lower(), title, encoding) for section, title, encoding in ROWS}
    assert len(ROWS) == 98


def test_every_span_lies_on_its_word_or_an_inflection_of_it(published, grammar):
    for form, role, s in every_stimulus(published):
        shapes = {s.word.lower(), plural_of(s.word, grammar).lower(), singular_of(s.word, grammar).lower()}
        assert s.text[s.start : s.end].lower() in shapes, (form.file, role, s)


def test_every_span_ends_at_the_edges_of_words(published):
    for form, role, s in every_stimulus(published):
        neighbours = s.text[: s.start][-1:] + s.text[s.end :][:1]
        assert not any(character.isalnum() for character in neighbours), (form.file, role, s)


def test_every_sentence_is_its_template_filled_as_python_fills_formats(published, grammar):
    for form, role, s in every_stimulus(published):
        if form.form == "word":
            assert s.template == ""
            assert (s.text, s.start, s.end) == (s.word, 0, len(s.word))
            continue
        he = grammar.pronouns.get(s.word, "")
        his = {"he": "his", "she": "her", "": ""}[he]
        singular = singular_of(s.word, grammar)
        filled = s.template.format(
            word=s.word,
            singular=singular,
            a_singular=f"{indefinite(singular, grammar)} {singular}",
            plural=plural_of(s.word, grammar),
            he=he,
            He=he.title(),
            his=his,
            His=his.title(),
        )
        assert s.text == filled[0].upper() + filled[1:], (form.file, role, s)


def test_every_template_recorded_is_one_of_the_template_file(published, grammar):
    known = {"  ".join(parts) for texts in grammar.templates.values() for parts in texts}
    used = {s.template for form, _, s in every_stimulus(published) if form.form != "word"}
    assert used == known


def test_the_published_files_hold_18_221_strings_of_which_5_488_are_distinct(published):
    stimuli = [stimulus for _, _, stimulus in every_stimulus(published)]
    assert len(stimuli) == 18_221
    assert len({stimulus.text for stimulus in stimuli}) == 5_488
    assert len({(stimulus.text, stimulus.start, stimulus.end) for stimulus in stimuli}) == 5_488
    assert len({stimulus.key for stimulus in stimuli}) == 5_488


def test_two_forms_differ_in_their_digest_and_a_reload_does_not(published):
    digests = [form.digest for form in published]
    assert len(set(digests)) == 70
    assert [form.digest for form in load_tests(["published"])] == digests


def test_tests_are_selected_by_id_in_the_order_of_the_files(published):
    chosen = select_tests(published, ["weat2", "weat1"])
    assert [(form.test_id, form.form) for form in chosen] == [
        ("weat1", "word"),
        ("weat1", "sent"),
        ("weat2", "word"),
        ("weat2", "sent"),
    ]
    assert select_tests(published, None) == published


def test_every_unknown_id_is_told_with_the_nearest_one(published):
    with pytest.raises(DefinitionError) as caught:
        select_tests(published, ["weat1", "weat_11", "weat_hdb_competant"])
    assert "'weat_11'; did you mean 'weat+11'" in str(caught.value)
    assert "'weat_hdb_competant'; did you mean 'weat_hdb_competent'" in str(caught.value)
    assert "`distseat tests list`" in str(caught.value)


def test_an_id_in_capitals_is_still_near_to_the_known_one(published):
    with pytest.raises(DefinitionError, match="'WEAT1'; did you mean 'weat1'"):
        select_tests(published, ["WEAT1"])
