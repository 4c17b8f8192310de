"""`meanmap test ...`: hypothesis tests on files."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from meanmap.cli.bundles import Answer, Read, with_bundles
from meanmap.cli.options import (
    Command,
    Group,
    KernelName,
    Null,
    Permutations,
    Seed,
    names_in,
    refused,
)

__all__ = ["app"]


class Questions(Group):
    """Commands by name; words with a ~ are a question."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command meant by the first words."""
        return super().resolve_command(ctx, ["ask", *args] if args and "~" in args[0] else args)


app = typer.Typer(help="Hypothesis tests on files.", no_args_is_help=True, cls=Questions)

File = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet (also a folder or 'pattern'), NPY or NPZ file; - reads standard input.")
]
Sample = Annotated[str, typer.Argument(help="As for other commands; or several Parquet files: a folder or 'pattern'.")]


Within = Annotated[str, typer.Option(help="Columns of strata or pairs, a,b,...: rows are permuted only within them.")]
Clusters = Annotated[
    str, typer.Option(help="Columns of clusters that stay whole, or the number of rows in a block of a time series.")
]

WithEffect = Annotated[bool, typer.Option("--effect", help="Also estimate the size of the effect, with 95% intervals.")]


def cluster_columns(clusters: str) -> list[str]:
    """The columns that --clusters names; none if it is a number of rows."""
    return [] if _is_count(clusters) else names_in(clusters)


def design_in(within: str, clusters: str, weights: str | None = None) -> dict[str, Any]:
    """The declared structure of the rows, as arguments of functions."""
    blocks = int(clusters) if _is_count(clusters) else cluster_columns(clusters)
    said = {"within": names_in(within), "clusters": blocks, "weights": weights}
    return {name: value for name, value in said.items() if value not in (None, "", [])}


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def variables_in(
    reading: Any, path: str, chosen: list[list[str]], within: str, clusters: str
) -> tuple[list[Any], dict[str, Any]]:
    """Groups of columns of one file, and the declared structure of its rows."""
    from meanmap.cli import inputs

    design = design_in(within, clusters)
    apart = {name: value for name, value in design.items() if isinstance(value, list)}
    tables = inputs.variables(reading, path, [*chosen, *apart.values()])
    reading.set_apart([name for names in apart.values() for name in names])
    return tables[: len(chosen)], design | dict(zip(apart, tables[len(chosen) :], strict=True))


def variables_anywhere(
    reading: Any,
    path: str,
    chosen: list[list[str]],
    within: str,
    clusters: str,
    whole: bool,
    options: dict[str, Any],
) -> Sequence[Any]:
    """As `variables_in`, but a long file stays on disk unless all of it is needed; options of the test are added."""
    from meanmap.cli import inputs

    long = None if whole or within or clusters else inputs.long_variables(reading, path, chosen)
    if long:
        options |= reading.of_many_rows()
    found, design = (long, {}) if long else variables_in(reading, path, chosen, within, clusters)
    options |= {"kinds": reading.kinds, **design}
    return found


@app.command(cls=Command)
@with_bundles
def ask(
    question: Annotated[str, typer.Argument(help='Such as "harvest ~ sun | water"; the word ask may be omitted.')],
    data: File,
    within: Within = "",
    clusters: Clusters = "",
    kernel: KernelName = None,
    permutations: Permutations = 1000,
    seed: Seed = None,
    *,
    read: Read,
    answer: Answer,
) -> None:
    """Answer a question about a file with the appropriate test, and say why it was chosen."""
    import meanmap as mm
    from meanmap.stats.asking.ask import plan_for
    from meanmap.stats.asking.grammar import Question

    reading = read.reading()
    design = design_in(within, clusters)
    apart = [*names_in(within), *cluster_columns(clusters)]

    # Rows are left out only for missing values in the columns of the question.
    def chosen(names: list[str]) -> list[str]:
        asked = Question.read(question, names, apart)
        reading.keeps += [*asked.typed, *apart]
        return [*asked.names, *apart]

    table = reading.table(data, chosen)
    plan = plan_for(question, table, kinds=reading.kinds, **{"within": [], **design})
    options: dict[str, Any] = {"n_permutations": permutations, "kinds": reading.kinds, "rng": seed}
    whole = reading.all_rows(data)
    result = mm.test(question, table if whole is None else whole, kernel=kernel, missing="drop", **options, **design)
    answer.give(result, plan.question, reading)


@app.command("two-sample", cls=Command)
@with_bundles
def two_sample(
    first: Sample,
    second: Annotated[str | None, typer.Argument(help="The other sample; or use --by.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to compare, a,b,...; all unless given.")] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column of one file whose values define the samples. Differences are those to the first: control, "
            "baseline, placebo, or else in sorted order; --kinds 'arm=blue<green' makes blue the first."
        ),
    ] = None,
    within: Within = "",
    clusters: Clusters = "",
    weights: Annotated[str | None, typer.Option(help="Column with the weight of each row.")] = None,
    effect: WithEffect = False,
    margin: Annotated[
        float | None, typer.Option(help="Test instead whether they are closer than a shift of this many sd.")
    ] = None,
    kernel: KernelName = None,
    scale: Annotated[bool, typer.Option(help="Scale each column of numbers by its own spread.")] = True,
    null: Null = "auto",
    permutations: Permutations = 1000,
    seed: Seed = None,
    *,
    read: Read,
    answer: Answer,
) -> None:
    """Do two files, or the groups of one file, come from the same distribution?"""
    if (second is None) == (by is None):
        raise refused("give a second file, or --by with the column that defines the samples")
    import meanmap as mm
    from meanmap.cli import inputs
    from meanmap.core.tables.apart import columns_named
    from meanmap.core.tables.labels_meant import written_in_two_ways
    from meanmap.stats.samples.two_sample import samples_called

    reading = read.reading()
    design = design_in(within, clusters, weights)
    also = [name for name in (*names_in(within), *cluster_columns(clusters), weights) if name]
    if by in also:
        raise refused(f"{by!r} of --by defines the samples; expected other columns for --within, --clusters, --weights")
    reading.needs += [*also, by] if by else also
    chosen = [*names_in(columns), *also] if columns else []
    held = by is not None or effect or margin is not None or bool(design)
    long = None if held else inputs.long_files(reading, first, str(second), chosen)
    samples = long or (
        inputs.groups(reading, first, by, chosen)
        if by is not None
        else inputs.pair(reading, first, str(second), chosen)
    )
    many = len(samples) > 2
    if many and null not in ("auto", "permutation"):
        raise refused(f"with {len(samples)} groups the null is permutation, not {null}")
    options: dict[str, Any] = {"n_permutations": permutations, "scale": scale, "kinds": reading.kinds, "rng": seed}
    options |= design
    if long:
        options |= reading.of_many_rows()
    given, asked = list(samples.values()), {}
    # If there is one table, ids were left out of it as a whole.
    read_whole = given[0].names if columns or by is not None else ()
    if not long and margin is None:
        given, asked = inputs.with_all_rows(reading, samples, [first] if by else [first, str(second)], by)
    if by is not None and not asked:  # otherwise the test reads the groups, and notes this
        labels = [name.removeprefix(f"{by}=") for name in samples]
        reading.notes += written_in_two_ways(labels, f"column {by!r}", least=1)
    if many and not asked:
        given = [samples]
    options |= asked
    plain = {"kernel": kernel, "scale": scale, "kinds": reading.kinds, "rng": seed} | design | asked
    if margin is not None and many:
        raise refused(f"--margin needs two samples, and there are {len(samples)}")
    names = tuple(samples)
    size = None
    with samples_called(names[0], names[1]), columns_named(read_whole, chosen):
        if margin is not None:
            result = mm.closeness_test(given[0], given[1], margin, **plain)
            shift = f"a shift of all columns by {margin:g} standard deviations"
            question = f"Do {' and '.join(names)} differ by less than {shift}?"
        else:
            result = (
                mm.k_sample_test(*given, kernel=kernel, **options)
                if many
                else mm.two_sample_test(*given, kernel=kernel, null=null, **options)
            )
            question = f"Do {' and '.join(names)} come from the same distribution?"
        if effect:
            size = mm.k_sample_effect(*given, **plain) if many else mm.two_sample_effect(*given, **plain)
    answer.give(result, question, reading, samples, size)


@app.command(cls=Command)
@with_bundles
def independence(
    data: File,
    x: Annotated[str, typer.Option("--x", help="Columns of the first variable, a,b,...")],
    y: Annotated[str, typer.Option("--y", help="Columns of the second.")],
    within: Within = "",
    clusters: Clusters = "",
    effect: WithEffect = False,
    kernel: KernelName = None,
    null: Null = "auto",
    permutations: Permutations = 1000,
    seed: Seed = None,
    *,
    read: Read,
    answer: Answer,
) -> None:
    """Are two groups of columns of a file independent?"""
    import meanmap as mm

    reading = read.reading()
    wanted = [names_in(x), names_in(y)]
    options: dict[str, Any] = {"n_permutations": permutations, "rng": seed}
    first, second = variables_anywhere(reading, data, wanted, within, clusters, effect, options)
    result = mm.independence_test(first, second, kernel, null=null, **options)
    size = mm.independence_effect(first, second, kernel, kinds=reading.kinds, rng=seed) if effect else None
    question = f"Are {x} and {y} independent?"
    answer.give(result, question, reading, effect=size)


@app.command(cls=Command)
@with_bundles
def conditional(
    data: File,
    x: Annotated[str, typer.Option("--x", help="Columns of the first variable, a,b,...")],
    y: Annotated[str, typer.Option("--y", help="Columns of the second.")],
    z: Annotated[str, typer.Option("--z", help="Columns to condition on.")],
    within: Within = "",
    clusters: Clusters = "",
    method: Annotated[str, typer.Option(help="auto, kci, residuals or features.")] = "auto",
    effect: WithEffect = False,
    kernel: KernelName = None,
    null: Null = "auto",
    permutations: Permutations = 1000,
    seed: Seed = None,
    *,
    read: Read,
    answer: Answer,
) -> None:
    """Are two groups of columns of a file independent, given others?"""
    import meanmap as mm

    reading = read.reading()
    wanted = [names_in(each) for each in (x, y, z)]
    options: dict[str, Any] = {"n_permutations": permutations, "rng": seed}
    tables = variables_anywhere(reading, data, wanted, within, clusters, effect, options)
    result = mm.conditional_independence_test(*tables, method=method, kernel=kernel, null=null, **options)
    inside: dict[str, Any] = {"within": options.get("within"), "kinds": reading.kinds, "rng": seed}
    size = mm.conditional_independence_effect(*tables, **inside) if effect else None
    question = f"Are {x} and {y} independent, given {z}?"
    answer.give(result, question, reading, effect=size)
