"""Rows, words and families: what is written comes back, in Parquet for every reader and in the table of text."""

import csv
import dataclasses
import hashlib
import io
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.errors import StorageError
from distseat.stores import (
    FamilyMember,
    ResultRow,
    RowKey,
    RowWords,
    commit_members,
    commit_rows,
    commit_words,
    publish_results,
    read_members,
    read_rows,
    read_words,
)

TSV_COLUMNS = [
    "model",
    "options",
    "test",
    "p_value",
    "effect_size",
    "num_targ1",
    "num_targ2",
    "num_attr1",
    "num_attr2",
    "decision",
    "p_value_word",
    "effect_size_word",
    "decision_word",
]
MEASURED = [
    "statistic",
    "effect_size",
    *(
        f"{name}{unit}"
        for unit in ("", "_word")
        for name in ("p_value", "log10_p", "p_standard_error", "p_floor", "p_less", "method_used")
    ),
    *("n_words_x", "n_words_y", "effect_size_word", "interval_low", "interval_high"),
    *(f"leave_{what}_{end}" for what in ("word", "template") for end in ("low", "high")),
    *("mleat_x", "mleat_y", "same", "ripa"),
    *(f"{what}_{pair}" for what in ("cos", "sd") for pair in ("xa", "xb", "ya", "yb")),
]
DECIDED = [f"{name}{unit}" for unit in ("", "_word") for name in ("p_adjusted", "decision", "family_size")]
NULLABLE = [*MEASURED, *DECIDED]
KEY = list(RowKey._fields)


def row(**changes: object) -> ResultRow:
    """An ordinary row of a decided run."""
    measured = {name: (i + 1) / 7 for i, name in enumerate(MEASURED)}
    measured |= dict.fromkeys(("method_used", "method_used_word"), "importance") | {"n_words_x": 25, "n_words_y": 24}
    decided = {"p_adjusted": 0.00644, "decision": "reject", "family_size": 644}
    by_word = {"p_adjusted_word": 0.03, "decision_word": "retain", "family_size_word": 30}
    plain = ResultRow(
        model="bert-base-cased",
        revision="0123abc",
        encoding="c-word",
        pooling="first-subword",
        layer=12,
        postprocessing="center",
        test="weat1",
        form="sent",
        file="sent-weat1",
        title="C1: Flowers/Insects, P/U",
        group="neutral",
        n_x=175,
        n_y=150,
        n_a=160,
        n_b=155,
        **measured,
        alternative="greater",
        seed=0,
        subtokens_x=1.25,
        subtokens_y=2.5,
        position_0_share=None,
        options='{"dtype": "float32"}',
        versions='{"numpy": "2.4"}',
        **decided,
        **by_word,
        alpha=0.01,
    )
    plain = dataclasses.replace(plain, statistic=0.1 + 0.2, effect_size=1 / 3, p_value=1e-5, p_value_word=2e-3)
    return dataclasses.replace(plain, **changes)


def void(**changes: object) -> ResultRow:
    return row(**dict.fromkeys(NULLABLE) | {"void_reason": "all targets have one association score"} | changes)


def words(n: int = 0, **changes: object) -> RowWords:
    """The words of a row; each `n` has other ones."""
    plain = RowWords(
        key=row().key._replace(layer=n),
        words_x=("aster", "rose", f"x{n}"),
        words_y=("ant", "fly"),
        scores_x=(0.1 + 0.2, -1 / 3, n / 7),
        scores_y=(1e-17, -0.5),
    )
    return dataclasses.replace(plain, **changes)


def member(n: int = 0, **changes: object) -> FamilyMember:
    return dataclasses.replace(
        FamilyMember(key=row().key._replace(layer=n), family="0f" * 16, p_adjusted=(n + 1) / 7), **changes
    )


CHANGE_BYTES = """
import sys
from pathlib import Path
import numpy as np
from distseat.errors import StorageError
from distseat.stores import read_rows

path = Path(sys.argv[1])
content, expected = path.read_bytes(), read_rows(path)
rng = np.random.default_rng(int(sys.argv[2]))
for position in rng.integers(0, len(content), size=80).tolist():
    changed = bytearray(content)
    changed[position] ^= int(rng.integers(1, 256))
    print(f"byte {position} of {len(content)} from {content[position]} to {changed[position]}", flush=True)
    path.write_bytes(changed)
    try:
        found = read_rows(path)
    except StorageError:
        continue
    if found != expected:
        sys.exit("other rows were read, and nothing was said")
"""
UNDECIDED = dict.fromkeys([*DECIDED, "alpha"])
ROWS = [
    row(),
    void(test="weat2", file="sent-weat2"),
    row(test="weat3", **UNDECIDED),
    row(layer=0, position_0_share=1.0),
]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=20)
FLOATS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
VALUES = {
    "float | None": FLOATS,
    "int": INTEGERS,
    "int | None": st.none() | INTEGERS,
}


@st.composite
def any_row(draw, texts=TEXTS) -> ResultRow:
    """A row with any value in every field that has an open type."""
    values = VALUES | {"str": texts, "str | None": st.none() | texts}
    changes = {}
    for field in dataclasses.fields(ResultRow):
        told = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
        if told in values:
            changes[field.name] = draw(values[told])
    for name in ("decision", "decision_word"):
        changes[name] = draw(st.sampled_from([None, "reject", "retain"]))
    return row(**changes)


KEYS = st.builds(RowKey, *(INTEGERS if name == "layer" else TEXTS for name in KEY))
SCORED_WORDS = st.lists(st.tuples(TEXTS, st.floats(allow_nan=False, allow_infinity=False)), max_size=4)


@st.composite
def any_words(draw) -> RowWords:
    x, y = draw(SCORED_WORDS), draw(SCORED_WORDS)
    return RowWords(
        key=draw(KEYS),
        words_x=tuple(word for word, _ in x),
        words_y=tuple(word for word, _ in y),
        scores_x=tuple(score for _, score in x),
        scores_y=tuple(score for _, score in y),
    )


ANY_MEMBER = st.builds(FamilyMember, key=KEYS, family=TEXTS, p_adjusted=st.floats(allow_nan=False))


# ---- rows


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(any_row(), max_size=5))
def test_rows_come_back_as_they_were(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "unit.parquet"
    assert commit_rows(path, rows) is True
    assert read_rows(path) == rows


def test_nulls_stay_nulls(tmp_path):
    commit_rows(tmp_path / "unit.parquet", ROWS)
    found = read_rows(tmp_path / "unit.parquet")
    assert found == ROWS
    assert all(getattr(found[1], name) is None for name in NULLABLE)
    assert all(getattr(found[2], name) is None for name in UNDECIDED)


def test_no_field_but_those_of_a_key_is_left_out_above():
    by_hand = {name for name in dataclasses.asdict(row()) if name not in NULLABLE}
    assert by_hand == {
        *KEY, "file", "title", "group", "n_x", "n_y", "n_a", "n_b", "alternative", "seed", "subtokens_x", "subtokens_y",
        "position_0_share", "void_reason", "options", "versions", "alpha",
    }  # fmt: skip


def test_a_rows_key_is_what_makes_it_one_of_its_kind():
    key = row().key
    assert key == ("bert-base-cased", "0123abc", "c-word", "first-subword", 12, "center", "weat1", "sent")
    assert all(row(**{name: getattr(key, name)}).key == key for name in KEY)
    for name in KEY:
        other = 3 if name == "layer" else "other"
        assert row(**{name: other}).key == key._replace(**{name: other})


def test_numbers_have_the_types_that_formats_tells(tmp_path):
    commit_rows(tmp_path / "unit.parquet", [void()])
    types = {field.name: str(field.type) for field in pq.read_schema(tmp_path / "unit.parquet")}
    whole = {name for name, told in types.items() if told.startswith("int")}
    assert whole == {
        *("layer", "n_x", "n_y", "n_a", "n_b", "n_words_x", "n_words_y", "seed", "family_size", "family_size_word")
    }
    texts = {name for name, told in types.items() if told == "string"}
    assert {"method_used", "method_used_word", "decision", "decision_word", "void_reason", "alternative"} < texts
    assert {told for name, told in types.items() if name not in whole | texts} == {"double"}


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_every_seed_that_a_configuration_may_have_is_held(tmp_path, seed):
    commit_rows(tmp_path / "unit.parquet", [row(seed=seed)])
    assert read_rows(tmp_path / "unit.parquet")[0].seed == seed


@pytest.mark.parametrize("p", [2.2250738585072014e-308, 5e-324, 1.0])
def test_every_depth_of_a_p_is_held(tmp_path, p):
    commit_rows(tmp_path / "unit.parquet", [row(p_value=p, log10_p=-5000.25)])
    (found,) = read_rows(tmp_path / "unit.parquet")
    assert (found.p_value, found.log10_p) == (p, -5000.25)


def test_a_column_of_nulls_alone_keeps_its_type(tmp_path):
    for name, rows in (("void", [void(**UNDECIDED)]), ("plain", [row()]), ("none", [])):
        commit_rows(tmp_path / name, rows)
    schemas = [pq.read_schema(tmp_path / name) for name in ("void", "plain", "none")]
    assert schemas[0].equals(schemas[1], check_metadata=True)
    assert schemas[0].equals(schemas[2], check_metadata=True)


def test_every_field_is_a_column_in_order(tmp_path):
    commit_rows(tmp_path / "unit.parquet", ROWS)
    assert pq.read_schema(tmp_path / "unit.parquet").names == [field.name for field in dataclasses.fields(ResultRow)]


def test_the_first_commit_of_a_unit_is_kept(tmp_path):
    path = tmp_path / "unit.parquet"
    assert commit_rows(path, [row()]) is True
    assert commit_rows(path, [void()]) is False
    assert read_rows(path) == [row()]


def test_one_content_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        commit_rows(tmp_path / name, ROWS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_name_of_a_directory_adds_no_column(tmp_path):
    """Readers of Parquet take name=value in a path for a column of a partitioned table."""
    path = tmp_path / "seed=3" / "model=other" / "unit.parquet"
    commit_rows(path, ROWS)
    assert read_rows(path) == ROWS


# ---- words, families


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(any_words(), max_size=5))
def test_words_come_back_as_they_were(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "unit.parquet"
    assert commit_words(path, rows) is True
    assert read_words(path) == rows


@settings(max_examples=40, deadline=None)
@given(members=st.lists(ANY_MEMBER, max_size=5))
def test_members_come_back_as_they_were(members, tmp_path_factory):
    path = tmp_path_factory.mktemp("families") / "test.parquet"
    assert commit_members(path, members) is True
    assert read_members(path) == members


def test_words_of_one_test_are_read_alone(tmp_path):
    rows = [words(n, key=row(test=f"weat{n % 3}", layer=n).key) for n in range(7)]
    commit_words(tmp_path / "unit.parquet", rows)
    for test in ("weat0", "weat1", "weat2", "weat"):
        found = read_words(tmp_path / "unit.parquet", test=test)
        assert found == [each for each in rows if each.key.test == test]
    assert len(read_words(tmp_path / "unit.parquet", test="weat0")) == 3


def test_the_first_commit_of_words_and_of_a_family_is_kept(tmp_path):
    assert [commit_words(tmp_path / "a", [words(n)]) for n in (0, 1)] == [True, False]
    assert read_words(tmp_path / "a") == [words(0)]
    assert [commit_members(tmp_path / "b", [member(n)]) for n in (0, 1)] == [True, False]
    assert read_members(tmp_path / "b") == [member(0)]


def test_one_content_of_words_or_of_a_family_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        commit_words(tmp_path / f"words-{name}", [words(n) for n in range(9)])
        commit_members(tmp_path / f"family-{name}", [member(n) for n in range(9)])
    for what in ("words", "family"):
        assert (tmp_path / f"{what}-a").read_bytes() == (tmp_path / f"{what}-b").read_bytes()


def test_a_unit_without_words_and_a_test_without_members_are_files_too(tmp_path):
    commit_words(tmp_path / "words.parquet", [])
    commit_members(tmp_path / "family.parquet", [])
    assert read_words(tmp_path / "words.parquet") == read_words(tmp_path / "words.parquet", test="weat1") == []
    assert read_members(tmp_path / "family.parquet") == []


# ---- damage


KINDS: dict[str, tuple[Callable[[Path], bool], Callable[[Path], list[object]]]] = {
    "rows": (lambda path: commit_rows(path, ROWS), read_rows),
    "words": (lambda path: commit_words(path, [words(n) for n in range(50)]), read_words),
    "members": (lambda path: commit_members(path, [member(n) for n in range(50)]), read_members),
}


DAMAGED = r"unit\.parquet: cannot be read \(.+\); delete it and run again"


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), kind=st.sampled_from(list(KINDS)))
def test_a_file_cut_short_anywhere_is_told(share, kind, tmp_path_factory):
    commit, read = KINDS[kind]
    path = tmp_path_factory.mktemp("cut") / "unit.parquet"
    commit(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StorageError, match=DAMAGED):
        read(path)


@pytest.mark.parametrize("column", ["words_x.list.element", "scores_y.list.element", "test"])
def test_a_flipped_bit_in_a_page_of_words_is_told(tmp_path, column):
    path = tmp_path / "unit.parquet"
    many = [words(n, key=row(test=f"{n}" * 9).key) for n in range(100)]
    commit_words(path, many)
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunk = next(group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == column)
    end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
    content = bytearray(path.read_bytes())
    content[end - 3] ^= 0x20
    path.write_bytes(content)
    with pytest.raises(StorageError, match=DAMAGED):
        read_words(path)


@pytest.mark.parametrize("column", ["effect_size", "p_value", "versions"])
def test_a_flipped_bit_in_a_page_is_told(tmp_path, column):
    path = tmp_path / "unit.parquet"
    commit_rows(path, [row(effect_size=i / 7, p_value=(i + 1) / 101, versions=f"{i}" * 9) for i in range(100)])
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunk = group.column(pq.read_schema(path).names.index(column))
    end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
    content = bytearray(path.read_bytes())
    content[end - 3] ^= 0x20
    path.write_bytes(content)
    with pytest.raises(StorageError, match=DAMAGED):
        read_rows(path)


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_byte_anywhere_is_told_or_changes_no_row(tmp_path, seed):
    """In a process of its own: damage that ends the reading process, as in a library's check, shows as its status."""
    path = tmp_path / "unit.parquet"
    commit_rows(path, ROWS)
    command = [sys.executable, "-c", CHANGE_BYTES, str(path), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"after the change of {done.stdout.splitlines()[-1]}: {done.stderr[:2000]}"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"model\tp_value\n" * 9])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_parquet_is_told(tmp_path, content, kind):
    (tmp_path / "unit.parquet").write_bytes(content)
    with pytest.raises(StorageError, match=DAMAGED):
        KINDS[kind][1](tmp_path / "unit.parquet")


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file_is_told(tmp_path, kind):
    with pytest.raises(StorageError, match=r"unit\.parquet: cannot be read"):
        KINDS[kind][1](tmp_path / "unit.parquet")


@pytest.mark.parametrize(("kind", "other"), [(a, b) for a in KINDS for b in KINDS if a != b])
def test_a_file_of_another_kind_is_told(tmp_path, kind, other):
    KINDS[kind][0](tmp_path / "unit.parquet")
    with pytest.raises(StorageError, match=r"unit\.parquet: .*; delete it and run again"):
        KINDS[other][1](tmp_path / "unit.parquet")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", ["a column less", "a column more", "another type", "another format", "no format"])
def test_a_file_of_another_version_is_told(tmp_path, change, kind):
    commit, read = KINDS[kind]
    path = tmp_path / "unit.parquet"
    commit(path)
    table = pq.read_table(path)
    layer = table.schema.get_field_index("layer")
    changed = {
        "a column less": lambda: table.drop_columns(table.column_names[-1:]),
        "a column more": lambda: table.append_column("site", pa.array(["x"] * len(table))),
        "another type": lambda: table.set_column(layer, "layer", table["layer"].cast(pa.int64())),
        "another format": lambda: table.replace_schema_metadata({"distseat": '{"results_format": 1}'}),
        "no format": lambda: table.replace_schema_metadata(None),
    }[change]()
    pq.write_table(changed, path)
    with pytest.raises(StorageError, match=r"written by another version of distseat; delete it and run again"):
        read(path)


def test_results_of_the_first_version_are_not_taken_for_those_of_this_one(tmp_path):
    path = tmp_path / "unit.parquet"
    old = {"model": ["m"], "layer": pa.array([1], pa.int32()), "p_value": [0.5], "method": ["sampled"]}
    pq.write_table(pa.table(old).replace_schema_metadata({"distseat": '{"results_format": 1}'}), path)
    with pytest.raises(StorageError, match=r"written by another version of distseat"):
        read_rows(path)


# ---- the published table


def publish(directory: Path, rows: Sequence[ResultRow], *units: Sequence[RowWords]) -> dict[str, str]:
    paths = [directory / f"unit{i}.parquet" for i in range(len(units))]
    for path, unit in zip(paths, units, strict=True):
        commit_words(path, unit)
    return publish_results(directory / "out", rows, paths)


def table_of(path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8")), delimiter="\t"))


def test_the_table_has_the_published_columns_and_the_decisions(tmp_path):
    publish_results(tmp_path, ROWS, [])
    assert (tmp_path / "results.tsv").read_bytes().splitlines()[0] == "\t".join(TSV_COLUMNS).encode()
    options = "revision=0123abc;encoding=c-word;pooling=first-subword;layer=12;postprocessing=center"
    sizes = ["175", "150", "160", "155"]
    by_word = ["0.002", repr(row().effect_size_word), "retain"]
    assert table_of(tmp_path / "results.tsv")[1:4] == [
        ["bert-base-cased", options, "sent-weat1", "1e-05", "0.3333333333333333", *sizes, "reject", *by_word],
        ["bert-base-cased", options, "sent-weat2", "NA", "NA", *sizes, "void", "NA", "NA", "NA"],
        ["bert-base-cased", options, "sent-weat1", "1e-05", "0.3333333333333333", *sizes, "void", *by_word[:2], "NA"],
    ]


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(any_row(LINES), max_size=5))
def test_the_table_holds_every_row_and_every_digit(rows, tmp_path_factory):
    directory = tmp_path_factory.mktemp("table")
    publish_results(directory, rows, [])
    header, *found = table_of(directory / "results.tsv")
    assert header == TSV_COLUMNS
    assert len(found) == len(rows)
    for given_row, values in zip(rows, found, strict=True):
        told = dict(zip(header, values, strict=True))
        assert told["model"] == given_row.model
        assert told["test"] == given_row.file
        for column in ("p_value", "effect_size", "p_value_word", "effect_size_word"):
            value = getattr(given_row, column)
            assert (told[column] == "NA") if value is None else (float(told[column]) == value)
        sizes = [int(told[column]) for column in TSV_COLUMNS[5:9]]
        assert sizes == [given_row.n_x, given_row.n_y, given_row.n_a, given_row.n_b]
        assert told["decision"] == (given_row.decision or "void")
        assert told["decision_word"] == (given_row.decision_word or "NA")


def test_publishing_again_replaces_all_three_files(tmp_path):
    publish(tmp_path, ROWS, [words(0), words(1)])
    publish_results(tmp_path / "out", ROWS[:1], [])
    assert read_rows(tmp_path / "out" / "results.parquet") == ROWS[:1]
    assert len(table_of(tmp_path / "out" / "results.tsv")) == 2
    assert pq.read_metadata(tmp_path / "out" / "words.parquet").num_rows == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["results.parquet", "results.tsv", "words.parquet"]


def test_published_rows_come_back(tmp_path):
    publish_results(tmp_path, ROWS, [])
    assert read_rows(tmp_path / "results.parquet") == ROWS


def test_publishing_tells_the_digest_of_each_file(tmp_path):
    digests = publish(tmp_path, ROWS, [words(0)])
    out = tmp_path / "out"
    assert digests == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}


def test_the_same_results_are_published_as_the_same_bytes(tmp_path):
    units = [[words(n) for n in range(5)], [], [words(n) for n in range(5, 9)]]
    assert publish(tmp_path / "a", ROWS, *units) == publish(tmp_path / "b", ROWS, *units)


def test_words_that_cannot_be_read_are_told_and_nothing_is_published(tmp_path):
    with pytest.raises(StorageError, match=r"absent\.parquet: cannot be read"):
        publish_results(tmp_path / "out", ROWS, [tmp_path / "absent.parquet"])
    assert not list(tmp_path.rglob("results.*"))


# ---- published words


def long_form(units: Sequence[Sequence[RowWords]]) -> list[tuple[object, ...]]:
    return sorted(
        (*each.key, name, word, score)
        for unit in units
        for each in unit
        for name, names, scores in (("X", each.words_x, each.scores_x), ("Y", each.words_y, each.scores_y))
        for word, score in zip(names, scores, strict=True)
    )


WORD_COLUMNS = [*KEY, "set", "word", "score"]


@settings(max_examples=40, deadline=None)
@given(units=st.lists(st.lists(any_words(), max_size=3), max_size=3))
def test_published_words_are_a_line_for_each_word_of_each_row(units, tmp_path_factory):
    directory = tmp_path_factory.mktemp("words")
    publish(directory, [], *units)
    table = pq.read_table(directory / "out" / "words.parquet")
    assert table.column_names == WORD_COLUMNS
    assert sorted(tuple(line.values()) for line in table.to_pylist()) == long_form(units)


UNITS = [
    [words(0), words(1, words_x=("a",), scores_x=(0.25,))],
    [],
    [words(2, key=row(model="gpt2", test="weat6", layer=2).key)],
]


def test_pandas_reads_the_words(tmp_path):
    publish(tmp_path, ROWS, *UNITS)
    frame = pd.read_parquet(tmp_path / "out" / "words.parquet")
    assert sorted(frame.itertuples(index=False, name=None)) == long_form(UNITS)
    assert frame["score"].dtype == float
    means = frame[frame["set"] == "X"].groupby(["model", "layer"], observed=True)["score"].mean()
    assert means["bert-base-cased", 1] == 0.25
    assert means["gpt2", 2] == pytest.approx((0.3 - 1 / 3 + 2 / 7) / 3)


def test_duckdb_joins_words_with_their_rows(tmp_path):
    publish(tmp_path, [row(layer=0), row(layer=1)], *UNITS)
    query = """
        select layer, "set", count(*), max(score) from read_parquet(?) as results join read_parquet(?) as words
        using (model, revision, encoding, pooling, layer, postprocessing, test, form)
        group by layer, "set" order by layer, "set"
    """
    files = [str(tmp_path / "out" / name) for name in ("results.parquet", "words.parquet")]
    assert duckdb.execute(query, files).fetchall() == [
        (0, "X", 3, 0.1 + 0.2),
        (0, "Y", 2, 1e-17),
        (1, "X", 1, 0.25),
        (1, "Y", 2, 1e-17),
    ]


def test_polars_reads_the_words(tmp_path):
    publish(tmp_path, ROWS, *UNITS)
    frame = pl.read_parquet(tmp_path / "out" / "words.parquet")
    assert sorted(frame.rows()) == long_form(UNITS)


def test_no_words_at_all_are_a_table_that_readers_open(tmp_path):
    publish(tmp_path, ROWS, [])
    path = tmp_path / "out" / "words.parquet"
    assert list(pd.read_parquet(path).columns) == WORD_COLUMNS
    assert duckdb.execute("select count(*) from read_parquet(?)", [str(path)]).fetchall() == [(0,)]


# ---- other readers


@pytest.fixture
def published_parquet(tmp_path) -> str:
    publish_results(tmp_path, ROWS, [])
    return str(tmp_path / "results.parquet")


def test_pandas_reads_the_results(published_parquet):
    frame = pd.read_parquet(published_parquet)
    assert list(frame.columns) == [field.name for field in dataclasses.fields(ResultRow)]
    assert frame["effect_size"].isna().tolist() == [False, True, False, False]
    assert frame["effect_size"].iloc[0] == 1 / 3
    assert frame["layer"].tolist() == [12, 12, 12, 0]


def test_polars_reads_the_results(published_parquet):
    frame = pl.read_parquet(published_parquet)
    assert frame.to_dicts() == [dataclasses.asdict(each) for each in ROWS]
    assert frame.schema["p_value"] == pl.Float64


def test_duckdb_reads_the_results(published_parquet):
    query = "select test, p_value from read_parquet(?) where decision is null order by test"
    assert duckdb.execute(query, [published_parquet]).fetchall() == [("weat2", None), ("weat3", 1e-5)]


def test_pandas_and_polars_read_the_table_of_text(tmp_path):
    publish_results(tmp_path, ROWS, [])
    frame = pd.read_csv(tmp_path / "results.tsv", sep="\t")
    assert frame["p_value"].isna().tolist() == [False, True, False, False]
    assert pl.read_csv(tmp_path / "results.tsv", separator="\t", null_values="NA")["effect_size"].dtype == pl.Float64
