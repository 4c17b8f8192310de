"""One table, whatever it comes from: columns of every kind are read as the same, or refused in words."""

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, KindError, ShapeError

FEW = {"n_permutations": 99, "rng": 0, "missing": "drop"}
START = datetime.datetime(2026, 1, 1)


def made(shift, seed):
    """Columns of every kind as Python's own values; the same numbers tell, whatever they are called."""
    z = np.random.default_rng(seed).normal(shift, 1.0, 36).round(4)
    moments = [START + datetime.timedelta(seconds=10_000 * float(v)) for v in z]
    gone = lambda values: [None if i % 9 == 3 else v for i, v in enumerate(values)]  # noqa: E731
    return {
        "number": z.tolist(),
        "gaps": gone(z.tolist()),
        "count": gone([int(v * 3) for v in z]),
        "long": gone([2**60 + 3 * int(v * 2) for v in z]),
        "truth": gone([bool(v > 0) for v in z]),
        "text": gone([("low", "high")[int(v > 0.3)] for v in z]),
        "time": gone(moments),
        "zoned": [moment.replace(tzinfo=datetime.UTC) for moment in moments],
        "duration": gone([moment - START for moment in moments]),
        "decimal": gone([Decimal(repr(v)) for v in z.tolist()]),
        "vector": [[v, -v * v] for v in z.tolist()],
    }


KINDS = {"long": "label", "time": "time", "zoned": "time"}
A, B = made(0.0, 1), made(0.6, 2)


def arrays(name, values):
    if name in ("gaps", "decimal", "vector"):
        return np.array([np.nan if v is None else v for v in values], float)
    if name in ("time", "zoned"):
        return np.array([None if v is None else v.replace(tzinfo=None) for v in values], "datetime64[us]")
    if name == "duration":
        return np.array(values, "timedelta64[us]")
    if None not in values:
        return np.array(values)
    filler = next(v for v in values if v is not None)
    return np.ma.array([filler if v is None else v for v in values], mask=[v is None for v in values])


def csv(name, values, folder):
    path = folder / "table.csv"
    path.write_text("\n".join([name, *("NA" if v is None else str(v) for v in values)]) + "\n")
    return mm.io.read_table(path, labels=["long"] if name == "long" else [])[0]


def npz(name, values, folder):
    np.savez(folder / "table.npz", **{name: arrays(name, values)})
    return mm.io.read_table(folder / "table.npz")[0]


def parquet(name, values, folder, *, read=False):
    path = folder / f"table{len(list(folder.iterdir()))}.parquet"
    pl.DataFrame({name: values}).write_parquet(path)
    return mm.io.read_table(path, labels=["long"] if name == "long" else [])[0] if read else path


def arrow(name, values, folder):
    return pytest.importorskip("pyarrow").table({name: values})


def parts(name, values, folder):
    found = folder / f"parts{len(list(folder.iterdir()))}"
    found.mkdir()
    for k, part in enumerate((values[:10], values[10:])):
        pl.DataFrame({name: part}).write_parquet(found / f"{k}.parquet")
    return str(found)


def dask(name, values, folder):
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(pd.DataFrame({name: values}).convert_dtypes(), npartitions=2)


SOURCES = {
    "NumPy": lambda name, values, folder: {name: arrays(name, values)},
    "pandas": lambda name, values, folder: pd.DataFrame({name: values}),
    "pandas, nullable": lambda name, values, folder: pd.DataFrame({name: values}).convert_dtypes(),
    "polars": lambda name, values, folder: pl.DataFrame({name: values}),
    "polars, lazy": lambda name, values, folder: pl.LazyFrame({name: values}),
    "Arrow": arrow,
    "CSV": csv,
    "NPZ": npz,
    "Parquet": parquet,
    "Parquet, read": lambda name, values, folder: parquet(name, values, folder, read=True),
    "a folder": parts,
    "Dask": dask,
}
# What a source cannot hold, or holds as something else: masks and zones; decimals and vectors as text.
NOT = {
    ("NPZ", "count"), ("NPZ", "long"), ("NPZ", "truth"), ("NPZ", "text"), ("NPZ", "zoned"), ("NumPy", "zoned"),
    ("CSV", "duration"), ("CSV", "vector"), ("Dask", "decimal"), ("Dask", "vector"), ("Dask", "long"),
    ("Parquet, read", "vector"), ("NumPy", "text"), ("pandas", "long"),
    ("pandas, nullable", "long"),
}  # fmt: skip


def answers(x, y, name):
    kinds = {name: KINDS[name]} if name in KINDS else None
    found = mm.two_sample_test(x, y, kinds=kinds, **FEW)
    return found.pvalue, found.statistic


@pytest.mark.parametrize("name", A)
def test_a_column_says_the_same_wherever_it_comes_from(name, tmp_path):
    expected = answers({name: A[name]}, {name: B[name]}, name)
    for source, make in SOURCES.items():
        if (source, name) not in NOT:
            x, y = make(name, A[name], tmp_path), make(name, B[name], tmp_path)
            assert answers(x, y, name) == pytest.approx(expected, rel=1e-9), source


@pytest.mark.parametrize("name", ["count", "long", "truth", "time", "duration", "decimal"])
def test_a_column_depends_on_another_wherever_it_comes_from(name, tmp_path):
    other = np.arange(36.0) % 7
    kinds = {name: KINDS[name]} if name in KINDS else None
    expected = mm.independence_test({name: A[name]}, other, kinds=kinds, **FEW).pvalue
    for source in ("NumPy", "polars", "Arrow", "Parquet", "a folder"):
        x = SOURCES[source](name, A[name], tmp_path)
        assert mm.independence_test(x, other, kinds=kinds, **FEW).pvalue == expected, source


def test_a_zone_is_not_forgotten_in_a_file(tmp_path):
    zoned, naive = (parquet("t", A[name], tmp_path, read=True) for name in ("zoned", "time"))
    with pytest.raises(KindError, match="x\\['t'\\] holds times with a zone, and y\\['t'\\] holds times without one"):
        mm.two_sample_test(zoned, naive, **FEW)
    with pytest.raises(KindError, match="with a zone"):
        mm.two_sample_test(zoned, {"t": A["time"]}, **FEW)


@pytest.mark.parametrize("words", [("true", "false"), ("True", "False"), ("TRUE", "FALSE")])
def test_truth_values_of_a_text_are_those_of_other_sources(words, tmp_path):
    truth = [v is True for v in A["truth"]]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["c", *(words[0] if v else words[1] for v in truth), "NA"]) + "\n")
    read, gone = mm.io.read_table(path)
    assert (read.columns["c"].dtype, read.columns["c"].tolist(), gone) == (bool, truth, 1)
    assert mm.io.read_table(path, labels=["c"])[0].columns["c"].tolist() == [words[0] if v else words[1] for v in truth]
    mm.two_sample_test(read, pd.DataFrame({"c": truth}), **FEW)
    mm.two_sample_test(read, parquet("c", truth, tmp_path, read=True), **FEW)


def test_times_of_day_are_refused_in_memory_and_in_files(tmp_path):
    clock = [datetime.time(i % 24) for i in range(36)]
    with pytest.raises(KindError, match=r"x\['c'\] holds Python objects such as datetime.time"):
        mm.two_sample_test({"c": clock}, {"c": clock}, **FEW)
    with pytest.raises(ColumnError, match=r"the column 'c' of .* holds Time; expected numbers, times or text"):
        parquet("c", clock, tmp_path, read=True)


@pytest.mark.parametrize("function", [mm.two_sample_test, mm.independence_test, mm.stats.joint_independence_test])
def test_lists_of_different_lengths_are_refused_in_words(function):
    cells = [[1.0], [1.0, 2.0]] * 10
    tables = lambda each: [each] if function is mm.stats.joint_independence_test else [each, each]  # noqa: E731
    repeated = [*range(10)] * 2  # row numbers would be left out
    for table in (pl.DataFrame({"c": cells, "d": repeated}), {"c": cells, "d": repeated}):
        with pytest.raises(ShapeError, match=r"\['c'\] is ragged: its cells are lists, such as \[1.0\]"):
            function(*tables(table), **FEW)


def test_a_folder_is_named_by_a_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path(parts("number", A["number"], tmp_path)).name
    expected = mm.two_sample_test({"number": A["number"]}, {"number": B["number"]}, **FEW).pvalue
    assert mm.two_sample_test(folder, {"number": B["number"]}, **FEW).pvalue == expected
    labels = [folder, "elsewhere"] * 10
    assert mm.independence_test(labels, np.arange(20.0), **FEW).sizes == (20,)  # a label may be called as a folder


@pytest.mark.parametrize("written", [("caf\u00e9", "cafe\u0301"), ("cafe\u0301", "caf\u00e9")])
def test_names_with_accents_are_one_however_they_are_composed(written, tmp_path):
    one, other = written
    x, y = {one: A["number"], "b": B["number"]}, {"b": A["number"], other: B["number"]}
    same = {one: B["number"], "b": A["number"]}
    expected = mm.two_sample_test(x, same, **FEW).pvalue
    assert mm.two_sample_test(x, y, **FEW).pvalue == expected
    files = []
    for name, table in (("a", x), ("b", y)):
        pl.DataFrame(table).write_parquet(tmp_path / f"{name}.parquet")
        pl.DataFrame(table).write_csv(tmp_path / f"{name}.csv")
        files.append((tmp_path / f"{name}.parquet", mm.io.read_table(tmp_path / f"{name}.csv", [*table])[0]))
    for a, b in zip(*files, strict=True):
        assert mm.two_sample_test(a, b, **FEW).pvalue == expected
    assert mm.Schema.of(x).read(y).names == (one, "b")
    assert mm.Schema.of(x, kinds={other: "label"})[one].kind == "label"
    expected = mm.independence_test(one, "b", data=x, **FEW).pvalue
    assert mm.independence_test(other, "b", data=x, **FEW).pvalue == expected
    mm.test(f"`{other}` ~ b", x, **FEW)
