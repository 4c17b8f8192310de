import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core.errors import EmptyError, KindError, NonFiniteError, ShapeError
from meanmap.families import Normal
from meanmap.kernels import RBF, Bags, EmbeddingGaussian, ExpectedProduct, Laplace, Matern
from meanmap.kernels.distributions.parts import BagPart


def by_hand(kernel, x, y):
    """The V-statistic of every pair of bags."""
    return np.array([[kernel(a, b).mean() for b in y] for a in x])


@pytest.mark.parametrize("kernel", [RBF(0.7), RBF([0.5, 3.0]), 2.0 * RBF(1.0), Laplace(1.0), Matern(2.0)], ids=repr)
def test_ragged_bags_equal_the_v_statistic(kernel, bags):
    gram = ExpectedProduct(kernel)(bags)
    np.testing.assert_allclose(gram, by_hand(kernel, bags, bags), atol=1e-14)
    np.testing.assert_allclose(ExpectedProduct(kernel)(bags[:3], bags[2:]), gram[:3, 2:], atol=1e-14)


def test_bags_on_the_line_and_in_space(bags):
    line = [bag[:, 0] for bag in bags]
    np.testing.assert_allclose(ExpectedProduct(RBF(0.3))(line), by_hand(RBF(0.3), line, line), atol=1e-14)
    rng = np.random.default_rng(0)
    space = [rng.normal(size=(size, 4)) for size in (3, 700, 20)]  # the second in more than one piece
    np.testing.assert_allclose(ExpectedProduct(RBF(2.0))(space), by_hand(RBF(2.0), space, space), atol=1e-14)


def test_squared_norm_of_a_difference_is_the_mmd_statistic(bags):
    x, y = bags[0], bags[1]
    square = RBF(0.7)(x).mean() + RBF(0.7)(y).mean() - 2 * RBF(0.7)(x, y).mean()
    kernel = EmbeddingGaussian(ExpectedProduct(RBF(0.7)), width=0.4)
    assert kernel(bags)[0, 1] == pytest.approx(np.exp(-square / (2 * 0.4**2)), abs=1e-13)


def test_spectral_coordinates_equal_points_in_tiles():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(30, 50, 2)) * 2
    quick = ExpectedProduct(RBF(0.8))(data)
    with jax.enable_x64(True):
        slow = BagPart(RBF(0.8))(Bags(data))
    np.testing.assert_allclose(quick, slow, atol=1e-14)


def test_a_thousand_points_far_apart_fall_back_to_tiles():
    """The spread over the lengthscale makes spectral coordinates dearer than pairs."""
    data = [np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[1e4, -1e4]])]
    np.testing.assert_allclose(ExpectedProduct(RBF(0.5))(data), by_hand(RBF(0.5), data, data), atol=1e-15)


def test_500_bags_of_100_points_take_little_time_and_memory():
    rng = np.random.default_rng(0)
    data = rng.normal(rng.normal(size=(500, 1, 2)), 1.0, size=(500, 100, 2))
    kernel = ExpectedProduct(RBF(1.0))
    start = time.perf_counter()
    gram = kernel(data)
    assert time.perf_counter() - start < 20  # a quarter of a second at rest; pairs of points would be 2.5e9
    for i, j in ((0, 1), (17, 17), (499, 250)):
        assert gram[i, j] == pytest.approx(RBF(1.0)(data[i], data[j]).mean(), abs=1e-14)


def test_tiles_of_points_never_hold_all_pairs():
    bags = jax.eval_shape(lambda: Bags(jnp.zeros((64, 100, 2), jnp.float32)))
    compiled = jax.jit(lambda x, y: BagPart(Laplace(1.0)).gram(x, y)).lower(bags, bags).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 0.1 * 4 * (64 * 100) ** 2


def test_pure_gram_of_bags_under_jit_vmap_and_grad(bags):
    with jax.enable_x64(True):
        read = jax.tree.map(jnp.asarray, Bags(bags))
        kernel = ExpectedProduct(RBF(0.7))
        gram = kernel(bags)
        np.testing.assert_allclose(jax.jit(lambda x: kernel(x))(read), gram, atol=1e-13)
        stacked = jax.tree.map(lambda leaf: leaf.reshape(2, 6, *leaf.shape[1:]), read)
        np.testing.assert_allclose(jax.vmap(kernel)(stacked)[1], gram[6:, 6:], atol=1e-13)

        @jax.jit
        def total(lengthscale):
            return ExpectedProduct(RBF(lengthscale))(read).sum()

        step = 1e-5
        slope = (total(0.7 + step) - total(0.7 - step)) / (2 * step)
        np.testing.assert_allclose(jax.grad(total)(0.7), slope, rtol=1e-7)


def test_bags_beside_families(bags):
    laws = Normal(np.arange(12.0), 1.0)
    kernel = ExpectedProduct((RBF(1.0), RBF(2.0)))
    expected = by_hand(RBF(1.0), bags, bags) * ExpectedProduct(RBF(2.0))(laws)
    np.testing.assert_allclose(kernel((bags, laws)), expected, atol=1e-14)


def test_scale_of_bags_is_that_of_all_points():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(9, 30, 2)) * [1.0, 5.0]
    kernel = ExpectedProduct.at_scale_of(data)
    np.testing.assert_allclose(kernel.kernel.lengthscale, data.reshape(-1, 2).std(axis=0), rtol=1e-12)


def test_distribution_regression_finds_the_spread_of_a_bag():
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.5, 3.0, 150)
    data = [rng.normal(0, s, size=(rng.integers(60, 120), 1)) for s in spread]
    kernel = EmbeddingGaussian.at_scale_of(data[:100])
    weights = np.linalg.solve(kernel(data[:100]) + 1e-3 * np.eye(100), spread[:100])
    error = kernel(data[100:], data[:100]) @ weights - spread[100:]
    assert np.sqrt(np.mean(error**2)) < 0.25  # each bag alone tells its spread to about a twelfth


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([np.zeros((3, 2)), np.zeros((0, 2))], EmptyError, r"x\[1\] is a bag without points"),
        ([np.zeros((3, 2)), np.zeros((4, 3))], ShapeError, r"x\[0\] has 2 columns and x\[1\] has 3"),
        ([], EmptyError, "x holds no bags"),
        ([1.0, 2.0], ShapeError, r"x\[0\] is the single number 1.0; expected the points of one bag"),
        (np.zeros((3, 2)), ShapeError, r"array of shape \(3, 2\); expected bags of points: \(bags, points, columns\)"),
        ([np.array([[0.0], [np.nan]])], NonFiniteError, r"x\[0\] holds 1 value that is not finite"),
        ([["a", "b"]], KindError, r"x\[0\] holds"),
    ],
)
def test_bad_bags_are_named(data, error, words):
    with pytest.raises(error, match=words):
        ExpectedProduct()(data)


def test_bags_of_other_columns_do_not_meet():
    with pytest.raises(ShapeError, match="x has 2 columns and y has 3"):
        ExpectedProduct()(np.zeros((4, 5, 2)), np.zeros((4, 5, 3)))
    with pytest.raises(ShapeError, match="lengthscale has 3 entries"):
        ExpectedProduct(RBF([1.0, 1.0, 1.0]))(np.zeros((4, 5, 2)))
    with pytest.raises(KindError, match="x is Bags and y is Normal"):
        ExpectedProduct()(np.zeros((4, 5, 1)), Normal([0.0], 1.0))
    with pytest.raises(KindError, match="expected a list with one array of points per bag"):
        Bags(3.0)


def test_sums_and_products_take_bags_of_different_largest_sizes():
    x, y = [[1.0, 2.0, 3.0], [4.0]], [[0.0], [2.0, 5.0]]
    k = ExpectedProduct(RBF(1.0))
    np.testing.assert_allclose((2.0 * k)(x, y), 2 * k(x, y), atol=1e-14)
    np.testing.assert_allclose((k + k)(x, y), 2 * k(x, y), atol=1e-14)
    np.testing.assert_allclose((k * k)(x, y), k(x, y) ** 2, atol=1e-14)


def test_sums_refuse_bags_of_different_columns():
    k = 2.0 * ExpectedProduct(RBF(1.0))
    with pytest.raises(ShapeError, match="differ in their columns"):
        k([[[1.0, 2.0]], [[0.0, 1.0]]], [[[1.0]], [[2.0]]])
