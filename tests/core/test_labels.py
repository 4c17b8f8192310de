"""Labels as codes: equal codes for equal labels, in every call, whatever they came in."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meanmap as mm
from meanmap.core import Door, EmptyError, KindError, NonFiniteError, ShapeError
from meanmap.core.labels import Labels

pytestmark = pytest.mark.oldest


def read(data):
    with Door(data) as door:
        return Labels().read(data, "x", door)


def tuples(codes):
    return [tuple(np.asarray(row).ravel().tolist()) for row in codes]


texts = st.lists(st.text(min_size=0, max_size=5), min_size=1, max_size=8)
numbers = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=1, max_size=8)
reals = st.lists(
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False) | st.integers(-3, 3).map(float),
    min_size=1,
    max_size=8,
)


@given(first=texts, second=texts)
def test_text_is_equal_where_its_codes_are(first, second):
    first, second = ([text.rstrip("\x00") for text in texts] for texts in (first, second))  # NumPy cannot hold those
    codes = dict(zip(first, tuples(read(first)), strict=True))
    for text, code in zip(second, tuples(read(second)), strict=True):
        assert codes.get(text, code) == code
    everything = {**codes, **dict(zip(second, tuples(read(second)), strict=True))}
    assert len(set(everything.values())) == len(everything)


@given(first=numbers, second=reals)
def test_numbers_are_equal_where_their_codes_are_and_whatever_stands_next_to_them(first, second):
    whole, real = tuples(read(np.array(first))), tuples(read(np.array(second)))
    for a, code in zip(first, whole, strict=True):
        assert tuples(read(np.array([a]))) == [code]
        for b, other in zip(second, real, strict=True):
            assert (code == other) == (a == b and abs(a) < 2**53)
    for b, other in zip(second, real, strict=True):
        assert tuples(read(np.array([b, 0.5]))[:1]) == [other]


def test_two_of_many_labels_do_not_share_a_code():
    codes = read([str(i) for i in range(100_000)])
    assert len(np.unique(codes.reshape(-1, 2), axis=0)) == 100_000


@pytest.mark.parametrize(
    "data",
    [
        ["red", "blue", "red"],
        ("red", "blue", "red"),
        np.array(["red", "blue", "red"]),
        np.array(["red", "blue", "red"], dtype=object),
        np.array([b"red", b"blue", b"red"]),
        pd.Series(["red", "blue", "red"]),
        pd.Series(["red", "blue", "red"], dtype="string"),
        pd.Series(["red", "blue", "red"], dtype="category"),
        pl.Series(["red", "blue", "red"]),
        pl.Series(["red", "blue", "red"], dtype=pl.Categorical),
        pl.Series(["red", "blue", "red"], dtype=pl.Enum(["red", "blue"])),
        {"colour": ["red", "blue", "red"]},
        pd.DataFrame({"colour": ["red", "blue", "red"]}),
        pl.DataFrame({"colour": ["red", "blue", "red"]}),
        [["red"], ["blue"], ["red"]],
    ],
    ids=lambda data: type(data).__name__,
)
def test_text_means_the_same_in_whatever_it_comes(data):
    codes = read(data)
    assert codes.shape == (3, 1, 2)
    assert codes.dtype == np.int32
    np.testing.assert_array_equal(codes, read(["red", "blue", "red"]))


@pytest.mark.parametrize(
    "data",
    [
        [1, -2, 3],
        [1.0, -2.0, 3.0],
        np.array([1, -2, 3], dtype=np.int8),
        np.array([1, -2, 3], dtype=object),
        np.array([1, -2, 3], dtype=np.float32),
        pd.Series([1, -2, 3], dtype="Int64"),
        {"a": [1, -2, 3]},
    ],
    ids=lambda data: type(data).__name__,
)
def test_numbers_mean_the_same_in_whatever_they_come(data):
    np.testing.assert_array_equal(read(data), read(np.array([1, -2, 3])))


def test_numbers_mean_the_same_in_jax():
    expected = read(np.array([1, -2, 3]))
    for data in (jnp.array([1, -2, 3]), jnp.array([1, -2, 3], dtype=jnp.int8), {"a": jnp.array([1, -2, 3])}):
        np.testing.assert_array_equal(read(data), expected)
    np.testing.assert_array_equal(read(jnp.array([True, False])), read(np.array([True, False])))
    big = np.array([2**31 + 1, 2**32 - 1], dtype=np.uint32)
    np.testing.assert_array_equal(read(jnp.asarray(big)), read(big))
    with jax.enable_x64(True):
        long = np.array([2**32 + 1, 1, -(2**40), 2**62])
        np.testing.assert_array_equal(read(jnp.asarray(long)), read(long))


def test_columns_stay_apart():
    codes = read([["a", "b"], ["b", "a"]])
    assert codes.shape == (2, 2, 2)
    np.testing.assert_array_equal(codes[0], codes[1, ::-1])
    block = read({"block": np.array([[1, 2], [3, 4]]), "one": [5, 6]})
    np.testing.assert_array_equal(block, read(np.array([[1, 2, 5], [3, 4, 6]])))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("red", KindError, "x is one text, 'red'; expected a list of labels"),
        ("red.csv", KindError, "x is one text, 'red.csv'; expected a list of labels. To use a file, .*read_csv"),
        ([], EmptyError, "x is empty"),
        (np.zeros((3, 0)), EmptyError, "x has 3 rows but no columns"),
        (np.int64(3), ShapeError, r"x has shape \(\); expected \(n,\) or \(n, d\) labels"),
        (np.zeros((1, 1, 1)), ShapeError, r"x has shape \(1, 1, 1\)"),
        ([["a"], ["b", "c"]], ShapeError, "x is ragged"),
        (
            ["a", None],
            NonFiniteError,
            r"x has 1 missing value. Drop those rows, or give missing values a label of their own",
        ),
        (["a", float("nan")], NonFiniteError, "missing"),
        ([1.0, float("nan")], NonFiniteError, "missing"),
        (pd.Series(["a", pd.NA], dtype="string"), NonFiniteError, "missing"),
        (pd.Series(["a", None], dtype="category"), NonFiniteError, "missing"),
        (pl.Series(["a", None]), NonFiniteError, "missing"),
        (np.ma.array([1, 2], mask=[0, 1]), NonFiniteError, "missing"),
        ({"a": ["u", None]}, NonFiniteError, r"x\['a'\] has 1 missing"),
        (["a", 1], KindError, "x mixes text with 1; expected one kind of label"),
        (
            [object()],
            KindError,
            r"x holds Python objects such as <object .*expected numbers or labels. As labels: \[str\(v\) for v in x\]",
        ),
        ([1j], KindError, "x holds complex128 values; expected labels"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), KindError, "x holds datetime64.* values; expected labels"),
    ],
)
def test_what_cannot_be_read_is_explained(data, error, message):
    with pytest.raises(error, match=message):
        read(data)


def test_real_numbers_in_jax_are_no_labels():
    with pytest.raises(KindError, match="x is a JAX array of float32; expected integer labels"):
        read(jnp.ones(3))
    with pytest.raises(KindError, match=r"x\['a'\] is a JAX array of float32"):
        read({"a": jnp.ones(3)})
    with pytest.raises(ShapeError, match="labels"):
        read(jnp.ones((1, 1, 1), dtype=jnp.int32))
    with pytest.raises(EmptyError, match="no columns"):
        read(jnp.ones((2, 0), dtype=jnp.int32))


@pytest.mark.parametrize("form", [np.asarray, pd.Series], ids=["NumPy", "pandas"])
def test_numbers_as_python_objects_are_no_labels(form):
    """As labels no two of them would be alike: a shift of one standard deviation had p = 1 without a word."""
    rng = np.random.default_rng(3)
    x, y = (form((shift + rng.normal(size=60)).astype(object)) for shift in (0, 1))
    for test in (mm.two_sample_test, mm.independence_test):
        with pytest.raises(KindError, match=r"x holds numbers as Python objects \(dtype object\)\..*astype\(float\)"):
            test(x, y, rng=0)
