"""The likelihood operator against its dense formula and the linear-Gaussian pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap.core import KindError, ParameterError, PrecisionError
from meanmap.embeddings import likelihood
from meanmap.learning.density_ratio import held_out_errors

K, L = mm.kernels.RBF(0.9), mm.kernels.RBF(1.1)
GRID = np.linspace(-4, 4, 401)


def relative_error(m, correlation, seed):
    """Relative L2(p(y)) error of y -> p(x | y) / p(x), averaged over x in {-1, 0, 1}."""
    rng = np.random.default_rng(1000 + seed)
    y = rng.normal(size=m)
    s = np.sqrt(1 - correlation**2)
    x = correlation * y + s * rng.normal(size=m)
    at = np.array([-1.0, 0.0, 1.0])
    f = likelihood(x, y)(at)(GRID)
    truth = np.exp(-((at[:, None] - correlation * GRID) ** 2) / (2 * s * s)) / s / np.exp(-(at[:, None] ** 2) / 2)
    weight = np.exp(-(GRID**2) / 2)
    return np.mean(np.sqrt(((f - truth) ** 2 * weight).sum(1) / (truth**2 * weight).sum(1)))


@pytest.mark.parametrize(("m", "seeds", "bound"), [(100, 4, 0.19), (300, 3, 0.14)])
def test_closed_form_of_a_linear_gaussian_pair(m, seeds, bound):
    assert np.mean([relative_error(m, 0.7, seed) for seed in range(seeds)]) < bound


@pytest.mark.slow
@pytest.mark.parametrize(("m", "seeds", "bound"), [(100, 20, 0.19), (300, 20, 0.14), (1000, 5, 0.11)])
def test_closed_form_of_a_linear_gaussian_pair_over_many_seeds(m, seeds, bound):
    assert np.mean([relative_error(m, 0.7, seed) for seed in range(seeds)]) < bound


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(50, 2))
    return y[:, 0] + 0.5 * rng.normal(size=50), y


def test_dual_is_the_dense_formula_in_the_order_of_the_spaces(pairs):
    x, y = pairs
    n = 50
    op = likelihood(x, y, kernel_x=K, kernel_y=L, ridge=(1e-2, 1e-3))
    new, at = np.array([0.1, -0.4]), y[:6] + 0.1
    left, right = (np.linalg.inv(k(s) + n * lam * np.eye(n)) for k, s, lam in ((L, y, 1e-3), (K, x, 1e-2)))
    np.testing.assert_allclose(op(new)(at), (n * L(at, y) @ left @ right @ K(x, new)).T, rtol=1e-7, atol=1e-9)


def test_primal_agrees_with_dual(pairs):
    x, y = pairs
    phi, psi = (mm.features.PivotedCholesky.fit(k, s, tolerance=1e-14, max_rank=50) for k, s in ((K, x), (L, y)))
    new = np.array([0.1, -0.4])
    dual = likelihood(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)(new)(y)
    np.testing.assert_allclose(likelihood(x, y, kernel_x=phi, kernel_y=psi, ridge=1e-2)(new)(y), dual, atol=1e-8)


def test_pivots_beyond_the_dense_size(pairs, monkeypatch):
    import sys

    x, y = pairs
    dense = likelihood(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)(x[:3])(y)
    monkeypatch.setattr(sys.modules["meanmap.embeddings.likelihoods"], "DENSE_ROWS", 20)
    op = likelihood(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    assert "features" in repr(op)
    np.testing.assert_allclose(op(x[:3])(y), dense, atol=1e-5)


def test_the_score_is_the_held_out_density_ratio_error(pairs):
    """On finite coordinates, against refits in plain NumPy."""
    rng = np.random.default_rng(0)
    phi, psi = rng.normal(size=(40, 5)), rng.normal(size=(40, 4))
    held = np.arange(40) % 10 == 3
    a, b = phi[~held], psi[~held]
    matrix = (
        np.linalg.inv(b.T @ b / 36 + 0.2 * np.eye(4)) @ (b.T @ a / 36) @ np.linalg.inv(a.T @ a / 36 + 0.1 * np.eye(5))
    )
    f = psi[held] @ matrix @ phi[held].T
    score = held_out_errors(phi, psi, held, np.array([0.1]), np.array([0.2]))
    assert score[0] == pytest.approx(np.mean(f**2) / 2 - np.mean(np.diag(f)), rel=1e-10)


def test_jit_with_everything_given(pairs):
    x, y = (jnp.asarray(v, jnp.float32) for v in pairs)
    got = jax.jit(lambda x, y: likelihood(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)(x[:2])(y[:5]))(x, y)
    expected = likelihood(*pairs, kernel_x=K, kernel_y=L, ridge=1e-2)(pairs[0][:2])(pairs[1][:5])
    np.testing.assert_allclose(got, expected, atol=5e-3)


def test_messages(pairs):
    x, y = pairs
    with pytest.raises(ParameterError, match="ridge has 3 entries; expected one number"):
        likelihood(x, y, ridge=(1.0, 2.0, 3.0))
    with pytest.raises(ParameterError, match=r"ridge is 0\.0; expected values above 0"):
        likelihood(x, y, ridge=0.0)
    with pytest.raises(KindError, match="must both be kernels, or both features"):
        likelihood(x, y, kernel_x=mm.features.Fourier.draw(K, like=1, n_features=4, rng=0), kernel_y=L)
    with pytest.raises(ParameterError, match="inside jit nothing can be chosen from the data"):
        jax.jit(lambda x: likelihood(x, y)(x)(y))(jnp.asarray(x))
    with pytest.raises(PrecisionError, match="float32"):
        likelihood(*(jnp.asarray(v, jnp.float32) for v in pairs), kernel_x=K, kernel_y=L, ridge=1e-7)
