"""Derivatives through messages that were sent again and again: those of differences, whatever the damping, or NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.bp import DiscreteGraph, FactorGraph
from meanmap.graphs import Factors, Flooding

COMPLETE = [(i, j) for i in range(4) for j in range(i)]
RING = [(i, (i + 1) % 5) for i in range(5)]
GRID = [(i, i + 1) for i in range(9) if (i + 1) % 3] + [(i, i + 3) for i in range(6)]
SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])


def marginal(edges, coupling, damping, model=DiscreteGraph):
    """One marginal as a function of two numbers: a field at a node and a change of all couplings."""
    n = max(map(max, edges)) + 1
    fields = jnp.asarray(np.random.default_rng(1).normal(size=n) * 0.3)

    def answer(at):
        table = jnp.exp((coupling + at[1]) * SIGNS)
        priors = jnp.exp(fields.at[0].add(at[0])[:, None] * np.array([1.0, -1.0]))
        settings = {"damping": damping, "schedule": Flooding(3000), "tolerance": 1e-11}
        if model is DiscreteGraph:
            found = DiscreteGraph(edges, table, priors).query(targets=[2], **settings)
        else:
            scopes = (*edges, *((i,) for i in range(n)))
            found = FactorGraph(Factors([2] * n, scopes, (*[table] * len(edges), *priors))).query(
                targets=[2], **settings
            )
        return found[2][0]

    return answer


def agrees(answer):
    """Backwards and forwards, and the difference of two runs."""
    at, step = jnp.zeros(2), 1e-4
    run = jax.jit(answer)
    differences = [(run(at.at[i].add(step)) - run(at.at[i].add(-step))) / (2 * step) for i in range(2)]
    np.testing.assert_allclose(jax.jit(jax.grad(answer))(at), differences, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(answer))(at), differences, atol=1e-6)


def test_derivatives_settle_where_damped_messages_do():
    """Without damping these messages jump to and fro, and so did derivatives: 1e107 for -.039; now they are NaN."""
    with jax.enable_x64(True):
        agrees(marginal(COMPLETE, -0.775, 0.5))
        assert np.isnan(jax.jit(jax.grad(marginal(COMPLETE, -0.775, 0.0)))(jnp.zeros(2))).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", [DiscreteGraph, FactorGraph])
@pytest.mark.parametrize("damping", [0.0, 0.3, 0.5, 0.8])
def test_derivatives_are_differences_whatever_the_damping(model, damping):
    with jax.enable_x64(True):
        for edges, coupling in ((COMPLETE, -0.775), (COMPLETE, 0.3), (RING, 1.2), (GRID, -0.5), (GRID, 0.5)):
            if damping or coupling != -0.775:
                agrees(marginal(edges, coupling, damping, model))
