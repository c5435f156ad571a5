"""Vectors to what can be said of a row without drawing anything: scores, effect size, other measures."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from distseat import __version__
from distseat.config import ScoringOptions
from distseat.definitions import ROLES, Encoding, Role, TestForm
from distseat.errors import AssociationError
from distseat.models import ResolvedModel, VectorSpec
from distseat.statistics import (
    FLOAT32_NOISE,
    Association,
    Attributes,
    Moments,
    Postprocessing,
    UnitSets,
    WordScores,
    group_means,
    leave_one_out,
    ml_eat,
    ripa,
    same,
)
from distseat.stores import ResultRow, StoredVectors

__all__ = ["Measured", "ReadVectors", "measure"]

ReadVectors = Callable[[VectorSpec, frozenset[str]], StoredVectors]
Vectors = Mapping[Role, NDArray[np.floating]]

_MIN_WORDS: Final = 2  # of a target set


@dataclass(frozen=True, slots=True)
class Measured:
    """One test form on one kind of vector, before anything is drawn; `association` is None in a void row."""

    form: TestForm
    row: ResultRow
    association: Association | None
    words: WordScores | None = None
    attributes: Attributes | None = None


def measure(
    model: ResolvedModel,
    forms: Sequence[TestForm],
    spec: VectorSpec,
    postprocessings: Sequence[Postprocessing],
    read: ReadVectors,
    population: Mapping[Encoding, Sequence[str]],
    options: ScoringOptions,
) -> Iterator[Measured]:
    """Measure the forms that have the vectors' encoding, after each postprocessing in turn."""
    forms = [form for form in forms if spec.encoding in form.encodings]
    if not forms:
        return
    everyone = () if set(postprocessings) == {"none"} else population[spec.encoding]
    keys = {s.key for form in forms for role in ROLES for s in form.stimuli[role]}
    stored = read(spec, frozenset(keys | set(everyone)))
    where = f"model {model.spec.name}, {spec.encoding} {spec.pooling} layer {spec.layer}"
    try:
        moments = Moments.of(stored.of(everyone)) if everyone else None
    except AssociationError as error:
        raise AssociationError(f"{where}: {error}") from error
    for how in postprocessings:
        for form in forms:
            row = _row(model, form, spec, how, stored, options)
            raw = {role: stored.of([s.key for s in form.stimuli[role]]) for role in ROLES}
            vectors = {role: moments.apply(v, how) for role, v in raw.items()} if moments else raw
            try:
                yield _one(form, row, vectors, how, options)
            except AssociationError as error:
                raise AssociationError(f"{where}, {how}, test {form.test_id} {form.form}: {error}") from error


def _one(form: TestForm, row: ResultRow, vectors: Vectors, how: Postprocessing, options: ScoringOptions) -> Measured:
    if how != "none" and any((~v.any(axis=1)).any() for v in vectors.values()):
        void = f"nothing is left of a vector after {how}: it lies at the mean of all, as where all are alike"
        return Measured(form, replace(row, void_reason=void), None)
    labels: dict[Role, list[str]] = {role: form.texts(role) for role in ROLES}
    units = UnitSets.of(vectors["X"], vectors["Y"], a=vectors["A"], b=vectors["B"], labels=labels)
    association = units.association
    if association.spread < FLOAT32_NOISE.min_spread:
        void = (
            f"all targets have one association score: largest less smallest is {association.spread:.1e}, "
            f"below {FLOAT32_NOISE.min_spread:.0e}, the noise of float32"
        )
        return Measured(form, replace(row, void_reason=void), None)
    row = replace(
        row,
        statistic=association.statistic,
        effect_size=association.effect_size,
        **_left_out(form, association),
        **_other_measures(units, vectors),
    )
    words = _by_word(form, association)
    attributes = _attributes(form, units) if words and options.resample == "all" else None
    return Measured(form, row, association, words, attributes)


def _by_word(form: TestForm, association: Association) -> WordScores | None:
    """Scores of words; None where sentences came without them, X or Y has one word, or all words have one score."""
    words = {role: [s.word for s in form.stimuli[role]] for role in ROLES}
    if not all(words["X"] + words["Y"]):
        return None
    found = WordScores.of(association, words["X"], words["Y"])
    is_tested = min(len(found.words_x), len(found.words_y)) >= _MIN_WORDS
    return found if is_tested and found.association.spread >= FLOAT32_NOISE.min_spread else None


def _attributes(form: TestForm, units: UnitSets) -> Attributes:
    """Mean cosines of target words with attribute words; an attribute without its word stands for itself."""
    words = {role: [s.word or s.text for s in form.stimuli[role]] for role in ROLES}

    def cosines(targets: Role, attributes: Role) -> NDArray[np.float64]:
        of_stimuli = getattr(units, targets.lower()) @ getattr(units, attributes.lower()).T
        _, of_targets = group_means(of_stimuli, words[targets])
        return group_means(of_targets.T, words[attributes])[1].T

    n_stimuli = {role: np.array(list(Counter(words[role]).values()), dtype=np.float64) for role in ("A", "B")}
    return Attributes(
        cosines_xa=cosines("X", "A"),
        cosines_xb=cosines("X", "B"),
        cosines_ya=cosines("Y", "A"),
        cosines_yb=cosines("Y", "B"),
        stimuli_a=n_stimuli["A"],
        stimuli_b=n_stimuli["B"],
    )


def _left_out(form: TestForm, association: Association) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for what in ("word", "template"):
        groups = {role: [str(getattr(s, what)) for s in form.stimuli[role]] for role in ("X", "Y")}
        if all(groups["X"] + groups["Y"]):
            found_range = leave_one_out(association, groups["X"], groups["Y"])
            if found_range:
                found |= {f"leave_{what}_low": found_range.low, f"leave_{what}_high": found_range.high}
    return found


def _other_measures(units: UnitSets, vectors: Vectors) -> dict[str, Any]:
    levels = ml_eat(units)
    cosines = {pair: getattr(levels, pair) for pair in ("xa", "xb", "ya", "yb")}
    found = {"mleat_x": levels.x, "mleat_y": levels.y, "same": same(units)}
    found |= {f"cos_{pair}": summary.mean for pair, summary in cosines.items()}
    found |= {f"sd_{pair}": summary.deviation for pair, summary in cosines.items()}
    known: dict[str, float | None] = {name: value if isfinite(value) else None for name, value in found.items()}
    return known | {"ripa": ripa(vectors["X"], vectors["Y"], a=vectors["A"], b=vectors["B"])}


def _row(
    model: ResolvedModel,
    form: TestForm,
    spec: VectorSpec,
    how: Postprocessing,
    vectors: StoredVectors,
    options: ScoringOptions,
) -> ResultRow:
    return ResultRow(
        model=model.spec.name,
        revision=model.revision,
        encoding=spec.encoding,
        pooling=spec.pooling,
        layer=spec.layer,
        postprocessing=how,
        test=form.test_id,
        form=form.form,
        file=form.file,
        title=form.title,
        group=form.group,
        n_x=len(form.stimuli["X"]),
        n_y=len(form.stimuli["Y"]),
        n_a=len(form.stimuli["A"]),
        n_b=len(form.stimuli["B"]),
        alternative=options.alternative,
        seed=options.seed,
        subtokens_x=_subtokens(form, "X", vectors),
        subtokens_y=_subtokens(form, "Y", vectors),
        position_0_share=_position_0_share(form, vectors),
        options=json.dumps(asdict(model.spec.options), sort_keys=True),
        versions=json.dumps({**vectors.about, "distseat": __version__, "numpy": np.__version__}, sort_keys=True),
    )


def _subtokens(form: TestForm, role: Role, vectors: StoredVectors) -> float | None:
    """Mean number of sub-tokens of the role's words, over its stimuli."""
    counts = vectors.n_subtokens[vectors.indices([s.key for s in form.stimuli[role]])]
    return None if (counts < 0).any() else float(counts.mean())


def _position_0_share(form: TestForm, vectors: StoredVectors) -> float | None:
    keys = [s.key for role in ("X", "Y") for s in form.stimuli[role]]
    positions = vectors.positions[vectors.indices(keys)]
    return None if (positions < 0).any() else float((positions == 0).mean())
