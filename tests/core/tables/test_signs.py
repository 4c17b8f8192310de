"""Text with signs and units: the line of pandas that messages show makes the right numbers of it."""

import re

import pandas
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app
from meanmap.core.errors import KindError
from meanmap.core.tables.signs import decimal_marks, to_numbers

CASES = (
    (["€ 12,50", "€ 0,00", "-€ 7,10"], [12.5, 0.0, -7.1]),
    (["€ 1.250,5", "€ 7,10"], [1250.5, 7.1]),
    (["$1,250.00", "$7.10"], [1250.0, 7.1]),
    (["$1,250", "$3,000"], [1250.0, 3000.0]),
    (["12.5%", "3%"], [12.5, 3.0]),
    (["2,16 kg", "3 kg"], [2.16, 3.0]),
    (["2.5 kg", "3,25 kg"], [2.5, 3.25]),
    (["£1.5", "£1250.75"], [1.5, 1250.75]),
)


@pytest.mark.parametrize(("words", "numbers"), CASES)
def test_the_calls_make_the_numbers(words, numbers):
    assert eval(f"column{to_numbers(decimal_marks(words))}", {"column": pandas.Series(words)}).tolist() == numbers


def test_a_declared_number_with_a_sign_is_refused_with_what_to_type():
    table = pandas.DataFrame({"arm": ["A", "B"] * 20, "paid": [f"€ {k},{k % 7}0" for k in range(40)]})
    with pytest.raises(KindError, match="which cannot be read as a number: remove signs") as refused:
        mm.two_sample_test(table, by="arm", kinds={"paid": "number"}, rng=0)
    (calls,) = re.findall(r"with (\.str.*\.astype\(float\))\.$", str(refused.value))
    table["paid"] = eval(f"paid{calls}", {"paid": table["paid"]})
    assert table["paid"][3] == 3.3
    assert mm.two_sample_test(table, by="arm", rng=0).differences[0].column == "paid"


def test_the_command_says_the_whole_line(tmp_path):
    table = pandas.DataFrame({"arm": ["A", "B"] * 20, "paid": [f"€ {k},{k % 7}0" for k in range(40)]})
    table.to_csv(tmp_path / "t.csv", sep=";", index=False)
    asked = ["test", "two-sample", str(tmp_path / "t.csv"), "--by", "arm", "--kinds", "paid=number"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 2
    assert "with pandas: data[NAME] = data[NAME].str.replace(r'[^\\d,-]', '', regex=True)" in found.stderr
