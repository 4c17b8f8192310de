"""Strata of a monitor: batches are compared with the reference within each stratum, for any mix of strata."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import ColumnError, InputError, KindError
from meanmap.core.meant import names_none
from meanmap.core.progress import track
from meanmap.core.tables.picked import names_of
from meanmap.core.tables.table import Table
from meanmap.core.texts import as_labels
from meanmap.core.types import Data
from meanmap.core.values import Value
from meanmap.features.base import Concatenated
from meanmap.stats.collections import fused
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.permutations import Permuted
from meanmap.stats.samples.scores import Scores
from meanmap.stats.samples.subsets import TIE, blocks_of, subset_sums, with_columns

__all__ = ["Strata", "within_strata"]


@dataclass(frozen=True, eq=False, repr=False)
class Strata(Value):
    """The columns that define strata, the strata of the reference, and those of the points of the pool.

    Attributes
    ----------
    columns, known : tuple of str
    codes : int array (n,)
        The stratum of each point of the pool, counted from 0.
    """

    columns: tuple[str, ...]
    known: tuple[str, ...]
    codes: np.ndarray

    @classmethod
    def of(cls, reference: Data, within: object) -> tuple[Any, "Strata"]:
        """A reference without these columns, and the strata of all its rows."""
        columns = tuple(names_of(within))
        if not columns:
            raise KindError(
                f"within is {within!r}; expected the name of a column of the reference, or a list of names."
            )
        if not Table.has_names(reference):
            raise KindError("within= names columns, but the reference has no column names: pass a DataFrame.")
        table = Table.of(reference, "reference")
        labels = _labels(table, columns, "reference")
        left = [name for name in table.names if name not in columns]
        if not left:
            raise ColumnError("the reference has no column left to watch: all of them are in within=.")
        known, codes = np.unique(labels, return_inverse=True)
        return table.select(left), cls(columns, tuple(known.tolist()), codes)

    def rows(self, index: np.ndarray) -> "Strata":
        """The strata of some of the rows."""
        return Strata(self.columns, self.known, self.codes[index])

    def read(self, batch: Data) -> tuple[np.ndarray, tuple[str, ...]]:
        """The strata of a batch, with those that the reference lacks numbered last, and notes."""
        labels = _labels(Table.of(batch, "batch", self.columns), self.columns, "batch")
        places = np.searchsorted(self.known, labels)
        found = np.minimum(places, len(self.known) - 1)
        new = np.asarray(self.known)[found] != labels
        codes = np.where(new, len(self.known), found)
        here = np.isin(codes, self.codes)
        if not here.any():
            raise InputError("no row of the batch is in a stratum of the reference: nothing can be compared.")
        told = f"{(~here).sum()} of {len(codes)} rows are in strata that the reference lacks: they are ignored."
        return codes, () if here.all() else (told,)

    def exchanged(
        self, codes: np.ndarray, n_draws: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Subsets of pool and batch together with as many rows of each stratum as the batch, (1 + B, b); strata; next
        pool.

        The first subset is the batch. The remaining pool is drawn in the same way.
        """
        both = np.concatenate([self.codes, codes])
        is_batch = np.arange(len(both)) >= len(self.codes)
        by_stratum = np.lexsort((~is_batch, both))  # with the batch first in each stratum
        taken = is_batch[by_stratum]
        draws = [
            np.lexsort((generator.random(len(both)), both))[taken] for _ in track(range(n_draws), "exchanges in strata")
        ]
        left = np.sort(np.lexsort((generator.random(len(both)), both))[~taken])
        return np.stack([by_stratum[taken], *draws]), both, left


def _labels(table: Table, columns: tuple[str, ...], argument: str) -> np.ndarray:
    lacking = [name for name in columns if name not in table.names]
    if lacking:
        raise names_none("within", lacking[0], argument, table.names)
    words = [as_labels(np.asarray(table.columns[name]), argument).tolist() for name in columns]
    return np.array([json.dumps(row) for row in zip(*words, strict=True)])


def within_strata(
    features: Concatenated,
    both: np.ndarray,
    subsets: np.ndarray,
    codes: np.ndarray,
    generator: np.random.Generator,
    scores: Scores | None = None,
) -> Permuted:
    """The fused ‖Σ (φ − μ of its stratum)‖² of subsets, minus its mean over subsets.

    With `scores` of all points it is combined with the evidence of single columns and of relations between columns.
    """
    design = Exchange(codes, np.arange(len(codes)), np.ones(len(codes)))
    blocks = blocks_of(features, both)
    if scores is not None:
        blocks += [scores.products_of_rows(generator), scores.matrix, scores.each_pair]
    found, norms = [], []
    added = subset_sums(subsets, len(subsets), subsets.shape[1], [design.centred(block) for block in blocks])
    for sums in added if scores is None else added[:-2]:
        values = np.einsum("ij,ij->i", sums, sums)
        found.append(Permuted(values - values.mean(), TIE * float(values.mean())))
        norms.append(float(values.std()))
    kernels = slice(None) if scores is None else slice(-1)
    result = fused(found[kernels], norms[kernels], 1.0)[0]
    return result if scores is None else with_columns(result, found[-1], added[-2:], scores)
