"""The pictures of figure 1."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap_papers.trees.searching import DEPTH, METHODS

__all__ = ["GRAPHS", "SHOWN", "case_of", "curves_against_depth", "summary"]

GRAPHS = ("chain", "linguistic tree", "Chow-Liu tree")
# The number of candidates considered for single numbers: among ten, everything is found on the trees.
SHOWN = {"chain": 10, "linguistic tree": 1, "Chow-Liu tree": 1}
COLOURS = dict(zip(METHODS, ("C0", "C1", "C7"), strict=True))


def case_of(graph: str, case: int, cases: int) -> str:
    """The evidence in one case, in words."""
    if graph == "chain":
        return f"{case + 2} languages"
    return f"{cases - 1 + case} known"


def summary(shown: Mapping[tuple[str, str], np.ndarray]) -> tuple[Any, str]:
    """Recall among the first few against evidence, and a caption."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for axes, graph in zip(panels, GRAPHS, strict=True):
        for method in METHODS:
            found = shown[graph, method]
            first = 2 if graph == "chain" else found.shape[1] - 1
            error = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else None
            at = first + np.arange(found.shape[1])
            axes.errorbar(at, found.mean(axis=0), error, marker="o", ms=4, label=method, color=COLOURS[method])
        axes.set(
            title=graph, xlabel="languages on the chain" if graph == "chain" else "known languages", ylim=(0, 1.02)
        )
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel(f"recall among the first {SHOWN[graph]}" if SHOWN[graph] > 1 else "found first")
    panels[0].legend(frameon=False)
    return figure, (
        f"Recall among the first {SHOWN['chain']} candidates on the chain, at the first on the trees, mean and "
        "standard error over splits. Along the chain recall falls with all methods but length, earliest with the "
        "topic model; on the trees it rises with evidence."
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
