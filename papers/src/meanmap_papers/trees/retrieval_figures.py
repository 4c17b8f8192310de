"""The pictures of figure 1."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap_papers.trees.searching import DEPTH, METHODS

__all__ = ["GRAPHS", "SHOWN", "case_of", "curves_against_depth", "summary"]

GRAPHS = ("chain", "linguistic tree", "Chow-Liu tree")
# The numbers of candidates that single numbers look at, the same for all graphs and methods: at the first the chain is
# hard, among ten the trees are easy, and the paper retrieves up to fifty: a statement about whole curves has to hold at
# all of them.
SHOWN = (1, 10, 50)
COLOURS = dict(zip(METHODS, ("C0", "C1", "C7"), strict=True))


def case_of(graph: str, case: int, cases: int) -> str:
    """The evidence in one case, in words."""
    if graph == "chain":
        return f"{case + 2} languages"
    return f"{cases - 1 + case} known"


def summary(shown: Mapping[tuple[str, str, int], np.ndarray]) -> tuple[Any, str]:
    """Recall among the first few against evidence, and a caption."""
    from matplotlib import pyplot

    shape = len(SHOWN), len(GRAPHS)
    figure, panels = pyplot.subplots(*shape, figsize=(10, 9), layout="constrained", sharex="col", sharey=True)
    for row, candidates in zip(panels, SHOWN, strict=True):
        for axes, graph in zip(row, GRAPHS, strict=True):
            for method in METHODS:
                found = shown[graph, method, candidates]
                first = 2 if graph == "chain" else found.shape[1] - 1
                error = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else None
                at = first + np.arange(found.shape[1])
                axes.errorbar(at, found.mean(axis=0), error, marker="o", ms=4, label=method, color=COLOURS[method])
            axes.set(ylim=(0, 1.02))
            axes.xaxis.get_major_locator().set_params(integer=True)
        row[0].set_ylabel("found first" if candidates == 1 else f"found among the first {candidates}")
    for axes, graph in zip(panels[0], GRAPHS, strict=True):
        axes.set_title(graph)
    for axes, graph in zip(panels[-1], GRAPHS, strict=True):
        axes.set_xlabel("languages on the chain" if graph == "chain" else "known languages")
    panels[0, 0].legend(frameon=False)
    return figure, (
        f"Recall at the first candidate (above) and among the first {SHOWN[1]} and {SHOWN[2]} (below), mean and "
        "standard error over splits."
    )


def curves_against_depth(curves: Mapping[tuple[str, str], np.ndarray]) -> tuple[Any, str]:
    """Recall against the number of candidates for each graph and method, and a caption."""
    from matplotlib import colormaps, pyplot

    figure, panels = pyplot.subplots(3, 3, figsize=(10, 8), sharex=True, sharey=True, layout="constrained")
    for row, graph in zip(panels, GRAPHS, strict=True):
        for axes, method in zip(row, METHODS, strict=True):
            found = curves[graph, method].mean(axis=0)
            for case, curve in enumerate(found):
                colour = colormaps["viridis"](0.9 * case / max(len(found) - 1, 1))
                axes.plot(np.arange(1, DEPTH + 1), curve, color=colour, label=case_of(graph, case, len(found)))
            axes.set_title(f"{graph}: {method}", fontsize="medium")
        row[0].set_ylabel("recall")
        row[0].legend(fontsize="x-small", frameon=False, loc="lower right")
    for axes in panels[-1]:
        axes.set_xlabel("candidates looked at")
    panels[0, 0].set_ylim(0, 1.02)
    return (
        figure,
        "Recall against the number of candidates looked at, mean over splits (the layout of the paper's figure 1).",
    )
