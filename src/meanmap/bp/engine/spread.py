"""Nodes divided among devices: each stores the messages to its own nodes, and others are exchanged once per sweep."""

from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from meanmap.bp.engine.algebra import Algebra, Reweighted
from meanmap.bp.engine.flooding import flood
from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.messages import Given, Settings
from meanmap.bp.engine.operators import EdgeOperators
from meanmap.bp.engine.parts import AXIS, Parts
from meanmap.bp.engine.settled import bethe_parts, signs_counted
from meanmap.bp.engine.terms import Terms
from meanmap.core.anew import compiled_anew
from meanmap.core.errors import KindError
from meanmap.core.language import a_type
from meanmap.graphs import Graph

__all__ = ["Spread", "spread_flood"]


class Spread(eqx.Module):
    """A layout whose rows lie on several devices, with the same numbers of each kind of node on all of them.

    Messages are (devices · (rows + 1), B, L), and own factors (devices · nodes, B, L). A sweep is that of `Layout` on
    each device separately, except at its `border`: one permutation among devices for each distance between neighbours,
    of which strips of an image have two.

    Attributes
    ----------
    local : Layout
        The layouts of all devices, concatenated.
    first, real : array
        Whether a row belongs to an edge's first direction, and whether a node is not padding.
    algebra : Algebra
    mesh : Mesh
    """

    local: Layout
    first: Any
    real: Any
    algebra: Algebra
    mesh: Mesh = eqx.field(static=True)

    # Products of wide messages are compiled with fusion; compared with them, disabling it would save little.
    narrow = False

    def silence(self, own: jax.Array, given: Given | None = None) -> jax.Array:
        """Uninformative messages, except for those that are given."""
        return self._on_each(Layout.silence, (own, given))

    def send_all(
        self, messages: jax.Array, own: jax.Array, operators: EdgeOperators, given: Given | None, settings: Settings
    ) -> jax.Array:
        """Update all messages in parallel."""

        def sent(local: Layout, messages: Any, own: Any, given: Any, operators: Any, settings: Any) -> jax.Array:
            return local.send_all(messages, own, operators, given, settings)

        return self._on_each(sent, (messages, own, given), (operators, settings))

    def read(self, terms: Terms, messages: jax.Array, potentials: bool) -> tuple[jax.Array, Any, Any, Any]:
        """Beliefs, log Z, and the shares of low and of negative values, as `read_settled` does."""
        step = partial(_read, potentials=potentials)
        parts = messages, terms.own, terms.given, self.first, self.real
        by_node, whole = PartitionSpec(AXIS), PartitionSpec()
        return self._on_each(step, parts, (terms.operators, terms.settings), (by_node, whole, whole, whole))

    def _on_each(self, function: Any, divided: tuple, whole: tuple = (), out: object = None) -> Any:
        """Run a function of a device's layout, of divided arrays and of shared arrays on each device."""

        def step(local: Layout, algebra: Algebra, divided: tuple, whole: tuple) -> Any:
            return function(replace(local, algebra=algebra), *divided, *whole)

        by_node, every = PartitionSpec(AXIS), PartitionSpec()
        specs = by_node, every, by_node, every
        out = by_node if out is None else out
        mapped = jax.shard_map(step, mesh=self.mesh, in_specs=specs, out_specs=out, check_vma=False)
        return mapped(self.local, self.algebra, divided, whole)


def spread_flood(
    graph: Graph, terms: Terms, mesh: jax.sharding.Mesh, max_sweeps: int, potentials: bool
) -> tuple[np.ndarray, int, np.ndarray, tuple[Any, ...]]:
    """Messages of directed edges, sweeps, residuals and results, computed by the devices of a mesh."""
    if not isinstance(mesh, Mesh):
        raise KindError(f"mesh is {a_type(mesh)}; expected devices, such as jax.make_mesh((8,), ('nodes',)).")
    if isinstance(terms.layout.algebra, Reweighted):
        raise KindError("reweighted messages are for one device: leave mesh= out.")
    mesh = Mesh(mesh.devices.ravel(), (AXIS,))
    parts = Parts.of(graph, terms.layout, mesh.size)
    placed = _placed(parts, terms, mesh)
    messages, count, trace = flood(placed, max_sweeps)
    beliefs, log_partition, low, negative = _read_off(placed, messages, potentials)
    read = _whole(beliefs)[parts.node], log_partition, low, negative
    return _whole(messages)[parts.row], int(count), np.asarray(trace)[: int(count)], read


def _placed(parts: Parts, terms: Terms, mesh: Mesh) -> Terms:
    """Terms placed on their devices; each process supplies the parts of its own devices."""

    def put(leaf: object, spec: PartitionSpec = PartitionSpec(AXIS)) -> jax.Array:  # noqa: B008
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, NamedSharding(mesh, spec), host.__getitem__)

    algebra, given, own = terms.layout.algebra, terms.given, np.asarray(terms.own)
    filled = np.full((len(parts.real), *own.shape[1:]), algebra.neutral, own.dtype)
    filled[parts.node] = own
    if given is not None:
        known = np.zeros((len(parts.first), own.shape[1]), bool)
        values = np.ones((len(parts.first), *own.shape[1:]), own.dtype)
        known[parts.given], values[parts.given] = np.asarray(given.known), np.asarray(given.values)
        given = Given(put(known), put(values))
    local = jax.tree.map(put, parts.layout)
    spread = Spread(local, put(parts.first), put(parts.real), algebra, mesh)
    operators = jax.tree.map(partial(put, spec=PartitionSpec()), terms.operators)
    return Terms(spread, operators, put(filled), given, terms.settings)


@compiled_anew
@eqx.filter_jit
def _read_off(terms: Terms, messages: jax.Array, potentials: bool) -> tuple[jax.Array, Any, Any, Any]:
    return terms.layout.read(terms, messages, potentials)


def _read(
    local: Layout,
    messages: jax.Array,
    own: jax.Array,
    given: Given | None,
    first: jax.Array,
    real: jax.Array,
    operators: EdgeOperators,
    settings: Settings,
    potentials: bool,
) -> tuple[jax.Array, Any, Any, Any]:
    """The results of `settled.read_settled`, summed over all devices."""
    beliefs, log_scale = local.beliefs(messages, own)
    none = jnp.zeros(())
    if not local.algebra.multiplied:
        return beliefs, None, none, none
    products = local.pre_messages(messages, own)
    raw = local.arrived(operators.send(products, local.template, local.grouping))
    there = ~local.empty
    if not potentials:
        counted = there[:, None, None] & (own[local.receiver] > 0)  # without padding
        if given is not None:
            counted &= ~given.known[..., None]
        sums = jax.lax.psum(jnp.stack(signs_counted(raw, counted, settings.floor)), AXIS)
        return beliefs, None, *(sums[:2] / jnp.maximum(sums[2], 1))

    def total(logs: jax.Array, which: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(which[:, None], logs, 0.0), axis=0)

    nodes, both, one = bethe_parts(operators, products, raw, messages[:-1], beliefs)
    whole = total(nodes + log_scale, real) + total(both, first) - total(one, there)
    return beliefs, jax.lax.psum(whole, AXIS), none, none


def _whole(array: jax.Array) -> np.ndarray:
    """The whole array, in every process."""
    if array.is_fully_addressable:
        return np.asarray(array)
    from jax.experimental.multihost_utils import process_allgather

    return np.asarray(process_allgather(array, tiled=True))
