"""Parquet files: what exists is itself, and several are one table."""

import datetime

import numpy as np
import polars
import pytest

import meanmap as mm
from meanmap.core.errors import InputError, KindError, ParameterError
from meanmap.core.pieces.files import ParquetFiles
from meanmap.io.tables import read_table


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    polars.DataFrame(columns).write_parquet(path)
    return path


def values(source):
    return ParquetFiles.of(source).whole()["a"].to_list()


def test_a_file_that_exists_is_no_pattern(tmp_path):
    write(tmp_path / "a1.parquet", a=[1.0, 2.0])
    itself = write(tmp_path / "a[1].parquet", a=[3.0, 4.0, 5.0])
    assert values(itself) == values(str(itself)) == values([itself]) == [3.0, 4.0, 5.0]
    files = ParquetFiles.of(itself)
    assert files.count() == 3
    assert files.take(np.array([2]))["a"].to_list() == [5.0]
    assert [len(batch) for batch in files.pieces(10)] == [3]
    assert read_table(itself)[0].columns["a"].tolist() == [3.0, 4.0, 5.0]
    assert values(str(tmp_path / "a?.parquet")) == [1.0, 2.0]
    assert values(str(tmp_path / "a*.parquet")) == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_folder_that_exists_is_no_pattern(tmp_path):
    write(tmp_path / "h1" / "part.parquet", a=[1.0])
    write(tmp_path / "h[1]" / "part.parquet", a=[2.0])
    for source in (tmp_path / "h[1]", str(tmp_path / "h[1]" / "*.parquet"), tmp_path / "h[1]" / "part.parquet"):
        assert values(source) == [2.0]
        assert read_table(source)[0].columns["a"].tolist() == [2.0]
    assert sorted(values(str(tmp_path / "h*" / "*.parquet"))) == [1.0, 2.0]
    assert values(str(tmp_path / "h[12]" / "*.parquet")) == [1.0]


def test_columns_come_in_the_order_of_the_first_file(tmp_path):
    write(tmp_path / "f" / "1.parquet", a=[1.0], b=["u"])
    write(tmp_path / "f" / "2.parquet", b=["v"], a=[2.0])
    files = ParquetFiles.of(tmp_path / "f")
    for frame in (files.whole(), files.take(np.array([0, 1])), polars.concat(files.pieces(1))):
        assert frame.to_dict(as_series=False) == {"a": [1.0, 2.0], "b": ["u", "v"]}


def test_whole_numbers_of_several_sizes_stay_whole(tmp_path):
    long = 2**53 + 1
    write(tmp_path / "f" / "1.parquet", a=polars.Series([long], dtype=polars.UInt64))
    write(tmp_path / "f" / "2.parquet", a=polars.Series([-long], dtype=polars.Int64))
    assert values(tmp_path / "f") == [long, -long]
    assert read_table(tmp_path / "f")[0].columns["a"].tolist() == [long, -long]
    write(tmp_path / "f" / "1.parquet", a=polars.Series([2**63], dtype=polars.UInt64))
    with pytest.raises(KindError, match=r"1.parquet cannot be read as Parquet: .*u64.*i64"):
        values(tmp_path / "f")


def test_a_damaged_page_is_said_of_its_file(tmp_path):
    path = write(tmp_path / "a.parquet", a=np.arange(50_000) // 7)
    content = bytearray(path.read_bytes())
    content[4:40] = np.random.default_rng(0).bytes(36)
    path.write_bytes(content)
    files = ParquetFiles.of(path)
    for read in (files.whole, lambda: list(files.pieces(100)), lambda: files.take(np.array([3]))):
        with pytest.raises(KindError, match=r"a.parquet cannot be read as Parquet: "):
            read()
    with pytest.raises(KindError, match=r"a.parquet cannot be read as Parquet: "):
        mm.two_sample_test(path, path, rng=0)
    with pytest.raises(InputError, match=r"a.parquet cannot be read as Parquet: "):
        read_table(path)
    lazy = polars.scan_parquet(path)
    with pytest.raises(KindError, match="the lazy frame cannot be read: "):
        mm.two_sample_test(lazy, lazy, rng=0)
    with pytest.raises(ParameterError, match="there is no file"):
        ParquetFiles((tmp_path / "gone.parquet",)).count()


def test_times_of_files_are_times(tmp_path):
    days = [datetime.datetime(2026, 1, day) for day in (1, 2, 3)]
    zoned = polars.Series(days).dt.replace_time_zone("Europe/Berlin")
    path = write(tmp_path / "a.parquet", a=days, b=[day.date() for day in days], c=zoned, d=[days[0], None, days[2]])
    table, dropped = read_table(path)
    assert dropped == 1
    assert {name: column.dtype.str for name, column in table.columns.items()} == dict.fromkeys("abcd", "<M8[us]")
    assert str(table.columns["c"][0]) == "2025-12-31T23:00:00.000000"
    assert mm.Schema.of(table)["a"].kind == "time"
