"""Potentials of maximum likelihood, by iterative proportional fitting with exact or loopy inference inside.

The log likelihood of pairs has the gradient P̂_st − p_st in log ψ_st, summed over the edges that share the potential.
Steps log ψ ← log ψ + η (log P̂ − log p) go uphill in it; with η = 1, one edge at a time, they are iterative proportional
fitting (Deming & Stephan 1940), which Song et al. (2011, appendix 2) combine with belief propagation.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.operators import EdgeMatrices
from meanmap.bp.engine.propagate import Engine
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.graphs import Flooding, Graph

__all__ = ["fit_potentials"]

# Joint tables up to this size are enumerated.
MOST_STATES = 2**18
MOST_STEPS = 500
# All potentials change at once, and each node has several: full steps overshoot.
STEP = 0.5
TOLERANCE = 1e-5
SWEEPS = 200


def fit_potentials(
    graph: Graph, template: np.ndarray, states: np.ndarray, own: np.ndarray, targets: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, Report]:
    """Potentials (T, L, L) whose model has the pair probabilities `targets`, on average over the edges of each.

    Parameters
    ----------
    graph : Graph
        Exact on forests and where all states can be enumerated; else the marginals are those of loopy sum-product.
    template : array (2 |E|,)
        The potential of each directed edge, rows for its sender; that of the other direction is its transpose.
    states, own : array (n,), array (n, L)
        Numbers of states, and factors of the nodes, which stay as they are.
    targets, start : array (T, L, L)
        Zero where there are no states.
    """
    edges = len(graph.edges)
    counts = np.bincount(template, minlength=len(targets)).astype(float)
    enumerable = np.log(states).sum() <= np.log(MOST_STATES)
    engine = Engine(graph, template, None if graph.is_forest else Flooding(SWEEPS))
    matrices, trace = start.copy(), []
    for _ in track(range(MOST_STEPS), "fitting potentials"):
        if enumerable:
            pairs = enumerated(graph, states, own, matrices[template[:edges]])
        else:
            pairs = propagated(engine, own, matrices)
        model = np.zeros_like(targets)
        np.add.at(model, template[:edges], pairs)
        np.add.at(model, template[edges:], pairs.transpose(0, 2, 1))
        model /= np.maximum(counts, 1)[:, None, None]
        trace.append(float(np.abs(model - targets).max()))
        if not trace[-1] > TOLERANCE:
            break
        tiny = np.finfo(float).tiny
        matrices = matrices * (np.maximum(targets, tiny) / np.maximum(model, tiny)) ** STEP
        matrices /= matrices.max(axis=(1, 2), keepdims=True)
    converged = bool(trace[-1] <= TOLERANCE)
    way = "two passes" if graph.is_forest else "loopy sum-product"
    status = "pair probabilities met" if converged else "pair probabilities not met"
    notes = (f"marginals by {'enumeration' if enumerable else way}.",)
    return matrices, Report(status, converged, len(trace), trace, notes=notes)


def enumerated(graph: Graph, states: np.ndarray, own: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """The exact pair probabilities (|E|, L, L), from the table of all joint states."""
    n = graph.size
    joint = np.ones(states)
    for node in range(n):
        joint = joint * own[node, : states[node]].reshape([-1 if i == node else 1 for i in range(n)])
    for (s, t), table in zip(graph.edges.tolist(), tables, strict=True):
        table = table[: states[s], : states[t]]
        table, (first, second) = (table, (s, t)) if s < t else (table.T, (t, s))
        joint = joint * table.reshape([states[i] if i in (first, second) else 1 for i in range(n)])
    joint = joint / joint.sum()
    found = np.zeros_like(tables)
    for pair, (s, t) in zip(found, graph.edges.tolist(), strict=True):
        table = joint.sum(axis=tuple(i for i in range(n) if i not in (s, t)))
        pair[: states[s], : states[t]] = table if s < t else table.T
    return found


def propagated(engine: Engine, own: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """The pair beliefs (|E|, L, L) of sum-product."""
    factors = jnp.asarray(own)[:, None]
    messages = engine.run(EdgeMatrices(jnp.asarray(matrices)), factors, tolerance=TOLERANCE / 100).messages
    edges = len(engine.graph.edges)
    products = np.asarray(_products(engine.layout, messages, factors))[:, 0]
    template = np.asarray(engine.layout.template)[np.asarray(engine.layout.row)]
    # The row of a directed edge s → t holds what t knows without s, and the operator from t to s.
    pairs = products[edges:, :, None] * matrices[template[edges:]] * products[:edges, None, :]
    return pairs / pairs.sum(axis=(1, 2), keepdims=True)


@jax.jit
def _products(layout: Layout, messages: Any, own: jax.Array) -> jax.Array:
    placed = layout.silence(own).at[layout.row].set(messages)
    return layout.pre_messages(placed, own)[layout.row]
