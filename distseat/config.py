"""The configuration of a sweep: read once, checked once, every fault told together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from distseat.definitions import ENCODINGS, Encoding, Faults, read_yaml
from distseat.errors import ConfigError, StorageError
from distseat.models import CATALOGUE, CwordPooling, EncodingOptions, ModelSpec, Pooling, catalogued
from distseat.statistics import Alternative, IntervalMethod, Method, Postprocessing, Resample
from distseat.storage import local_path
from distseat.templates import PUBLISHED

__all__ = [
    "CPU_TOKEN_BUDGET",
    "GPU_TOKEN_BUDGET",
    "Correction",
    "LayerName",
    "ModelEntry",
    "ScoringOptions",
    "SweepConfig",
    "load_config",
]

CPU_TOKEN_BUDGET: Final = 1_024  # padded tokens of a forward pass; benchmarks/encode.py measures it
GPU_TOKEN_BUDGET: Final = 16_384

LayerName = Literal["first", "middle", "last", "all"]
Correction = Literal["holm", "bh"]


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _unique(values: list[Any]) -> list[Any]:
    if len(set(values)) != len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise ValueError(f"{twice!r} stands twice; keep one")
    return values


Text = Annotated[str, StringConstraints(strict=True, min_length=1)]
Layers = Annotated[list[StrictInt | LayerName], BeforeValidator(_as_list), Field(min_length=1), AfterValidator(_unique)]
Poolings = Annotated[list[Pooling], BeforeValidator(_as_list), Field(min_length=1), AfterValidator(_unique)]
CwordPoolings = Annotated[list[CwordPooling], BeforeValidator(_as_list), Field(min_length=1), AfterValidator(_unique)]
Encodings = Annotated[list[Encoding], BeforeValidator(_as_list), Field(min_length=1), AfterValidator(_unique)]


def _local(value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError("the path of a directory was expected")
    try:
        return local_path(str(value)).expanduser()
    except StorageError as error:
        raise ValueError(str(error)) from error


Postprocessings = Annotated[
    list[Postprocessing], BeforeValidator(_as_list), Field(min_length=1), AfterValidator(_unique)
]
Directory = Annotated[Path, BeforeValidator(_local)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringOptions:
    """What the numbers of a row depend on beyond vectors and tests."""

    seed: int
    method: Method
    alternative: Alternative
    interval: IntervalMethod
    resample: Resample


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(_Part):
    """One model of a sweep; what is left out comes from the catalogue or the sweep.

    Attributes
    ----------
    name
        A name of the catalogue, a Hugging Face id, or with `source` any name for the results.
    source
        A Hugging Face id or a directory with config.json, tokenizer and safetensors.
    revision
        Commit, tag or branch.
    pooling
        Of `word` and `sent`: cls, mean, max, last, or several.
    """

    name: Text
    source: Text | None = None
    revision: Text | None = None
    pooling: Poolings | None = None
    layers: Layers | None = None
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    special_tokens: Literal["include", "exclude"] = "include"
    prefix_bos: bool = False
    num_gpus: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @field_validator("num_gpus")
    @classmethod
    def _whole_gpus(cls, value: float | None) -> float | None:
        if value is not None and value > 1 and not value.is_integer():
            raise ValueError("a share of one GPU, or a whole number of them, was expected")
        return value

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    def spec(self) -> ModelSpec:
        """The model that the entry means.

        Raises
        ------
        ModelError
            Neither the catalogue nor the entry says where the model is.
        """
        known = CATALOGUE.get(self.name) or next((m for m in CATALOGUE.values() if m.source == self.name), None)
        if self.source is None and known is None and "/" not in self.name:
            known = catalogued(self.name)
        source = _absolute(self.source or (known.source if known else self.name))
        moved = known is None or source != known.source
        revision = self.revision or (None if moved or known is None else known.revision)
        return ModelSpec(
            name=_label(self.name),
            source=source,
            revision=revision,
            weights_sha256=None if moved or known is None else known.weights_sha256,
            pooling=known.pooling if known else None,
            n_parameters=known.n_parameters if known else None,
            num_gpus=self.num_gpus if self.num_gpus is not None else known.num_gpus if known else 1.0,
            options=EncodingOptions(dtype=self.dtype, special_tokens=self.special_tokens, prefix_bos=self.prefix_bos),
        )


def _absolute(source: str) -> str:
    """A directory by its absolute path, since workers run elsewhere; any other source as it is."""
    path = Path(source).expanduser()
    return str(path.resolve()) if path.is_dir() else source


def _label(name: str) -> str:
    """A directory given as name is called by its last part: no path of a machine enters a result."""
    path = Path(name).expanduser()
    return path.resolve().name if path.is_dir() or name.startswith(("/", ".", "~")) else name


class SweepConfig(_Part):
    """Which models, which vectors, which tests; where the results go.

    Paths are relative to the directory that the command is run in.

    Attributes
    ----------
    models
        What to measure.
    encodings
        word, sent, c-word.
    layers
        Numbers of hidden states (0: embedding layer, -1: last), or first, middle, last, all.
    cword_pooling
        Which sub-token of the word gives its vector.
    tests
        "all", or ids of tests.
    test_sources
        "published", YAML files, directories of YAML files or of the published JSON format.
    postprocessing
        Of the vectors, before they are scored: none, center, standardize, or several.
    method
        Of the p-values: auto, exact, importance, sampled, normal.
    alternative
        greater: X goes with A, as published; less; two-sided.
    interval
        Of the effect size over words: bca, percentile.
    resample
        Which words an interval draws: targets, or all, attributes as well.
    correction
        Of the published unit's decision: holm, bh.
    alpha
        Level of the decisions over all rows.
    seed
        Of all that is drawn.
    device
        auto: a GPU if the machine has one; on a cluster, what the model declares.
    threads
        CPU threads of an encoder actor.
    token_budget
        Most tokens, padding included, of one forward pass; None: 1,024 on a CPU, 16,384 on a GPU.
    out
        Directory of results, plan and, unless `store` names another, the embedding store.
    store
        Directory of the embedding store; several sweeps may share it.
    """

    models: list[ModelEntry] = Field(min_length=1)
    encodings: Encodings = list(ENCODINGS)
    layers: Layers = ["last"]
    cword_pooling: CwordPoolings = ["first-subword"]
    tests: Literal["all"] | Annotated[list[Text], Field(min_length=1)] = "all"
    test_sources: Annotated[list[Text], BeforeValidator(_as_list), Field(min_length=1)] = [PUBLISHED]
    postprocessing: Postprocessings = ["none"]
    method: Method = "auto"
    alternative: Alternative = "greater"
    interval: IntervalMethod = "bca"
    resample: Resample = "targets"
    correction: Correction = "holm"
    alpha: float = Field(default=0.01, gt=0, lt=1)
    seed: StrictInt = Field(default=0, ge=0, lt=2**63)  # the results hold it in 64 bits
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: StrictInt = Field(default=1, ge=1)
    token_budget: StrictInt | None = Field(default=None, ge=1)
    out: Directory = Path("out/sweep")
    store: Directory | None = None

    @property
    def store_path(self) -> Path:
        """Where the embedding store is."""
        return self.store or self.out / "store"

    @property
    def scoring(self) -> ScoringOptions:
        """What scoring a row needs to know."""
        return ScoringOptions(
            seed=self.seed,
            method=self.method,
            alternative=self.alternative,
            interval=self.interval,
            resample=self.resample,
        )

    @property
    def test_ids(self) -> list[str] | None:
        """The chosen tests; None for all."""
        return None if self.tests == "all" else list(self.tests)


def load_config(path: Path, **changes: Any) -> SweepConfig:
    """Read a configuration file.

    Parameters
    ----------
    path
        YAML.
    changes
        Values that replace the file's, as from the command line; None leaves the file's.

    Raises
    ------
    ConfigError
        With every fault of the file: key, what was expected.
    """
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give a configuration file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not text in UTF-8 ({error}); save it as UTF-8") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: a mapping with the key `models` was expected; see examples/quickstart.yaml")
    content |= {key: value for key, value in changes.items() if value is not None}
    try:
        return SweepConfig.model_validate(content)
    except ValidationError as error:
        faults = Faults()
        known = [*SweepConfig.model_fields, *ModelEntry.model_fields]
        faults.add_validation(path.name, error, content, known_keys=known)
        raise ConfigError(faults.told("configuration")) from error
