"""`meanmap graph ...`: learn a graphical model from a file, and query it."""

import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from meanmap.cli.bundles import InPairs, with_bundles
from meanmap.cli.options import (
    AsJson,
    Command,
    Group,
    Plot,
    Report,
    names_in,
    pairs_in,
    refused,
    say,
    to_be_written,
)
from meanmap.core.notes import in_few
from meanmap.core.numerals import reads_as_number

__all__ = ["app"]

app = typer.Typer(help="Graphical models learned from files.", no_args_is_help=True, cls=Group)

Model = Annotated[Path, typer.Argument(help="A file that `meanmap graph fit` wrote.")]


@app.command(cls=Command)
@with_bundles
def fit(
    data: Annotated[str, typer.Argument(help="CSV, TSV, Parquet, NPY or NPZ file; - reads text from standard input.")],
    output: Annotated[Path, typer.Option("--output", "-o", callback=to_be_written, help="File for the model.")],
    edges: Annotated[str | None, typer.Option(help="Edges, a-b,b-c,...; the Chow-Liu tree unless given.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to join, a,b,...; all unless given.")] = None,
    *,
    read: InPairs,
) -> None:
    """Learn a tree of relations between the columns of a file."""
    if edges and columns:
        raise refused("--edges already names the columns: give --edges or --columns")
    import meanmap as mm
    from meanmap.cli import outputs
    from meanmap.core.progress import waiting

    reading = read.reading()
    pairs = pairs_in(edges, "-", "--edges", "is not an edge; expected a-b")
    table = reading.for_pairs(data, list(dict.fromkeys(sum(pairs, ()))) or names_in(columns))
    with waiting("learning a model"):
        graph: Any = pairs or mm.chow_liu(table, kinds=reading.kinds)
        model = mm.KernelGraph(graph).fit(table, kinds=reading.kinds)
    mm.save(model, output)
    for note in in_few((*reading.notes, *(outputs.own_notes(graph) or model.samples.notes))):
        say(note)
    say(f"{output}: {', '.join('-'.join(map(str, edge)) for edge in model.graph.named_edges)}")


@app.command(cls=Command)
def query(
    model: Model,
    given: Annotated[list[str] | None, typer.Option(help="Evidence, as name=value; may be repeated.")] = None,
    target: Annotated[str | None, typer.Option(help="Variables to query, a,b,...; all unless given.")] = None,
    json: AsJson = False,
    plot: Plot = None,
    report: Report = None,
) -> None:
    """Query a model: the distributions of variables given the values of others."""
    from meanmap.cli import outputs
    from meanmap.core.progress import waiting

    fitted = _loaded(model)
    labels = {
        name: sorted(set(node.labels))
        for name, node in zip(fitted.graph.names, fitted.samples.nodes, strict=True)
        if node.labels is not None
    }
    known: dict[str, Any] = {}
    for name, value in (_known(text, fitted, labels) for text in given or ()):
        if name in known:
            raise refused(f"--given names {name} twice; give it once")
        known[name] = value
    targets = names_in(target) or [name for name in fitted.graph.names if name not in known]
    with waiting("a query"):
        beliefs = fitted.query(known, targets=targets)
    if plot is not None:
        outputs.draw(beliefs, plot)
    if report is not None:
        from meanmap.cli import pages

        said = [{"variable": name, **outputs.believed(beliefs[name], labels.get(name))} for name in beliefs]
        title = f"Beliefs given {', '.join(given or ['nothing'])}"
        pages.write_page(report, title, beliefs, pages.rows(said), beliefs.report.notes, None)
    outputs.tell_beliefs(beliefs, labels, json)


@app.command(cls=Command)
def draw(
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", callback=to_be_written, help="A picture: .png, .svg, .pdf.")
    ],
) -> None:
    """Draw the graph of a model."""
    from meanmap.cli import outputs

    outputs.draw(_loaded(model), output)


def _loaded(path: Path) -> Any:
    import meanmap as mm
    from meanmap.bp.kernel.fitted_graph import FittedKernelGraph

    content = mm.load(path)
    if not isinstance(content, FittedKernelGraph):
        raise refused(f"{path} is not a model written by `meanmap graph fit`")
    return content


def _known(text: str, fitted: Any, labels: dict[str, list[str]]) -> tuple[str, Any]:
    names = fitted.graph.names
    name, mark, value = text.partition("=")
    if not mark or name not in names:
        raise refused(f"--given is {text!r}; expected name=value, with a name among {', '.join(map(str, names))}")
    if name in labels:
        if value not in labels[name]:
            raise refused(f"{name} has no label {value!r}; it has {', '.join(labels[name])}")
        return name, value
    if fitted.schema is not None and name in dict(fitted.schema.kinds):
        return name, value
    kind = "number" if fitted.schema is None or fitted.schema[name].kind != "time" else "time"
    if kind == "number" and not reads_as_number(value):
        raise refused(f"{name} is a {kind}; got {value!r}")
    try:
        return name, float(value) if kind == "number" else datetime.datetime.fromisoformat(value)
    except ValueError:
        raise refused(f"{name} is a {kind}; got {value!r}") from None
