"""Numbers in bins: closed forms, slow loops and maximum likelihood by enumeration as judges."""

import networkx
import numpy as np
import pytest
import scipy.optimize

import meanmap as mm
from meanmap.core.errors import InputError, KindError, ParameterError
from meanmap.graphs import Flooding, Graph, Residual, Sequential, Splash
from meanmap_papers import rivals
from meanmap_papers.rivals.appearance import edge_appearance
from meanmap_papers.rivals.bins import Bins, Smoothing, blurring
from meanmap_papers.rivals.fitting import enumerated

TRIANGLE = [(0, 1), (1, 2), (2, 0), (2, 3)]
NAMES = ("ab", "bc", "ca", "cd")


def levels(seed=0, m=400):
    """Four variables of three levels each, with a relation for each edge: one sample of all of them together."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, size=(m, 4))
    x[:, 1] = np.where(rng.random(m) < 0.5, x[:, 0], x[:, 1])
    x[:, 2] = np.where(rng.random(m) < 0.4, x[:, 1], x[:, 2])
    x[:, 3] = np.where(rng.random(m) < 0.4, (x[:, 0] + x[:, 2]) % 3, x[:, 3])
    x = x.astype(float)
    return x, {name: (x[:, a], x[:, b]) for name, (a, b) in zip(NAMES, TRIANGLE, strict=True)}


def fitted(pairs, **options):
    options = {"smoothing": 0.1, "schedule": Flooding(500)} | options
    return rivals.DiscretizedField(TRIANGLE, relations=NAMES, variables="abcd", **options).fit(pairs)


@pytest.mark.parametrize("reweighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_without_evidence_beliefs_are_the_counts_on_cycles_too(reweighted):
    x, pairs = levels()
    field = fitted(pairs, reweighted=reweighted)
    beliefs = field.query(tolerance=1e-10)
    for i in range(4):
        expected = list(field.marginals.values())[i]
        np.testing.assert_allclose(beliefs[i].weights, expected, atol=1e-7)
        np.testing.assert_allclose(expected, np.bincount(x[:, i].astype(int)) / len(x), atol=5e-3)


def slow_reweighted(field, own, rho, sweeps=400):
    """Wainwright, Jaakkola & Willsky (2003), message by message, damped in the messages as they are kept."""
    edges = dict(zip(map(tuple, np.stack([field.graph.sources, field.graph.targets], 1)), range(8), strict=True))
    kept = {edge: np.ones(3) for edge in edges}
    for _ in range(sweeps):
        new = {}
        for (t, s), e in edges.items():
            product = own[t].copy()
            for u, v in edges:
                if v == t and u != s:
                    product = product * kept[u, t]
            product = product * kept[s, t] ** (1 - 1 / rho[e])
            message = (product @ field.ratio[field.template[e]]) ** rho[e]
            new[t, s] = 0.7 * message / message.max() + 0.3 * kept[t, s]
        kept = new
    beliefs = [own[s] * np.prod([kept[edge] for edge in edges if edge[1] == s], axis=0) for s in range(4)]
    return [belief / belief.sum() for belief in beliefs]


@pytest.mark.parametrize(
    "schedule",
    [
        Residual(500),
        pytest.param(Flooding(500), marks=pytest.mark.slow),
        pytest.param(Sequential(500), marks=pytest.mark.slow),
        pytest.param(Splash(500, splash_size=3), marks=pytest.mark.slow),
    ],
)
def test_tree_reweighted_beliefs_are_those_of_a_slow_loop(schedule):
    _, pairs = levels()
    field = fitted(pairs, reweighted=True, schedule=schedule)
    tilt = np.array([1.0, 0.3, 0.1])
    found = field.query({0: lambda x: np.array([1.0, 0.3, 0.1])[np.round(x).astype(int)]}, tolerance=1e-12)
    own = [each.copy() for each in field.marginals.values()]
    own[0] *= tilt
    rho = np.tile([2 / 3, 2 / 3, 2 / 3, 1.0], 2)
    for belief, expected in zip(found.values(), slow_reweighted(field, own, rho), strict=True):
        np.testing.assert_allclose(belief.weights, expected, atol=1e-8)


def test_edges_appear_as_often_as_in_all_spanning_trees():
    graph = Graph.of(networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(2, 4)), nodes=range(9))
    trees = list(networkx.SpanningTreeIterator(graph.subgraph(range(8)).to_networkx()))
    counts = [np.mean([tree.has_edge(a, b) for tree in trees]) for a, b in graph.edges]
    np.testing.assert_allclose(edge_appearance(graph), counts, atol=1e-12)
    assert edge_appearance(mm.graphs.grid(12, 12)[0]).sum() == pytest.approx(143)


def joint_of(graph, tables, own):
    """The table of all states by one broadcast product."""
    letters = "ijkl"
    script = ",".join(letters[s] + letters[t] for s, t in graph.edges) + "," + ",".join(letters)
    joint = np.einsum(f"{script}->{letters}", *tables, *own)
    return joint / joint.sum()


def test_proportional_fitting_is_maximum_likelihood():
    """Against a general optimiser on the enumerated likelihood of the smoothed counts."""
    _, pairs = levels()
    field, closed = fitted(pairs, learning="likelihood"), fitted(pairs)
    assert field.learning_report.converged
    targets = [closed._probabilities(2 * e) for e in range(4)]
    own = list(field.marginals.values())

    def log_likelihood(tables):
        joint = joint_of(field.graph, tables, own)
        model = enumerated(field.graph, np.full(4, 3), np.array(own), np.array(tables))
        return (
            sum((target * np.log(table)).sum() for target, table in zip(targets, tables, strict=True))
            - np.log(np.einsum("ij,jk,ki,kl,i,j,k,l->", *tables, *own)),
            model,
            joint,
        )

    def objective(theta):
        value, model, _ = log_likelihood(list(np.exp(theta.reshape(4, 3, 3))))
        return -value, (model - np.array(targets)).ravel()

    best = scipy.optimize.minimize(objective, np.zeros(36), jac=True, tol=1e-14).x.reshape(4, 3, 3)
    ours = [field.ratio[field.template[e]] for e in range(4)]
    np.testing.assert_allclose(joint_of(field.graph, ours, own), joint_of(field.graph, list(np.exp(best)), own),
                               atol=2e-5)  # fmt: skip
    moments = [closed.ratio[closed.template[e]] for e in range(4)]
    assert log_likelihood(ours)[0] > log_likelihood(moments)[0] + 1e-4


def test_fitting_with_loopy_marginals_stays_at_the_closed_form(monkeypatch):
    """Pseudo-moment matching: the closed form is a fixed point (Wainwright, Jaakkola & Willsky 2003)."""
    monkeypatch.setattr("meanmap_papers.rivals.fitting.MOST_STATES", 1)
    _, pairs = levels()
    field = fitted(pairs, learning="likelihood")
    assert field.learning_report.converged
    assert field.learning_report.steps == 1
    assert "loopy" in field.learning_report.notes[0]


def chain(m, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=m)
    return x, 0.8 * x + 0.6 * rng.normal(size=m)


def test_errors_fall_with_the_bins_as_they_should():
    """Between two values seen two steps apart: a normal density, mean .8 (a + b) / 1.64, variance .36 / 1.64."""
    pairs, seen = chain(200_000), {0: 0.55, 2: -1.3}
    mean, variance = 0.8 * (0.55 - 1.3) / 1.64, 0.36 / 1.64
    grid = np.linspace(-4, 4, 2001)
    exact = np.exp(-((grid - mean) ** 2) / 2 / variance) / np.sqrt(2 * np.pi * variance)
    first, second = [], []
    numbers = (8, 32)
    for bins in numbers:
        field = rivals.DiscretizedField([(0, 1), (1, 2)], bins=bins, equal="width", smoothing=1e-9).fit(pairs)
        belief = field.query(seen)[1]
        first.append(abs(belief.mean() - mean))
        second.append(np.abs(belief.density(grid) - exact).sum() * (grid[1] - grid[0]))
    slopes = [np.polyfit(np.log(numbers), np.log(error), 1)[0] for error in (first, second)]
    assert slopes[0] < -1.5, first
    assert -1.4 < slopes[1] < -0.8, second
    assert first[-1] < 0.01


def test_bins_are_chosen_fine_for_many_pairs_and_coarse_for_few():
    few, many = (rivals.DiscretizedField([(0, 1)]).fit(chain(m)) for m in (60, 4000))
    assert few.bins["x"].number < many.bins["x"].number
    worse = rivals.DiscretizedField([(0, 1)], bins=4).fit(chain(4000))
    assert worse.score < many.score - 0.05
    # The score is a mean log density: that of the true one is −log(.6 √(2πe)).
    assert abs(many.score + np.log(0.6 * np.sqrt(2 * np.pi * np.e))) < 0.05


def test_values_seen_often_are_levels():
    x = np.random.default_rng(0).choice([0.0, 0.5, 2.0], 100)
    field = rivals.DiscretizedField([(0, 1)]).fit((x, x))
    assert field.bins["x"].centres.tolist() == [0.0, 0.5, 2.0]
    belief = field.query({0: 2.0})[1]
    assert belief.points[:, 0].tolist() == [0.0, 0.5, 2.0]
    assert belief.weights[2] > 0.9


@pytest.mark.parametrize("equal", ["mass", "width"])
def test_a_bin_knows_its_mean_and_variance(equal):
    values = np.random.default_rng(1).beta(2.0, 3.0, size=500)
    bins = Bins.of(values, 6, equal, "x")
    at = bins.index(values)
    for i in range(6):
        assert bins.centres[i] == pytest.approx(values[at == i].mean())
        assert bins.spreads[i] == pytest.approx(values[at == i].var())
    np.testing.assert_allclose(bins.average(bins.points().ravel() ** 3),
                               np.diff(bins.edges**4) / 4 / np.diff(bins.edges))  # fmt: skip


def test_smoothing_keeps_the_sum_and_the_sides():
    counts = np.random.default_rng(2).integers(0, 9, size=(5, 7)).astype(float)
    np.testing.assert_allclose(blurring(6, 1.5).sum(axis=0), 1)
    found = Smoothing(0.5, 1.0)(counts)
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
    plain = Smoothing(1e-12)(counts)
    np.testing.assert_allclose(plain, counts / counts.sum(), atol=1e-9)


def test_only_evidence_that_is_impossible_is_refused():
    x = np.tile([0.0, 1.0], 50)
    field = rivals.DiscretizedField([(0, 1), (1, 2)], smoothing=1e-300)
    fitted = field.fit((x, x), likelihood=lambda seen, points: (seen[:, None] == points).astype(float))
    # Next to nothing twice, and yet all that is possible: 1e-300 squared is not zero.
    beliefs = fitted.query({0: 1.0, 2: 1.0, 1: lambda x: (x == 0).astype(float)})
    assert float(beliefs[1].mean()) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InputError, match="contradicts itself: no bin of 0"):
        fitted.query({1: lambda x: (x == 0).astype(float)}, observed=[np.nan, 1.0, np.nan])


def test_what_is_refused():
    with pytest.raises(ParameterError, match="bins is 1; expected at least 2"):
        rivals.DiscretizedField([(0, 1)], bins=1)
    with pytest.raises(ParameterError, match="equal is 'size'"):
        rivals.DiscretizedField([(0, 1)], equal="size")
    with pytest.raises(ParameterError, match="learning is 'guess'"):
        rivals.DiscretizedField([(0, 1)], learning="guess")
    with pytest.raises(InputError, match="all points of pairs are equal"):
        rivals.DiscretizedField([(0, 1)]).fit((np.ones(9), np.ones(9)))
    with pytest.raises(InputError, match="there is one bin"):
        Bins.of(np.ones(9), 4, "mass", "x")
    with pytest.raises(InputError, match="are one bin"):
        rivals.DiscretizedField([(0, 1)], bins=2, equal="mass").fit((np.r_[np.zeros(99), 1.0, 2, 3], np.zeros(102)))
    with pytest.raises(KindError, match="not numbers"):
        rivals.DiscretizedField([(0, 1)]).fit((list("abcabcab"), list("abcabcab")))
    with pytest.raises(KindError, match="2 columns"):
        rivals.DiscretizedField([(0, 1)]).fit((np.eye(2)[[0, 1] * 5], np.eye(2)[[1, 0] * 5]))
