"""Default axes of plots."""

from functools import cache
from typing import Any, overload

from meanmap.core.extras import optional
from meanmap.core.types import Axes

__all__ = ["new_axes"]


@overload
def new_axes(width: float, height: float) -> Axes: ...
@overload
def new_axes(width: float, height: float, columns: int) -> Any: ...
def new_axes(width: float, height: float, columns: int = 1) -> Any:
    """Axes in a new figure of `width` × `height` inches, or an array of axes with more than one column.

    The figure belongs to pyplot, so that a notebook shows it below the cell and a script with `plt.show()`.
    """
    with optional("drawing"):
        from matplotlib import pyplot

    kind: Any = _figure_kind()
    return pyplot.subplots(1, columns, figsize=(width, height), layout="constrained", FigureClass=kind)[1]


@cache
def _figure_kind() -> Any:
    """The class of figures whose text is drawn literally: a column may be called $x^$, which is not a formula.

    The powers of ten along logarithmic axes are formulas.
    """
    with optional("drawing"):
        from matplotlib.figure import Figure
        from matplotlib.text import Text
        from matplotlib.ticker import LogFormatterMathtext

    class Picture(Figure):
        def draw(self, renderer: Any) -> None:
            axes = [axis for each in self.axes for axis in (each.xaxis, each.yaxis)]
            powers = [axis for axis in axes if isinstance(axis.get_major_formatter(), LogFormatterMathtext)]
            formulas = {label for axis in powers for label in axis.get_ticklabels(which="both")}
            for text in self.findobj(Text):
                text.set_parse_math(text in formulas)  # pyright: ignore[reportAttributeAccessIssue]
            super().draw(renderer)

    return Picture
