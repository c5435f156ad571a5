"""What a person sees of a run: progress while it works, the table of its results afterwards."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from distseat.actors.progress import Progress
from distseat.stores import ResultRow

__all__ = ["progress_display", "results_table"]

_LINE_EVERY_S: Final = 5.0
_PIPED_WIDTH: Final = 100
_BY_WORD: Final = "†"
_REVISION_WIDTH: Final = 8
_TITLE_WIDTH: Final = 16  # what a narrow terminal leaves of a title, so that the numbers stay whole


@contextmanager
def progress_display() -> Iterator[Progress]:
    """Bars on a terminal, plain lines elsewhere; on standard error, so that results can be piped."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    with Bars(*columns, TimeElapsedColumn(), console=console) as bars:
        yield _RichBars(bars)


class _RichBars:
    """Four bars: models, stimuli with their rate, rows, tests that are corrected over their rows."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def planned(self, *, n_models: int, n_stimuli: int, n_rows: int, n_tests: int) -> None:
        for name, total in (("models", n_models), ("stimuli", n_stimuli), ("rows", n_rows), ("tests", n_tests)):
            if total:
                self._tasks[name] = self._bars.add_task(name, total=total, rate="")

    def encoded(self, n_stimuli: int) -> None:
        task = self._tasks["stimuli"]
        self._bars.advance(task, n_stimuli)
        speed = self._bars.tasks[task].speed
        self._bars.update(task, rate=f"{speed:,.0f}/s" if speed else "")

    def model_done(self, name: str) -> None:
        self._bars.advance(self._tasks["models"])
        self._bars.console.print(f"encoded {name}", markup=False, highlight=False)

    def scored(self, n_rows: int) -> None:
        self._bars.advance(self._tasks["rows"], n_rows)

    def corrected(self, n_tests: int) -> None:
        self._bars.advance(self._tasks["tests"], n_tests)

    def note(self, text: str) -> None:
        self._bars.console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Lines:
    """A line now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = self._last = time.monotonic()
        self._totals = {"stimuli": 0, "rows": 0, "tests": 0}
        self._done = dict(self._totals)

    def planned(self, *, n_models: int, n_stimuli: int, n_rows: int, n_tests: int) -> None:
        self._totals = {"stimuli": n_stimuli, "rows": n_rows, "tests": n_tests}
        self._say(f"to do: {n_stimuli} stimuli with {n_models} models to encode, {n_rows} rows to score")

    def encoded(self, n_stimuli: int) -> None:
        self._count("stimuli", n_stimuli)

    def model_done(self, name: str) -> None:
        self._say(f"encoded {name}")

    def scored(self, n_rows: int) -> None:
        self._count("rows", n_rows)

    def corrected(self, n_tests: int) -> None:
        self._count("tests", n_tests)

    def note(self, text: str) -> None:
        self._say(text)

    def _count(self, what: str, n: int) -> None:
        self._done[what] += n
        finished = self._done[what] == self._totals[what]
        if finished or time.monotonic() - self._last > _LINE_EVERY_S:
            self._last = time.monotonic()
            self._say(f"{self._done[what]} of {self._totals[what]} {what}")

    def _say(self, text: str) -> None:
        self._console.print(
            f"[{time.monotonic() - self._started:6.1f} s] {text}", markup=False, highlight=False, soft_wrap=True
        )


def results_table(rows: Sequence[ResultRow], console: Console | None = None) -> None:
    """Print tests x encodings of each model at its last measured layer: d, p, and the decision."""
    console = console or (Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH))
    for model, revision in dict.fromkeys((row.model, row.revision) for row in rows):
        for how in dict.fromkeys(row.postprocessing for row in rows):
            mine = [row for row in rows if (row.model, row.revision, row.postprocessing) == (model, revision, how)]
            for pooling in dict.fromkeys(row.pooling for row in mine if row.encoding != "c-word") or [None]:
                console.print(_model_table(mine, pooling))
    for line in _legend(rows):
        console.print(line, highlight=False)


def _legend(rows: Sequence[ResultRow]) -> list[str]:
    live = [row for row in rows if row.p_value is not None]
    by_word = [row for row in rows if row.p_value_word is not None]
    rejected, rejected_by_word = (
        sum(decision == "reject" for decision in decisions)
        for decisions in ((row.decision for row in live), (row.decision_word for row in by_word))
    )
    alpha = rows[0].alpha
    n_tests = by_word[0].family_size_word if by_word else 0
    side = "as published" if rows[0].alternative == "greater" else rows[0].alternative
    legend = f"d, p of stimuli, {side}; * p <= {alpha}, ** after correction over {len(live)} rows"
    found = f"significant: {rejected} of {len(live)} rows by stimulus, {rejected_by_word} of {len(by_word)} by word"
    return [
        f"{legend}; {_BY_WORD} by word, after correction over {n_tests} tests",
        f"{found}; {len(rows) - len(live)} rows are void",
        "Sentences of one word are no independent evidence: trust the mark by word.",
        "A test can show bias; that none is shown does not mean that there is none.",
    ]


def _model_table(rows: Sequence[ResultRow], pooling: str | None) -> Table:
    """The last layer of one model with one sentence pooling; a column an encoding, and for c-word a sub-token rule."""
    last = max(row.layer for row in rows)
    shown = [row for row in rows if row.layer == last and (row.encoding == "c-word" or row.pooling == pooling)]
    columns = list(dict.fromkeys((row.encoding, row.pooling) for row in shown))
    revision = rows[0].revision.removeprefix("sha256:")[:_REVISION_WIDTH]
    how = "" if rows[0].postprocessing == "none" else f" {rows[0].postprocessing}"
    table = Table(title=Text(f"{rows[0].model} {revision} {pooling or ''} layer {last}{how}"), box=SIMPLE)
    table.add_column("test", min_width=_TITLE_WIDTH)
    several_rules = sum(encoding == "c-word" for encoding, _ in columns) > 1
    for encoding, rule in columns:
        table.add_column(f"{encoding}\n{rule}" if encoding == "c-word" and several_rules else encoding, no_wrap=True)
    lines: dict[tuple[str, str, str], dict[tuple[str, str], str]] = {}
    for row in shown:
        form = "" if row.form in ("word", "sent") else f" ({row.form.replace('_', ' ')})"
        lines.setdefault((row.test, row.title, form), {})[row.encoding, row.pooling] = _cell(row)
    for (_, title, form), cells in lines.items():
        table.add_row(Text(title + form), *(cells.get(column, "") for column in columns))
    return table


def _cell(row: ResultRow) -> str:
    if row.p_value is None or row.effect_size is None:
        return "void"
    uncorrected = row.alpha is not None and row.p_value <= row.alpha
    mark = "**" if row.decision == "reject" else "*" if uncorrected else ""
    by_word = _BY_WORD if row.decision_word == "reject" else ""
    return f"{row.effect_size:+.2f} {row.p_value:6.1g}{mark}{by_word}"
