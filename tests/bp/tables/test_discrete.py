"""Discrete networks on trees against enumeration; evidence of every kind; what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.bp import DiscreteGraph
from meanmap.core.errors import InputError, KindError, ParameterError, ShapeError
from meanmap.graphs import Factors, Flooding, Graph, Residual, Sequential, Splash, TwoPass
from tests.bp.reference import enumerate_all, random_tree_model

CHAIN = [("a", "b"), ("b", "c")]
SCHEDULES = [Flooding(), Sequential(), Residual(), Splash(splash_size=5)]


@pytest.mark.parametrize("seed", [0])
def test_trees_agree_with_enumeration(seed):
    graph, tables, priors, potentials = random_tree_model(seed)
    joint, marginals, log_total = enumerate_all(graph, tables, priors)
    network = DiscreteGraph(graph, potentials, dict(enumerate(priors)))
    beliefs = network.query()
    for i, marginal in enumerate(marginals):
        np.testing.assert_allclose(beliefs[i], marginal, rtol=1e-10, atol=1e-13)
    assert abs(beliefs.log_evidence - log_total) < 1e-10
    assert beliefs.report.converged
    best = network.most_probable()
    assert tuple(best[i] for i in range(graph.size)) == tuple(np.unravel_index(joint.argmax(), joint.shape))
    assert abs(best.log_evidence - np.log(joint.max())) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_trees_agree_with_enumeration(seed):
    test_trees_agree_with_enumeration(seed)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_every_schedule_ends_at_the_same_beliefs_on_a_tree(schedule):
    graph, tables, priors, potentials = random_tree_model(0)
    _, marginals, log_total = enumerate_all(graph, tables, priors)
    beliefs = DiscreteGraph(graph, potentials, dict(enumerate(priors))).query(schedule=schedule, tolerance=1e-12)
    for i, marginal in enumerate(marginals):
        np.testing.assert_allclose(beliefs[i], marginal, rtol=1e-10)
    assert abs(beliefs.log_evidence - log_total) < 1e-10


def test_evidence_hard_and_soft_and_for_many_queries():
    graph, tables, priors, potentials = random_tree_model(1)
    network = DiscreteGraph(graph, potentials, dict(enumerate(priors)))
    likelihood = np.random.default_rng(5).random((3, len(priors[4])))
    seen = np.array([1, 0, 1])
    together = network.query({2: seen, 4: likelihood, 6: 1}, targets=[0, 7])
    assert list(together) == [0, 7]
    for q in range(3):
        changed = [prior.copy() for prior in priors]
        changed[2] = changed[2] * np.eye(len(priors[2]))[seen[q]]
        changed[4] = changed[4] * likelihood[q]
        changed[6] = changed[6] * np.eye(len(priors[6]))[1]
        _, marginals, log_total = enumerate_all(graph, tables, changed)
        single = network.query({2: int(seen[q]), 4: likelihood[q], 6: 1})
        for target in (0, 7):
            np.testing.assert_allclose(together[target][q], marginals[target], rtol=1e-10)
            np.testing.assert_allclose(single[target], marginals[target], rtol=1e-10)
        assert abs(together.log_evidence[q] - log_total) < 1e-10


def test_one_table_for_all_edges_keeps_its_direction():
    graph = Graph.of([("a", "b"), ("b", "c"), ("d", "b")])
    table = np.random.default_rng(0).random((3, 3))
    priors = np.random.default_rng(1).random((4, 3))
    _, marginals, _ = enumerate_all(graph, [table] * 3, list(priors))
    beliefs = DiscreteGraph(graph, table, priors).query()
    for i, name in enumerate(graph.names):
        np.testing.assert_allclose(beliefs[name], marginals[i], rtol=1e-10)


def test_edges_with_the_same_table_share_one_matrix():
    """Two tables on eleven edges of a chain, the second of them in both directions."""
    first, second = np.random.default_rng(2).random((2, 2, 2))
    edges = [(i, i + 1) for i in range(11)]
    named = dict.fromkeys(edges[:6], first) | {edge[::-1]: second.T for edge in edges[6:]}
    network = DiscreteGraph(edges, named)
    assert network._matrices.shape == (4, 2, 2)
    expected = np.ones(2) @ np.linalg.matrix_power(first, 6) @ np.linalg.matrix_power(second, 5)
    np.testing.assert_allclose(network.query()[11], expected / expected.sum(), rtol=1e-12)


def test_ties_of_the_most_probable_state_are_decoded_together():
    network = DiscreteGraph([("a", "b"), ("b", "c")], np.eye(2))
    best = network.most_probable()
    assert best["a"] == best["b"] == best["c"]
    batch = network.most_probable({"a": np.array([0, 1])})
    np.testing.assert_array_equal(batch["c"], [0, 1])


def test_factors_of_a_file():
    rng = np.random.default_rng(2)
    pair, back, prior = rng.random((2, 3)), rng.random((3, 2)), rng.random(3)
    factors = Factors([2, 3], ((0, 1), (1, 0), (1,), ()), (pair, back, prior, np.array(2.0)))
    joint = pair * back.T * prior
    beliefs = DiscreteGraph.from_factors(factors).query()
    np.testing.assert_allclose(beliefs[0], joint.sum(1) / joint.sum(), rtol=1e-12)
    assert beliefs.log_evidence == pytest.approx(np.log(2 * joint.sum()), rel=1e-12)
    with pytest.raises(InputError, match="on the 3 variables"):
        DiscreteGraph.from_factors(Factors([2, 2, 2], ((0, 1, 2),), (np.ones((2, 2, 2)),)))


def test_what_comes_in_goes_out():
    table = np.array([[0.9, 0.1], [0.4, 0.6]])
    plain = DiscreteGraph([(0, 1)], table).query({1: 1})
    assert isinstance(plain[0], np.ndarray)
    assert plain[0].dtype == np.float64
    followed = DiscreteGraph([(0, 1)], jnp.asarray(table, jnp.float32)).query({1: 1})
    assert isinstance(followed[0], jax.Array)
    assert followed[0].dtype == jnp.float32
    np.testing.assert_allclose(followed[0], plain[0], rtol=1e-6)


@pytest.mark.parametrize(("edges", "least"), [(CHAIN, 0.0), ([*CHAIN, ("c", "a")], 0.2)], ids=["forest", "cycle"])
def test_queries_are_compiled_mapped_and_differentiated(edges, least):
    """Derivatives of a marginal and of the evidence against differences; on the forest with a potential of zero."""

    def answer(table, likelihood):
        beliefs = DiscreteGraph(edges, table).query({"a": likelihood}, tolerance=1e-12)
        return beliefs["c"][1] + 0.1 * beliefs.log_evidence

    with jax.enable_x64(True):
        table, likelihood = jnp.array([[0.9, least], [0.3, 0.6]]), jnp.array([0.3, 0.8])
        gradient = jax.jit(jax.grad(answer))(table, likelihood)
        compiled = jax.jit(answer)
        value, step = compiled(table, likelihood), 1e-7
        for i, j in np.ndindex(2, 2):
            difference = (compiled(table.at[i, j].add(step), likelihood) - value) / step
            np.testing.assert_allclose(gradient[i, j], difference, atol=1e-5)
        mapped = jax.vmap(compiled, (None, 0))(table, jnp.stack([likelihood, likelihood[::-1]]))
    assert float(value) == pytest.approx(float(mapped[0]), rel=1e-12)
    plain = DiscreteGraph(edges, np.asarray(table)).query({"a": np.asarray(likelihood)}, tolerance=1e-12)
    assert float(value) == pytest.approx(plain["c"][1] + 0.1 * plain.log_evidence, rel=1e-10)


def test_what_cannot_be_compiled_says_so():
    network = DiscreteGraph(CHAIN, np.array([[0.9, 0.1], [0.4, 0.6]]))
    with pytest.raises(KindError, match=r"Residual\(.*cannot be compiled into a larger program"):
        jax.jit(lambda seen: network.query({"a": seen}, schedule=Residual())["c"])(jnp.ones(2))
    with pytest.raises(KindError, match="most_probable finds states one after the other"):
        jax.jit(lambda seen: network.most_probable({"a": seen})["c"])(jnp.ones(2))


def test_a_query_in_single_precision_leaves_the_next_in_double():
    table = np.random.default_rng(0).random((2, 2))
    network = DiscreteGraph(CHAIN, table)
    assert network.query({"a": jnp.array([0.3, 0.8], jnp.float32)})["c"].dtype == jnp.float32
    expected = np.array([0.3, 0.8]) @ table @ table
    np.testing.assert_allclose(network.query({"a": [0.3, 0.8]})["c"], expected / expected.sum(), rtol=1e-12)


def test_a_lone_variable_answers_with_its_prior():
    graph = Graph.of([("a", "b")], nodes=["a", "b", "alone"])
    beliefs = DiscreteGraph(graph, np.ones((2, 2)), {"alone": [1.0, 3.0]}).query({"a": 0})
    np.testing.assert_allclose(beliefs["alone"], [0.25, 0.75])
    np.testing.assert_allclose(DiscreteGraph(Graph.of([], nodes="a"), {}, {"a": [1.0, 1.0]}).query()["a"], 0.5)


@pytest.mark.parametrize(
    ("potentials", "priors", "error", "words"),
    [
        (np.ones((2, 3)), None, ShapeError, r"expected \(k, k\), \(2, k, k\), or a mapping"),
        (np.ones((3, 2, 2)), None, ShapeError, "has 3 tables; expected one for each of 2 edges"),
        (-np.ones((2, 2)), None, InputError, "holds the negative value -1"),
        (np.zeros((2, 2)), None, InputError, "is zero everywhere"),
        (np.full((2, 2), np.nan), None, InputError, "not finite"),
        ({("a", "b"): np.ones((2, 2))}, None, InputError, r"no table for the edge \('b', 'c'\)"),
        ({("a", "c"): np.ones((2, 2))}, None, InputError, r"the edge \('a', 'c'\), which is not in the graph"),
        ({("a", "b"): np.ones((2, 2)), ("b", "a"): np.ones((2, 2))}, None, InputError, "in both directions"),
        ({("a", "b"): np.ones((2, 2)), ("b", "c"): np.ones((3, 2))}, None, ShapeError, "2 states and 3 states"),
        (np.ones((2, 2)), {"a": np.ones(3)}, ShapeError, "the prior of 'a' has 3 states; its tables have 2"),
        (np.ones((2, 2)), {"z": np.ones(2)}, InputError, "no node 'z'"),
        (np.ones((2, 2)), np.ones((2, 2)), ShapeError, r"expected \(3, k\)"),
    ],
    ids=range(12),
)
def test_bad_models_are_refused(potentials, priors, error, words):
    with pytest.raises(error, match=words):
        DiscreteGraph(CHAIN, potentials, priors)


@pytest.mark.parametrize(
    ("evidence", "error", "words"),
    [
        ({"z": 0}, InputError, "no node 'z'"),
        ({"a": 2}, InputError, r"is 2; expected states from 0 to 1"),
        ({"a": -1}, InputError, r"is -1; expected states from 0 to 1"),
        ({"a": [0.5, 0.5, 0.5]}, ShapeError, r"expected a state from 0 to 1, likelihoods \(2,\)"),
        ({"a": [0.5, -0.5]}, InputError, "negative value"),
        ({"a": "wet"}, KindError, "is a str; expected a state from 0 to 1"),
        ({"a": [0, 1], "b": [0, 1, 1]}, ShapeError, "different numbers of queries: {'a': 2, 'b': 3}"),
        ([("a", 0)], KindError, "evidence is a list; expected a mapping"),
    ],
    ids=range(8),
)
def test_bad_evidence_is_refused(evidence, error, words):
    with pytest.raises(error, match=words):
        DiscreteGraph(CHAIN, np.ones((2, 2))).query(evidence)


def test_contradictions_cycles_and_bad_settings_are_refused():
    network = DiscreteGraph(CHAIN, np.eye(2))
    with pytest.raises(InputError, match=r"contradicts itself: no state of '[abc]' is possible\."):
        network.query({"a": 0, "c": 1})
    with pytest.raises(InputError, match="is possible in query 1"):
        network.query({"a": [0, 0], "c": [0, 1]})
    with pytest.raises(InputError, match="there is no belief about 'c'; the targets were 'a'"):
        network.query(targets=["a"])["c"]
    with pytest.raises(ParameterError, match="damping is 1"):
        network.query(damping=1.0)
    with pytest.raises(KindError, match=r"expected one of mm\.graphs\.TwoPass\(\)"):
        network.query(schedule="flooding")
    ring = DiscreteGraph([(0, 1), (1, 2), (2, 0)], np.ones((2, 2)))
    with pytest.raises(InputError, match="the graph has a cycle"):
        ring.query(schedule=TwoPass())
