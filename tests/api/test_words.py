"""Riddles that were put into plain English stay out of messages, docstrings and pages."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What is found, and what to write instead.
INSTEAD = {
    r"\b(is|are|was|were|be|been) told\b": "say who says what: a note names, a warning says, the report gives",
    r"\btold (of|by|from|apart)\b": "a note names; they differ by; they are known by",
    r"\bdirects? (nothing|no edge)\b": "so this edge was not oriented",
    r"\bNothing says otherwise\b": "No evidence of a difference",
    r"\bcannot run anything\b": "loading never executes code",
    r"\bcould be exchanged\b": "are exchangeable under the null",
    r"\bleave them out with\b": "or pass",
    r"\bWhat does not matter\b": "Invariances",
    r"\bbit by bit\b": "bit for bit",
    r"\bheard again\b": "is counted repeatedly, so beliefs are overconfident",
    r"data type does not say\b": "The kinds of columns whose data type does not show it",
    r"\bWhat columns mean\b": "The kinds of columns",
    r"\bcareful reader\b": "caveats",
    r"\b(is|are) seen to,": "missing values are handled",
    r"\bchange places\b": "are permuted; are exchangeable",
    r"\bmarks that stand\b": "codes for missing values",
    r"\bsurvive a fork\b": "JAX does not support forking",
    r"\bmeasured from the mean of\b": "centred within strata",
    r"\bwhose rows follow each other\b": "serially dependent rows",
    r"\bthousand million\b": "billion",
    r"\bdrawn,? by their numbers\b": "drawn, by row number only",
    r"\b([Bb]eyond|[Uu]p to|at most|at least|after|[Oo]f) so many\b": "this many",
    r"\b(stands?|stood) still\b": "beliefs have converged",
    r"\b(comes?|came) to rest\b": "converge",
    r"\b(gives?|gave) way to\b": "is replaced by",
    r"\bstands? by the\b": "confirms",
    r"\bno law (comes|to come)\b": "improper",
    r"\bnone of ours\b": "not a file of this library",
    r"\bthat has learned\b": "fitted",
    r"\b(refused|said|answered|reported|described) in words\b": "refused, with an error that says what to type",
    r"\bwithout a word\b": "without a warning",
    r"\b[Ww]hat c(omes|ame) in\b": "the incoming message; the cavity",
    r"\b(seconds|values|evaluations|nodes|numbers|operations) an? (message|sweep|row|second|test|pixel)\b": "per",
    r"\bby luck\b": "by chance",
    r"\bfor ever\b": "endlessly; always",
    r"\bwill do\b": "is good enough; does not matter",
    r"\bnever came\b": "an unseen label",
    r"\bdrawn to(wards)? (its|their|the|none)\b": "shrunk towards",
    r"\bno value that is not missing\b": "has no observed values",
    r"\b(is|are|was|were) set apart\b": "is left out",
    r"\btrue hypothes[ei]s\b": "true null hypotheses",
    r"\bcalled shown\b": "called confirmed",
    r"\b(is|are) no repetitions?\b": "is not a repetition",
    r"\bgoes on learning\b": "keeps learning",
    r"\bcould be had\b": "was available",
    r"\bsays? nothing of\b": "says nothing about",
    r"\bValues do not change\b": "immutable",
    r"\bturned (Gaussians?|normals?)\b": "rotated",
    r"\bat a constant cost a\b": "per",
    r"\bwhatever the rows\b": "for any number of rows",
    r"\b(was|were) begun with\b": "was started with; was written with",
    r"(?<!NaT or )\b[Nn]one where\b": "None if",
    r"[;,] None of (?!them\b|these\b|those\b|the\b)": "None for",
    r"\bHow many\b(?![^.]*\?)": "The number of",
    r"\bO\([^)]*\) an? \w": "per",
    r"\bwhat is known of\b": "attributes; known values",
    r"\bneeds? known numbers\b": "needs concrete values",
    r"\b[Ff]or what is given\b|None for what\b": "None for given values",
    r"\bunder the hypothesis\b": "under the null hypothesis",
    r"\bholds? together\b": "are simultaneous",
    r"\b(under|over) (the|all) exchanges\b": "under the permutations",
    r"\bintervals? of [\d.]+ ?%": "90% intervals",
    r"\bmeasured to hold\b": "covered, in simulations",
    r"\bround loops\b": "in loops; that form loops",
    r"\bstarted anew\b": "restarted",
    r"\bnot at rest\b": "not converged",
    r"\bforetold\b": "predicted",
    r"\bwhose effects are smooth\b": "with smooth effects",
    r"\bevery row a different one\b": "that differ in nearly every row",
    r"\bnumbers? or names? the rows\b": "identifies the rows",
    r"\b(one|once) (\w+ )?a (target|game|round|column|file|message|sweep|edge|batch)\b": "per",
    r"\bintervals (do not )?count (that|how|noise)\b": "account for",
    r"\bsomebody else\b": "someone else",
    r"\bto all digits\b": "with identical results",
    r"\bask(s|ed)? (in|to) doubt\b": "asks where it is uncertain",
    r"\b(not|can be) had together\b": "one or the other, not both",
    r"\bdecides it and is not\b": "it depends on this, which is not stated",
    r"\bto be had\b": "available",
    r"\b(is|are) (a )?rows? of (its|their) own\b": "has a row of its own",
    r"\balmost no information about the others\b": "say what beliefs are then",
    r"(?<=\w )[Ll]aws?\b(?! :| =|\(| of inertia)": "distribution",
}
SOURCES = sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("papers/src/**/*.py")])
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
PAGES += sorted([*ROOT.glob("docs/*.rst"), *ROOT.glob("docs/examples/**/*.py")])
PAGES += sorted(
    page for folder in ("methods", "benchmarks", "reproductions") for page in ROOT.glob(f"docs/{folder}/*.rst")
)


def strings(path: Path) -> list[str]:
    """Messages and docstrings of a file."""
    found = [node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)]
    return [value for value in found if isinstance(value, str)]


@cache
def texts() -> tuple[tuple[Path, str], ...]:
    """All of them, with the pages."""
    found = [(path, text) for path in SOURCES for text in strings(path)]
    found += [(path, re.sub(r"[\s#]+", " ", path.read_text("utf-8"))) for path in PAGES]
    return tuple((path, re.sub(r"\s+", " ", text)) for path, text in found)


@pytest.mark.parametrize("pattern", INSTEAD)
def test_it_is_said_plainly(pattern):
    found = {str(path.relative_to(ROOT)) for path, text in texts() if re.search(pattern, text)}
    assert not found, f"write instead: {INSTEAD[pattern]}"
