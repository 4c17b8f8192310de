"""Tables and arrays of other libraries, by the protocols that they speak, in stand-ins that speak nothing else."""

import subprocess
import sys

import numpy as np
import polars
import pytest

import meanmap as mm
from meanmap.core.errors import KindError
from meanmap.core.protocols import handed_over

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

    with pytest.raises(KindError, match="a Broken has an Arrow stream that is no table: no rows any more"):
        mm.two_sample_test(Broken(), COLUMNS, **FEW)


def test_what_reads_streams_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setattr("meanmap.core.protocols.find_spec", lambda name: None)
    with pytest.raises(KindError, match=r"a Once is read .* by polars or pyarrow: pip install polars"):
        handed_over(Once(COLUMNS))


def test_what_is_read_already_is_left_alone():
    for value in (COLUMNS, polars.DataFrame(COLUMNS), polars.Series([1.0]), [1.0, 2.0], np.ones(3), None, "a", 1.0):
        assert handed_over(value) is value


def test_reading_loads_no_library_of_frames():
    code = (
        "import sys, meanmap as mm; mm.embed([1.0, 2.0]); print({'polars', 'narwhals', 'pyarrow'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
