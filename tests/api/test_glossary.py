"""The glossary: in order, a sentence for each word, and names that exist."""

import re
from functools import reduce
from pathlib import Path

import pytest

import meanmap

TEXT = (Path(__file__).parents[2] / "docs" / "glossary.rst").read_text(encoding="utf-8")
ENTRIES = {
    word: " ".join(meaning.split())
    for word, meaning in re.findall(r"^   (\S.*)\n((?:      .*\n)+)", TEXT.partition(".. glossary::")[2], re.MULTILINE)
}
NAMES = sorted(set(re.findall(r"``mm\.([\w.]+)``", TEXT)))


def test_words_are_in_alphabetical_order():
    assert 30 <= len(ENTRIES) <= 55
    assert list(ENTRIES) == sorted(ENTRIES, key=str.lower)
    assert TEXT.count("\n      ") >= len(ENTRIES)


@pytest.mark.parametrize("word", ENTRIES)
def test_a_word_has_one_sentence(word):
    assert re.fullmatch(r"[^.]+(?:\.[\w/][^.]*)*\.", ENTRIES[word].replace("``", ""))


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name):
    reduce(getattr, name.split("."), meanmap)


def test_pages_lead_to_it():
    for page in ("index", "notation"):
        assert ":doc:`glossary`" in (Path(__file__).parents[2] / "docs" / f"{page}.rst").read_text(encoding="utf-8")
