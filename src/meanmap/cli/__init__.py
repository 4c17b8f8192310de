"""The command line, `meanmap`. Anything heavy is imported inside the command that needs it."""

from pathlib import Path
from typing import Annotated

import typer

from meanmap import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    help="A probability distribution is an element of a Hilbert space.", no_args_is_help=True, add_completion=False
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"meanmap {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where the page is written.")] = Path("meanmap-demo.html"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data that are made.")] = 0,
) -> None:
    """Run each part of the library on small data and leave one HTML page with pictures and numbers."""
    if not output.parent.is_dir():
        raise _refused(f"the folder {output.parent} does not exist; make it first.")
    from meanmap.experiments.demo import run

    path, sections, seconds = run(output, seed)
    for section in sections:
        typer.echo(f"- {section.title}\n  {section.answer}")
    typer.echo(f"\n{path} ({seconds:.0f} s): open it in a browser.")


@app.command("list")
def list_experiments() -> None:
    """List the figures of the papers that `reproduce` can run."""
    from meanmap.experiments.registry import all_experiments

    for each in all_experiments().values():
        typer.echo(f"{each.id:32}{each.title} [{each.minutes['quick']:g} min]")


@app.command()
def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids that `meanmap list` shows.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    scale: Annotated[str, typer.Option(help="smoke, quick or paper.")] = "quick",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Experiments at a time.")] = 2,
    folder: Annotated[Path, typer.Option(help="Where outcomes are kept, and the report.")] = Path("meanmap-results"),
    fail_on_miss: Annotated[bool, typer.Option("--fail-on-miss", help="Exit with 1 unless all is reproduced.")] = False,
) -> None:
    """Run figures of the papers and set what comes out beside what the papers claim, on one page."""
    from meanmap.experiments.experiment import Setting
    from meanmap.experiments.registry import all_experiments, find
    from meanmap.experiments.report import write_report
    from meanmap.experiments.reproduce import Failure
    from meanmap.experiments.reproduce import reproduce as run

    if every == bool(ids):
        raise _refused("name the figures to reproduce, or say --all; `meanmap list` shows them")
    try:
        chosen = list(all_experiments().values()) if every else [find(id) for id in ids or ()]
        setting = Setting(scale, seed)  # pyright: ignore[reportArgumentType]
    except ValueError as problem:
        raise _refused(str(problem)) from None
    records = run(chosen, setting, folder, workers)
    for experiment, record in zip(chosen, records, strict=True):
        said = f"not run: {record.reason}" if isinstance(record, Failure) else f"{record.verdict}. {record.answer}"
        typer.echo(f"{experiment.id}: {said}")
    typer.echo(f"\n{write_report(folder, chosen, records)}: open it in a browser.")
    if fail_on_miss and any(isinstance(each, Failure) or each.verdict != "reproduced" for each in records):
        raise typer.Exit(1)


def _refused(problem: str) -> typer.Exit:
    typer.echo(f"meanmap: {problem}", err=True)
    return typer.Exit(2)


def main() -> None:
    """Entry point of the `meanmap` command."""
    app()
