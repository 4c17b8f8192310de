"""The table of all printed claims: what is tested points at a record that holds its number, and nothing is left out."""

import math
import re
from collections import Counter
from functools import cache

import pytest
from scipy import stats

from meanmap_papers.experiment import Number
from meanmap_papers.registry import PAPERS, all_experiments
from papers import claims, pages

EXPERIMENTS, RECORDS = all_experiments(), pages.kept()
ROWS = [(paper, row) for paper, rows in claims.claims().items() for row in rows]
TESTED = [(paper, row) for paper, row in ROWS if "figure" in row]
PLACES = ("trees", "loopy")


def test_all_four_papers_are_there():
    assert list(claims.claims()) == [paper.replace("_", "-") for paper in PAPERS] == list(claims.TITLES)


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=lambda row: row["says"][:40])
def test_a_row_is_tested_or_says_why_not(row):
    assert ("figure" in row) != ("why" in row)
    assert set(row) <= {"place", "says", "figure", "number", "why", "testable"}
    assert row.get("testable", False) is False


@pytest.mark.parametrize("row", [row for _, row in TESTED], ids=lambda row: row["says"][:40])
def test_a_tested_claim_points_at_a_record_that_holds_the_number(row):
    claim = claims.claim_of(row, EXPERIMENTS)
    assert not claim.ours
    numbers = RECORDS.get(row["figure"], {"numbers": {}})["numbers"]
    numbers = numbers | RECORDS.get(row["figure"], {}).get("later", {})
    held = any(math.isfinite(numbers.get(name, [math.nan])[0]) for name in claim.names)
    text = (pages.FOLDER / "claims.rst").read_text(encoding="utf-8")
    judged = text.split(f"   * - {row['place']}\n     - {row['says']}\n")[1].split("     - ")[2].splitlines()[0]
    assert held == (judged != "not tested")


def test_every_claim_that_an_experiment_tests_for_a_paper_is_one_row():
    listed = [(row["figure"], tuple(row["number"])) for _, row in TESTED]
    judged = [(id, claim.names) for id, each in EXPERIMENTS.items() for claim in each.claims if not claim.ours]
    assert sorted(listed) == sorted(judged)


@pytest.mark.parametrize("row", [row for _, row in TESTED], ids=lambda row: row["says"][:40])
def test_a_verdict_follows_from_the_numbers_of_the_record(row):
    """Worked out once more, from the record's file and the ends of the band."""
    claim, words = claims.claim_of(row, EXPERIMENTS), []
    numbers = RECORDS[row["figure"]]["numbers"] | RECORDS[row["figure"]].get("later", {})
    for part in claim.parts:
        readings = set()
        for each in part:
            value, error, *runs = numbers.get(each.name, [math.nan, None])
            if error is None or claim.over != "runs":
                readings.add("not settled")
                continue
            half = error * (stats.t(runs[0] - 1) if runs and runs[0] else stats.norm).ppf(stats.norm.cdf(2))
            inside = each.low <= value - half and value + half <= each.high
            outside = value + half < each.low or value - half > each.high
            readings.add("yes" if inside else "no" if outside else "not settled")
        words.append(readings.pop() if len(readings) == 1 else "not settled")
    word = next(word for word in ("no", "not settled", "yes") if word in words)
    (said,) = [each for each in _rows() if each[:2] == [row["place"], row["says"]]]
    assert said[-1].split(":")[0] in (word, "not tested")
    unmeasured = not set(claim.names) & set(numbers)
    assert (said[-1] == "not tested") == (unmeasured or RECORDS[row["figure"]]["scale"] not in claim.scales)


@cache
def _rows():
    """Cells of the rows of all tables of the page."""
    lines = claims.page(EXPERIMENTS, pages.known(EXPERIMENTS, RECORDS))
    rows = "\n".join(lines).replace("\n\n", "\n   * - ").split("\n   * - ")
    return [row.rstrip("\n").split("\n     - ") for row in rows]


def test_the_readme_counts_them():
    listed = {(row["place"], row["says"]) for _, row in ROWS}
    words = Counter(row[-1].split(":")[0] for row in _rows() if tuple(row[:2]) in listed)
    said = (
        f"Our runs confirmed {words['yes']}, refuted {words['no']} and left {words['not settled']} unsettled; "
        f"{words['not tested']} were not tested, and {words['not testable']} cannot be tested as stated"
    )
    readme = " ".join((pages.ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"We listed {words.total()} claims in the texts that we had: " in readme
    assert said in readme
    paper = " ".join((pages.ROOT / "paper.md").read_text(encoding="utf-8").split())
    assert f"Of {words.total()} claims in these texts our runs" in paper
    assert said.removeprefix("Our runs ") in paper
    drafted = Counter(row[-1].split(":")[0] for row in _rows() if tuple(row[:2]) in listed and row[0][:5] == "draft")
    assert (
        f"An unfinished, unpublished draft alone has {drafted['yes']} of the {words['yes']} and {drafted['no']} of the "
        f"{words['no']}"
    ) in readme
    (counted,) = [row for row in _rows() if row[0] == claims.OF_DRAFT]
    assert counted[1:] == [str(drafted.total()), *(str(drafted[word]) for word in claims.WORDS)]


def test_the_summaries_say_how_many_refutations_lie_a_little_outside_bands_of_ours():
    near = ["type II error, learned kernel, ratio 2", "growth a unit of distance, second half over first"]
    near.append("uncertain and right")
    refuted = [
        row["number"]
        for _, row in TESTED
        for said in _rows()
        if said[:2] == [row["place"], row["says"]] and said[-1] == "no"
    ]
    assert sum(numbers[0] in near for numbers in refuted) == 3
    for page in ("README.md", "paper.md"):
        text = " ".join((pages.ROOT / page).read_text(encoding="utf-8").split()).lower()
        assert f"three of the {len(refuted)} refutations depend on bands that we chose" in text


def test_the_readme_says_with_which_data_claims_about_trees_and_fields_were_confirmed():
    confirmed = Counter(
        row["figure"]
        for _, row in TESTED
        for said in _rows()
        if said[:2] == [row["place"], row["says"]] and said[-1] == "yes" and row["figure"].split("-")[0] in PLACES
    )
    public = sum(count for figure, count in confirmed.items() if figure in ("trees-figure-1", "loopy-figure-4"))
    readme = " ".join((pages.ROOT / "README.md").read_text(encoding="utf-8").split())
    assert (
        f"{confirmed.total()} are about trees and kernel belief propagation, whose data were not available: {public} "
        f"were tested on other public data and {confirmed.total() - public} on data of ours"
    ) in readme


def test_the_readme_names_the_texts_that_were_not_the_published_papers():
    """Places of claims say what was read: of Song et al. (2011) no section of the paper but its abstract."""
    read = {paper: {re.split(r"[ ,]", row["place"])[0] for row in rows} for paper, rows in claims.claims().items()}
    assert read["loopy"] == {"abstract", "appendix"}
    assert "draft" in read["messages"]
    readme = " ".join((pages.ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "of Song et al. (2011) the abstract and the appendix, of Jitkrittum et al. a shorter version" in readme


def test_the_overview_adds_up():
    """All four papers have a row of their own, and the last is their sum."""
    (*papers, last) = [row for row in _rows() if row[0] in {*claims.TITLES.values(), "all four"} and row[1].isdigit()]
    assert len(papers) == 4
    assert [int(each) for each in last[1:]] == [sum(int(row[i]) for row in papers) for i in range(1, len(last))]


def test_what_fails_the_rule_is_not_called_held():
    row = next(row for _, row in TESTED if row["says"].startswith("with the median heuristic"))
    claim = claims.claim_of(row, EXPERIMENTS)
    every = [name for each in EXPERIMENTS[row["figure"]].claims for name in each.names]
    far = {name: Number(claim.low - 1.0, 0.01) for name in every}
    text = "\n".join(claims.page(EXPERIMENTS, {row["figure"]: (far, "paper")}))
    ((_, _, after),) = [text.partition(row["says"])]
    assert after.split("- ")[2].split("\n")[0] == "no"
