"""The one driver of a sweep: a bounded number of calls in flight, every result asked for here.

One encoder actor a model, a few models at once; the tests of a model are scored as soon as its vectors are whole. What
the system did (an actor or node lost, out of memory) is tried again, a bounded number of times; what the program or its
input did fails its unit and is told at the end, and the rest goes on.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import RayError, RayTaskError

from distseat.actors.progress import Progress
from distseat.actors.workers import EncodeReport, EncodingWorker, Placement
from distseat.errors import IncompleteRunError
from distseat.planning import EncodeUnit, ModelPlan

__all__ = ["Driver", "Failure", "Task"]

MAX_SYSTEM_RETRIES: Final = 3
RESOURCES_LIMIT_S: Final = 1800.0  # for an actor to get what it asks of the cluster
EXECUTION_LIMIT_S: Final = 7200.0  # for a call to answer: a download, or the two units that an actor holds
_NOTE_EVERY_S: Final = 60.0
_UNITS_AHEAD: Final = 2  # an actor always has the next unit waiting, and no more
_POLL_S: Final = 1.0
_TOO_LONG: Final = f"no answer for {EXECUTION_LIMIT_S / 60:.0f} minutes"


@dataclass(frozen=True, slots=True)
class Failure:
    """A unit that could not be done, and why."""

    what: str
    cause: str


@dataclass(frozen=True, slots=True)
class Task:
    """A unit of work for one CPU, which commits what it makes.

    Attributes
    ----------
    what
        How messages call it.
    done
        Called when it is committed.
    """

    what: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]
    done: Callable[[], None]


@dataclass(slots=True, eq=False)
class _Lane:
    """A model that is being encoded: its actor, and the units that no call holds yet."""

    plan: ModelPlan
    actor: Any
    queue: deque[EncodeUnit]
    in_flight: int = 0
    retries: int = 0
    loaded: bool = False
    failed: bool = False


@dataclass(slots=True)
class _Call:
    """A call in flight: what to do with its result, with the program's error, with the system's; and until when."""

    done: Callable[[Any], None]
    failed: Callable[[str], None]
    lost: Callable[[str], None]
    overdue: Callable[[], None]
    limit_s: float = EXECUTION_LIMIT_S
    since_s: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class Driver:
    """Runs the units of some models.

    Attributes
    ----------
    place
        Says what a model's encoder runs on.
    tasks_after
        The tasks that a model still needs, once its vectors are whole; none where only encoding is wanted.
    """

    store_root: Path
    place: Callable[[ModelPlan], Placement]
    tasks_after: Callable[[ModelPlan], Iterable[Task]]
    progress: Progress
    failures: list[Failure] = field(default_factory=list)
    _waiting: deque[tuple[ModelPlan, list[EncodeUnit]]] = field(default_factory=deque)
    _lanes: list[_Lane] = field(default_factory=list)
    _tasks: deque[tuple[Task, int]] = field(default_factory=deque)
    _n_running: int = 0
    _calls: dict[Any, _Call] = field(default_factory=dict)

    def run(
        self, work: Iterable[tuple[ModelPlan, list[EncodeUnit]]] = (), *, tasks: Iterable[Task] = ()
    ) -> list[Failure]:
        """Encode each model's units, then do its tasks, and `tasks` besides; what failed is returned.

        Raises
        ------
        IncompleteRunError
            An actor waited half an hour: the cluster has not what it asks for.
        """
        self._tasks.extend((task, 0) for task in tasks)
        for plan, units in work:
            if units:
                self._waiting.append((plan, units))
            else:
                self._model_done(plan)
        try:
            while self._waiting or self._lanes or self._tasks or self._calls:
                self._fill()
                self._wait()
        finally:
            for lane in self._lanes:
                if lane.actor is not None:
                    ray.kill(lane.actor)
        return self.failures

    def _fill(self) -> None:
        """Start what there is room for: tasks first, since they free what they take within seconds."""
        while self._tasks and self._n_running < 2 * _cluster("CPU"):
            self._start_task(*self._tasks.popleft())
        while self._waiting and len(self._lanes) < self._room_for_lanes(self._waiting[0][0]):
            plan, units = self._waiting.popleft()
            lane = _Lane(plan, None, deque(units))
            self._lanes.append(lane)
            self._start_actor(lane)
        for lane in self._lanes:
            while lane.loaded and lane.queue and lane.in_flight < _UNITS_AHEAD:
                self._encode(lane, lane.queue.popleft())

    def _room_for_lanes(self, plan: ModelPlan) -> int:
        place = self.place(plan)
        if place.num_gpus:
            return max(1, int(_cluster("GPU") / place.num_gpus))
        if self._n_running:  # a new encoder on the CPUs would keep the tasks that wait for them from starting
            return int((_cluster("CPU") - self._n_running) / place.threads)
        return max(1, int(_cluster("CPU") / place.threads))

    def _start_actor(self, lane: _Lane) -> None:
        place = self.place(lane.plan)
        actor_class: Any = ray.remote(EncodingWorker)
        lane.actor = actor_class.options(
            num_cpus=place.threads, num_gpus=place.num_gpus, max_restarts=0, max_task_retries=0
        ).remote(lane.plan.model, self.store_root, place)

        def overdue() -> None:
            raise IncompleteRunError(
                f"model {lane.plan.model.spec.name}: asks for {place.num_gpus:g} GPUs and {place.threads} CPU cores, "
                f"and the cluster did not give them for {RESOURCES_LIMIT_S / 60:.0f} minutes (it has "
                f"{ray.available_resources()} to give); add nodes or ask for less (num_gpus, threads), and run again"
            )

        # The first call returns as soon as the actor has its resources: waiting for them is no part of the work.
        self._calls[lane.actor.ready.remote()] = _Call(
            done=lambda _: self._load(lane),
            failed=lambda cause: self._give_up(lane, cause),
            lost=lambda cause: self._restart(lane, cause),
            overdue=overdue,
            limit_s=RESOURCES_LIMIT_S,
        )

    def _load(self, lane: _Lane) -> None:
        def done(_: None) -> None:
            lane.loaded = True

        self._calls[lane.actor.load.remote()] = _Call(
            done=done,
            failed=lambda cause: self._give_up(lane, cause),
            lost=lambda cause: self._restart(lane, cause),
            overdue=lambda: self._restart(lane, _TOO_LONG),
        )

    def _give_up(self, lane: _Lane, cause: str) -> None:
        self._fail(f"model {lane.plan.model.spec.name}", cause)
        self._close(lane)

    def _encode(self, lane: _Lane, unit: EncodeUnit) -> None:
        actor = lane.actor
        lane.in_flight += 1

        def done(report: EncodeReport) -> None:
            lane.in_flight -= 1
            lane.retries = 0  # what is bounded is losses without any work between them
            self.progress.encoded(report.n_stimuli)
            self._close_if_done(lane)

        def failed(cause: str) -> None:
            lane.in_flight -= 1
            lane.failed = True
            self._fail(f"encoding unit {unit.unit_id} of {lane.plan.model.spec.name}", cause)
            self._close_if_done(lane)

        def lost(cause: str) -> None:
            lane.in_flight -= 1
            lane.queue.appendleft(unit)
            if lane.actor is actor:  # the first of the calls that died with the actor starts the next one
                self._restart(lane, cause)

        self._calls[actor.encode.remote(unit)] = _Call(done, failed, lost, overdue=lambda: lost(_TOO_LONG))

    def _restart(self, lane: _Lane, cause: str) -> None:
        if lane not in self._lanes:  # given up already; this call died with the last actor
            return
        name = lane.plan.model.spec.name
        lane.retries += 1
        if lane.retries > MAX_SYSTEM_RETRIES:
            self._give_up(lane, f"its actor was lost {lane.retries} times; the last time: {cause}")
            return
        self.progress.note(
            f"{name}: its actor was lost, starting another ({lane.retries} of {MAX_SYSTEM_RETRIES}): {cause}"
        )
        lane.loaded = False
        ray.kill(lane.actor)
        self._start_actor(lane)

    def _close_if_done(self, lane: _Lane) -> None:
        if lane in self._lanes and not lane.queue and not lane.in_flight:
            self._close(lane)
            if not lane.failed:
                self.progress.model_done(lane.plan.model.spec.name)
                self._model_done(lane.plan)

    def _close(self, lane: _Lane) -> None:
        if lane in self._lanes:
            self._lanes.remove(lane)
            ray.kill(lane.actor)

    def _model_done(self, plan: ModelPlan) -> None:
        self._tasks.extend((task, 0) for task in self.tasks_after(plan))

    def _start_task(self, task: Task, retries: int) -> None:
        self._n_running += 1

        def done(_: None) -> None:
            self._n_running -= 1
            task.done()

        def failed(cause: str) -> None:
            self._n_running -= 1
            self._fail(task.what, cause)

        def lost(cause: str) -> None:
            self._n_running -= 1
            if retries < MAX_SYSTEM_RETRIES:
                self.progress.note(f"{task.what}: lost, trying again ({retries + 1} of {MAX_SYSTEM_RETRIES}): {cause}")
                self._tasks.append((task, retries + 1))
            else:
                self._fail(task.what, f"lost {retries + 1} times; the last time: {cause}")

        reference = _remote(task.function).options(num_cpus=1, max_retries=0).remote(*task.arguments)
        # No limit: a task may wait as long as encoders hold the CPUs, and does nothing that can hang.
        self._calls[reference] = _Call(done, failed, lost, overdue=lambda: None, limit_s=inf)

    def _wait(self) -> None:
        """Take the next answer, or a call that has had its time."""
        started = noted = time.monotonic()
        while self._calls:
            ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=_POLL_S)
            if ready:
                self._take(ready[0])
            now = time.monotonic()
            late = [ref for ref, call in self._calls.items() if now - call.since_s > call.limit_s]
            for reference in late:
                self._calls.pop(reference).overdue()
            if ready or late:
                return
            if now - noted > _NOTE_EVERY_S:
                noted = now
                self.progress.note(f"waiting for {len(self._calls)} calls, for {now - started:.0f} s now")

    def _take(self, reference: Any) -> None:
        call = self._calls.pop(reference)
        try:
            result = ray.get(reference)
        except RayTaskError as error:
            call.failed(f"{type(error.cause).__name__}: {error.cause}")
        except RayError as error:
            call.lost(f"{type(error).__name__}: {error}".splitlines()[0])
        else:
            call.done(result)

    def _fail(self, what: str, cause: str) -> None:
        self.failures.append(Failure(what, cause))


@cache
def _remote(function: Callable[..., None]) -> Any:
    """One remote function for each function: each that is made is sent to the whole cluster."""
    return ray.remote(function)


def _cluster(resource: str) -> float:
    return max(1.0, float(ray.cluster_resources().get(resource, 0.0)))
