"""Run the benchmarks: `make bench`, or `make bench CASE=name` for one."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import jax

from benchmarks import figure, table
from benchmarks.cases import all_cases
from benchmarks.harness import Case, Row, measure
from benchmarks.memory import peak_memory

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Measure, keep every sample as JSON, and rewrite the documentation's table."""
    known = all_cases()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"all unless named: {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="smallest size, few rounds, no memory, table left alone")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.cases if name not in known]
    if unknown:
        print(f"No benchmark is called {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    load = table.others()
    if load > table.BUSY * table.cores() > table.BUSY:
        print(f"Others keep this machine busy (load {load:.1f} on {table.cores()} cores), which slows calls on several")
        print("threads more than those on one: taskset -c 0 make bench gives surer ratios.")
    sections = {}
    for name in chosen.cases or known:
        case = known[name]
        rows = measure(case, case.sizes[:1], seconds=0.2) if chosen.quick else measure(case)
        memory = {}
        for row in rows:
            print(_summary(case, row), flush=True)
            for side in () if chosen.quick else ("ours", *case.peers):
                memory[side, row.n] = None if side in case.elsewhere else peak_memory(name, side, row.n)
        RESULTS.mkdir(exist_ok=True)
        record = {"case": name, "title": case.title, "machine": table.machine(), "versions": table.versions(case)}
        record["load_of_others"] = load
        record["rows"] = [dataclasses.asdict(row) for row in rows]
        record["memory_mib"] = [{"side": side, "n": n, "peak": peak} for (side, n), peak in memory.items()]
        (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
        sections[name] = table.section(case, rows, memory, jax.default_backend(), load)
        if not chosen.quick:
            figure.draw(case, rows, memory, table.TABLE.with_name(f"{name}.svg"))
            table.update(sections, list(known))
    return 0


def _summary(case: Case, row: Row) -> str:
    ours = row.sides["ours"]
    parts = [f"{case.name} n={row.n}: {table.duration(ours.median)} (first call {table.duration(ours.first)})"]
    for peer in case.peers:
        low, middle, high = row.ratio(peer)
        parts.append(f"{peer} takes {middle:.2f} ({low:.2f} to {high:.2f}) times as long")
    return "; ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
