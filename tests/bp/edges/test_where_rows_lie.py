"""Edges are learned from the same rows wherever a table lies."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest

import meanmap as mm
from meanmap.bp.edges import samples
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ParameterError

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
N = 900
RANDOM = np.random.default_rng(0)
A = RANDOM.normal(size=N)
FRAME = pandas.DataFrame(
    {"other": 1, "a": A, "b": A**2 + RANDOM.normal(size=N), "c": np.where(A + RANDOM.normal(size=N) > 0, "up", "down")}
)
FRAME.loc[::50, "b"] = np.nan
EDGES = [("a", "b"), ("b", "c")]


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(samples, "MOST_ROWS", 300)


@pytest.fixture
def folder(tmp_path):
    for i, index in enumerate(np.array_split(np.arange(N), 4)):
        polars.from_pandas(FRAME.iloc[index]).write_parquet(tmp_path / f"part-{i}.parquet")
    return tmp_path


def read(data, edges=EDGES):
    with Door() as door:
        return samples.read_samples(mm.Graph.of(edges), data, {}, door)


def same(first, second):
    assert [pair.tolist() for pair in first.pairs] == [pair.tolist() for pair in second.pairs]
    for one, other in zip(first.nodes, second.nodes, strict=True):
        assert np.asarray(one.points).tobytes() == np.asarray(other.points).tobytes()
        assert one.labels == other.labels
        assert repr(one.kernel) == repr(other.kernel)
        assert one.schema.columns[0].kind == other.schema.columns[0].kind
    assert first.given == second.given == N


def test_the_same_rows_are_drawn(folder):
    expected = read(FRAME)
    assert expected.nodes[0].count == 300
    lazy = polars.scan_parquet(folder / "*.parquet")
    for data in (
        folder,
        str(folder / "part-*.parquet"),
        lazy,
        dd.from_pandas(FRAME, npartitions=7),
        polars.from_pandas(FRAME),
    ):
        same(read(data), expected)
    assert expected.notes == ("rows of data are left out where a value of the pair is missing: 'b' (18).",)
    drawn = int(np.isnan(FRAME["b"].to_numpy()[np.sort(np.random.default_rng(0).choice(N, 300, replace=False))]).sum())
    assert read(folder).notes == (
        f"rows of the 300 rows drawn from data are left out where a value of the pair is missing: 'b' ({drawn}).",
    )
    array = FRAME[["a", "b"]].to_numpy()
    same(read(da.from_array(array, (250, 1)), [(0, 1)]), read(array, [(0, 1)]))


def test_what_is_learned_answers_alike(folder):
    here, there = (mm.KernelGraph(EDGES, rank=20).fit(data) for data in (FRAME, dd.read_parquet(folder)))
    rows = FRAME[["a", "b", "c"]][:40]
    assert here.score(rows).tolist() == there.score(rows).tolist()
    beliefs = [model.query({"c": "up"}, targets=["a"])["a"].mean() for model in (here, there)]
    assert beliefs[0] == beliefs[1]
    with pytest.raises(KindError, match=r"frame is a collection of Dask, and beliefs are no collection"):
        there.predict(dd.from_pandas(rows, npartitions=2), targets=["a"])


def test_files_that_do_not_fit(folder):
    with pytest.raises(ParameterError, match=r"missing='drop' is for tables in memory"):
        mm.KernelGraph(EDGES).fit(folder, missing="drop")
    for data in (folder, dd.from_pandas(FRAME, npartitions=2), polars.scan_parquet(folder / "*.parquet")):
        with pytest.raises(ColumnError, match=r"data has no column 'z'; it has 'other', 'a'"):
            mm.KernelGraph([("a", "z")]).fit(data)
