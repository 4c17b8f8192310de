"""Pictures of beliefs: densities of numbers, bars of states and labels, weighted points of anything else."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanmap.bp.beliefs.densities import Density
from meanmap.bp.beliefs.label_belief import LabelBelief
from meanmap.core.domains import holds_vectors
from meanmap.core.errors import KindError
from meanmap.core.pictures import new_axes
from meanmap.core.points import in_columns
from meanmap.core.types import Axes
from meanmap.embeddings.points import PointEmbedding

__all__ = ["draw_beliefs"]

# At most this many queries are drawn.
MOST_QUERIES = 8
# Points without coordinates are labelled by their rows; only those with the largest weights are shown.
MOST_BARS = 12


def draw_beliefs(beliefs: Any, ax: Any = None) -> Any:
    """Draw one plot for each target, side by side; return an array of their matplotlib Axes."""
    number = len(beliefs)
    places = np.atleast_1d(new_axes(3.2 * max(number, 1), 2.6, max(number, 1)) if ax is None else ax)
    if len(places) != number:
        raise KindError(f"ax has {len(places)} entries; expected one for each of {number} targets.")
    for (name, belief), place in zip(beliefs.items(), places, strict=True):
        place.set_title(str(name))
        match belief:
            case Density():
                _density(belief, place)
            case PointEmbedding():
                if not isinstance(belief, LabelBelief) and name not in beliefs.labels:
                    _embedding(belief, place)
                else:
                    each = beliefs.probabilities(name)
                    _bars(np.atleast_2d(np.array(list(each.values())).T), place, "label", list(each))
            case _:
                _bars(np.atleast_2d(np.asarray(belief)), place, "state")
    return places


def _embedding(belief: PointEmbedding, ax: Axes) -> None:
    points = belief.points
    numeric = holds_vectors(belief.kernel.domain) and in_columns(points)
    queries = [belief[i] for i in range(min(belief.batch[0], MOST_QUERIES))] if belief.batch else [belief]
    if numeric and points.shape[1] == 1:
        if len(points) == len(queries) or len(points) == 1:
            for value in points[: len(queries), 0]:
                ax.axvline(value, color="C3")
            ax.set(yticks=[], xlabel="observed")
            return
        low, high = points.min(), points.max()
        grid = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), 300)
        for one in queries:
            ax.plot(grid, one.density(grid))
        ax.set(ylim=(0, None), ylabel="density")
    elif numeric:
        for i, one in enumerate(queries):
            weights = np.maximum(np.asarray(one.weights), 0)
            ax.scatter(*points[:, :2].T, s=60 * weights / weights.max(), color=f"C{i % 10}", alpha=0.6)
        ax.set(xlabel="first column", ylabel="second column")
    else:
        _bars(np.atleast_2d(np.stack([np.asarray(one.weights) for one in queries])), ax, "row of the data")


def _density(belief: Density, ax: Axes) -> None:
    queries = [belief[i] for i in range(min(belief.batch[0], MOST_QUERIES))] if belief.batch else [belief]
    for one in queries:
        low, high = one.quantile([0.001, 0.999])
        grid = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), 300)
        ax.plot(grid, one.density(grid))
    ax.set(ylim=(0, None), ylabel="density")


def _bars(weights: np.ndarray, ax: Axes, what: str, names: Sequence[Any] | None = None) -> None:
    """Draw the weights of points; of many points, those with the largest total weight over all queries."""
    shown = np.sort(np.argsort(weights.sum(axis=0))[::-1][:MOST_BARS])
    width = 0.8 / len(weights[:MOST_QUERIES])
    for i, one in enumerate(weights[:MOST_QUERIES]):
        ax.bar(np.arange(len(shown)) + i * width, one[shown], width, align="edge")
    ax.set_xticks(np.arange(len(shown)) + 0.4, [str(i if names is None else names[i]) for i in shown])
    ax.set(xlabel=what, ylabel="probability")
