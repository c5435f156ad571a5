"""The embedding store: vectors of stimuli in Parquet, a folder a model and encoding, a file a unit of work.

STORE/store.json tells the format; STORE/<model key>/<encoding>/<unit id>.parquet holds one row a stimulus, pooling and
layer, with one row group for each (pooling, layer), so that reading one layer touches no other. docs/formats.md has the
schema.
"""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from distseat.definitions import Encoding, Stimulus
from distseat.errors import FormatVersionError, StorageError
from distseat.models import VectorSpec
from distseat.storage import commit_new, list_files, read_bytes, read_tail

__all__ = ["FORMAT_VERSION", "EmbeddingStore", "EncodedUnit", "PartContent", "StoredVectors"]

FORMAT_VERSION: Final = 1
_MAGIC: Final = b"PAR1"
_FOOTER_END: Final = 8  # the footer's length and the magic bytes
_DIGEST: Final = 32
_VERSION_KEYS: Final = ("tokenizer", "torch", "transformers", "device", "threads", "token_budget")
UNKNOWN: Final = -1  # of a count or position that a tokenizer without offsets cannot tell

Vectors = NDArray[np.float32]
Integers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedUnit:
    """What an encoder made of some stimuli.

    Attributes
    ----------
    vectors
        For each asked vector a float32 array of shape ``(n_stimuli, dimension)``.
    n_subtokens
        Sub-tokens of each stimulus's word, shape ``(n_stimuli,)``; -1 where the tokenizer cannot tell.
    positions
        For an (encoding, pooling) whose vector is one token's: its index in the sequence, shape ``(n_stimuli,)``.
    n_tokens
        Tokens read, padding not counted.
    """

    vectors: Mapping[VectorSpec, Vectors]
    n_subtokens: Integers
    positions: Mapping[tuple[Encoding, str], Integers]
    n_tokens: int


@dataclass(frozen=True, slots=True)
class PartContent:
    """What one file of the store holds, without its vectors."""

    name: str
    specs: frozenset[VectorSpec]
    stimulus_keys: frozenset[str]


@dataclass(slots=True)
class StoredVectors:
    """Vectors of one (encoding, pooling, layer), addressed by stimulus.

    Attributes
    ----------
    rows
        Stimulus key -> row of `vectors`, `n_subtokens` and `positions`.
    about
        What produced the vectors; where parts differ, all their values with commas between.
    """

    vectors: Vectors
    n_subtokens: Integers
    positions: Integers
    rows: Mapping[str, int]
    about: Mapping[str, str]

    def of(self, keys: Sequence[str]) -> Vectors:
        """Vectors of some stimuli, shape ``(len(keys), dimension)``."""
        return self.vectors[self.indices(keys)]

    def indices(self, keys: Sequence[str]) -> NDArray[np.intp]:
        """Rows of some stimuli."""
        return np.fromiter((self.rows[key] for key in keys), dtype=np.intp, count=len(keys))


class EmbeddingStore:
    """Vectors of every model under one directory.

    Parameters
    ----------
    root
        The directory; `create` makes it a store.

    Raises
    ------
    FormatVersionError
        The directory is a store of another format version.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        _check_version(root / "store.json", read_bytes(root / "store.json"))

    def create(self) -> None:
        """Make the directory a store, if it is not one."""
        commit_new(self.root / "store.json", json.dumps({"format_version": FORMAT_VERSION}).encode())

    def require(self) -> None:
        """Fail where the directory is no store: a node that does not share it would write to a disk of its own."""
        if read_bytes(self.root / "store.json") is None:
            raise StorageError(
                f"{self.root}: is no store on this machine; all nodes need the same directory: put it on a shared file "
                "system"
            )

    def path(self, model_key: str, encoding: Encoding, unit_id: str) -> Path:
        """Where a unit's vectors of one encoding are."""
        return self.root / model_key / encoding / f"{unit_id}.parquet"

    def has(self, model_key: str, encodings: Sequence[Encoding], unit_id: str) -> bool:
        """Whether a unit is committed, in all of its encodings."""
        return all(self.path(model_key, encoding, unit_id).exists() for encoding in encodings)

    def commit(
        self, model_key: str, unit_id: str, stimuli: Sequence[Stimulus], encoded: EncodedUnit, about: Mapping[str, str]
    ) -> None:
        """Write a unit, a file an encoding; a file that is there already is another attempt's and is kept.

        Parameters
        ----------
        about
            Goes into each file's metadata: model, revision, tokenizer, versions, device, threads.
        """
        for encoding in dict.fromkeys(spec.encoding for spec in encoded.vectors):
            content = _part_bytes(encoding, stimuli, encoded, about)
            commit_new(self.path(model_key, encoding, unit_id), content)

    def parts(self, model_key: str, encoding: Encoding) -> list[PartContent]:
        """What each committed file of a model and encoding holds."""
        return [_part_content(path, encoding) for path in list_files(self.root / model_key / encoding, ".parquet")]

    def read(self, model_key: str, spec: VectorSpec, parts: Sequence[str], keys: frozenset[str]) -> StoredVectors:
        """Vectors of the stimuli `keys`, from the named parts only; where two parts hold one, the first named counts.

        Raises
        ------
        StorageError
            A part is missing or damaged, or the parts do not hold every stimulus.
        """
        tables = [_read_row_group(self.path(model_key, spec.encoding, part), spec) for part in parts]
        rows: dict[str, int] = {}
        kept = []
        for table in tables:
            if table is not None:
                stimulus_keys = table.column("stimulus").to_pylist()
                wanted = [i for i, key in enumerate(stimulus_keys) if key in keys and key not in rows]
                rows.update({stimulus_keys[i]: len(rows) + offset for offset, i in enumerate(wanted)})
                kept.append(table.take(pa.array(wanted, pa.int64())))
        if missing := keys - rows.keys():
            raise StorageError(
                f"{self.root / model_key / spec.encoding}: {len(missing)} of {len(keys)} stimuli have no vector for "
                f"{spec.pooling} at layer {spec.layer}; encode first: `distseat encode`"
            )
        joined = pa.concat_tables(kept).combine_chunks()
        return StoredVectors(
            vectors=_matrix(joined.column("vector")),
            n_subtokens=joined.column("n_subtokens").to_numpy(),
            positions=joined.column("position").to_numpy(),
            rows=rows,
            about=_merged_about(kept),
        )


def _check_version(path: Path, content: bytes | None) -> None:
    if content is None:
        return
    try:
        found = json.loads(content)["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: is not the description of a store; choose another store") from error
    if found != FORMAT_VERSION:
        raise FormatVersionError(
            f"{path.parent}: is a store of format {found}, this distseat reads and writes format {FORMAT_VERSION}; "
            "choose another store, or use the version of distseat that wrote it"
        )


def _schema(dimension: int, about: Mapping[str, str]) -> pa.Schema:
    told = json.dumps(dict(about) | {"format_version": FORMAT_VERSION}, sort_keys=True)
    return pa.schema(
        [
            ("stimulus", pa.string()),
            ("text", pa.string()),
            ("start", pa.int32()),
            ("end", pa.int32()),
            ("pooling", pa.string()),
            ("layer", pa.int32()),
            ("n_subtokens", pa.int32()),
            ("position", pa.int32()),
            ("vector", pa.list_(pa.float32(), dimension)),
        ],
        metadata={"distseat": told},
    )


def _part_bytes(
    encoding: Encoding, stimuli: Sequence[Stimulus], encoded: EncodedUnit, about: Mapping[str, str]
) -> bytes:
    specs = [spec for spec in encoded.vectors if spec.encoding == encoding]
    dimension = encoded.vectors[specs[0]].shape[1]
    schema = _schema(dimension, dict(about) | {"encoding": encoding})
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        use_byte_stream_split=["vector.list.element"],
        use_dictionary=False,
        write_page_checksum=True,
    ) as writer:
        for spec in specs:
            columns = {
                "stimulus": [stimulus.key for stimulus in stimuli],
                "text": [stimulus.text for stimulus in stimuli],
                "start": [stimulus.start for stimulus in stimuli],
                "end": [stimulus.end for stimulus in stimuli],
                "pooling": [spec.pooling] * len(stimuli),
                "layer": [spec.layer] * len(stimuli),
                "n_subtokens": encoded.n_subtokens,
                "position": encoded.positions.get((encoding, spec.pooling), np.full(len(stimuli), UNKNOWN)),
                "vector": pa.FixedSizeListArray.from_arrays(encoded.vectors[spec].reshape(-1), dimension),
            }
            writer.write_table(pa.table(columns, schema=schema), row_group_size=max(1, len(stimuli)))
    content = sink.getvalue()
    footer = content[-_footer_length(content) :]
    return content[: -len(footer)] + hashlib.sha256(footer).digest() + footer


def _footer_length(tail: bytes) -> int:
    """Bytes of a Parquet file's footer, its own length and the magic bytes at its end included."""
    return int.from_bytes(tail[-_FOOTER_END : -len(_MAGIC)], "little") + _FOOTER_END


@contextmanager
def _reading(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a part; whatever fails while it is read is told as damage, with its path.

    The pages of a Parquet file have checksums, its footer has none, and a damaged footer can crash a reader: so a
    digest of the footer stands before it, where no Parquet reader looks, and is checked first.
    """
    try:
        _check_footer(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except FileNotFoundError as error:
        raise StorageError(
            f"{path}: is gone, but the plan counts on it; run again to encode it, or delete the plan folder of the "
            "output directory to plan anew"
        ) from error
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        raise StorageError(f"{path}: is damaged ({error}); delete it and run again") from error


def _check_footer(path: Path) -> None:
    end = read_tail(path, _FOOTER_END)
    if end is None:
        raise FileNotFoundError(path)
    length = _footer_length(end) if end.endswith(_MAGIC) else 0
    tail = read_tail(path, length + _DIGEST) or b""
    if not length or hashlib.sha256(tail[_DIGEST:]).digest() != tail[:_DIGEST]:
        raise ValueError("its footer does not fit its sha256")


def _group_specs(file: pq.ParquetFile, encoding: Encoding) -> list[VectorSpec]:
    """The (pooling, layer) of each row group, from its statistics."""
    names = file.schema_arrow.names
    pooling, layer = names.index("pooling"), names.index("layer")
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    return [
        VectorSpec(encoding, group.column(pooling).statistics.min, group.column(layer).statistics.min)
        for group in groups
    ]


def _part_content(path: Path, encoding: Encoding) -> PartContent:
    with _reading(path) as file:
        keys = _read_columns(file, 0, ["stimulus"])["stimulus"].to_pylist()
        return PartContent(path.stem, frozenset(_group_specs(file, encoding)), frozenset(keys))


def _read_row_group(path: Path, spec: VectorSpec) -> pa.Table | None:
    """The rows of one (pooling, layer); None where the part has none of it."""
    with _reading(path) as file:
        specs = _group_specs(file, spec.encoding)
        if spec not in specs:
            return None
        return _read_columns(file, specs.index(spec), ["stimulus", "n_subtokens", "position", "vector"])


def _read_columns(file: pq.ParquetFile, group: int, columns: list[str]) -> pa.Table:
    """Columns of a row group, all of its rows: a damaged page header can make a reader skip its page."""
    table = file.read_row_group(group, columns=columns)
    n_rows = file.metadata.row_group(group).num_rows
    if table.num_rows != n_rows:
        raise ValueError(f"a row group has {table.num_rows} of {n_rows} rows")
    return table


def _merged_about(tables: Sequence[pa.Table]) -> dict[str, str]:
    told: dict[str, dict[str, None]] = {}
    for table in tables:
        for key, value in json.loads(table.schema.metadata[b"distseat"]).items():
            if key in _VERSION_KEYS:
                told.setdefault(key, {})[value] = None
    return {key: ", ".join(sorted(values)) for key, values in told.items()}


def _matrix(column: pa.ChunkedArray) -> Vectors:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0)
    return np.asarray(array.flatten().to_numpy()).reshape(len(array), -1)
