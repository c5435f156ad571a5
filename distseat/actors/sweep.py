"""A sweep from configuration to results: plan, encode, score, decide, publish."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import ray

from distseat import __version__
from distseat.actors.driver import Driver, Failure, Task
from distseat.actors.progress import Progress, Silent
from distseat.actors.runtime import ray_session
from distseat.actors.workers import Placement, correct_and_commit, score_and_commit
from distseat.config import CPU_TOKEN_BUDGET, GPU_TOKEN_BUDGET, SweepConfig
from distseat.errors import ConfigError, IncompleteRunError
from distseat.models import ModelSpec
from distseat.planning import (
    EncodeUnit,
    FamilyUnit,
    FloorWarning,
    ModelPlan,
    ScoreUnit,
    SweepPlan,
    plan_sweep,
    preflight,
)
from distseat.scoring import decide
from distseat.storage import publish
from distseat.stores import FamilyMember, ResultRow, publish_results, read_members, read_rows

__all__ = ["Phase", "placement", "require_resources", "run_sweep"]

Phase = Literal["sweep", "encode", "score"]


def run_sweep(
    config: SweepConfig, *, phase: Phase = "sweep", address: str | None = None, progress: Progress | None = None
) -> list[ResultRow]:
    """Run a sweep, or one half of it, and write its results.

    Parameters
    ----------
    phase
        "encode" fills the store and stops; "score" works on a store that is full.
    address
        Of a Ray cluster; None starts a Ray on this machine.

    Returns
    -------
    list of ResultRow
        Every planned row, decided; empty after "encode".

    Raises
    ------
    DistseatError
        The user's mistakes, before any work is done.
    IncompleteRunError
        Units failed or, in "score", are not encoded; no results are written, and a second run goes on from here.
    """
    progress = progress or Silent()
    plan = plan_sweep(config)
    to_encode = [(model, model.pending(plan.store)) for model in plan.models]
    if phase == "score":
        _require_encoded(to_encode)
    to_score = {} if phase == "encode" else {m.model.key: _unscored(plan, m) for m in plan.models}
    to_correct = [] if phase == "encode" else _uncorrected(plan)
    progress.planned(
        n_models=sum(bool(units) for _, units in to_encode),
        n_stimuli=sum(len(unit.stimuli) for _, units in to_encode for unit in units),
        n_rows=sum(unit.n_rows for units in to_score.values() for unit in units),
        n_tests=len(to_correct),
    )
    if any(to_score.values()):
        for line in _floors_told(preflight(plan), config.alpha):
            progress.note(line)
    if any(units for _, units in to_encode) or any(to_score.values()) or to_correct:
        _work(plan, to_encode, to_score, to_correct, address=address, progress=progress)
    return [] if phase == "encode" else _publish(plan)


def _work(
    plan: SweepPlan,
    to_encode: list[tuple[ModelPlan, list[EncodeUnit]]],
    to_score: dict[str, list[ScoreUnit]],
    to_correct: list[FamilyUnit],
    *,
    address: str | None,
    progress: Progress,
) -> None:
    root = plan.store.root.resolve()
    with ray_session(address) as own:
        driver = Driver(
            store_root=root,
            place=lambda model: placement(plan.config, model.model.spec, own=own, gpus=_has("GPU")),
            tasks_after=lambda model: [_scoring(plan, unit, progress) for unit in to_score.get(model.model.key, [])],
            progress=progress,
        )
        for model, units in to_encode:
            if own and units:
                require_resources(driver.place(model), model.model.spec.name, gpus=_has("GPU"), cpus=_has("CPU"))
        failures = driver.run(to_encode) or driver.run(tasks=[_correcting(plan, unit, progress) for unit in to_correct])
    if failures:
        raise IncompleteRunError(_told(failures, plan.out))


def placement(config: SweepConfig, spec: ModelSpec, *, own: bool, gpus: float) -> Placement:
    """Where a model's encoder runs, on a Ray with so many `gpus`.

    With device auto: on a Ray of our own, a GPU if there is one; on the user's, what the model declares and never less,
    so that a sweep meant for GPUs does not crawl on CPUs unseen.
    """
    if config.device == "cpu":
        num_gpus = 0.0
    elif config.device == "cuda":
        num_gpus = spec.num_gpus or 1.0
    else:
        num_gpus = min(spec.num_gpus, gpus) if own else spec.num_gpus
    return Placement(
        device="cuda" if num_gpus else "cpu",
        num_gpus=num_gpus,
        threads=config.threads,
        token_budget=config.token_budget or (GPU_TOKEN_BUDGET if num_gpus else CPU_TOKEN_BUDGET),
    )


def _has(resource: str) -> float:
    return float(ray.cluster_resources().get(resource, 0.0))


def require_resources(place: Placement, name: str, *, gpus: float, cpus: float) -> None:
    """Say at once what this machine has not: on a Ray of our own it will not come.

    Raises
    ------
    ConfigError
        The model asks for more GPUs or CPU cores than there are.
    """
    for what, asked, found in (("GPUs", place.num_gpus, gpus), ("CPU cores", place.threads, cpus)):
        if asked > found:
            raise ConfigError(
                f"model {name}: asks for {asked:g} {what}, this machine has {found:g}; ask for less (device, num_gpus, "
                "threads), or join a cluster with --address"
            )


def _require_encoded(to_encode: Iterable[tuple[ModelPlan, list[EncodeUnit]]]) -> None:
    lacking = [f"{plan.model.spec.name} ({len(units)} units)" for plan, units in to_encode if units]
    if lacking:
        raise IncompleteRunError(
            f"not encoded yet: {', '.join(lacking)}; run `distseat encode` with this configuration"
        )


def _unscored(plan: SweepPlan, model: ModelPlan) -> list[ScoreUnit]:
    paths = (plan.rows_path, plan.words_path)
    return [unit for unit in plan.score_units(model) if not all(path(unit.unit_id).exists() for path in paths)]


def _uncorrected(plan: SweepPlan) -> list[FamilyUnit]:
    return [unit for unit in plan.family_units() if not plan.family_path(unit).exists()]


def _scoring(plan: SweepPlan, unit: ScoreUnit, progress: Progress) -> Task:
    paths = (plan.store.root.resolve(), plan.rows_path(unit.unit_id).resolve(), plan.words_path(unit.unit_id).resolve())
    return Task(
        what=f"scoring unit {unit.unit_id} of {unit.model.spec.name}",
        function=score_and_commit,
        arguments=(unit, *paths),
        done=partial(progress.scored, unit.n_rows),
    )


def _correcting(plan: SweepPlan, unit: FamilyUnit, progress: Progress) -> Task:
    words = [plan.words_path(name).resolve() for name in unit.score_units]
    return Task(
        what=f"correcting test {unit.test_id}",
        function=correct_and_commit,
        arguments=(unit, words, plan.family_path(unit).resolve()),
        done=partial(progress.corrected, 1),
    )


def _named(warning: FloorWarning) -> str:
    return warning.test_id if warning.unit == "word" else f"{warning.test_id} {warning.form}"


def _floors_told(warnings: Sequence[FloorWarning], alpha: float) -> list[str]:
    """What a person should know before the run: tests that are too small for it."""
    lines = []
    for unit in ("stimulus", "word"):
        mine = [warning for warning in warnings if warning.unit == unit]
        never, late = (
            list(dict.fromkeys(_named(warning) for warning in mine if warning.reach.possible == possible))
            for possible in (False, True)
        )
        if never:
            lines.append(f"by {unit}, never significant at {alpha:g} with so few targets: {', '.join(never)}")
        if late:
            first = min(warning.reach.n_before for warning in mine if warning.reach.possible)
            lines.append(
                f"by {unit}, significant only if {first} or more of {mine[0].n_rivals} are, with so few targets: "
                f"{', '.join(late)}"
            )
    return lines


def _told(failures: list[Failure], out: Path) -> str:
    lines = [f"the run is not whole: {len(failures)} units failed, nothing was decided and no results were written"]
    lines += [f"  {failure.what}: {failure.cause}" for failure in failures]
    if (out / "results.parquet").exists():
        lines.append(f"  the results in {out} are those of an earlier run")
    return "\n".join([*lines, "mend the cause and run again: what is done is kept"])


def _publish(plan: SweepPlan) -> list[ResultRow]:
    units = [unit for model in plan.models for unit in plan.score_units(model)]
    rows = [row for unit in units for row in read_rows(plan.rows_path(unit.unit_id))]
    planned = sum(unit.n_rows for unit in units)
    if len(rows) != planned:
        raise IncompleteRunError(
            f"{len(rows)} of {planned} planned rows are there; delete {plan.out / 'rows'}, run again"
        )
    members = [member for unit in plan.family_units() for member in read_members(plan.family_path(unit))]
    _require_whole(rows, members, plan)
    decided = decide(_in_order(rows, plan), members, alpha=plan.config.alpha, correction=plan.config.correction)
    digests = publish_results(plan.out, decided, [plan.words_path(unit.unit_id) for unit in units])
    publish(plan.out / "manifest.json", _manifest(plan, decided, digests))
    return decided


def _require_whole(rows: Sequence[ResultRow], members: Sequence[FamilyMember], plan: SweepPlan) -> None:
    """Every row stands once, and those with words once in a family: a missing one would make the correction mild."""
    keys = [row.key for row in rows]
    if len(set(keys)) != len(keys):
        raise IncompleteRunError(f"a row stands twice; delete rows, words and families in {plan.out}, and run again")
    if sorted(row.key for row in rows if row.p_value_word is not None) != sorted(member.key for member in members):
        raise IncompleteRunError(
            f"the rows and their families do not agree; delete rows, words and families in {plan.out}, and run again"
        )


def _in_order(rows: list[ResultRow], plan: SweepPlan) -> list[ResultRow]:
    """Model by model, each kind of vector by itself, tests in the order of their definition."""
    models = {(m.model.spec.name, m.model.revision): i for i, m in enumerate(plan.models)}
    vectors = {tuple(spec): i for m in plan.models for i, spec in enumerate(m.specs)}
    postprocessings: dict[str, int] = {how: i for i, how in enumerate(plan.config.postprocessing)}
    tests = {(form.test_id, form.form): i for i, form in enumerate(plan.forms)}
    return sorted(
        rows,
        key=lambda row: (
            models[row.model, row.revision],
            vectors[row.encoding, row.pooling, row.layer],
            postprocessings[row.postprocessing],
            tests[row.test, row.form],
        ),
    )


def _manifest(plan: SweepPlan, rows: list[ResultRow], digests: dict[str, str]) -> bytes:
    """What was run, without a path of this machine or a time of day: the same run gives the same bytes."""
    config = plan.config.model_dump(mode="json", exclude={"out", "store", "models", "test_sources"})
    content: dict[str, Any] = {
        "distseat": __version__,
        "config": config,
        "tests": {f"{form.test_id} {form.form}": form.digest for form in plan.forms},
        "models": [
            {
                "name": m.model.spec.name,
                "source": None if Path(m.model.spec.source).is_dir() else m.model.spec.source,
                "revision": m.model.revision,
                "key": m.model.key,
                "options": asdict(m.model.spec.options),
                "vectors": m.specs,
            }
            for m in plan.models
        ],
        "n_rows": len(rows),
        "n_void": sum(row.void_reason is not None for row in rows),
        "sha256": digests,
    }
    return json.dumps(content, indent=1, sort_keys=True).encode()
