"""Gaussian belief propagation against dense inverses: exact where theory says so, flagged where not."""

import networkx
import numpy as np
import pytest
import scipy.sparse

from meanmap import bp
from meanmap.bp.engine.algebra import SUM
from meanmap.bp.normal import gaussian
from meanmap.bp.normal.gaussian import is_positive_definite
from meanmap.core.errors import InputError, KindError, NonFiniteError, ShapeError
from meanmap.graphs import Flooding, Graph, Residual, Sequential, Splash, TwoPass, grid


@pytest.mark.parametrize("slots", [1, 3, 20])
def test_sums_over_all_slots_but_one(slots):
    rng = np.random.default_rng(0)
    own, incoming = rng.normal(size=(2, 1, 2)), rng.normal(size=(2, slots, 1, 2))
    expected = own[:, None] + np.stack([np.delete(incoming, j, axis=1).sum(axis=1) for j in range(slots)], axis=1)
    np.testing.assert_allclose(SUM.all_but_one(own, incoming), expected, atol=1e-5)


def precision_on(graph, seed, margin=0.3):
    """A diagonally dominant precision with signs at random; a small margin makes it barely so."""
    rng = np.random.default_rng(seed)
    couplings = rng.uniform(0.5, 1.5, len(graph.edges)) * rng.choice([-1, 1], len(graph.edges))
    both = np.concatenate([couplings, couplings])
    matrix = scipy.sparse.coo_array((both, (graph.sources, graph.targets)), shape=(graph.size, graph.size)).tocsr()
    scale = np.exp(rng.normal(size=graph.size))  # units differ from variable to variable
    diagonal = abs(matrix).sum(axis=1) + margin
    units = scipy.sparse.diags_array(scale)
    return units @ (matrix + scipy.sparse.diags_array(diagonal)) @ units, rng.normal(size=graph.size)


def moments(beliefs):
    return np.array([[b.mean(), b.var()] for b in beliefs.values()]).T


FOREST = Graph.of(networkx.random_labeled_tree(12, seed=1))
CYCLES = Graph.of(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(3, 4)))


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "schedule",
    [
        TwoPass(),
        pytest.param(Residual(), marks=SLOW),
        pytest.param(Flooding(), marks=SLOW),
        pytest.param(Sequential(), marks=SLOW),
        pytest.param(Splash(splash_size=5), marks=SLOW),
    ],
)
def test_means_and_variances_are_exact_on_a_tree(schedule):
    matrix, h = precision_on(FOREST, 0)
    beliefs = bp.GaussianGraph(matrix, h).query(schedule=schedule, tolerance=1e-12)
    covariance = np.linalg.inv(matrix.toarray())
    np.testing.assert_allclose(moments(beliefs), [covariance @ h, np.diag(covariance)], rtol=1e-8, atol=1e-10)
    assert beliefs.report.converged


@pytest.mark.parametrize(
    "schedule",
    [
        Flooding(300),
        pytest.param(Sequential(300), marks=SLOW),
        pytest.param(Residual(300), marks=SLOW),
        pytest.param(Splash(300, splash_size=5), marks=SLOW),
    ],
)
def test_means_are_exact_on_walk_summable_cycles(schedule):
    matrix, h = precision_on(CYCLES, 1)
    graph = bp.GaussianGraph(matrix, h)
    assert graph.is_walk_summable
    beliefs = graph.query(schedule=schedule, tolerance=1e-12)
    assert beliefs.report.converged
    assert "walk-summable" in beliefs.report.notes[-1]
    assert beliefs.report.measures["relative residual of J x = h"] < 1e-10
    means, variances = moments(beliefs)
    exact = np.linalg.inv(matrix.toarray())
    np.testing.assert_allclose(means, exact @ h, rtol=1e-8, atol=1e-10)
    assert 1e-4 < np.max(np.abs(variances / np.diag(exact) - 1)) < 0.5  # walks round cycles are left out


def test_the_spectral_radius_is_the_dense_one_on_small_and_large_graphs():
    for size in (3, 16):  # 256 variables are found by iteration
        matrix, _ = precision_on(grid(size, size)[0], 2)
        dense = matrix.toarray()
        scale = 1 / np.sqrt(np.diag(dense))
        walks = np.abs(np.eye(len(dense)) - dense * scale * scale[:, None])
        assert abs(bp.spectral_radius(matrix) - np.abs(np.linalg.eigvals(walks)).max()) < 1e-6
    assert bp.spectral_radius(np.diag([1.0, 2.0])) == 0
    assert bp.spectral_radius(np.diag([1.0, -2.0])) == np.inf


def test_a_long_chain_asks_for_no_eigenvalues(monkeypatch):
    """Along it they lie too close together to be found by products: two passes need none."""

    def refused(*_, **__):
        raise AssertionError("eigenvalues of a chain by iteration")

    monkeypatch.setattr(gaussian, "eigsh", refused)
    n = 3000
    matrix = scipy.sparse.diags_array([-np.ones(n - 1), np.full(n, 2.001), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    right = np.random.default_rng(0).normal(size=n)
    graph = bp.GaussianGraph(matrix, right)
    repr(graph)
    expected = scipy.sparse.linalg.spsolve(matrix.tocsc(), right)
    beliefs = graph.query(targets=[0, 1500])
    np.testing.assert_allclose([beliefs[0].mean(), beliefs[1500].mean()], expected[[0, 1500]], rtol=1e-8)
    np.testing.assert_allclose(graph.spectral_radius, 2 * np.cos(np.pi / (n + 1)) / 2.001, rtol=1e-10)
    with pytest.raises(InputError, match="not positive definite"):
        bp.GaussianGraph(matrix - 0.002 * scipy.sparse.eye_array(n))


def frustrated(coupling):
    """Four variables, all joined: positive definite for coupling < 1, walk-summable for coupling < 1/3."""
    return (1 - coupling) * np.eye(4) + coupling


def test_what_is_not_walk_summable_is_flagged_and_exact_where_it_settles():
    h = np.array([1.0, 0.5, -1.0, 0.2])
    graph = bp.GaussianGraph(frustrated(0.35), h)
    assert not graph.is_walk_summable
    assert graph.spectral_radius == pytest.approx(1.05)
    wild, calm = graph.query(), graph.query(damping=0.5, schedule=Flooding(500))
    assert not wild.report.converged
    assert wild.report.measures["relative residual of J x = h"] > 0.1
    assert "not walk-summable" in wild.report.notes[-1]
    assert calm.report.converged
    np.testing.assert_allclose(moments(calm)[0], np.linalg.solve(frustrated(0.35), h), rtol=1e-5)


@pytest.mark.parametrize("coupling", [0.5, 0.8])  # a precision of exactly zero, and negative ones
def test_a_belief_without_precision_is_refused_not_made_up(coupling):
    beliefs = bp.GaussianGraph(frustrated(coupling), np.ones(4)).query()
    assert not beliefs.report.converged
    assert beliefs.report.counts == {"improper beliefs": 4}
    assert "no proper beliefs" in beliefs.report.status
    assert beliefs.report.measures["relative residual of J x = h"] > 0.1
    with pytest.raises(InputError, match="no belief about 2"):
        beliefs[2]


def test_evidence_is_the_conditional_gaussian():
    matrix, h = precision_on(FOREST, 3)
    dense = matrix.toarray()
    seen, free = [2, 5], [i for i in range(12) if i not in (2, 5)]
    values = np.array([[0.7, -1.0], [0.1, 2.0]])
    beliefs = bp.GaussianGraph(matrix, h).query({2: values[0], 5: values[1]})
    covariance = np.linalg.inv(dense[np.ix_(free, free)])
    expected = covariance @ (h[free][:, None] - dense[np.ix_(free, seen)] @ values)
    np.testing.assert_allclose(np.stack([beliefs[i].mean() for i in free]), expected, rtol=1e-9)
    np.testing.assert_allclose([beliefs[i].var()[0] for i in free], np.diag(covariance), rtol=1e-9)
    np.testing.assert_allclose(beliefs[2].mean(), values[0])


def test_moments_of_neighbours_are_kept_on_any_graph():
    for graph in (FOREST, CYCLES):
        rng = np.random.default_rng(0)
        mean, variance = rng.normal(size=graph.size), np.exp(rng.normal(size=graph.size))
        first, second = graph.edges.T
        covariance = 0.2 * rng.uniform(-1, 1, len(graph.edges)) * np.sqrt(variance[first] * variance[second])
        field = bp.GaussianGraph.from_moments(graph, mean, variance, covariance)
        np.testing.assert_allclose(moments(field.query(tolerance=1e-12)), [mean, variance], rtol=1e-8)
    # On the tree they are those of the joint distribution, too.
    field = bp.GaussianGraph.from_moments(FOREST, mean[:12], variance[:12], 0.3 * np.sqrt(variance[:12]).min() ** 2 *
                                          np.ones(11))  # fmt: skip
    joint = np.linalg.inv(field.precision.toarray())
    np.testing.assert_allclose(np.diag(joint), variance[:12], rtol=1e-9)
    first, second = FOREST.edges.T
    np.testing.assert_allclose(joint[first, second], 0.3 * variance[:12].min(), rtol=1e-9)


def test_solving_a_sparse_system():
    graph = grid(30, 30)[0]
    matrix, _ = precision_on(graph, 4, margin=0.05)
    right = np.random.default_rng(0).normal(size=(900, 2))
    found = bp.solve(matrix, right)
    expected = scipy.sparse.linalg.spsolve(matrix.tocsc(), right)
    np.testing.assert_allclose(found.x, expected, atol=1e-7)
    assert found.report.converged
    assert found.report.measures["spectral radius"] < 1
    ones = bp.solve(np.diag([2.0, 4.0]), [2.0, 4.0])
    np.testing.assert_allclose(ones.x, 1)
    np.testing.assert_allclose(ones.variances, [0.5, 0.25])


def test_units_do_not_matter():
    matrix, h = precision_on(CYCLES, 5)
    scale = scipy.sparse.diags_array(np.geomspace(1e-4, 1e4, 12))
    first, second = bp.solve(matrix, h), bp.solve(scale @ matrix @ scale, scale @ h)
    assert first.report.steps == second.report.steps
    np.testing.assert_allclose(second.x, first.x / scale.diagonal(), rtol=1e-8)


def test_pivots_tell_definite_from_indefinite_large_matrices():
    matrix, _ = precision_on(grid(20, 20)[0], 6)
    least = scipy.sparse.linalg.eigsh(matrix, k=1, sigma=0, which="LM", return_eigenvectors=False)[0]
    eye = scipy.sparse.eye_array(400)
    assert is_positive_definite(matrix - 0.99 * least * eye)
    assert not is_positive_definite(matrix - 1.01 * least * eye)


@pytest.mark.parametrize(
    ("precision", "vector", "error", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], None, InputError, "not positive definite: there is no Gaussian"),
        ([[1.0, 0.5], [0.5, -1.0]], None, InputError, "entry 1 of its diagonal is -1"),
        ([[1.0, 0.5], [0.4, 1.0]], None, InputError, "not symmetric"),
        ([[1.0, 0.5]], None, ShapeError, r"expected \(n, n\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], None, NonFiniteError, "not finite"),
        (np.eye(2), [1.0], ShapeError, r"vector has shape \(1,\)"),
    ],
)
def test_what_is_refused(precision, vector, error, message):
    with pytest.raises(error, match=message):
        bp.GaussianGraph(precision, vector)


def test_evidence_and_moments_that_are_refused():
    graph = bp.GaussianGraph(np.eye(2))
    with pytest.raises(KindError, match="expected a mapping"):
        graph.query([1.0])
    with pytest.raises(ShapeError, match="different numbers"):
        graph.query({0: [1.0, 2.0], 1: [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match="is impossible with its variances"):
        bp.GaussianGraph.from_moments([("a", "b")], [0, 0], [1, 1], [1.0])
    with pytest.raises(ShapeError, match="h has shape"):
        bp.solve(np.eye(2), [1.0])
