"""Grids: the pixels of an image as nodes, with edges between neighbours whose direction is known."""

import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.errors import ParameterError
from meanmap.graphs.graph import Graph

__all__ = ["DIRECTIONS", "beside", "grid"]

# Steps (down, right) from the first to the second end of an edge; four neighbours use two of them.
DIRECTIONS = {"right": (0, 1), "down": (1, 0), "down right": (1, 1), "down left": (1, -1)}


def beside(image: np.ndarray, down: int, right: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of pixels whose second is this many steps from the first, in two arrays.

    Examples
    --------
    >>> beside(np.arange(6).reshape(2, 3), 0, 1)[1].tolist()
    [[1, 2], [4, 5]]
    """
    height, width = image.shape
    first = image[: height - down, max(-right, 0) : width - max(right, 0)]
    return first, image[down:, max(right, 0) : width + min(right, 0)]


def grid(height: int, width: int, neighbours: int = 4) -> tuple[Graph, np.ndarray]:
    """The grid graph of an image, and the direction of each edge, a number in `DIRECTIONS`.

    Pixel (i, j) is node i · width + j. Edges go right and down, with 8 neighbours also along both diagonals. Cost
    O(height · width).

    Examples
    --------
    >>> graph, direction = grid(2, 3)
    >>> graph
    Graph(6 nodes, 7 edges)
    >>> graph.edges[direction == 1].tolist()                   # downwards
    [[0, 3], [1, 4], [2, 5]]
    """
    height = int(parameter(height, "height", axes=0, integer=True))
    width = int(parameter(width, "width", axes=0, integer=True))
    if neighbours not in (4, 8):
        raise ParameterError(f"neighbours is {neighbours!r}; expected 4 or 8.")
    number = np.arange(height * width).reshape(height, width)
    edges, direction = [], []
    for which, (down, right) in enumerate(list(DIRECTIONS.values())[: neighbours // 2]):
        first, second = beside(number, down, right)
        edges.append(np.stack([first.ravel(), second.ravel()], axis=1))
        direction.append(np.full(first.size, which))
    # Correct by construction: no need to check millions of edges for loops and duplicates.
    return Graph(range(height * width), np.concatenate(edges)), np.concatenate(direction)
