"""`meanmap learn-kernel`: the lengthscales of a kernel from the columns of a file."""

from pathlib import Path
from typing import Annotated

import typer

from meanmap.cli.options import (
    AsJson,
    DecimalMark,
    Delimiter,
    Kinds,
    Missing,
    Plot,
    Report,
    Seed,
    kinds_in,
    names_in,
    say,
    to_be_written,
)
from meanmap.core.notes import note_lines

__all__ = ["learn_kernel"]


def learn_kernel(
    data: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ file; - reads text from standard input.")],
    columns: Annotated[str | None, typer.Option(help="Columns of numbers, a,b,...; all unless given.")] = None,
    each: Annotated[
        bool, typer.Option("--each", help="A lengthscale for each column, instead of one for all.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", callback=to_be_written, help="Save the kernel, for mm.load.")
    ] = None,
    seed: Seed = None,
    missing: Missing = "drop",
    kinds: Kinds = "",
    delimiter: Delimiter = None,
    decimal: DecimalMark = None,
    json: AsJson = False,
    plot: Plot = None,
    report: Report = None,
) -> None:
    """Learn the lengthscale of a kernel from one sample, with every mode that the data support."""
    import numpy as np

    import meanmap as mm
    from meanmap.cli import inputs, outputs
    from meanmap.core.progress import waiting

    reading = inputs.Reading(delimiter, [], missing, kinds_in(kinds), decimal=decimal)
    table = reading.told(reading.table(data, names_in(columns)), data)
    table = inputs.numeric(table, data, "--columns")
    own = mm.kernels.RBF(np.ones(table.matrix().shape[1])) if each else None
    with waiting("learning a kernel"):
        fit = mm.learn_kernel(table, own, rng=seed)
    if output is not None:
        mm.save(fit.kernel, output)
    modes = [
        {
            "lengthscale": np.asarray(vars(mode.kernel)["lengthscale"]).tolist(),
            "objective": mode.objective,
            "share": mode.share,
        }
        for mode in fit.modes
    ]
    if plot is not None:
        outputs.draw(fit, plot)
    if report is not None:
        from meanmap.cli import pages

        pages.write_page(report, "A kernel learned from a sample", fit, pages.rows(modes), reading.notes, fit.seed)
    if not json:
        say("\n".join([str(fit), *note_lines(reading.notes), f"  seed {fit.seed}"]))
        return
    said = {"columns": list(table.names), "modes": modes, "report": fit.report.to_dict(), "seed": fit.seed}
    outputs.tell_json({**said, "notes": reading.notes, "meanmap": mm.__version__})
