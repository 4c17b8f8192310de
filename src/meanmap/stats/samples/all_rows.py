"""P-values of columns, each from all rows in which it is observed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.points import slices
from meanmap.core.tables.kinds import family_of
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.permutations import BLOCK
from meanmap.stats.samples.own_rows import Columns, OwnRows
from meanmap.stats.samples.scores import of_labels, of_numbers, ranks, soft_maximum, stepped_down
from meanmap.stats.samples.units import Forms

__all__ = ["AllRows"]


@dataclass(frozen=True)
class AllRows:
    """The columns of samples with all of their rows, one sample after another.

    Attributes
    ----------
    columns : mapping of name to array (N,)
        Numbers, NaN where they are missing, or codes of labels, −1 where they are missing.
    sizes : tuple of int
        The number of rows of each sample.
    """

    columns: Mapping[str, np.ndarray]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, own: OwnRows, samples: Mapping[str, Columns]) -> "AllRows | None":
        """From the observed values of samples with missing values, if each of their columns has one number, time or
        label per row; else None, and with a design.
        """
        if not own.gaps or own.design is not None:
            return None
        first, *_ = samples.values()
        sizes = tuple(len(gaps) for gaps in next(iter(own.gaps.values())).values())
        found = {}
        for name in first:
            parts = [own.columns[sample].get(name) for sample in samples]
            values = [part for part in parts if part is not None and part.ndim == 1]
            families = {*map(family_of, values), *(family_of(np.asarray(each[name])) for each in samples.values())}
            if len(values) < len(samples) or len(families) > 1:
                return None
            gaps = [*own.gaps[name].values()] if name in own.gaps else [np.zeros(n, bool) for n in sizes]
            found[name] = _placed(np.concatenate(values), ~np.concatenate(gaps), families.pop())
        return cls(found, sizes)

    def pvalues(self, n_permutations: int, generator: np.random.Generator) -> dict[str, float]:
        """A p-value for each column that varies, corrected for their number by the step-down procedure of Westfall &
        Young (1993), under permutations of all rows, each with its missing values.
        """
        groups = np.repeat(np.arange(len(self.sizes)), self.sizes)
        design = Exchange.of(len(groups)).bundled(groups, generator)
        labels = design.labels(design.of_units(groups), n_permutations, generator)
        found = {}
        for name, column in self.columns.items():
            is_label = np.issubdtype(column.dtype, np.integer)
            there = column >= 0 if is_label else ~np.isnan(column)
            scores, shares = of_labels(column[there]) if is_label else of_numbers(ranks(column[there]))
            if scores.shape[1]:
                forms = _forms_among(labels, design.units[there])
                found[name] = soft_maximum(scores, np.log(shares), forms)[0]
        values = stepped_down(np.stack([*found.values()], axis=1)) if found else np.zeros(0)
        return dict(zip(found, values.tolist(), strict=True))


def _placed(values: np.ndarray, there: np.ndarray, family: str) -> np.ndarray:
    """Values in the rows in which they are observed."""
    if family in ("label", "boolean"):
        found: Any = np.full(len(there), -1)
        found[there] = np.unique(values, return_inverse=True)[1]
        return found
    found = np.full(len(there), np.nan)
    found[there] = values.astype(np.int64) if family in ("time", "duration") else values
    return found


def _forms_among(labels: np.ndarray, units: np.ndarray) -> Forms:
    """As `grouped_forms`, for scores of some rows of units; how many of these are in a group differs between draws."""
    n, places = len(units), np.arange(len(units))

    def forms(scores: np.ndarray) -> np.ndarray:
        shape = labels.shape[1], n
        held = csr_array((np.ones(n), (units, places)), shape=shape) @ np.column_stack([scores, np.ones(n)])
        found = np.zeros((len(labels), scores.shape[1]))
        for g in range(int(labels.max()) + 1):
            for part in slices(len(labels), BLOCK):
                sums = (labels[part] == g).astype(float) @ held
                found[part] += sums[:, :-1] ** 2 / np.maximum(sums[:, -1:], 1.0)
        return found * ((n - 1) / n)

    return forms
