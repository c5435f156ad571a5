"""Results: one row a (model, revision, pooling, layer, postprocessing, encoding, test, form), and the words behind it.

Three kinds of file: rows with the words' scores, a file a unit of scoring; members of the families that words are
corrected in, a file a test; and the tables that a whole run publishes.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from distseat.definitions import Encoding
from distseat.errors import StorageError
from distseat.storage import commit_new, publish

__all__ = [
    "FamilyMember",
    "ResultRow",
    "RowKey",
    "RowWords",
    "commit_members",
    "commit_rows",
    "commit_words",
    "publish_results",
    "read_members",
    "read_rows",
    "read_words",
]

RESULTS_FORMAT: Final = 2

Decision = Literal["reject", "retain"]


class RowKey(NamedTuple):
    """What makes a row one of its kind."""

    model: str
    revision: str
    encoding: str
    pooling: str
    layer: int
    postprocessing: str
    test: str
    form: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One association test of one variant.

    Attributes
    ----------
    file
        The name that the published data give the test in this form, as "sent-weat1".
    n_x, n_y, n_a, n_b
        Stimuli of each set.
    statistic, effect_size
        Over stimuli, as published.
    p_value, log10_p, p_standard_error, p_floor, p_less, method_used
        Of the permutation of stimuli; see distseat.statistics.PermutationTest.
    effect_size_word, p_value_word, ...
        The same over words, each with the mean score of its stimuli; null where the words are not known.
    interval_low, interval_high
        95% interval of `effect_size_word`.
    leave_word_low, ..., leave_template_high
        Range of `effect_size` when a word, or a template, is left out; null where none can be.
    mleat_x, mleat_y, cos_xa, ..., sd_yb, same, ripa
        Other measures; see distseat.statistics.measures.
    subtokens_x, subtokens_y
        Mean number of sub-tokens a word; null where the tokenizer cannot tell.
    position_0_share
        Share of target vectors that are the state of the sequence's first position; null where a vector is of several
        tokens.
    void_reason
        Why nothing could be tested; null in an ordinary row.
    options, versions
        JSON: the model's encoding options; what produced the vectors and the row.
    p_adjusted, decision, family_size
        After correction over all rows of the run that are not void; null before the run is whole.
    p_adjusted_word, decision_word, family_size_word
        After step-down maxT within each test and Holm over so many tests.
    """

    model: str
    revision: str
    encoding: Encoding
    pooling: str
    layer: int
    postprocessing: str
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
    log10_p: float | None = None
    p_standard_error: float | None = None
    p_floor: float | None = None
    p_less: float | None = None
    method_used: str | None = None
    n_words_x: int | None = None
    n_words_y: int | None = None
    effect_size_word: float | None = None
    p_value_word: float | None = None
    log10_p_word: float | None = None
    p_standard_error_word: float | None = None
    p_floor_word: float | None = None
    p_less_word: float | None = None
    method_used_word: str | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    leave_word_low: float | None = None
    leave_word_high: float | None = None
    leave_template_low: float | None = None
    leave_template_high: float | None = None
    mleat_x: float | None = None
    mleat_y: float | None = None
    cos_xa: float | None = None
    cos_xb: float | None = None
    cos_ya: float | None = None
    cos_yb: float | None = None
    sd_xa: float | None = None
    sd_xb: float | None = None
    sd_ya: float | None = None
    sd_yb: float | None = None
    same: float | None = None
    ripa: float | None = None
    alternative: str
    seed: int
    subtokens_x: float | None
    subtokens_y: float | None
    position_0_share: float | None
    void_reason: str | None = None
    options: str
    versions: str
    p_adjusted: float | None = None
    decision: Decision | None = None
    family_size: int | None = None
    p_adjusted_word: float | None = None
    decision_word: Decision | None = None
    family_size_word: int | None = None
    alpha: float | None = None

    @property
    def key(self) -> RowKey:
        """What makes the row one of its kind."""
        return RowKey(*(getattr(self, name) for name in RowKey._fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWords:
    """The words of one row that is not void.

    Attributes
    ----------
    words_x, words_y
        In the order of their first stimulus.
    scores_x, scores_y
        Mean of s(w, A, B) over each word's stimuli.
    """

    key: RowKey
    words_x: tuple[str, ...]
    words_y: tuple[str, ...]
    scores_x: tuple[float, ...]
    scores_y: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyMember:
    """A row within its family, the rows that permute the same words of one test.

    Attributes
    ----------
    family
        A hash of the test and its words.
    p_adjusted
        By step-down maxT within the family.
    """

    key: RowKey
    family: str
    p_adjusted: float


_INTEGERS: Final = frozenset(
    {"layer", "n_x", "n_y", "n_a", "n_b", "n_words_x", "n_words_y", "family_size", "family_size_word"}
)
_FLOAT: Final = (float, float | None)
_ABOUT: Final = {"distseat": json.dumps({"results_format": RESULTS_FORMAT})}


def _type_of(name: str, annotation: object) -> pa.DataType:
    if name in _INTEGERS:
        return pa.int32()
    if name == "seed":
        return pa.int64()
    return pa.float64() if annotation in _FLOAT else pa.string()


_KEYS: Final = [(name, pa.int32() if name == "layer" else pa.string()) for name in RowKey._fields]
_ROWS: Final = pa.schema(
    [(field.name, _type_of(field.name, field.type)) for field in fields(ResultRow)], metadata=_ABOUT
)
_WORDS: Final = pa.schema(
    [
        *_KEYS,
        *((name, pa.list_(pa.field("element", pa.string()))) for name in ("words_x", "words_y")),
        *((name, pa.list_(pa.field("element", pa.float64()))) for name in ("scores_x", "scores_y")),
    ],
    metadata=_ABOUT,
)
_MEMBERS: Final = pa.schema([*_KEYS, ("family", pa.string()), ("p_adjusted", pa.float64())], metadata=_ABOUT)
_PUBLISHED_WORDS: Final = pa.schema(
    [
        *((name, pa.int32() if name == "layer" else pa.dictionary(pa.int32(), pa.string())) for name in RowKey._fields),
        ("set", pa.dictionary(pa.int32(), pa.string())),
        ("word", pa.dictionary(pa.int32(), pa.string())),
        ("score", pa.float64()),
    ],
    metadata=_ABOUT,
)


def commit_rows(path: Path, rows: Sequence[ResultRow]) -> bool:
    """Commit the rows of one unit of scoring; False where another attempt has done so."""
    return commit_new(path, _parquet([asdict(row) for row in rows], _ROWS))


def read_rows(path: Path) -> list[ResultRow]:
    """Read the rows of a results file.

    Raises
    ------
    StorageError
        The file is damaged or of another format.
    """
    return [ResultRow(**row) for row in _read(path, _ROWS).to_pylist()]


def commit_words(path: Path, words: Sequence[RowWords]) -> bool:
    """Commit the words of one unit of scoring; False where another attempt has done so."""
    return commit_new(path, _parquet([_flat(row) for row in words], _WORDS))


def read_words(path: Path, *, test: str | None = None) -> list[RowWords]:
    """Read the words of a unit of scoring, those of one test or all.

    Raises
    ------
    StorageError
        The file is damaged or of another format.
    """
    table = _read(path, _WORDS)
    if test is not None:
        table = table.filter(pc.field("test") == test)
    return [
        RowWords(
            key=_key_of(row), **{name: tuple(row[name]) for name in ("words_x", "words_y", "scores_x", "scores_y")}
        )
        for row in table.to_pylist()
    ]


def commit_members(path: Path, members: Sequence[FamilyMember]) -> bool:
    """Commit the corrected rows of one test; False where another attempt has done so."""
    return commit_new(path, _parquet([_flat(member) for member in members], _MEMBERS))


def read_members(path: Path) -> list[FamilyMember]:
    """Read the corrected rows of one test.

    Raises
    ------
    StorageError
        The file is damaged or of another format.
    """
    return [
        FamilyMember(key=_key_of(row), family=row["family"], p_adjusted=row["p_adjusted"])
        for row in _read(path, _MEMBERS).to_pylist()
    ]


def publish_results(directory: Path, rows: Sequence[ResultRow], words: Iterable[Path]) -> dict[str, str]:
    """Write results.parquet, results.tsv and words.parquet, each replaced at once; the sha256 of each is returned.

    Parameters
    ----------
    words
        The committed files of `commit_words`, in order.
    """
    contents = {
        "results.parquet": _parquet([asdict(row) for row in rows], _ROWS),
        "results.tsv": _tsv(rows).encode(),
        "words.parquet": _published_words(words),
    }
    for name, content in contents.items():
        publish(directory / name, content)
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def _flat(record: RowWords | FamilyMember) -> dict[str, Any]:
    content = {field.name: getattr(record, field.name) for field in fields(record) if field.name != "key"}
    return record.key._asdict() | content


def _key_of(row: dict[str, Any]) -> RowKey:
    return RowKey(*(row[name] for name in RowKey._fields))


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: cannot be read ({error}); delete it and run again") from error
    if not table.schema.equals(schema, check_metadata=True):
        raise StorageError(f"{path}: was written by another version of distseat; delete it and run again")
    return table


def _parquet(records: list[dict[str, Any]], schema: pa.Schema) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records, schema=schema), sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def _published_words(paths: Iterable[Path]) -> bytes:
    """One line a word: what a person asks for when a row surprises; unit by unit, since a big sweep has millions."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, _PUBLISHED_WORDS, compression="zstd", write_page_checksum=True) as writer:
        for path in paths:
            for table in _long(_read(path, _WORDS)):
                writer.write_table(table)
    return sink.getvalue()


def _long(table: pa.Table) -> Iterator[pa.Table]:
    table = table.combine_chunks()
    for name in ("X", "Y"):
        words, scores = (table[f"{what}_{name.lower()}"] for what in ("words", "scores"))
        keys = table.select(RowKey._fields).take(pc.list_parent_indices(words))
        named = pa.array([name] * len(keys), pa.string())
        long = keys.append_column("set", named).append_column("word", pc.list_flatten(words))
        yield long.append_column("score", pc.list_flatten(scores)).cast(_PUBLISHED_WORDS)


def _tsv(rows: Iterable[ResultRow]) -> str:
    """The nine columns of May et al. (2019) and the corrected decisions."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter="\t", lineterminator="\n")
    columns = ("model", "options", "test", "p_value", "effect_size", "num_targ1", "num_targ2", "num_attr1", "num_attr2")
    writer.writerow((*columns, "decision", "p_value_word", "effect_size_word", "decision_word"))
    for row in rows:
        options = (
            f"revision={row.revision};encoding={row.encoding};pooling={row.pooling};layer={row.layer};"
            f"postprocessing={row.postprocessing}"
        )
        values = (row.model, options, row.file, row.p_value, row.effect_size, row.n_x, row.n_y, row.n_a, row.n_b)
        by_word = (row.p_value_word, row.effect_size_word, row.decision_word)
        writer.writerow("NA" if value is None else value for value in (*values, row.decision or "void", *by_word))
    return sink.getvalue()
