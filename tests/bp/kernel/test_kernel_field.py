"""Random fields against dense formulas, the tree model and a slow loop; and what is refused."""

import numpy as np
import pytest
from scipy.special import ndtri

import meanmap as mm
from meanmap import bp
from meanmap.bp.edges import relations as relations_file
from meanmap.bp.edges import updates as updates_file
from meanmap.bp.edges.observations import sample_of
from meanmap.bp.kernel.fitted_field import FittedKernelField
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError, ShapeError
from meanmap.graphs import Flooding

RIDGE = 0.01
KERNEL = mm.kernels.Matern(1.0, smoothness=1.5)
# With more cycles than one, so that ridges are those of grids.
CYCLES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]


def make_pairs(m=20, seed=0):
    x = np.random.default_rng(seed).permutation(np.linspace(-2, 2, 2 * m))[:m]
    return x, 0.8 * x + 0.3 + 0.05 * np.sin(9 * x)


def fitted(update, graph=CYCLES, pairs=None, kernel=KERNEL, **options):
    field = mm.KernelField(graph, kernels=kernel, ridge=RIDGE, update=update, **options)
    return field.fit(make_pairs() if pairs is None else pairs)


def dense(pairs):
    """Symmetric pairs (x_t, x_s), their Gram matrices and the full operator from values at x_t to values at x_t."""
    x_t, x_s = np.concatenate(pairs), np.concatenate(pairs[::-1])
    gram, cross = KERNEL(x_s), KERNEL(x_t, x_s)
    return x_t, x_s, (cross @ np.linalg.inv(gram + len(x_t) * RIDGE * np.eye(len(x_t)))).T


def test_the_full_operator_is_the_dense_formula():
    x_t, _, matrix = dense(make_pairs())
    learned = fitted(bp.Full()).learned
    np.testing.assert_allclose(learned.variables["x"].points[:, 0], x_t)
    np.testing.assert_allclose(learned.operators.matrices[0], matrix, atol=1e-10)


def test_the_linear_operator_is_the_formula_in_features():
    x_t, x_s, _ = dense(make_pairs())
    learned = fitted(bp.Linear(rank=12)).learned
    phi = learned.variables["x"].features
    f = phi(x_s)
    expected = (f @ np.linalg.inv(f.T @ f / len(f) + RIDGE * np.eye(12)) / len(f)) @ phi(x_t).T
    np.testing.assert_allclose((learned.operators.into @ learned.operators.out)[0], expected, atol=1e-10)


def test_the_constant_operator_is_the_formula_of_tensor_interpolation():
    x_t, x_s, _ = dense(make_pairs())
    learned = fitted(bp.Constant(rank=10, power=2)).learned
    variable = learned.variables["x"]
    marks, f = variable.points[:, 0], variable.features(x_s)
    tensor = KERNEL**2
    v = tensor(x_t, marks) @ np.linalg.inv(tensor(marks))
    into = np.linalg.solve(f.T @ f / len(f) + RIDGE * np.eye(10), f.T @ v / len(f)).T
    np.testing.assert_allclose(learned.operators.matrices[0], into @ variable.features(marks).T, atol=1e-9)
    np.testing.assert_allclose(learned.readouts[0], into @ variable.features(variable.atoms).T, atol=1e-9)


def test_constant_at_full_rank_is_full():
    pairs = make_pairs()
    number = len(np.unique(np.concatenate(pairs)))
    full, constant = fitted(bp.Full()), fitted(bp.Constant(rank=number))
    order = [int(np.abs(full.learned.variables["x"].points - mark).argmin()) for mark in
             constant.learned.variables["x"].points]  # fmt: skip
    np.testing.assert_allclose(
        constant.learned.operators.matrices[0], full.learned.operators.matrices[0][np.ix_(order, order)], atol=1e-8
    )
    evidence = {0: lambda x: np.exp(-((x - 1) ** 2))}
    path = [(0, 1), (1, 2), (2, 3)]
    exact, close = (
        fitted(update, path).query(evidence, floor=None) for update in (bp.Full(), bp.Constant(rank=number))
    )
    for node in range(4):
        assert abs(exact[node].mean() - close[node].mean()) < 1e-8


@pytest.mark.parametrize("counting", [None, 0.6])
def test_messages_round_cycles_are_those_of_a_slow_loop(counting):
    x_t, _, matrix = dense(make_pairs())
    own = {0: np.exp(-((x_t - 1) ** 2)), 1: np.ones(40), 2: np.exp(-2 * (x_t + 0.5) ** 2), 3: np.ones(40)}
    messages = {(t, s): np.ones(40) for a, b in CYCLES for t, s in ((a, b), (b, a))}
    power = counting or 1
    for _ in range(6):
        new = {}
        for t, s in messages:
            product = (
                own[t] * np.prod([messages[u, v] ** power for u, v in messages if v == t], axis=0) / messages[s, t]
            )
            value = product @ matrix
            value = np.maximum(value / value.max(), 1e-3)
            new[t, s] = 0.7 * value + 0.3 * messages[t, s]
        messages = new
    belief = own[1] * (messages[0, 1] * messages[2, 1]) ** power
    field = fitted(bp.Full(), schedule=Flooding(6))
    evidence = {0: lambda x: np.exp(-((x - 1) ** 2)), 2: lambda x: np.exp(-2 * (x + 0.5) ** 2)}
    found = field.query(evidence, counting=counting)
    np.testing.assert_allclose(found[1].weights, belief / belief.sum(), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("update", "close"),
    [
        pytest.param(bp.Full(), 1e-5, marks=pytest.mark.slow),
        (bp.Linear(tolerance=1e-5), 1e-4),
        pytest.param(bp.Constant(tolerance=1e-4), 2e-2, marks=pytest.mark.slow),
    ],
)
def test_on_a_tree_beliefs_are_those_of_the_tree_model_but_for_constants(monkeypatch, update, close):
    monkeypatch.setattr(relations_file, "ALONG_TREES", relations_file.ROUND_CYCLES)
    rng = np.random.default_rng(0)
    b = rng.normal(size=80)
    table = {"a": np.sin(b) + 0.3 * rng.normal(size=80), "b": b, "c": b**2 + 0.3 * rng.normal(size=80)}
    edges = [("a", "b"), ("b", "c")]
    kernels = {name: mm.kernels.RBF(0.8) for name in table}
    evidence = {"a": lambda x: np.exp(-2 * (x - 0.5) ** 2), "c": lambda x: np.exp(-2 * (x - 0.4) ** 2)}
    tree = mm.KernelGraph(edges, kernels=kernels, ridge=RIDGE).fit(table).query(evidence)
    field = mm.KernelField(
        edges, relations=["ab", "bc"], variables={n: n for n in "abc"}, kernels=kernels, ridge=RIDGE, update=update
    )
    found = field.fit({"ab": (table["a"], table["b"]), "bc": (table["b"], table["c"])}).query(evidence)
    assert found.report.status == "messages are exact (the graph has no cycles)"
    for name in table:
        assert abs(found[name].mean() - tree[name].mean()) < close


@pytest.mark.parametrize("update", [bp.Full(), bp.Linear(), bp.Constant()], ids=["full", "linear", "constant"])
def test_on_trees_a_message_that_says_nothing_says_nothing_ever_after(update):
    learned = fitted(update, [(0, 1), (1, 2)]).learned
    matrix = learned.operators.matrices[0] if not isinstance(update, bp.Linear) else (
        learned.operators.into[0] @ learned.operators.out[0]
    )  # fmt: skip
    np.testing.assert_allclose(np.ones(len(matrix)) @ matrix, 1, atol=1e-8)
    if learned.readouts is not None:
        np.testing.assert_allclose(np.ones(len(matrix)) @ learned.readouts[0], 1, atol=1e-8)


def test_constants_end_where_a_variable_was_never_seen_in_a_direction():
    x = np.random.default_rng(1).uniform(0, 3, 200)
    field = mm.KernelField([(0, 1)], relations=["up"], kernels=mm.kernels.RBF(0.3), ridge=1e-3, update=bp.Linear())
    learned = field.fit({"up": (x, x + 5)}).learned
    up = np.ones(400) @ learned.operators.into[0] @ learned.operators.out[0]
    np.testing.assert_allclose(up, np.repeat([0.0, 1.0], 200), atol=1e-3)


def chain_errors(update, a, m, lengths, seed):
    """How far the mean in the middle of a Gaussian chain with both ends at 1 is off, in its deviations, and by which
    factor the deviation is wrong.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=m)
    pairs = x, a * x + np.sqrt(1 - a**2) * rng.normal(size=m)
    learned = mm.KernelField([(0, 1)], update=update).fit(pairs).learned
    found = []
    for n in lengths:
        graph = mm.Graph.of([(i, i + 1) for i in range(n - 1)])
        field = FittedKernelField(graph, learned, np.zeros(2 * n - 2, dtype=int), np.zeros(n, dtype=int))
        belief = field.query({0: 1.0, n - 1: 1.0}, targets=[n // 2])[n // 2]
        cross = np.array([a ** (n // 2), a ** (n - 1 - n // 2)])
        weights = np.linalg.solve([[1, a ** (n - 1)], [a ** (n - 1), 1]], cross)
        mean, deviation = weights.sum(), np.sqrt(1 - weights @ cross)
        found.append((abs(belief.mean() - mean) / deviation, belief.sd() / deviation))
    return np.array(found)


def test_along_chains_of_any_length_beliefs_are_those_of_the_gaussian():
    off, factor = chain_errors(bp.Constant(), 0.9, 3000, [10, 100], 2024).T
    assert off.max() < 0.15  # it was .7 at ten nodes
    assert np.abs(factor - 1).max() < 0.1  # it was .7 at a hundred, where nothing is known


def even_pairs(a):
    """600 pairs of a Gaussian law, spread evenly: no luck is in them."""
    columns, rows = (ndtri((np.arange(n) + 0.5) / n) for n in (24, 25))
    x, noise = (part.ravel() for part in np.meshgrid(columns / columns.std(), rows / rows.std()))
    return x, a * x + np.sqrt(1 - a**2) * noise


@pytest.mark.parametrize("update", [bp.Constant(), bp.Linear()])
def test_the_ridge_does_not_shrink_what_goes_many_steps(update):
    a, steps = 0.9, 20
    field = mm.KernelField([(i, i + 1) for i in range(steps)], update=update).fit(even_pairs(a))
    middle = field.query({0: 1.5, steps: 1.5}, targets=[steps // 2])[steps // 2]
    exact = 2 * 1.5 * a ** (steps // 2) / (1 + a**steps)
    assert abs(middle.mean() - exact) < 0.1  # it was .28 too low


def test_rounds_of_the_full_update_are_regressions_of_what_was_left():
    sender = bp.Full().variable(sample_of(make_pairs()[0], KERNEL, "x"), KERNEL, "x")
    pairs = np.repeat(np.arange(20)[:, None], 2, axis=1)
    into, _ = bp.Full().learn(sender, sender, pairs, RIDGE, True)
    gram, p = KERNEL(make_pairs()[0]), np.random.default_rng(0).normal(size=20)
    left, found = p, 0.0
    for _ in range(updates_file.ROUNDS):  # of least squares with a constant that is not penalised
        system = np.block([[gram + 20 * RIDGE * np.eye(20), np.ones((20, 1))], [np.ones((1, 20)), np.zeros((1, 1))]])
        solved = np.linalg.solve(system, np.append(left, 0.0))
        found = found + solved[[20, *range(20)]]
        left = left - solved[20] - gram @ solved[:20]
    np.testing.assert_allclose(p @ into, found, atol=1e-9)


class TwoModes:
    """Pairs of a symmetric law with two modes, and the means of a chain of them by sums over a fine grid."""

    stay, near, width = 0.95, 0.5, 0.45

    def pairs(self, rng, m):
        first = rng.choice([-1.0, 1.0], m)
        second = np.where(rng.random(m) < self.stay, first, -first)
        x, noise = rng.normal(size=(2, m))
        return first + self.width * x, second + self.width * (self.near * x + np.sqrt(1 - self.near**2) * noise)

    def middle(self, end, steps):
        grid = np.linspace(-4, 4, 401)
        x, y = np.meshgrid(grid, grid, indexing="ij")
        joint = 0.0
        for one, other in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            u, v = (x - one) / self.width, (y - other) / self.width
            square = (u**2 + v**2 - 2 * self.near * u * v) / (1 - self.near**2)
            joint = joint + (self.stay if one == other else 1 - self.stay) * np.exp(-square / 2)
        law = joint.sum(axis=1) / joint.sum()
        told = np.linalg.matrix_power(joint / joint.sum(axis=1, keepdims=True), steps // 2)
        belief = law * told[:, np.argmin(np.abs(grid - end))] ** 2
        mean = law @ grid
        return belief @ grid / belief.sum(), np.sqrt(law @ (grid - mean) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("bimodal", [False, True])
@pytest.mark.parametrize("m", [300, 600, 1100, 5000])
def test_means_in_the_middle_of_long_chains(m, bimodal):
    steps, seeds = 20, {300: 16, 600: 12, 1100: 8, 5000: 4}[m]
    graph = mm.Graph.of([(i, i + 1) for i in range(steps)])
    exact, deviation = TwoModes().middle(1.2, steps) if bimodal else (2 * 1.5 * 0.9**10 / (1 + 0.9**20), 1.0)
    errors = []
    for seed in range(seeds):
        rng = np.random.default_rng([5, m, seed])
        x, noise = rng.normal(size=(2, m))
        pairs = TwoModes().pairs(rng, m) if bimodal else (x, 0.9 * x + np.sqrt(0.19) * noise)
        end = 1.2 if bimodal else 1.5
        belief = mm.KernelField(graph).fit(pairs).query({0: end, steps: end}, targets=[10])[10]
        errors.append((belief.mean() - exact) / deviation)
    # Of the Gaussian itself, fitted to as many pairs, a mean here has an error of .12 with 300 pairs.
    spread = np.std(errors, ddof=1) / np.sqrt(seeds)
    assert abs(np.mean(errors)) < 0.1 + 3 * spread
    assert np.mean(np.abs(errors)) < 0.15 + 3 * spread


@pytest.mark.slow
@pytest.mark.parametrize("a", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(("update", "m"), [(bp.Constant(), 5000), (bp.Linear(), 2000), (bp.Full(), 800)])
def test_beliefs_along_gaussian_chains(update, m, a):
    lengths = [5, 10, 30, 100, 1000] if isinstance(update, bp.Constant) else [5, 10, 30]
    errors = np.array([chain_errors(update, a, m, lengths, [31, seed]) for seed in range(4)])
    # At 5000 pairs on average .15 deviations; the mean of fewer pairs is that much less certain.
    assert errors[..., 0].mean(axis=0).max() < 0.15 * np.sqrt(5000 / m)
    assert np.abs(errors[..., 1].mean(axis=0) - 1).max() < 0.1 * np.sqrt(5000 / m)


def test_seen_values_reach_their_neighbours_and_labels_are_variables_too():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], size=2000)
    near = np.where(rng.random(2000) < 0.8, colour, rng.choice(["red", "green", "blue"], size=2000))
    field = mm.KernelField([(0, 1), (1, 2), (2, 0), (2, 3)]).fit((colour, near))
    beliefs = field.query({0: "red", 1: "red"})
    # Two neighbours that agree with it eight or nine times in ten: p ∝ (.8 + .2/3)² against two times (.2/3)².
    red = 0.867**2 / (0.867**2 + 2 * 0.067**2)
    assert abs(beliefs.probabilities(2)["red"] - red) < 0.03
    assert max(beliefs.probabilities(3).values()) < red
    assert (beliefs[2].mode(), beliefs[0].mode()) == ("red", "red")
    # What is seen takes the floor of the query, as along trees: half of the mean is heard for every colour.
    assert field.query({0: "red", 1: "red"}, [2], floor=0.5).probabilities(2)["red"] < red - 0.03
    assert set(beliefs[3].sample(50, rng=0).tolist()) <= {"red", "green", "blue"}
    assert abs(beliefs[2].expect(lambda labels: labels == "red") - beliefs.probabilities(2)["red"]) < 1e-12
    heard = field.query({0: lambda labels: np.where(labels == "blue", 1.0, 1e-3)}, targets=[0])
    assert heard[0].mode() == "blue"
    with pytest.raises(InputError, match="none of the 4000 rows of the data has; expected one of 'blue', 'green'"):
        field.query({0: "pink"})


def test_labels_of_two_columns_are_evidence():
    """As a tuple, a list and an array: one value with two columns."""
    pairs = np.array([["no", "red"], ["yes", "red"], ["no", "blue"], ["yes", "blue"]] * 15)
    field = mm.KernelField([(0, 1)]).fit((pairs, pairs))
    for seen in (("yes", "blue"), ["yes", "blue"], np.array(["yes", "blue"])):
        assert field.query({0: seen}).probabilities(1)["yes", "blue"] > 0.9


def test_likelihoods_of_the_users_get_labels():
    labels = np.array(["up", "down"])[np.random.default_rng(3).integers(2, size=40)]
    chance = lambda seen, hidden: np.where(seen[:, None] == (hidden == "up"), 0.9, 0.1)  # noqa: E731
    field = mm.KernelField([(0, 1)]).fit((labels, labels), likelihood=chance)
    beliefs = field.query(observed=np.array([1.0, np.nan]))
    assert abs(beliefs.probabilities(0)["up"] - 0.9) < 0.1


def test_evidence_that_is_far_or_contradicts_itself_is_told():
    rng = np.random.default_rng(4)
    x = rng.normal(size=400)
    field = mm.KernelField([(0, 1), (1, 2)]).fit((x, 0.9 * x + 0.44 * rng.normal(size=400)))
    far = field.query({0: 50.0}).report.notes
    assert any("evidence[0] is far from all data" in note and "deviations from the nearest" in note for note in far)
    assert any("where the kernel is 0: beliefs" in note for note in far)
    assert any("extrapolated from the nearest rows" in note for note in field.query({0: 12.0}).report.notes)
    torn = field.query({0: 2.5, 2: -2.5}).report.notes
    assert any("the evidence about 1 contradicts itself" in note for note in torn)
    assert not any("far" in note or "contradicts" in note for note in field.query({0: 1.0, 2: 0.4}).report.notes)


def test_messages_without_a_floor_raise_no_warning_where_they_are_negative():
    rng = np.random.default_rng(12)
    x = rng.normal(size=200)
    y = 0.8 * x + 0.6 * rng.normal(size=200)
    field = mm.KernelField([(0, 1), (1, 2)], kernels=mm.kernels.RBF(0.8), ridge=0.005, update=bp.Full()).fit((x, y))
    beliefs = field.query({0: 1.0, 2: -0.5}, floor=None)
    assert not any("contradicts" in note for note in beliefs.report.notes)
    assert np.isfinite(beliefs[1].mean())


def test_beliefs_on_cycles_are_called_approximate_and_on_trees_they_are_not():
    rng = np.random.default_rng(6)
    x = rng.normal(size=200)
    pairs = x, 0.9 * x + 0.44 * rng.normal(size=200)
    ring = mm.KernelField([(0, 1), (1, 2), (2, 0)]).fit(pairs)
    said = "the graph has cycles, around which evidence is counted repeatedly: beliefs are approximate"
    assert f"note: {said} and overconfident." in repr(ring.query({0: 1.0}))
    assert f"{said}." in ring.query({0: 1.0}, counting=0.5).report.notes
    assert not any("cycles" in note for note in ring.query({}).report.notes)  # without evidence nothing is repeated
    chain = mm.KernelField([(0, 1), (1, 2)]).fit(pairs).query({0: 1.0})
    assert not any("cycles" in note for note in chain.report.notes)
    assert "approximate and mostly overconfident" in " ".join((mm.KernelField.__doc__ or "").split())


def test_few_pairs_are_told_where_evidence_is_many_steps_away():
    def notes(n, seen, targets):
        chain = [(i, i + 1) for i in range(n - 1)] + [("apart", "alone")]
        answer = fitted(bp.Constant(rank=10, power=2), chain).query(seen, targets=targets)
        return [note for note in answer.report.notes if note.startswith("learned from 20 pairs, and some targets are")]

    assert len(notes(7, {0: 1.0}, [5])) == 1
    assert not notes(7, {0: 1.0}, [4, "apart"])
    assert not notes(7, {0: 1.0, 6: 1.0}, None)


def test_sums_over_pairs_do_not_depend_on_how_they_are_cut(monkeypatch):
    whole = fitted(bp.Constant(1e-2)).learned.operators.matrices
    monkeypatch.setattr(updates_file, "CHUNK", 7)
    np.testing.assert_allclose(fitted(bp.Constant(1e-2)).learned.operators.matrices, whole, rtol=1e-9, atol=1e-12)


def test_single_precision_gives_nearly_the_same():
    field = fitted(bp.Constant(1e-2))
    evidence = {0: lambda x: np.exp(-((x - 1) ** 2))}
    double, single = (field.query(evidence, dtype=dtype)[2] for dtype in (np.float64, np.float32))
    assert single.weights.dtype == np.float32
    np.testing.assert_allclose(single.weights, double.weights, atol=1e-4)


def test_what_is_left_out_is_measured_and_below_the_bound():
    assert fitted(bp.Full()).approximation[0].operator_error < 1e-4
    coarse, fine = (fitted(bp.Constant(e)).approximation[0] for e in (1e-1, 1e-2))
    assert fine.operator_error < coarse.operator_error < coarse.operator_norm
    assert fine.rank > coarse.rank
    for found in (coarse, fine):
        assert found.operator_error <= found.bound
    linear = fitted(bp.Linear(1e-1)).approximation[0]
    assert linear.tensor_error == 0 < linear.feature_error
    # By hand: features of U on both sides, as (K_q, K) with Kronecker structure spelled out.
    x_t, x_s, _ = dense(make_pairs())
    field = fitted(bp.Constant(1e-1))
    variable, m = field.learned.variables["x"], len(x_t)
    exact, tensor = (bp_features(k, x) for k, x in ((KERNEL, x_s), (KERNEL**3, x_t)))
    low_s, low_t = (
        projected(k, x, v.pivots) for k, x, v in ((KERNEL, x_s, variable.features), (KERNEL**3, x_t, variable.tensor))
    )
    solve = lambda f, t: t.T @ f / m @ np.linalg.inv(f.T @ f / m + RIDGE * np.eye(f.shape[1]))  # noqa: E731
    error = np.linalg.norm(solve(exact, tensor) - solve(low_s, low_t))
    np.testing.assert_allclose(coarse.operator_error, error, rtol=1e-4)


def bp_features(kernel, x):
    """Exact features of points: the symmetric root of their Gram matrix."""
    values, vectors = np.linalg.eigh(kernel(x))
    return vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T


def projected(kernel, x, pivots):
    """The same features projected to the span of those of some of the points."""
    root = bp_features(kernel, x)
    at = [int(np.abs(x - p).argmin()) for p in pivots[:, 0]]
    q = np.linalg.qr(root[at].T)[0]
    return root @ q @ q.T


@pytest.mark.slow
def test_a_relation_has_two_directions_chosen_by_the_data():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 5, 400)
    field = mm.KernelField([(i, i + 1) for i in range(4)], relations=["up"] * 4).fit({"up": (x, x + 1)})
    beliefs = field.query({1: lambda x: np.exp(-50 * (x - 2.5) ** 2)})
    assert abs(beliefs[2].mean() - 3.5) < 0.2
    assert abs(beliefs[0].mean() - 1.5) < 0.2


def test_directions_and_an_isolated_node():
    x = np.random.default_rng(1).uniform(0, 5, 100)
    graph = mm.Graph.of([(i, i + 1) for i in range(4)], nodes=range(6))
    field = mm.KernelField(
        graph, relations=["up"] * 4, kernels=mm.kernels.RBF(0.3), ridge=1e-3, update=bp.Constant(rank=40, atoms=40)
    )
    beliefs = field.fit({"up": (x, x + 1)}).query({1: lambda x: np.exp(-50 * (x - 2.5) ** 2)})
    assert abs(beliefs[2].mean() - 3.5) < 0.3
    assert abs(beliefs[0].mean() - 1.5) < 0.3
    np.testing.assert_allclose(beliefs[5].weights, beliefs[5].weights[0])


@pytest.mark.slow
def test_a_node_of_degree_450_and_one_alone():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    edges = [(0, i) for i in range(1, 451)] + [(1, 2)]
    graph = mm.Graph.of(edges, nodes=range(452))
    field = mm.KernelField(graph, update=bp.Constant(rank=20)).fit((x, 0.5 * x + 0.8 * rng.normal(size=500)))
    for dtype in (np.float64, np.float32):
        beliefs = field.query({i: lambda v: np.exp(-((v - 1) ** 2)) for i in range(1, 451)}, dtype=dtype)
        assert np.isfinite(beliefs[0].weights).all()
        assert beliefs[0].sd() < 0.2
        np.testing.assert_allclose(beliefs[451].weights, beliefs[451].weights[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: mm.KernelField([(0, 0), (0, 1)]), InputError, "joins 0 to itself"),
        (lambda: mm.KernelField([(0, 1), (1, 0)]), InputError, "given twice"),
        (lambda: bp.Constant(tolerance=0.0), ParameterError, "tolerance is 0.0"),
        (lambda: bp.Linear(tolerance=-1e-3), ParameterError, "tolerance is -0.001"),
        (lambda: bp.Constant(tolerance=1.5), ParameterError, "expected a share below 1"),
        (lambda: bp.Constant(rank=0), ParameterError, "rank is 0"),
        (lambda: mm.KernelField(CYCLES, update="constant"), KindError, r"expected mm.bp.Full\(\)"),
        (lambda: fitted(bp.Constant(rank=500)), ParameterError, "rank is 500, and .x. has 40 points"),
        (lambda: fitted(bp.Full(), pairs=([1.0, 2.0], [1.0, 2.0])), EmptyError, "has 2 pairs"),
        (lambda: fitted(bp.Full(), pairs=(np.ones(9), np.ones(8))), ShapeError, "9 and 8 points"),
        (lambda: fitted(bp.Full(), pairs=([], [])), EmptyError, "has 0 pairs"),
        (lambda: fitted(bp.Full(), pairs=(3.0, np.ones(8))), KindError, "a sample is a float; expected points"),
        (lambda: fitted(bp.Full(), pairs=(np.ones(8), None)), KindError, "a sample is a NoneType; expected points"),
        (lambda: fitted(bp.Full(), pairs=(np.r_[np.inf, np.ones(9)], np.arange(10.0))), InputError, "inf"),
        (lambda: fitted(bp.Full(), relations=["a", "a", "b"]), ShapeError, "relations has 3 entries"),
        (lambda: fitted(bp.Full(), relations=list("aabba")), KindError, "there are 2 relations"),
        (lambda: fitted(bp.Full(), relations=list("aabba"), pairs={"a": make_pairs()}), EmptyError, "relation 'b'"),
        (lambda: fitted(bp.Full(), variables=[0, 1, 2]), ShapeError, "variables has 3 entries"),
        (lambda: fitted(bp.Full(), variables=[0, 1, 0, 0]), InputError, "variables of different kinds"),
        (lambda: mm.KernelField(mm.Graph.of([], nodes=[1, 2])).fit(make_pairs()), EmptyError, "no edges"),
        (lambda: fitted(bp.Full()).query({9: 1.0}), InputError, "no node 9"),
        (lambda: fitted(bp.Full()).query({0: np.nan}), InputError, "evidence"),
        (lambda: fitted(bp.Full()).query({0: lambda x: 0 * x}), InputError, "zero at every point"),
        (lambda: fitted(bp.Full()).query({0: lambda x: -(x**2)}), InputError, "negative value"),
        (lambda: fitted(bp.Full()).query({0: lambda x: x[:3]}), ShapeError, "likelihood gave shape"),
        (lambda: fitted(bp.Full()).query(observed=np.zeros(4)), InputError, "have no likelihood"),
        (lambda: fitted(bp.Full()).query({0: 1.0}, counting=0), ParameterError, "counting is 0"),
        (lambda: fitted(bp.Full()).query({0: 1.0}, counting=1.5), ParameterError, "at most 1"),
        (lambda: fitted(bp.Full()).query({0: 1.0}, counting=0.5, floor=None), ParameterError, "need a floor"),
    ],
)
def test_bad_input_is_refused_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_observations_are_checked():
    x, y = make_pairs()
    field = mm.KernelField(CYCLES, kernels=KERNEL, ridge=RIDGE).fit((x, y), observed=(x, x + 0.1 * y))
    with pytest.raises(ShapeError, match=r"observed has shape \(3,\); expected \(4, ...\)"):
        field.query(observed=np.zeros(3))
    with pytest.raises(InputError, match="observed holds infinity"):
        field.query(observed=np.array([0, np.inf, 0, 0]))
    # Queries that are asked together stop together, once the last of them stands still.
    both = np.array([[0.5, np.nan, 0.5, 0.5], [-0.5, -0.5, np.nan, np.nan]])
    together, alone = (field.query(observed=each, tolerance=1e-12) for each in (both, both[0]))
    assert together[1].weights.shape[0] == 2
    np.testing.assert_allclose(together[1].weights[0], alone[1].weights, rtol=1e-9)
    # As many queries as nodes: a square of numbers is no vector for each node.
    square = field.query(observed=np.array([[0.5, np.nan, 0.5, 0.5], *np.zeros((3, 4))]), tolerance=1e-12)
    np.testing.assert_allclose(square[1].weights[0], alone[1].weights, rtol=1e-9)


@pytest.mark.parametrize(("size", "expected"), [(80, 1.85), (24, 1.98)])
def test_messages_go_round_a_ring_until_they_stand_still(size, expected):
    """Both poles are seen at 2: fifteen sweeps left what is twenty steps away at zero."""
    r = np.random.default_rng(11)
    x = r.normal(size=2000)
    pairs = x, 0.98 * x + np.sqrt(1 - 0.98**2) * r.normal(size=2000)
    ring = mm.KernelField([(i, (i + 1) % size) for i in range(size)]).fit(pairs)
    beliefs = ring.query({0: 2.0, size // 2: 2.0})
    assert beliefs.report.converged
    assert abs(beliefs[size // 4].mean() - expected) < 0.3


def test_messages_that_do_not_settle_are_said_not_to_be_at_rest():
    """Short cycles hear strong evidence again and again; a user's own number of sweeps is kept."""
    r = np.random.default_rng(12)
    x = r.normal(size=500)
    pairs = x, 0.9 * x + np.sqrt(1 - 0.9**2) * r.normal(size=500)
    side = 8
    edges = [(i, i + 1) for i in range(side**2) if (i + 1) % side] + [(i, i + side) for i in range(side**2 - side)]
    found = mm.KernelField(edges).fit(pairs).query({0: 2.0, side**2 - 1: -2.0}, tolerance=1e-9).report
    assert not found.converged
    assert found.status.startswith("not converged after 60 sweeps")
    assert any("messages still changed by" in note for note in found.notes)
    assert mm.KernelField(edges, schedule=Flooding(3)).fit(pairs).query({0: 2.0}).report.steps == 3


@pytest.mark.parametrize("size", [3, 5, 8])
def test_beliefs_on_short_rings_are_the_data_without_evidence_and_gaussian_ones_with_it(size):
    rng = np.random.default_rng(4)
    x = rng.normal(size=1000)
    pairs = x, 0.6 * x + 0.8 * rng.normal(size=1000)
    ring = mm.KernelField([(i, (i + 1) % size) for i in range(size)]).fit(pairs)
    assert ring.query({})[0].sd() == pytest.approx(np.std(pairs), rel=0.02)
    # The Gaussian ring with these neighbours: each pair's precision, without that of a node, which is counted twice.
    precision = -np.eye(size)
    for i in range(size):
        both = np.ix_([i, (i + 1) % size], [i, (i + 1) % size])
        precision[both] += np.linalg.inv([[1, 0.6], [0.6, 1]])
    covariance = np.linalg.inv(precision)
    seen = ring.query({0: 2.0})[1]
    assert seen.mean() == pytest.approx(2 * covariance[1, 0] / covariance[0, 0], abs=0.1)
    assert seen.sd() == pytest.approx(np.sqrt(covariance[1, 1] - covariance[1, 0] ** 2 / covariance[0, 0]), rel=0.1)
