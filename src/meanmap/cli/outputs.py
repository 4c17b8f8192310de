"""Results on the terminal, as JSON, as a picture, as a page."""

import io
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from meanmap import __version__
from meanmap.cli.options import in_own_words, say
from meanmap.core.errors import InputError
from meanmap.core.extras import optional
from meanmap.core.notes import in_few, note_lines
from meanmap.core.saved.files import write_whole
from meanmap.graphs.edge_table import edge_rows
from meanmap.stats import TestResult
from meanmap.stats.results import ClosenessResult
from meanmap.stats.samples.k_sample_result import ColumnsResult

__all__ = [
    "answer",
    "believed",
    "draw",
    "figure_of",
    "own_notes",
    "tell",
    "tell_beliefs",
    "tell_graph",
    "tell_json",
]


# Results that are printed as sentences.
TOLD = ("answer", "notes", "warnings", "why")


def tell_json(said: dict[str, Any]) -> None:
    """Print JSON; values that are not finite become null, because JSON cannot represent them."""
    typer.echo(json.dumps(_finite(said), indent=1, default=float, allow_nan=False))


def _finite(said: object) -> Any:
    if isinstance(said, dict):
        return {key: in_own_words(value) if key in TOLD else _finite(value) for key, value in said.items()}
    if isinstance(said, list | tuple):
        return [_finite(value) for value in said]
    return None if isinstance(said, float) and not math.isfinite(said) else said


def tell(
    result: TestResult,
    question: str,
    notes: Sequence[str],
    level: float,
    as_json: bool,
    with_draws: bool = False,
    effect: Any = None,
) -> None:
    """Print the answer, with or without the draws of the null."""
    if as_json:
        facts = result.to_dict()
        draws = facts.pop("null_draws")
        said = {"question": question, "level": level, "reject": result.reject(level), **facts}
        said["answer"] = answer(result, question, level)
        said = {**said, "notes": list(notes), "meanmap": __version__}
        said |= {} if effect is None else {"effect": effect.to_dict()}
        tell_json({**said, "null_draws": draws} if with_draws else said)
        return
    say(f"{question} {answer(result, question, level)}\n\n{result}")
    if effect is not None:
        # A test of samples has listed its columns.
        lines = effect.together() if getattr(result, "differences", ()) else effect.lines()
        say(f"\n{effect.written(lines)}")
    for note in in_few(notes):
        say(f"  note       {note}")


def answer(result: TestResult, question: str, level: float) -> str:
    """The answer in a sentence; a claim that is not shown is not thereby disproved. Other sentences say if columns
    differ that a test of complete rows does not see.
    """
    if isinstance(result, ColumnsResult) and (beyond := result.beyond_test(level)):
        return beyond
    gaps = result.of_missing if isinstance(result, ColumnsResult) else ""
    return " ".join(filter(None, (_answer(result, question, level), gaps)))


def _answer(result: TestResult, question: str, level: float) -> str:
    found = f"at level {level:g}, p = {result.pvalue:.3g}."
    rejected = result.reject(level)
    if isinstance(result, ClosenessResult):  # where rejecting means yes
        return f"Yes: shown {found}" if rejected else f"Not shown {found}"
    if rejected:
        return f"No: rejected {found}"
    of = "dependence" if question.startswith("Are ") else "a difference"
    if isinstance(result, ColumnsResult):
        of += result.among
        if result.shows_some:
            return f"Weak evidence of {of}: not rejected {found[:-1]}, but an interval below excludes zero."
    return f"No evidence of {of}: not rejected {found}"


def tell_graph(graph: Any, notes: Sequence[str], as_json: bool) -> None:
    """Print a graph, with the evidence for its edges."""
    if as_json:
        said = {"names": list(graph.names), "edges": edge_rows(graph), "seed": graph.seed}
        said["notes"] = [*own_notes(graph), *notes]
        tell_json({**said, "meanmap": __version__})
        return
    say(str(graph))
    for line in (*note_lines(notes), f"  seed {graph.seed}"):
        say(line)


def own_notes(graph: Any) -> Sequence[str]:
    """The notes of a learned graph: columns that were left out, contradictory test results."""
    report = getattr(graph, "report", None)
    return getattr(graph, "notes", ()) if report is None else report.notes


def tell_beliefs(beliefs: Any, labels: dict[str, list[str]], as_json: bool) -> None:
    """Print the belief about each target: mean, deviation and quantiles of numbers, probabilities of labels."""
    said = {name: believed(beliefs[name], labels.get(name)) for name in beliefs}
    if as_json:
        tell_json({"beliefs": said, "report": beliefs.report.to_dict(), "meanmap": __version__})
        return
    for name, belief in said.items():
        say(f"{name}: " + ", ".join(f"{what} {number:.4g}" for what, number in belief.items()))
    say(str(beliefs.report))


def believed(belief: Any, labels: list[str] | None) -> dict[str, float]:
    """A belief as named numbers."""
    if labels is not None:
        values = np.clip(belief(np.array(labels)), 0.0, None)  # the weights of labels, under the kernel of equal labels
        return dict(zip(labels, (values / values.sum()).tolist(), strict=True))
    if np.ndim(belief.mean()):  # a point on a circle
        return dict(zip(("mean cosine", "mean sine"), belief.mean().tolist(), strict=True))
    low, middle, high = (float(value) for value in belief.quantile([0.05, 0.5, 0.95]))
    return {"mean": float(belief.mean()), "sd": float(belief.sd()), "5%": low, "median": middle, "95%": high}


def draw(result: Any, path: Path) -> None:
    """A picture of anything with a `plot` method, on one or several axes."""
    picture = io.BytesIO()
    try:
        figure_of(result.plot).savefig(picture, format=path.suffix.lstrip(".") or None, dpi=144)
    except ValueError as problem:  # a kind of file that matplotlib does not write
        raise InputError(f"{path} cannot be drawn: {problem}") from None
    write_whole(path, picture.getvalue())


def figure_of(plot: Callable[[], Any]) -> Any:
    """The figure behind the axes that `plot` returns; no window is opened for it."""
    with optional("drawing"):
        import matplotlib

    matplotlib.use("agg")
    return np.ravel(plot())[0].figure
