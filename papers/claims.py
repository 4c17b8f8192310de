"""Every printed claim of the four papers, from claims.toml: tested or not, its number, and the verdict of the rule."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.table import list_table
from meanmap_papers.experiment import Claim, Experiment, Number, Scale
from meanmap_papers.report import measured as measured_of

__all__ = ["claim_of", "claims", "page", "plain"]

CLAIMS = Path(__file__).with_name("claims.toml")
TITLES = {
    "kernel-learning": "Bayesian learning of kernel embeddings",
    "trees": "Nonparametric tree graphical models",
    "loopy": "Kernel belief propagation",
    "messages": "Just-in-time kernel regression",
}
LEAD = """\
What the four papers claim, in the texts that we had (named in :doc:`index`), and what became of each. Of the fourth
paper these are a text of 2015 and an unfinished draft, which was not published and has notes of its authors in it; what
stands in the draft alone is counted by itself, too."""
DRAFT = "draft"
OF_DRAFT = "of these, in the draft alone"
MEANING = """\
A tested claim is judged by the rule of :doc:`index`:

- *yes*: confirmed;
- *no*: refuted;
- *not settled*: the measurement was too imprecise for either, readings disagree, or there is no standard error;
- *not tested*: a run of ours could settle the claim, and none did, so it is not reproduced;
- *not testable*: no run could settle the claim as it is stated. Examples are definitions, formulas, derivations,
  numbers of operations, bounds in the limit, numbers that are praised and compared with nothing, and claims that cannot
  fail; and numbers that depend on something not stated, on data that are not available or on programs that were not
  run.

Claims of the papers are tested with the paper's method as far as it is stated; each section lists deviations. What
was measured with the library's variant of it is a claim of ours. If the paper has no number, the band is ours: the
section to which an arrow leads gives it. Three of the refuted claims depend on such bands: that the test
rejects at a ratio of 2, that uncertainty grows exponentially, and that it is not high where the error is small. No
printed recall, lengthscale or speed-up is among what was confirmed: most depend on data or settings that are not
available."""
Measured = Mapping[str, tuple[dict[str, Number], Scale]]


def claims() -> dict[str, list[dict[str, Any]]]:
    """The rows of each paper."""
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))


def claim_of(row: Mapping[str, Any], experiments: Mapping[str, Experiment]) -> Claim:
    """The claim of an experiment that a tested row speaks of."""
    found, *others = [each for each in experiments[row["figure"]].claims if each.names == tuple(row["number"])]
    assert all(each.parts == found.parts for each in others)  # one number said in two ways has one band
    return found


def page(experiments: Mapping[str, Experiment], measured: Measured) -> Iterator[str]:
    """The lines of the page, from the numbers and the scale of each experiment that was run."""
    title = "All claims"
    rows = {paper: [_row(each, experiments, measured) for each in each_paper] for paper, each_paper in claims().items()}
    yield from (title, "=" * len(title), "", LEAD, "")
    counts = [line for paper, found in rows.items() for line in _counts(paper, found)]
    counts.append(["all four", *_counted([row for found in rows.values() for row in found])])
    yield from list_table(["paper", "claims", *WORDS], counts)
    yield from (MEANING, "")
    for paper, found in rows.items():
        yield from (TITLES[paper], "-" * len(TITLES[paper]), "")
        head = ["place", "claim", "measured, or why not", "judged"]
        yield from list_table(head, found, option="widths: 14 34 36 16")


# What a row can come to, in the order of the overview; judgements begin with them.
WORDS = ("yes", "no", "not settled", "not tested", "not testable")


def _counts(paper: str, rows: list[list[str]]) -> Iterator[list[str]]:
    """The line of a paper in the overview, and below it what stands in an unpublished draft alone."""
    yield [TITLES[paper], *_counted(rows)]
    drafted = [row for row in rows if row[0].startswith(DRAFT)]
    if drafted:
        yield [OF_DRAFT, *_counted(drafted)]


def _counted(rows: list[list[str]]) -> list[str]:
    words = Counter(re.split("[,:]", row[-1])[0] for row in rows)
    return [str(len(rows)), *(str(words[word]) for word in WORDS)]


def _row(row: Mapping[str, Any], experiments: Mapping[str, Experiment], measured: Measured) -> list[str]:
    if "figure" not in row:
        return [
            row["place"],
            row["says"],
            f"{row['why']}",
            "not tested" if row.get("testable", True) else "not testable",
        ]
    link = f":ref:`→ <{row['figure']}>`"
    if row["figure"] not in measured:
        return [row["place"], row["says"], f"not run yet {link}", "not tested"]
    numbers, scale = measured[row["figure"]]
    claim = claim_of(row, experiments)
    found = claim.of(numbers)
    measurable = scale in claim.scales and not all(math.isnan(number.value) for number in found)
    word = claim.judged(*found) if measurable else "not tested"
    *others, last = map(plain, measured_of(claim, found, named=True))
    return [row["place"], row["says"], in_lines([*others, f"{last} {link}"]), word]


def in_lines(parts: Sequence[str]) -> str:
    """The text of a cell with each part on a line of its own."""
    return "\n       ".join(f"| {part}" for part in parts) if len(parts) > 1 else parts[0]


def plain(text: str) -> str:
    """Text in which reStructuredText sees no marks but those of code, `like this`."""
    parts = re.split(r"`([^`]+)`", str(text))
    return "".join(
        f"``{p}``" if at % 2 else re.sub(r"([\\*`|]|(?<=\w)_(?!\w))", r"\\\1", p) for at, p in enumerate(parts)
    )
