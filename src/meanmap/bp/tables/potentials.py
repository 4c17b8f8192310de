"""Reading discrete models and evidence: tables of potentials, priors, seen states, likelihoods."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import array_of, check_finite
from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.core.held import holds_floats
from meanmap.core.language import a_type
from meanmap.core.meant import listed
from meanmap.core.types import Array
from meanmap.core.values import entries_of
from meanmap.graphs import Factors, Graph

__all__ = ["Model", "probabilities", "read_labelled", "read_likelihoods", "read_model", "with_likelihoods"]


@dataclass(frozen=True, eq=False)
class Model:
    """Matrices (T, L, L) from sender to receiver, padded with zeros to the most states L; the matrix of each directed
    edge; priors (n, L); the number of states of each node.
    """

    matrices: Any
    template: np.ndarray
    priors: Any
    states: np.ndarray


def read_model(graph: Graph, potentials: object, priors: object, door: Door) -> Model:
    """Potentials and priors as arrays."""
    edges = len(graph.edges)
    tables = _tables(graph, potentials, door)
    given = _priors(graph, priors, door)
    sizes = np.zeros(graph.size, dtype=np.int64)
    if isinstance(given, dict):
        for i, prior in given.items():
            sizes[i] = len(prior)
    else:
        sizes[:] = given.shape[1]
    states = _states(graph, tables, sizes)
    most = int(states.max())
    template = np.zeros(edges, dtype=np.int64) if len(tables) == 1 and edges > 1 else np.arange(edges)
    library = jnp if door.follows else np
    forward = library.stack([_padded(table, (most, most), library) for table in tables or [library.ones((1, 1))]])
    if not door.follows and edges > 1:  # edges with the same table share one matrix
        forward, which = np.unique(forward, axis=0, return_inverse=True)
        template = which.ravel()[template]
    if len(tables) == 1 and is_concrete(forward) and (np.asarray(forward[0]) == np.asarray(forward[0]).T).all():
        matrices, both = forward, np.concatenate([template, template])
    else:
        matrices = library.concatenate([forward, library.swapaxes(forward, 1, 2)])
        both = np.concatenate([template, template + len(forward)])
    own = (np.arange(most) < states[:, None]).astype(door.dtype)
    if not isinstance(given, dict):
        own = given
    elif given:
        own = library.stack([_padded(given[i], (most,), library) if i in given else own[i] for i in range(graph.size)])
    return Model(matrices.astype(door.dtype), both, library.asarray(own), states)


def _tables(graph: Graph, potentials: object, door: Door) -> list[Any]:
    """Read one table for all edges, or one for each, whose rows belong to the first end."""
    edges = len(graph.edges)
    if not isinstance(potentials, Mapping):
        array = array_of(potentials, "potentials")
        if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2]:
            raise ShapeError(
                f"potentials has shape {array.shape}; expected (k, k), ({edges}, k, k), or a mapping from edges to "
                "arrays."
            )
        if array.ndim == 3 and len(array) != edges:
            raise ShapeError(f"potentials has {len(array)} tables; expected one for each of {edges} edges.")
        _check_weights(array, "potentials")
        return [array.astype(door.dtype)] if array.ndim == 2 else list(array.astype(door.dtype))
    number = {frozenset(pair): (e, pair) for e, pair in enumerate(graph.named_edges)}
    tables: list[Any] = [None] * edges
    for pair, table in potentials.items():
        key = frozenset(pair) if isinstance(pair, tuple) else None
        if key not in number:
            raise InputError(f"potentials has the edge {pair!r}, which is not in the graph.")
        e, direction = number[key]
        if tables[e] is not None:
            raise InputError(f"potentials has the edge {pair!r} in both directions; expected each edge once.")
        array = array_of(table, f"potentials[{pair!r}]")
        if array.ndim != 2:
            raise ShapeError(f"potentials[{pair!r}] has shape {array.shape}; expected (states, states).")
        _check_weights(array, f"potentials[{pair!r}]")
        tables[e] = array.astype(door.dtype) if tuple(pair) == tuple(direction) else array.T.astype(door.dtype)
    missing = next((e for e, table in enumerate(tables) if table is None), None)
    if missing is not None:
        raise InputError(f"potentials has no table for the edge {graph.named_edges[missing]!r}.")
    return tables


def _priors(graph: Graph, priors: object, door: Door) -> Any:
    """Priors (n, k), or those of some nodes by number."""
    if priors is None:
        return {}
    if not isinstance(priors, Mapping):
        array = array_of(priors, "priors")
        if array.ndim != 2 or len(array) != graph.size:
            raise ShapeError(f"priors has shape {array.shape}; expected ({graph.size}, k), one row for each variable.")
        _check_weights(array, "priors")
        return array.astype(door.dtype)
    read = {}
    for name, prior in priors.items():
        array = array_of(prior, f"priors[{name!r}]")
        if array.ndim != 1:
            raise ShapeError(f"priors[{name!r}] has shape {array.shape}; expected (states,).")
        _check_weights(array, f"priors[{name!r}]")
        read[graph.index(name)] = array.astype(door.dtype)
    return read


def _states(graph: Graph, tables: list[Any], sizes: np.ndarray) -> np.ndarray:
    """The number of states of each node, on which its tables and its prior must agree."""
    states = np.zeros(graph.size, dtype=np.int64)
    if len(tables) == 1 and len(graph.edges) > 1:
        states[:] = tables[0].shape[0]
    for e, (a, b) in enumerate(graph.edges.tolist()):
        table = tables[0] if len(tables) == 1 else tables[e]
        for node, size in ((a, table.shape[0]), (b, table.shape[1])):
            if states[node] not in (0, size):
                raise ShapeError(
                    f"the tables give {graph.names[node]!r} {states[node]} states and {size} states; expected one "
                    "number."
                )
            states[node] = size
    for node in np.flatnonzero(sizes).tolist():
        size = sizes[node]
        if states[node] not in (0, size):
            raise ShapeError(f"the prior of {graph.names[node]!r} has {size} states; its tables have {states[node]}.")
        states[node] = size
    if tables and (states == 0).any():
        states[states == 0] = tables[0].shape[0]
    if (states == 0).any():
        raise InputError(
            f"the number of states of {graph.names[int(np.argmin(states))]!r} is unknown: give it a prior."
        )
    return states


def read_likelihoods(
    graph: Graph, states: np.ndarray, evidence: Mapping[Any, Any], door: Door
) -> tuple[dict[int, Any], bool]:
    """Likelihoods (B or 1, k) of observed nodes, and whether any came for several queries."""
    read, sizes = {}, {}
    for name, value in evidence.items():
        node = graph.index(name)
        where, k = f"evidence[{name!r}]", int(states[node])
        expected = (
            f"expected a state from 0 to {k - 1}, likelihoods ({k},), or for B queries (B,) states or (B, {k}) "
            "likelihoods."
        )
        if isinstance(value, str | Mapping) or callable(value):
            raise KindError(f"{where} is {a_type(value)}; {expected}")
        array = array_of(value, where)
        if jnp.issubdtype(array.dtype, jnp.integer):
            read[node] = _seen(array, k, where, door)
            batched = array.ndim == 1
        else:
            if array.ndim == 0:
                raise KindError(f"{where} is {value!r}, {a_type(value)}; {expected}")
            if array.ndim not in (1, 2) or array.shape[-1] != k:
                raise ShapeError(f"{where} has shape {array.shape}; {expected}")
            _check_weights(array, where)
            read[node] = (jnp if door.follows else np).atleast_2d(array.astype(door.dtype))
            batched = array.ndim == 2
        sizes[name] = len(read[node]) if batched else 0
    lengths = {size for size in sizes.values() if size}
    if len(lengths) > 1:
        raise ShapeError(f"evidence comes for different numbers of queries: { {n: s for n, s in sizes.items() if s} }.")
    return read, bool(lengths)


def read_labelled(
    graph: Graph, factors: Factors, evidence: Mapping[Any, Any], door: Door
) -> tuple[dict[int, Any], bool]:
    """Evidence on variables whose states may have labels; `graph` has their names."""
    known = {name: _numbers(factors.labels.get(name), name, value) for name, value in evidence.items()}
    return read_likelihoods(graph, factors.cardinalities, known, door)


def _numbers(labels: tuple | None, name: Hashable, value: Any) -> Any:
    """States by number, and likelihoods in their order; labels are looked up where the variable has them."""
    if labels is None or isinstance(value, jax.Array) or (isinstance(value, np.ndarray) and holds_floats(value)):
        return value
    shown = ", ".join(map(repr, labels))
    entries = entries_of(value)
    if entries is not None and (isinstance(value, Mapping) or set(entries) == set(labels)):
        if set(entries) != set(labels):
            raise InputError(f"evidence[{name!r}] has likelihoods of {listed(entries)}; expected those of {shown}.")
        return np.array([float(entries[label]) for label in labels])
    if isinstance(value, str) or not np.ndim(value):
        if not callable(value) and value in labels:
            return labels.index(value)
        given = a_type(value) if callable(value) else repr(value)
        raise InputError(
            f"evidence[{name!r}] is {given}; expected one of {shown}, or a likelihood for each of these: an array in "
            "this order, or a mapping."
        )
    known = all(each in labels for each in value)
    return np.array([labels.index(each) for each in value]) if known else value


def with_likelihoods(priors: object, likelihoods: dict[int, Any], door: Door) -> Any:
    """Priors (n, L) times the likelihoods of some nodes, (n, B, L)."""
    library: Any = jnp if door.follows else np
    own = library.asarray(priors, dtype=door.dtype)[:, None, :]
    size = max((len(value) for value in likelihoods.values()), default=1)
    most = own.shape[2]
    own = library.broadcast_to(own, (len(own), size, most))
    own = own if door.follows else own.copy()
    for i, value in likelihoods.items():
        missing = most - value.shape[1]
        wide = library.pad(value, ((0, 0), (0, missing))) if missing else value
        if door.follows:
            own = own.at[i].multiply(wide)
        else:
            own[i] *= wide
    return own


def probabilities(beliefs: Any, graph: Graph) -> Any:
    """Beliefs (n, B, L) that sum to one; evidence that cannot be is refused."""
    total = beliefs.sum(axis=-1, keepdims=True)
    if is_concrete(total):
        impossible = np.argwhere(~(np.asarray(total[..., 0]) > 0))
        if len(impossible):
            node, query = impossible[0]
            raise InputError(
                f"the evidence contradicts itself: no state of {graph.names[node]!r} is possible"
                + (f" in query {query}." if beliefs.shape[1] > 1 else ".")
            )
    return beliefs / total


def _seen(array: Array, k: int, where: str, door: Door) -> Any:
    if array.ndim > 1:
        raise ShapeError(f"{where} has shape {array.shape}; expected a state, or (B,) states for B queries.")
    if is_concrete(array) and ((np.asarray(array) < 0) | (np.asarray(array) >= k)).any():
        raise InputError(
            f"{where} is {np.asarray(array).tolist()}; expected states from 0 to {k - 1}, or likelihoods as floats."
        )
    library = jnp if door.follows else np
    return (library.atleast_1d(library.asarray(array))[:, None] == np.arange(k)).astype(door.dtype)


def _check_weights(array: Array, where: str) -> None:
    """Refuse values that are negative or not finite, and all zero."""
    check_finite(array, where)
    if not is_concrete(array):
        return
    values = np.asarray(array)
    if (values < 0).any():
        raise InputError(f"{where} holds the negative value {values.min():.3g}; expected weights of at least 0.")
    if values.size == 0 or not (values > 0).any():
        raise InputError(f"{where} is zero everywhere: nothing would be possible.")


def _padded(array: Array, shape: tuple[int, ...], library: ModuleType) -> Any:
    return library.pad(
        library.asarray(array), [(0, size - have) for size, have in zip(shape, array.shape, strict=True)]
    )
