"""`distseat tests`: look at the association tests, check one's own, export them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from distseat.definitions import ROLES, TestForm
from distseat.templates import PUBLISHED, export_tests, load_tests, select_tests

__all__ = ["tests_app"]

tests_app = typer.Typer(help="The association tests: list, show, validate, export.", no_args_is_help=True)

Sources = Annotated[
    list[str] | None,
    typer.Option("--tests", help="A test file or directory in place of the published tests; repeatable."),
]


@tests_app.command("list")
def list_tests(tests: Sources = None) -> None:
    """List every test: id, group, forms, title."""
    forms = load_tests(tests or [PUBLISHED])
    for test_id in dict.fromkeys(form.test_id for form in forms):
        own = [form for form in forms if form.test_id == test_id]
        names = " ".join(form.form for form in own)
        typer.echo(f"{test_id}\t{own[0].group}\t{names}\t{own[0].title}")


@tests_app.command()
def show(
    test_id: Annotated[str, typer.Argument(help="As `distseat tests list` shows it.")],
    form: Annotated[str | None, typer.Option(help="Print every stimulus of this form.")] = None,
    tests: Sources = None,
) -> None:
    """Show a test's sets and forms, or every stimulus of one form: role, word, span, text."""
    forms = select_tests(load_tests(tests or [PUBLISHED]), [test_id])
    if form is None:
        _show_outline(forms)
        return
    chosen = [each for each in forms if each.form == form]
    if not chosen:
        known = ", ".join(each.form for each in forms)
        raise typer.BadParameter(f"{test_id} has the forms {known}", param_hint="--form")
    for role in ROLES:
        for s in chosen[0].stimuli[role]:
            typer.echo(f"{role}\t{s.word}\t{s.start}:{s.end}\t{s.text}")


@tests_app.command()
def validate(path: Annotated[str, typer.Argument(help="A test file, or a directory of them.")]) -> None:
    """Check test files and tell every fault at once."""
    forms = load_tests([path])
    n_stimuli = sum(len(form.stimuli[role]) for form in forms for role in ROLES)
    n_tests = len({form.test_id for form in forms})
    typer.echo(f"{path}: {n_tests} tests, {len(forms)} forms, {n_stimuli} stimuli; no faults")


@tests_app.command()
def export(
    directory: Annotated[Path, typer.Argument(help="Where the files go.")],
    file_format: Annotated[Literal["sent-bias"], typer.Option("--format", help="The published format.")] = "sent-bias",
    tests: Sources = None,
) -> None:
    """Write every form as a JSON file of the published format, under its published name, with every sentence."""
    written = export_tests(load_tests(tests or [PUBLISHED]), directory)
    typer.echo(f"{directory}: {len(written)} files in the format {file_format}")


def _show_outline(forms: list[TestForm]) -> None:
    first = forms[0]
    typer.echo(f"{first.test_id}: {first.title} (group {first.group})")
    for role in ROLES:
        words = list(dict.fromkeys(s.word or s.text for s in first.stimuli[role]))
        typer.echo(f"{role} {first.labels[role]} ({len(words)}): {', '.join(words)}")
    for form in forms:
        sizes = ", ".join(f"{role} {len(form.stimuli[role])}" for role in ROLES)
        example = form.stimuli["X"][0].text
        typer.echo(f"form {form.form} [{' '.join(form.encodings)}]: {sizes}; first: {example!r}")
