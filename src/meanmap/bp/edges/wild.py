"""Gross outliers in the samples of an edge, and pairs without these."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.domains import Real
from meanmap.core.tables.missing import length, take
from meanmap.core.tables.wild import without_wild_cells
from meanmap.graphs import Graph
from meanmap.kernels.base import Kernel

__all__ = ["read_as_numbers", "reads_numbers", "without_wild_pairs"]


def read_as_numbers(graph: Graph, kernels: Mapping[Any, Kernel], told: Mapping[Any, Any]) -> set[Hashable]:
    """The variables whose values are numbers if they look like it: no kernel reads them as something else."""
    named = {graph.names[graph.index(name)]: kernel for name, kernel in kernels.items()}
    return {name for name in graph.names if name not in told and reads_numbers(named.get(name))}


def reads_numbers(kernel: Kernel | None) -> bool:
    """Whether a kernel that was given, or the default of numbers, reads numbers as such."""
    return kernel is None or isinstance(kernel.domain, Real)


def without_wild_pairs(pair: tuple[Any, Any], where: str, numbers: Sequence[bool]) -> tuple[tuple[Any, Any], list[str]]:
    """A pair of samples without the rows in which one that may hold numbers has a wild cell, and notes."""
    ends = zip(pair, ("first", "second"), numbers, strict=True)
    found = [without_wild_cells(sample, f"the {end} of {where}") for sample, end, read in ends if read]
    wild = np.any([each for each, _ in found], axis=0) if found else np.zeros(length(pair[0]), dtype=bool)
    notes = [note for _, note in found if note]
    if not wild.any():
        return pair, notes
    kept = np.flatnonzero(~wild)
    return (take(pair[0], kept), take(pair[1], kept)), notes
