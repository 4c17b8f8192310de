"""Gram matrices by tiles: memory, compilations, dtype, what is asked of the device."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import features
from meanmap.kernels import RBF, Laplace, Matern, OnColumns, RationalQuadratic
from meanmap.kernels.gram import TILE, gram_array, product
from tests.alone import run_alone

RNG = np.random.default_rng(0)


WARM_UP = "kernels.RBF(1.0).mean(rng.normal(size=(600, 2)))"


def test_row_means_are_streamed():
    """Means over a Gram matrix that would take 1.5 GiB."""
    before, after = run_alone(
        """
        x = rng.normal(size=(14_000, 3))
        means = kernels.RBF(1.0).mean(x)
        np.testing.assert_allclose(means[:2], kernels.RBF(1.0)(x[:2], x).mean(axis=1))
        """,
        WARM_UP,
    )
    assert after - before < 120


@pytest.mark.slow
def test_row_means_of_a_hundred_thousand_points():
    """The Gram matrix would take 75 GiB; the whole process stays under 1 GiB."""
    _, after = run_alone("""
        x = rng.normal(size=(100_000, 10))
        means = kernels.RBF(2.0).mean(x)
        np.testing.assert_allclose(means[[0, -1]], kernels.RBF(2.0)(x[[0, -1]], x).mean(axis=1))
    """)
    assert after < 1024


def test_a_gram_matrix_takes_its_own_size_and_little_more():
    before, after = run_alone("kernels.RBF(1.0)(rng.normal(size=(4_000, 5)))", WARM_UP)
    size = 4000**2 * 8 / 2**20
    assert 0.9 * size < after - before < size + 100


def compilations(caplog, call):
    caplog.clear()
    with jax.log_compiles(), caplog.at_level(logging.DEBUG, logger="jax"):
        call()
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("Compiling")]


def test_a_new_number_of_points_compiles_nothing(caplog):
    x = RNG.normal(size=(1800, 5))
    phi = features.Fourier.draw(RBF(1.0), like=5, n_features=10, rng=0)
    low = features.PivotedCholesky.fit(RBF(3.0), x[:200], tolerance=1e-2)

    def use(n, m):
        k = Matern(1.3)
        k(x[:n])
        k(x[:n], x[:m])
        k.mean(x[:n], x[:m])
        k.matvec(x[:n], x[:m], np.ones((m, 2)))
        k.diag(x[:n])
        phi(x[:n])
        phi.mean(x[:n])
        low(x[:n])

    assert compilations(caplog, lambda: use(90, 40))
    assert compilations(caplog, lambda: use(100, 50)) == []
    assert compilations(caplog, lambda: use(1100, 1040))
    assert compilations(caplog, lambda: use(1237, 1155)) == []


@pytest.mark.parametrize("columns", [2, 5])
def test_a_small_matrix_compiles_nothing_and_is_that_of_a_tile(caplog, columns):
    """NumPy computes what a program would take longer to compile for; a table with labels has its program."""
    scale = np.linspace(1, 2, columns)
    each = [RBF(scale), *(Matern(scale, s) for s in (0.5, 1.5, 2.5)), RationalQuadratic(1.5, 0.7), Laplace(scale)]
    each += [2.0 * RBF(1.0) ** 3, RBF(1.0) + Laplace(0.5) * Matern(2.0)]
    x, y = RNG.normal(size=(40, columns)), RNG.normal(size=(31, columns))
    first = np.c_[x, np.zeros(len(x))]
    found = []

    def use():
        for kernel in each:
            found.append((kernel(x, y), kernel(x), kernel.diag(x), kernel.mean(x, y)))
            features.PivotedCholesky.fit(kernel, np.repeat(x, 4, axis=0), tolerance=1e-2)
        np.testing.assert_allclose(OnColumns(RBF(1.0), range(columns))(first), RBF(1.0)(x), rtol=1e-12)

    assert compilations(caplog, use) == []
    with jax.enable_x64(True):
        for kernel, (cross, own, diagonal, mean) in zip(each, found, strict=True):
            compiled = np.asarray(gram_array(jax.tree.map(jnp.asarray, kernel), jnp.asarray(x), jnp.asarray(y)))
            np.testing.assert_allclose(cross, compiled, rtol=1e-12)
            np.testing.assert_allclose(mean, compiled.mean(axis=1), rtol=1e-12)
            np.testing.assert_array_equal(own.diagonal(), diagonal)
            assert own[3, 4] == pytest.approx(own[4, 3], rel=1e-12)


def test_numbers_out_of_range_are_infinite_in_small_matrices_as_in_large_ones():
    far = np.array([[0.0], [1e150]])
    expected = [[1.0, 0.0], [0.0, 1.0]]
    np.testing.assert_array_equal(RBF(1e-10)(far), expected)
    np.testing.assert_array_equal(RBF(1e-10)(np.repeat(far, TILE, axis=0))[::TILE, ::TILE], expected)


def test_jax_points_compile_once(caplog):
    x = jnp.asarray(RNG.normal(size=(30, 2)))

    def use(scale):
        k = RBF(scale)
        return k(x), k(x, x), k.mean(x), k.diag(x)

    assert compilations(caplog, lambda: use(1.0))
    assert compilations(caplog, lambda: use(2.0)) == []


@pytest.mark.oldest
@pytest.mark.parametrize(("n", "m"), [(3, 5), (520, 30), (30, 520)])
def test_pure_functions_agree_with_the_host(n, m):
    x, y, v = RNG.normal(size=(n, 2)), RNG.normal(size=(m, 2)), RNG.normal(size=(m, 3))
    expected = RBF(1.0)(x, y)
    with jax.enable_x64(True):
        x, y, v = map(jnp.asarray, (x, y, v))
        kernel = jax.tree.map(jnp.asarray, RBF(1.0))
        np.testing.assert_allclose(jax.jit(gram_array)(kernel, x, y), expected, atol=1e-14)
        np.testing.assert_allclose(jax.jit(product)(kernel, x, y, v), expected @ v, atol=1e-12)


def test_progress_is_silent_off_a_terminal(capsys):
    RBF(1.0).mean(RNG.normal(size=(10_100, 1)))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
