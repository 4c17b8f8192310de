"""Gram matrices by tiles: memory, compilations, dtype, what is asked of the device."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import features
from meanmap.kernels import RBF, Matern
from meanmap.kernels.gram import gram_array, product
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
