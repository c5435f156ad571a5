"""The `distseat` command. Nothing heavy is imported before a command needs it: `distseat --help` is quick."""

import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated

import typer

from distseat import __version__
from distseat.cli.models import models_app
from distseat.cli.sweep import encode, score, sweep
from distseat.cli.tests import tests_app
from distseat.errors import DistseatError

__all__ = ["main"]

app = typer.Typer(
    help="Measure social bias in text encoders: word, sentence and word-in-context association tests, on Ray.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(sweep)
app.command()(encode)
app.command()(score)
app.add_typer(tests_app, name="tests")
app.add_typer(models_app, name="models")


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        typer.echo(f"distseat {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of every command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 2 the user can mend it, 3 the run is not whole, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app(arguments)
    except DistseatError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End on SIGTERM, which `ray job stop` sends, as on Ctrl-C."""
    raise KeyboardInterrupt
