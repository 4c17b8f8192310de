"""Reading numbers: what is accepted, and what a person is told about what is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from meanmap.core import Door, EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.arrays import as_array, check_rows, parameter, read_matrix
from meanmap.core.foreign import count_missing

pytestmark = pytest.mark.oldest


def read(data):
    with Door(data) as door:
        return read_matrix(data, "x", door)


@pytest.mark.parametrize(
    "data",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2], [3, 4]], dtype=np.int8),
        np.array([[1, 2], [3, 4]], dtype=np.float16),
        np.ma.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1, 2], [3, 4]], dtype=float, order="F"),
        np.arange(1.0, 17).reshape(4, 4)[::2, :2] - [[0, 0], [6, 6]],
    ],
)
def test_matrices_become_float64_copies(data):
    matrix = read(data)
    assert type(matrix) is np.ndarray
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, [[1, 2], [3, 4]])
    assert not np.shares_memory(matrix, data)


@pytest.mark.parametrize(
    "data", [[1, 2, 3], (1, 2, 3), range(1, 4), pd.Series([1, 2, 3]), pl.Series([1, 2, 3]), np.array([True, False])]
)
def test_one_axis_means_points_in_one_dimension(data):
    assert read(data).shape == (len(data), 1)


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "boolean"])
def test_nullable_series_without_holes_are_numbers(dtype):
    assert read(pd.Series([1, 0, 1], dtype=dtype)).ravel().tolist() == [1.0, 0.0, 1.0]


def test_jax_arrays_are_followed():
    assert read(jnp.arange(3)).dtype == jnp.float32
    assert read(jnp.arange(3, dtype=jnp.bfloat16)).dtype == jnp.bfloat16
    assert isinstance(read(jnp.ones((2, 2))), jax.Array)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "csr_matrix", "lil_matrix"])
def test_sparse_matrices_stay_sparse(kind):
    matrix = getattr(scipy.sparse, kind)(np.eye(3, dtype=np.int32))
    result = read(matrix)
    assert result.format == "csr"
    assert result.dtype == np.float64


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], EmptyError, "x is empty; expected at least 1 point"),
        (np.zeros((0, 3)), EmptyError, "x is empty"),
        (np.zeros((3, 0)), EmptyError, "x has 3 rows but no columns"),
        (None, KindError, "x is None; expected points: a list, an array or a table"),
        (object(), KindError, "x is of the kind object; expected points: a list, an array or a table"),
        ({1.0, 2.0}, KindError, "x is of the kind set; expected points"),
        (1.0, ShapeError, r"x is a single number; expected points, one per row: pass \[x\]"),
        (np.zeros((2, 2, 2)), ShapeError, r"x has shape \(2, 2, 2\); expected \(n, d\) or \(n,\): one row per point"),
        ([[1, 2], [3]], ShapeError, "x is ragged: row 0 has 2 entries and row 1 has 1 entry. Give"),
        (
            [[1.0], [np.nan]],
            NonFiniteError,
            r"x holds 1 value that is not finite: nan at row 1, column 0. Drop .* in first\.$",
        ),
        (
            [1.0, -np.inf, np.nan],
            NonFiniteError,
            r"x holds 2 values that are not finite.*\(-inf\) at row 1, column 0. Drop .* in first\.$",
        ),
        ([1.0, None], NonFiniteError, r"x has 1 missing value. Drop those rows or fill them in first"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), NonFiniteError, "x has masked entries. Drop those rows"),
        (pd.Series([1, None], dtype="Int64"), NonFiniteError, "missing|not finite"),
        (pl.Series([1, None]), NonFiniteError, "missing|not finite"),
        ("data.csv", KindError, "x is the text 'data.csv'; expected numbers.*pandas.read_csv"),
        ("data.parquet", KindError, "x is the text 'data.parquet'; expected numbers.*pandas.read_parquet"),
        (b"data", KindError, "x is the text b'data'"),
        (
            ["a", "b"],
            KindError,
            "x holds <U1 values; expected numbers. For text or labels use a kernel for them: mm.kernels.Delta",
        ),
        ([1 + 2j], KindError, "x holds complex numbers; expected real ones. Pass real and imaginary parts as columns"),
        (np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"), NonFiniteError, "1 value.* not finite.* row 1"),
        (
            [1.0, -1.7e308],
            NonFiniteError,
            r"x holds 1 value that is too large for distances .* at row 1, column 0. Use another unit: divide",
        ),
        (
            [object(), 1],
            KindError,
            r"x holds Python objects such as <object .*As labels: \[str\(v\) for v in x\]",
        ),
        ([{"a": 1}], KindError, r"x holds dicts.*pandas.DataFrame\(x\)"),
        (np.array([1.5, 2], dtype=object), KindError, r"x holds Python objects .*numpy.asarray\(x, dtype=float\)"),
        (scipy.sparse.csr_array((0, 3)), EmptyError, "x is empty"),
        (scipy.sparse.csr_array(np.array([[0, np.inf]])), NonFiniteError, r"x \(stored entries\) holds 1 value"),
        (scipy.sparse.csr_array(np.array([[1j, 0]])), KindError, "x holds complex numbers"),
    ],
)
def test_what_cannot_be_read_is_explained(data, error, message):
    with pytest.raises(error, match=message):
        read(data)


def test_what_cannot_be_read_from_jax_is_explained():
    for data, error, message in [
        (jnp.zeros((0, 2)), EmptyError, "x is empty"),
        (jnp.zeros(()), ShapeError, "x is a single number"),
        (jnp.zeros((1, 1, 1)), ShapeError, r"x has shape \(1, 1, 1\)"),
        (jnp.array([1.0, jnp.nan]), NonFiniteError, r"1 value that is not finite: nan at row 1, column 0"),
        (jnp.array([1j]), KindError, "x holds complex numbers"),
        (jax.random.key(0), KindError, r"x holds key<fry.* values; expected numbers"),
    ]:
        with pytest.raises(error, match=message):
            read(data)


def test_sparse_input_is_refused_where_it_cannot_be_used():
    with (
        Door() as door,
        pytest.raises(KindError, match=r"x is sparse, which is not supported here: pass x.toarray\(\)"),
    ):
        read_matrix(scipy.sparse.eye_array(3), "x", door, sparse=False)


def test_rows_are_counted():
    check_rows(2, "x", least=2)
    with pytest.raises(EmptyError, match="x has 1 point; expected at least 2"):
        check_rows(1, "x", least=2)
    with pytest.raises(EmptyError, match="y is empty; expected at least 3 points"):
        check_rows(0, "y", least=3)


@pytest.mark.parametrize(
    ("data", "missing"),
    [
        ([1.0, 2.0], 0),
        (["a", None], 1),
        (np.array([1.0, None, float("nan"), pd.NA, pd.NaT], dtype=object), 4),
        (pd.Series(["a", pd.NA], dtype="string"), 1),
        (pd.Series([1.0, np.nan]), 1),
        (pl.Series(["a", None, None]), 2),
        (np.ma.array([1, 2], mask=[1, 0]), 1),
        (np.array([np.ones(2), None], dtype=object), 1),
    ],
)
def test_missing_entries_are_counted(data, missing):
    assert count_missing(data) == missing


class TestParameter:
    @pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.array(2), True * 2, jnp.float32(2)])
    def test_one_number(self, value):
        assert float(parameter(value, "lengthscale")) == 2.0

    def test_it_is_a_float64_copy(self):
        mine = np.ones(3)
        stored = parameter(mine, "lengthscale")
        mine[0] = -1
        assert stored.tolist() == [1, 1, 1]
        assert parameter([1, 2], "lengthscale").dtype == np.float64

    @pytest.mark.parametrize(
        ("value", "options", "error", "message"),
        [
            (0.0, {}, ParameterError, "scale is 0.0; expected values above 0"),
            (-1, {}, ParameterError, "scale is -1.0; expected values above 0"),
            ([1.0, -2.0], {}, ParameterError, r"scale is \[1.0, -2.0\]; expected values above 0"),
            (np.nan, {}, ParameterError, "scale is nan; expected finite numbers"),
            ([1.0, np.inf], {}, ParameterError, "expected finite numbers"),
            (-1, {"positive": False, "at_least": 0.0}, ParameterError, "scale is -1.0; expected values of at least 0"),
            (1.5, {"integer": True}, ParameterError, "scale is 1.5; expected whole numbers"),
            ([1.0], {"axes": 0}, ShapeError, r"scale has shape \(1,\); expected one number"),
            ([[1.0]], {}, ShapeError, r"scale has shape \(1, 1\); expected one number, or one per column"),
            (
                [[1.0], [1.0, 2.0]],
                {},
                ShapeError,
                "is ragged: row 0 has 1 entry and row 1 has 2 entries; expected one number, or one per column",
            ),
            ([], {}, EmptyError, "scale is empty"),
            ("3", {}, KindError, "scale is '3'; expected one number, or one per column"),
            ("median", {"axes": 0}, KindError, "scale is 'median'; expected one number"),
            (None, {}, KindError, "scale is None"),
            (1 + 1j, {}, KindError, "scale is .*; expected one number"),
            (np.array([1 + 1j]), {}, KindError, "expected one number"),
            (np.datetime64("2026-01-01"), {}, KindError, "expected one number"),
        ],
    )
    def test_refused(self, value, options, error, message):
        with pytest.raises(error, match=message):
            parameter(value, "scale", **options)

    def test_refused_in_jax(self):
        for value, message in [
            (jnp.float32(-1), "above 0"),
            (jnp.array([1.0, jnp.nan]), "finite"),
            (jnp.array(1j), "one number"),
        ]:
            with pytest.raises((ParameterError, KindError), match=message):
                parameter(value, "scale")

    def test_traced_values_pass(self):
        assert jax.jit(lambda scale: parameter(scale, "scale"))(-1.0) == -1.0


def test_arrays_of_any_shape():
    assert as_array([[[1]]], "x").shape == (1, 1, 1)
    assert as_array(True, "x").dtype == bool
