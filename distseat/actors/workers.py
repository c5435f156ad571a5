"""The work itself, in plain classes and functions that know nothing of Ray: load, encode, score, commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from distseat.encoders import Encoder
from distseat.errors import ModelError
from distseat.models import ResolvedModel, VectorSpec, local_directory, resolve
from distseat.planning import EncodeUnit, FamilyUnit, ScoreUnit
from distseat.scoring import correct_words, score_forms
from distseat.stores import EmbeddingStore, StoredVectors, commit_members, commit_rows, commit_words, read_words

__all__ = ["EncodeReport", "EncodingWorker", "Placement", "correct_and_commit", "score_and_commit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What an encoder runs on: torch device, GPUs asked of Ray, CPU threads, tokens of one forward pass."""

    device: str
    num_gpus: float
    threads: int
    token_budget: int


@dataclass(frozen=True, slots=True)
class EncodeReport:
    """What came of encoding one unit."""

    unit_id: str
    n_stimuli: int


class EncodingWorker:
    """One loaded model; encodes units and commits them to the store."""

    def __init__(self, model: ResolvedModel, store_root: Path, placement: Placement) -> None:
        self.model = model
        self.store_root = store_root
        self.placement = placement
        self._encoder: Encoder | None = None

    def ready(self) -> None:
        """Answer: the actor has what it asked of the cluster."""

    def load(self) -> None:
        """Load the model, apart from the constructor: what goes wrong here is told as the error that it is.

        Raises
        ------
        ModelError
            The model cannot be loaded, or its files have changed since the plan was frozen.
        """
        spec = self.model.spec
        if local_directory(spec) is not None and (found := resolve(spec).revision) != self.model.revision:
            raise ModelError(
                f"model {spec.name}: its files have revision {found}, but the plan was made for {self.model.revision}; "
                "put the files back, or run again to plan anew"
            )
        try:
            from distseat.encoders.huggingface import load_huggingface  # noqa: PLC0415 - torch loads only in workers
        except ImportError as error:
            raise ModelError(f"model {spec.name}: encoding needs `pip install 'distseat[hf]'` ({error})") from error
        place = self.placement
        self._encoder = load_huggingface(
            self.model, device=place.device, threads=place.threads, token_budget=place.token_budget
        )

    def encode(self, unit: EncodeUnit) -> EncodeReport:
        """Encode a unit and commit it, unless another attempt has."""
        store = EmbeddingStore(self.store_root)
        store.require()
        if store.has(self.model.key, unit.encodings, unit.unit_id):
            return EncodeReport(unit.unit_id, len(unit.stimuli))
        if self._encoder is None:
            self.load()
        encoder = self._encoder
        assert encoder is not None  # noqa: S101 - for mypy: load() sets it or raises
        encoded = encoder.encode(unit.stimuli, unit.specs)
        about = {"model": self.model.spec.name, "revision": self.model.revision, **encoder.about}
        store.commit(self.model.key, unit.unit_id, unit.stimuli, encoded, about)
        return EncodeReport(unit.unit_id, len(unit.stimuli))


def score_and_commit(unit: ScoreUnit, store_root: Path, rows_path: Path, words_path: Path) -> None:
    """Score a unit's tests; commit their words, and then their rows, which tell that both are there."""
    store = EmbeddingStore(store_root)
    store.require()
    read: Callable[[VectorSpec, frozenset[str]], StoredVectors] = partial(_read, store, unit)
    scored = score_forms(
        unit.model,
        unit.forms,
        unit.specs,
        read=read,
        options=unit.options,
        postprocessings=unit.postprocessings,
        population=unit.population,
    )
    commit_words(words_path, [each.words for each in scored if each.words])
    commit_rows(rows_path, [each.row for each in scored])


def correct_and_commit(unit: FamilyUnit, words_paths: Sequence[Path], path: Path) -> None:
    """Correct all rows of one test by their words, and commit them."""
    rows = [row for words_path in words_paths for row in read_words(words_path, test=unit.test_id)]
    commit_members(path, correct_words(rows, test=unit.test_id, options=unit.options))


def _read(store: EmbeddingStore, unit: ScoreUnit, spec: VectorSpec, keys: frozenset[str]) -> StoredVectors:
    return store.read(unit.model.key, spec, unit.parts[spec.encoding], keys)
