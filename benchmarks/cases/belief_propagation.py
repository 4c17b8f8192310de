"""Belief propagation in discrete networks: all marginals of a tree, and sweeps over a grid given as any graph."""

from typing import Any

import jax.numpy as jnp
import networkx
import numpy as np

from benchmarks.harness import Case
from benchmarks.peers import PGMAX, PGMPY
from meanmap.bp import DiscreteGraph
from meanmap.graphs import Flooding

TREE_STATES, GRID_STATES, SWEEPS = 10, 30, 10


def tree(n: int) -> dict[str, Any]:
    """A binary Bayesian tree of n variables, every fourth of its second half seen."""
    rng = np.random.default_rng(0)
    parent = (np.arange(n) - 1) // 2
    tables = rng.dirichlet(np.ones(TREE_STATES), size=(n, TREE_STATES))
    evidence = {i: int(rng.integers(TREE_STATES)) for i in range(n // 2, n, 4)}
    edges = {(int(parent[i]), i): tables[i] for i in range(1, n)}
    return {
        "network": DiscreteGraph(list(edges), edges, {0: tables[0, 0]}),
        "tables": tables,
        "evidence": evidence,
        "targets": [i for i in range(n) if i not in evidence],
        "pgmpy": PGMPY.start(parent=parent, tables=tables) if PGMPY.there else None,
    }


def tree_ours(data: dict[str, Any]) -> np.ndarray:
    """All marginals given evidence."""
    beliefs = data["network"].query(data["evidence"], targets=data["targets"])
    return np.array([beliefs[i] for i in data["targets"]])


def tree_by_hand(data: dict[str, Any]) -> np.ndarray:
    """The same in plain NumPy, message after message, knowing that the parent of i is (i − 1) // 2."""
    tables, n = data["tables"], len(data["tables"])
    own = np.ones((n, TREE_STATES))
    own[0] = tables[0, 0]
    for i, state in data["evidence"].items():
        own[i] *= np.arange(TREE_STATES) == state
    up, down = np.ones_like(own), np.ones_like(own)
    inside = own.copy()
    for i in range(n - 1, 0, -1):
        up[i] = tables[i] @ inside[i]
        up[i] /= up[i].sum()
        inside[(i - 1) // 2] *= up[i]
    for i in range(1, n):
        above, sibling = (i - 1) // 2, i + 1 if i % 2 else i - 1
        rest = own[above] * down[above] * (up[sibling] if sibling < n else 1)
        down[i] = rest @ tables[i]
        down[i] /= down[i].sum()
    beliefs = (inside * down)[data["targets"]]
    return beliefs / beliefs.sum(axis=1, keepdims=True)


def tree_pgmpy(data: dict[str, Any]) -> np.ndarray:
    """The same by pgmpy's message passing."""
    return data["pgmpy"].ask(evidence=data["evidence"], targets=data["targets"])


def root_ours(data: dict[str, Any]) -> np.ndarray:
    """The marginal of the root only."""
    return data["network"].query(data["evidence"], targets=[0])[0]


def root_pgmpy(data: dict[str, Any]) -> np.ndarray:
    """The same by pgmpy's message passing."""
    return data["pgmpy"].ask(evidence=data["evidence"], targets=[0])[0]


def grid(n: int) -> dict[str, Any]:
    """A square grid of about n nodes as a list of edges, one smoothing table for all of them, float32."""
    side = round(np.sqrt(n))
    edges = np.array(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(side, side)).edges)
    states = np.arange(GRID_STATES)
    table = np.exp(-0.3 * np.minimum(abs(states[:, None] - states), 5)).astype(np.float32)
    priors = np.random.default_rng(0).random((side**2, GRID_STATES)).astype(np.float32)
    return {
        "edges": edges,
        "table": jnp.asarray(table),
        "priors": jnp.asarray(priors),
        "network": DiscreteGraph(edges, jnp.asarray(table), jnp.asarray(priors)),
        "pgmax": PGMAX.start(edges=edges, table=np.log(table), priors=np.log(priors)) if PGMAX.there else None,
    }


def grid_ours(data: dict[str, Any]) -> np.ndarray:
    """Ten sweeps; a few of the marginals."""
    return _some(data["network"].query(schedule=Flooding(SWEEPS), tolerance=0.0), len(data["priors"]))


def set_up_ours(data: dict[str, Any]) -> np.ndarray:
    """From a list of edges to the marginals after one sweep."""
    network = DiscreteGraph(data["edges"], data["table"], data["priors"])
    return _some(network.query(schedule=Flooding(1), tolerance=0.0), len(data["priors"]))


def _some(beliefs: Any, n: int) -> np.ndarray:
    return np.array([beliefs[i] for i in range(0, n, -(-n // 10))])


def grid_by_hand(data: dict[str, Any]) -> np.ndarray:
    """The same in NumPy that knows the grid."""
    table, n = np.asarray(data["table"]), len(data["priors"])
    side = round(np.sqrt(n))
    return a_few(shifted_pictures(np.asarray(data["priors"]).reshape(side, side, -1), table, SWEEPS).reshape(n, -1))


def a_few(beliefs: np.ndarray) -> np.ndarray:
    """Ten rows or so, spread evenly, that sum to one."""
    few = beliefs[:: -(-len(beliefs) // 10)]
    return few / few.sum(axis=1, keepdims=True)


def shifted_pictures(
    own: np.ndarray, operator: np.ndarray, sweeps: int, damping: float = 0.0, floor: float | None = None
) -> np.ndarray:
    """Beliefs (h, w, L) after some sweeps over a grid, in NumPy: a message from each side is a shifted picture."""
    # What each node hears from above, below, left, right; its own answer travels the other way.
    heard = np.ones((4, *own.shape), np.float32)
    here, there = [slice(1, None), slice(None, -1)], [slice(None, -1), slice(1, None)]
    for _ in range(sweeps):
        new = np.ones_like(heard)
        for d in range(4):
            axis, back = d // 2, d % 2
            to = (here[back], slice(None)) if axis == 0 else (slice(None), here[back])
            of = (there[back], slice(None)) if axis == 0 else (slice(None), there[back])
            first, second, third = (heard[j][of] for j in range(4) if j != d ^ 1)
            known = own[of] * first * second * third
            if floor is not None:
                known /= known.max(axis=-1, keepdims=True)
            sent = known @ operator
            sent /= sent.max(axis=-1, keepdims=True)
            if floor is not None:
                sent = np.maximum(sent, floor)
            new[d][to] = sent + damping * (heard[d][to] - sent) if damping else sent
        heard = new
    return own * heard.prod(axis=0)


def grid_pgmax(data: dict[str, Any]) -> np.ndarray:
    """The same by PGMax."""
    found = data["pgmax"].ask(sweeps=SWEEPS)
    return found[:: -(-len(found) // 10)]


def beyond_single_precision(ours: np.ndarray, theirs: np.ndarray) -> float:
    """By how much probabilities differ beyond what single precision leaves."""
    return max(0.0, float(np.abs(ours - theirs).max()) - 1e-5)


CASES = (
    Case(
        name="discrete-tree",
        title="All marginals of a binary tree of n variables with 10 states given evidence, float64.",
        sizes=(31, 127),
        setup=tree,
        ours=tree_ours,
        peers={"NumPy by hand": tree_by_hand} | ({"pgmpy": tree_pgmpy} if PGMPY.there else {}),
    ),
    Case(
        name="discrete-tree-root",
        title="The marginal of the root; ours computes all marginals, pgmpy sends messages only towards the root.",
        sizes=(127,),
        setup=tree,
        ours=root_ours,
        peers={"pgmpy": root_pgmpy} if PGMPY.there else {},
    ),
    Case(
        name="discrete-grid",
        title=f"{SWEEPS} sweeps over a square grid, as a general graph of n nodes with {GRID_STATES} states, float32.",
        sizes=(10_000,),
        setup=grid,
        ours=grid_ours,
        peers={"NumPy that knows the grid": grid_by_hand} | ({"PGMax": grid_pgmax} if PGMAX.there else {}),
        difference=beyond_single_precision,
    ),
    Case(
        name="discrete-grid-set-up",
        title="From the list of edges to the marginals after one sweep; compilation is in the first call.",
        sizes=(10_000,),
        setup=grid,
        ours=set_up_ours,
    ),
)
