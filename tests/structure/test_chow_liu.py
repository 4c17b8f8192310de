"""Trees of the strongest dependences: measures against dense formulas, exact trees, forests, support, bad input."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import networkx
import numpy as np
import pytest
from scipy.stats import binom, pearsonr, rankdata

import meanmap as mm
from meanmap.core.errors import EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.graphs import Graph, write_graphml
from meanmap.learning import kernel_for
from meanmap.structure.chow_liu import _strongest_tree
from meanmap.structure.dependence import SHIFT_AT_100, Dependence
from tests.structure.trees import EDGES, sample


def dense(x, y, measure):
    """The measure of one pair from whole centred Gram matrices."""
    if measure == "ranks":
        x, y = rankdata(x) / len(x), rankdata(y) / len(y)
    n = len(x)
    centre = np.eye(n) - 1 / n
    k, other = (centre @ kernel_for(v)(v) @ centre / n for v in (x, y))
    if measure == "information":
        # The squared correlations are the eigenvalues of K (K + κI)⁻¹ L (L + κI)⁻¹.
        k, other = (
            g @ np.linalg.inv(g + SHIFT_AT_100 * (100 / n) ** (1 / 3) * np.trace(g) * np.eye(n)) for g in (k, other)
        )
        return -0.5 * np.sum(np.log1p(-np.linalg.eigvals(k @ other).real))
    value = np.trace(k @ other)
    return value if measure == "hsic" else value / (np.linalg.norm(k) * np.linalg.norm(other))


@pytest.mark.parametrize("measure", ["information", "hsic", "normalised", "ranks"])
def test_measures_are_those_of_whole_matrices(measure):
    table = sample(0, 60, 0.5)[:, :3]
    values = Dependence.of(table, measure, np.random.default_rng(0))[1].values()
    for i in range(3):
        for j in range(3):
            assert values[i, j] == pytest.approx(dense(table[:, i], table[:, j], measure), rel=2e-3)
    # Neither units nor order matter, ranks do not even change with increasing functions.
    again = Dependence.of(table[::-1] * [1.0, 1000.0, 1e-3], measure, np.random.default_rng(1))[1].values()
    np.testing.assert_allclose(again, values, rtol=1e-2)
    if measure == "ranks":
        np.testing.assert_allclose(
            Dependence.of(np.exp(table), measure, np.random.default_rng(0))[1].values(), values, rtol=1e-12
        )


def test_missing_values_leave_out_pairs_only():
    table = sample(1, 80, 0.5)[:, :3]
    holes = table.copy()
    holes[:20, 0] = np.nan
    holes[70:, 2] = np.nan
    dependence = Dependence.of(holes, "hsic", np.random.default_rng(0))[1]
    values = dependence.values()
    # The features of a column are those of all its values; a pair sees the rows that both have.
    both = slice(20, 70)
    for i, j, rows in [(0, 2, both), (0, 1, slice(20, 80)), (1, 2, slice(0, 70)), (1, 1, slice(0, 80))]:
        a, b = dependence.features[rows, i], dependence.features[rows, j]
        expected = np.sum((a.T @ b / len(a) - np.outer(a.mean(0), b.mean(0))) ** 2)
        assert values[i, j] == pytest.approx(expected, rel=1e-9)
    tree = mm.chow_liu({"a": list(holes[:, 0]), "b": holes[:, 1], "c": holes[:, 2]})
    assert tree.names == ("a", "b", "c")


def test_the_tree_is_the_best_of_all():
    values = np.random.default_rng(0).random((6, 6))
    values += values.T
    graph = networkx.Graph()
    graph.add_weighted_edges_from((i, j, values[i, j]) for i in range(6) for j in range(i))
    expected = {frozenset(edge) for edge in networkx.maximum_spanning_tree(graph).edges}
    assert {frozenset(edge) for edge in _strongest_tree(values).tolist()} == expected
    assert len(_strongest_tree(np.zeros((4, 4)))) == 3  # nothing depends on anything: still a tree


def test_exact_trees_by_day():
    found = [set(map(tuple, mm.chow_liu(sample(seed, 100, 1.0)).edges.tolist())) == set(EDGES) for seed in range(6)]
    assert sum(found) >= 5  # .95 to 1.0 below: P(4 or fewer of 6 | .95) = .03, and the seeds are fixed


@pytest.mark.slow
def test_exact_tree_rates_reach_those_known():
    """The best of five kernel measures on one tree, measured before this library: .90 1 1 and .55 .90 1."""
    for noise, rows, known in [(0.5, 50, 0.9), (0.5, 100, 1), (0.5, 200, 1), (1, 50, 0.55), (1, 100, 0.9), (1, 200, 1)]:
        found = [
            set(map(tuple, mm.chow_liu(sample(2000 + s, rows, noise)).edges.tolist())) == set(EDGES) for s in range(40)
        ]
        # No fewer than the known rate by more than 40 draws of a rate at most .99 explain.
        assert sum(found) >= binom.ppf(1e-3, 40, min(known, 0.99)), (noise, rows, np.mean(found))


@pytest.mark.slow
def test_information_beats_hsic_where_effects_share_a_wiggly_cause():
    def exact(seed, measure):
        generator = np.random.default_rng(seed)
        cause = generator.normal(size=200)
        one, two = (np.sin(2 * cause) + 0.4 * generator.normal(size=200) for _ in range(2))
        tree = mm.chow_liu(np.column_stack([cause, one, two]), measure=measure)
        return set(map(tuple, tree.edges.tolist())) == {(0, 1), (0, 2)}

    assert sum(exact(seed, "information") for seed in range(30)) >= 24
    assert sum(exact(seed, "normalised") for seed in range(30)) <= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "known"),
    [
        (lambda x: np.sin(2 * x), {"information": 20, "hsic": 7}),
        (np.abs, {"information": 20, "hsic": 11}),
        (np.square, {"information": 8, "hsic": 4}),
    ],
    ids=["sin 2x", "|x|", "x²"],
)
def test_trees_whose_edges_are_alike_are_found_as_often_as_the_help_says(function, known):
    edges = [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5), (5, 6), (5, 7)]
    found = dict.fromkeys(known, 0)
    for seed in range(20):
        generator = np.random.default_rng(700 + seed)
        table = np.zeros((200, 8))
        table[:, 0] = generator.normal(size=200)
        for a, b in edges:
            signal = function(table[:, a]) - function(table[:, a]).mean()
            table[:, b] = (signal / signal.std() + generator.normal(size=200)) / np.sqrt(2)
        for measure in known:
            found[measure] += set(map(tuple, mm.chow_liu(table, measure=measure).edges.tolist())) == set(edges)
    assert all(abs(found[measure] - known[measure]) <= 1 for measure in known)  # one may turn on the last digits


@pytest.mark.slow
def test_stars_of_squares_are_found_more_often_than_chains():
    def found(parents, seed):
        generator = np.random.default_rng(800 + seed)
        columns = [generator.normal(size=200)]
        for parent in parents:
            signal = columns[parent] ** 2 - np.mean(columns[parent] ** 2)
            columns.append((signal / signal.std() + generator.normal(size=200)) / np.sqrt(2))
        edges = mm.chow_liu(np.column_stack(columns)).edges.tolist()
        return {frozenset(edge) for edge in edges} == {frozenset((at + 1, each)) for at, each in enumerate(parents)}

    star, chain = (sum(found(parents, seed) for seed in range(20)) for parents in ([0] * 7, range(7)))
    assert star >= chain + 6


def test_forests_are_pruned_at_their_level():
    """Of independent variables an edge is left with probability alpha at most: 40 data sets, level .1."""
    kept = [
        len(
            mm.chow_liu(
                np.random.default_rng(s).normal(size=(40, 3)), level=0.1, n_permutations=49, rng=10_000 + s
            ).edges
        )
        > 0
        for s in range(40)
    ]
    assert sum(kept) <= binom.ppf(1 - 1e-4, 40, 0.1)
    a, b, c, noise = np.random.default_rng(0).normal(size=(4, 150))
    forest = mm.chow_liu({"a": a, "b": b, "c": c, "a again": a**2 + 0.3 * noise}, level=0.05, rng=1)
    assert {frozenset(edge) for edge in forest.named_edges} == {frozenset(("a", "a again"))}
    assert forest.pvalues[0] == pytest.approx(1 / 201)
    assert str(forest).startswith("forest of 4 variables, 1 edges")


def test_what_a_tree_gives(tmp_path):
    columns = sample(0, 150, 0.5)
    table = {f"v{i}": columns[:, i] for i in range(8)}
    table["label"] = np.where(columns[:, 4] > 0, "high", "low")
    tree = mm.chow_liu(table, half_samples=10, level=0.05, rng=3)
    again = mm.chow_liu(table, half_samples=10, level=0.05, rng=tree.seed)
    assert str(again) == str(tree)
    assert isinstance(tree, Graph)
    assert repr(tree) == "DependenceTree(9 nodes, 8 edges)"
    assert tree.support["label", "v4"] == tree.support["v4", "label"] == 1
    assert sum(tree.support.values()) == pytest.approx(2 * 8)  # eight edges in each half, in both orders
    edges = tree.to_networkx().edges(data=True)
    assert all({"weight", "pvalue", "support"} == set(data) for _, _, data in edges)
    write_graphml(tree, tmp_path / "tree.graphml")
    assert networkx.read_graphml(tmp_path / "tree.graphml").edges["label", "v4"]["support"] == 1
    assert "100%" in [text.get_text() for text in tree.plot().texts]
    model = mm.KernelGraph(tree).fit(table)
    assert model.query({"v3": 0.0}, targets=["v4"])["v4"].mean() > 0.5  # cos of nothing
    numbers = mm.chow_liu(columns)
    assert numbers.names == tuple(range(8))
    mm.KernelGraph(numbers).fit(columns)


def test_bad_input():
    good = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ParameterError, match="measure is 'corr'; expected one of 'information'"):
        mm.chow_liu(good, measure="corr")
    with pytest.raises(ParameterError, match="level is 2"):
        mm.chow_liu(good, level=2)
    with pytest.raises(ParameterError, match=r"n_permutations is 3"):
        mm.chow_liu(good, level=0.05, n_permutations=3)
    with pytest.raises(ParameterError, match="half_samples is -1"):
        mm.chow_liu(good, half_samples=-1)
    with pytest.raises(EmptyError, match=r"one column to join; column 'b' is constant.* at least two variables"):
        mm.chow_liu({"a": good[:, 0], "b": np.ones(30)})
    with pytest.raises(EmptyError, match="one column"):
        mm.chow_liu(good[:, :1])
    with pytest.raises(EmptyError, match="'a' has 5 values; expected at least 10"):
        mm.chow_liu({"a": np.r_[good[:5, 0], [np.nan] * 25], "b": good[:, 1]})
    with pytest.raises(EmptyError, match=r"'a' and 'b' have 4 rows .* expected at least 10"):
        mm.chow_liu({"a": np.r_[good[:17, 0], [np.nan] * 13], "b": np.r_[[np.nan] * 13, good[13:, 1]]})
    with pytest.raises(EmptyError, match="no observed values"):
        mm.chow_liu({"a": [None] * 30, "b": good[:, 1]})
    with pytest.raises(ShapeError, match="differ in length"):
        mm.chow_liu({"a": good[:9, 0], "b": good[:, 1]})
    with pytest.raises(NonFiniteError, match="not finite"):
        mm.chow_liu({"a": np.r_[np.inf, good[1:, 0]], "b": good[:, 1]})
    with pytest.raises(EmptyError, match="one column"):
        mm.chow_liu(good[:, 0])


def test_labels_with_more_values_than_features_are_not_joined():
    """Features are of a choice of the labels, which must not be those of the same rows in every column."""
    found = 0
    for seed in range(6):
        labels = np.random.default_rng(seed).integers(0, 200, (300, 2)).astype(str)
        found += len(mm.chow_liu({"a": labels[:, 0], "b": labels[:, 1]}, level=0.05, n_permutations=39, rng=seed).edges)
    assert found <= 2


def test_fewer_shuffles_than_the_level_needs_are_refused():
    with pytest.raises(ParameterError, match=r"n_permutations is 200; .* at least 999, which level 0.001 needs"):
        mm.chow_liu({"a": [1.0, 2.0], "b": [1.0, 2.0]}, level=0.001)


def test_who_does_the_half_samples_does_not_matter():
    rng = np.random.default_rng(4)
    a = rng.normal(size=80)
    table = {"a": a, "b": a + rng.normal(size=80), "c": rng.normal(size=80)}
    with ThreadPoolExecutor(2) as threads:
        for discover in (mm.chow_liu, partial(mm.pc, test=_correlation)):
            alone, together = (discover(table, half_samples=6, executor=each, rng=0) for each in (None, threads))
            assert alone.support == together.support
            assert min(alone.support.values()) > 0
        alone, together = (mm.chow_liu(table, level=0.1, n_permutations=33, executor=e, rng=0) for e in (None, threads))
        assert alone.pvalues.tolist() == together.pvalues.tolist()
        assert 1 / 34 in alone.pvalues
        for discover in (mm.chow_liu, mm.pc):
            with pytest.raises(KindError, match=r"executor is an int; expected a concurrent.futures.Executor"):
                discover(table, executor=2)


def _correlation(x, y, z):
    """Without regard to z."""
    return float(pearsonr(x, y).pvalue)


@pytest.mark.slow
def test_processes_do_the_half_samples():
    """Tests by kernels, and dependences, are sent to other processes."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=80)
    table = {"a": a, "b": a**2 + 0.3 * rng.normal(size=80), "c": rng.normal(size=80)}
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        for discover in (mm.chow_liu, mm.pc):
            alone, together = (discover(table, half_samples=2, executor=each, rng=0) for each in (None, processes))
            assert alone.support == together.support
            assert list(alone.pvalues) == list(together.pvalues)
            assert str(alone) == str(together)
