"""Measured numbers on README, landing page, choosing and benchmarks are those of the stored results."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import pages, peers
from benchmarks.__main__ import ORDER, main
from meanmap import demo

# Numbers in sentences that are settings of a question or thresholds of the library, and were not measured.
SETTINGS = {
    "README.md": {"0.05", "3.11"},
    "paper.md": {"0.05"},
    "docs/index.rst": {"3.11"},
    "docs/choosing.rst": {"0.05", "0.01", "0.001", "15%", "20 ms"},
    "docs/benchmarks/index.rst": set(),
    # Rows of what was measured, facts about cards, and what follows from both by arithmetic.
    "docs/scales.rst": {
        "11.5",
        "13.6",
        "1.4",
        "15 ms",
        "1.6",
        "2 ms",
        "2.3",
        "2.4",
        "23 ms",
        "24 ms",
        "3 ms",
        "3.35",
        "4.8",
        "6.4",
    },
}
# A decimal fraction, or a number with a unit.
NUMBER = re.compile(r"(?<![\w.\-])(?:\d+\.\d+|[\d,]+(?:\.\d+)? ?(?:%|µs|ms|s|seconds|MiB|GiB|times)(?![\w/]))")


def test_every_file_is_the_one_that_stored_results_make():
    for path, text in pages.written(pages.stored()).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: type python -m benchmarks --pages"


def test_what_the_paper_cites_is_in_its_bibliography():
    text, entries = (pages.ROOT / name for name in ("paper.md", "paper.bib"))
    known = set(re.findall(r"^@\w+\{(\w+),", entries.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"@(\w+)", text.read_text(encoding="utf-8"))) == known


def test_all_parts_of_the_run_are_stored():
    assert set(pages.stored()) == {"run", *ORDER, *pages.BY_NIGHT} == {"run", *pages.PARTS, *pages.BY_NIGHT}


def test_a_number_that_nobody_measured_is_refused():
    known = pages.numbers(pages.stored())
    with pytest.raises(KeyError, match="power-of-wishes"):
        pages.in_place("<!-- power-of-wishes -->1.00<!-- / -->", known)


@pytest.mark.parametrize("name", SETTINGS)
def test_no_measured_number_is_typed_by_hand(name):
    text = (pages.ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|`[^`]*`|<!-- \S+ -->.*?<!-- / -->|\|[a-z0-9-]+\|", " ", text, flags=re.S)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith((">>>", "...", "(", "array"))]
    assert {found.strip() for found in NUMBER.findall("\n".join(lines))} <= SETTINGS[name]


def test_the_run_says_which_peers_are_missing(monkeypatch, capsys):
    monkeypatch.setattr(peers, "missing", lambda: ["pgmax: install it"])
    assert main([]) == 2
    assert "pgmax: install it" in capsys.readouterr().err


def test_the_demo_compares_no_times():
    """Times of one call beside other work are no comparison; the page of benchmarks has those."""
    folder = pages.Path(demo.__file__).parent
    assert not [path.name for path in folder.glob("*.py") if "numpy_seconds" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    ("pvalue", "said"),
    [
        (0.004, "p = 0.004, rejected although it is true, as one true null hypothesis in twenty is at level 0.05."),
        (0.2, "p = 0.2, not rejected."),
    ],
)
def test_the_demo_derives_its_words_from_what_came_out(monkeypatch, pvalue, said):
    """Of the default seed the true null hypothesis was rejected, and the caption put the statistic within the null."""
    result = SimpleNamespace(pvalue=pvalue, plot=lambda axes: None)
    monkeypatch.setattr(demo.testing, "independence_test", lambda *given, **settings: result)
    monkeypatch.setattr(demo.testing, "conditional_independence_test", lambda *given, **settings: result)
    section = demo.testing._conditional(np.random.default_rng(0))
    assert f"Given z, their common cause: {said}" in section.answer
    alone = "rejected" if pvalue < 0.05 else "not rejected although it is false"
    assert f"Independence of x and y: p = {pvalue}, {alone}." in section.answer
    assert section.figures[0][1] == "Left: the data. Right: given z, the null distribution; the line is the statistic."
