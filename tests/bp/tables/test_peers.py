"""The same answers as other libraries, where a variable names a Python that has them (benchmarks/peers says how)."""

import networkx
import numpy as np
import pytest

from benchmarks.peers import PGMAX, PGMPY
from meanmap.bp import DiscreteGraph
from meanmap.graphs import Flooding, Graph
from tests.bp.reference import slow_propagation


@pytest.mark.skipif(not PGMPY.there, reason="MEANMAP_PGMPY names no Python with pgmpy")
def test_random_bayesian_trees_have_the_exact_answers_of_pgmpy():
    rng = np.random.default_rng(0)
    for n, k in ((20, 3), (40, 2), (63, 5)):
        parent = np.array([-1] + [int(rng.integers(i)) for i in range(1, n)])
        tables = rng.dirichlet(np.full(k, 0.7), size=(n, k))
        evidence = {int(i): int(rng.integers(k)) for i in rng.choice(n, n // 4, replace=False)}
        targets = [i for i in range(n) if i not in evidence]
        with PGMPY.start(parent=parent, tables=tables) as pgmpy:
            exact, messages = (pgmpy.ask(evidence=evidence, targets=targets, exact=exact) for exact in (True, False))
        potentials = {(int(parent[i]), i): tables[i] for i in range(1, n)}
        beliefs = DiscreteGraph(list(potentials), potentials, {0: tables[0, 0]}).query(evidence)
        ours = np.array([beliefs[i] for i in targets])
        np.testing.assert_allclose(ours, exact, atol=1e-10)
        np.testing.assert_allclose(ours, messages, atol=1e-10)


@pytest.mark.skipif(not PGMAX.there, reason="MEANMAP_PGMAX names no Python with PGMax")
def test_loopy_fixed_points_are_those_of_pgmax():
    rng = np.random.default_rng(1)
    for network in (networkx.grid_2d_graph(6, 7), networkx.gnm_random_graph(30, 45, seed=2)):
        graph = Graph.of(networkx.convert_node_labels_to_integers(network))
        tables = np.exp(0.7 * rng.normal(size=(len(graph.edges), 4, 4)))
        priors = rng.random((graph.size, 4)) + 0.1
        with PGMAX.start(edges=graph.edges, table=np.log(tables), priors=np.log(priors)) as pgmax:
            theirs = pgmax.ask(sweeps=500, damping=0.5)
        found = DiscreteGraph(graph, tables, priors).query(schedule=Flooding(500), damping=0.5, tolerance=1e-12)
        assert found.report.converged
        ours = np.array([found[i] for i in range(graph.size)])
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        reference, _ = slow_propagation(graph, list(tables), list(priors), damping=0.5)
        np.testing.assert_allclose(ours, np.array(reference), atol=1e-9)
