"""Graphs with cycles: fixed points of the textbook's messages, Bethe's free energy, high degrees, damping."""

import networkx
import numpy as np
import pytest

from meanmap.bp import DiscreteGraph
from meanmap.core.door import Door
from meanmap.graphs import Flooding, Graph, Residual, Sequential, Splash
from tests.bp.reference import enumerate_all, grid_model, slow_propagation

SCHEDULES = [Flooding(), Sequential(), Residual(at_once=5), Splash(splash_size=6)]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_fixed_points_are_the_textbooks(schedule):
    graph, tables, priors = grid_model(0)
    expected, change = slow_propagation(graph, tables, priors)
    assert change < 1e-13
    beliefs = DiscreteGraph(graph, np.array(tables), np.array(priors)).query(schedule=schedule, tolerance=1e-10)
    assert beliefs.report.converged
    for i in range(graph.size):
        np.testing.assert_allclose(beliefs[i], expected[i], atol=1e-8)


def test_damping_does_not_move_the_fixed_point():
    graph, tables, priors = grid_model(1)
    expected, _ = slow_propagation(graph, tables, priors, damping=0.3)
    beliefs = DiscreteGraph(graph, np.array(tables), np.array(priors)).query(damping=0.6, tolerance=1e-10)
    for i in range(graph.size):
        np.testing.assert_allclose(beliefs[i], expected[i], atol=1e-8)


DAMPED = [Flooding(20_000), Sequential(20_000), Residual(max_sweeps=20_000), Splash(max_sweeps=20_000, splash_size=3)]


@pytest.mark.parametrize("schedule", DAMPED, ids=repr)
@pytest.mark.parametrize("damping", [0.5, 0.99])
def test_damped_messages_settle_only_where_they_arrive(schedule, damping):
    """On a chain, where the answer is known: a small step is no sign of being near."""
    table = np.array([[0.9, 0.1], [0.1, 0.9]])
    network = DiscreteGraph([(0, 1), (1, 2), (2, 3)], table)
    beliefs = network.query({0: 1}, schedule=schedule, damping=damping, tolerance=1e-4)
    assert beliefs.report.converged
    np.testing.assert_allclose(beliefs[3], np.linalg.matrix_power(table, 3)[1], atol=2e-3)


def test_bethes_log_partition_is_close_where_couplings_are_weak():
    graph, tables, priors = grid_model(2, strength=0.1)
    _, _, log_total = enumerate_all(graph, tables, priors)
    exact_without = sum(np.log(prior.sum()) for prior in priors)
    beliefs = DiscreteGraph(graph, np.array(tables), np.array(priors)).query(tolerance=1e-10)
    assert abs(beliefs.log_evidence - log_total) < 1e-3 * abs(log_total - exact_without)


def test_a_hub_of_degree_450_neither_underflows_nor_overflows():
    graph = Graph.of(networkx.star_graph(450))
    rng = np.random.default_rng(3)
    tables, priors = rng.random((450, 3, 3)), rng.random((451, 3)) + 1e-3
    expected = np.log(priors[0])
    for (a, b), table in zip(graph.edges, tables, strict=True):
        assert a == 0
        expected = expected + np.log(table @ priors[b])
    log_total = np.log(np.exp(expected - expected.max()).sum()) + expected.max()
    network = DiscreteGraph(graph, tables, priors)
    for schedule in (None, Flooding()):
        beliefs = network.query(schedule=schedule)
        np.testing.assert_allclose(beliefs[0], np.exp(expected - log_total), rtol=1e-8)
        assert abs(beliefs.log_evidence - log_total) < 1e-8
        leaf = np.exp(expected - expected.max()) / (tables[6] @ priors[7])
        np.testing.assert_allclose(beliefs[7], (x := priors[7] * (leaf @ tables[6])) / x.sum(), rtol=1e-8)


@pytest.mark.parametrize("schedule", [None, Flooding()], ids=repr)
def test_a_hub_of_2200_leaves_hears_all_of_them(schedule):
    """A thousand leaves leave one state e^−847 of the other; 1200 more turn it round."""
    table = np.array([[0.7, 0.3], [0.3, 0.7]])
    seen = np.arange(2200) >= 1000
    graph = Graph.of([("hub", i) for i in range(2200)] + [("hub", "more"), ("more", "end"), ("end", "last")])
    network = DiscreteGraph(graph, table)
    evidence = dict(enumerate(seen.astype(int).tolist()))
    beliefs = network.query(evidence, ["hub", "last"], schedule=schedule)
    odds = (0.7 / 0.3) ** 200
    np.testing.assert_allclose(beliefs["hub"], [1 / (1 + odds), odds / (1 + odds)], rtol=1e-9)
    np.testing.assert_allclose(beliefs["last"][0], (0.5 - 0.4**3 / 2), rtol=1e-9)
    logs = np.log(table)
    assert beliefs.log_evidence == pytest.approx(np.logaddexp(*(1000 * logs[:, 0] + 1200 * logs[:, 1])), rel=1e-12)
    assert network.most_probable(evidence, schedule=schedule)["hub"] == 1


def test_rare_states_of_200_leaves_stay_possible():
    network = DiscreteGraph([("hub", i) for i in range(200)], np.array([[1, 1e-4], [1e-4, 1]]))
    beliefs = network.query({i: int(i < 99) for i in range(200)}, ["hub"])
    np.testing.assert_allclose(beliefs["hub"], [1, 1e-8], rtol=1e-7)


def test_a_sweep_limit_is_reported():
    graph, tables, priors = grid_model(0)
    network = DiscreteGraph(graph, np.array(tables), np.array(priors))
    report = network.query(schedule=Flooding(max_sweeps=2)).report
    assert not report.converged
    assert report.steps == 2
    assert len(report.residuals) == 2
    assert "stopped at the maximum number of sweeps" in report.status
    residuals = network.query(tolerance=1e-9).report.residuals
    assert residuals[-1] <= 1e-9 < residuals[-2]


def test_tables_without_zeros_need_no_powers_of_two_and_others_do():
    graph, tables, priors = grid_model(0)
    tables, priors = np.array(tables), np.array(priors)

    def narrow(tables, priors):
        network = DiscreteGraph(graph, tables, priors)
        with Door() as door:
            own, _ = network._with({}, door)
            return network._run(own, None, 0.0, None, False).layout.narrow

    rare, impossible = priors.copy(), tables.copy()
    rare[0], impossible[0, 0, 0] = 1e-200, 0.0
    assert narrow(tables, priors)
    assert not narrow(tables, rare)
    assert not narrow(impossible, priors)
    # One more state, which nothing can reach, changes nothing but how products are kept.
    more = np.pad(tables, ((0, 0), (0, 1), (0, 1))), np.pad(priors, ((0, 0), (0, 1)))
    assert not narrow(*more)
    found, wide = (DiscreteGraph(graph, *each).query(tolerance=1e-10) for each in ((tables, priors), more))
    for i in range(graph.size):
        np.testing.assert_allclose(wide[i][:-1], found[i], rtol=1e-9)
    assert wide.log_evidence == pytest.approx(found.log_evidence, rel=1e-12)


@pytest.mark.slow
def test_max_product_settles_on_a_grid_with_a_clear_winner():
    graph, tables, priors = grid_model(4, strength=0.3)
    priors = [prior * np.array([1.0, 5.0, 1.0]) for prior in priors]
    joint, _, _ = enumerate_all(graph, tables, priors)
    best = DiscreteGraph(graph, np.array(tables), np.array(priors)).most_probable()
    assert tuple(best[i] for i in range(graph.size)) == tuple(np.unravel_index(joint.argmax(), joint.shape))
