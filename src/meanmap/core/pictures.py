"""Where pictures are drawn when the caller names no axes."""

from typing import Any

__all__ = ["new_axes"]


def new_axes(width: float, height: float, columns: int = 1) -> Any:
    """Axes in a new figure of `width` × `height` inches, or an array of axes with more than one column.

    The figure belongs to pyplot, so that a notebook shows it below the cell and a script with `plt.show()`.
    """
    from matplotlib import pyplot

    return pyplot.subplots(1, columns, figsize=(width, height), layout="constrained")[1]
