"""The commands of `meanmap` by name. Anything heavy is imported inside the command that needs it."""

from pathlib import Path
from typing import Annotated

import typer

from meanmap import __version__
from meanmap.cli import citing, describing, discovering, drifting, graphs, learning, models, operators, testing
from meanmap.cli.brought import Commands
from meanmap.cli.options import Command, say, to_be_written

__all__ = ["app"]

app = typer.Typer(
    help="Compare samples, find causes, and learn and query graphical models, from CSV, Parquet and NumPy files.\n\n"
    "meanmap test two-sample before.csv after.csv (do they differ, and where?), meanmap discover farm.csv (what causes "
    "what?), meanmap graph fit farm.csv (a model to query), meanmap ep logistic farm.csv --y class (a regression).",
    epilog="Other tools are better if only means matter (scipy's t-test), if everything is linear and normal "
    "(causal-learn), for the best prediction of one column (scikit-learn), for draws from an exact posterior "
    "(PyMC, NumPyro) or for a drift dashboard (Evidently).",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
)
app.command(cls=Command)(describing.schema)
app.add_typer(testing.app, name="test")
app.command("learn-kernel", cls=Command)(learning.learn_kernel)
app.command(cls=Command)(drifting.drift)
app.command(cls=Command)(discovering.discover)
app.add_typer(graphs.app, name="graph")
app.command(cls=Command)(models.ep)
app.add_typer(operators.app, name="operators")
app.command(cls=Command)(citing.cite)


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


@app.command(cls=Command)
def demo(
    output: Annotated[Path, typer.Option(callback=to_be_written, help="File for the page.")] = Path(
        "meanmap-demo.html"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated data.")] = 0,
) -> None:
    """Run each part of the library on small data and leave one HTML page with pictures and numbers."""
    from meanmap.demo import run

    path, sections, seconds = run(output, seed)
    for section in sections:
        say(f"- {section.title}\n  {section.answer}")
    say(f"\n{path} ({seconds:.0f} s): open it in a browser.")
