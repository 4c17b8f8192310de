"""`meanmap ep ...`: ready-made models, fitted to the columns of a file by expectation propagation."""

from enum import StrEnum
from typing import Annotated

import typer

from meanmap.cli.bundles import Drawn, Read, with_bundles
from meanmap.cli.options import (
    names_in,
    refused,
    say,
)
from meanmap.core.notes import note_lines

__all__ = ["ep"]


class Model(StrEnum):
    """The kinds of regression."""

    logistic = "logistic"
    probit = "probit"
    poisson = "poisson"
    ordinal = "ordinal"
    robust = "robust"


@with_bundles
def ep(
    model: Annotated[Model, typer.Argument(help="The kind of regression.")],
    data: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ file; - reads text from standard input.")],
    y: Annotated[str, typer.Option("--y", help="Column of the outcome.")],
    x: Annotated[str | None, typer.Option("--x", help="Columns of numbers, a,b,...; all others unless given.")] = None,
    levels: Annotated[str | None, typer.Option(help="Ordered labels of an ordinal outcome, low,middle,high.")] = None,
    *,
    read: Read,
    shown: Drawn,
) -> None:
    """Fit a Bayesian regression by expectation propagation, and print its table of coefficients."""
    if levels and model is not Model.ordinal:
        raise refused("--levels are for an ordinal outcome")
    import meanmap as mm
    from meanmap.cli import inputs, outputs
    from meanmap.core.progress import waiting

    reading = read.reading()
    reading.needs.append(y)
    table = reading.told(reading.table(data, [*names_in(x), y] if x else None), data)
    columns = names_in(x) or [name for name in table.names if name != y]
    with waiting("expectation propagation"):
        fit = getattr(mm.ep.models, f"{model}_regression")(
            inputs.numeric(table.select(columns), data, "--x"),
            table.columns[y],
            **({"levels": names_in(levels)} if levels else {}),
        )
    if shown.plot is not None:
        outputs.draw(fit, shown.plot)
    if shown.report is not None:
        from meanmap.cli import pages

        pages.write_page(shown.report, fit.title, fit, fit.summary().cells(), [*fit.notes, *reading.notes], None)
    if shown.json:
        outputs.tell_json({**fit.to_dict(), "notes": reading.notes, "meanmap": mm.__version__})
    else:
        say("\n".join([str(fit), *note_lines(reading.notes)]))
