"""`meanmap test ...`: hypothesis tests on files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from meanmap.cli.options import (
    Alpha,
    AsJson,
    Command,
    Delimiter,
    FailOnReject,
    KernelName,
    Kinds,
    LabelColumns,
    Missing,
    Null,
    Permutations,
    Plot,
    Report,
    Seed,
    WithDraws,
    kinds_in,
    names_in,
    refused,
)

__all__ = ["app"]

app = typer.Typer(help="Hypothesis tests on files.", no_args_is_help=True)

File = Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ file; - reads text from standard input.")]


@app.command("two-sample", cls=Command)
def two_sample(
    first: File,
    second: Annotated[str | None, typer.Argument(help="The other sample; or use --by.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to compare, a,b,...; all unless given.")] = None,
    by: Annotated[str | None, typer.Option(help="Column of one file whose values tell the samples apart.")] = None,
    kernel: KernelName = None,
    scale: Annotated[bool, typer.Option(help="Measure each column of numbers in its own unit.")] = True,
    null: Null = "auto",
    permutations: Permutations = 1000,
    seed: Seed = None,
    alpha: Alpha = 0.05,
    missing: Missing = "drop",
    labels: LabelColumns = "",
    kinds: Kinds = "",
    delimiter: Delimiter = None,
    json: AsJson = False,
    draws: WithDraws = False,
    plot: Plot = None,
    report: Report = None,
    fail_on_reject: FailOnReject = False,
) -> None:
    """Do two files, or the groups of one, hold samples of one distribution?"""
    if (second is None) == (by is None):
        raise refused("give a second file, or --by with the column whose values tell the samples apart")
    import meanmap as mm
    from meanmap.cli import inputs

    reading = inputs.Reading(delimiter, names_in(labels), missing, kinds_in(kinds))
    samples = (
        inputs.groups(reading, first, by, names_in(columns))
        if by is not None
        else inputs.pair(reading, first, str(second), names_in(columns))
    )
    many = len(samples) > 2
    if many and null not in ("auto", "permutation"):
        raise refused(f"with {len(samples)} groups the null is permutation, not {null}")
    options: dict[str, Any] = {"n_permutations": permutations, "scale": scale, "kinds": reading.kinds, "rng": seed}
    tables = list(samples.values())
    result = (
        mm.k_sample_test(tables, kernel=kernel, **options)
        if many
        else mm.two_sample_test(*tables, kernel=kernel, null=null, **options)
    )
    question = f"Do {' and '.join(samples)} come from one distribution?"
    _tell(result, question, reading, alpha, (json, draws), plot, report, fail_on_reject, samples)


@app.command(cls=Command)
def independence(
    data: File,
    x: Annotated[str, typer.Option("--x", help="Columns of the first variable, a,b,...")],
    y: Annotated[str, typer.Option("--y", help="Columns of the second.")],
    kernel: KernelName = None,
    null: Null = "auto",
    permutations: Permutations = 1000,
    seed: Seed = None,
    alpha: Alpha = 0.05,
    missing: Missing = "drop",
    labels: LabelColumns = "",
    kinds: Kinds = "",
    delimiter: Delimiter = None,
    json: AsJson = False,
    draws: WithDraws = False,
    plot: Plot = None,
    report: Report = None,
    fail_on_reject: FailOnReject = False,
) -> None:
    """Are two groups of columns of a file independent?"""
    import meanmap as mm
    from meanmap.cli import inputs

    reading = inputs.Reading(delimiter, names_in(labels), missing, kinds_in(kinds))
    first, second = inputs.variables(reading, data, [names_in(x), names_in(y)])
    options: dict[str, Any] = {"n_permutations": permutations, "kinds": reading.kinds, "rng": seed}
    result = mm.independence_test(first, second, kernel, null=null, **options)
    _tell(result, f"Are {x} and {y} independent?", reading, alpha, (json, draws), plot, report, fail_on_reject)


@app.command(cls=Command)
def conditional(
    data: File,
    x: Annotated[str, typer.Option("--x", help="Columns of the first variable, a,b,...")],
    y: Annotated[str, typer.Option("--y", help="Columns of the second.")],
    z: Annotated[str, typer.Option("--z", help="Columns that are given.")],
    method: Annotated[str, typer.Option(help="auto, kci, residuals or features.")] = "auto",
    kernel: KernelName = None,
    null: Null = "auto",
    permutations: Permutations = 1000,
    seed: Seed = None,
    alpha: Alpha = 0.05,
    missing: Missing = "drop",
    labels: LabelColumns = "",
    kinds: Kinds = "",
    delimiter: Delimiter = None,
    json: AsJson = False,
    draws: WithDraws = False,
    plot: Plot = None,
    report: Report = None,
    fail_on_reject: FailOnReject = False,
) -> None:
    """Are two groups of columns of a file independent, given others?"""
    import meanmap as mm
    from meanmap.cli import inputs

    reading = inputs.Reading(delimiter, names_in(labels), missing, kinds_in(kinds))
    tables = inputs.variables(reading, data, [names_in(x), names_in(y), names_in(z)])
    options: dict[str, Any] = {"n_permutations": permutations, "kinds": reading.kinds, "rng": seed}
    result = mm.conditional_independence_test(*tables, method=method, kernel=kernel, null=null, **options)
    question = f"Are {x} and {y} independent, given {z}?"
    _tell(result, question, reading, alpha, (json, draws), plot, report, fail_on_reject)


def _tell(
    result: Any,
    question: str,
    reading: Any,
    alpha: float,
    form: tuple[bool, bool],
    plot: Path | None,
    report: Path | None,
    fail: bool,
    samples: Mapping[str, Any] | None = None,
) -> None:
    from meanmap.cli import outputs

    rejected = result.reject(alpha)
    if plot is not None:
        outputs.draw(result, plot)
    if report is not None:
        from meanmap.cli import pages

        pages.write_test(report, result, question, reading.notes, alpha, samples or {})
    outputs.tell(result, question, reading.notes, alpha, *form)
    if fail and rejected:
        raise typer.Exit(1)
