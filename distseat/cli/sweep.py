"""`distseat sweep`, and its halves `distseat encode` and `distseat score`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from distseat.config import load_config

if TYPE_CHECKING:  # ray comes with it: only the commands below pay for that
    from distseat.actors.sweep import Phase

__all__ = ["encode", "score", "sweep"]

Config = Annotated[Path, typer.Argument(help="Configuration in YAML; examples/quickstart.yaml is one.")]
Out = Annotated[Path | None, typer.Option(help="Directory of the results; replaces the configuration's.")]
Store = Annotated[Path | None, typer.Option(help="Directory of the embedding store; replaces the configuration's.")]
Tests = Annotated[
    list[str] | None,
    typer.Option(help="A test file, a directory of them or of the published JSON format, or `published`; repeatable."),
]
Address = Annotated[str | None, typer.Option(help="A Ray cluster to join, as `auto`; without it Ray starts here.")]


def sweep(config: Config, out: Out = None, store: Store = None, tests: Tests = None, address: Address = None) -> None:
    """Encode, score and decide: every chosen test of every chosen model."""
    _run("sweep", config, out, store, tests, address)


def encode(config: Config, out: Out = None, store: Store = None, tests: Tests = None, address: Address = None) -> None:
    """Fill the embedding store, and stop there."""
    _run("encode", config, out, store, tests, address)


def score(config: Config, out: Out = None, store: Store = None, tests: Tests = None, address: Address = None) -> None:
    """Score and decide on a store that `distseat encode` has filled; no model is loaded."""
    _run("score", config, out, store, tests, address)


def _run(
    phase: "Phase", path: Path, out: Path | None, store: Path | None, tests: list[str] | None, address: str | None
) -> None:
    from distseat.actors.sweep import run_sweep  # noqa: PLC0415 - heavy imports wait for their command
    from distseat.cli.display import progress_display, results_table  # noqa: PLC0415 - likewise

    config = load_config(path, out=out, store=store, test_sources=tests)
    try:
        with progress_display() as progress:
            rows = run_sweep(config, phase=phase, address=address, progress=progress)
    except KeyboardInterrupt:
        typer.echo("stopped; what was committed is whole and kept: the same command goes on from there", err=True)
        raise
    if rows:
        results_table(rows)
    typer.echo(f"embeddings: {config.store_path.resolve()}")
    if rows:
        typer.echo(f"results: {config.out.resolve()}/results.tsv and results.parquet")
