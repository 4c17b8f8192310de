"""A program of several devices, run by tests in a process of its own: the number of devices is set before JAX starts.

`python -m tests.bp.engine.on_devices` prints, for every model, how far beliefs on all devices are from those on one,
what devices tell each other in the compiled sweeps, and what each holds.
"""

import json
import re
import sys

import equinox as eqx
import jax
import numpy as np

import meanmap as mm
from meanmap.bp.engine.flooding import _flood
from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.messages import Settings
from meanmap.bp.engine.operators import EdgeMatrices
from meanmap.bp.engine.parts import AXIS, Parts
from meanmap.bp.engine.spread import _placed
from meanmap.bp.engine.terms import Terms
from meanmap.graphs import Flooding, Graph, grid

SWEEPS = 30
RNG = np.random.default_rng(0)


def table(states):
    gap = np.subtract.outer(np.arange(states), np.arange(states))
    return np.exp(-0.5 * np.minimum(np.abs(gap), 2))


def image(mesh):
    """An image of 18 rows, which 4 and 8 devices do not divide, with some pixels known."""
    graph, _ = grid(18, 10)
    priors = np.random.default_rng(1).dirichlet(np.ones(4), graph.size)
    network = mm.bp.DiscreteGraph(graph, table(4), priors)
    found = network.query({3: 1, 77: 0}, schedule=Flooding(SWEEPS, mesh), damping=0.2, tolerance=0.0)
    return np.array([found[node] for node in range(graph.size)]), float(found.log_evidence)


def tangle(mesh):
    """A random graph with a hub, a node without neighbours, and a table for each edge."""
    rng = np.random.default_rng(2)
    pairs = {tuple(sorted(rng.choice(60, 2, replace=False).tolist())) for _ in range(90)}
    edges = sorted(pairs | {(0, other) for other in range(1, 40)})
    graph = Graph.of(edges, nodes=range(61))
    tables = np.exp(0.5 * rng.normal(size=(len(graph.edges), 3, 3)))
    network = mm.bp.DiscreteGraph(graph, tables, rng.dirichlet(np.ones(3), graph.size))
    found = network.query(schedule=Flooding(SWEEPS, mesh), damping=0.4, tolerance=0.0)
    return np.array([found[node] for node in range(graph.size)]), float(found.log_evidence)


def normals(mesh):
    """Natural parameters are added."""
    graph, _ = grid(9, 7)
    precision = 5.0 * np.eye(graph.size)
    precision[graph.edges[:, 0], graph.edges[:, 1]] = precision[graph.edges[:, 1], graph.edges[:, 0]] = -0.9
    field = mm.bp.GaussianGraph(precision, np.arange(float(graph.size)))
    found = field.query(schedule=Flooding(SWEEPS, mesh), damping=0.1, tolerance=0.0)
    return np.array([found[node].mean() for node in range(graph.size)], float), 0.0


def learned(mesh):
    """A learned field with two relations, an observation for each pixel and messages that count by half."""
    rng = np.random.default_rng(3)
    first = rng.normal(size=(120, 2))
    pairs = {"a": (first[:, 0], first.sum(axis=1)), "b": (first[:, 1], first[:, 0] + 0.5 * rng.normal(size=120))}
    graph, direction = grid(8, 6)
    field = mm.KernelField(
        graph, relations=["ab"[which] for which in direction], schedule=None if mesh is None else Flooding(15, mesh)
    )
    fitted = field.fit(pairs)
    found = fitted.query({5: 0.3}, counting=0.5, tolerance=0.0)
    return np.array([found[node].mean() for node in range(graph.size)], float), 0.0


MODELS = {"image": image, "tangle": tangle, "normals": normals, "learned": learned}


def compiled(mesh, height=32, width=16, states=8):
    """The program of a grid whose two directions have tables of their own."""
    graph, direction = grid(height, width)
    template = np.concatenate([2 * direction, 2 * direction + 1])
    rng = np.random.default_rng(0)
    own = rng.dirichlet(np.ones(states), graph.size)[:, None]
    matrices = EdgeMatrices(rng.random((4, states, states)))
    layout = Layout.of(graph, template, 4)
    terms = Terms(layout, matrices, own, None, Settings.of(0.1, None, None, own.dtype))
    whole = jax.sharding.Mesh(mesh.devices.ravel(), (AXIS,))
    placed = _placed(Parts.of(graph, layout, mesh.size), terms, whole)
    traced, static = eqx.partition(placed, eqx.is_array)
    return jax.jit(lambda traced: _flood(eqx.combine(traced, static), SWEEPS)).lower(traced).compile()


def collectives(text):
    """The operations by which devices talk in a sweep, with the numbers that each carries."""
    found = {}
    for shape, name in re.findall(r"= (.+?) (all-gather|all-reduce|all-to-all|collective-permute)(?:-start)?\(", text):
        sizes = [int(np.prod([int(n) for n in dims.split(",") if n])) for dims in re.findall(r"\[([\d,]*)\]", shape)]
        found[name] = found.get(name, 0) + sum(sizes)
    return found


def held_by(program):
    """Bytes of arguments, results and temporary numbers on each device."""
    memory = program.memory_analysis()
    return memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes


def main():
    mesh = jax.make_mesh((jax.device_count(),), ("devices",))
    for name in sys.argv[1:] or MODELS:
        (alone, evidence), (spread, other) = MODELS[name](None), MODELS[name](mesh)
        print(
            json.dumps({"model": name, "gap": float(np.abs(spread - alone).max()), "evidence": abs(other - evidence)})
        )
    with jax.enable_x64(True):
        program = compiled(mesh)
        some = [k for k in (1, 2, 4) if k <= mesh.size]
        meshes = [jax.sharding.Mesh(mesh.devices[:k], mesh.axis_names) for k in some]
        held = [held_by(compiled(each, 128, 4)) for each in meshes]
    print(json.dumps({"collectives": collectives(program.as_text()), "held": dict(zip(some, held, strict=True))}))


if __name__ == "__main__":
    main()
