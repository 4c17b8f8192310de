"""Numbers that one page quotes from another are those of the kept records."""

import math
import re

import pytest

from papers import pages as papers

RECORDS = papers.kept()


def numbers(text):
    """Those with a decimal point, as they are written."""
    return re.findall(r"\d+\.\d+", text)


def is_among(written, values):
    """Whether a value is the written number, to as many digits; percentages and multiples of 10⁻⁵ count, too."""
    off = 0.5001 * 10 ** -len(written.split(".")[1])
    return any(abs(abs(value * unit) - float(written)) <= off for value in values for unit in (1, 100, 1e5))


def found_now():
    """The figure and "now ..." of each row of the page on earlier runs; rows of "the same" are of the figure before."""
    text = (papers.FOLDER / "earlier.rst").read_text(encoding="utf-8").split("\nRuns that were repeated")[0]
    figure = ""
    for row in text.split("\n   * - ")[2:]:
        first, *_, last = row.split("\n     - ")
        if first.startswith(":ref:"):
            figure = first.split("<")[1].split(">")[0]
        if re.search(r"\bnow\b", last):
            yield figure, re.split(r"\bnow\b", last, maxsplit=1)[1]


@pytest.mark.parametrize(("figure", "said"), list(found_now()))
def test_earlier_runs_are_compared_with_what_is_found_now(figure, said):
    record = RECORDS[figure]
    told = [record["answer"], record.get("afterwards", ""), *record.get("more", ())]
    told += [cell for row in record["table"] for cell in row if numbers(cell) == [cell]]
    values = [float(each) for each in numbers(" ".join(told))]
    values += [each for value, error, *_ in record["numbers"].values() for each in (value, error or 0.0)]
    values += [math.exp(value) for name, (value, *_) in record["numbers"].items() if "log" in name.split()]
    assert [each for each in numbers(said) if not is_among(each, values)] == []


def test_lengthscales_of_two_grids_are_those_of_the_section_on_constants():
    note = RECORDS["kernel-learning-figure-2"]["notes"][0]
    said = re.findall(r"are ([\d.]+) with 25 landmarks, ([\d.]+) with 50, ([\d.]+) with 90 and ([\d.]+) with 200", note)
    table = RECORDS["kernel-learning-constants"]["table"]
    assert said == [tuple(row[2] for row in table if row[0] == "landmarks")]
