"""Files are read by stated rules, and malformed ones refused in a sentence."""

import datetime
import io
import sys
import time
import zipfile

import numpy as np
import pytest

from meanmap.core.errors import ColumnError, EmptyError, InputError
from meanmap.io.tables import read_table


def columns(path, **options) -> dict:
    table, _ = read_table(path, **options)
    return {name: np.asarray(column).tolist() for name, column in table.columns.items()}


@pytest.fixture
def write(tmp_path):
    def make(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


EXPECTED = {"x": [1.0, -2.5], "colour": ["red", "blue, dark"]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'x,colour\n1,red\n-2.5,"blue, dark"\n'),
        ("a.csv", '\ufeffx,colour\r\n1,red\r\n\r\n-2.5,"blue, dark"'),
        ("a.tsv", "x\tcolour\n1\tred\n-2.5\tblue, dark\n"),
        ("a.txt", "x;colour\n1;red\n-2.5;blue, dark\n"),
        ("a", "x | colour\n 1 | red \n-2.5|blue, dark\n"),
    ],
)
def test_texts(write, name, content):
    assert columns(write(content, name)) == EXPECTED


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"a,b\n1,2\n3,4\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert columns("-") == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


def test_numbers_without_names(write):
    assert columns(write("1,2\n3,4\n")) == {"x0": [1.0, 3.0], "x1": [2.0, 4.0]}


def test_chosen_columns_only_are_looked_at(write):
    path = write("a,b,c\n1,2,x\n3,,7\n")
    assert columns(path, columns=["a"]) == {"a": [1.0, 3.0]}
    assert columns(path, columns=["c", "a"], labels=["c"]) == {"c": ["x", "7"], "a": [1.0, 3.0]}


def test_none_is_a_label(write):
    assert columns(write("status,pain\nnone,1\nright,2\n"))["status"] == ["none", "right"]


@pytest.mark.parametrize("word", ["", " ", "NA", "n/a", "NaN", "null", "None"])
def test_rows_with_a_missing_value_are_left_out_and_counted(write, word):
    table, dropped = read_table(write(f"a,b\n1,x\n{word},y\n3,{word}\n4,z\n"))
    assert (dropped, table.columns["a"].tolist(), table.columns["b"].tolist()) == (2, [1.0, 4.0], ["x", "z"])
    with pytest.raises(ValueError, match="1 missing values in the column 'a', first in row 2"):
        read_table(write(f"a,b\n1,x\n{word},y\n"), missing="raise")


def test_labels_that_look_like_numbers_keep_their_letters(write):
    assert columns(write("a\n01\n1\n1.0\n"), labels=["a"]) == {"a": ["01", "1", "1.0"]}


def test_arrays(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(3, 2))
    np.savez(tmp_path / "a.npz", u=np.arange(3.0), v=np.ones((3, 2)))
    assert columns(tmp_path / "a.npy") == {"x0": [0.0, 2.0, 4.0], "x1": [1.0, 3.0, 5.0]}
    assert columns(tmp_path / "a.npz", columns=["v"]) == {"v": [[1.0, 1.0]] * 3}


def test_parquet(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1, None, 3], "colour": ["red", "blue", None], "day": [True, False, True]})
    frame.write_parquet(tmp_path / "a.parquet")
    table, dropped = read_table(tmp_path / "a.parquet")
    assert (dropped, table.columns["x"].tolist(), table.columns["colour"].tolist()) == (2, [1.0], ["red"])
    assert columns(tmp_path / "a.parquet", columns=["x"]) == {"x": [1.0, 3.0]}


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has a header and no rows"),
        ("a,b\n1,2\n3\n", "has 1 cell in row 2, and 2 columns"),
        ("a,b\n1,2,\n", "has 3 cells in row 1, and 2 columns. The last cell is empty: does each line end with a d"),
        ("a,b,\n1,2,\n", "missing in '' .1.. The last cell is empty: does each line end with a delimiter"),
        ("a\n1,2\n", "has 2 cells in row 1, and 1 column. Row 1"),
        ("a,b\n1,2,3\n", "has 3 cells in row 1, and 2 columns"),
        ("a,b\n1,2\nx,3\n", "column 'a' of .* holds numbers, such as 1.*and in row 2 'x'.*labels=\\['a'\\]"),
        ("a,a\n1,2\n", "more than one column called 'a'"),
        ("a,b\n,2\n1,\n", "no row without a missing value"),
        ("a,b\n1,2\n".encode("utf-16"), "looks like UTF-16"),
        ("a,b\n1,2\n".encode("utf-16-le"), "looks like UTF-16"),
        (b"a,b\n1,\xff\xfe2\n", "is not UTF-8 text"),
    ],
)
def test_malformed_texts(write, content, match):
    with pytest.raises(ValueError, match=match):
        read_table(write(content))


@pytest.mark.parametrize(("name", "match"), [("a.npy", "cannot be read as .npy"), ("a.npz", "cannot be read as .npz")])
@pytest.mark.parametrize("content", [b"", b"junk", b"\x93NUMPY\x01\x00", b"PK\x03\x04junk"])
def test_malformed_arrays(write, name, match, content):
    with pytest.raises(ValueError, match=match):
        read_table(write(content, name))


def test_arrays_of_several_lengths(tmp_path):
    for number, arrays in enumerate(({"a": np.ones(3), "b": np.ones(2)}, {"a": np.array(1.0)}, {})):
        np.savez(tmp_path / f"{number}.npz", **arrays)
        with pytest.raises(ValueError, match="no columns of one length"):
            read_table(tmp_path / f"{number}.npz")
    np.save(tmp_path / "a.npy", np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="has shape"):
        read_table(tmp_path / "a.npy")


def test_pickled_arrays_are_not_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="it holds Python objects, and reading them would execute code"):
        read_table(tmp_path / "a.npy")
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="it does not begin like such a file"):
        read_table(tmp_path / "a.npz")


def test_malformed_parquet(write):
    pytest.importorskip("polars")
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        read_table(write(b"PAR1junk", "a.parquet"))


def test_unknown_names(write):
    with pytest.raises(ValueError, match="has no column 'c'; it has 'a', 'b'"):
        read_table(write("a,b\n1,2\n"), columns=["c"])
    with pytest.raises(ValueError, match="has no column 'c'"):
        read_table(write("a,b\n1,2\n"), labels=["c"])
    with pytest.raises(FileNotFoundError):
        read_table("nowhere.csv")
    with pytest.raises(ValueError, match="expected one character"):
        read_table(write("a,b\n1,2\n"), delimiter="::")


@pytest.mark.slow
def test_a_million_rows_in_seconds(tmp_path):
    path = tmp_path / "a.csv"
    block = "".join(f"{i / 7:.6f},{i % 13},w{i % 5}\n" for i in range(10_000))
    path.write_text("a,b,c\n" + block * 100)
    start = time.monotonic()
    table, _ = read_table(path)
    assert len(table) == 10**6
    assert time.monotonic() - start < 15


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ('a,b\n1,2\n3,"4\n5,6\n7,8\n', "from line 3 on: a quote is opened and never closed"),
        ('a,b\n1,"x" y\n', "cannot be read from line 2 on: ',' expected after '\"'"),
        ("a,b\n" + "1" * 140_000 + ",2\n", "from line 2 on: field larger than field limit"),
        (b"\x1f\x8b\x08\x00\x00\x00", "is compressed with gzip. Unpack it first"),
        (b"PK\x03\x04\x14\x00\x06\x00", r"as \.xlsx and \.npz files are"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "looks like an Excel sheet"),
        (b"PAR1\x15\x04", r"looks like Parquet. Call it \.parquet"),
        (b"\x93NUMPY\x01\x00", r"Call it \.npy"),
        ('{"a":[],"b":[]}', r"looks like JSON; expected a header and rows: read it with pandas\.read_json"),
        ('[{"a": 1}, {"a": 2}]', "looks like JSON"),
        ('{\n  "a": [1, 2]\n}\n', "looks like JSON"),
        ("[[1, 2], [3, 4]]", "looks like JSON"),
        ("{}", "looks like JSON"),
    ],
)
def test_texts_that_would_be_misread(write, content, match):
    with pytest.raises(ValueError, match=match):
        read_table(write(content))


def test_quotes_in_a_cell(write):
    assert columns(write('a,b\n"5"" pipe",1\n5" pipe,"2"\n')) == {"a": ['5" pipe', '5" pipe'], "b": [1.0, 2.0]}


def test_a_first_line_of_numbers_is_told(write):
    said: list[str] = []
    read_table(write("2019,2020\n3,4\n"), tell=said.append)
    assert len(said) == 1
    assert "holds numbers only and was taken for data; its columns are called x0 to x1" in said[0]
    read_table(write("a,2020\n3,4\n"), tell=said.append)
    assert len(said) == 1


def npy(header: str) -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def npz(content: bytes, **changes: int) -> bytes:
    """An archive with one member, whose header says something else than what it is."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", changes.get("packed", 0)) as archive:
        # Names of tests hold these bytes, which must not change with the clock.
        archive.writestr(zipfile.ZipInfo("a.npy"), content, changes.get("packed", 0))
    found = bytearray(whole.getvalue())
    start = found.index(b"PK\x01\x02")
    for offset, value in (("flags", 8), ("method", 10)):
        if offset in changes:
            for at in (start + value, value - 2):
                found[at : at + 2] = changes[offset].to_bytes(2, "little")
    if "damage" in changes:
        found[40:44] = b"\xff" * 4
    return bytes(found)


def saved(array) -> bytes:
    whole = io.BytesIO()
    np.save(whole, array)
    return whole.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.npy", npy("(" * 100), "cannot be read as .npy"),
        (
            "a.npy",
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,)}"),
            "Unable to allocate|cannot be read as .npy",
        ),
        ("a.npy", saved(np.zeros((0, 3))), "no rows"),
        ("a.npy", saved(np.zeros((3, 0))), "holds no columns"),
        ("a.npy", saved(np.array(3.0)), r"has shape \(\)"),
        (
            "a.npy",
            saved(np.zeros(3, complex)),
            "'x0' of .* is of complex128; expected arrays of numbers, times or text",
        ),
        ("a.npz", b"PK", "does not begin like such a file"),
        ("a.npz", npz(saved(np.zeros(90)), packed=8, damage=1), "cannot be read as .npz"),
        ("a.npz", npz(saved(np.zeros(3)), flags=1), "encrypted"),
        ("a.npz", npz(saved(np.zeros(3)), method=99), "compression"),
        ("a.npz", npz(b"only text"), "'a' of .* is not an array"),
        ("a.npz", npz(saved(np.zeros((3, 2, 2)))), "holds no columns of one length"),
        ("a.parquet", b"PAR1PAR1", "cannot be read as Parquet"),
    ],
)
def test_damaged_and_odd_files(write, name, content, match):
    with pytest.raises(InputError, match=match):
        read_table(write(content, name))


def test_odd_columns_of_parquet(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "a.parquet"
    odd = {
        "List": [[1.0], [2.0]],
        "Struct": [{"a": 1}, {"a": 2}],
        "Time": [datetime.time(1), datetime.time(2)],
        "Binary": [b"\x00\xff", b"b"],
    }
    for kind, values in odd.items():
        polars.DataFrame({"x": [1.0, 2.0], "odd": values}).write_parquet(path)
        with pytest.raises(ColumnError, match=f"the column 'odd' of .* holds {kind}.*expected numbers, times or text"):
            read_table(path)
        assert columns(path, columns=["x"]) == {"x": [1.0, 2.0]}
    for frame, match in ((polars.DataFrame({"x": []}), "no rows"), (polars.DataFrame(), "no columns")):
        frame.write_parquet(path)
        with pytest.raises(EmptyError, match=match):
            read_table(path)


def test_null_characters_are_refused_with_their_line(write):
    for content, line in [
        ("a,b\n1,2\n\0\0\0\0\n3,4\n", 3),
        ("a,b\n1,2\0\n", 2),
        ("name\0,b\n1,2\n", 1),
        ("\n\nab,c\0\n", 3),
    ]:
        with pytest.raises(InputError, match=f"a.csv has a NUL character in line {line}"):
            read_table(write(content))


def test_blank_lines_before_the_names_are_left_out(write):
    for content in ("\n\nx,y\n1,2\n", "\r\n  \r\nx,y\r\n1,2\r\n"):
        assert columns(write(content)) == {"x": [1.0], "y": [2.0]}
    for content in ("\n", "\n \n"):
        with pytest.raises(EmptyError, match="is empty"):
            read_table(write(content))
    with pytest.raises(InputError, match="line 4 on"):
        read_table(write('\n\nx,y\n"1,2\n'))


def test_a_tab_may_be_spelled_out(write):
    assert columns(write("x;a\ty\n1;2\t3\n"), delimiter="\\t") == {"x;a": ["1;2"], "y": [3.0]}


def test_cells_between_spaces_are_not_one_label(write):
    path = write("a   b\n1 2.5\n 30   -4 \n", "a.txt")
    with pytest.raises(
        InputError, match=r"several numbers with spaces between them, such as '1 2\.5': say delimiter=' '"
    ):
        read_table(path)
    table, _ = read_table(path, delimiter=" ")
    assert {name: list(table[name]) for name in table} == {"a": [1.0, 30.0], "b": [2.5, -4.0]}
    table, _ = read_table(path, labels=["a   b"])
    assert list(table["a   b"]) == ["1 2.5", "30   -4"]


def test_spaces_between_groups_of_three_digits_separate_no_cells(write):
    table, _ = read_table(write("a\n1 250\n2 500\n"), thousands=" ")
    assert list(table["a"]) == [1250.0, 2500.0]
    assert list(read_table(write("a\n1 250\n2 500\n"))[0]["a"]) == ["1 250", "2 500"]


@pytest.mark.parametrize("word", ["\u22120.13", "(5)", "1\u00a0250"])
def test_numbers_as_printed_are_named_beside_others(write, word):
    with pytest.raises(ColumnError, match="if that is a number, write negative numbers with -, and leave out paren"):
        read_table(write(f"a\n4\n{word}\n"))
