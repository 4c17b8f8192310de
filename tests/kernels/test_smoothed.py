import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma, j0

from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.kernels import RBF, Laplace, Matern, OnColumns, RationalQuadratic, Smoothed


def by_quadrature(kernel, x, y, width=None):
    """∫ k(x, u) k(u, y) ν(du) in one dimension, between the kinks."""

    def integrand(u):
        weight = 1.0 if width is None else np.exp(-u * u / 2 / width**2)
        return float(kernel([x], [u])[0, 0] * kernel([u], [y])[0, 0]) * weight

    ends = [-30.0, *sorted({x, y}), 30.0]
    return sum(quad(integrand, a, b, limit=200, epsabs=1e-12)[0] for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize(
    ("kernel", "width"),
    [
        *((RBF(0.7), width) for width in (None, 1.3)),
        *((RBF(0.7) + 0.5 * RBF(2.0), width) for width in (None, 1.3)),
        *((Matern(0.8, nu), width) for nu in (0.5, 1.5, 2.5) for width in (None, 1.3)),
        *((RBF(0.7) + 0.5 * Matern(2.0, nu), None) for nu in (0.5, 2.5)),
        *((2.0 * Matern(0.4, 0.5) + Matern(1.5, 2.5), width) for width in (None, 1.3)),
        *((RBF(0.7) * Matern(1.1, nu), width) for nu in (0.5, 1.5, 2.5) for width in (None, 1.3)),
        (RBF(0.7) * (RBF(2.0) + Matern(0.5, 1.5)) + Matern(0.9, 0.5), None),
    ],
)
@pytest.mark.parametrize(("x", "y"), [(0.3, 0.3), (-1.0, 1.5)])
def test_one_dimension_against_quadrature(kernel, width, x, y):
    assert Smoothed(kernel, width)([x], [y])[0, 0] == pytest.approx(by_quadrature(kernel, x, y, width), rel=1e-8)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_matern_in_two_dimensions_against_its_spectrum(smoothness):
    constant = 4 * np.pi * gamma(smoothness + 1) * (2 * smoothness) ** smoothness / gamma(smoothness)

    def integrand(w):
        return (constant * (2 * smoothness + w * w) ** -(smoothness + 1)) ** 2 * j0(w) * w / (2 * np.pi)

    expected = quad(integrand, 0, np.inf, limit=2000)[0]
    assert Smoothed(Matern(1.0, smoothness))([[0.0, 0.0]], [[0.6, 0.8]])[0, 0] == pytest.approx(expected, rel=1e-6)


def to_scale(kernels, apart):
    """∫ k₁(x, u) k₂(u, y) du in one dimension, in panels around x and y at the lengthscales of both."""
    a, b = kernels
    steps = np.concatenate([np.geomspace(0.01, 60, 12) * scale for scale in (float(k.lengthscale) for k in kernels)])
    ends = np.unique(np.concatenate([[0.0, apart], steps, -steps, apart + steps, apart - steps]))
    u, w = np.polynomial.legendre.leggauss(40)
    middle, half = (ends[1:] + ends[:-1])[:, None] / 2, np.diff(ends)[:, None] / 2
    points, weights = (middle + half * u).reshape(-1, 1), (half * w).ravel()
    return float((a([[0.0]], points) * b([[apart]], points))[0] @ weights)


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
@pytest.mark.parametrize("first", [RBF, lambda scale: Matern(scale, 0.5), lambda scale: Matern(scale, 1.5)])
def test_the_error_is_small_at_any_ratio_of_lengthscales(first, smoothness):
    """Within 2e-9 of r(x, x) from a ratio of 10⁻⁵ to 10⁵: the cross term alone, at distances of both lengthscales."""
    for ratio in 10.0 ** np.arange(-5, 6):
        one, two = first(1.0), Matern(ratio, smoothness)
        at = np.array([0.0, 0.3, 3.0, 0.3 * ratio, 3.0 * ratio])
        cross = (Smoothed(one + two)([0.0], at) - Smoothed(one)([0.0], at) - Smoothed(two)([0.0], at))[0] / 2
        most = to_scale((one, two), 0.0)
        # Differences lose what the sum is larger by.
        allowed = 2e-9 * most + 1e-15 * (to_scale((one, one), 0.0) + to_scale((two, two), 0.0))
        for found, apart in zip(cross, at, strict=True):
            assert abs(found - to_scale((one, two), apart)) < allowed


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
def test_the_error_of_products_is_small_at_any_ratio_of_lengthscales(smoothness):
    for ratio in 10.0 ** np.arange(-3, 4):
        kernel = RBF(1.0) * Matern(ratio, smoothness)
        scale = min(1.0, ratio)

        def integral(apart, kernel=kernel, scale=scale):
            ends = np.unique([0.0, apart, *(sign * t * scale + c for sign in (-1, 1) for c in (0.0, apart)
                                            for t in np.geomspace(0.01, 60, 16))])  # fmt: skip
            u, w = np.polynomial.legendre.leggauss(40)
            middle, half = (ends[1:] + ends[:-1])[:, None] / 2, np.diff(ends)[:, None] / 2
            points = (middle + half * u).reshape(-1, 1)
            return float((kernel([[0.0]], points) * kernel([[apart]], points))[0] @ (half * w).ravel())

        at = scale * np.array([0.0, 0.3, 1.0, 3.0])
        found = Smoothed(kernel)([0.0], at)[0]
        assert np.abs(found - [integral(apart) for apart in at]).max() < 2e-9 * integral(0.0)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.6) + Matern(1.1, 2.5),
        RBF([0.6, 1.2]) + Matern([1.1, 0.8], 1.5),
        Matern(0.6, 1.5) + 0.5 * Matern(1.1, 2.5),
        Matern([0.6, 0.9], 2.5) + Matern([1.1, 0.7], 2.5),
        RBF(0.9) * Matern(1.1, 2.5),
        RBF([0.9, 1.3]) * Matern([1.1, 0.8], 1.5),
        OnColumns(RBF(0.9), [1]) * OnColumns(Matern(0.8, 2.5), [0]) + 0.3 * OnColumns(Matern(0.9, 2.5), [0, 1]),
    ],
)
def test_two_dimensions_against_sums_over_the_plane(kernel):
    x, step = np.array([[0.1, 0.2], [0.7, -0.4], [1.5, 1.0]]), 0.04
    axis = np.arange(-9.0, 9.0, step) + 0.37 * step
    expected = np.zeros((3, 3))
    for first in axis:
        values = kernel(x, np.column_stack([np.full_like(axis, first), axis]))
        expected += values @ values.T * step**2
    np.testing.assert_allclose(Smoothed(kernel)(x), expected, atol=2e-5 * expected.max())


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_ten_dimensions_against_the_spectrum_at_one_point(smoothness):
    """r(x, x) = ∫ k̂₁ k̂₂ dω/(2π)^d of radial kernels, a Gaussian and Matérn kernels."""
    d, a, b = 10, 0.7, 1.9
    sphere = 2 * np.pi ** (d / 2) / gamma(d / 2) / (2 * np.pi) ** d

    def matern(w, nu, scale):
        constant = 2**d * np.pi ** (d / 2) * gamma(nu + d / 2) / gamma(nu) * (2 * nu) ** nu * scale**d
        return constant * (2 * nu + (scale * w) ** 2) ** -(nu + d / 2)

    def gaussian(w):
        return (2 * np.pi * a * a) ** (d / 2) * np.exp(-((a * w) ** 2) / 2)

    for one, spectrum in ((RBF(a), gaussian), (Matern(a, 1.5), lambda w: matern(w, 1.5, a))):
        expected = sphere * sum(
            quad(lambda w, f=spectrum: f(w) * matern(w, smoothness, b) * w ** (d - 1), *ends, limit=500, epsabs=0)[0]
            for ends in ((0, 3), (3, np.inf))
        )
        two, x = Matern(b, smoothness), np.zeros((1, d))
        cross = (Smoothed(one + two)(x) - Smoothed(one)(x) - Smoothed(two)(x))[0, 0] / 2
        # The difference of sums loses what they are larger by.
        assert cross == pytest.approx(expected, rel=2e-9, abs=1e-14 * Smoothed(two)(x)[0, 0])


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: RBF(a) + Matern(b, 0.5),
        lambda a, b: Matern(a, 0.5) + Matern(b, 1.5),
        lambda a, b: RBF(a) * Matern(b, 2.5),
    ],
)
def test_slopes_by_lengthscales_are_those_of_the_integral(form):
    with jax.enable_x64(True):
        at = jnp.array([0.7, 1.6])
        x, y = jnp.array([[0.3]]), jnp.array([[-0.9]])
        found = jax.jit(jax.grad(lambda s: Smoothed(form(s[0], s[1])).gram(x, y)[0, 0]))(at)
    for i in range(2):
        above, below = (np.array([0.7, 1.6]) + sign * 1e-4 * np.eye(2)[i] for sign in (1, -1))
        slope = (by_quadrature(form(*above), 0.3, -0.9) - by_quadrature(form(*below), 0.3, -0.9)) / 2e-4
        assert float(found[i]) == pytest.approx(slope, rel=1e-6)


def test_kernels_on_columns_of_their_own_multiply():
    x = np.random.default_rng(3).normal(size=(5, 2))
    table = {"height": x[:, 0], "age": x[:, 1]}
    for one, two in ((RBF(0.7), Matern(1.4, 1.5)), (Matern(0.9, 0.5), RBF(0.5) + Matern(0.8, 2.5))):
        kernel = OnColumns(one, "age") * OnColumns(two, "height")
        expected = Smoothed(one)(table["age"]) * Smoothed(two)(table["height"])
        np.testing.assert_allclose(Smoothed(kernel)(table), expected, rtol=1e-12)


def test_columns_multiply_under_an_rbf_kernel():
    x, y = np.random.default_rng(0).normal(size=(2, 5, 3))
    for width in (None, [1.0, 2.0, 3.0]):
        whole = Smoothed(RBF([0.5, 1.0, 2.0]), width)(x, y)
        parts = [
            Smoothed(RBF(scale), None if width is None else width[d])(x[:, d], y[:, d])
            for d, scale in enumerate((0.5, 1.0, 2.0))
        ]
        np.testing.assert_allclose(whole, np.prod(parts, axis=0), rtol=1e-12)


def test_a_wide_measure_is_the_lebesgue_measure():
    x = np.random.default_rng(1).normal(size=(6, 2))
    np.testing.assert_allclose(Smoothed(RBF(1.0), 1e6)(x), Smoothed(RBF(1.0))(x), rtol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [RBF([0.5, 2.0]), Matern([0.5, 2.0], 0.5), Matern(1.0, 2.5), RBF(1.0) + Matern(0.5), RBF([1.0, 2.0]) * Matern(1.0)],
)
def test_gram_matrices_are_positive_and_differentiable(kernel):
    x = np.random.default_rng(2).normal(size=(8, 2))
    smoothed = Smoothed(kernel)
    assert np.linalg.eigvalsh(smoothed(x)).min() > -1e-10
    np.testing.assert_allclose(smoothed.diag(x), np.diag(smoothed(x)), rtol=1e-10)
    slope = jax.grad(lambda p: smoothed(p, jnp.asarray(x, jnp.float32)).sum())(jnp.asarray(x[:2], jnp.float32))
    assert np.isfinite(slope).all()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Laplace(1.0), "expected RBF, Matern, products of RBF with one Matern, or a sum of these"),
        (Laplace(1.0), r"In one column it is Matern\(1, smoothness=0.5\)"),
        (RBF(1.0) * Laplace(1.0), r"kernel has a part Laplace\(lengthscale=1.0\)"),
        (RBF(1.0) ** 2, "RBF with its lengthscales divided by √2"),
        (RationalQuadratic(1.0), "others are not implemented"),
        (Matern(1.0) * Matern(2.0), "at most one Matern factor on the same columns"),
        (OnColumns(Matern(), [0]) * OnColumns(Matern(), [1]) + OnColumns(Matern(), [0, 1]), "at most one Matern"),
        (OnColumns(RBF(), [0]) + OnColumns(RBF(), [1]), "fall off along every column"),
        (OnColumns(RBF(), [0]) * RBF(), "OnColumns for each kernel, or for none"),
    ],
)
def test_other_kernels_are_refused(kernel, message):
    with pytest.raises(KindError, match=message):
        Smoothed(kernel)


@pytest.mark.parametrize("form", ["sum", "product", "width"])
def test_small_and_large_units_in_single_precision(form):
    """Fourth powers of lengthscales vanished: r of a sum was 1.6 for 6.7 in units of 1e-10."""

    def smoothed(unit):
        one, other = RBF(unit), Matern(unit)
        made = {"sum": Smoothed(one + other), "product": Smoothed(one * other), "width": Smoothed(one, width=unit)}
        points = jnp.asarray([0.0, unit], jnp.float32)
        return np.asarray(made[form](points)) / unit

    for unit in (1e-12, 1e-6, 1e10):
        np.testing.assert_allclose(smoothed(unit), smoothed(1.0), rtol=1e-5)


@pytest.mark.parametrize("unit", [1e4, 1e-6])
@pytest.mark.parametrize("kernel", [RBF, Matern])
def test_lengthscales_whose_product_is_no_number_are_refused(kernel, unit):
    columns = np.zeros((2, 100))
    with pytest.raises(ParameterError, match=r"lengthscales multiply to .*change the units"):
        Smoothed(kernel(unit))(columns)
    assert np.isfinite(Smoothed(kernel(unit))(columns[:, :20])).all()
    with pytest.raises(ParameterError, match="change the units"):
        Smoothed(kernel(unit))(jnp.asarray(columns[:, :20], jnp.float32))


def test_widths_are_one_or_one_per_column():
    with pytest.raises(ShapeError, match="width has 3 entries, but x has 2 columns"):
        Smoothed(RBF(1.0), width=[1.0, 2.0, 3.0])(np.zeros((4, 2)))
    one = OnColumns(RBF(1.0), [0])
    with pytest.raises(ShapeError, match="width has 2 entries"):
        Smoothed(one, width=[1.0, 2.0])(np.zeros((4, 2)))
