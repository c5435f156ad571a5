"""Results: one row a (model, revision, pooling, layer, encoding, test, form), in Parquet and as a table of text."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from distseat.definitions import Encoding
from distseat.errors import StorageError
from distseat.storage import commit_new, publish

__all__ = ["ResultRow", "commit_rows", "publish_results", "read_rows"]

RESULTS_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One association test of one variant.

    Attributes
    ----------
    file
        The name that the published data give the test in this form, as "sent-weat1".
    n_x, n_y, n_a, n_b
        Stimuli of each set.
    statistic, effect_size, p_value, p_floor, method
        Of the test; null in a void row.
    subtokens_x, subtokens_y
        Mean number of sub-tokens a word; null where the tokenizer cannot tell.
    position_0_share
        Share of target vectors that are the state of the sequence's first position; null where a vector is of several
        tokens.
    void_reason
        Why nothing could be tested; null in an ordinary row.
    options, versions
        JSON: the model's encoding options; what produced the vectors and the row.
    decision
        "reject" or "retain" the null hypothesis after correction over the run; null in a void row and before the run is
        whole.
    """

    model: str
    revision: str
    encoding: Encoding
    pooling: str
    layer: int
    test: str
    form: str
    file: str
    title: str
    group: str
    n_x: int
    n_y: int
    n_a: int
    n_b: int
    statistic: float | None = None
    effect_size: float | None = None
    p_value: float | None = None
    p_floor: float | None = None
    method: str | None = None
    seed: int
    subtokens_x: float | None
    subtokens_y: float | None
    position_0_share: float | None
    void_reason: str | None = None
    options: str
    versions: str
    p_adjusted: float | None = None
    decision: Literal["reject", "retain"] | None = None
    family_size: int | None = None
    alpha: float | None = None


_FLOATS = ("statistic", "effect_size", "p_value", "p_floor", "subtokens_x", "subtokens_y", "position_0_share")
_TYPES: Final = (
    dict.fromkeys((*_FLOATS, "p_adjusted", "alpha"), pa.float64())
    | dict.fromkeys(("layer", "n_x", "n_y", "n_a", "n_b", "family_size"), pa.int32())
    | {"seed": pa.int64()}
)
_SCHEMA: Final = pa.schema(
    [(field.name, _TYPES.get(field.name, pa.string())) for field in fields(ResultRow)],
    metadata={"distseat": json.dumps({"results_format": RESULTS_FORMAT})},
)


def commit_rows(path: Path, rows: Sequence[ResultRow]) -> bool:
    """Commit the rows of one unit of scoring; False where another attempt has done so."""
    return commit_new(path, _parquet(rows))


def read_rows(path: Path) -> list[ResultRow]:
    """Read the rows of a results file.

    Raises
    ------
    StorageError
        The file is damaged or of another format.
    """
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: cannot be read ({error}); delete it and run again") from error
    if not table.schema.equals(_SCHEMA, check_metadata=True):
        raise StorageError(f"{path}: was written by another version of distseat; delete it and run again")
    return [ResultRow(**row) for row in table.to_pylist()]


def publish_results(directory: Path, rows: Sequence[ResultRow]) -> dict[str, str]:
    """Write results.parquet and results.tsv, each replaced at once; the sha256 of each is returned."""
    contents = {"results.parquet": _parquet(rows), "results.tsv": _tsv(rows).encode()}
    for name, content in contents.items():
        publish(directory / name, content)
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def _parquet(rows: Sequence[ResultRow]) -> bytes:
    sink = io.BytesIO()
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=_SCHEMA)
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def _tsv(rows: Iterable[ResultRow]) -> str:
    """The nine columns of May et al. (2019) and the corrected decision."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter="\t", lineterminator="\n")
    columns = ("model", "options", "test", "p_value", "effect_size", "num_targ1", "num_targ2", "num_attr1", "num_attr2")
    writer.writerow((*columns, "decision"))
    for row in rows:
        options = f"revision={row.revision};encoding={row.encoding};pooling={row.pooling};layer={row.layer}"
        values = (row.model, options, row.file, row.p_value, row.effect_size, row.n_x, row.n_y, row.n_a, row.n_b)
        writer.writerow("NA" if value is None else value for value in (*values, row.decision or "void"))
    return sink.getvalue()
