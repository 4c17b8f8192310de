"""Numbers and cells row by row: collections of Dask give collections."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import pytest

import meanmap as mm

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
A = np.random.default_rng(0).normal(size=60)
FRAME = pandas.DataFrame({"a": A, "b": A**2 + 0.1 * A, "other": "x"})
FRAME.loc[[3, 40], "b"] = np.nan
TABLE = dd.from_pandas(FRAME, npartitions=3)


@pytest.fixture(scope="module")
def tree():
    return mm.KernelGraph([("a", "b")]).fit(FRAME[["a", "b"]].dropna())


@pytest.mark.filterwarnings("ignore:.*(further out than|relies on)")
def test_partitions_are_scored_and_filled_in(tree):
    scores = tree.score(TABLE[["a", "b"]])
    assert isinstance(scores, da.Array)
    assert scores.npartitions == 3
    np.testing.assert_allclose(scores.compute(), tree.score(frame=FRAME[["a", "b"]]), atol=1e-12)
    assert tree.score(frame=TABLE[["a", "b"]]).npartitions == 3
    filled = tree.impute(TABLE)
    assert list(filled.columns) == ["a", "b", "other"]
    pandas.testing.assert_frame_equal(filled.compute(), tree.impute(FRAME), check_dtype=False)


def test_conditionals_are_scored_and_filled_in():
    network = mm.bp.DependencyNetwork().fit(FRAME[["a", "b"]])
    np.testing.assert_allclose(network.score(TABLE).compute(), network.score(FRAME), atol=1e-12)
    pandas.testing.assert_frame_equal(network.impute(TABLE).compute(), network.impute(FRAME), check_dtype=False)
    parents = mm.bp.BayesianNetwork([("a", "b")]).fit(FRAME[["a", "b"]].dropna())
    np.testing.assert_allclose(parents.score(TABLE).compute(), parents.score(FRAME), atol=1e-12)
    few = FRAME[:9]
    lazy = parents.impute(dd.from_pandas(few, npartitions=2), rng=0)
    pandas.testing.assert_frame_equal(lazy.compute(), parents.impute(few, rng=0), check_dtype=False)


def test_functions_at_the_rows_of_arrays():
    f = mm.embed(A[:20], mm.kernels.RBF(1.0))
    lazy = f(da.from_array(A, chunks=25))
    assert lazy.chunks == ((25, 25, 10),)
    np.testing.assert_allclose(lazy.compute(), f(A), atol=1e-12)
    empty = da.concatenate([da.from_array(A[:0]), da.from_array(A)])
    np.testing.assert_allclose(f(empty).compute(), f(A), atol=1e-12)
