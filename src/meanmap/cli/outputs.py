"""What a test says: on the terminal, as JSON, as a picture, as a page."""

import io
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from meanmap import __version__
from meanmap.core.errors import InputError
from meanmap.core.files import write_whole
from meanmap.plots.page import Section, render
from meanmap.stats import TestResult

__all__ = ["draw", "tell", "write"]

# A table of more columns is no longer read.
MOST_COLUMNS = 30


def tell(result: TestResult, question: str, notes: Sequence[str], level: float, as_json: bool) -> None:
    """Print the answer."""
    if as_json:
        said = {"question": question, "level": level, "reject": result.reject(level), **result.to_dict()}
        typer.echo(json.dumps({**said, "notes": list(notes), "meanmap": __version__}, indent=1))
        return
    typer.echo(f"{question} {answer(result, level)}\n\n{result}")
    for note in notes:
        typer.echo(f"  note       {note}")


def answer(result: TestResult, level: float) -> str:
    """The answer in a sentence."""
    if result.reject(level):
        return f"No: rejected at level {level:g}, p = {result.pvalue:.3g}."
    return f"Nothing says otherwise: not rejected at level {level:g}, p = {result.pvalue:.3g}."


def draw(result: TestResult, path: Path) -> None:
    """The null with the statistic, as a picture."""
    picture = io.BytesIO()
    try:
        result.plot().figure.savefig(picture, format=path.suffix.lstrip(".") or None, dpi=144)
    except ValueError as problem:  # a kind of file that matplotlib does not write
        raise InputError(f"{path} cannot be drawn: {problem}") from None
    write_whole(path, picture.getvalue())


def write(result: TestResult, question: str, notes: Sequence[str], level: float, path: Path) -> None:
    """A page with all there is to see."""
    settings = (
        ("what", "value"),
        *((name, text) for name, text in result.lines()),
        *(("note", note) for note in notes),
    )
    figures = [(result.plot().figure, "The statistic, and its distribution if the hypothesis holds.")]
    sections = [Section(question, answer(result, level), result.method, figures=tuple(figures), tables=(settings,))]
    sections += _differences(result)
    command = shlex.join(["meanmap", *_repeated(sys.argv[1:], result.seed)])
    sections.append(Section("To repeat it", "The same command with the seed that was used.", code=command))
    footer = f"meanmap {__version__}, Python {platform.python_version()}"
    write_whole(path, render("meanmap: a test", question, sections, footer))


def _differences(result: TestResult) -> list[Section]:
    """Where two samples differ, if there are two and they are rows of numbers."""
    if getattr(result, "witness", None) is None:
        return []
    found: Any = result
    sections = []
    if 1 <= len(found.columns) <= 2:
        text = "Where it is above zero the first sample is denser, where it is below zero the second is."
        picture = (found.plot_witness().figure, "The witness function.")
        sections.append(
            Section("Where they differ", "The witness function of the two samples.", text, figures=(picture,))
        )
    if 2 <= len(found.columns) <= MOST_COLUMNS:
        shares = sorted(found.driving_columns(rng=found.seed).items(), key=lambda item: -item[1])
        rows = (("column", "share"), *((name, f"{share:.2f}") for name, share in shares))
        text = "The share of the statistic that is lost when the values of a column are shuffled over both samples."
        sections.append(Section("Which columns differ", f"{shares[0][0]} most of all.", text, tables=(rows,)))
    return sections


def _repeated(arguments: list[str], seed: int | None) -> list[str]:
    return arguments if "--seed" in arguments or seed is None else [*arguments, "--seed", str(seed)]
