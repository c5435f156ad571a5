"""The embedding store gives back the bits it was given, or says which file is damaged and what to do."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distseat.definitions import Stimulus
from distseat.errors import FormatVersionError, StorageError
from distseat.models import VectorSpec
from distseat.storage import list_files
from distseat.stores import EmbeddingStore, EncodedUnit, StoredVectors
from distseat.stores.embeddings import FORMAT_VERSION

MODEL = "tiny-0123456789abcdef"
UNIT = "00ff" * 8
OTHER_UNIT = "ff00" * 8
DIMENSION = 24
ABOUT = {"model": "tiny", "revision": "abc", "torch": "2.0", "device": "cpu", "threads": "1"}
SPECS = tuple(
    VectorSpec(encoding, pooling, layer)
    for encoding, poolings in (("word", ("cls", "mean")), ("sent", ("cls", "mean")), ("c-word", ("first-subword",)))
    for pooling in poolings
    for layer in (0, 3, 12)
)
ENCODINGS = ("word", "sent", "c-word")
CHANGE_BYTES = """
import sys
from pathlib import Path
import numpy as np
from distseat.errors import StorageError
from distseat.stores import EmbeddingStore

model, unit = sys.argv[2:4]
first, last = map(int, sys.argv[4:])
store = EmbeddingStore(Path(sys.argv[1]))
path = store.path(model, "sent", unit)
content = path.read_bytes()


def everything():
    (part,) = store.parts(model, "sent")
    keys = sorted(part.stimulus_keys)
    found = {spec: store.read(model, spec, [unit], part.stimulus_keys) for spec in part.specs}
    return {spec: (keys, vectors.of(keys).tobytes()) for spec, vectors in found.items()}


expected = everything()
rng = np.random.default_rng(0)
for position in range(first, last):
    changed = bytearray(content)
    changed[position] ^= int(rng.integers(1, 256))
    print(f"byte {position} of {len(content)} from {content[position]} to {changed[position]}", flush=True)
    path.write_bytes(changed)
    try:
        found = everything()
    except StorageError:
        continue
    if found != expected:
        sys.exit("other vectors were read, and nothing was said")
"""
COLUMNS = ["stimulus", "text", "start", "end", "pooling", "layer", "n_subtokens", "position", "vector"]


def stimuli(n: int, first: int = 0) -> tuple[Stimulus, ...]:
    words = [f"größe{i}" for i in range(first, first + n)]
    return tuple(Stimulus(f"This is {word}.", word, 8, 8 + len(word)) for word in words)


def encoded(n: int, *, specs: tuple[VectorSpec, ...] = SPECS, seed: int = 0) -> EncodedUnit:
    rng = np.random.default_rng(seed)
    return EncodedUnit(
        vectors={spec: rng.normal(size=(n, DIMENSION)).astype(np.float32) for spec in specs},
        n_subtokens=rng.integers(-1, 5, size=n).astype(np.int32),
        positions={("c-word", "first-subword"): rng.integers(0, 9, size=n).astype(np.int32)},
        n_tokens=5 * n,
    )


def keys_of(some: tuple[Stimulus, ...]) -> list[str]:
    return [stimulus.key for stimulus in some]


def read(store: EmbeddingStore, spec: VectorSpec, some: tuple[Stimulus, ...], *parts: str) -> StoredVectors:
    return store.read(MODEL, spec, parts or (UNIT,), frozenset(keys_of(some)))


@pytest.fixture
def store(tmp_path) -> EmbeddingStore:
    return EmbeddingStore(tmp_path / "store")


@pytest.fixture
def filled(store) -> EmbeddingStore:
    store.commit(MODEL, UNIT, stimuli(5), encoded(5), ABOUT)
    return store


# ---- what was given comes back


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 9), dimension=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_every_bit_of_every_vector_comes_back(n, dimension, seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    bits = {spec: rng.integers(0, 2**32, size=(n, dimension), dtype=np.uint32) for spec in SPECS}
    unit = EncodedUnit(
        vectors={spec: some.view(np.float32) for spec, some in bits.items()},
        n_subtokens=rng.integers(-1, 9, size=n).astype(np.int32),
        positions={("sent", "cls"): np.zeros(n, dtype=np.int32)},
        n_tokens=n,
    )
    store = EmbeddingStore(tmp_path_factory.mktemp("bits"))
    store.commit(MODEL, UNIT, stimuli(n), unit, ABOUT)
    for spec in SPECS:
        found = read(store, spec, stimuli(n))
        order = found.indices(keys_of(stimuli(n)))
        np.testing.assert_array_equal(found.of(keys_of(stimuli(n))).view(np.uint32), bits[spec])
        np.testing.assert_array_equal(found.n_subtokens[order], unit.n_subtokens)
        expected = unit.positions.get((spec.encoding, spec.pooling), np.full(n, -1))
        np.testing.assert_array_equal(found.positions[order], expected)


def test_vectors_that_are_not_contiguous_come_back(store):
    wide = np.random.default_rng(0).normal(size=(DIMENSION, 5)).astype(np.float32)
    spec = VectorSpec("sent", "mean", 1)
    unit = EncodedUnit(vectors={spec: wide.T}, n_subtokens=np.ones(5, np.int32), positions={}, n_tokens=5)
    store.commit(MODEL, UNIT, stimuli(5), unit, ABOUT)
    np.testing.assert_array_equal(read(store, spec, stimuli(5)).of(keys_of(stimuli(5))), wide.T)


def test_vectors_are_addressed_by_stimulus_in_any_order_and_number(filled):
    spec = SPECS[4]
    found = read(filled, spec, stimuli(5)[1:4])
    assert sorted(found.rows) == sorted(keys_of(stimuli(5)[1:4]))
    assert found.vectors.shape == (3, DIMENSION)
    for order in ((3, 1, 2), (1, 1), (2,)):
        expected = encoded(5).vectors[spec][list(order)]
        np.testing.assert_array_equal(found.of([stimuli(5)[i].key for i in order]), expected)


def test_what_produced_the_vectors_is_kept_and_differing_parts_tell_all_their_values(filled):
    filled.commit(MODEL, OTHER_UNIT, stimuli(2, 5), encoded(2), ABOUT | {"device": "cuda", "threads": "1"})
    assert read(filled, SPECS[0], stimuli(5)).about == {"torch": "2.0", "device": "cpu", "threads": "1"}
    both = read(filled, SPECS[0], stimuli(7), UNIT, OTHER_UNIT).about
    assert both == {"torch": "2.0", "device": "cpu, cuda", "threads": "1"}


def test_each_encoding_is_a_file_and_each_pooling_and_layer_a_row_group(filled):
    for encoding in ENCODINGS:
        specs = [spec for spec in SPECS if spec.encoding == encoding]
        file = pq.ParquetFile(filled.path(MODEL, encoding, UNIT))
        assert file.num_row_groups == len(specs)
        assert file.metadata.num_rows == 5 * len(specs)
        for i, spec in enumerate(specs):
            group = file.read_row_group(i)
            assert set(group["pooling"].to_pylist()) == {spec.pooling}
            assert set(group["layer"].to_pylist()) == {spec.layer}


def test_reading_one_layer_needs_no_byte_of_another(filled):
    """The vectors of every other layer are overwritten; the one that is asked for still comes back whole."""
    path, spec = filled.path(MODEL, "sent", UNIT), VectorSpec("sent", "mean", 3)
    content = bytearray(path.read_bytes())
    for other in (s for s in SPECS if s.encoding == "sent" and s != spec):
        start, end = vector_bytes(path, other)
        content[start:end] = bytes(end - start)
    path.write_bytes(content)
    np.testing.assert_array_equal(read(filled, spec, stimuli(5)).of(keys_of(stimuli(5))), encoded(5).vectors[spec])


def test_of_two_parts_the_first_named_gives_the_vector(filled):
    spec = SPECS[0]
    filled.commit(MODEL, OTHER_UNIT, stimuli(5, 3), encoded(5, seed=1), ABOUT)
    every, shared = stimuli(8), keys_of(stimuli(2, 3))
    first, second = encoded(5).vectors[spec], encoded(5, seed=1).vectors[spec]
    straight, reverse = read(filled, spec, every, UNIT, OTHER_UNIT), read(filled, spec, every, OTHER_UNIT, UNIT)
    np.testing.assert_array_equal(straight.of(shared), first[3:])
    np.testing.assert_array_equal(reverse.of(shared), second[:2])
    for found in (straight, reverse):
        assert len(found.vectors) == len(found.rows) == 8
        np.testing.assert_array_equal(found.of(keys_of(stimuli(3))), first[:3])
        np.testing.assert_array_equal(found.of(keys_of(stimuli(3, 5))), second[2:])


def test_a_part_without_the_asked_layer_is_passed_over(filled):
    only = (VectorSpec("sent", "mean", 7),)
    filled.commit(MODEL, OTHER_UNIT, stimuli(5), encoded(5, specs=only, seed=1), ABOUT)
    found = read(filled, only[0], stimuli(5), UNIT, OTHER_UNIT)
    np.testing.assert_array_equal(found.of(keys_of(stimuli(5))), encoded(5, specs=only, seed=1).vectors[only[0]])


# ---- commits


def test_one_content_gives_the_same_bytes(store, tmp_path):
    other = EmbeddingStore(tmp_path / "other")
    reordered = dict(reversed(ABOUT.items()))
    for chosen, about in ((store, ABOUT), (other, reordered)):
        chosen.create()
        chosen.commit(MODEL, UNIT, stimuli(5), encoded(5), about)
    for encoding in ENCODINGS:
        path = store.path(MODEL, encoding, UNIT)
        assert path.read_bytes() == other.path(MODEL, encoding, UNIT).read_bytes()
    assert (store.root / "store.json").read_bytes() == (other.root / "store.json").read_bytes()


def test_the_first_commit_of_a_unit_is_kept(filled):
    filled.commit(MODEL, UNIT, stimuli(5), encoded(5, seed=1), ABOUT)
    for spec in SPECS:
        np.testing.assert_array_equal(read(filled, spec, stimuli(5)).of(keys_of(stimuli(5))), encoded(5).vectors[spec])


def test_a_unit_is_there_when_all_of_its_encodings_are(filled):
    assert filled.has(MODEL, ENCODINGS, UNIT)
    assert not filled.has(MODEL, ENCODINGS, OTHER_UNIT)
    assert not filled.has("another-model", ENCODINGS, UNIT)
    filled.path(MODEL, "c-word", UNIT).unlink()
    assert not filled.has(MODEL, ENCODINGS, UNIT)
    assert filled.has(MODEL, ("word", "sent"), UNIT)


def test_a_commit_after_half_a_commit_writes_what_is_missing(filled):
    path = filled.path(MODEL, "c-word", UNIT)
    before = path.read_bytes()
    path.unlink()
    filled.commit(MODEL, UNIT, stimuli(5), encoded(5), ABOUT)
    assert path.read_bytes() == before


def test_parts_tell_what_they_hold(filled):
    assert filled.parts(MODEL, "word")[0].name == UNIT
    for encoding in ENCODINGS:
        (part,) = filled.parts(MODEL, encoding)
        assert part.specs == {spec for spec in SPECS if spec.encoding == encoding}
        assert part.stimulus_keys == set(keys_of(stimuli(5)))
    assert filled.parts("another-model", "word") == []


def test_no_path_and_no_time_of_the_machine_is_in_a_part(filled, tmp_path):
    for path in filled.root.rglob("*.parquet"):
        assert str(tmp_path).encode() not in path.read_bytes()
        metadata = json.loads(pq.read_schema(path).metadata[b"distseat"])
        assert metadata == ABOUT | {"encoding": path.parent.name, "format_version": FORMAT_VERSION}


# ---- what is missing or damaged


def test_missing_stimuli_are_counted_with_what_to_do(filled):
    with pytest.raises(StorageError, match=r"sent: 2 of 7 stimuli have no vector for .*; encode first"):
        read(filled, SPECS[6], stimuli(7))


def test_a_layer_that_no_part_has_is_missing_for_every_stimulus(filled):
    with pytest.raises(StorageError, match=r"5 of 5 stimuli have no vector for .*99.*; encode first"):
        read(filled, VectorSpec("sent", "mean", 99), stimuli(5))


def test_a_missing_part_is_named_with_what_to_do(filled):
    expected = rf"{OTHER_UNIT}.parquet: is gone, but the plan counts on it; run again .* or delete the plan folder"
    with pytest.raises(StorageError, match=expected):
        read(filled, SPECS[0], stimuli(5), UNIT, OTHER_UNIT)


def damaged(store: EmbeddingStore, content: bytes) -> None:
    """Put other content in place of the committed `sent` part."""
    store.path(MODEL, "sent", UNIT).write_bytes(content)


def vector_bytes(path: Path, spec: VectorSpec) -> tuple[int, int]:
    """Where the page of a layer's vectors lies in a part."""
    return column_bytes(path, spec, "vector.list.element")


def column_bytes(path: Path, spec: VectorSpec, column: str) -> tuple[int, int]:
    metadata = pq.ParquetFile(path).metadata
    for i in range(metadata.num_row_groups):
        columns = [metadata.row_group(i).column(j) for j in range(metadata.num_columns)]
        told = {c.path_in_schema: c for c in columns}
        if (told["pooling"].statistics.min, told["layer"].statistics.min) == spec[1:]:
            start = told[column].data_page_offset
            return start, start + told[column].total_compressed_size
    raise AssertionError(f"{path} has no {spec}")


DAMAGED = rf"{UNIT}\.parquet: is damaged \(.+\); delete it and run again"


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_part_cut_short_anywhere_is_told(share, tmp_path_factory):
    store = EmbeddingStore(tmp_path_factory.mktemp("cut"))
    store.commit(MODEL, UNIT, stimuli(5), encoded(5), ABOUT)
    content = store.path(MODEL, "sent", UNIT).read_bytes()
    damaged(store, content[: int(share * len(content))])
    with pytest.raises(StorageError, match=DAMAGED):
        store.parts(MODEL, "sent")
    with pytest.raises(StorageError, match=DAMAGED):
        read(store, VectorSpec("sent", "mean", 3), stimuli(5))


@pytest.mark.parametrize("n_lost", [1, 2, 3, 4, 5, 7, 8, 9, 100])
def test_a_part_without_its_last_bytes_is_told(filled, n_lost):
    damaged(filled, filled.path(MODEL, "sent", UNIT).read_bytes()[:-n_lost])
    with pytest.raises(StorageError, match=DAMAGED):
        filled.parts(MODEL, "sent")
    with pytest.raises(StorageError, match=DAMAGED):
        read(filled, VectorSpec("sent", "mean", 3), stimuli(5))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("spec", [VectorSpec("sent", "cls", 0), VectorSpec("sent", "mean", 12)])
def test_a_flipped_bit_in_the_vectors_is_told(filled, spec, seed):
    path = filled.path(MODEL, "sent", UNIT)
    start, end = vector_bytes(path, spec)
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    content[rng.integers(end - 5 * DIMENSION * 3, end)] ^= 1 << int(rng.integers(8))  # in the page, behind its header
    assert start < end - 5 * DIMENSION * 3
    path.write_bytes(content)
    with pytest.raises(StorageError, match=DAMAGED):
        read(filled, spec, stimuli(5))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("column", ["stimulus", "n_subtokens", "position"])
def test_a_flipped_bit_in_another_column_that_is_read_is_told(filled, column, seed):
    path, spec = filled.path(MODEL, "sent", UNIT), VectorSpec("sent", "cls", 0)
    _, end = column_bytes(path, spec, column)
    content = bytearray(path.read_bytes())
    content[end - 1 - seed] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(StorageError, match=DAMAGED):
        read(filled, spec, stimuli(5))


@pytest.mark.parametrize("seed", range(10))
def test_a_flipped_bit_in_the_stimuli_is_told_when_planning(filled, seed):
    """The stimuli of the first row group are what a plan reads to learn what a part holds."""
    path = filled.path(MODEL, "sent", UNIT)
    _, end = column_bytes(path, VectorSpec("sent", "cls", 0), "stimulus")
    content = bytearray(path.read_bytes())
    content[end - 1 - seed] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(StorageError, match=DAMAGED):
        filled.parts(MODEL, "sent")


@pytest.mark.parametrize("place", ["pages", "footer"])
def test_a_changed_byte_anywhere_is_told_or_changes_no_vector(store, place):
    """In a process of its own: damage that ends the reading process, as in a library's check, shows as its status."""
    specs = (VectorSpec("sent", "mean", 3), VectorSpec("sent", "mean", 12))
    store.commit(MODEL, UNIT, stimuli(2), encoded(2, specs=specs), ABOUT)
    content = store.path(MODEL, "sent", UNIT).read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    first, last = (0, footer) if place == "pages" else (footer, len(content))
    command = [sys.executable, "-c", CHANGE_BYTES, str(store.root), MODEL, UNIT, str(first), str(last)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"after the change of {done.stdout.splitlines()[-1]}: {done.stderr[:2000]}"


def test_a_file_that_is_not_parquet_is_told(filled):
    for content in (b"", b"PAR1", b"PAR1PAR1", b"not a part at all" * 100):
        damaged(filled, content)
        with pytest.raises(StorageError, match=DAMAGED):
            filled.parts(MODEL, "sent")
        with pytest.raises(StorageError, match=DAMAGED):
            read(filled, VectorSpec("sent", "mean", 3), stimuli(5))


def test_a_parquet_file_of_something_else_is_told(filled):
    pq.write_table(pa.table({"city": ["Oslo"], "layer": [1]}), filled.path(MODEL, "sent", UNIT))
    with pytest.raises(StorageError, match=UNIT):
        filled.parts(MODEL, "sent")
    with pytest.raises(StorageError, match=UNIT):
        read(filled, VectorSpec("sent", "mean", 3), stimuli(5))


def test_half_a_temporary_file_is_no_part(filled):
    whole = filled.path(MODEL, "sent", UNIT)
    (whole.parent / ".tmp-0123456789abcdef").write_bytes(whole.read_bytes()[:100])
    assert [part.name for part in filled.parts(MODEL, "sent")] == [UNIT]
    assert list_files(whole.parent, ".parquet") == [whole]


# ---- the format's version


def test_a_store_tells_its_format_before_anything_is_in_it(store):
    assert not store.root.exists()
    store.create()
    store.create()
    assert json.loads((store.root / "store.json").read_bytes()) == {"format_version": FORMAT_VERSION}
    assert EmbeddingStore(store.root).parts(MODEL, "word") == []


def test_a_machine_that_does_not_share_the_store_is_told(store):
    with pytest.raises(StorageError, match="is no store on this machine; all nodes need the same directory"):
        store.require()


@pytest.mark.parametrize("found", [0, FORMAT_VERSION + 1, "1", None, [1]])
def test_a_store_of_another_format_is_refused_with_both_versions(tmp_path, found):
    (tmp_path / "store.json").write_text(json.dumps({"format_version": found}))
    expected = rf"store of format .+, this distseat reads and writes format {FORMAT_VERSION}; choose another store, or"
    with pytest.raises(FormatVersionError, match=expected):
        EmbeddingStore(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[1]", "1", "null", '{"version": 1}', "\xff"])
def test_a_description_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "store.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(StorageError, match=r"store\.json: is not the description of a store; choose another store"):
        EmbeddingStore(tmp_path)


def test_a_store_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file"):
        EmbeddingStore(tmp_path / "file" / "store")


# ---- other readers


@pytest.fixture
def part(filled, tmp_path) -> Path:
    """A part outside of its store, as a researcher would copy it."""
    return Path(shutil.copy(filled.path(MODEL, "c-word", UNIT), tmp_path / "part.parquet"))


def expected_vectors() -> np.ndarray:
    return np.concatenate([encoded(5).vectors[spec] for spec in SPECS if spec.encoding == "c-word"])


def test_pandas_reads_a_part(part):
    frame = pd.read_parquet(part)
    assert list(frame.columns) == COLUMNS
    assert frame["text"].tolist() == [s.text for s in stimuli(5)] * 3
    assert frame["layer"].tolist() == [0] * 5 + [3] * 5 + [12] * 5
    np.testing.assert_array_equal(np.stack(frame["vector"].to_list()), expected_vectors())


def test_polars_reads_a_part(part):
    frame = pl.read_parquet(part)
    assert frame.columns == COLUMNS
    assert frame.schema["vector"] in (pl.Array(pl.Float32, DIMENSION), pl.List(pl.Float32))
    np.testing.assert_array_equal(np.array(frame["vector"].to_list(), dtype=np.float32), expected_vectors())
    spans = [text[start:end] for text, start, end in frame.select("text", "start", "end").rows()]
    assert spans == [s.word for s in stimuli(5)] * 3


def test_duckdb_reads_a_part(part):
    connection = duckdb.connect()
    described = connection.execute("describe select * from read_parquet(?)", [str(part)]).fetchall()
    assert [row[0] for row in described] == COLUMNS
    found = connection.execute(
        "select layer, len(vector), vector from read_parquet(?) where pooling = 'first-subword' and layer = 12",
        [str(part)],
    ).fetchall()
    assert [row[:2] for row in found] == [(12, DIMENSION)] * 5
    np.testing.assert_array_equal(np.array([row[2] for row in found], dtype=np.float32), expected_vectors()[10:])


def test_the_schema_of_a_part_is_fixed(part):
    schema = pq.read_schema(part)
    assert [str(field.type) for field in schema] == [
        "string",
        "string",
        "int32",
        "int32",
        "string",
        "int32",
        "int32",
        "int32",
        f"fixed_size_list<element: float>[{DIMENSION}]",
    ]
