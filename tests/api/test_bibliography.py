"""The bibliography: each entry whole, of one year, and in the order of its authors."""

import re
import unicodedata
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "bibliography.rst").read_text(encoding="utf-8")


def entries(heading):
    """The paragraphs under a heading, up to the next one."""
    below = TEXT.split(f"{heading}\n{'-' * len(heading)}\n", 1)[1]
    return [
        each.replace("\n", " ").strip() for each in re.split(r"\n.*\n---+\n", below)[0].split("\n\n") if each.strip()
    ]


def plain(text):
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()


def test_entries_have_authors_one_year_and_an_end():
    for entry in entries("The four papers that this library carries out") + entries("What they stand on"):
        assert re.match(r"[^(]+? \(\d{4}[a-z]?\)\. .*\.$", entry), entry
        assert len(re.findall(r"\(\d{4}[a-z]?\)\.", entry)) == 1, entry


def test_entries_are_in_the_order_of_their_authors():
    authors = [plain(entry.split("(")[0]) for entry in entries("What they stand on")]
    assert len(authors) > 50
    assert authors == sorted(authors)


def test_the_four_papers_have_their_authors():
    names = [
        re.findall(r"(\w[\w-]*), \w\.", entry.split("(")[0])
        for entry in entries("The four papers that this library carries out")
    ]
    assert [each[0] for each in names] == ["Flaxman", "Song", "Song", "Jitkrittum"]
    assert names[2] == ["Song", "Gretton", "Bickson", "Low", "Guestrin"]
