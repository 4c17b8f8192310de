"""Factors on many variables: against enumeration where they make no cycle, and the textbook's loops where they do."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.bp import CliqueTree, FactorGraph
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.graphs import Factors, Flooding, Residual, SumTable

STATES = np.array([2, 3, 2, 3, 2, 3, 2, 3])


def network(scopes, seed=0):
    """Random tables on some variables; three single ones have factors, too, and a constant is one."""
    rng = np.random.default_rng(seed)
    scopes = (*scopes, (0,), (3,), (6,), ())
    return Factors(STATES, scopes, tuple(rng.random(STATES[list(scope)]) + 0.05 for scope in scopes))


def joint(factors, own=()):
    """The table of all states."""
    terms, letters = [], "abcdefgh"
    for scope, table in zip(factors.scopes, factors.tables, strict=True):
        terms += [np.asarray(table), list(scope)]
    for i, value in own:
        terms += [value, [i]]
    for i, k in enumerate(factors.cardinalities):
        terms += [np.ones(k), [i]]
    return np.einsum(*terms, list(range(len(letters))))


def marginals(table):
    return [table.sum(tuple(j for j in range(table.ndim) if j != i)) / table.sum() for i in range(table.ndim)]


def textbook(factors, sweeps, own, reduce=np.add):
    """Messages in dictionaries, one by one, every sum, or maximum, over all joint states of a factor."""
    larger = [(c, s) for c, s in enumerate(factors.scopes) if len(s) > 1]
    prior = [np.ones(k) for k in factors.cardinalities]
    for scope, table in zip(factors.scopes, factors.tables, strict=True):
        if len(scope) == 1:
            prior[scope[0]] = prior[scope[0]] * table
    for i, value in own.items():
        prior[i] = prior[i] * value
    said = {(c, i): np.ones(factors.cardinalities[i]) for c, scope in larger for i in scope}
    for _ in range(sweeps):
        heard = {}
        for c, i in said:
            product = prior[i].copy()
            for d, j in said:
                if j == i and d != c:
                    product = product * said[d, j]
            heard[c, i] = product
        new = {}
        for c, scope in larger:
            table = np.asarray(factors.tables[c])
            for place, i in enumerate(scope):
                message = np.zeros(factors.cardinalities[i])
                for states in itertools.product(*(range(k) for k in table.shape)):
                    others = [heard[c, j][states[q]] for q, j in enumerate(scope) if q != place]
                    message[states[place]] = reduce(message[states[place]], table[states] * np.prod(others))
                new[c, i] = message / message.sum()
        said = new
    beliefs = []
    for i in range(factors.size):
        belief = prior[i].copy()
        for _, message in ((c, m) for (c, j), m in said.items() if j == i):
            belief = belief * message
        beliefs.append(belief / belief.sum())
    return beliefs


TREE = network([(0, 1, 2, 3), (5, 3, 4), (7, 6, 5)])
LOOPY = network([(0, 1, 2, 3), (5, 3, 4), (7, 6, 5), (2, 1, 6), (4, 0)], seed=1)


def test_without_cycles_marginals_and_evidence_are_those_of_enumeration():
    """Factors on two to four variables, a state, likelihoods for two queries at once."""
    graph = FactorGraph(TREE)
    likelihoods = np.array([[0.3, 1.0, 0.0], [0.2, 0.3, 0.9]])
    found = graph.query({1: likelihoods, 4: 1})
    for row in range(2):
        whole = joint(TREE, [(1, likelihoods[row]), (4, np.array([0.0, 1.0]))])
        for i, expected in enumerate(marginals(whole)):
            np.testing.assert_allclose(found[i][row], expected, atol=1e-12)
        assert found.log_evidence[row] == pytest.approx(np.log(whole.sum()))
    assert found.report.converged


def test_the_most_probable_states_are_those_of_enumeration():
    found = FactorGraph(TREE).most_probable()
    whole = joint(TREE)
    assert tuple(found.values()) == np.unravel_index(whole.argmax(), whole.shape)
    assert found.log_evidence == pytest.approx(np.log(whole.max()))


def test_with_cycles_messages_are_those_of_the_textbook():
    graph = FactorGraph(LOOPY)
    found = graph.query({2: np.array([0.3, 0.7])}, schedule=Flooding(3), tolerance=0.0)
    for i, expected in enumerate(textbook(LOOPY, 3, {2: np.array([0.3, 0.7])})):
        np.testing.assert_allclose(found[i], expected, atol=1e-12)
    assert not found.report.converged
    assert "stopped at the maximum number of sweeps" in found.report.status


@pytest.mark.parametrize("cyclic", [True, False])
def test_tables_of_sums_are_the_tables_that_they_stand_for(cyclic):
    """On variables with two and three states, with a zero; marginals and the best states."""
    rng = np.random.default_rng(3)
    scopes = ((0, 1, 2, 3, 4), (4, 5, 6, 7, 0), (2, 6))
    values = [rng.random(3 if cyclic else int(STATES[list(scope)].sum()) - 4) for scope in scopes[:2]]
    values[0][1] = 0.0
    sums = [SumTable(v, tuple(STATES[list(s)]), cyclic=cyclic) for v, s in zip(values, scopes, strict=False)]
    own = {i: rng.random(STATES[i]) for i in range(8)}
    factors = Factors(STATES, scopes, (*sums, rng.random((2, 2))))
    graph = FactorGraph(factors)
    found = graph.query(own, schedule=Flooding(4), tolerance=0.0)
    best = graph.most_probable(own, schedule=Flooding(4), tolerance=0.0)
    for i, expected in enumerate(textbook(factors, 4, own)):
        np.testing.assert_allclose(found[i], expected, atol=1e-12)
    assert list(best.values()) == [belief.argmax() for belief in textbook(factors, 4, own, np.maximum)]


def test_a_table_of_sums_is_written_out_where_one_is_needed():
    """Its entries one by one, and a clique tree with it."""
    table = SumTable([3, 1, 4, 1, 5], (2, 3, 2))
    for states in itertools.product(range(2), range(3), range(2)):
        assert np.asarray(table)[states] == [3, 1, 4, 1, 5][sum(states)]
    found = CliqueTree(Factors([2, 3, 2], ((0, 1, 2),), (table,))).query()
    whole = np.asarray(table)
    np.testing.assert_allclose(found[1], whole.sum((0, 2)) / whole.sum(), atol=1e-12)


def test_a_sum_over_many_variables_is_never_written_out():
    """Exactly one of forty bits, whose table would have 10^12 entries: proportional to their odds."""
    bits = np.linspace(0.1, 0.9, 40)
    one = Factors([2] * 40, (tuple(range(40)),), (SumTable([0, 1, *[0] * 39], (2,) * 40),))
    odds = bits / (1 - bits)
    found = FactorGraph(one).query({i: np.array([1 - p, p]) for i, p in enumerate(bits)})
    np.testing.assert_allclose([found[i][1] for i in range(40)], odds / odds.sum(), rtol=1e-12)
    assert found.log_evidence == pytest.approx(np.log(odds.sum()) + np.log(1 - bits).sum())


def test_queries_can_be_compiled_and_differentiated():
    """The derivative of a belief by a likelihood, round a cycle and with variables of several degrees."""
    rng = np.random.default_rng(4)
    scopes = ((0, 1), (1, 2), (2, 0), (2, 3), (2, 4), (2, 5))
    factors = Factors([2] * 6, scopes, tuple(rng.random((6, 2, 2))))

    def belief(p):
        return FactorGraph(factors).query({2: p}, [1], tolerance=1e-12)[1][0]

    with jax.enable_x64(True):
        at = jnp.array([0.3, 0.7])
        slope = jax.jit(jax.grad(belief))(at)
        step = jnp.array([1e-5, 0.0])
        assert slope[0] == pytest.approx(float(belief(at + step) - belief(at - step)) / 2e-5, rel=1e-5)


def test_what_cannot_be_is_refused_in_words():
    even = Factors([2, 2], ((0, 1),), (SumTable([1, 0], (2, 2), cyclic=True),), ("a", "b"), {"a": ("no", "yes")})
    graph = FactorGraph(even)
    assert graph.query({"a": "yes"})["b"].tolist() == [0.0, 1.0]
    with pytest.raises(InputError, match="contradicts itself"):
        graph.query({"a": "yes", "b": 0})
    with pytest.raises(InputError, match="expected one of 'no', 'yes'"):
        graph.query({"a": "maybe"})
    with pytest.raises(KindError, match=r"expected mm\.graphs\.Flooding"):
        graph.query(schedule=Residual())
    with pytest.raises(KindError, match=r"expected mm\.graphs\.Factors"):
        FactorGraph([(0, 1)])
    with pytest.raises(ShapeError, match="expected 3, one for each sum from 0 to 2"):
        SumTable([1, 0], (2, 2))
    with pytest.raises(InputError, match="expected weights of at least 0"):
        SumTable([1, -1], (2, 2), cyclic=True)
    with pytest.raises(ShapeError, match="one value for each sum"):
        SumTable([[1, 2]], (2, 2))
    with pytest.raises(ShapeError, match="number of states of each variable"):
        SumTable([1, 2], (2, 0), cyclic=True)


@pytest.mark.parametrize("nodes", [150, 400])
def test_a_chain_of_any_length_settles_and_is_exact(nodes):
    """What one end says reaches the other, by more sweeps than loops are given."""
    tie = np.array([[0.99, 0.01], [0.01, 0.99]])
    chain = Factors(np.full(nodes, 2), [(i, i + 1) for i in range(nodes - 1)], [tie] * (nodes - 1))
    beliefs = FactorGraph(chain).query({0: 1})
    assert beliefs.report.converged
    last = np.linalg.matrix_power(tie / tie.sum(axis=0), nodes - 1)[:, 1]
    np.testing.assert_allclose(beliefs[nodes - 1], last, atol=1e-6)
