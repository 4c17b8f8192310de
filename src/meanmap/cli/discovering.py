"""`meanmap discover`: which variables of a file depend on each other, and in which direction."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from meanmap.cli.bundles import Drawn, InPairs, with_bundles
from meanmap.cli.options import (
    Seed,
    names_in,
    pairs_in,
    parts_in,
    refused,
    to_be_written,
)

__all__ = ["discover"]

TITLE = "Which columns depend on each other?"

Arrows = Annotated[str | None, typer.Option(help="Arrows, cause>effect,cause>effect,...")]


@with_bundles
def discover(
    data: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ file; - reads text from standard input.")],
    columns: Annotated[str | None, typer.Option(help="Columns to join, a,b,...; all unless given.")] = None,
    method: Annotated[str, typer.Option(help="pc (causes and effects) or tree (the strongest dependences).")] = "pc",
    level: Annotated[float, typer.Option(help="Level of each test of pc.")] = 0.05,
    required: Arrows = None,
    forbidden: Arrows = None,
    tiers: Annotated[str | None, typer.Option(help='Groups in time order: a,b/c,d/...; "x/y" is one name.')] = None,
    half_samples: Annotated[
        int, typer.Option(min=0, help="Repeat the search on this many random halves, for the support of edges.")
    ] = 0,
    graphml: Annotated[Path | None, typer.Option(callback=to_be_written, help="Write the graph to this file.")] = None,
    seed: Seed = None,
    *,
    read: InPairs,
    shown: Drawn,
) -> None:
    """Find a graph of the columns of a file: causes and effects, or a tree of the strongest dependences."""
    if method not in ("pc", "tree"):
        raise refused(f"--method is {method!r}; expected pc or tree")
    if method == "tree" and (required or forbidden or tiers):
        raise refused("--required, --forbidden and --tiers are for --method pc")
    import meanmap as mm
    from meanmap.cli import outputs
    from meanmap.core.progress import waiting

    reading = read.reading(by_pairs=method == "tree")
    groups = [names_in(group) for group in parts_in(tiers, "/")] if tiers else []
    needed, barred = _arrows(required, "--required"), _arrows(forbidden, "--forbidden")
    reading.keeps += [name for each in (*groups, *needed, *barred) for name in each]
    table = reading.for_pairs(data, names_in(columns))
    _check_written(groups, list(getattr(table, "columns", table)))
    found: Any
    with waiting("discovering"):
        if method == "tree":
            found = mm.chow_liu(table, half_samples=half_samples, kinds=reading.kinds, rng=seed)
        else:
            known = {"required": needed, "forbidden": barred, "tiers": groups}
            found = mm.pc(table, level, half_samples=half_samples, kinds=reading.kinds, rng=seed, **known)
    if shown.plot is not None:
        outputs.draw(found, shown.plot)
    if shown.report is not None:
        from meanmap.cli import pages

        rows, notes = found._as_page().sections[0].tables[0], [*outputs.own_notes(found), *reading.notes]
        pages.write_page(shown.report, TITLE, found, rows, notes, found.seed)
    if graphml is not None:
        mm.graphs.write_graphml(found, graphml)
    outputs.tell_graph(found, reading.notes, shown.json)


def _check_written(groups: list[list[str]], names: list[str]) -> None:
    """Refuse a part of a name with a slash or a comma, and say how the name is written."""
    for part in (part for group in groups for part in group if part not in names):
        for name in (name for name in names if part in map(str.strip, re.split("[,/]", name))):
            raise refused(f"--tiers has {part!r}, which is only a part of a name: quote the name, '\"{name}\"'")


def _arrows(text: str | None, option: str) -> list[tuple[str, str]]:
    return pairs_in(text, ">", option, "is not an arrow; expected cause>effect")
