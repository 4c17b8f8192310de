"""How strongly any two variables of a table depend on each other, by kernels, for all pairs at once."""

from dataclasses import dataclass, replace

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, EmptyError
from meanmap.core.settings import one_of
from meanmap.core.tables.missing import read_present
from meanmap.core.tables.schema import Schema
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.learning.default import kernel_for
from meanmap.stats.independence.moments import features_and_values

__all__ = ["MEASURES", "Dependence"]

MEASURES = ("information", "hsic", "normalised", "ranks")
LEAST_PAIRS = 10
# What is added to each covariance of n rows, in traces, is this times (100 / n)^⅓: the fastest rate that keeps
# canonical correlations consistent (Fukumizu, Bach & Gretton 2007). Chosen among .003, .01, .03 and .1 on trees with
# nonlinear edges.
SHIFT_AT_100 = 0.03


@dataclass(frozen=True)
class Dependence:
    """Features of every column.

    Attributes
    ----------
    features : array (n, d, r)
        Centred, padded with zeros; zero where a value is missing.
    there : bool array (n, d)
        Which values are present.
    measure : str
        What `values` are.
    """

    features: np.ndarray
    there: np.ndarray
    measure: str

    @classmethod
    def of(
        cls, data: Data, measure: str, generator: np.random.Generator, schema: Schema | None = None
    ) -> tuple[tuple[str, ...], "Dependence"]:
        """The names of the columns, and their features: RBF at the median distance, Delta for labels."""
        one_of(measure, "measure", MEASURES)
        table, there = read_present(data)
        if schema is not None:
            table = Table({name: schema.read_column(name, column, "table") for name, column in table.columns.items()})
        _check_pairs(there, table.names)
        with Door() as door:
            found = [_features(table, name, measure == "ranks", generator, door) for name in table.names]
        features = np.zeros((*there.shape, max(own.shape[1] for own in found)))
        for i, own in enumerate(found):
            features[there[:, i], i, : own.shape[1]] = own
        return table.names, cls(features, there, measure)

    def values(self) -> np.ndarray:
        """The measure for each pair of columns over the rows that both have, (d, d).

        With M the cross-covariance of the features: HSIC ‖M‖², or divided by the norms of both covariances; information
        −½ log det(I − M̃ᵀ M̃) with M̃ = (Cₓ + κI)^(−½) M (C_y + κI)^(−½). Cost O(n (d r)²) in one matrix product.
        """
        n, d, r = self.features.shape
        flat, weights = self.features.reshape(n, d * r), self.there.astype(float)
        counts = weights.T @ weights
        crossed = (flat.T @ flat).reshape(d, r, d, r).transpose(0, 2, 1, 3) / counts[..., None, None]
        # The mean of each column's features over the rows that it shares with another column.
        means = (flat.T @ weights).reshape(d, r, d).transpose(0, 2, 1) / counts[..., None]
        crossed -= means[..., None] * means.transpose(1, 0, 2)[:, :, None, :]
        if self.measure == "information":
            return _information(crossed, SHIFT_AT_100 * (100 / counts.diagonal()) ** (1 / 3))
        values = np.sum(crossed**2, axis=(2, 3))
        norms = 1.0 if self.measure == "hsic" else np.sqrt(values.diagonal())
        return values / np.outer(norms, norms)

    def rows(self, index: np.ndarray) -> "Dependence":
        """Dependence measured on some of the rows."""
        return replace(self, features=self.features[index], there=self.there[index])

    def order(self, generator: np.random.Generator) -> np.ndarray:
        """A random permutation of the rows for every column, (n, d)."""
        return np.stack([generator.permutation(len(self.there)) for _ in range(self.there.shape[1])], axis=1)

    def shuffled(self, order: np.ndarray) -> "Dependence":
        """Every column permuted separately, which makes all of them independent."""
        across = np.arange(self.there.shape[1])
        return replace(self, features=self.features[order, across], there=self.there[order, across])


def _information(crossed: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """The kernel generalised variance of each pair, from all cross-covariances (d, d, r, r) and κ of each column."""
    own = crossed[np.arange(len(crossed)), np.arange(len(crossed))]
    values, vectors = np.linalg.eigh(own)
    values = np.maximum(values, 0)
    shifted = values + (shifts * values.sum(axis=1))[:, None]
    root = vectors / np.sqrt(shifted)[:, None, :] @ vectors.transpose(0, 2, 1)
    whitened = root[:, None] @ crossed @ root[None]
    squares = np.linalg.eigvalsh(whitened.transpose(0, 1, 3, 2) @ whitened)
    # Below one, except where the rows of a pair differ from those of its columns.
    return -0.5 * np.sum(np.log1p(-np.clip(squares, 0, 1 - 1e-9)), axis=-1)


def _features(table: Table, name: str, ranks: bool, generator: np.random.Generator, door: Door) -> np.ndarray:
    """Centred features of one column, on the rows where it is present."""
    column = np.asarray(table.columns[name])
    if (column == column[0]).all():
        raise ColumnError(f"column {name!r} is constant: nothing depends on it. Leave it out.")
    if ranks and table.is_real(name):
        from scipy.stats import rankdata

        column = rankdata(column, axis=0) / len(column)
    return features_and_values(kernel_for(column, argument=name), column, name, generator, door)[1]


def _check_pairs(there: np.ndarray, names: tuple[str, ...]) -> None:
    both = there.astype(int).T @ there.astype(int)
    a, b = np.unravel_index(both.argmin(), both.shape)
    if a == b and both[a, a] < LEAST_PAIRS:
        raise EmptyError(f"column {names[a]!r} has {both[a, a]} values; expected at least {LEAST_PAIRS}.")
    if both[a, b] < LEAST_PAIRS:
        raise EmptyError(
            f"columns {names[a]!r} and {names[b]!r} have {both[a, b]} rows without missing values; expected at least "
            f"{LEAST_PAIRS}."
        )
