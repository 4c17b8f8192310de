"""What is compared in a column of samples: the means of each pair, or the shares of labels and of a frequent number."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.order import holds_dates
from meanmap.core.tables.written import MANY
from meanmap.core.values import says_yes
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.samples.cells import Cells
from meanmap.stats.samples.deviations import LEAST_UNITS
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["Comparison", "Pair", "comparisons_of", "pairs_of"]

# Of a column this many labels are compared: so many that a sample lacks, and the most frequent ones in all samples.
MOST_COMPARED, MOST_LACKED = 20, 3


class Pair(NamedTuple):
    """Two samples by name, and the cells of their design, if there is one."""

    names: tuple[str, str]
    cells: Cells | None = None


def pairs_of(sizes: Mapping[str, int], design: Exchange | None) -> list[Pair]:
    """Each pair of samples whose means can be compared."""
    pairs = list(combinations(sizes, 2))
    if design is None:
        return [Pair(pair) for pair in pairs]
    if type(design) is not Exchange:  # the units of a user's own design need not be independent
        return []
    owner = np.repeat(list(sizes), list(sizes.values()))
    parts = ((pair, design.among(np.isin(owner, pair))) for pair in pairs)
    found = [Pair(pair, _known((sizes[pair[0]], sizes[pair[1]]), part)) for pair, part in parts]
    return [each for each in found if each.cells is not None]


def _known(sizes: tuple[int, int], design: Exchange) -> Cells | None:
    """The cells, if there are enough independent rows, clusters or pairs for the variance of a mean; else None."""
    found = Cells.where_known(sizes, design)
    compares = found is not None and found.contrasts.any() and min(found.effective(sizes)) >= LEAST_POINTS
    return found if compares else None


class Comparison(NamedTuple):
    """A column of two samples; the label or number whose shares are compared; the number that was left out; whether
    standard deviations are compared; whether rows are all in which the column is observed, not only complete ones;
    and whether values are missing where the column is true.
    """

    name: str
    label: Any
    names: tuple[str, str]
    first: np.ndarray
    second: np.ndarray
    without: float | None = None
    cells: Cells | None = None
    spreads: bool = False
    own: bool = False
    gaps: bool = False

    @property
    def unadjusted(self) -> tuple[float, float] | None:
        """The means or shares of all rows with equal weights, if rows have different weights in the comparison."""
        if self.cells is None or self.cells.design.is_alike or family_of(self.first) == "time":
            return None
        first, second = (each if self.label is None else each == self.label for each in (self.first, self.second))
        return float(np.mean(first, dtype=float)), float(np.mean(second, dtype=float))

    @property
    def is_of_one_number(self) -> bool:
        """Whether shares of rows with one number of several are compared."""
        return self.label is not None and family_of(self.first) == "number" and self.label != 1.0

    @property
    def has_few_units(self) -> bool:
        """Whether the design leaves too few independent rows, clusters or pairs to compare standard deviations."""
        sizes = len(self.first), len(self.second)
        return self.cells is not None and min(self.cells.effective(sizes)) < LEAST_UNITS

    @property
    def rows(self) -> tuple[int, int] | None:
        """The numbers of rows of both samples, if these are not the complete rows."""
        return (len(self.first), len(self.second)) if self.own else None


def comparisons_of(name: str, samples: Mapping[str, np.ndarray], pairs: Sequence[Pair]) -> list[Comparison]:
    """The comparisons of pairs of samples in one column; none if all rows have one value."""
    parts = list(samples.values())
    family = family_of(parts[0])
    if any(each.ndim > 1 or family_of(each) != family for each in parts) or family == "duration":
        return []
    both = np.concatenate(parts)
    if (both == both[:1]).all():
        return []

    def of(pair: Pair, label: Any = None) -> Comparison:
        first, second = (samples[each] for each in pair.names)
        return Comparison(name, label, pair.names, first, second, cells=pair.cells)

    if family in ("label", "boolean"):
        return [of(pair, label) for label in _labels(parts) for pair in pairs]
    if family == "number" and np.isin(both, (0, 1)).all():  # their means are shares
        return [of(pair, 1.0) for pair in pairs]
    means = [of(pair) for pair in pairs]
    value = _most_have(parts) if family == "number" else None
    if value is None:
        return [each._replace(spreads=family == "number") for each in means]
    rest = (_without(each, value) for each in means)
    return [*means, *(of(pair, value) for pair in pairs), *(each for each in rest if each is not None)]


def _without(means: Comparison, value: float) -> Comparison | None:
    """The comparison of the rows that do not have this number, if there are enough."""
    x, y = (column[column != value] for column in (means.first, means.second))
    found = means._replace(first=x, second=y, without=value)
    if min(len(x), len(y)) < 2:
        return None
    if means.cells is None:
        return found
    some = np.concatenate([means.first, means.second]) != value
    cells = _known((len(x), len(y)), means.cells.design.among(some))
    return None if cells is None else found._replace(cells=cells)


def _most_have(parts: Sequence[np.ndarray]) -> float | None:
    """The number that more than half of all rows have, if there are several others."""
    both = np.concatenate(parts)
    middle = np.partition(both, len(both) // 2)[len(both) // 2]
    others = both[both != middle]
    several = 0 < len(others) < len(both) / 2 and others.min() < others.max()
    return float(middle) if several else None


def _labels(parts: Sequence[np.ndarray]) -> list[Any]:
    """The labels to compare: of two labels the one that means yes, or else the rarer one; of more the most frequent
    ones in all samples, and those that a sample lacks.
    """
    labels, codes = np.unique(np.concatenate(parts), return_inverse=True)
    if len(labels) == 2:
        said = [label for label in labels if says_yes(label)]
        return said if len(said) == 1 else [labels[int(2 * codes.sum() <= len(codes))]]
    if 2 * len(labels) > len(codes) or (len(labels) >= MANY and holds_dates(labels)):  # texts, names of rows, dates
        return []
    ends = np.cumsum([len(part) for part in parts])[:-1]
    counts = np.stack([np.bincount(part, minlength=len(labels)) for part in np.split(codes, ends)])
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    lacked = [at for at in order if not counts[:, at].all()][:MOST_LACKED]
    return [labels[at] for at in list(dict.fromkeys([*lacked, *order]))[:MOST_COMPARED]]
