"""Schedules that work on a few nodes at a time: sequential sweeps and splashes.

A step computes all messages from W nodes, given the latest ones, and stores them. Steps are the rows of an
integer array, so a whole sweep is one compiled loop.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.terms import Terms
from meanmap.core.anew import compiled_anew
from meanmap.core.progress import track
from meanmap.graphs import Graph
from meanmap.graphs.schedules import breadth_first, layers

__all__ = ["in_steps", "sequential", "splashes"]

# The overhead of a step, in units of one node: measured on chains and grids.
STEP_OVERHEAD = 16


def in_steps(groups: list[np.ndarray], nobody: int) -> np.ndarray:
    """Groups of independent nodes as rows (steps, W), padded with `nobody`; W minimises the cost of the loop."""
    sizes = np.array([len(group) for group in groups])
    widths = 2 ** np.arange(int(np.ceil(np.log2(max(sizes.max(initial=1), 1)))) + 1)
    width = int(min(widths, key=lambda w: int((-(-sizes // w)).sum()) * (w + STEP_OVERHEAD)))
    rows = [group[i : i + width] for group in groups for i in range(0, len(group), width)]
    steps = np.full((len(rows), width), nobody, dtype=np.int32)
    for row, nodes in zip(steps, rows, strict=True):
        row[: len(nodes)] = nodes
    return steps


@compiled_anew
@jax.jit
def _run(terms: Terms, steps: Any, messages: jax.Array, unheard: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Run steps: returns messages, the pending change of each node, and the largest residual of any message.

    `unheard` (n + 1,) is the total change in a node's incoming messages since it last sent (Gonzalez et al. 2009,
    section 4), plus the part of its last update that damping held back.
    """
    receivers = jnp.concatenate([terms.layout.receiver, jnp.full(1, terms.own.shape[0])])
    damping = terms.settings.damping

    def step(state: tuple[Any, ...], nodes: jax.Array) -> tuple[Any, None]:
        messages, unheard, largest = state
        out, new = terms.send_from(nodes, messages)
        change = jnp.max(jnp.abs(new - messages[out]), axis=(1, 2), initial=0.0)
        kept = damping * jnp.max(change.reshape(len(nodes), -1), axis=1, initial=0.0)
        # The row at `out` belongs to the receiver of the message.
        unheard = unheard.at[nodes].set(kept).at[receivers[out]].add((1 - damping) * change)
        messages = messages.at[out].set(terms.settings.damped(new, messages[out]))
        return (messages, unheard, jnp.maximum(largest, jnp.max(change, initial=0.0))), None

    start = messages, unheard, jnp.zeros((), terms.own.dtype)
    return jax.lax.scan(step, start, steps)[0]


def sequential(graph: Graph, terms: Terms, max_sweeps: int) -> tuple[jax.Array, int, list[float]]:
    """Forwards, backwards, forwards, ...: messages, sweeps and residuals."""
    forwards = in_steps(layers(graph), graph.size)
    messages, unheard = terms.silence(), jnp.zeros(graph.size + 1, terms.own.dtype)
    trace: list[float] = []
    for count in track(range(max_sweeps), "sweeps"):
        steps = forwards if count % 2 == 0 else forwards[::-1]
        messages, unheard, largest = _run(terms, steps, messages, unheard)
        trace.append(float(largest))
        if trace[-1] <= float(terms.settings.tolerance):
            break
    return messages, len(trace), trace


def splashes(graph: Graph, terms: Terms, max_sweeps: int, size: int) -> tuple[jax.Array, int, list[float]]:
    """Splashes around the node with the largest pending change: messages, splashes, and that change before each."""
    messages = terms.silence()
    # Initially larger than any possible change, so that each node sends at least once.
    unheard = jnp.full(graph.size + 1, 1e6, terms.own.dtype).at[-1].set(0).at[np.flatnonzero(graph.degrees == 0)].set(0)
    most = max_sweeps * -(-2 * graph.size // size)
    trace: list[float] = []
    for _ in track(range(most), "splashes"):
        waiting = np.asarray(unheard[:-1])
        if waiting.max(initial=0) <= float(terms.settings.tolerance):
            break
        trace.append(float(waiting.max()))
        order = breadth_first(graph, int(waiting.argmax()), size)
        nodes = np.concatenate([order[::-1], order[1:]])  # inwards, outwards
        steps = np.full((2 * size - 1, 1), graph.size, dtype=np.int32)
        steps[: len(nodes), 0] = nodes
        messages, unheard, _ = _run(terms, steps, messages, unheard)
    trace.append(float(np.asarray(unheard[:-1]).max(initial=0)))
    return messages, len(trace) - 1, trace
