"""Learned trees: algorithm 1 written out densely, every kind of data and evidence, and what is refused."""

import pickle
import tracemalloc

import networkx
import numpy as np
import pandas
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import binom

import meanmap as mm
from meanmap.bp.edges import samples
from meanmap.bp.kernel.support import FALSE_CONTRADICTIONS
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError, ShapeError

EDGES = [("a", "b"), ("b", "c"), ("b", "d")]
KERNELS = {name: mm.kernels.RBF(0.8) for name in "abcd"}
RIDGE = 0.01


def make_table(m=60, seed=0):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=m)
    noise = 0.3 * rng.normal(size=(3, m))
    return {"a": np.sin(b) + noise[0], "b": b, "c": b**2 + noise[1], "d": -b + noise[2]}


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def model(table):
    return mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(table)


def test_a_pickle_answers_bit_for_bit_after_a_query_has_filled_what_is_kept(model):
    """Arrays of JAX come out of pickles in single precision: none may be kept."""
    evidence = {EDGES[0][0]: 0.3}
    before = model.query(evidence)[EDGES[0][1]].mean()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).query(evidence)[EDGES[0][1]].mean(), before)


def algorithm_one(table, evidence, root):
    """Messages at the training points, by dense inverses, from evidence at leaves; no floor."""
    m = len(table["a"])
    gram = {name: mm.kernels.RBF(0.8)(table[name]) for name in table}
    inverse = {name: np.linalg.inv(gram[name] + m * RIDGE * np.eye(m)) for name in table}

    def message(t, s):
        if t in evidence:
            at = mm.kernels.RBF(0.8)(table[t], [evidence[t]])[:, 0]
            values = gram[s] @ (inverse[s] @ (inverse[t] @ at))
        else:
            behind = [u for edge in EDGES if t in edge for u in edge if u not in (t, s)]
            heard = [message(u, t) for u in behind]
            if all(h is None for h in heard):
                return None
            values = gram[s] @ (inverse[s] @ np.prod([h for h in heard if h is not None], axis=0))
        return values / np.abs(values).max()

    product = np.ones(m)
    for edge in EDGES:
        if root in edge:
            heard = message(next(u for u in edge if u != root), root)
            product = product * (1 if heard is None else heard)
    return product


@pytest.mark.parametrize("root", ["b", "d"])
def test_beliefs_are_those_of_algorithm_one(model, table, root):
    evidence = {"a": 0.5, "c": 0.4}
    weights = algorithm_one(table, evidence, root)
    belief = model.query(evidence, targets=[root], floor=None)[root]
    np.testing.assert_allclose(belief.weights, weights / weights.sum(), rtol=1e-4, atol=1e-6)
    assert abs(belief.mean() - weights @ table[root] / weights.sum()) < 1e-4


def test_pairs_for_each_edge_say_the_same_as_one_table(table):
    pairs = {(s, t): (table[s], table[t]) for s, t in EDGES[1:]} | {("b", "a"): (table["b"], table["a"])}
    chain = mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(pairs)
    assert chain.samples.nodes[1].count == 180
    evidence = {"a": 0.5, "c": 0.4}
    apart = chain.query(evidence, targets=["b", "d"])
    joint = mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(table).query(evidence, targets=["b", "d"])
    for name in ("b", "d"):
        assert abs(apart[name].mean() - joint[name].mean()) < 1e-4


def test_edges_learn_from_samples_that_were_never_seen_together():
    first, second = make_table(200, 1), make_table(150, 2)
    model = mm.KernelGraph([("a", "b"), ("b", "c")]).fit(
        {("a", "b"): (first["a"], first["b"]), ("b", "c"): (second["b"], second["c"])}
    )
    belief = model.query({"a": np.sin(1.0)}, targets=["c"])["c"]
    low = model.query({"a": 0.0}, targets=["c"])["c"]
    assert belief.mean() > low.mean() + 0.3


def test_names_may_be_tuples_and_edges_are_named_once():
    table = {(0, "a"): np.arange(30.0), (0, "b"): np.arange(30.0) ** 2}
    edge = ((0, "a"), (0, "b"))
    fitted = mm.KernelGraph([edge]).fit(table)
    assert fitted.samples.nodes[0].count == 30
    assert fitted.query({(0, "a"): 10.0}, [(0, "b")])[0, "b"].mean() == pytest.approx(100, abs=20)
    both = tuple(table.values())
    assert mm.KernelGraph([edge]).fit({edge: both}).samples.nodes[0].count == 30
    with pytest.raises(InputError, match=r"in both directions; expected each edge once"):
        mm.KernelGraph([edge]).fit({edge: both, edge[::-1]: both[::-1]})
    with pytest.raises(InputError, match=r"relations has the edge \(1, 0\) in both directions"):
        mm.KernelField([(0, 1)], relations={(0, 1): "r", (1, 0): "q"}).fit({"r": both, "q": both})


def test_labels_of_two_columns():
    towns = np.array([["north", "sea"]] * 30 + [["south", "sea"]] * 30)
    height = np.random.default_rng(0).normal(size=60) + 4 * np.repeat([0, 1], 30)
    model = mm.KernelGraph([("town", "height")]).fit({"town": towns, "height": height})
    found = model.query({"height": 4.0}).probabilities("town")
    assert found["south", "sea"] > 0.9
    one, two = (model.query({"town": town}, ["height"])["height"].mean() for town in (("south", "sea"), towns[[0, -1]]))
    assert one == pytest.approx(two[1])
    assert two[0] < 1 < 3 < two[1]


@pytest.mark.parametrize(
    "column",
    [np.ones(9), np.full(9, np.inf), np.array([1, "b", None] * 3, dtype=object), np.ones((9, 2, 2)), np.ones(9) * 1j],
    ids=["constant", "infinite", "mixed", "cubes", "complex"],
)
def test_errors_name_the_column(column):
    with pytest.raises((InputError, KindError), match=r"data\['height'\]"):
        mm.KernelGraph([("height", "b")]).fit({"height": column, "b": np.arange(9.0)})
    with pytest.raises((InputError, KindError), match=r"pairs( of 'height'|\['height'\])"):
        mm.KernelField([(0, 1)], relations=["r"], variables=["height", "b"]).fit({"r": (column, np.arange(9.0))})


def test_missing_values_drop_their_pairs_only(table):
    holes = {name: column.copy() for name, column in table.items()}
    holes["a"][:20] = np.nan
    holes["c"][50:] = np.nan
    model = mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(holes)
    assert [len(pairs) for pairs in model.samples.pairs] == [40, 50, 60]
    by_hand = mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(
        {
            ("a", "b"): (table["a"][20:], table["b"][20:]),
            ("b", "c"): (table["b"][:50], table["c"][:50]),
            ("b", "d"): (table["b"], table["d"]),
        }
    )
    evidence = {"a": 0.5, "c": 0.4}
    means = [fitted.query(evidence, targets=["d"])["d"].mean() for fitted in (model, by_hand)]
    assert abs(means[0] - means[1]) < 1e-3


def test_many_queries_are_the_single_ones(model):
    seen = np.linspace(-1, 1, 5)
    together = model.query({"a": seen, "c": 0.4}, targets=["b", "d", "a", "c"])
    assert together["b"].batch == (5,)
    for q in range(5):
        single = model.query({"a": seen[q], "c": 0.4}, targets=["b", "d"])
        np.testing.assert_allclose(together["b"].weights[q], single["b"].weights, rtol=1e-9)
        assert abs(together["d"].mean()[q] - single["d"].mean()) < 1e-9
    np.testing.assert_allclose(together["a"].mean(), seen)
    np.testing.assert_allclose(together["c"].mean(), np.full(5, 0.4))


def test_an_observed_variable_hides_what_is_behind_it(model):
    alone = model.query({"b": 0.3}, targets=["d"])["d"]
    more = model.query({"b": 0.3, "a": -1.0, "c": 2.0}, targets=["d"])["d"]
    np.testing.assert_allclose(alone.weights, more.weights, rtol=1e-10)


def test_without_evidence_beliefs_are_priors(model, table):
    beliefs = model.query()
    for name in table:
        np.testing.assert_allclose(beliefs[name].weights, 1 / 60)


def test_functions_and_embeddings_are_likelihoods(model, table):
    flat = model.query({"a": lambda x: np.ones(len(x)), "c": 0.4}, targets=["b"])["b"]
    without = model.query({"c": 0.4}, targets=["b"])["b"]
    # A function that says nothing travels through a learned operator, which is nearly right about constants.
    assert abs(flat.mean() - without.mean()) < 0.1
    own = model.query({"b": lambda x: np.exp(-(x**2))}, targets=["b"])["b"]
    expected = np.exp(-(table["b"] ** 2))
    np.testing.assert_allclose(own.weights, expected / expected.sum(), rtol=1e-10)
    sample = mm.embed(np.array([0.9, 1.0, 1.1]), mm.kernels.RBF(0.3))
    soft = model.query({"b": sample}, targets=["d"])["d"]
    assert abs(soft.mean() + 1.0) < 0.3


def test_a_target_in_another_component_keeps_its_prior_and_says_so(table):
    model = mm.KernelGraph([("a", "b"), ("c", "d")], kernels=KERNELS, ridge=RIDGE).fit(table)
    beliefs = model.query({"a": 0.5}, targets=["b", "c"])
    np.testing.assert_allclose(beliefs["c"].weights, 1 / 60)
    assert any("no evidence is connected to 'c': its belief is its prior" in note for note in beliefs.report.notes)
    assert not any("'b'" in note for note in beliefs.report.notes)


def test_evidence_far_from_the_data_and_beliefs_on_few_points_are_reported(model):
    far = model.query({"a": 40.0}, targets=["b"])
    away = f"{(40 - np.max(model.samples.nodes[0].points)) / np.std(model.samples.nodes[0].points):.3g}"
    words = f"evidence['a'] is far from all data in 1 of 1 queries, {away} standard deviations from the nearest"
    assert any(words in note for note in far.report.notes)
    assert "note" in repr(far)
    assert any("deviations from the nearest" in note for note in model.query({"a": 1e120}).report.notes)
    spike = model.query({"b": lambda x: (x == x[0]).astype(float)}, targets=["b"])
    assert any("the belief about 'b' rests on 1.0 points" in note for note in spike.report.notes)
    quiet = model.query({"a": 0.3}, targets=["b"]).report.notes
    assert not any("far from" in note or "rests on" in note for note in quiet)


def test_beliefs_far_from_the_data_are_those_of_the_outermost_rows_until_the_kernel_is_zero():
    """As docs/methods/trees.rst says, with its numbers; the marginal is right only beyond 38 lengthscales."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = 0.4 * x + 0.15 * rng.normal(size=300)
    marginal, spread, edge = y.mean(), y.std(), y[np.argsort(x)[-3:]].mean()
    assert abs(marginal) < 0.03
    assert round(spread, 2) == 0.44
    assert round(x.max(), 1) == 3.1
    model = mm.KernelGraph([("x", "y")]).fit({"x": x, "y": y})
    multiple = model.chosen["x", "y"]["likelihood_median_multiple"]
    lengthscale = multiple * np.median(np.abs(x[:, None] - x)[np.triu_indices(300, 1)])
    for there in (5.0, 10.0, 20.0, x.max() + 37 * lengthscale):
        found = model.query({"x": there}, targets=["y"])
        assert round(float(found["y"].mean()), 1) == 1.1
        assert round(float(found["y"].sd()), 2) == 0.18
        assert abs(found["y"].mean() - edge) < 0.1
        assert found["y"].mean() > marginal + 2.5 * spread
        assert any("extrapolated from the nearest rows, and may be narrow and far off" in n for n in found.report.notes)
    zero = model.query({"x": x.max() + 40 * lengthscale}, targets=["y"])
    np.testing.assert_allclose([zero["y"].mean(), zero["y"].sd()], [marginal, spread], rtol=1e-6)
    assert any("where the kernel is 0: beliefs about the others are as if it had" in note for note in zero.report.notes)
    rows = model.query({"x": [0.0, 10.0, 400.0]}, targets=["y"]).report.notes
    assert any("in 2 of 3 queries" in note and "extrapolated" in note for note in rows)


@pytest.mark.parametrize("field", [False, True])
def test_beliefs_of_gaussian_chains_are_near_the_exact_ones_or_said_to_be_drawn_to_the_middle(field):
    rng, n, steps, rho = np.random.default_rng(40), 1000, 5, 0.9
    chain = [rng.normal(size=n)]
    for _ in range(steps):
        chain.append(rho * chain[-1] + np.sqrt(1 - rho**2) * rng.normal(size=n))
    covariance = rho ** np.abs(np.subtract.outer(range(steps + 1), range(steps + 1)))
    ends, middle = [0, steps], 2
    gain = np.linalg.solve(covariance[np.ix_(ends, ends)], covariance[ends, middle])
    deviation = np.sqrt(1 - gain @ covariance[ends, middle])
    edges = [(i, i + 1) for i in range(steps)]
    if field:
        model = mm.KernelField(edges).fit((chain[0], chain[1]))
    else:
        model = mm.KernelGraph(edges).fit(np.stack(chain, axis=1))
    for value in (0.5, 1.5, -1.5, 3.0, -3.2, 3.6):
        beliefs = model.query({0: value, steps: value}, targets=[middle])
        error = abs(beliefs[middle].mean() - gain.sum() * value) / deviation
        told = [note for note in beliefs.report.notes if "shrunk towards the centre" in note]
        assert bool(told) == (error > 0.5), (value, error, beliefs.report.notes)
        assert not told or "of 1000 values in 1 of 1 queries" in told[0]


def test_evidence_that_contradicts_itself_is_reported():
    rng = np.random.default_rng(5)
    b = rng.normal(size=80)
    table = {"a": b + 0.1 * rng.normal(size=80), "b": b, "c": b + 0.1 * rng.normal(size=80)}
    kernels = {name: mm.kernels.RBF(0.5) for name in "abc"}
    model = mm.KernelGraph([("a", "b"), ("b", "c")], kernels=kernels, ridge=1e-3).fit(table)
    notes = model.query({"a": 1.2, "c": -1.2}, targets=["b"]).report.notes
    assert any("the evidence about 'b' contradicts itself" in note for note in notes)
    agreed = model.query({"a": 0.5, "c": 0.4}, targets=["b"]).report
    assert not any("contradicts" in note for note in agreed.notes)
    assert agreed.measures["agreement of the evidence about 'b', from 0 to 1"] > 0.5
    assert not any("agrees" in name for name in model.query({"a": 0.5}, targets=["b"]).report.measures)


def test_evidence_drawn_from_the_model_seldom_contradicts_itself():
    """Twelve neighbours agree less than two, as they should: with one threshold, 16 of 40 such queries were refused."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=240)
    leaves = {f"y{i}": x + 0.7 * rng.normal(size=240) for i in range(12)}
    rows = {name: column[:200] for name, column in {"x": x, **leaves}.items()}
    kernels = {name: mm.kernels.RBF(0.7) for name in rows}
    fitted = mm.KernelGraph([("x", name) for name in leaves], kernels=kernels, ridge=1e-3).fit(rows)
    refused = 0
    for row in range(200, 240):
        notes = fitted.query({name: column[row] for name, column in leaves.items()}, targets=["x"]).report.notes
        refused += any("contradicts" in note for note in notes)
    assert refused <= binom.ppf(0.999, 40, FALSE_CONTRADICTIONS)
    torn = {name: 3.0 * (-1) ** i for i, name in enumerate(leaves)}
    assert any("contradicts" in note for note in fitted.query(torn, targets=["x"]).report.notes)


def test_graphs_of_arrows_are_taken_where_they_are_relations(table):
    lines = mm.graphs.PDAG.of([("b", "a")], [("b", "c"), ("b", "d")])
    assert mm.KernelGraph(lines).graph.named_edges == [("b", "a"), ("b", "c"), ("b", "d")]
    with pytest.raises(InputError, match=r"'a' → 'b' ← 'c' is a collider: .*mm\.chow_liu"):
        mm.KernelGraph(mm.graphs.PDAG.of([("a", "b"), ("c", "b")]))
    with pytest.raises(InputError, match=r"'a' → 'b' ← 'c' is a collider: .*mm\.chow_liu"):
        mm.KernelGraph(networkx.DiGraph([("a", "b"), ("c", "b")]))
    both_ways = networkx.DiGraph([("a", "b"), ("c", "b"), ("b", "c")])
    assert mm.KernelGraph(both_ways).graph.named_edges == [("a", "b"), ("b", "c")]


def test_tables_and_their_rows_are_evidence(model):
    import pandas

    frame = pandas.DataFrame({"a": [0.5, -0.2], "c": [0.4, 0.1]})
    together = model.query(frame, targets=["b"])["b"].mean()
    np.testing.assert_allclose(together, model.query(dict(frame), targets=["b"])["b"].mean())
    np.testing.assert_allclose(together[1], model.query(frame.iloc[1], targets=["b"])["b"].mean())
    with pytest.raises(InputError, match="evidence has 'z'; expected some of the model's columns: 'a', 'b', 'c'"):
        model.query(pandas.DataFrame({"z": [1.0]}))


def test_labels_vectors_and_rotations():
    rng = np.random.default_rng(4)
    m = 120
    colour = np.where(rng.random(m) < 0.5, "red", "blue")
    place = rng.normal(size=(m, 2)) + np.where(colour == "red", 2.0, -2.0)[:, None]
    turn = Rotation.from_rotvec(np.stack([0.4 * place[:, 0], np.zeros(m), 0.05 * rng.normal(size=m)], axis=1))
    model = mm.KernelGraph([("colour", "place"), ("place", "turn")]).fit(
        {"colour": colour, "place": place, "turn": turn}
    )
    beliefs = model.query({"colour": "red"}, targets=["place", "turn"])
    assert beliefs["place"].mean().shape == (2,)
    assert np.abs(beliefs["place"].mean() - 2.0).max() < 0.5
    back = model.query({"turn": Rotation.from_rotvec([-0.8, 0.0, 0.0])}, targets=["colour"])["colour"]
    assert back.expect((colour == "blue").astype(float)) > 0.9
    assert (back.mode(), model.query({"colour": "red"})["colour"].mode()) == ("blue", "red")
    assert set(back.sample(20, rng=0).tolist()) <= {"blue", "red"}
    assert back.expect(lambda labels: labels == "blue") > 0.9
    likely = model.query({"colour": lambda labels: np.where(labels == "red", 1.0, 0.01)}, targets=["place"])["place"]
    assert np.abs(likely.mean() - 2.0).max() < 0.5
    with pytest.raises(InputError, match="none of the 120 rows of the data has; expected one of 'blue', 'red'"):
        model.query({"colour": "green"})
    with pytest.raises(InputError, match=r"evidence\['turn'\]"):
        model.query({"turn": 2 * np.eye(3)})
    both = model.query({"colour": ["red", "blue"]}, targets=["place"])["place"].mean()
    assert both.shape == (2, 2)
    assert both[0, 0] > 1 > -1 > both[1, 0]


def test_arrays_and_frames_are_tables(table):
    import pandas

    frame = pandas.DataFrame(table)
    numbered = [(0, 1), (1, 2), (1, 3)]
    by_number = mm.KernelGraph(numbered, kernels=dict(enumerate(KERNELS.values())), ridge=RIDGE).fit(frame.to_numpy())
    named = mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(frame)
    assert abs(by_number.query({0: 0.5})[3].mean() - named.query({"a": 0.5})["d"].mean()) < 1e-12
    assert repr(named) == "FittedKernelGraph(Graph(4 nodes, 3 edges), 60 pairs per edge)"


def test_graphs_with_cycles_are_flooded_and_the_report_says_what_that_means(table):
    ring = mm.graphs.PDAG.of([("b", "a")], [*EDGES[1:], ("a", "d")])
    chosen = mm.KernelGraph(ring, kernels=KERNELS, ridge=RIDGE).fit(table).query({"c": 1.0}, targets=["b", "d"])
    assert chosen.report.residuals[-1] < 1e-3
    assert any("has cycles, around which evidence is counted repeatedly" in note for note in chosen.report.notes)
    schedule = mm.graphs.Flooding()
    model = mm.KernelGraph(ring, kernels=KERNELS, ridge=RIDGE, schedule=schedule).fit(table)
    beliefs = model.query({"c": 1.0}, targets=["b", "d"], damping=0.3)
    assert beliefs.report.residuals[-1] < 1e-3
    assert beliefs["d"].mean() == pytest.approx(chosen["d"].mean(), abs=1e-3)
    assert np.isfinite(beliefs["d"].mean())


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda t: {**t, "a": t["a"][:50]}, ShapeError, "the columns of data differ in length"),
        (lambda t: {n: t[n] for n in "abc"}, InputError, "data has no column 'd'"),
        (lambda t: {**t, "a": np.full(60, np.nan)}, EmptyError, r"data\['a'\] has no observed values"),
        (lambda t: {**t, "a": np.where(np.arange(60) < 3, 1.0, np.nan)}, EmptyError, "has 3 pairs without missing"),
        (lambda t: {("a", "b"): (t["a"], t["b"])}, EmptyError, r"no pairs for the edge \('b', 'c'\)"),
        (lambda t: {("a", "c"): (t["a"], t["b"])}, InputError, r"\('a', 'c'\), which is not an edge"),
        (lambda t: dict.fromkeys(EDGES, t["a"]), KindError, "expected a pair of samples"),
        (lambda t: dict.fromkeys(EDGES, (t["a"], t["b"][:9])), ShapeError, "60 and 9 points; expected pairs"),
        (lambda t: dict.fromkeys(EDGES, (t["a"], 7.0)), KindError, "a sample is a float; expected points"),
        (lambda t: {name: [] for name in t}, EmptyError, r"data\['a'\] has no observed values"),
        (lambda t: 7.0, KindError, "expected a table with a column for each node"),
        (lambda t: np.ones((60, 4)), InputError, "columns 0 to 3, and the graph a node 'a'"),
    ],
    ids=range(12),
)
def test_bad_data_are_refused(table, change, error, words):
    with pytest.raises(error, match=words):
        mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE).fit(change(table))


@pytest.mark.parametrize(
    ("evidence", "error", "words"),
    [
        ({"z": 1.0}, InputError, "no node 'z'"),
        ({"a": "tall"}, KindError, r"evidence\['a'\] holds labels, such as 'tall'; expected a number column"),
        ({"a": np.ones((2, 2))}, KindError, r"evidence\['a'\] holds blocks of 2 numbers; expected a number column"),
        ({"a": np.ones((2, 2, 2))}, ShapeError, "expected a number, or"),
        ({"a": np.nan}, InputError, r"is missing \(nan\); leave out"),
        ({"a": [1.0, 2.0], "c": [1.0, 2.0, 3.0]}, ShapeError, "different numbers of queries: {'a': 2, 'c': 3}"),
        ({"a": lambda x: x[:5]}, ShapeError, r"gave shape \(5,\); expected \(60,\)"),
        ({"a": lambda x: -np.ones(60)}, InputError, "has the negative value -1"),
        ({"a": lambda x: np.zeros(60)}, InputError, "is zero at every point"),
        ([("a", 1.0)], KindError, "expected a mapping"),
    ],
    ids=range(10),
)
def test_bad_evidence_is_refused(model, evidence, error, words):
    with pytest.raises(error, match=words):
        model.query(evidence)


def test_a_relation_with_little_noise_is_resolved():
    rng = np.random.default_rng(6)
    x = rng.normal(size=600)
    fitted = mm.KernelGraph([("x", "y")]).fit({"x": x, "y": x + 0.05 * rng.normal(size=600)})
    seen = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    belief = fitted.query({"y": seen}, targets=["x"])["x"]
    assert belief.sd().max() < 0.15  # the truth is .05; with the narrowest multiple .35 it was .3, and .4 at the ends
    assert np.abs(belief.mean() - seen).max() < 0.1


def test_fitting_forms_no_matrix_of_all_pairs_of_rows():
    rng = np.random.default_rng(7)
    x = rng.normal(size=8000)
    table = {"x": x, "y": x + 0.5 * rng.normal(size=8000)}
    graph = mm.KernelGraph([("x", "y")], kernels={name: mm.kernels.RBF(1.0) for name in "xy"}, ridge=1e-3)
    tracemalloc.start()
    graph.fit(table)
    assert tracemalloc.get_traced_memory()[1] < 8000 * 8000  # bytes: an eighth of such a matrix
    tracemalloc.stop()


def test_beyond_the_most_rows_some_are_drawn_and_reports_say_so(monkeypatch, table):
    monkeypatch.setattr(samples, "MOST_ROWS", 40)
    graph = mm.KernelGraph(EDGES, kernels=KERNELS, ridge=RIDGE)
    fitted = graph.fit(table)
    assert [len(pairs) for pairs in fitted.samples.pairs] == [40, 40, 40]
    assert {node.count for node in fitted.samples.nodes} == {40}
    assert "learned from 40 of 60 rows, drawn at random." in fitted.query({"a": 0.3}).report.notes
    pairs = {(s, t): (table[s], table[t]) for s, t in EDGES}
    assert "learned from 40 of 60 rows, drawn at random." in graph.fit(pairs).query({"a": 0.3}).report.notes


def test_the_rank_is_that_of_the_data_and_what_is_left_out_is_told():
    rng = np.random.default_rng(8)
    texts = ["".join(rng.choice(list("abcdefgh"), 12)) for _ in range(330)]
    table, kernel = {"a": texts, "b": texts[::-1]}, mm.kernels.Spectrum(3)
    whole = mm.KernelGraph([("a", "b")], kernels={"a": kernel, "b": kernel}, ridge=1e-3).fit(table)
    assert whole.chosen["a", "b"]["rank"] > 300
    assert whole.chosen["a", "b"]["left_out"] < 1e-6
    assert not any("left out" in note for note in whole.query({"a": texts[0]}).report.notes)
    few = mm.KernelGraph([("a", "b")], kernels={"a": kernel, "b": kernel}, ridge=1e-3, rank=20).fit(table)
    assert few.chosen["a", "b"]["rank"] == few.chosen["a", "b"]["likelihood_rank"] == 20
    assert few.chosen["a", "b"]["left_out"] > 0.1
    notes = few.query({"a": texts[0]}).report.notes
    assert any("of the kernel of 'b' is left out at rank 20: pass a larger rank=" in note for note in notes)


def test_unknown_targets_are_refused(model):
    with pytest.raises(InputError, match="no node 'z'"):
        model.query(targets=["z"])


def test_bad_settings_are_refused():
    with pytest.raises(ParameterError, match="ridge is"):
        mm.KernelGraph(EDGES, ridge=-1.0)
    with pytest.raises(KindError, match=r"kernels\['a'\] is 'rbf'; expected a kernel"):
        mm.KernelGraph(EDGES, kernels={"a": "rbf"})
    with pytest.raises(InputError, match="no node 'z'"):
        mm.KernelGraph(EDGES, kernels={"z": mm.kernels.RBF(1.0)})


def test_columns_with_numbers_for_names_and_categories_that_look_like_numbers():
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    frame = pandas.DataFrame(np.c_[a, a + 0.3 * rng.normal(size=60)])
    plain = mm.KernelGraph([("a", "b")]).fit({"a": frame[0], "b": frame[1]}).query({"a": 1.0})["b"].mean()
    assert mm.KernelGraph([(0, 1)]).fit(frame).query({0: 1.0})[1].mean() == plain
    assert mm.KernelGraph(mm.chow_liu(frame)).fit(frame).query({"0": 1.0})["1"].mean() == plain
    kinds = pandas.DataFrame({"kind": pandas.Categorical(1 + (a > 0)), "sign": a > 0, "a": a})
    beliefs = mm.KernelGraph([("a", "kind"), ("a", "sign")]).fit(kinds).query({"a": 2.0})
    assert set(beliefs.labels["kind"]) == {1, 2}
    assert set(beliefs.labels["sign"]) == {True, False}
    assert beliefs.probabilities("sign")[True] > 0.9


@pytest.mark.parametrize(("noise", "told"), [(0.001, True), (2.0, False)])
def test_columns_that_are_nearly_functions_of_each_other_are_noted(noise, told):
    """Beliefs have a standard deviation of 1.2, where the noise is .001."""
    rng = np.random.default_rng(951)
    a = rng.uniform(0, 50, 500)
    fitted = mm.bp.KernelGraph([("a", "b")]).fit({"a": a, "b": 2 * a + noise * rng.normal(size=500)})
    notes = fitted.query({"a": 30.0}).report.notes
    assert any("'a' and 'b' are nearly functions of each other" in note for note in notes) == told
