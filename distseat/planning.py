"""From a configuration to units of work: what must be encoded, what the store has, what is scored from what.

A plan is frozen before the first unit runs: float32 vectors depend, in the last bit, on the batch that they are
computed in, so a resumed run must cut its work as the first one did. A model's plan is a file in OUT/plan, named by
a hash of what was asked for; it holds the resolved revision, the units, and the parts of the store that are used again.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from distseat import __version__
from distseat.config import LayerName, ModelEntry, ScoringOptions, SweepConfig
from distseat.definitions import ENCODINGS, ROLES, Encoding, Stimulus, TestForm
from distseat.errors import ConfigError, DefinitionError, ModelError, StorageError
from distseat.models import POOLINGS, ModelSpec, ResolvedModel, VectorSpec, local_directory, resolve
from distseat.statistics import Postprocessing, Reach, is_countable, p_floor, reach, step_down_floor
from distseat.storage import commit_new, ensure_writable, read_bytes
from distseat.stores import EmbeddingStore
from distseat.templates import load_tests, select_tests

__all__ = [
    "EncodeUnit",
    "FamilyUnit",
    "FloorWarning",
    "ModelPlan",
    "ScoreUnit",
    "SweepPlan",
    "plan_sweep",
    "preflight",
]

# Part of every id, so that another format shares no file:
_FORMAT: Final = 1  # of plans and units of encoding
_ROWS_FORMAT: Final = 2  # of scored rows and corrected families
_UNIT_STIMULI: Final = 512
_UNIT_TARGETS: Final = 1_000  # targets whose permutations one unit of scoring draws


@dataclass(frozen=True, slots=True)
class EncodeUnit:
    """Stimuli that one call of an encoder turns into the same vectors."""

    unit_id: str
    specs: tuple[VectorSpec, ...]
    stimuli: tuple[Stimulus, ...]

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The encodings that the unit commits a part of."""
        return tuple(dict.fromkeys(spec.encoding for spec in self.specs))


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """All work on one model.

    Attributes
    ----------
    specs
        Every vector that is measured: a row for each test that has its encoding.
    units
        What is encoded by this run; committed units among them are skipped.
    reused
        Parts of the store that held some of the stimuli when the plan was frozen.
    """

    model: ResolvedModel
    specs: tuple[VectorSpec, ...]
    units: tuple[EncodeUnit, ...]
    reused: Mapping[Encoding, tuple[str, ...]]

    def parts(self, encoding: Encoding) -> list[str]:
        """The parts that hold every vector of an encoding, those used again first."""
        own = [unit.unit_id for unit in self.units if encoding in unit.encodings]
        return [*self.reused.get(encoding, ()), *own]

    def pending(self, store: EmbeddingStore) -> list[EncodeUnit]:
        """The units that the store does not hold yet."""
        return [unit for unit in self.units if not store.has(self.model.key, unit.encodings, unit.unit_id)]


@dataclass(frozen=True, slots=True)
class ScoreUnit:
    """Tests of one model that one task scores and commits together.

    Attributes
    ----------
    population
        Keys of all planned stimuli of each encoding, which vectors are centred on; empty where nothing is centred.
    """

    unit_id: str
    model: ResolvedModel
    specs: tuple[VectorSpec, ...]
    parts: Mapping[Encoding, Sequence[str]]
    forms: tuple[TestForm, ...]
    postprocessings: tuple[Postprocessing, ...]
    population: Mapping[Encoding, tuple[str, ...]]
    options: ScoringOptions

    @property
    def n_rows(self) -> int:
        """Rows that the unit makes."""
        n_variants = sum(spec.encoding in form.encodings for form in self.forms for spec in self.specs)
        return n_variants * len(self.postprocessings)


@dataclass(frozen=True, slots=True)
class FamilyUnit:
    """All variants of one test, which one task corrects together.

    Attributes
    ----------
    score_units
        Ids of the units of scoring that hold rows of the test.
    """

    unit_id: str
    test_id: str
    score_units: tuple[str, ...]
    options: ScoringOptions


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A sweep made ready: every test, every model's plan, where things go."""

    config: SweepConfig
    forms: tuple[TestForm, ...]
    models: tuple[ModelPlan, ...]
    store: EmbeddingStore
    out: Path
    _score_units: dict[str, list[ScoreUnit]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def score_units(self, plan: ModelPlan) -> list[ScoreUnit]:
        """Cut a model's tests into units of scoring, the same way whatever runs them."""
        if plan.model.key not in self._score_units:
            self._score_units[plan.model.key] = self._cut(plan)
        return self._score_units[plan.model.key]

    def _cut(self, plan: ModelPlan) -> list[ScoreUnit]:
        population = _population(self.forms, plan.specs) if set(self.config.postprocessing) != {"none"} else {}
        digest = _digest(population)
        batches = _batches_of_forms(self.forms, plan.specs)
        return [_score_unit(plan, forms, population, digest, self.config) for forms in batches]

    def family_units(self) -> list[FamilyUnit]:
        """One unit a test, over all models."""
        holding: dict[str, list[str]] = {}
        for plan in self.models:
            for unit in self.score_units(plan):
                for test_id in dict.fromkeys(form.test_id for form in unit.forms):
                    holding.setdefault(test_id, []).append(unit.unit_id)
        options = self.config.scoring
        return [
            FamilyUnit(_digest([_ROWS_FORMAT, test_id, ids, asdict(options)]), test_id, tuple(ids), options)
            for test_id, ids in holding.items()
        ]

    def rows_path(self, score_unit_id: str) -> Path:
        """Where a unit of scoring commits its rows, last of all: where they are, the words are too."""
        return self.out / "rows" / f"{score_unit_id}.parquet"

    def words_path(self, score_unit_id: str) -> Path:
        """Where a unit of scoring commits the scores of its words."""
        return self.out / "words" / f"{score_unit_id}.parquet"

    def family_path(self, unit: FamilyUnit) -> Path:
        """Where the corrected rows of a test are committed."""
        return self.out / "families" / f"{unit.unit_id}.parquet"


def plan_sweep(config: SweepConfig) -> SweepPlan:
    """Check a configuration against the tests, the models and the store, and freeze the work on each model.

    Raises
    ------
    DistseatError
        What the user can mend: a faulty test file, an unknown model, a layer that does not exist, a place that cannot
        be written, c-word asked of sentences whose word is not known.
    """
    forms = _chosen_forms(config)
    out = config.out
    for directory in (out, config.store_path):
        ensure_writable(directory)
    store = EmbeddingStore(config.store_path)
    store.create()
    stimuli = _wanted(forms, config.encodings)
    plans = [_frozen(entry, config, stimuli, store, out) for entry in config.models]
    keys = [(plan.model.spec.name, plan.model.revision) for plan in plans]
    for name, revision in keys:
        if keys.count((name, revision)) > 1:
            raise ConfigError(f"models: {name} at revision {revision} stands twice; give one a `name` of its own")
    return SweepPlan(config, tuple(forms), tuple(plans), store, out)


@dataclass(frozen=True, slots=True)
class FloorWarning:
    """A test that is too small for the run: its p cannot be low enough at once, or ever.

    Attributes
    ----------
    unit
        The permutation unit, stimulus or word.
    n_rivals
        Hypotheses that are corrected together: rows for stimuli, tests for words.
    """

    test_id: str
    form: str
    unit: Literal["stimulus", "word"]
    p_floor: float
    n_rivals: int
    reach: Reach


def preflight(plan: SweepPlan) -> list[FloorWarning]:
    """Name the tests whose smallest possible p is above Holm's first threshold, in both units."""
    units = [unit for model in plan.models for unit in plan.score_units(model)]
    n_rows = sum(unit.n_rows for unit in units)
    method, alternative, alpha = plan.config.method, plan.config.alternative, plan.config.alpha
    warnings = []
    for form in plan.forms:
        n_x, n_y = (len(form.stimuli[role]) for role in ("X", "Y"))
        floor = p_floor(n_x, n_y, method=method, alternative=alternative)
        found = reach(floor, m=n_rows, alpha=alpha)
        if found.n_before and (plan.config.correction == "holm" or not found.possible):
            warnings.append(FloorWarning(form.test_id, form.form, "stimulus", floor, n_rows, found))
    families = {(form.test_id, *_target_words(form)): form for form in reversed(plan.forms) if all(_target_words(form))}
    for (test_id, words_x, words_y), form in reversed(families.items()):
        floor = step_down_floor(len(words_x) + len(words_y), len(words_x), alternative=alternative)
        found = reach(floor, m=len(families), alpha=alpha)
        if found.n_before:
            warnings.append(FloorWarning(test_id, form.form, "word", floor, len(families), found))
    return warnings


def _target_words(form: TestForm) -> tuple[frozenset[str], frozenset[str]]:
    """The words of X and of Y; none where a target came without its word."""
    words_x, words_y = (frozenset(stimulus.word for stimulus in form.stimuli[role]) for role in ("X", "Y"))
    return (frozenset(), frozenset()) if "" in words_x | words_y else (words_x, words_y)


def _chosen_forms(config: SweepConfig) -> list[TestForm]:
    chosen = select_tests(load_tests(config.test_sources), config.test_ids)
    forms = [form for form in chosen if set(form.encodings) & set(config.encodings)]
    if not forms:
        raise ConfigError(f"no chosen test has an encoding of {', '.join(config.encodings)}; choose other encodings")
    if config.method == "exact":
        large = [form for form in forms if not is_countable(*(len(form.stimuli[role]) for role in ("X", "Y")))]
        if large:
            told = ", ".join(f"{form.test_id} {form.form}" for form in large)
            raise ConfigError(
                f"method: exact cannot count the partitions of so many targets: {told}; take auto, which samples such "
                "tests by importance, or leave them out"
            )
    if "c-word" in config.encodings:
        unknown = [form for form in forms if "c-word" in form.encodings and not _words_known(form)]
        if unknown:
            told = ", ".join(f"{form.file}.jsonl needs {form.test_id}.jsonl" for form in unknown)
            raise DefinitionError(
                f"c-word needs the word inside each sentence, from the word-level file of the same name: {told}; "
                "add the files, or leave c-word out of `encodings`"
            )
    return forms


def _words_known(form: TestForm) -> bool:
    return all(stimulus.word for role in ROLES for stimulus in form.stimuli[role])


def _wanted(forms: Iterable[TestForm], encodings: Sequence[Encoding]) -> dict[Stimulus, frozenset[Encoding]]:
    """Each distinct (text, span) once, in the order that plans are cut in, with the encodings that some test needs."""
    needs: dict[str, frozenset[Encoding]] = {}
    stimuli: dict[str, Stimulus] = {}
    for form in forms:
        own = frozenset(form.encodings) & frozenset(encodings)
        for role in ROLES:
            for stimulus in form.stimuli[role]:
                needs[stimulus.key] = needs.get(stimulus.key, frozenset()) | own
                stimuli.setdefault(stimulus.key, stimulus)
    ordered = sorted(stimuli.values(), key=lambda s: (len(s.text), s.text, s.start, s.end))
    return {stimulus: needs[stimulus.key] for stimulus in ordered}


def _frozen(
    entry: ModelEntry,
    config: SweepConfig,
    stimuli: Mapping[Stimulus, frozenset[Encoding]],
    store: EmbeddingStore,
    out: Path,
) -> ModelPlan:
    """Load the plan of an earlier run that asked for the same, or freeze a new one."""
    spec = entry.spec()
    present = resolve(spec) if local_directory(spec) is not None else None
    asked = _asked(entry, spec, config, stimuli, present)
    path = out / "plan" / f"{_digest(asked)}.json"
    content = read_bytes(path)
    if content is None:
        plan = _new_plan(entry, present or resolve(spec), config, stimuli, store)
        commit_new(path, _plan_json(plan))
        content = read_bytes(path)  # another driver's plan, if that one was first
    plan = _plan_from(path, content, spec, stimuli)
    for encoding, names in plan.reused.items():
        for name in names:
            if not store.path(plan.model.key, encoding, name).exists():
                raise StorageError(
                    f"{path}: this plan counts on the part {encoding}/{name} of model {spec.name}, which the store "
                    f"{store.root} does not have; give the store that it was made with, or delete this plan"
                )
    return plan


def _asked(
    entry: ModelEntry,
    spec: ModelSpec,
    config: SweepConfig,
    stimuli: Mapping[Stimulus, frozenset[Encoding]],
    present: ResolvedModel | None,
) -> list[Any]:
    """What a plan answers to. A hub's revision is what was asked for, since what it means is frozen in the plan."""
    revision = present.revision if present else [spec.source, spec.revision]
    wanted = [[stimulus.key, sorted(needs)] for stimulus, needs in stimuli.items()]
    encodings = [encoding for encoding in ENCODINGS if encoding in config.encodings]
    vectors = [encodings, _poolings(entry, spec, encodings), config.cword_pooling, entry.layers or config.layers]
    return [_FORMAT, spec.name, revision, asdict(spec.options), vectors, wanted]


def _new_plan(
    entry: ModelEntry,
    model: ResolvedModel,
    config: SweepConfig,
    stimuli: Mapping[Stimulus, frozenset[Encoding]],
    store: EmbeddingStore,
) -> ModelPlan:
    layers = _layers(model, entry.layers or config.layers)
    specs = _vector_specs(config, _poolings(entry, model.spec, config.encodings), layers)
    held, reused = _held(model.key, specs, stimuli, store)
    lacking: dict[tuple[VectorSpec, ...], list[Stimulus]] = {}
    for stimulus, needs in stimuli.items():
        missing = tuple(s for s in specs if s.encoding in needs and stimulus.key not in held[s])
        if missing:
            lacking.setdefault(missing, []).append(stimulus)
    units = [unit for missing, some in lacking.items() for unit in _units(model.key, missing, some)]
    return ModelPlan(model, specs, tuple(units), reused)


def _poolings(entry: ModelEntry, spec: ModelSpec, encodings: Sequence[Encoding]) -> list[str]:
    if not {"word", "sent"} & set(encodings):
        return []
    if entry.pooling:
        return list(entry.pooling)
    if spec.pooling is None:
        raise ConfigError(
            f"models: {spec.name}: no pooling is published for it; give `pooling`, one or several of "
            f"{', '.join(POOLINGS)} (usual: cls for BERT and its like, last for decoders, mean for sentence encoders)"
        )
    return [spec.pooling]


def _layers(model: ResolvedModel, asked: Sequence[int | LayerName]) -> list[int]:
    n = model.n_hidden_states
    named = {"first": [0], "middle": [n // 2], "last": [n - 1], "all": list(range(n))}
    chosen: list[int] = []
    for layer in asked:
        if isinstance(layer, str):
            chosen += named[layer]
        elif -n <= layer < n:
            chosen.append(layer % n)
        else:
            raise ModelError(
                f"model {model.spec.name}: has no layer {layer}; its {n} hidden states are 0 (embeddings) to {n - 1}, "
                f"or -{n} to -1 from the end"
            )
    return sorted(set(chosen))


def _vector_specs(config: SweepConfig, poolings: Sequence[str], layers: Sequence[int]) -> tuple[VectorSpec, ...]:
    return tuple(
        VectorSpec(encoding, pooling, layer)
        for encoding in ENCODINGS
        if encoding in config.encodings
        for pooling in (config.cword_pooling if encoding == "c-word" else poolings)
        for layer in layers
    )


def _held(
    model_key: str, specs: Sequence[VectorSpec], stimuli: Iterable[Stimulus], store: EmbeddingStore
) -> tuple[dict[VectorSpec, set[str]], dict[Encoding, tuple[str, ...]]]:
    """Which of the wanted vectors the store has, and in which parts."""
    wanted = {stimulus.key for stimulus in stimuli}
    held: dict[VectorSpec, set[str]] = {spec: set() for spec in specs}
    reused: dict[Encoding, tuple[str, ...]] = {}
    for encoding in dict.fromkeys(spec.encoding for spec in specs):
        used = []
        for part in store.parts(model_key, encoding):
            useful = [spec for spec in specs if spec in part.specs]
            keys = part.stimulus_keys & wanted
            if useful and keys:
                used.append(part.name)
                for spec in useful:
                    held[spec] |= keys
        if used:
            reused[encoding] = tuple(used)
    return held, reused


def _units(model_key: str, specs: tuple[VectorSpec, ...], stimuli: Sequence[Stimulus]) -> Iterator[EncodeUnit]:
    for start in range(0, len(stimuli), _UNIT_STIMULI):
        chunk = tuple(stimuli[start : start + _UNIT_STIMULI])
        unit_id = _digest([_FORMAT, model_key, specs, [stimulus.key for stimulus in chunk]])
        yield EncodeUnit(unit_id, specs, chunk)


def _plan_json(plan: ModelPlan) -> bytes:
    content = {
        "format_version": _FORMAT,
        "model": plan.model.spec.name,
        "revision": plan.model.revision,
        "n_hidden_states": plan.model.n_hidden_states,
        "specs": plan.specs,
        "reused": plan.reused,
        "units": [
            {"id": unit.unit_id, "specs": unit.specs, "stimuli": [stimulus.key for stimulus in unit.stimuli]}
            for unit in plan.units
        ],
    }
    return json.dumps(content, indent=1, sort_keys=True).encode()


def _plan_from(path: Path, content: bytes | None, spec: ModelSpec, stimuli: Iterable[Stimulus]) -> ModelPlan:
    by_key = {stimulus.key: stimulus for stimulus in stimuli}
    try:
        plan = json.loads(content or b"")
        units = tuple(
            EncodeUnit(
                unit["id"], tuple(VectorSpec(*s) for s in unit["specs"]), tuple(by_key[key] for key in unit["stimuli"])
            )
            for unit in plan["units"]
        )
        model = ResolvedModel(spec=spec, revision=plan["revision"], n_hidden_states=plan["n_hidden_states"])
        specs = tuple(VectorSpec(*s) for s in plan["specs"])
        reused = {encoding: tuple(names) for encoding, names in plan["reused"].items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: is not a plan ({error!r}); delete it to plan anew") from error
    return ModelPlan(model, specs, units, reused)


def _batches_of_forms(forms: Iterable[TestForm], specs: Sequence[VectorSpec]) -> Iterator[tuple[TestForm, ...]]:
    """Forms in order, cut so that a unit's permutations take seconds."""
    measured = {spec.encoding for spec in specs}
    batch: list[TestForm] = []
    n_targets = 0
    for form in forms:
        if not measured & set(form.encodings):
            continue
        own = len(form.stimuli["X"]) + len(form.stimuli["Y"])
        if batch and n_targets + own > _UNIT_TARGETS:
            yield tuple(batch)
            batch, n_targets = [], 0
        batch.append(form)
        n_targets += own
    if batch:
        yield tuple(batch)


def _population(forms: Iterable[TestForm], specs: Sequence[VectorSpec]) -> dict[Encoding, tuple[str, ...]]:
    """Keys of the distinct stimuli of each encoding that is measured, in ascending order."""
    keys: dict[Encoding, set[str]] = {spec.encoding: set() for spec in specs}
    for form in forms:
        for encoding in keys.keys() & set(form.encodings):
            keys[encoding] |= {stimulus.key for role in ROLES for stimulus in form.stimuli[role]}
    return {encoding: tuple(sorted(found)) for encoding, found in keys.items()}


def _score_unit(
    plan: ModelPlan,
    forms: tuple[TestForm, ...],
    population: Mapping[Encoding, tuple[str, ...]],
    population_digest: str,
    config: SweepConfig,
) -> ScoreUnit:
    parts = {encoding: plan.parts(encoding) for encoding in ENCODINGS}
    options, postprocessings = config.scoring, tuple(config.postprocessing)
    content = [plan.specs, parts, [form.digest for form in forms], postprocessings, asdict(options)]
    unit_id = _digest([_ROWS_FORMAT, __version__, plan.model.key, *content, population_digest])
    return ScoreUnit(unit_id, plan.model, plan.specs, parts, forms, postprocessings, population, options)


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
