"""CITATION.cff says of the package what the package says, and names the papers that `meanmap cite` prints."""

import re
import tomllib
from pathlib import Path

import meanmap
from meanmap.cli.citing import ENTRIES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_version_licence_and_authors_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = TEXT.split("\nreferences:")[0]
    assert re.search(r"^version: (.*)$", own, re.MULTILINE)[1] == meanmap.__version__
    assert re.search(r"^license: (.*)$", own, re.MULTILINE)[1] in project["license"]
    assert re.findall(r"^  - name: (.*)$", own, re.MULTILINE) == [each["name"] for each in project["authors"]]


def test_the_papers_are_those_that_cite_prints():
    printed = [re.search(r"title = \{(.*)\}", text)[1] for name, text in ENTRIES.items() if name != "meanmap"]
    years = [re.search(r"year = \{(\d+)\}", text)[1] for name, text in ENTRIES.items() if name != "meanmap"]
    papers = TEXT.split("\nreferences:")[1]
    titles = re.findall(r"^    title: (.*)$", papers, re.MULTILINE)
    assert [title.strip('"').lower() for title in titles] == [title.lower() for title in printed]
    assert re.findall(r"^    year: (\d+)$", papers, re.MULTILINE) == years
