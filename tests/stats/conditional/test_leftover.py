"""What regressions missed is looked for among neighbours in z, and other regressions find steps and narrow bends."""

import numpy as np
import pytest
import scipy
from sklearn.tree import DecisionTreeRegressor

import meanmap as mm
from benchmarks.structures import CELLS, STRUCTURES, structure
from meanmap.stats.conditional.leftover import Agreement, Leftover, Neighbours
from meanmap.stats.conditional.regression import Basis, Linear, best_fit, candidates
from meanmap.stats.conditional.rough import Leaves, RoughFunctions, of_values, rough_bases
from meanmap.stats.conditional.statistics import Local, Products, beyond
from meanmap.stats.conditional.together import Together, agreement


def test_steps_are_found():
    found = [
        mm.conditional_independence_test(*structure("step", 200, seed), n_permutations=99, rng=0) for seed in range(3)
    ]
    assert max(result.pvalue for result in found) > 0.05  # all were .01
    x, y, z = structure("step", 200, 0)
    assert mm.conditional_independence_test(x, y + (x - (z[:, 0] > 0.3)), z, n_permutations=99, rng=0).pvalue <= 0.05


def test_products_of_three_columns_are_found_or_told():
    """Of 60 data sets 11 were rejected, 6 of them without a word; regressions followed .993 of the product."""
    rejected = silent = 0
    for seed in range(40):
        found = mm.conditional_independence_test(*structure("product of three", 300, seed), n_permutations=99, rng=0)
        rejected += found.pvalue <= 0.05
        silent += found.pvalue <= 0.05 and not found.warnings
    assert silent <= scipy.stats.binom.isf(1e-3, 40, 0.05)
    assert rejected <= scipy.stats.binom.isf(1e-4, 40, 0.05)


def test_agreement_with_products_is_normal_for_noise():
    """Scores of noise that a smooth regression left, for products that it mostly follows, are those of p-values."""
    rng, scores = np.random.default_rng(0), []
    z = rng.normal(size=(200, 3))
    linear = Linear.of(z)
    together = Together.of(z)
    assert together.chosen == ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    for _ in range(300):
        noise = rng.normal(size=(200, 1))
        fit = best_fit(linear, candidates(z, z, linear), noise + z.prod(axis=1, keepdims=True), 0.3)
        scores.append(agreement(fit.in_sample(noise), fit, together(z)).score)
    chances = scipy.stats.norm.sf(np.array(scores))
    for each in chances.T:
        assert (each <= 0.05).mean() <= scipy.stats.binom.isf(1e-4, 300, 0.05) / 300


def test_what_no_regression_finds_is_told():
    result = mm.conditional_independence_test(*structure("largest of five", 200, 0), n_permutations=99, rng=0)
    assert any(
        "rows that are neighbours in z are still correlated after all regressions" in text for text in result.warnings
    )


def test_what_cannot_have_made_the_answer_is_not_told():
    # Given z the law of x has two branches, in which y tells them apart: regressions never find all, but x makes y.
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, water = rng.normal(size=(2, 200))
        y = np.tanh(x) + np.abs(water) + 0.2 * rng.normal(size=200)
        z = {"harvest": y**2 + 0.5 * rng.normal(size=200), "water": water}
        result = mm.conditional_independence_test(x, y, z, n_permutations=99, rng=0)
        assert result.pvalue == 0.01
        assert not any("neighbours" in text for text in result.warnings)
        graph = mm.structure.KernelTests({"x": x, "y": y, **z}, rng=0)
        assert graph.pvalues([("x", "y")], ("harvest", "water"))[0] <= 0.01
        assert not graph.notes()


def test_what_functions_of_z_can_add_is_taken_off():
    assert beyond(9.0, 4.0) == 1.0
    assert beyond(4.0, 9.0) == 0.0
    rng = np.random.default_rng(0)
    u, v, z = rng.normal(size=(60, 3)), rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    f = np.sin(z)
    products = Products([(u + f, v + f)], [1.0], Local(z))
    only = Products([(np.tile(f, 3), np.tile(f, 2))], [1.0], Local(z))
    ones = np.ones((60, 1), np.float32)
    # What f adds to the length of the mean is at most the root of its size.
    assert only.forms(ones)[0] <= 60 * only.size
    value, law = products.bootstrap(np.ones(60), 20, np.random.default_rng(0))
    less, same = products.bootstrap(np.ones(60), 20, np.random.default_rng(0), bias=0.02)
    np.testing.assert_array_equal(law.draws, same.draws)
    size = np.mean(np.sum((u + f) ** 2, axis=1)) * np.mean(np.sum((v + f) ** 2, axis=1))
    np.testing.assert_allclose(less, max(0, np.sqrt(value) - np.sqrt(0.02 * size)) ** 2, rtol=1e-4)


def test_pc_finds_steps():
    x, y, z = structure("stairs", 200, 1)
    graph = mm.pc({"x": x, "y": y, "z": z[:, 0]}, rng=0)
    assert not any({"x", "y"} == set(edge) for edge in (*graph.directed, *graph.undirected))


def test_many_rows_find_steps_too(tmp_path):
    x, y, z = structure("stairs", 5200, 0)
    result = mm.conditional_independence_test(x, y, z, n_permutations=99, rng=0)
    assert result.pvalue > 0.02
    plan = mm.stats.plan("conditional independence", x, y, z, rng=0)
    again = mm.load(mm.save(plan, tmp_path / "plan"))
    assert again.state(x[:50], y[:50], z[:50]).sums == plan.state(x[:50], y[:50], z[:50]).sums


def test_noise_agrees_as_much_as_its_regression_says():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 1))
    linear = Linear.of(z)
    targets = rng.normal(size=(60, 1))
    fit = best_fit(linear, candidates(z, z, linear), targets + z**2)
    near = Neighbours.of(z)
    left = np.eye(60) - linear.vectors @ linear.vectors.T - fit.basis.vectors * fit.shrinkage @ fit.basis.vectors.T
    u = fit.in_sample(targets)
    found = Agreement.of(u, fit, near)
    order = np.argsort(z[:, 0])
    for place, reach in enumerate((1, 4)):
        pairs = [(order[i], order[i + lag]) for lag in range(1, reach + 1) for i in range(60 - lag)]
        expected = sum((left @ left.T)[i, j] for i, j in pairs) * np.sum(u**2) / np.trace(left @ left.T)
        products = np.array([u[i, 0] * u[j, 0] for i, j in pairs])
        np.testing.assert_allclose(found.score[place], (products.sum() - expected) / np.sqrt(np.sum(products**2)))


def test_neighbours_are_pairs_of_different_clusters():
    z = np.stack([np.arange(12.0), np.arange(12.0) % 2], axis=1)
    along, further, nearest = Neighbours.of(z).pairs
    assert set(zip(*map(np.ndarray.tolist, along), strict=True)) == {(i, i + 1) for i in range(11)}
    assert len(further[0]) == 11 + 10 + 9 + 8
    assert (nearest[0] < nearest[1]).all()
    assert len(set(zip(*map(np.ndarray.tolist, nearest), strict=True))) == len(nearest[0])
    units = np.arange(12) // 2
    for one, other in Neighbours.of(z, units).pairs:
        assert (units[one] != units[other]).all()
    assert Neighbours.of(np.arange(12)[:, None] % 2).pairs == ()


def test_both_sides_must_agree_in_one_place():
    left, right = (
        Agreement(np.array([5.0, 1.0]), np.array([0.5, 0.1]), np.array([0.7, 0.4])),
        Agreement(np.array([0.0, 2.0]), np.array([0.0, 0.2]), np.array([0.1, 0.5])),
    )
    found = Leftover.of(left, right)
    assert (found.score, found.shares, found.places) == (1.0, (0.1, 0.2), 2)
    assert found.chance == pytest.approx(2 * 0.15865525**2)
    assert found.bias == pytest.approx(0.2)
    assert Leftover.of(Agreement(*np.zeros((3, 0))), left).chance == 0.25


def test_leaves_are_those_of_the_tree():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 1))
    leaves = Leaves.of(z, y, 1)
    tree = DecisionTreeRegressor(min_samples_leaf=5, max_leaf_nodes=10, random_state=0).fit(z, y)
    new = rng.normal(size=(50, 2))
    found = leaves(new)
    assert found.shape == (50, 10)
    np.testing.assert_array_equal(
        found.argmax(axis=1),
        np.unique(tree.tree_.children_left < 0, return_inverse=True)[1].cumsum()[tree.apply(new)] - 1,
    )
    many = Leaves.of(z, y, 4)(new)
    np.testing.assert_allclose(np.sum(many**2, axis=1), 1.0)


def test_a_function_for_each_value_of_codes():
    z = np.stack([np.repeat(np.arange(10), 3), np.arange(30)], axis=1).astype(float)
    (part,) = of_values(z, 0)
    gram = part(z) @ part(z).T
    np.testing.assert_allclose(gram, z[:, :1] == z[:, 0], atol=1e-4)
    assert of_values(z, 1) == ()


def test_bases_hold_steps():
    x, _, z = structure("stairs", 200, 0)
    linear = Linear.of(z)
    bases = rough_bases(RoughFunctions(z, np.arange(200), linear, 1), [x[:, None]])
    truth = CELLS[(8 * z[:, 0]).astype(int)][:, None]
    for more, least in ((candidates(z, z, linear), 0.1), (bases, 0.0)):
        error = float(np.mean((best_fit(linear, more, x[:, None]).in_sample(x[:, None]) - (x[:, None] - truth)) ** 2))
        assert error > least if least else error < 0.06
    assert isinstance(bases[0], Basis)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(STRUCTURES))
def test_twelve_structures_keep_the_level_or_are_told(name):
    silent, repeats = 0, 60
    for seed in range(repeats):
        result = mm.conditional_independence_test(*structure(name, 300, 1000 + seed), n_permutations=199, rng=seed)
        silent += result.pvalue <= 0.05 and not result.warnings
    assert silent <= 10  # the .9995 quantile of binomial(60, .05)


def test_agreement_in_the_functions_of_a_regression():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(50, 2))
    linear = Linear.of(z)
    fit = best_fit(linear, candidates(z, z, linear), z[:, :1] ** 2 + 0.1 * rng.normal(size=(50, 1)))
    near, other = Neighbours.of(z), best_fit(linear, candidates(z, z, linear), rng.normal(size=(50, 1)))
    for each in (fit, other, fit):  # sums are kept by functions, and shrinkage is each regression's own
        own = np.hstack([linear.vectors, each.basis.vectors * each.shrinkage])
        own = own - own.mean(axis=0)
        one, two = near.pairs[-1]
        expected = np.mean(np.sum(own[one] * own[two], axis=1)) / np.mean(np.sum(own**2, axis=1))
        np.testing.assert_allclose(near.agreement(len(near.pairs) - 1, each), expected)
