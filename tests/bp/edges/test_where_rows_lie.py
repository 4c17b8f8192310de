"""Edges and networks are learned from the same rows wherever a table lies."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest
from sklearn.neighbors import KNeighborsRegressor

import meanmap as mm
from meanmap.bp.conditionals import bayesian_network, columns
from meanmap.bp.edges import samples
from meanmap.core.door import Door
from meanmap.core.errors import ColumnError, KindError, ParameterError, ShapeError
from meanmap_papers import rivals

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
    monkeypatch.setattr(samples, "MOST_PAIRS", 300)
    monkeypatch.setattr(columns, "MOST_LEARNED", 300)
    monkeypatch.setattr(bayesian_network, "MOST_ROWS", 300)


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
    same(read(da.from_array(array, (250, 1)), [(0, 1)]), read(array, [(0, 1)]))  # pyright: ignore[reportArgumentType]


def test_what_is_learned_answers_alike(folder):
    here, there = (mm.KernelGraph(EDGES, rank=20).fit(data) for data in (FRAME, dd.read_parquet(folder)))
    rows = FRAME[["a", "b", "c"]][:40]
    assert here.score(rows).tolist() == there.score(rows).tolist()
    beliefs = [model.query({"c": "up"}, targets=["a"])["a"].mean() for model in (here, there)]
    assert beliefs[0] == beliefs[1]
    with pytest.raises(KindError, match=r"frame is a collection of Dask, for which beliefs cannot be returned"):
        there.predict(dd.from_pandas(rows, npartitions=2), targets=["a"])


def test_files_that_do_not_fit(folder):
    with pytest.raises(ParameterError, match=r"missing='drop' is for tables in memory"):
        mm.KernelGraph(EDGES).fit(folder, missing="drop")
    for data in (folder, dd.from_pandas(FRAME, npartitions=2), polars.scan_parquet(folder / "*.parquet")):
        with pytest.raises(ColumnError, match=r"data has no column 'z'; it has 'other', 'a'"):
            mm.KernelGraph([("a", "z")]).fit(data)


def test_pairs_of_a_field(folder):
    """Pairs that lie elsewhere are drawn; those in memory are all learned from."""
    a, c = FRAME["a"].to_numpy(), FRAME["c"].to_numpy()
    index = np.sort(np.random.default_rng(0).choice(N, 300, replace=False))
    lazy, frame = polars.scan_parquet(folder / "*.parquet"), dd.from_pandas(FRAME, npartitions=7)
    array = frame[["other", "a"]].to_dask_array()
    assert np.isnan(array.chunks[0]).all()
    for pair in ((lazy.select("a"), lazy.select("c")), (frame["a"], frame["c"]), (array[:, 1], frame["c"])):
        (first, second), number = samples.read_pair(pair, "pairs", "the relation")
        assert (np.asarray(first).tobytes(), list(second)) == (a[index].tobytes(), c[index].tolist())
        assert number == N
    assert len(samples.read_pair((a, c), "pairs", "the relation")[0][0]) == N
    ring, near = [(0, 1), (1, 2), (2, 0)], (a[index], a[index] + 0.1)
    here = rivals.GaussianField(ring).fit(near, observed=near)
    there = rivals.GaussianField(ring).fit(
        (lazy.select("a"), frame["a"] + 0.1), observed=(frame["a"], frame["a"] + 0.1)
    )
    seen = {"observed": np.array([1.0, np.nan, np.nan])}
    alone = here.query({2: -1.0}, **seen)[1].mean()  # pyright: ignore[reportArgumentType]
    assert alone == there.query({2: -1.0}, **seen)[1].mean()  # pyright: ignore[reportArgumentType]
    with pytest.raises(ShapeError, match=r"pairs has samples of \[900, 5\] rows; expected the same number of each"):
        samples.read_pair((frame["a"], a[:5]), "pairs", "the relation")
    with pytest.raises(KindError, match=r"pairs is a LazyFrame; .* as \(lazy.select\('a'\), lazy.select\('b'\)\)"):
        mm.KernelField(ring).fit(lazy)
    with pytest.raises(KindError, match=r"observed is a PosixPath; expected a pair of samples"):
        mm.KernelField(ring).fit(near, observed=folder)
    with pytest.raises(KindError, match=r"observed is an array of Dask, whose rows are not in memory"):
        here.query(observed=array[:, 1])


def test_networks_learn_the_same(folder):
    table, graph = FRAME[["a", "b", "c"]], [("a", "b"), ("a", "c")]
    regressions = [KNeighborsRegressor(5)]
    network, arrows = mm.bp.DependencyNetwork(regressions).fit(table), mm.bp.BayesianNetwork(graph).fit(FRAME)
    rows = table[1:21]
    assert arrows.rows["a"] == 300
    for model in (arrows, network):
        notes = model.query({"a": 0.0}, ["b"], rng=0).report.notes
        assert "learned from 300 of 900 rows, drawn at random." in notes
    lazy, frame = polars.scan_parquet(folder / "*.parquet"), dd.from_pandas(FRAME, npartitions=7)
    for data in (folder, lazy, frame):
        assert mm.bp.BayesianNetwork(graph).fit(data).score(rows).tolist() == arrows.score(rows).tolist()
    for data in (lazy.select("a", "b", "c"), frame[["a", "b", "c"]]):
        assert mm.bp.DependencyNetwork(regressions).fit(data).score(rows).tolist() == network.score(rows).tolist()
    with pytest.raises(ColumnError, match=r"data has no column 'z'; it has 'other', 'a'"):
        mm.bp.BayesianNetwork([("a", "z")]).fit(folder)


def test_questions_are_refused_in_words(folder):
    """Single values are asked about; tables that are not in memory say what to type."""
    table = FRAME[["a", "b"]].to_numpy()
    model = mm.bp.DependencyNetwork([KNeighborsRegressor(5)]).fit(da.from_array(table, (250, 1)))  # pyright: ignore[reportArgumentType]
    array = da.from_array(table[:60], (25, 1))  # pyright: ignore[reportArgumentType]
    lazy = model.impute(array)
    assert lazy.chunks == ((25, 25, 10), (2,))
    np.testing.assert_allclose(lazy.compute(), model.impute(table[:60]), atol=1e-12)
    arrows = mm.bp.BayesianNetwork([(0, 1)]).fit(table)
    states = mm.bp.DiscreteGraph([("a", "b")], np.ones((2, 2)))
    normal = mm.bp.GaussianGraph([[2.0, 1.0], [1.0, 2.0]])
    for ask in (model.query, arrows.query, states.query, normal.query):
        with pytest.raises(KindError, match=r"evidence is an Array; expected a mapping such as \{"):
            ask(array)
    for ask in (states.query, normal.query):
        with pytest.raises(KindError, match=r"evidence is a DataFrame; expected a mapping such as \{"):
            ask(FRAME)  # pyright: ignore[reportArgumentType]
    for ask in (model.query, arrows.query):
        with pytest.raises(
            KindError, match=r"evidence\['?0'?\] is an array of Dask, .* pass evidence\['?0'?\].compute\(\)"
        ):
            ask({"0" if ask == model.query else 0: array[:, 0]})
    for data, how in (
        (folder, r"pass polars.read_parquet\(frame\)"),
        (polars.LazyFrame(table), r"pass frame.collect\(\)"),
    ):
        with pytest.raises(KindError, match=f"frame is .*, whose rows are not in memory: {how}"):
            model.score(data)
    with pytest.raises(KindError, match=r"table is an array of Dask, .* pass table.compute\(\)"):
        mm.chow_liu(array)
