"""Clique trees against enumeration of all states, and pgmpy's exact answers where it is installed."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from meanmap.bp import CliqueTree, DiscreteGraph, FactorGraph
from meanmap.bp.tables import clique_tree
from meanmap.core.errors import InputError, KindError
from meanmap.graphs import Factors, from_pgmpy, read_uai, write_uai


def network(seed=0, n=7):
    """Factors on one to three of n variables with two or three states, in any order."""
    rng = np.random.default_rng(seed)
    states = np.resize([2, 3], n)
    scopes = [(int(rng.integers(n)),)] + [tuple(rng.choice(n, k, replace=False).tolist()) for k in (2, 3, 3, 2, 3)]
    return Factors(states, tuple(scopes), tuple(rng.random(states[list(scope)]) + 0.05 for scope in scopes))


def joint(factors, likelihoods=()):
    """The table of all states."""
    letters = [chr(97 + i) for i in range(factors.size)]
    terms = ["".join(letters[i] for i in scope) for scope in factors.scopes] + [letters[i] for i, _ in likelihoods]
    ones = [np.ones(k) for k in factors.cardinalities]
    return np.einsum(
        ",".join([*terms, *letters]) + "->" + "".join(letters),
        *factors.tables, *(value for _, value in likelihoods), *ones,
    )  # fmt: skip


def marginals(table):
    return [table.sum(tuple(j for j in range(table.ndim) if j != i)) / table.sum() for i in range(table.ndim)]


def test_every_marginal_is_that_of_enumeration():
    """Without evidence, with a state and a likelihood, two queries at once, through a UAI file."""
    factors = network()
    tree = CliqueTree(factors)
    whole = joint(factors)
    found = tree.query()
    for i, expected in enumerate(marginals(whole)):
        np.testing.assert_allclose(found[i], expected, atol=1e-12)
    assert found.log_evidence == pytest.approx(np.log(whole.sum()))
    likelihoods = np.array([[0.0, 1.0, 0.0], [0.2, 0.3, 0.9]])
    both = tree.query({1: likelihoods, 4: 0}, targets=[0, 2, 3])
    for row in range(2):
        expected = marginals(joint(factors, [(1, likelihoods[row]), (4, np.array([1.0, 0.0]))]))
        for i in both:
            np.testing.assert_allclose(both[i][row], expected[i], atol=1e-12)


def test_the_most_probable_states_are_those_of_enumeration(tmp_path):
    factors = network(1)
    write_uai(factors, tmp_path / "network.uai")
    found = CliqueTree(read_uai(tmp_path / "network.uai")).most_probable()
    whole = joint(factors)
    best = np.unravel_index(whole.argmax(), whole.shape)
    assert [found[i] for i in range(factors.size)] == list(best)
    assert found.log_evidence == pytest.approx(np.log(whole.max()))


def factor(variables, values, **labels):
    """What pgmpy's factors show."""
    states = {name: labels.get(name, list(range(k))) for name, k in zip(variables, np.shape(values), strict=True)}
    return SimpleNamespace(variables=list(variables), values=np.asarray(values), state_names=states)


def test_models_of_pgmpy_by_what_they_show():
    rain = factor(["rain"], [0.8, 0.2], rain=["no", "yes"])
    wet = factor(["wet", "rain"], [[0.9, 0.1], [0.1, 0.9]], rain=["no", "yes"])
    cpds = [SimpleNamespace(variable=each.variables[0], to_factor=lambda each=each: each) for each in (rain, wet)]
    bayes = SimpleNamespace(get_cpds=lambda: cpds, nodes=lambda: ["rain", "wet"])
    for model in (bayes, SimpleNamespace(get_factors=lambda: [rain, wet])):
        factors = from_pgmpy(model)
        assert factors.names == ("rain", "wet")
        tree = CliqueTree(factors)
        for seen in ({"rain": "yes"}, {"rain": np.array([0.0, 1.0])}):
            assert np.allclose(tree.query(seen)["wet"], [0.1, 0.9])
        assert np.allclose(tree.query({"rain": ["yes", "no"]})["wet"], [[0.1, 0.9], [0.9, 0.1]])
        assert np.allclose(DiscreteGraph.from_factors(factors).query({"wet": 1})["rain"], [0.08 / 0.26, 0.18 / 0.26])
    with pytest.raises(InputError, match="is 'maybe'; expected one of 'no', 'yes'"):
        tree.query({"rain": "maybe"})
    with pytest.raises(InputError, match="'wet' has no conditional probabilities"):
        from_pgmpy(SimpleNamespace(get_cpds=lambda: cpds[:1], nodes=lambda: ["rain", "wet"]))
    with pytest.raises(InputError, match="disagree on its states"):
        from_pgmpy(SimpleNamespace(get_factors=lambda: [rain, factor(["rain"], [0.5, 0.5])]))
    with pytest.raises(KindError, match="model is an int; expected a discrete model of pgmpy"):
        from_pgmpy(3)


def test_bad_input():
    with pytest.raises(KindError, match=r"expected mm\.graphs\.Factors"):
        CliqueTree([("a", "b")])
    pairs = [(i, j) for i in range(30) for j in range(i)]
    with pytest.raises(InputError, match=r"1\.1e\+09 joint states: exact answers would take 8 GiB"):
        CliqueTree(Factors([2] * 30, tuple(pairs), tuple(np.ones((2, 2)) for _ in pairs)))
    with pytest.raises(InputError, match="expected 2 different ones"):
        Factors([2, 2], (), (), ("a", "a"))
    with pytest.raises(InputError, match="contradicts itself"):
        CliqueTree(Factors([2, 2], ((0, 1),), (np.eye(2),))).query({0: 0, 1: 1})


def test_a_clique_of_many_joint_states_needs_no_matrix_of_them():
    """Two tables of 2¹⁶ states share four variables: as a matrix of all against all these would be 32 GiB."""
    rng = np.random.default_rng(0)
    first, second = rng.random([2] * 16), rng.random([2] * 16)
    factors = Factors([2] * 28, (tuple(range(16)), tuple(range(12, 28))), (first, second))
    found = CliqueTree(factors).query({27: 1})
    expected = first.sum(tuple(range(12)))[..., None] * second[..., 1].sum(tuple(range(4, 15)))[..., None]
    for i in range(12, 16):
        marginal = expected.sum(tuple(j for j in range(5) if j != i - 12))
        np.testing.assert_allclose(found[i], marginal / marginal.sum(), rtol=1e-12)
    assert found.log_evidence == pytest.approx(np.log(expected.sum()), rel=1e-12)


def test_many_queries_are_answered_some_at_a_time(monkeypatch):
    factors = network(3)
    tree = CliqueTree(factors)
    evidence = {1: np.arange(7) % 3, 2: np.array([0.5, 1.0])}
    whole, best = tree.query(evidence), tree.most_probable(evidence)
    monkeypatch.setattr(clique_tree, "STATES_AT_ONCE", 2 * tree._forest.size)
    for name in factors.names:
        np.testing.assert_allclose(tree.query(evidence)[name], whole[name], rtol=1e-12)
        np.testing.assert_array_equal(tree.most_probable(evidence)[name], best[name])
    np.testing.assert_allclose(tree.query(evidence).log_evidence, whole.log_evidence, rtol=1e-12)


def test_ties_are_decoded_together_and_constants_are_kept():
    factors = Factors([2, 2, 2], ((0, 1), (1, 2), ()), (np.eye(2), 1 - np.eye(2), np.array(3.0)))
    best = CliqueTree(factors).most_probable()
    assert best[0] == best[1] != best[2]
    assert CliqueTree(factors).query().log_evidence == pytest.approx(np.log(6))


def hub(leaves, seen, prior=(0.1, 0.9), wrong=1e-5):
    """A centre and noisy copies of it, of which all were seen: the logarithms of both states of the centre."""
    table = np.array([[1 - wrong, wrong], [wrong, 1 - wrong]])
    scopes = ((0,), *((0, i) for i in range(1, leaves + 1)))
    factors = Factors([2] * (leaves + 1), scopes, (np.array(prior), *[table] * leaves))
    logs = np.log(prior) + np.log(table[:, seen]).sum(axis=1)
    return factors, dict(enumerate(seen.tolist(), start=1)), logs


@pytest.mark.parametrize("leaves", [150, 600])
def test_what_many_leaves_say_against_each_other_cancels(leaves):
    """In turns, and one half after the other: in between there are values of e⁻³⁴⁰⁰ beside one."""
    for seen in (np.arange(leaves) % 2, np.repeat([0, 1], leaves // 2)):
        factors, evidence, logs = hub(leaves, seen)
        tree = CliqueTree(factors)
        found = tree.query(evidence, targets=[0])
        np.testing.assert_allclose(found[0], [0.1, 0.9], rtol=1e-9)
        assert found.log_evidence == pytest.approx(np.logaddexp(*logs), rel=1e-12)
        best = tree.most_probable(evidence)
        assert best[0] == 1
        assert best.log_evidence == pytest.approx(logs[1], rel=1e-12)


def test_messages_between_cliques_keep_what_is_next_to_impossible():
    """Two hubs that are certain of opposite states and must agree, and a third variable that joins their cliques."""
    (first, _, _), (second, _, _) = hub(100, np.zeros(100, int)), hub(100, np.ones(100, int), (1, 1))
    n = first.size
    scopes = (*first.scopes, *(tuple(i + n for i in scope) for scope in second.scopes), (0, n), (0, n, 2 * n))
    third = np.array([[[0.3, 0.7]] * 2, [[0.6, 0.4]] * 2])
    factors = Factors([2] * (2 * n + 1), scopes, (*first.tables, *second.tables, np.eye(2), third))
    tree = CliqueTree(factors)
    evidence = {**dict.fromkeys(range(1, n), 0), **dict.fromkeys(range(n + 1, 2 * n), 1)}
    both = {**evidence, 1: np.array([0, 1])}
    found = tree.query(both)
    odds = np.array([1.0, (1e-5 / (1 - 1e-5)) ** -2])
    for row, more in enumerate(odds):
        expected = np.array([0.1, 0.9 * more]) / (0.1 + 0.9 * more)
        for i in (0, n):
            np.testing.assert_allclose(found[i][row], expected, rtol=1e-9)
        np.testing.assert_allclose(found[2 * n][row], expected @ [[0.3, 0.7], [0.6, 0.4]], rtol=1e-9)
    assert [int(state) for state in tree.most_probable(both)[0]] == [1, 1]


def bayesian(seed):
    """Seven variables, each with tables given up to two before it, and one table that is nobody's law."""
    rng = np.random.default_rng(seed)
    states = np.resize([2, 3], 7)
    scopes = [(*rng.choice(i, min(i, 2), replace=False).tolist(), i) for i in range(7)]
    tables = [rng.dirichlet(np.ones(states[scope[-1]]), states[list(scope[:-1])]) for scope in scopes]
    return Factors(states, (*scopes, (0, 2)), (*tables, rng.random((2, 2)) + 0.1))


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_of_what_targets_need_says_what_enumeration_says(monkeypatch, seed):
    """States seen, likelihoods, several queries, targets that are seen, impossible states, variables in no factor."""
    factors = bayesian(seed)
    factors = Factors([*factors.cardinalities, 2], factors.scopes, factors.tables)
    tree = CliqueTree(factors)
    monkeypatch.setattr(clique_tree, "STATES_PER_VARIABLE", 0)
    soft, state = np.array([[0.2, 0.3], [0.0, 0.7]]), np.array([0.0, 0.4, 0.0])
    asked = []
    plain = CliqueTree._marginals
    monkeypatch.setattr(CliqueTree, "_marginals", lambda self, *given: asked.append(self) or plain(self, *given))
    one = np.array([0.0, 1.0])
    for evidence, rows, targets in (
        ({}, [[]], [3]),
        ({3: state}, [[(3, state)]], [1, 3]),
        ({4: soft, 1: 1}, [[(4, each), (1, np.eye(3)[1])] for each in soft], [0, 5]),
        ({2: 1, 7: one}, [[(2, one), (7, one)]], None),
    ):
        found = tree.query(evidence, targets=targets)
        for row, likelihoods in enumerate(rows):
            whole = joint(factors, likelihoods)
            for i in targets or range(8):
                np.testing.assert_allclose(np.atleast_2d(found[i])[row], marginals(whole)[i], atol=1e-12)
            expected = np.log(whole.sum())
            assert np.atleast_1d(found.log_evidence)[row] == pytest.approx(expected, abs=1e-12)
    assert len(asked) == 4
    assert tree not in asked
    assert asked[0].factors.size < 6
    zero = Factors([2, 2, 2], ((0, 1), (1, 2)), (np.eye(2), np.full((2, 2), 0.5)))
    with pytest.raises(InputError, match="contradicts itself"):
        CliqueTree(zero).query({0: 0, 1: 1}, targets=[0])


def test_what_is_large_is_answered_at_the_price_of_what_is_asked(monkeypatch):
    """Thirteen causes of one effect, which is not seen, or of which all causes but two are seen."""
    rng = np.random.default_rng(0)
    effect = rng.dirichlet(np.ones(2), [2] * 13)
    factors = Factors([2] * 14, (*((i,) for i in range(13)), tuple(range(14))), (*rng.dirichlet([1, 1], 13), effect))
    tree = CliqueTree(factors)
    monkeypatch.setattr(clique_tree, "STATES_PER_VARIABLE", 100)
    sizes = []
    inwards = CliqueTree._inwards
    monkeypatch.setattr(
        CliqueTree, "_inwards", lambda self, *given: sizes.append(self._forest.size) or inwards(self, *given)
    )
    np.testing.assert_allclose(tree.query(targets=[4])[4], factors.tables[4], rtol=1e-12)
    seen = {i: i % 2 for i in range(2, 13)}
    found = tree.query(seen, targets=[13])[13]
    expected = np.einsum("i,j,ijk->k", *factors.tables[:2], effect[(slice(None), slice(None), *seen.values())])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert max(sizes) <= 8


SMALL = {"asia": {"xray": "yes", "dysp": "yes"}, "alarm": {"BP": "LOW", "HRBP": "HIGH", "MINVOL": "ZERO"}}
LARGE = ["child", "insurance", "hailfinder", "water", "andes", "pigs", "win95pts", "hepar2", "sachs", "survey"]
HUGE = ["pathfinder", "mildew", "barley", "diabetes", "munin2", "munin3", "munin4"]


def bundled(name):
    """A network that comes with pgmpy, read from its own files."""
    pytest.importorskip("pgmpy", reason="pgmpy is not installed here: no networks to read")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pgmpy's own, when it loads its parts
        from pgmpy.inference import VariableElimination
        from pgmpy.utils import get_example_model

        return (model := get_example_model(name)), VariableElimination(model)


def agree(name, evidence, targets):
    """Marginals and those of pgmpy's elimination, variable by variable."""
    model, exact = bundled(name)
    factors = from_pgmpy(model)
    ours = CliqueTree(factors).query(evidence)
    for variable in targets or set(model.nodes()) - set(evidence):
        theirs = exact.query([variable], evidence, show_progress=False)
        order = [theirs.state_names[variable].index(label) for label in factors.labels[variable]]
        np.testing.assert_allclose(ours[variable], np.asarray(theirs.values)[order], atol=1e-9)


@pytest.mark.parametrize("name", SMALL)
def test_networks_of_pgmpy_have_its_exact_answers(name):
    agree(name, SMALL[name], None)


def relevant(factors, names):
    """The tables of some variables of a Bayesian network and of their ancestors, each with its own variable first."""
    parents = {scope[0]: scope[1:] for scope in factors.scopes}
    kept, waiting = set(), [factors.names.index(name) for name in names]
    while waiting:
        if (node := waiting.pop()) not in kept:
            kept.add(node)
            waiting += parents[node]
    order = sorted(kept)
    chosen = [(scope, table) for scope, table in zip(factors.scopes, factors.tables, strict=True) if scope[0] in kept]
    scopes = tuple(tuple(order.index(i) for i in scope) for scope, _ in chosen)
    tables = tuple(table for _, table in chosen)
    return Factors(factors.cardinalities[order], scopes, tables, tuple(factors.names[i] for i in order), factors.labels)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LARGE, *HUGE])
def test_large_networks_of_pgmpy_have_its_exact_answers(name):
    """Two variables given what depends on most.

    Tables in these files do not quite sum to one, and pgmpy leaves out those of variables on which nothing that was
    asked for depends: without these to the last digit, with them to 1e-6.
    """
    model, exact = bundled(name)
    factors = from_pgmpy(model)
    inner = {i for scope in factors.scopes for i in scope[1:]}
    leaves = [name for i, name in enumerate(factors.names) if i not in inner]
    last = max(leaves, key=lambda leaf: relevant(factors, [leaf]).size)
    few = relevant(factors, [last])
    seen = CliqueTree(few).query(targets=[last])[last]
    evidence = {last: factors.labels[last][int(np.argmax(seen))]}
    part, whole = (CliqueTree(each).query(evidence) for each in (few, factors))
    for target in (few.names[0], few.names[few.size // 2]):
        if target == last:
            continue
        theirs = exact.query([target], evidence, show_progress=False)
        order = [theirs.state_names[target].index(label) for label in factors.labels[target]]
        np.testing.assert_allclose(part[target], np.asarray(theirs.values)[order], atol=1e-9)
        np.testing.assert_allclose(whole[target], np.asarray(theirs.values)[order], atol=1e-6)


@pytest.mark.parametrize("engine", [CliqueTree, FactorGraph])
def test_likelihoods_may_come_by_label_in_any_order(engine):
    table = np.array([[0.3, 0.1], [0.05, 0.25], [0.1, 0.2]])
    labels = {"k": ("u", "v", "w"), "l": ("no", "yes")}
    model = engine(Factors([3, 2], ((0, 1),), (table,), ("k", "l"), labels=labels))
    truth = np.array([0.2, 0.5, 0.3]) @ table
    by_label = {"w": 3, "u": 2, "v": 5}
    for form in (by_label, pd.Series(by_label), [0.2, 0.5, 0.3], np.array([2.0, 5.0, 3.0])):
        np.testing.assert_allclose(model.query({"k": form}, ["l"])["l"], truth / truth.sum(), rtol=1e-6)
    with pytest.raises(InputError, match=r"has likelihoods of 'u', 'zz'; expected those of 'u', 'v', 'w'"):
        model.query({"k": {"u": 1, "zz": 1}})
    with pytest.raises(InputError, match=r"is 'zz'; expected one of 'u', 'v', 'w', or a likelihood for each of these"):
        model.query({"k": "zz"})
    with pytest.raises(InputError, match=r"is a function; expected one of 'u'"):
        model.query({"k": lambda label: 1.0})
    with pytest.raises(InputError, match=r"expected states from 0 to 2, or likelihoods as floats"):
        model.query({"k": np.array([2, 5, 3])})


@pytest.mark.parametrize("value", ["v", {"v": 1.0}, lambda state: 1.0])
def test_what_is_no_state_of_a_discrete_graph_is_refused_with_what_is(value):
    model = DiscreteGraph([("k", "l")], np.ones((2, 2)))
    with pytest.raises(KindError, match=r"evidence\['k'\] is a .*; expected a state from 0 to 1, likelihoods \(2,\)"):
        model.query({"k": value})
