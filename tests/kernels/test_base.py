"""The algebra of kernels, and everything that a user may pass to one."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

from meanmap import Table
from meanmap.core import ColumnError, EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.kernels import (
    RBF,
    Cosine,
    Delta,
    Hamming,
    Kernel,
    Laplace,
    Linear,
    Matern,
    OnColumns,
    Power,
    Product,
    Scaled,
    Sum,
)
from meanmap.kernels.spectral import coordinates

X = np.random.default_rng(0).normal(size=(6, 2))
GRAM = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)


class Brownian(Kernel):
    """A kernel as a user writes one: two points to a number."""

    def evaluate(self, x, y):
        return jnp.minimum(x[0], y[0])


def test_one_function_of_two_points_makes_a_kernel():
    x = np.array([0.5, 1.0, 2.0])
    expected = np.minimum(x[:, None], x)
    np.testing.assert_array_equal(Brownian()(x), expected)
    np.testing.assert_array_equal(Brownian().diag(x), x)
    np.testing.assert_allclose(Brownian().mean(x), expected.mean(axis=1))
    np.testing.assert_allclose((Brownian() + RBF(1.0))(x), expected + RBF(1.0)(x))
    with pytest.raises(
        KindError, match=r"Brownian has no spectral density.*mm.features.Nystrom or mm.features.Pivoted"
    ):
        coordinates(Brownian(), x)


class TestAlgebra:
    def test_sums_and_products_are_flat(self):
        a, b, c = RBF(1.0), Linear(), Cosine()
        assert (a + b + c).members == (a, b, c) == (a + (b + c)).members
        assert (a * b * c).members == (a, b, c)
        assert isinstance(sum([a, b]), Sum)
        assert isinstance(a * b, Product)

    @pytest.mark.parametrize("scale", [2, 2.0, np.float64(2), np.float32(2), np.array(2.0), np.int64(2)])
    def test_scaling_from_both_sides(self, scale):
        for scaled in (scale * RBF(1.0), RBF(1.0) * scale):
            assert isinstance(scaled, Scaled)
            np.testing.assert_allclose(scaled(X), 2 * GRAM)

    def test_scaling_by_a_jax_number(self):
        for scaled in (jnp.float32(2) * RBF(1.0), RBF(1.0) * jnp.float32(2)):
            np.testing.assert_allclose(scaled(X), 2 * GRAM, rtol=1e-6)

    def test_powers(self):
        assert isinstance(RBF(1.0) ** 2, Power)
        np.testing.assert_allclose((RBF(1.0) ** np.int64(2))(X), GRAM**2)
        np.testing.assert_allclose((RBF(1.0) ** 1)(X), GRAM)

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: -1.0 * RBF(1.0), ParameterError, "scale is -1.0; expected values above 0"),
            (lambda: 0 * RBF(1.0), ParameterError, "scale is 0.0; expected values above 0"),
            (lambda: np.array([1.0, 2.0]) * RBF(1.0), ShapeError, r"scale has shape \(2,\); expected one number"),
            (lambda: RBF(1.0) * "a", TypeError, "unsupported operand|can't multiply"),
            (lambda: RBF(1.0) + 1, TypeError, "unsupported operand"),
            (lambda: 1 + RBF(1.0), TypeError, "unsupported operand"),
            (
                lambda: RBF(1.0) ** 0,
                ParameterError,
                "power is 0; expected a whole number of at least 1",
            ),
            (lambda: RBF(1.0) ** 0.5, ParameterError, "power is 0.5"),
            (lambda: RBF(1.0) ** True, ParameterError, "power is True"),
            (lambda: OnColumns(RBF(1.0), []), ColumnError, "no columns were named"),
            (lambda: OnColumns(RBF(1.0), ["a", 0]), ColumnError, "but not both"),
            (lambda: OnColumns(RBF(1.0), ["a", "a"]), ColumnError, "each of them once"),
        ],
    )
    def test_refused(self, make, error, message):
        with pytest.raises(error, match=message):
            make()

    def test_a_sum_of_kernels_on_columns_can_be_a_member_again(self):
        data = {"a": [0.0, 1.0], "b": ["u", "v"]}
        inner = OnColumns(RBF(1.0), "a") + OnColumns(Delta(), "b")
        np.testing.assert_allclose((inner * inner)(data), inner(data) ** 2)
        np.testing.assert_allclose((inner * inner * Scaled(inner, 3.0))(data), 3 * inner(data) ** 3)
        np.testing.assert_allclose((inner * inner).mean(data), (inner(data) ** 2).mean(axis=1))

    def test_kernels_are_immutable(self):
        mine = np.ones(2)
        kernel = RBF(mine)
        mine[0] = 7
        np.testing.assert_allclose(kernel(X), GRAM)
        with pytest.raises(AttributeError):
            kernel.lengthscale = 2.0

    def test_repr(self):
        assert (
            repr(2.0 * RBF([1.0, 0.5]) ** 3)
            == "Scaled(kernel=Power(kernel=RBF(lengthscale=[1.0, 0.5]), power=3), scale=2.0)"
        )
        assert repr(RBF(np.arange(1.0, 11))) == "RBF(lengthscale=array of shape (10,))"
        assert repr(RBF(jnp.float32(0.5)) + Linear()) == "Sum(members=(RBF(lengthscale=0.5), Linear()))"
        seen = []
        jax.jit(lambda scale: seen.append(repr(RBF(scale))))(1.0)
        assert seen[0].startswith("RBF(lengthscale=")


FORMS = {
    "list": X.tolist(),
    "tuple": tuple(map(tuple, X)),
    "float32": X.astype(np.float32),
    "Fortran order": np.asfortranarray(X),
    "pandas": pd.DataFrame(X, columns=["a", "b"]),
    "pandas, numbered columns": pd.DataFrame(X),
    "pandas, nullable": pd.DataFrame({"a": pd.array(X[:, 0], dtype="Float64"), "b": X[:, 1]}),
    "polars": pl.DataFrame(X, schema=["a", "b"]),
    "dict": {"a": X[:, 0], "b": X[:, 1].tolist()},
    "dict, any keys": {1: X[:, 0], "b": X[:, 1]},
    "block": {"a": X},
    "structured": np.array(list(map(tuple, X)), dtype=[("a", float), ("b", float)]),
    "Table": Table.of({"a": X[:, 0], "b": X[:, 1]}),
}


@pytest.mark.oldest
@pytest.mark.parametrize("form", FORMS)
def test_points_come_in_any_form(form):
    atol = 1e-6 if form == "float32" else 1e-15
    data = FORMS[form]
    for gram in (RBF(1.0)(data), RBF(1.0)(data, X), RBF(1.0)(X, data)):
        assert type(gram) is np.ndarray
        np.testing.assert_allclose(gram, GRAM, rtol=0, atol=atol)
    np.testing.assert_allclose(RBF(1.0).mean(data), GRAM.mean(axis=1), rtol=0, atol=atol)


@pytest.mark.parametrize("data", [X[:, 0].tolist(), pd.Series(X[:, 0]), pl.Series(X[:, 0]), X[:, 0], X[:, :1]])
def test_one_axis_is_points_in_one_dimension(data):
    np.testing.assert_allclose(RBF(1.0)(data), np.exp(-((X[:, None, 0] - X[:, 0]) ** 2) / 2))


def test_numpy_and_jax_together_make_jax():
    gram = RBF(1.0)(X, jnp.asarray(X))
    assert isinstance(gram, jax.Array)
    np.testing.assert_allclose(gram, GRAM, rtol=1e-5)
    assert isinstance(RBF(jnp.float32(1.0))(X), jax.Array)
    assert isinstance(RBF(1.0).matvec(X, None, jnp.ones(6)), jax.Array)


def test_only_named_columns_are_read():
    data = {"a": X[:, 0], "holes": [None] * 6, "b": X[:, 1]}
    np.testing.assert_allclose(OnColumns(RBF(1.0), ["a", "b"])(data), GRAM)
    np.testing.assert_allclose(OnColumns(RBF(1.0), [0, 2])(pd.DataFrame(data)), GRAM)
    # The order is that of the names, whatever the order in the table.
    turned = OnColumns(RBF([1.0, 9.0]), ["a", "b"])
    np.testing.assert_allclose(turned(data, {"b": X[:, 1], "a": X[:, 0]}), turned(data))


FRAME = pd.DataFrame(X, columns=["a", "b"])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: RBF(1.0)([]), EmptyError, "x is empty"),
        (lambda: RBF(1.0)(X, []), EmptyError, "y is empty"),
        (lambda: RBF(1.0)(X, [[1.0, np.nan]] * 2), NonFiniteError, r"y holds 2 values that are not finite"),
        (
            lambda: RBF(1.0)(X, np.zeros((2, 3))),
            ShapeError,
            r"x and y differ in their columns: shapes \(6, 2\) and \(2, 3\)",
        ),
        (lambda: RBF(1.0)(X, [1.0, 2.0]), ShapeError, "x and y differ in their columns"),
        (
            lambda: RBF(1.0)(FRAME, FRAME[["b", "a"]]),
            ColumnError,
            "x has 'a', 'b' and y has 'b', 'a'. Give both the same",
        ),
        (lambda: RBF(1.0)(FRAME, {"a": [1.0], "c": [2.0]}), ColumnError, "x has 'a', 'b' and y has 'a', 'c'"),
        (lambda: Hamming()(FRAME, FRAME[["b", "a"]]), ColumnError, "differ in their columns"),
        (lambda: OnColumns(RBF(1.0), 0)(FRAME, FRAME[["b", "a"]]), ColumnError, "differ in their columns"),
        (
            lambda: RBF([1.0, 2.0, 3.0])(X),
            ShapeError,
            "lengthscale has 3 entries but x has 2 columns; expected one number",
        ),
        (lambda: RBF([1.0, 2.0])(X, np.zeros((2, 3))), ShapeError, "lengthscale has 2 entries but y has 3 columns"),
        (lambda: RBF(1.0)(pd.DataFrame({"a": ["u", "v"]})), ColumnError, "x has columns that are not numeric: 'a'"),
        (lambda: OnColumns(RBF(1.0), "z")(FRAME), ColumnError, "x has no column 'z'; it has 'a', 'b'"),
        (lambda: RBF(1.0).matvec(X, None, np.ones(5)), ShapeError, r"v has shape \(5,\); expected \(6,\) or \(6, q\)"),
        (
            lambda: RBF(1.0).matvec(X, X[:2], np.ones((6, 1))),
            ShapeError,
            r"v has shape \(6, 1\); expected \(2,\) or \(2, q\)",
        ),
        (lambda: RBF(1.0).matvec(X, None, 1.0), ShapeError, r"v has shape \(\)"),
        (lambda: RBF(1.0).matvec(X, None, np.full(6, np.nan)), NonFiniteError, r"v holds 6 values"),
        (lambda: RBF(1.0).matvec(X, None, ["a"] * 6), KindError, "v holds <U1 values"),
        (lambda: RBF(1.0)(None), KindError, "x is None"),
        (lambda: RBF(1.0).diag(np.zeros((2, 2, 2))), ShapeError, r"x has shape \(2, 2, 2\)"),
        (lambda: RBF(1.0).mean(X, [[np.inf, 0]]), NonFiniteError, "y holds 1"),
        (lambda: (Laplace() + Matern())(X, np.zeros((2, 3))), ShapeError, "differ in their columns"),
    ],
)
def test_what_cannot_be_used_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_jax_points_of_other_columns_are_refused_inside_jit():
    with pytest.raises(ShapeError, match="x and y differ in their columns"):
        jax.jit(lambda x, y: RBF(1.0)(x, y))(jnp.ones((2, 2)), jnp.ones((2, 3)))
    with pytest.raises(ShapeError, match="lengthscale has 3 entries"):
        jax.jit(lambda scale: RBF(scale)(jnp.ones((2, 2))))(jnp.ones(3))


def test_derivatives_through_jit_vmap_and_a_batch_of_kernels():
    x = jnp.asarray(X)
    scales = jnp.array([0.5, 1.0, 2.0])
    grams = jax.vmap(lambda scale: RBF(scale)(x))(scales)
    kernels = jax.vmap(RBF)(scales)
    np.testing.assert_allclose(jax.vmap(lambda kernel: kernel(x))(kernels), grams)
    slope = jax.jit(jax.grad(lambda kernel: kernel(x).sum()))(RBF(1.0))
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(slope.lengthscale, (GRAM * squared).sum(), rtol=1e-5)


def test_small_numbers_are_shown_with_their_digits():
    assert repr(RBF(1.234567e-9)) == "RBF(lengthscale=1.23457e-09)"
    assert repr(RBF([0.000123456789, 2.0, 0.0500000001])) == "RBF(lengthscale=[0.000123457, 2.0, 0.05])"
