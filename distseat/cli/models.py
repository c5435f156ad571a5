"""`distseat models`: the models that distseat knows by name."""

import typer

from distseat.models import CATALOGUE

__all__ = ["models_app"]

models_app = typer.Typer(
    help="The models known by name; any other is given by its id or directory.", no_args_is_help=True
)


@models_app.command("list")
def list_models() -> None:
    """List the catalogue: name, where it comes from, parameters, default pooling."""
    typer.echo("name\tsource\tparameters\tpooling\trevision")
    for spec in CATALOGUE.values():
        size = f"{spec.n_parameters / 1e6:.0f}M" if spec.n_parameters else "?"
        typer.echo(f"{spec.name}\t{spec.source}\t{size}\t{spec.pooling}\t{spec.revision or 'resolved when planned'}")
