"""Collections of Dask whose partitions its planner joins, cuts and drops: the rows are what they say."""

from typing import Any

import dask.config
import dask.dataframe as dd
import numpy as np
import pandas
import pytest
from dask.base import compute

import meanmap as mm
from meanmap.core.errors import ShapeError
from meanmap.core.pieces.partitions import Collection, cut_alike

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
KERNEL = mm.kernels.RBF([1.0, 1.0])
FEW: dict[str, Any] = {"n_permutations": 99, "rng": 0}
RNG = np.random.default_rng(0)
X, Y = (
    pandas.DataFrame(RNG.normal(at, 1.0, size=(n, 4)), columns=list("abcd")) for at, n in ((0, 24_000), (0.02, 9000))
)
SMALL = pandas.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0) % 7, "c": 1.0, "d": 2.0})


def answer(result):
    return result.pvalue, result.statistic, result.sizes, result.null.draws.tolist()


def written(frame, at, files=8):
    """A folder of files of which Dask joins several when it reads one column of four."""
    at.mkdir()
    for i, index in enumerate(np.array_split(np.arange(len(frame)), files)):
        frame.iloc[index].to_parquet(at / f"part-{i}.parquet")
    return at


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(X, tmp_path_factory.mktemp("samples") / "x")


# What is done to a frame of Dask, which works on one of pandas too.
DONE = {
    "filter": lambda x, library: x[x.a > -3][["a", "b"]],
    "assign": lambda x, library: x.assign(e=x.a * 2)[["a", "e"]],
    "fillna": lambda x, library: x.fillna(0)[["a", "b"]],
    "rename": lambda x, library: x.rename(columns={"a": "z"})[["b", "z"]],
    "concat": lambda x, library: library.concat([x[x.b > 0], x[x.b <= 0]])[["a", "b"]],
    "repartition": lambda x, library: (x.repartition(npartitions=3) if library is dd else x)[["a", "b"]],
}


@pytest.mark.parametrize("name", DONE)
def test_a_frame_that_was_worked_on_is_its_rows(name, folder):
    do = DONE[name]
    y = do(Y, pandas)
    expected = mm.two_sample_test(do(X, pandas), y, KERNEL, **FEW)
    with dask.config.set(scheduler="synchronous"):
        found = mm.two_sample_test(do(dd.read_parquet(folder), dd), y, KERNEL, **FEW)
    assert answer(found) == answer(expected)


def test_columns_of_one_collection_are_cut_alike(folder):
    table = dd.read_parquet(folder)
    wanted = mm.independence_test("a", ["b", "c", "d"], data=X[X.d > 0], **FEW)
    with dask.config.set(scheduler="synchronous"):
        found = mm.independence_test("a", ["b", "c", "d"], data=table[table.d > 0], **FEW)
    assert answer(found) == answer(wanted)


def test_partitions_of_other_lengths_are_cut_anew():
    with dask.config.set(scheduler="synchronous"):
        one, other = (dd.from_pandas(SMALL, npartitions=n) for n in (4, 7))
        tasks = cut_alike([one[["a"]], other[["a"]]], "x and y")
        parts = [compute(*pair) for pair in tasks]
        assert [len(part) for part, _ in parts] == [15, 15, 15, 15]
        for first, second in parts:
            pandas.testing.assert_frame_equal(first, second)
        empty = dd.concat([one[one.a < 0], one])
        assert [len(compute(second)[0]) for _, second in cut_alike([empty, other], "x and y")][:5] == [
            0,
            0,
            0,
            0,
            15,
        ]
        with pytest.raises(ShapeError, match="x and y have 60 and 59 rows; expected the same number of each"):
            cut_alike([one, one[one.a > 0]], "x and y")


def test_a_frame_that_gets_a_column_has_new_partitions():
    with dask.config.set(scheduler="synchronous"):
        frame = dd.from_pandas(SMALL, npartitions=3)
        assert list(compute(*Collection(frame).parts("x"))[0].columns) == list("abcd")
        frame["e"] = frame.a * 2
        assert list(compute(*Collection(frame).parts("x"))[0].columns) == list("abcde")
        assert Collection(frame[frame.e < 50]).lengths("x") == [20, 5, 0]
