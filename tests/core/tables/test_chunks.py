import sys
import time

import dask.dataframe
import numpy as np
import pandas
import polars
import pytest
import scipy.sparse

import meanmap as mm
from meanmap.core.errors import ColumnError, KindError, MissingPackageError, ParameterError, ShapeError
from meanmap.core.tables.chunks import chunks_of, count_rows, paired_chunks, sampled, source_of
from meanmap.core.tables.table import Table

N = 23
DATA = np.arange(2.0 * N).reshape(N, 2)


def parquet(folder, data=DATA):
    path = folder / "data.parquet"
    polars.DataFrame({"a": data[:, 0], "b": data[:, 1]}).write_parquet(path, row_group_size=7)
    return path


def memory_map(folder):
    np.save(folder / "data.npy", DATA)
    return np.load(folder / "data.npy", mmap_mode="r")


SOURCES = {
    "array": lambda folder: DATA,
    "list": lambda folder: DATA.tolist(),
    "memory map": memory_map,
    "sparse": lambda folder: scipy.sparse.csr_array(DATA),
    "mapping": lambda folder: {"a": DATA[:, 0], "b": DATA[:, 1].tolist()},
    "table": lambda folder: Table.of(DATA),
    "pandas": lambda folder: pandas.DataFrame(DATA),
    "polars": lambda folder: polars.DataFrame(DATA),
    "parquet": parquet,
    "text": lambda folder: str(parquet(folder)),
    "lazy frame": lambda folder: polars.scan_parquet(parquet(folder)).select("a", "b"),
    "iterator": lambda folder: iter(np.split(DATA, [1, 1, 9, 10, 20])),
    "iterator of tables": lambda folder: iter([{"a": p[:, 0], "b": p[:, 1]} for p in np.split(DATA, [3, 21])]),
    "iterator of sparse": lambda folder: iter([scipy.sparse.csr_array(p) for p in np.split(DATA, [3, 21])]),
}


def matrix(block):
    if isinstance(block, np.ndarray):
        return block
    if scipy.sparse.issparse(block):
        return block.toarray()
    return Table.of(block).matrix()


@pytest.mark.parametrize("name", ["mapping", "table", "pandas", "polars", "parquet", "text", "lazy frame", "dask"])
def test_columns_are_selected_by_name_wherever_they_lie(name, tmp_path):
    frame = pandas.DataFrame(DATA, columns=["a", "b"])
    found = {"pandas": lambda: frame, "dask": lambda: dask.dataframe.from_pandas(frame, npartitions=3)}
    data = found[name]() if name in found else SOURCES[name](tmp_path)
    names = ["x0", "x1"] if name == "table" else ["column_0", "column_1"] if name == "polars" else ["a", "b"]
    source = source_of(data)
    assert source.named
    assert list(source.names) == names
    chosen = source_of(source.select(names[1:]))
    assert chosen.count() == N
    np.testing.assert_array_equal(matrix(chosen.whole()), DATA[:, 1:])
    with pytest.raises(ColumnError, match="data has no column 'c'"):
        source.select(["c"])


def test_iterators_have_neither_names_nor_rows_by_number():
    source = source_of(iter([DATA]))
    assert (source.once, source.named, source.count()) == (True, False, None)
    with pytest.raises(KindError, match="data is a list_iterator; expected a table with names of columns"):
        source.select(["a"])
    with pytest.raises(ParameterError, match="read once and in order"):
        source.take(np.array([0]))
    with pytest.raises(ParameterError, match="x is an iterator, which a plan would consume"):
        sampled([iter([DATA])], np.random.default_rng(0), ["x"], 5)


@pytest.mark.parametrize("rows", [1, 4, 23, 50])
@pytest.mark.parametrize("name", SOURCES)
def test_blocks_have_equal_lengths_and_all_the_rows(name, rows, tmp_path):
    blocks = [matrix(block) for block in chunks_of(SOURCES[name](tmp_path), rows)]
    assert [len(block) for block in blocks] == [min(rows, N - start) for start in range(0, N, rows)]
    np.testing.assert_array_equal(np.concatenate(blocks), DATA)


@pytest.mark.parametrize("name", SOURCES)
def test_rows_are_counted_where_they_are_known(name, tmp_path):
    source = SOURCES[name](tmp_path)
    assert count_rows(source) == (None if source_of(source).once else N)


@pytest.mark.parametrize("name", [name for name in SOURCES if "iterator" not in name])
def test_single_rows_are_taken(name, tmp_path):
    index = np.array([2, 3, 17])
    np.testing.assert_array_equal(matrix(source_of(SOURCES[name](tmp_path)).take(index)), DATA[index])


def test_a_query_is_run_once_however_many_blocks_it_fills(tmp_path):
    """Block by block, a filter or a sort would be done again for each: quadratic time."""
    runs = []

    def counted(column):
        runs.append(len(column))
        return column

    frame = polars.scan_parquet(parquet(tmp_path)).sort("b").with_columns(polars.col("a").map_batches(counted))
    blocks = [matrix(block) for block in chunks_of(frame, 3)]
    np.testing.assert_array_equal(np.concatenate(blocks), DATA)
    assert sum(runs) < 2 * N  # polars tries two rows before
    runs.clear()
    assert count_rows(frame) == N
    assert runs == []  # no column is needed to count


def test_before_batches_polars_gives_slices(tmp_path, monkeypatch):
    monkeypatch.delattr(polars.LazyFrame, "collect_batches")
    blocks = [matrix(block) for block in chunks_of(parquet(tmp_path), 4)]
    np.testing.assert_array_equal(np.concatenate(blocks), DATA)


@pytest.mark.slow
def test_filtered_scans_are_read_in_linear_time(tmp_path):
    path = tmp_path / "long.parquet"
    spent = []
    for n in (10**6, 4 * 10**6):
        polars.DataFrame({"a": np.random.default_rng(0).normal(size=n)}).write_parquet(path)
        start = time.process_time()
        rows = sum(len(block) for block in chunks_of(polars.scan_parquet(path).filter(polars.col("a") > -9), 2000))
        spent.append(time.process_time() - start)
        assert rows == n
    assert spent[1] < 8 * spent[0]


def test_pairs_of_an_iterator_stay_together():
    labels = np.array(list("abcdefghijklmnopqrstuvw"))
    pieces = ((DATA[a:b], labels[a:b]) for a, b in ((0, 10), (10, 12), (12, 23)))
    blocks = list(chunks_of(pieces, 9))
    assert [len(x) for x, _ in blocks] == [9, 9, 5]
    np.testing.assert_array_equal(np.concatenate([x for x, _ in blocks]), DATA)
    assert "".join(np.concatenate([y for _, y in blocks])) == "abcdefghijklmnopqrstuvw"


def test_sources_side_by_side():
    blocks = list(paired_chunks((DATA, iter([DATA[:7, 0], DATA[7:, 0]])), 10, ("x", "y")))
    assert [len(y) for _, y in blocks] == [10, 10, 3]
    assert all((x[:, 0] == y).all() for x, y in blocks)


@pytest.mark.parametrize("short", [20, 21])
def test_sources_of_different_lengths_are_refused(short):
    with pytest.raises(ShapeError, match=f"x has 23 and y has {short} points"):
        list(paired_chunks((DATA, DATA[:short]), 10, ("x", "y")))


def test_an_iterator_is_not_read_ahead():
    taken = []

    def pieces():
        for number in range(5):
            taken.append(number)
            yield DATA[:4]

    next(chunks_of(pieces(), 8))
    assert taken == [0, 1]


def test_bad_pieces():
    with pytest.raises(ShapeError, match=r"differ in their columns: rows of shapes \[\(1,\), \(2,\)\]"):
        list(chunks_of(iter([DATA, DATA[:, :1]]), 100))
    with pytest.raises(ShapeError, match=r"members of \[23, 5\] rows"):
        list(chunks_of(iter([(DATA, DATA[:5])]), 100, "pairs"))
    with pytest.raises(KindError, match="expected pieces: arrays or tables"):
        list(chunks_of(iter([1.0, 2.0]), 100))


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(KindError, match="is not a Parquet file"):
        list(chunks_of(tmp_path / "data.csv", 10))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingPackageError, match="reading Parquet needs polars"):
        list(chunks_of("data.parquet", 10))


@pytest.mark.parametrize("row", [np.array, list, tuple], ids=["arrays", "lists", "tuples"])
@pytest.mark.parametrize("ask", [lambda x, y: mm.two_sample_test(x, y), lambda x, y: mm.k_sample_test([x, y])])
def test_iterators_of_rows_are_not_read_as_points_of_one_column(ask, row):
    """Forty rows of two columns were eighty points of one."""
    rows = np.random.default_rng(0).normal(size=(80, 2))
    with pytest.raises((ShapeError, KindError), match=r"x is an iterator|samples\[0\] is an iterator"):
        ask((row(r) for r in rows[:40]), (row(r) for r in rows[40:]))


def test_iterators_of_points_of_one_column_say_so_by_their_shape():
    points = np.random.default_rng(0).normal(size=(80, 2))
    whole = mm.two_sample_test(points[:, 0], points[:, 1], rng=0)
    cut = (iter(np.split(column[:, None], 8)) for column in points.T)
    assert mm.two_sample_test(*cut, rng=0).pvalue == whole.pvalue
