"""Embeddings and tests to rows: association, permutation test, and the decision over all rows of a run."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from distseat import __version__
from distseat.definitions import ROLES, Role, TestForm
from distseat.errors import AssociationError
from distseat.models import ResolvedModel, VectorSpec
from distseat.statistics import Association, associate, holm, permutation_test, seed_sequence
from distseat.stores import ResultRow, StoredVectors

__all__ = ["MIN_SPREAD", "ReadVectors", "decide", "score_forms"]

ReadVectors = Callable[[VectorSpec, frozenset[str]], StoredVectors]

MIN_SPREAD: Final = 1e-6  # of association scores from float32 vectors: below it there is only rounding
_RESOLUTION: Final = 1e-7  # likewise, of the grid that ties are judged on


@dataclass(frozen=True, slots=True)
class _Measured:
    """One test form on one kind of vector, before its p-value."""

    form: TestForm
    spec: VectorSpec
    association: Association
    row: ResultRow


def score_forms(
    model: ResolvedModel, forms: Sequence[TestForm], specs: Sequence[VectorSpec], *, read: ReadVectors, seed: int
) -> list[ResultRow]:
    """Score tests of one model on several kinds of vector; the rows come in the order of vectors, then tests.

    One layer is read at a time. BLAS runs on one thread, so that a row's bits depend on nothing but its vectors.

    Parameters
    ----------
    read
        Gives the vectors of a kind for some stimulus keys.
    seed
        Of the run; each test form draws its partitions from (seed, test, form, unit), whatever the model.

    Raises
    ------
    StorageError
        Vectors are missing or damaged.
    AssociationError
        A vector is zero or not finite; the message names the test, the vector and the stimulus.
    """
    rows: dict[int, ResultRow] = {}
    with threadpool_limits(limits=1):
        measured = [each for spec in specs for each in _measure(model, forms, spec, read=read, seed=seed)]
        for form in forms:
            mine = [i for i, each in enumerate(measured) if each.form is form]
            rows.update(_tested(mine, measured, seed))
    return [rows[i] for i in range(len(measured))]


def decide(rows: Sequence[ResultRow], *, alpha: float) -> list[ResultRow]:
    """Correct over all rows that are not void (Holm-Bonferroni) and write the decision into each.

    The rows must be all that the run planned: a missing row would make the correction too mild.
    """
    family = [i for i, row in enumerate(rows) if row.p_value is not None]
    p_values = np.array([rows[i].p_value for i in family], dtype=np.float64)
    holms = holm(p_values, alpha=alpha)
    decided = [replace(row, alpha=alpha, family_size=len(family)) for row in rows]
    for i, adjusted, rejected in zip(family, holms.adjusted, holms.rejected, strict=True):
        decided[i] = replace(decided[i], p_adjusted=float(adjusted), decision="reject" if rejected else "retain")
    return decided


def _measure(
    model: ResolvedModel, forms: Sequence[TestForm], spec: VectorSpec, *, read: ReadVectors, seed: int
) -> Iterator[_Measured]:
    forms = [form for form in forms if spec.encoding in form.encodings]
    if not forms:
        return
    vectors = read(spec, frozenset(s.key for form in forms for role in ROLES for s in form.stimuli[role]))
    for form in forms:
        try:
            association = _association(form, vectors)
        except AssociationError as error:
            where = f"model {model.spec.name}, {spec.encoding} {spec.pooling} layer {spec.layer}"
            raise AssociationError(f"{where}, test {form.test_id} {form.form}: {error}") from error
        yield _Measured(form, spec, association, _row(model, form, spec, association, vectors=vectors, seed=seed))


def _association(form: TestForm, vectors: StoredVectors) -> Association:
    x, y, a, b = (vectors.of([s.key for s in form.stimuli[role]]) for role in ROLES)
    try:
        return associate(x, y, a=a, b=b)
    except AssociationError as error:
        unusable = [form.texts(role)[i] for role, v in zip(ROLES, (x, y, a, b), strict=True) for i in _unusable(v)]
        raise AssociationError(f"{error} ({', '.join(map(repr, unusable[:3]))})") from error


def _unusable(vectors: NDArray[np.float32]) -> NDArray[np.intp]:
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return np.flatnonzero(~np.isfinite(norms) | (norms == 0))


def _row(
    model: ResolvedModel,
    form: TestForm,
    spec: VectorSpec,
    association: Association,
    *,
    vectors: StoredVectors,
    seed: int,
) -> ResultRow:
    void = _void_reason(association)
    return ResultRow(
        model=model.spec.name,
        revision=model.revision,
        encoding=spec.encoding,
        pooling=spec.pooling,
        layer=spec.layer,
        test=form.test_id,
        form=form.form,
        file=form.file,
        title=form.title,
        group=form.group,
        n_x=len(form.stimuli["X"]),
        n_y=len(form.stimuli["Y"]),
        n_a=len(form.stimuli["A"]),
        n_b=len(form.stimuli["B"]),
        statistic=None if void else association.statistic,
        effect_size=None if void else association.effect_size,
        seed=seed,
        subtokens_x=_subtokens(form, "X", vectors),
        subtokens_y=_subtokens(form, "Y", vectors),
        position_0_share=_position_0_share(form, vectors),
        void_reason=void,
        options=json.dumps(asdict(model.spec.options), sort_keys=True),
        versions=json.dumps({**vectors.about, "distseat": __version__, "numpy": np.__version__}, sort_keys=True),
    )


def _void_reason(association: Association) -> str | None:
    if association.spread >= MIN_SPREAD:
        return None
    return (
        f"all targets have one association score: largest less smallest is {association.spread:.1e}, "
        f"below {MIN_SPREAD:.0e}, the noise of float32"
    )


def _tested(mine: Sequence[int], measured: Sequence[_Measured], seed: int) -> dict[int, ResultRow]:
    """p-values of one form on every kind of vector, all from one stream of partitions."""
    rows = {i: measured[i].row for i in mine}
    live = [i for i in mine if rows[i].void_reason is None]
    if not live:
        return rows
    form = measured[live[0]].form
    scores_nv = np.stack([measured[i].association.joint for i in live], axis=1)
    stream = seed_sequence(seed, form.test_id, form.form, "stimulus")
    test = permutation_test(scores_nv, len(form.stimuli["X"]), seed=stream, resolution=_RESOLUTION)
    for i, p_value in zip(live, test.p_values, strict=True):
        rows[i] = replace(rows[i], p_value=float(p_value), p_floor=test.p_floor, method=test.method)
    return rows


def _subtokens(form: TestForm, role: Role, vectors: StoredVectors) -> float | None:
    """Mean number of sub-tokens of the role's words, over its stimuli."""
    counts = vectors.n_subtokens[vectors.indices([s.key for s in form.stimuli[role]])]
    return None if (counts < 0).any() else float(counts.mean())


def _position_0_share(form: TestForm, vectors: StoredVectors) -> float | None:
    keys = [s.key for role in ("X", "Y") for s in form.stimuli[role]]
    positions = vectors.positions[vectors.indices(keys)]
    return None if (positions < 0).any() else float((positions == 0).mean())
