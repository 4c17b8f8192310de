"""Tables and arrays of other libraries, by the protocols that they speak, in stand-ins that speak nothing else."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars
import pytest

import meanmap as mm
from meanmap.core.containers import handed_over
from meanmap.core.errors import KindError, MissingPackageError, ParameterError

RNG = np.random.default_rng(0)
A = RNG.normal(size=60)
COLUMNS = {"a": A, "b": np.tanh(A) + 0.1 * RNG.normal(size=60), "c": np.where(RNG.random(60) < 0.5, "u", "v")}
OTHERS = {**COLUMNS, "a": A + 1.0}
FEW = {"n_permutations": 99, "rng": 0}


class Once:
    """A stream of Arrow that is gone when it was read."""

    def __init__(self, columns):
        self.frame = polars.DataFrame(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        frame, self.frame = self.frame, None
        return frame.__arrow_c_stream__(requested_schema)


class Tensor:
    """An array that has __dlpack__ and no __array__."""

    def __init__(self, array):
        self.array = np.array(array)

    def __dlpack__(self, **asked):
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Variable:
    """A variable of xarray."""

    def __init__(self, values):
        self.values = np.asarray(values)


class Dataset:
    """A mapping with attributes, as xarray's."""

    __module__ = "xarray.core.dataset"

    def __init__(self, columns):
        self.items = {name: Variable(values) for name, values in columns.items()}.items


class DataArray:
    """An array of xarray, which has a stream of Arrow, too: its values one below the other; and the names of Dask's."""

    __module__ = "xarray.core.dataarray"
    __dask_graph__ = chunks = None

    def __init__(self, data):
        self.values = np.asarray(data)
        self.shape = self.values.shape

    def copy(self, data):
        return DataArray(data)

    def __arrow_c_stream__(self, requested_schema=None):
        return polars.DataFrame({"values": self.values.ravel()}).__arrow_c_stream__(requested_schema)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


def test_arrays_of_xarray_are_read_as_their_values():
    x, y = np.stack([COLUMNS["a"], COLUMNS["b"]], axis=1), RNG.normal(size=(50, 2))
    for task in (
        lambda to: mm.two_sample_test(to(x), to(y), **FEW).pvalue,
        lambda to: mm.DriftMonitor.of(to(x), missing="drop", **FEW).step(to(y)).pvalues[0],
        lambda to: mm.condition(to(x), to(x[:, 0]), ridge=0.01)(to(x[:3])).mean().sum(),
        lambda to: mm.embed(to(x)).norm(),
        lambda to: mm.estimators.LowRankFeatures(max_rank=5).fit(to(x)).transform(to(x)).sum(),
    ):
        assert task(DataArray) == task(np.asarray)
    gaps = np.where(x > 1, np.nan, x)
    model = mm.KernelGraph([(0, 1)]).fit(DataArray(x))
    filled = model.impute(DataArray(gaps))
    assert isinstance(filled, DataArray)
    np.testing.assert_array_equal(filled.values, model.impute(gaps))


def test_relations_of_duckdb_come_back_as_relations():
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed here")
    pytest.importorskip("pyarrow", reason="without pyarrow they come back as frames of polars")
    a = np.arange(40.0)
    table = pd.DataFrame({"a": a, "b": np.where(a < 5, np.nan, a**2)})
    relation = duckdb.from_df(table)
    model = mm.KernelGraph([("a", "b")]).fit(relation, missing="drop")
    found = model.impute(relation)
    assert type(found) is type(relation)
    pd.testing.assert_frame_equal(found.df(), model.impute(table))


def test_data_sets_of_xarray_come_back_with_their_dimensions():
    class Labelled(dict):
        __module__ = "xarray.core.dataset"

        def assign(self, columns):
            return Labelled(self | columns)

    class Row(Variable):
        dims = ("row",)

    Labelled.__name__ = "Dataset"
    gaps = Labelled(a=Row([0.3, np.nan, 1.0]), b=Row([np.nan, 0.2, 0.5]))
    model = mm.KernelGraph([("a", "b")]).fit(NUMBERS)
    filled = model.impute(gaps)
    plain = model.impute({name: variable.values for name, variable in gaps.items()})
    assert {name: dims for name, (dims, _) in filled.items()} == {"a": ("row",), "b": ("row",)}
    for name, (_, values) in filled.items():
        np.testing.assert_array_equal(values, plain[name])


@pytest.mark.parametrize("kind", [Once, Dataset])
@pytest.mark.parametrize(
    "task",
    [
        lambda x, y: mm.two_sample_test(x, y, **FEW).pvalue,
        lambda x, y: mm.k_sample_test([x, y], missing="drop", **FEW).statistic,
        lambda x, y: mm.test("a ~ b | c", x, **FEW).statistic,
        lambda x, y: mm.embed(x, mm.default_kernel(COLUMNS)).norm(),
        lambda x, y: mm.Table.of(x).columns["b"].sum(),
        lambda x, y: mm.DriftMonitor.of(x, **FEW).step(y).pvalues[0],
    ],
    ids=["two samples", "samples in a list", "a question", "embedding", "Table", "drift"],
)
def test_tables_are_read_once(task, kind):
    assert task(kind(COLUMNS), kind(OTHERS)) == task(COLUMNS, OTHERS)


RBF = mm.kernels.RBF(1.0)
NUMBERS = {name: COLUMNS[name] for name in "ab"}
# Kernels, features and fitted objects, called with a table that can be read once.
CALLS = {
    "kernel": lambda table: RBF(table(NUMBERS), table(NUMBERS)),
    "diagonal": lambda table: RBF.diag(table(NUMBERS)),
    "product with a matrix": lambda table: RBF.matvec(table(NUMBERS), table(NUMBERS), A),
    "row means": lambda table: RBF.mean(table(NUMBERS), table(NUMBERS)),
    "default kernel": lambda table: mm.default_kernel(COLUMNS)(table(COLUMNS), table(COLUMNS)),
    "default kernel, diagonal": lambda table: mm.default_kernel(COLUMNS).diag(table(COLUMNS)),
    "features": lambda table: mm.features.PivotedCholesky.fit(mm.default_kernel(COLUMNS), COLUMNS)(table(COLUMNS)),
    "embedding": lambda table: mm.embed(COLUMNS, mm.default_kernel(COLUMNS))(table(COLUMNS)),
    "operator": lambda table: mm.condition({"a": A}, {"b": COLUMNS["b"]})(table({"a": A})).mean(),
    "graph, predict": lambda table: (
        mm.KernelGraph([("a", "b")]).fit(NUMBERS).predict(table({"b": A}), ["a"])["a"].mean()
    ),
    "graph, score": lambda table: mm.KernelGraph([("a", "b")]).fit(NUMBERS).score(table(NUMBERS)),
    "regression": lambda table: mm.ep.models.logistic_regression({"a": A}, COLUMNS["c"]).predict_proba(table({"a": A})),
    "classification": lambda table: mm.ep.models.gp_classification(NUMBERS, COLUMNS["c"], kernel=RBF).predict_proba(
        table(NUMBERS)
    ),
    "mixed model, predict": lambda table: mm.fit("b ~ a", COLUMNS).predict(table({"a": A})).to_numpy(),
    "mixed model, simulate": lambda table: mm.fit("p(s, t) ~ a", SHARES, "binomial").simulate(
        table({"a": A, "t": SHARES["t"]}), draws=2, rng=0
    ),
}
SHARES = {"a": A, "s": np.arange(60) % 4, "t": np.full(60, 4)}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_what_is_fitted_read_a_stream_once(name):
    np.testing.assert_array_equal(CALLS[name](Once), CALLS[name](dict))


READER_MESSAGE = r"reader of record batches, whose rows are not in memory: pass (\w+\.read_all\(\)|what its read_all)"


@pytest.mark.parametrize(
    "task",
    [
        lambda reader: mm.test("a ~ b", reader()),
        lambda reader: mm.conditional_independence_test(reader(), reader(), reader()),
        lambda reader: mm.conditional_independence_test("a", "b", "c", data=reader()),
        lambda reader: mm.stats.joint_independence_test(reader()),
        lambda reader: mm.two_sample_effect(reader(), reader()),
        lambda reader: mm.pc(reader()),
        lambda reader: mm.chow_liu(reader()),
        lambda reader: mm.embed(reader()),
        lambda reader: mm.KernelGraph([("a", "b")]).fit(reader()),
        lambda reader: mm.fit("a ~ b", reader()),
        lambda reader: mm.Table.of(reader()),
        lambda reader: mm.DriftMonitor.of(reader()),
        lambda reader: RBF(reader()),
    ],
)
def test_readers_of_record_batches_are_refused_with_what_to_type(task):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(COLUMNS)
    with pytest.raises(KindError, match=READER_MESSAGE):
        task(lambda: pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches()))


def test_readers_are_read_piece_by_piece_where_rows_need_not_be_in_memory():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(NUMBERS)

    def reader():
        return pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=25))

    found = mm.two_sample_test(reader(), reader(), RBF, **FEW)
    assert found.pvalue == mm.two_sample_test(iter([NUMBERS]), iter([NUMBERS]), RBF, **FEW).pvalue
    with pytest.raises(ParameterError, match=r"missing='drop' is for .* pass all rows, such as reader.read_all\(\)"):
        mm.two_sample_test(reader(), reader(), RBF, missing="drop")


def test_arrays_that_have_only_dlpack_are_read():
    x, y = np.stack([COLUMNS["a"], COLUMNS["b"]], axis=1), RNG.normal(size=(50, 2))
    plain = mm.two_sample_test(x, y, **FEW)
    assert mm.two_sample_test(Tensor(x), Tensor(y), **FEW).pvalue == plain.pvalue
    np.testing.assert_array_equal(mm.kernels.RBF(1.0)(Tensor(x)), mm.kernels.RBF(1.0)(x))
    columns = {"p": Tensor(x[:, 0]), "q": Tensor(x[:, 1])}
    assert mm.independence_test(columns, y[:, 0].repeat(2)[:60], **FEW).statistic >= 0


def test_imputed_frames_come_back_as_they_came():
    narwhals = pytest.importorskip("narwhals")
    model = mm.KernelGraph([("a", "b")]).fit({name: COLUMNS[name] for name in ("a", "b")})
    gaps = polars.DataFrame({"a": [0.3, None, 1.0], "b": [None, 0.2, 0.5]})
    plain = model.impute(gaps)
    wrapped = model.impute(narwhals.from_native(gaps))
    assert isinstance(wrapped, narwhals.DataFrame)
    assert wrapped.to_native().equals(plain)
    assert model.impute(narwhals.from_native(gaps.to_pandas())).to_native().equals(model.impute(gaps.to_pandas()))
    assert model.impute(Once(gaps)).equals(plain)
    assert model.impute(narwhals.from_native(gaps).lazy().collect()).to_native().equals(plain)


def test_a_stream_of_one_column_is_refused_in_words():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ValueError("no rows any more")

    with pytest.raises(KindError, match="a Broken has an Arrow stream that is not a table: no rows any more"):
        mm.two_sample_test(Broken(), COLUMNS, **FEW)


def test_what_reads_streams_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackageError, match=r"a Once, read as a stream of Arrow, needs polars"):
        handed_over(Once(COLUMNS))


def test_what_is_read_already_is_left_alone():
    for value in (COLUMNS, polars.DataFrame(COLUMNS), polars.Series([1.0]), [1.0, 2.0], np.ones(3), None, "a", 1.0):
        assert handed_over(value) is value


def test_reading_loads_no_library_of_frames():
    code = (
        "import sys, meanmap as mm; mm.embed([1.0, 2.0]); print({'polars', 'narwhals', 'pyarrow'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


@pytest.mark.parametrize("lazy", [lambda frame: frame.lazy(), lambda frame: frame.lazy().filter(polars.col("a") > 0)])
def test_lazy_frames_of_a_mixed_model_are_refused_with_what_to_type(lazy):
    with pytest.raises(KindError, match=r"data is a lazy frame, whose rows are not in memory: pass data.collect\(\)"):
        mm.fit("a ~ b", lazy(polars.DataFrame(COLUMNS)))
