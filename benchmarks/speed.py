"""Processor seconds of calls beside what a user would otherwise pick: python -m benchmarks.speed [CASE ...].

The whole takes part in `python -m benchmarks`, which stores the results and writes docs/benchmarks/speed.rst; cases
named here are measured and printed.
"""

import statistics
import sys
from typing import Any

from benchmarks.cases import all_cases
from benchmarks.harness import Case, Row, growth
from benchmarks.harness import measure as measured
from benchmarks.headings import HEADINGS
from benchmarks.table import duration, list_table

__all__ = ["main", "measure", "page"]

Found = dict[str, Any]


def measure(names: list[str] | None = None) -> Found:
    """What was measured of each case, as values for JSON."""
    cases = all_cases()
    found = {}
    for name in names or cases:
        found[name] = _of_case(cases[name])
        print("\n".join(_section(name, found[name])), file=sys.stderr, flush=True)
    return found


def _of_case(case: Case) -> Found:
    rows = measured(case)
    exponents = {side: growth(rows, side) for side in ("ours", *case.peers)}
    return {
        "title": case.title,
        "rows": [_of_row(case, row) for row in rows],
        "growth": {side: round(value, 1) for side, value in exponents.items() if value is not None},
        "difference": {peer: float(f"{max(row.differences[peer] for row in rows):.0e}") for peer in case.peers},
    }


def _of_row(case: Case, row: Row) -> Found:
    sides = {side: _figures(statistics.median(values.samples)) for side, values in row.sides.items()}
    ratios = {peer: [_figures(value) for value in row.ratio(peer)] for peer in case.peers}
    return {"n": row.n, "first": _figures(row.sides["ours"].first), "seconds": sides, "ratio": ratios}


def _figures(value: float) -> float:
    """Three figures: more would be noise in a file."""
    return float(f"{value:.3g}")


def page(found: Found) -> str:
    """One section for each case."""
    return "\n".join(line for name, case in found.items() for line in _section(name, case))


def _section(name: str, case: Found) -> list[str]:
    peers = list(case["rows"][0]["ratio"])
    head = ["n", "ours", "first call", *(cell for peer in peers for cell in (peer, "its time / ours"))]
    rows = []
    for row in case["rows"]:
        cells = [f"{row['n']:,}", duration(row["seconds"]["ours"]), duration(row["first"])]
        for peer in peers:
            low, middle, high = (_ratio(value) for value in row["ratio"][peer])
            cells += [duration(row["seconds"][peer]), f"{middle} ({low} to {high})"]
        rows.append(cells)
    remarks = []
    if case["growth"]:
        remarks.append(
            f"Time grows as: {', '.join(f'{side} n^{value:.1f}' for side, value in case['growth'].items())}."
        )
    remarks += [f"Largest difference from {peer}: {value:.0e}." for peer, value in case["difference"].items()]
    heading, about = HEADINGS[name], f"{case['title']} (``{name}``)"
    return [heading, "~" * len(heading), "", about, "", *list_table(head, rows), " ".join(remarks), ""]


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def main(arguments: list[str]) -> int:
    """Measure cases and print them."""
    known = all_cases()
    unknown = [name for name in arguments if name not in known]
    if unknown:
        print(f"No benchmark is called {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    measure(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
