"""Kernels of the inner product."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import pairwise

from meanmap.core import EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.kernels import Cosine, Kernel, Linear, Polynomial, RandomProjection

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Linear(), pairwise.linear_kernel),
        (Polynomial(3, 0.5), lambda x, y: pairwise.polynomial_kernel(x, y, degree=3, gamma=1, coef0=0.5)),
        (Polynomial(2, 0.0), lambda x, y: pairwise.polynomial_kernel(x, y, degree=2, gamma=1, coef0=0)),
        (Cosine(), pairwise.cosine_similarity),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_scikit_learn_agrees(kernel, reference):
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-12, atol=1e-14)


@pytest.mark.oldest
@pytest.mark.parametrize("size", [1e-15, 1e-3, 1.0, 1e15])
def test_cosine_keeps_the_range_of_float32(size):
    x = jnp.asarray(size * X)
    np.testing.assert_allclose(Cosine()(x), pairwise.cosine_similarity(X), atol=1e-6)
    np.testing.assert_allclose(Cosine().diag(x), 1, atol=1e-6)


def test_cosine_of_zero_is_zero():
    x = np.vstack([np.zeros(3), X])
    assert (Cosine()(x)[0] == 0).all()
    assert Cosine().diag(x)[0] == 0


def test_polynomial_mean_embedding_holds_moments():
    """Equal first and second moments, equal embeddings for degree 2; the third moment shows for degree 3."""
    symmetric, skewed = np.array([-1.0, 1.0]), np.array([-0.5, -0.5, -0.5, -0.5, 2.0]) / 1.0
    skewed = (skewed - skewed.mean()) / skewed.std()
    at = np.linspace(-2, 2, 5)
    second, third = (k.mean(at, symmetric) - k.mean(at, skewed) for k in (Polynomial(2), Polynomial(3)))
    np.testing.assert_allclose(second, 0, atol=1e-12)
    assert np.abs(third).max() > 1


@pytest.mark.parametrize("degree", [0, -1, 1.5, True, "2", None])
def test_degrees_that_are_refused(degree):
    with pytest.raises(ParameterError, match=r"degree is .*; expected a whole number of at least 1"):
        Polynomial(degree)


def test_offsets_that_are_refused():
    with pytest.raises(ParameterError, match=r"offset is -1.0; expected values of at least 0"):
        Polynomial(2, -1.0)
    with pytest.raises(ShapeError, match=r"offset has shape \(2,\); expected one number"):
        Polynomial(2, [1.0, 2.0])


class TestRandomProjection:
    def test_unbiased_for_inner_products(self):
        """Mean of ⟨A y, A y′⟩ over draws of A within five standard errors of ⟨y, y′⟩."""
        y = RNG.normal(size=(3, 20))
        draws = np.stack([RandomProjection.draw(20, 10, rng=seed)(y) for seed in range(400)])
        error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - y @ y.T) < 5 * error).all()

    def test_error_is_of_the_stated_order(self):
        y = RNG.normal(size=(2, 30))
        draws = np.array([RandomProjection.draw(30, 100, rng=seed)(y)[0, 1] for seed in range(200)])
        assert draws.std() < 2 * np.linalg.norm(y[0]) * np.linalg.norm(y[1]) / np.sqrt(100)

    def test_same_seed_same_matrix(self):
        draw = RandomProjection.draw
        np.testing.assert_array_equal(draw(5, 3, rng=1).matrix, draw(5, 3, rng=np.int64(1)).matrix)
        assert (draw(5, 3, rng=1).matrix != draw(5, 3, rng=2).matrix).all()

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda: RandomProjection.draw(0, 3), ParameterError, "labels is 0; expected a whole number of at least 1"),
            (lambda: RandomProjection.draw(3, 2.5), ParameterError, "dimensions is 2.5; expected a whole number"),
            (
                lambda: RandomProjection(np.ones(3)),
                ShapeError,
                r"matrix has shape \(3,\); expected \(dimensions, labels\)",
            ),
            (lambda: RandomProjection(np.ones((0, 3))), ShapeError, r"matrix has shape \(0, 3\)"),
            (lambda: RandomProjection([[np.nan]]), NonFiniteError, "matrix holds 1 value"),
            (lambda: RandomProjection([["a"]]), KindError, "matrix holds <U1 values"),
            (
                lambda: RandomProjection(np.ones((2, 4)))(X),
                ShapeError,
                "x has 3 columns; the projection was made for 4 labels",
            ),
            (lambda: RandomProjection(np.ones((2, 3)))(np.ones((0, 3))), EmptyError, "x is empty"),
        ],
    )
    def test_refused(self, call, error, message):
        with pytest.raises(error, match=message):
            call()
