"""`meanmap schema`: how the columns of a file are read."""

from dataclasses import asdict
from typing import Annotated

import typer

from meanmap.cli.bundles import Cells, with_bundles
from meanmap.cli.options import AsJson, names_in, say
from meanmap.core.notes import note_lines

__all__ = ["schema"]


@with_bundles
def schema(
    data: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ file; - reads text from standard input.")],
    columns: Annotated[str | None, typer.Option(help="Columns, a,b,...; all unless given.")] = None,
    missing: Annotated[str, typer.Option(help="Codes for missing values, such as ?,-999.")] = "drop",
    *,
    cells: Cells,
    json: AsJson = False,
) -> None:
    """Show how each column of a file is read: its kind, with its range and unit, or its labels."""
    import meanmap as mm
    from meanmap.cli import outputs
    from meanmap.core.errors import EmptyError
    from meanmap.core.tables.missing import present

    reading = cells.begun(missing)
    held = reading.with_gaps(data, names_in(columns))
    there = {name: column for name, column in held.items() if present(column).any()}
    if not there:
        raise EmptyError(f"{data} has no observed values.")
    reading.notes += [f"column {name!r} is empty, and is left out" for name in held if name not in there]
    told = {name: kind for name, kind in reading.kinds.items() if name in there}
    found = mm.Schema.of(there, kinds=told, names=[data])
    for column in (each for each in found.columns if each.written):
        reading.notes += column.strange(f"column {column.name!r}")
    if json:
        said = {"rows": found.rows, "columns": [asdict(column) for column in found.columns]}
        outputs.tell_json({**said, "notes": reading.notes, "meanmap": mm.__version__})
    else:
        say("\n".join([str(found), *note_lines(reading.notes)]))
