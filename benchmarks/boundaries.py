"""Levels and coverage where hypotheses are only just true: python -m benchmarks.boundaries --into FILE, and --keep.

Four distributions from normal to heavy tails, one and ten columns, 100 to 2000 rows. "shift": the second sample is
moved by exactly the margin. "sites": rows of eight share an effect in x and y, given whole numbers that name them.
"columns": two samples of one distribution, and whether any column is called different. Rounds of a few data sets in
every cell, so that FILE can be read, and the command ended, at any time; another call goes on where the file ends.
"""

import argparse
import json
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import meanmap as mm
from benchmarks import pages
from benchmarks.conditional import LEVEL, shown
from benchmarks.table import list_table
from meanmap.core.door import Door
from meanmap.core.executors import worked
from meanmap.stats.effects.groups import difference_of
from meanmap.stats.samples.samples import read_samples

__all__ = ["LAWS", "QUESTIONS", "gathered", "measure", "page"]

# Data sets that nothing was tuned on, and how far the second sample is moved, in standard deviations.
SEED, MARGIN = 392_024, 0.2
COLUMNS, ROWS, OF_A_SITE = (1, 10), (100, 500, 2000), 8
Found = dict[str, Any]
# Draws, and the standard deviation of one.
LAWS: dict[str, tuple[Callable[[np.random.Generator, Any], np.ndarray], float]] = {
    "normal": (lambda rng, size: rng.normal(size=size), 1.0),
    "t5": (lambda rng, size: rng.standard_t(5, size), np.sqrt(5 / 3)),
    "t2.2": (lambda rng, size: rng.standard_t(2.2, size), np.sqrt(11.0)),
    "lognormal": (lambda rng, size: np.exp(1.5 * rng.normal(size=size)), np.sqrt(np.expm1(2.25) * np.exp(2.25))),
}


def shift(law: str, d: int, n: int, seed: int) -> list[bool]:
    """Whether "closer" and "further apart" than the margin is shown, and whether the interval excludes the margin.

    The interval of `two_sample_effect` holds the shifts that neither test rejects at half of its level, so one look at
    the true shift says whether it is in it, without finding its ends.
    """
    draw, deviation = LAWS[law]
    rng = np.random.default_rng([SEED, seed, d, n])
    x, y = draw(rng, (n, d)), draw(rng, (n, d)) + MARGIN * deviation
    with Door() as door:
        found = difference_of(read_samples((x, y), ("x", "y"), None, rng, door), rng, door)
        at = found.at(MARGIN)
    tail, typical = LEVEL / 2, max(found.law.squared, found.law.trace)
    above, unknown = found.law.above(at.distance, at.far), found.shifts is not None and found.shifts.spread.unknown
    beyond = above <= tail and not np.size(unknown)
    below = found.law.below(at.distance, typical, at.near) < tail
    return [found.law.below(at.distance, error=at.near) <= LEVEL, above <= LEVEL, beyond or below]


def sites(law: str, d: int, n: int, seed: int) -> list[bool]:
    """Whether x and y that share the effects of their sites are reported as dependent given the sites."""
    draw, _ = LAWS[law]
    rng = np.random.default_rng([SEED, seed, d, n, 2])
    site = np.arange(n) // OF_A_SITE
    effects, names = rng.normal(size=(site[-1] + 1, d)), rng.permutation(site[-1] + 1)
    x, y = effects[site] + draw(rng, (n, d)), effects[site] + draw(rng, (n, d))
    return [mm.conditional_independence_test(x, y, names[site], n_permutations=199, rng=seed).pvalue <= LEVEL]


def columns(law: str, d: int, n: int, seed: int) -> list[bool]:
    """Whether any column of two samples from the same distribution is reported as different."""
    draw, _ = LAWS[law]
    rng = np.random.default_rng([SEED, seed, d, n, 3])
    result = mm.two_sample_test(draw(rng, (n, d)), draw(rng, (n, d)), n_permutations=19, rng=seed)
    return [min(result.column_pvalues(rng=seed, n_permutations=199).values()) <= LEVEL]


# What is asked, what is counted, and how many data sets of each number of rows are in a round.
QUESTIONS: dict[str, tuple[Callable[[str, int, int, int], list[bool]], tuple[str, ...], tuple[int, int, int]]] = {
    "shift": (shift, ("called closer", "called further apart", "shift outside the interval"), (10, 6, 2)),
    "sites": (sites, ("called dependent",), (20, 20, 10)),
    "columns": (columns, ("a column called different",), (10, 6, 2)),
}


def measure(path: Path, rounds: int, executor: Executor | None = None) -> None:
    """Append rounds of all cells to a file, beginning with the first incomplete one."""
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(*cell["key"], cell["round"]) for cell in known}
    for turn, question in product(range(rounds), QUESTIONS):
        ask, _, sizes = QUESTIONS[question]
        for law, d, (n, size) in product(LAWS, COLUMNS, zip(ROWS, sizes, strict=True)):
            key = question, law, d, n
            if (*key, turn) not in done:
                each = list(worked(partial(ask, law, d, n), range(turn * size, (turn + 1) * size), executor))
                cell = {"key": key, "round": turn, "counts": np.sum(each, axis=0).tolist(), "of": size}
                with path.open("a") as file:
                    file.write(json.dumps(cell) + "\n")


def gathered(path: Path) -> Found:
    """The sums over the rounds of a file."""
    found: Found = {}
    for cell in map(json.loads, path.read_text().splitlines()):
        kept = found.setdefault(", ".join(map(str, cell["key"])), [[0] * len(cell["counts"]), 0])
        kept[0] = [int(a + b) for a, b in zip(kept[0], cell["counts"], strict=True)]
        kept[1] += cell["of"]
    return found


def page(found: Found) -> str:
    """The tables of the documentation; rates outside the 99% binomial bounds of .05 are bold."""
    lines = []
    for question, (_, counted, _) in QUESTIONS.items():
        rows = []
        for law, d, n in product(LAWS, COLUMNS, ROWS):
            counts, repeats = found.get(f"{question}, {law}, {d}, {n}", ([], 0))
            if repeats:
                rows.append([law, d, n, repeats, *(shown(count, repeats) for count in counts)])
        lines += list_table(["distribution", "columns", "rows", "data sets", *counted], rows)
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="a file of cells")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument(
        "--keep", action="store_true", help="measure nothing, store the cells of the file in place of those stored"
    )
    chosen = parser.parse_args()
    if chosen.keep:
        known = pages.stored()
        pages.store({**known, "boundaries": {**known["boundaries"], **gathered(chosen.into)}})
    else:
        measure(chosen.into, chosen.rounds)
