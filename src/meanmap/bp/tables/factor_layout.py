"""The storage of messages of a factor graph: similar factors side by side, gathered by variables of equal degree."""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.algebra import PRODUCT
from meanmap.bp.engine.messages import Given, Settings, finish
from meanmap.bp.tables.factor_messages import Like, Sums, Tables
from meanmap.core.points import library_of
from meanmap.core.types import DType
from meanmap.graphs import Factors
from meanmap.graphs.slots import widths
from meanmap.graphs.sum_table import SumTable

__all__ = ["Alike", "FactorLayout", "alike", "read_off"]

# With more shapes of tables than this, numbers of states are rounded up to powers of two: each shape is compiled.
MOST_SHAPES = 8


class FactorLayout(eqx.Module):
    """Messages from factors to variables, (rows + 1, B, L): like factors after like factors, each with a row for every
    variable of its scope. The last row is uninformative.

    Attributes
    ----------
    nodes, incoming : tuples of arrays
        Variables (n,) with alike degrees, and the rows (n, D) that each receives.
    place : array (rows,)
        Where the answer to each row lies among the answers of all variables, one after the other.
    """

    nodes: tuple[Any, ...]
    incoming: tuple[Any, ...]
    place: Any

    # Products of messages are of wide numbers.
    narrow: ClassVar[bool] = False

    @classmethod
    def of(cls, size: int, variables: np.ndarray) -> "FactorLayout":
        """The layout of rows whose messages go to `variables`."""
        rows = len(variables)
        degrees = np.bincount(variables, minlength=size)
        width = widths(degrees)[degrees]
        order = np.argsort(variables, kind="stable")
        slot = np.empty(rows, dtype=np.int64)
        slot[order] = np.arange(rows) - (np.cumsum(degrees) - degrees)[variables[order]]
        first = np.zeros(size, dtype=np.int64)
        nodes, incoming, start = [], [], 0
        for wide in np.unique(width[width > 0]).tolist():
            some = np.flatnonzero(width == wide)
            first[some] = start + wide * np.arange(len(some))
            nodes.append(some)
            start += wide * len(some)
        place = first[variables] + slot
        heard = np.full(start, rows)
        heard[place] = np.arange(rows)
        for some in nodes:
            begin, wide = first[some[0]], width[some[0]]
            incoming.append(heard[begin : begin + wide * len(some)].reshape(-1, wide))
        return cls(tuple(nodes), tuple(incoming), place)

    def silence(self, own: jax.Array, given: Given | None = None) -> jax.Array:
        """Constant, uninformative messages."""
        del given
        return jnp.ones((len(self.place) + 1, *own.shape[1:]), own.dtype)

    def heard(self, messages: jax.Array, own: jax.Array) -> jax.Array:
        """Messages to factors: each variable's product without the message from that factor, (rows, B, L)."""
        parts = [jnp.zeros((0, *own.shape[1:]), own.dtype)] + [
            PRODUCT.all_but_one(own[nodes], messages[rows]).reshape(-1, *own.shape[1:])
            for nodes, rows in zip(self.nodes, self.incoming, strict=True)
        ]
        return jnp.concatenate(parts)[self.place]

    def send_all(
        self, messages: jax.Array, own: jax.Array, operators: tuple[Like, ...], given: Given | None, settings: Settings
    ) -> jax.Array:
        """Update all messages in parallel."""
        sent = [group.send(said)[0] for group, said in _by_group(operators, self.heard(messages, own))]
        new = jnp.concatenate([messages[:0], *(each.reshape(-1, *own.shape[1:]) for each in sent)])
        # The last row depends on no message: if it were passed on, derivatives by it would never converge.
        return jnp.concatenate([finish(new, given, settings), jnp.ones_like(messages[-1:])])


@jax.jit
def read_off(
    layout: FactorLayout, operators: tuple[Like, ...], own: jax.Array, messages: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Beliefs (n, B, L) and Bethe's log Z (B,) (Yedidia, Freeman & Weiss 2005, section V).

    log Z = Σ_variables log Z_i + Σ_factors log Z_c − Σ_rows log Z_ci, with Z_ci = Σ_x n_i(x) m_ci(x).
    """
    beliefs, log_scale = PRODUCT.alone(own)
    for nodes, rows in zip(layout.nodes, layout.incoming, strict=True):
        product, more = PRODUCT.whole(own[nodes], messages[rows])
        beliefs, log_scale = beliefs.at[nodes].set(product), log_scale.at[nodes].set(more)
    reduce = jnp.max if any(group.maximum for group in operators) else jnp.sum
    log_z = (jnp.log(reduce(beliefs, axis=-1)) + log_scale).sum(axis=0)
    heard = layout.heard(messages, own)
    log_z = log_z - jnp.log(reduce(heard * messages[:-1], axis=-1)).sum(axis=0)
    for group, said in _by_group(operators, heard):
        sent, scale = group.send(said)
        log_z = log_z + (jnp.log(reduce(sent[:, 0] * said[:, 0], axis=-1)) + scale[:, 0]).sum(axis=0)
    return beliefs, log_z


def alike(factors: Factors, numbers: list[int]) -> tuple[list["Alike"], np.ndarray]:
    """Some factors by the shape of their tables, and the variable of each row."""
    most = int(factors.cardinalities.max())
    shapes = {tuple(sorted(np.shape(factors.tables[n]))) for n in numbers}
    groups: dict[Any, tuple[Alike, list[int]]] = {}
    for number in numbers:
        scope, table = factors.scopes[number], factors.tables[number]
        if isinstance(table, SumTable):
            key: Any = len(scope), len(table.values), table.cyclic
            group, variables = groups.setdefault(key, (Alike(len(scope), [], table.cyclic), []))
            group.tables.append(table.values)
            variables.extend(scope)
            continue
        order = np.argsort(np.shape(table), kind="stable").tolist()
        sizes = [int(np.shape(table)[axis]) for axis in order]
        wide = [min(2 ** (k - 1).bit_length(), most) for k in sizes] if len(shapes) > MOST_SHAPES else sizes
        library: Any = library_of(table)
        group, variables = groups.setdefault(tuple(wide), (Alike(len(scope), [], None), []))
        group.tables.append(
            library.pad(library.transpose(table, order), [(0, w - k) for w, k in zip(wide, sizes, strict=True)])
        )
        variables.extend(scope[axis] for axis in order)
    rows = [variable for _, variables in groups.values() for variable in variables]
    return [group for group, _ in groups.values()], np.array(rows, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Alike:
    """Tables of one shape on this many variables; written out where `cyclic` is None, else of sums."""

    variables: int
    tables: list[Any]
    cyclic: bool | None

    def operator(self, dtype: DType, maximum: bool) -> Like:
        """The operator for the engine; factors with the same table share it."""
        if any(isinstance(table, jax.Array) for table in self.tables):
            values, which = jnp.stack(self.tables), np.arange(len(self.tables))
        else:
            values, which = np.unique(np.stack(self.tables), axis=0, return_inverse=True)
        values, which = jnp.asarray(values, dtype), jnp.asarray(np.ravel(which))
        if self.cyclic is None:
            return Tables(values, which, self.variables, maximum)
        return Sums(values, which, self.variables, maximum, self.cyclic)


def _by_group(operators: tuple[Like, ...], rows: jax.Array) -> list[tuple[Like, jax.Array]]:
    """The messages to each group, (F, d, B, L)."""
    found, start = [], 0
    for group in operators:
        count = len(group.which) * group.variables
        found.append((group, rows[start : start + count].reshape(-1, group.variables, *rows.shape[1:])))
        start += count
    return found
