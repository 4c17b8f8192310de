"""One grammar of numbers: what a cell of a text is, and what stands for a missing one."""

import numpy as np
import pytest

from meanmap.core.errors import ColumnError, InputError
from meanmap.io.tables import read_columns, read_table


@pytest.fixture
def read(tmp_path):
    """The first column of a file, and what was told."""

    def read(content, name="a.csv", **options):
        path, told = tmp_path / name, []
        path.write_text(content, encoding="utf-8")
        table, _ = read_table(path, tell=told.append, **options)
        return next(iter(table.columns.values())).tolist(), " ".join(told)

    return read


@pytest.mark.parametrize("cells", [["1_2", "3_4"], ["１２", "３"], ["1,5", "2,5"], ["0x1A", "0x1B"], ["1 2", "3 4"]])
def test_what_python_reads_beyond_the_grammar_is_text(read, cells):
    assert read("a\n" + "".join(f'"{cell}"\n' for cell in cells))[0] == cells


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [(["1", "-2.5", "+3.", ".5", "1e-3"], [1, -2.5, 3, 0.5, 1e-3]), (["0", "0.5", "-0"], [0, 0.5, 0])],
)
def test_numbers(read, cells, numbers):
    assert read("a\n" + "\n".join(cells))[0] == numbers


def test_whole_numbers_that_begin_with_a_zero_are_names(read):
    found, told = read("zip\n" + "10115\n" * 21_000 + "01067\n10115.0\n\n7\n")
    assert sorted(set(found)) == ["01067", "10115", "10115.0", "7"]
    assert "'zip' of" in told
    assert "begin with zero, such as '01067', and counts as labels" in told
    assert "kinds={'zip': 'number'}" in told


def test_long_ids_keep_their_digits(read, tmp_path):
    found, told = read("id,v\n1234567890123456789,1\n,2\n1234567890123456788,3\n3,4\n")
    assert found == [1234567890123456789, 1234567890123456788, 3]
    assert "1 of 4 rows" in told
    (tmp_path / "b.csv").write_text("id,v\n1234567890123456789,1\n,2\n5,3\n")
    column = read_columns(tmp_path / "b.csv")["id"]
    assert (column[0], np.ma.getmaskarray(column).tolist()) == (1234567890123456789, [False, True, False])
    found, told = read("id\n12345678901234567890\n5\n")
    assert found == ["12345678901234567890", "5"]
    assert "of 20 digits and more" in told


@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_semicolons_with_decimal_commas_need_one_try(read, name):
    found, told = read("a;b\n1,5;x\n2;y\n-0,25;z\n", name)
    assert found == [1.5, 2.0, -0.25]
    assert "read with a decimal comma in" in told
    assert ("separated by semicolons" in told) == (name == "a.csv")


def test_a_comma_may_mean_thousands(read):
    content = "a;b\n1,500;x\n12,250;y\n"
    with pytest.raises(ColumnError, match="'1,500', which may be a number with a decimal comma or"):
        read(content)
    assert read(content, decimal=",")[0] == [1.5, 12.25]
    assert read(content, decimal=".")[0] == ["1,500", "12,250"]
    assert read("a;b\n0,500;x\n12,250;y\n")[0] == [0.5, 12.25]
    assert read("a;b\n1,234,567;x\n12,250;y\n", decimal=".")[0] == ["1,234,567", "12,250"]


def test_a_dot_may_mean_thousands(read):
    content = "a;b\n1.032;x\n999;y\n;y\n12.250;y\n1.234.567;y\n"
    with pytest.raises(ColumnError, match=r"'1\.032' beside '999': if dots separate thousands, say thousands='\.'; if"):
        read(content)
    assert read(content, thousands=".")[0][:2] == [1032, 999]
    beside = "a;b\n1.032;0,5\n12.250;2\n"
    with pytest.raises(ColumnError, match=r"'1\.032': if dots separate thousands \(likely, as 'b' holds '0,5'"):
        read(beside)
    assert read("a;b\n1.032;x\n12.250;y\n")[0] == [1.032, 12.25]  # all with three decimals
    for other in ("0.532", "1.5", "2000", "1.0325"):
        assert read(f"a;b\n1.032;x\n999;y\n{other};y\n")[0] == [1.032, 999.0, float(other)]
    assert read("a;b\n1.200.300;x\n12;y\n", labels=["a"])[0] == ["1.200.300", "12"]
    assert read(content.replace(";", ",").replace("1.234.567,y\n", ""), decimal=".")[0][:2] == [1.032, 999.0]


def test_the_decimal_mark_is_said(read):
    content = 'a,b\n"1,5",x\n"2",y\n'
    with pytest.raises(ColumnError, match=r"if its comma is a decimal mark, say so: decimal=','"):
        read(content)
    assert read(content, decimal=",")[0] == [1.5, 2.0]
    assert read("a;b\n1.5;x\n2.5;y\n", decimal=",")[0] == ["1.5", "2.5"]
    with pytest.raises(InputError, match=r"decimal is ';'; expected '.' or ','"):
        read(content, decimal=";")


@pytest.mark.parametrize("options", [{}, {"decimal": ","}])
def test_decimal_commas_beside_what_is_no_number_are_refused(read, options):
    """One such cell among a thousand made labels of all the others."""
    with pytest.raises(ColumnError, match=r"such as -0,25, and in row 2 '1\.234,5'. Correct it; or, if '\.' separates"):
        read("a;b\n1,5;x\n1.234,5;y\n-0,25;z\n", **options)
    with pytest.raises(ColumnError, match=r"in row 3 'n\.d\.'. Correct it; or, if that stands for a missing value"):
        read("a;b\n1,5;x\n2;y\nn.d.;z\n", **options)
    assert read("a;b\n1,5;x\n2;y\nn.d.;z\n", missing=["n.d."], **options)[0] == [1.5, 2.0]
    assert read("a;b\nx,5;x\n2;y\n", decimal=".", labels=["a"])[0] == ["x,5", "2"]


def test_marks_of_missing_values_are_said(read):
    content = "age,town\n31,a\n?,b\n47,?\n-999,d\n52,e\n"
    with pytest.raises(ColumnError, match=r"if that stands for a missing value, say so: missing=\['\?'\]"):
        read(content)
    found, told = read(content, missing=["?", -999])
    assert found == [31, 52]
    assert "3 of 5 rows" in told
    assert "'age' (2), 'town' (1)" in told


def test_all_words_among_numbers_are_named_with_the_codes_that_were_given(read):
    """The first one was, and its remedy dropped the codes that were given."""
    content = "a;b\nunknown;x\n1;y\n?;z\n-;x\n2;y\nn/k;z\nunknown;z\n"
    with pytest.raises(
        ColumnError, match=r"in row 1 'unknown', and also '\?', 'n/k'\. .*missing=\['-', 'unknown', '\?', 'n/k'\]"
    ):
        read(content, missing=["-"])
    assert len(read(content, missing=["-", "unknown", "?", "n/k"])[0]) == 2
    many = "a;b\n1;x\n" + "".join(f"word{k};y\n" for k in range(9))
    with pytest.raises(ColumnError, match=r"in row 2 'word0'\. .*missing=\['word0'\]"):
        read(many)


def test_thousands_are_read_where_they_are_declared(read):
    """A file with 1,174.24 could not be read without editing it."""
    content = "a;b\n1,174.24;x\n-12,000;y\n7;z\n"
    with pytest.raises(ColumnError, match=r"',' separates its thousands, say so: thousands=','"):
        read(content)
    assert read(content, thousands=",")[0] == [1174.24, -12000.0, 7.0]
    assert read("a;b\n1.174,24;x\n12,5;y\n", thousands=".")[0] == [1174.24, 12.5]
    assert read("a;b\n1'174.24;x\n2\u2019000;y\n", thousands="'")[0] == [1174.24, 2000.0]
    assert read("a;b\n1 174,24;x\n2\u202f000;y\n", thousands=" ", decimal=",")[0] == [1174.24, 2000.0]
    with pytest.raises(ColumnError, match=r"in row 2 '12,5'.*Row 1 is the first below the header"):
        read("a;b\n1,000;x\n12,5;y\n", thousands=",")
    whole = "a;b\n1.174,24;x\n12.005,5;y\n"  # each cell is text, and nearly every row has its own
    with pytest.raises(ColumnError, match=r"such as '1\.174,24': say thousands='\.', or, for text, labels=\['a'\]"):
        read(whole)
    assert read(whole, labels=["a"])[0] == ["1.174,24", "12.005,5"]
    with pytest.raises(InputError, match="thousands is '_'; expected one of"):
        read(content, thousands="_")
    with pytest.raises(InputError, match="decimal and thousands are both ','; expected different marks"):
        read(content, thousands=",", decimal=",")


def test_a_decimal_comma_in_one_column_is_named_where_another_is_undecided(read):
    with pytest.raises(ColumnError, match=r"say decimal=',' for the first \(likely, as 'b' holds '0,4518'\)"):
        read("a;b\n10,299;0,4518\n12,250;1\n")
    with pytest.raises(ColumnError, match=r"say decimal=',' for the first, thousands=',' for the second"):
        read("a;b\n10,299;7\n12,250;1\n")
