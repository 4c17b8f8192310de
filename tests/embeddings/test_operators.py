"""Covariances, adjoints and compositions against dense matrices."""

import tracemalloc

import numpy as np
import pytest

import meanmap as mm
from meanmap.core import InputError, KindError, ParameterError, ShapeError
from meanmap.embeddings import cross_covariance

K, L = mm.kernels.RBF(1.1), mm.kernels.Laplace(0.9)


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    return x, x[:, 0] + 0.3 * rng.normal(size=40)


def test_squared_norm_of_the_centred_covariance_is_hsic(pairs):
    x, y = pairs
    n = len(x)
    H = np.eye(n) - 1 / n
    hsic = np.trace(K(x) @ H @ L(y) @ H) / n**2
    assert cross_covariance(x, y, K, L, centred=True).norm() ** 2 == pytest.approx(hsic, rel=1e-12)
    raw = np.sum(K(x) * L(y)) / n**2
    assert cross_covariance(x, y, K, L).norm() ** 2 == pytest.approx(raw, rel=1e-12)


@pytest.mark.parametrize("centred", [False, True])
def test_covariance_pairs_functions(pairs, centred):
    x, y = pairs
    f, g = mm.embed(x[:7], K, weights=np.arange(7.0)), mm.embed(y[5:9], L)
    value = np.mean(f(x) * g(y)) - (f(x).mean() * g(y).mean() if centred else 0)
    c = cross_covariance(x, y, K, L, centred=centred)
    assert f.inner(c.apply(g)) == pytest.approx(value, rel=1e-11)
    phi, psi = (mm.features.PivotedCholesky.fit(k, s, tolerance=1e-14, max_rank=40) for k, s in ((K, x), (L, y)))
    primal = cross_covariance(x, y, phi, psi, centred=centred)
    assert primal.norm() == pytest.approx(c.norm(), abs=1e-8)
    # Pivoted coordinates are elements of the kernel's own space, so that the same f and g go in.
    assert primal.adjoint().apply(f)(y) == pytest.approx(c.adjoint().apply(f)(y), abs=1e-8)


@pytest.mark.parametrize("make", ["dual", "primal", "mixed", "likelihood", "covariance"])
def test_adjoints(pairs, make):
    x, y = pairs
    phi, psi = (mm.features.Fourier.draw(k, like=d, n_features=20, rng=0) for k, d in ((K, 2), (mm.kernels.RBF(), 1)))
    kernels = {"primal": (phi, psi), "mixed": (phi, L)}.get(make, (K, L))
    if make == "likelihood":
        op = mm.embeddings.likelihood(x, y, kernel_x=K, kernel_y=L, ridge=(1e-2, 1e-3))
    elif make == "covariance":
        op = cross_covariance(y, x, L, K)
    else:
        op = mm.condition(x, y, kernel_x=kernels[0], kernel_y=kernels[1], ridge=1e-2)
    f, g = mm.embed(x[:9], kernels[0], weights=np.linspace(-1, 1, 9)), mm.embed(y[3:8], kernels[1])
    assert op.apply(f).inner(g) == pytest.approx(f.inner(op.adjoint().apply(g)), rel=1e-9)
    np.testing.assert_allclose(op(x[:3])(y), op.apply(mm.embed(x[:3], kernels[0], weights=np.eye(3)))(y), atol=1e-11)


def test_composition_applies_one_after_the_other(pairs):
    x, y = pairs
    z = np.sin(y)[:, None] * np.ones(3)
    first, second = (
        mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2),
        mm.condition(y, z, kernel_x=L, kernel_y=K, ridge=1e-3),
    )
    at = np.random.default_rng(1).normal(size=(6, 3))
    f = mm.embed(x[:4], K)
    np.testing.assert_allclose((second @ first).apply(f)(at), second.apply(first.apply(f))(at), atol=1e-11)
    np.testing.assert_allclose((second @ first)(x[:2])(at), second.apply(first(x[:2]))(at), atol=1e-11)
    phi = mm.features.Fourier.draw(mm.kernels.RBF(), like=1, n_features=30, rng=0)
    psi = mm.features.Fourier.draw(K, like=2, n_features=30, rng=0)
    a, b = mm.condition(x, y, kernel_x=psi, kernel_y=phi, ridge=1e-2), mm.condition(y, z, kernel_x=phi, ridge=1e-2)
    np.testing.assert_allclose((b @ a)(x[:2])(at), b.apply(a(x[:2]))(at), atol=1e-11)
    with pytest.raises(InputError, match="the composition of two operators needs two elements of the same space"):
        _ = first @ mm.condition(y, z, kernel_x=L, kernel_y=mm.kernels.RBF(9.0), ridge=1e-3)


def test_sums_and_multiples(pairs):
    x, y = pairs
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    f = mm.embed(x[:4], K)
    np.testing.assert_allclose((2 * op - op + op).apply(f)(y), 2 * op.apply(f)(y), atol=1e-12)
    assert (op - op).norm() < 1e-7
    with pytest.raises(KindError, match="only operators on the same bases can be added"):
        _ = op + mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)


def test_norm_is_the_dense_one(pairs):
    x, y = pairs
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    M = np.linalg.inv(K(x) + 40 * 1e-2 * np.eye(40))
    np.testing.assert_allclose(op.dense(), M, atol=1e-10)
    assert op.norm() == pytest.approx(np.sqrt(np.trace(M @ L(y) @ M @ K(x))), rel=1e-10)


def test_messages(pairs):
    x, y = pairs
    op = mm.condition(x, y, kernel_x=K, kernel_y=L, ridge=1e-2)
    with pytest.raises(InputError, match="applying an operator needs two elements of the same space"):
        op.apply(mm.embed(y, L))
    with pytest.raises(KindError, match=r"element is an ndarray; expected an embedding. For points call op\(x\)"):
        op.apply(x)
    with pytest.raises(ShapeError, match="x has 1 column; expected 2, as before"):
        op(y)
    with pytest.raises(ShapeError, match="x has 40 points and y has 39; expected pairs"):
        cross_covariance(x, y[:-1], K, L)
    with pytest.raises(KindError, match="must both be kernels, or both features"):
        cross_covariance(x, y, mm.features.Fourier.draw(K, like=2, n_features=4, rng=0), L)
    with pytest.raises(KindError, match=r"kernel_x is 'rbf'; expected a kernel"):
        cross_covariance(x, y, "rbf", L)
    with pytest.raises(ShapeError, match=r"function gave shape \(3,\); expected \(40,\)"):
        op.expect(lambda y: y[:3], x)
    with pytest.raises(ParameterError, match="ridge"):
        mm.condition(x, y, ridge=-1.0)


@pytest.mark.parametrize("centred", [False, True])
def test_covariances_of_many_points_hold_no_matrix_of_pairs(centred):
    x = np.random.default_rng(0).normal(size=(4000, 2))
    cross_covariance(x[:600], x[:600], K, L, centred).norm()  # compile
    tracemalloc.start()
    c = cross_covariance(x, x[:, 0], K, L, centred)
    found = c.norm()
    assert c.apply(mm.embed(x[:5, 0], L))(x[:2]).shape == (2,)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000**2  # one byte for each pair
    few = cross_covariance(x[:300], x[:300, 0], K, L, centred)
    dense = mm.embeddings.Operator(few.output, few.input, few.dense())
    assert few.norm() == pytest.approx(dense.norm(), rel=1e-10)
    assert 0.0 < found < 1.0
