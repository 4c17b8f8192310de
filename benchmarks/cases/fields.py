"""Learned fields: sweeps of kernel belief propagation over images, and their cost as data grow."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import meanmap as mm
from benchmarks.cases.belief_propagation import a_few, shifted_pictures
from benchmarks.harness import Case
from meanmap import bp
from meanmap.graphs import Flooding

RANK, SWEEPS, DAMPING, FLOOR = 50, 10, 0.3, 1e-3
PICTURE = 255 * np.hypot(*np.mgrid[:300, :300]) / np.hypot(299, 299)


def sweeps(n: int, pairs: int = 2000) -> dict[str, Any]:
    """An image of about n pixels with noise, one learned operator of rank 50, float32."""
    side = round(np.sqrt(n))
    kernel = mm.kernels.RBF(20.0)
    model = mm.KernelGrid(kernel=kernel, ridge=1e-3, update=bp.Constant(rank=RANK)).fit(PICTURE, pairs=pairs, rng=0)
    learned = model.field.learned
    values = PICTURE[:side, :side].ravel() + 30 * np.random.default_rng(0).normal(size=side**2)
    points = learned.variables["x"].points[:, 0]
    own = np.exp(-((values[:, None] - points) ** 2) / 1800).astype(np.float32) + 1e-6
    operators: Any = learned.operators
    operator = np.asarray(operators.matrices[0], np.float32)
    graph = mm.graphs.grid(side, side)[0]
    template = np.zeros(2 * len(graph.edges), dtype=np.int64)
    engine = bp.engine.Engine(graph, template, Flooding(SWEEPS))
    return {
        "engine": engine,
        "own": jnp.asarray(own[:, None]),
        "operator": operator,
        "operators": bp.engine.EdgeMatrices(jnp.asarray(operator[None])),
        "side": side,
    }


def ours(data: dict[str, Any]) -> np.ndarray:
    """Ten sweeps; a few of the beliefs."""
    found = data["engine"].run(data["operators"], data["own"], damping=DAMPING, floor=FLOOR, tolerance=0.0)
    beliefs = np.asarray(jax.block_until_ready(found.beliefs))[:, 0]
    return a_few(beliefs)


def by_hand(data: dict[str, Any]) -> np.ndarray:
    """The same in NumPy that knows the grid."""
    side = data["side"]
    own = np.asarray(data["own"])[:, 0].reshape(side, side, -1)
    return a_few(shifted_pictures(own, data["operator"], SWEEPS, DAMPING, FLOOR).reshape(side**2, -1))


CASES = (
    Case(
        name="field-sweep",
        title=f"{SWEEPS} sweeps over an image of n pixels, one learned operator of rank {RANK}, float32.",
        sizes=(2500, 10_000),
        setup=sweeps,
        ours=ours,
        peers={"NumPy that knows the grid": by_hand},
    ),
    Case(
        name="field-sweep-pairs",
        title=f"{SWEEPS} sweeps over 2500 pixels with an operator of rank {RANK} learned from n pairs, float32.",
        sizes=(100, 10_000, 100_000),
        setup=lambda pairs: sweeps(2500, pairs),
        ours=ours,
    ),
)
