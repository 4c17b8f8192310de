"""Dots side by side: on a logarithmic axis a bar would begin at an arbitrary floor."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.types import Array

__all__ = ["dots"]

# The width that the series of one name share.
WIDTH = 0.6


def dots(
    axes: Any,
    names: Sequence[str],
    series: Mapping[str, Array | Sequence[float]],
    errors: Mapping[str, Array | Sequence[float]] | None = None,
) -> None:
    """A column of the picture for each name, with the dots of all series in it; numbers that have no logarithm are left
    out.
    """
    place = np.arange(len(names))
    for at, (label, values) in enumerate(series.items()):
        shift = WIDTH * ((at + 0.5) / len(series) - 0.5)
        shown = np.where(np.asarray(values, dtype=float) > 0, values, np.nan)
        axes.errorbar(place + shift, shown, None if errors is None else errors[label], fmt="o", ms=5, label=label)
    axes.set(yscale="log", xticks=place, xticklabels=names)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
