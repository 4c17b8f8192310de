"""Options that several commands share, and how bad input ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["in_a_folder", "names_in", "refusals", "refused"]

KernelName = Annotated[str | None, typer.Option("--kernel", help="median, learned, or nothing for the default.")]
Null = Annotated[str, typer.Option(help="Null distribution: auto, permutation, gamma, spectral, ...")]
Permutations = Annotated[int, typer.Option("--permutations", min=19, help="Draws of the null.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed; the one that was used is always told.")]
Alpha = Annotated[float, typer.Option(help="Level at which a hypothesis is rejected.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def in_a_folder(path: Path | None) -> Path | None:
    """Refuse a file in a folder that is not there, before any work is done for it."""
    if path is not None and not path.parent.is_dir():
        raise refused(f"the folder {path.parent} does not exist; make it first.")
    return path


Plot = Annotated[
    Path | None, typer.Option("--plot", callback=in_a_folder, help="Draw into this file (.png, .svg, .pdf).")
]
Report = Annotated[
    Path | None,
    typer.Option("--report", callback=in_a_folder, help="Write a page with everything into this file (.html)."),
]
FailOnReject = Annotated[bool, typer.Option("--fail-on-reject", help="Exit with 1 if the hypothesis is rejected.")]
Missing = Annotated[str, typer.Option(help="Rows with a missing value in a used column: drop or fail.")]
LabelColumns = Annotated[
    str, typer.Option("--labels", help="Columns, a,b,..., that are labels though they look numeric.")
]
Delimiter = Annotated[str | None, typer.Option(help="What separates cells, where the file's name does not say.")]


def names_in(text: str | None) -> list[str]:
    """Names in a list such as a,b,c."""
    return [name.strip() for name in text.split(",")] if text else []


def refused(problem: str) -> typer.Exit:
    """One line on standard error, and exit code 2."""
    typer.echo(f"meanmap: {' '.join(problem.split())}", err=True)
    return typer.Exit(2)


@contextmanager
def refusals() -> Iterator[None]:
    """Bad input ends in a sentence; anything else is a fault of ours and shows where it happened."""
    from meanmap.core.errors import InputError, KindError

    try:
        yield
    except (InputError, KindError) as problem:
        raise refused(str(problem)) from None
    except BrokenPipeError:  # a reader such as `head` that has enough, of which nothing needs to be said
        raise
    except OSError as problem:
        raise refused(f"{problem.filename or ''}: {problem.strerror or problem}") from None
