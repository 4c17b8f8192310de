"""A law suite for every kernel: each example of `examples.py` against each law, and against its own formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meanmap import kernels
from tests.kernels.examples import DIFFERENTIABLE, EXAMPLES, IN_JAX, size, take
from tests.kernels.laws import LAWS, tolerance

every_kernel = pytest.mark.parametrize("example", EXAMPLES, ids=repr)
every_kernel_in_jax = pytest.mark.parametrize("example", IN_JAX, ids=repr)
every_differentiable_kernel = pytest.mark.parametrize("example", DIFFERENTIABLE, ids=repr)


def test_every_public_kernel_has_an_example():
    def classes(kernel):
        inner = getattr(kernel, "members", ()) + ((kernel.kernel,) if hasattr(kernel, "kernel") else ())
        return {type(kernel)}.union(*map(classes, inner))

    public = {getattr(kernels, name) for name in kernels.__all__} - {kernels.Kernel, kernels.Stationary}
    on_points = {kernel for kernel in public if not kernel.__module__.startswith("meanmap.kernels.distributions")}
    assert set.union(*(classes(example.kernel) for example in EXAMPLES)) == on_points


@pytest.mark.oldest
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@every_kernel
@given(data=st.data())
def test_law(example, law, data):
    law(example.kernel, data.draw(example.points()))


@pytest.mark.oldest
@every_kernel
@given(data=st.data())
def test_gram_matrix_is_that_of_an_independent_formula(example, data):
    x, y = data.draw(example.points()), data.draw(example.points())
    for ours, expected in (
        (example.kernel(x, y), example.reference(x, y)),
        (example.kernel(x), example.reference(x, x)),
    ):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance(example.kernel, expected))


# Around one and two tiles of 512, where padding and mirroring of blocks could go wrong; by day for one kernel of every
# kind of point and of formula, by night for all.
TILED = [
    "rbf, five columns",
    "laplace, many columns",
    "polynomial",
    "hamming",
    "spectrum",
    "precomputed",
    "rotation",
    "mixed table, square of a sum",
    "mixed table, text and scaled members",
]
SIZES = [
    pytest.param(example, n, marks=() if example.name in TILED else pytest.mark.slow, id=f"{example}-{n}")
    for example in EXAMPLES
    for n in ((511, 512, 513, 1025) if example.name in ("rbf, five columns", "hamming") else (513,))
]


@pytest.mark.parametrize(("example", "n"), SIZES)
def test_tiles_make_the_whole(example, n):
    x = example.draw(np.random.default_rng(n), n)
    some = np.r_[0:3, 254:258, 509 : min(n, 514), n - 2 : n]
    part = take(x, some)
    expected = example.reference(part, part)
    atol = tolerance(example.kernel, expected)
    gram = example.kernel(x)
    assert gram.shape == (n, n)
    np.testing.assert_allclose(gram[np.ix_(some, some)], expected, rtol=0, atol=atol)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-13, atol=0)
    wide = example.kernel(part, x)
    np.testing.assert_allclose(wide, gram[some], rtol=0, atol=atol)
    np.testing.assert_allclose(example.kernel(x, part), wide.T, rtol=0, atol=atol)
    v = np.sin(np.arange(float(n)))
    np.testing.assert_allclose(example.kernel.matvec(part, x, v), wide @ v, rtol=0, atol=n * atol)
    np.testing.assert_allclose(example.kernel.mean(x, part), wide.mean(axis=0), rtol=0, atol=n * atol)


def is_real(leaf):
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)


def in_precision(points, dtype):
    """Real arrays in another precision; labels, row numbers and text stay as they are."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if is_real(leaf) else leaf, points)


def everything(kernel, x, y):
    return kernel(x, y), kernel.diag(x), kernel.mean(x, y), kernel(x)


def assert_close_in(dtype, ours, exact, rtol):
    for result, expected in zip(ours, exact, strict=True):
        assert isinstance(result, jax.Array)
        assert (result.dtype, result.weak_type) == (dtype, False)
        np.testing.assert_allclose(result, expected, rtol=0, atol=rtol * max(1, np.abs(expected).max()))


def stack(*points):
    """Several samples of one size along a new leading axis; the same text for all."""
    if isinstance(points[0], dict):
        return {name: stack(*(sample[name] for sample in points)) for name in points[0]}
    return points[0] if isinstance(points[0], list) else np.stack(points)


@pytest.mark.oldest
@every_kernel_in_jax
def test_survives_jit_and_vmap(example):
    kernel = example.kernel
    x = stack(*(example.draw(np.random.default_rng(seed), 9) for seed in range(2)))
    y = stack(*(example.draw(np.random.default_rng(seed), 4) for seed in range(7, 9)))
    one_by_one = [everything(kernel, part(x, i), part(y, i)) for i in range(2)]
    first, second = without_text(example.to_jax(x)), without_text(example.to_jax(y))
    call = jax.vmap(lambda a, b: everything(kernel, with_text(a, x), with_text(b, y)))
    mapped = jax.jit(call)(first, second)
    for i in range(2):
        assert_close_in(jnp.float32, [result[i] for result in mapped], one_by_one[i], 3e-5)


def without_text(points):
    return {n: c for n, c in points.items() if not isinstance(c, list)} if isinstance(points, dict) else points


def with_text(points, source):
    return {**source, **points} if isinstance(points, dict) else points


def part(points, i):
    if isinstance(points, dict):
        return {name: part(column, i) for name, column in points.items()}
    return points if isinstance(points, list) else points[i]


@pytest.mark.oldest
@pytest.mark.parametrize("name", ["rbf, five columns", "matern 5/2", "torus", "mixed table, product", "hamming"])
def test_jax_in_jax_out_in_its_precision(name):
    """Eagerly, and also with the switch thrown that makes float64 possible: it must neither widen nor narrow."""
    example = next(example for example in EXAMPLES if example.name == name)
    x, y = (example.draw(np.random.default_rng(seed), n) for seed, n in ((0, 9), (1, 4)))
    exact = everything(example.kernel, x, y)

    def check(dtype, rtol):
        first, second = (in_precision(example.to_jax(points), dtype) for points in (x, y))
        assert_close_in(dtype, everything(example.kernel, first, second), exact, rtol)

    check(jnp.float32, 3e-5)
    with jax.enable_x64(True):
        if any(map(is_real, jax.tree.leaves(example.to_jax(x)))):
            check(jnp.float32, 3e-5)
        check(jnp.float64, 1e-12)


def weights(shape):
    return jnp.cos(1.0 + jnp.arange(float(np.prod(shape)))).reshape(shape)


def assert_gradient_is_slope(value_and_grad, at, direction, rtol=1e-6, step=1e-5):
    """The derivative along a direction against central differences; no NaN anywhere."""
    gradient = jax.tree.leaves(value_and_grad(at)[1])
    assert all(jnp.isfinite(leaf).all() for leaf in gradient)
    above, below = (
        value_and_grad(jax.tree.map(lambda a, d: a + sign * step * d, at, direction))[0]  # noqa: B023
        for sign in (1, -1)
    )
    along = sum(jnp.vdot(g, d) for g, d in zip(gradient, jax.tree.leaves(direction), strict=True))
    np.testing.assert_allclose(along, (above - below) / (2 * step), rtol=rtol, atol=1e-6)


@pytest.mark.oldest
@every_differentiable_kernel
def test_gradients_in_points_are_finite_differences(example):
    """Of the Gram matrices with other points and with themselves at once."""
    rng, kernel = np.random.default_rng(3), example.kernel
    x, y, direction = (example.draw(rng, n) for n in (4, 4, 4))

    def function(x, y):
        return jnp.vdot(weights((4, 4)), kernel(x, y)) + jnp.vdot(weights((4, 4)).T, kernel(x))

    with jax.enable_x64(True):
        x, y, direction = map(jnp.asarray, (x, y, direction))
        value_and_grad = jax.jit(jax.value_and_grad(function))
        assert_gradient_is_slope(lambda x: value_and_grad(x, y), x, direction)
        # Where points coincide, with each other and with those of y, and at zero.
        x = x.at[2].set(x[0]).at[3].set(0.0)
        if example.smooth and example.name != "cosine":  # which has no limit at zero
            assert_gradient_is_slope(lambda moved: value_and_grad(moved, x), x, direction, rtol=1e-5)
        else:
            assert jnp.isfinite(value_and_grad(x, x)[1]).all()


@pytest.mark.parametrize("kernel", [kernels.Matern(0.9, 1.5), 2.0 * kernels.RBF(1.0) + kernels.Linear()], ids=repr)
def test_gradients_of_streamed_products_and_diagonals(kernel):
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        x, y, direction = (jnp.asarray(rng.normal(size=(4, 2))) for _ in range(3))

        def function(x):
            first, second, third = weights((3, 4))
            total = jnp.vdot(first, kernel.mean(x, y)) + jnp.vdot(second, kernel.diag(x))
            return total + jnp.vdot(third, kernel.matvec(x, None, third))

        assert_gradient_is_slope(jax.jit(jax.value_and_grad(function)), x, direction)


@pytest.mark.oldest
@pytest.mark.parametrize(
    "example", [e for e in IN_JAX if jax.tree.leaves(e.kernel) and e.name != "precomputed"], ids=repr
)
def test_gradients_in_hyperparameters_are_finite_differences(example):
    x = example.draw(np.random.default_rng(3), 4)
    with jax.enable_x64(True):
        x, kernel = example.to_jax(x), jax.tree.map(jnp.asarray, example.kernel)
        direction = jax.tree.map(lambda leaf: weights(leaf.shape) * 0.3 * jnp.abs(leaf), kernel)
        value_and_grad = jax.jit(jax.value_and_grad(lambda kernel: jnp.vdot(weights((4, 4)), kernel(x))))
        assert_gradient_is_slope(value_and_grad, kernel, direction)


def test_examples_are_of_several_points():
    assert all(size(example.draw(np.random.default_rng(0), 5)) == 5 for example in EXAMPLES)
