"""One set of beliefs, on one device and on several, and what devices tell each other."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import meanmap as mm
from meanmap.bp.engine.parts import blocks
from meanmap.core.errors import KindError
from meanmap.graphs import Flooding, Graph, grid

MESH = Mesh(np.array(jax.devices()[:1]), ("devices",))


def printed(*models, devices):
    """What the program of several devices prints about these models."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-m", "tests.bp.engine.on_devices", *models]
    done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True, check=True)
    *found, program = [json.loads(line) for line in done.stdout.splitlines()]
    return found, program


def check(found, program):
    for one in found:
        assert one["gap"] < 1e-10, one
        assert one["evidence"] < 1e-9, one
    # A row of 16 pixels with 8 values each goes up and one goes down; all are told whether messages still move.
    assert set(program["collectives"]) == {"collective-permute", "all-reduce"}, program
    assert program["collectives"]["collective-permute"] <= 2 * 2 * 16 * 8, program
    assert program["collectives"]["all-reduce"] <= 2, program
    # What a device holds falls as the devices grow in number.
    for k, held in program["held"].items():
        assert int(k) * held == pytest.approx(program["held"]["1"], rel=0.1), program


def test_four_devices_find_what_one_finds():
    check(*printed("image", "tangle", devices=4))


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 8])
def test_devices_at_length(devices):
    check(*printed(devices=devices))


def test_one_device_of_a_mesh():
    """The same code without neighbours on other devices, for each kind of message."""
    graph, _ = grid(3, 4)
    network = mm.bp.DiscreteGraph(graph, np.exp(np.eye(2)), np.random.default_rng(0).dirichlet(np.ones(2), 12))
    plain, spread = (
        network.query({0: 1}, schedule=Flooding(20, mesh), damping=0.2, tolerance=0.0) for mesh in (None, MESH)
    )
    np.testing.assert_allclose([spread[i] for i in range(12)], [plain[i] for i in range(12)], atol=1e-12)
    assert spread.log_evidence == pytest.approx(plain.log_evidence, abs=1e-10)


def test_images_are_cut_into_strips_and_tangles_by_neighbours():
    graph, _ = grid(8, 5)
    np.testing.assert_array_equal(blocks(graph, 4), np.repeat(np.arange(4), 10))
    order = np.random.default_rng(0).permutation(200)
    ring = Graph.of(np.stack([order, np.roll(order, -1)], axis=1).tolist(), nodes=range(200))
    part = blocks(ring, 4)
    assert np.bincount(part).tolist() == [50] * 4
    assert np.sum(part[ring.edges[:, 0]] != part[ring.edges[:, 1]]) <= 8


def test_what_devices_cannot_share_is_explained():
    graph, _ = grid(2, 2)
    network = mm.bp.DiscreteGraph(graph, np.ones((2, 2)))
    with pytest.raises(KindError, match=r"mesh is an int; expected devices, such as jax.make_mesh"):
        network.query(schedule=Flooding(5, 8))
    with pytest.raises(KindError, match="cannot be part of a larger program"):
        jax.grad(lambda prior: network.query({0: prior}, schedule=Flooding(5, MESH))[1][0])(jax.numpy.ones(2))
    factors = mm.bp.FactorGraph(mm.graphs.Factors([2, 2], ((0, 1),), (np.eye(2),)))
    with pytest.raises(KindError, match="factor graphs are for one device: leave mesh= out"):
        factors.query(schedule=Flooding(5, MESH))
