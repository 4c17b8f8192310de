"""`meanmap list` and `meanmap reproduce`: figures of the papers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from meanmap.cli.options import refused, say

__all__ = ["list_experiments", "reproduce"]

# Seconds to wait for a scheduler.
PATIENCE = 10


def list_experiments(
    words: Annotated[
        list[str] | None, typer.Argument(help="Show only figures with these words, such as song2010.")
    ] = None,
) -> None:
    """List the figures of the papers that `reproduce` can run, by paper: id, minutes, what is shown, and where."""
    from meanmap_papers.registry import PAPERS, all_experiments, matching

    shown = matching(" ".join(words)) if words else list(all_experiments().values())
    if not shown:
        raise refused(f"no figure has {' '.join(words or ())!r} in its name, title or place; `meanmap list` shows all")
    say("Figures that `meanmap reproduce` can run, with minutes at the scale quick (--scale paper takes longer)")
    say("* needs data: from the network, or from the folder that MEANMAP_DATA names")
    for paper, source in PAPERS.items():
        of_paper = [each for each in shown if paper in each.run.__module__.split(".")]
        if of_paper:
            say(f"\n{source}")
        for each in of_paper:
            name = f"{each.id:29}{'*' if each.data else ' '}"
            say(f"{name}{each.minutes['quick']:>4g} min  {each.title} ({each.place})")


def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids that `meanmap list` shows.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show the ids, as `meanmap list` does, and run none.")] = False,
    scale: Annotated[str, typer.Option(help="smoke, quick or paper.")] = "quick",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Experiments at a time.")] = 2,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler whose workers run them in a shared folder.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Folder for outcomes and the report.")] = Path("meanmap-results"),
    fail_on_miss: Annotated[bool, typer.Option("--fail-on-miss", help="Exit with 1 unless all claims hold.")] = False,
) -> None:
    """Run figures of the papers and compare the results with the papers' claims, on one page."""
    if listed:
        list_experiments()
        return
    from meanmap_papers.experiment import Setting
    from meanmap_papers.registry import all_experiments, find
    from meanmap_papers.report import write_report
    from meanmap_papers.reproduce import Failure
    from meanmap_papers.reproduce import reproduce as run

    if every == bool(ids):
        raise refused("name the figures to reproduce, or pass --all; `meanmap list` shows them")
    try:
        chosen = list(all_experiments().values()) if every else [find(id) for id in ids or ()]
        setting = Setting(scale, seed)  # pyright: ignore[reportArgumentType]
    except ValueError as problem:
        raise refused(str(problem)) from None
    with _workers_of(scheduler) as executor:
        records = run(chosen, setting, folder.absolute(), workers, executor)
    for experiment, record in zip(chosen, records, strict=True):
        if isinstance(record, Failure):
            said = f"not run: {record.reason}"
        else:
            said = f"{experiment.said(record.verdict)} (scale {scale}). {record.answer}"
        say(f"{experiment.id}: {said}")
    say(f"\n{write_report(folder, chosen, records)}: open it in a browser.")
    if all(isinstance(each, Failure) for each in records):
        raise typer.Exit(1)
    if fail_on_miss and any(isinstance(each, Failure) or each.verdict != "reproduced" for each in records):
        raise typer.Exit(1)


@contextmanager
def _workers_of(scheduler: str | None) -> Iterator[Any]:
    """The workers of a Dask scheduler as an executor, with the client closed at the end; None without a scheduler."""
    if scheduler is None:
        yield None
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise refused("--scheduler needs Dask: pip install 'dask[dataframe,distributed]'") from None
    try:
        client = Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as problem:
        raise refused(f"no scheduler answers at {scheduler!r}: {problem}") from None
    with client:
        yield client.get_executor()
