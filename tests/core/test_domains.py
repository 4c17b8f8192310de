"""Domains: how each kind of point is read."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from scipy.spatial.transform import Rotation as ScipyRotation

from meanmap.core import ColumnError, Door, EmptyError, InputError, KindError, NonFiniteError, ShapeError, Table
from meanmap.core.domains import Columns, Each, Indices, Real, Rotations, Strings, column_names
from meanmap.core.labels import Labels

pytestmark = pytest.mark.oldest


def read(domain, data):
    with Door(data) as door:
        return domain.read(data, "x", door)


def test_real_reads_tables_by_column():
    for data in (
        {"a": [1, 2], "b": [3, 4]},
        pd.DataFrame({"a": [1, 2], "b": [3, 4]}),
        pl.DataFrame({"a": [1, 2], "b": [3, 4]}),
    ):
        assert read(Real(), data).tolist() == [[1, 3], [2, 4]]
    assert read(Real(), Table.of({"a": [1, 2]})).shape == (2, 1)
    with pytest.raises(ColumnError, match="x has columns that are not numeric: 'b'"):
        read(Real(), {"a": [1, 2], "b": ["u", "v"]})
    with pytest.raises(KindError, match="x is sparse"):
        read(Real(), scipy.sparse.eye_array(2))


class TestRotations:
    def test_matrices_and_scipy_rotations(self):
        rotations = ScipyRotation.random(4, random_state=0)
        np.testing.assert_array_equal(read(Rotations(), rotations), rotations.as_matrix())
        assert read(Rotations(), rotations.as_matrix().tolist()).dtype == np.float64
        assert read(Rotations(), jnp.asarray(rotations.as_matrix())).dtype == jnp.float32
        assert jax.jit(lambda x: read(Rotations(), x))(jnp.ones((2, 3, 3))).shape == (
            2,
            3,
            3,
        )  # unknown, so not checked

    @pytest.mark.parametrize(
        ("data", "error", "message"),
        [
            (np.eye(3), ShapeError, r"x is one 3 × 3 matrix; expected \(n, 3, 3\): pass x\[None\]"),
            (np.zeros((2, 2, 2)), ShapeError, r"x has shape \(2, 2, 2\); expected \(n, 3, 3\) rotation matrices"),
            (np.zeros((2, 3)), ShapeError, r"x has shape \(2, 3\)"),
            (np.zeros((0, 3, 3)), EmptyError, "x is empty"),
            (
                np.stack([np.eye(3), np.diag([1, 1, -1.0])]),
                InputError,
                r"x\[1\] is not a rotation matrix: its determinant is -1 \(a reflection\)",
            ),
            (-np.eye(3)[None], InputError, "a reflection"),
            (
                1.01 * np.eye(3)[None],
                InputError,
                r"x\[0\] is not a rotation matrix: its transpose is not its inverse. Project it first",
            ),
            (np.zeros((1, 3, 3)), InputError, "its transpose is not its inverse"),
            (np.full((1, 3, 3), np.nan), NonFiniteError, "not finite"),
            (np.array([[["a"] * 3] * 3]), KindError, "expected numbers"),
        ],
    )
    def test_refused(self, data, error, message):
        with pytest.raises(error, match=message):
            read(Rotations(), data)


class TestIndices:
    @pytest.mark.parametrize("data", [[0, 2, 1], np.array([[0], [2], [1]]), [0.0, 2.0, 1.0], range(3)])
    def test_row_numbers(self, data):
        assert sorted(read(Indices(3), data).tolist()) == [0, 1, 2]
        assert read(Indices(3), data).dtype == np.int32

    def test_row_numbers_in_jax(self):
        assert read(Indices(3), jnp.arange(3)).tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("data", "error", "message"),
        [
            ([0, 3], InputError, "x must hold row numbers from 0 to 2 of the precomputed matrix"),
            ([-1], InputError, "row numbers from 0 to 2"),
            ([0.5], InputError, "row numbers from 0 to 2"),
            ([np.nan], InputError, "row numbers from 0 to 2"),
            ([True, False, True], KindError, r"x is a mask; expected row numbers: pass numpy.flatnonzero\(x\)"),
            (
                np.zeros((2, 2), dtype=int),
                ShapeError,
                r"x has shape \(2, 2\); a precomputed kernel takes row numbers, shape \(n,\)",
            ),
            ([], EmptyError, "x is empty"),
            (["a"], KindError, "expected numbers"),
        ],
    )
    def test_refused(self, data, error, message):
        with pytest.raises(error, match=message):
            read(Indices(3), data)

    def test_masks_are_refused_in_jax(self):
        with pytest.raises(KindError, match="x is a mask"):
            read(Indices(3), jnp.array([True, False]))


class TestStrings:
    @pytest.mark.parametrize(
        "data",
        [
            ["abab", "cab"],
            np.array(["abab", "cab"]),
            np.array([["abab"], ["cab"]]),
            pd.Series(["abab", "cab"]),
            pl.Series(["abab", "cab"]),
            {"text": ["abab", "cab"]},
            pd.DataFrame({"text": ["abab", "cab"]}),
        ],
        ids=lambda data: type(data).__name__,
    )
    def test_substrings_are_counted(self, data):
        counts = read(Strings(2), data)
        assert scipy.sparse.issparse(counts)
        assert sorted(counts[[0]].data.tolist()) == [1, 2]  # ba, ab
        assert sorted(counts[[1]].data.tolist()) == [1, 1]  # ca, ab

    @pytest.mark.parametrize(
        ("data", "error", "message"),
        [
            ("abc", KindError, "x is 'abc'; expected a list of strings"),
            (3, KindError, "x is 3; expected a list of strings"),
            ([], EmptyError, "x is empty"),
            (["abc", 3], KindError, r"x holds 3 \(int\) in row 1; expected strings"),
            (["abc", None], KindError, r"x holds None \(NoneType\) in row 1; expected strings"),
            ({"a": ["abc"], "b": ["abc"]}, ShapeError, "x has 2 columns; expected one column of texts"),
            (np.array([["abc", "abc"]]), ShapeError, "x has 2 columns"),
            ({"a": [1.0]}, KindError, "expected strings"),
        ],
    )
    def test_refused(self, data, error, message):
        with pytest.raises(error, match=message):
            read(Strings(2), data)


class TestColumns:
    def test_by_name_or_number(self):
        data = {"a": [1, 2], "b": ["u", "v"], "c": [3, 4]}
        assert read(Columns(("c", "a"), Real()), data).tolist() == [[3, 1], [4, 2]]
        assert read(Columns((2, 0), Real()), data).tolist() == [[3, 1], [4, 2]]
        assert read(Columns((2, 0), Real()), pd.DataFrame(data)).tolist() == [[3, 1], [4, 2]]
        assert read(Columns((1,), Real()), [[1, 2], [3, 4]]).tolist() == [[2], [4]]
        assert read(Columns(("x1",), Real()), [[1, 2], [3, 4]]).tolist() == [[2], [4]]
        assert read(Columns((1,), Real()), jnp.arange(4.0).reshape(2, 2)).tolist() == [[1], [3]]
        sparse = read(Columns((1,), Real(sparse=True)), scipy.sparse.coo_array(np.eye(2)))
        assert sparse.toarray().tolist() == [[0], [1]]
        assert scipy.sparse.issparse(read(Columns(("b",), Strings(1)), data))
        assert scipy.sparse.issparse(read(Columns((0,), Strings(1)), np.array([["u", "v"]])))
        assert read(Columns((1,), Labels()), np.array([["u", "v"]])).shape == (1, 1, 2)

    @pytest.mark.parametrize(
        ("names", "data", "error", "message"),
        [
            (("z",), {"a": [1.0]}, ColumnError, "x has no column 'z'; it has 'a'"),
            ((3,), np.ones((2, 2)), ColumnError, r"x has shape \(2, 2\); expected a matrix with columns \[3\]"),
            ((0,), np.ones(2), ColumnError, r"x has shape \(2,\); expected a matrix with columns \[0\]"),
            ((1,), {"a": [1.0]}, ColumnError, "x has no column 1; it has 1, from 0"),
            (("a",), {"a": ["u"]}, ColumnError, r"x\['a'\] has columns that are not numeric"),
            ((0,), np.array([[np.nan]]), NonFiniteError, r"x\[0\] holds 1 value"),
        ],
    )
    def test_refused(self, names, data, error, message):
        with pytest.raises(error, match=message):
            read(Columns(names, Real()), data)


def test_each_reads_for_every_part():
    real, labels = read(Each((Columns(("a",), Real()), Columns(("b",), Labels()))), {"a": [1.0, 2.0], "b": ["u", "v"]})
    assert real.shape == (2, 1)
    assert labels.shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("a", ("a",)),
        (2, (2,)),
        (np.int64(2), (2,)),
        (["a", "b"], ("a", "b")),
        (range(2), (0, 1)),
        (np.array([1, 0]), (1, 0)),
        (pd.Index(["a", "b"]), ("a", "b")),
    ],
)
def test_column_names(names, expected):
    assert column_names(names) == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no columns were named; expected at least one"),
        (["a", 0], r"columns are \['a', 0\]; expected names, or numbers from 0, but not both"),
        ([-1], "numbers from 0"),
        ([1.5], "expected names, or numbers"),
        (["a", "a"], r"columns are \['a', 'a'\]; expected each of them once"),
    ],
)
def test_column_names_refused(names, message):
    with pytest.raises(ColumnError, match=message):
        column_names(names)
