"""Rows of results: what is written comes back, in Parquet for every reader and in the published table of text."""

import csv
import dataclasses
import io
import subprocess
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.errors import StorageError
from distseat.stores import ResultRow, commit_rows, publish_results, read_rows

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
]
NULLABLE = ("statistic", "effect_size", "p_value", "p_floor", "method", "p_adjusted", "decision")


def row(**changes: object) -> ResultRow:
    """An ordinary row of a decided run."""
    plain = ResultRow(
        model="bert-base-cased",
        revision="0123abc",
        encoding="c-word",
        pooling="first-subword",
        layer=12,
        test="weat1",
        form="sent",
        file="sent-weat1",
        title="C1: Flowers/Insects, P/U",
        group="neutral",
        n_x=175,
        n_y=150,
        n_a=160,
        n_b=155,
        statistic=0.1 + 0.2,
        effect_size=1 / 3,
        p_value=1e-5,
        p_floor=1e-5,
        method="sampled",
        seed=0,
        subtokens_x=1.25,
        subtokens_y=2.5,
        position_0_share=None,
        void_reason=None,
        options='{"dtype": "float32"}',
        versions='{"numpy": "2.4"}',
        p_adjusted=0.00644,
        decision="reject",
        family_size=644,
        alpha=0.01,
    )
    return dataclasses.replace(plain, **changes)


def void(**changes: object) -> ResultRow:
    return row(**dict.fromkeys(NULLABLE) | {"void_reason": "all targets have one association score"} | changes)


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
UNDECIDED = {"p_adjusted": None, "decision": None, "family_size": None, "alpha": None}
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
    changes["decision"] = draw(st.sampled_from([None, "reject", "retain"]))
    return row(**changes)


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
    assert found[2].family_size is None


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


# ---- damage


DAMAGED = r"unit\.parquet: cannot be read \(.+\); delete it and run again"


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_rows_cut_short_anywhere_are_told(share, tmp_path_factory):
    path = tmp_path_factory.mktemp("cut") / "unit.parquet"
    commit_rows(path, ROWS)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StorageError, match=DAMAGED):
        read_rows(path)


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
def test_a_file_that_is_not_parquet_is_told(tmp_path, content):
    (tmp_path / "unit.parquet").write_bytes(content)
    with pytest.raises(StorageError, match=DAMAGED):
        read_rows(tmp_path / "unit.parquet")


def test_missing_rows_are_told(tmp_path):
    with pytest.raises(StorageError, match=r"unit\.parquet: cannot be read"):
        read_rows(tmp_path / "unit.parquet")


@pytest.mark.parametrize("change", ["a column less", "a column more", "another type", "another format", "no format"])
def test_rows_of_another_version_are_told(tmp_path, change):
    path = tmp_path / "unit.parquet"
    commit_rows(path, ROWS)
    table = pq.read_table(path)
    changed = {
        "a column less": lambda: table.drop_columns(["alpha"]),
        "a column more": lambda: table.append_column("site", pa.array(["x"] * len(table))),
        "another type": lambda: table.set_column(4, "layer", table["layer"].cast(pa.int64())),
        "another format": lambda: table.replace_schema_metadata({"distseat": '{"results_format": 0}'}),
        "no format": lambda: table.replace_schema_metadata(None),
    }[change]()
    pq.write_table(changed, path)
    with pytest.raises(StorageError, match=r"written by another version of distseat; delete it and run again"):
        read_rows(path)


# ---- the published table


def table_of(path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8")), delimiter="\t"))


def test_the_table_has_the_published_columns_and_the_decision(tmp_path):
    publish_results(tmp_path, ROWS)
    assert (tmp_path / "results.tsv").read_bytes().splitlines()[0] == "\t".join(TSV_COLUMNS).encode()
    options = "revision=0123abc;encoding=c-word;pooling=first-subword;layer=12"
    sizes = ["175", "150", "160", "155"]
    assert table_of(tmp_path / "results.tsv")[1:3] == [
        ["bert-base-cased", options, "sent-weat1", "1e-05", "0.3333333333333333", *sizes, "reject"],
        ["bert-base-cased", options, "sent-weat2", "NA", "NA", *sizes, "void"],
    ]


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(any_row(LINES), max_size=5))
def test_the_table_holds_every_row_and_every_digit(rows, tmp_path_factory):
    directory = tmp_path_factory.mktemp("table")
    publish_results(directory, rows)
    header, *found = table_of(directory / "results.tsv")
    assert header == TSV_COLUMNS
    assert len(found) == len(rows)
    for given_row, values in zip(rows, found, strict=True):
        told = dict(zip(header, values, strict=True))
        assert told["model"] == given_row.model
        assert told["test"] == given_row.file
        for column, value in (("p_value", given_row.p_value), ("effect_size", given_row.effect_size)):
            assert (told[column] == "NA") if value is None else (float(told[column]) == value)
        sizes = [int(told[column]) for column in TSV_COLUMNS[5:9]]
        assert sizes == [given_row.n_x, given_row.n_y, given_row.n_a, given_row.n_b]
        assert told["decision"] == (given_row.decision or "void")


def test_publishing_again_replaces_both_files(tmp_path):
    publish_results(tmp_path, ROWS)
    publish_results(tmp_path, ROWS[:1])
    assert read_rows(tmp_path / "results.parquet") == ROWS[:1]
    assert len(table_of(tmp_path / "results.tsv")) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.parquet", "results.tsv"]


def test_published_rows_come_back(tmp_path):
    publish_results(tmp_path, ROWS)
    assert read_rows(tmp_path / "results.parquet") == ROWS


# ---- other readers


@pytest.fixture
def published_parquet(tmp_path) -> str:
    publish_results(tmp_path, ROWS)
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
    publish_results(tmp_path, ROWS)
    frame = pd.read_csv(tmp_path / "results.tsv", sep="\t")
    assert frame["p_value"].isna().tolist() == [False, True, False, False]
    assert pl.read_csv(tmp_path / "results.tsv", separator="\t", null_values="NA")["effect_size"].dtype == pl.Float64
