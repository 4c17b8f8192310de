"""Write what was measured as the page that the documentation includes, one section per case.

A section is replaced in place when its case is run again, so that running one case leaves the others as they were.
"""

import datetime
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Row, growth

__all__ = ["BUSY", "TABLE", "cores", "machine", "others", "section", "update"]

# Above this share of several cores, others slow what runs on all of them more than what runs on one.
BUSY = 0.25
TABLE = Path(__file__).parents[1] / "docs" / "benchmarks" / "table.rst"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> str:
    """The size of this machine, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cores()} core{'s' * (cores() > 1)} ({platform.machine()}), {memory:.0f} GiB of memory"


def others() -> float:
    """How many processes wanted a core over the last minute: before a benchmark, how busy others keep the machine."""
    return os.getloadavg()[0]


def versions(case: Case) -> str:
    """The versions that were measured."""
    names = ("meanmap", "jax", "numpy", "scipy", *case.packages)
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in names)])


def duration(seconds: float) -> str:
    """Seconds with three figures and a unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def mebibytes(value: float | None) -> str:
    """A peak in MiB, or a dash."""
    return "–" if value is None else f"{value:.0f} MiB"


def section(
    case: Case, rows: list[Row], memory: dict[tuple[str, int], float | None], backend: str, load: float = 0.0
) -> str:
    """The section of one case, measured when others kept `load` cores busy."""
    peers = list(case.peers)
    header = ["n", "ours", "first call", "peak memory"]
    for peer in peers:
        header += [peer, "its time / ours", "its peak memory"]
    lines: list[list[str]] = [header]
    for row in rows:
        ours = row.sides["ours"]
        cells = [f"{row.n:,}", duration(ours.median), duration(ours.first), mebibytes(memory.get(("ours", row.n)))]
        for peer in peers:
            low, middle, high = row.ratio(peer)
            theirs = duration(row.sides[peer].median)
            cells += [theirs, f"{middle:.2f} ({low:.2f} to {high:.2f})", mebibytes(memory.get((peer, row.n)))]
        lines.append(cells)
    text = [f".. begin {case.name}", "", case.name, "-" * len(case.name), "", case.title, ""]
    text += [".. list-table::", "   :header-rows: 1", "   :class: numbers", ""]
    for line in lines:
        text += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(line)]
    text += ["", f".. image:: {case.name}.svg", f"   :alt: {case.title} Time and memory against n."]
    text += ["", _remarks(case, rows, backend, load), "", f".. end {case.name}", ""]
    return "\n".join(text)


def _remarks(case: Case, rows: list[Row], backend: str, load: float) -> str:
    remarks = []
    exponents = {name: growth(rows, name) for name in ("ours", *case.peers)}
    stated = [f"{name} n^{value:.1f}" for name, value in exponents.items() if value is not None]
    if stated:
        remarks.append(f"Time grows as: {', '.join(stated)}.")
    for peer in case.peers:
        worst = max(row.differences[peer] for row in rows)
        remarks.append(f"Largest difference from {peer}: {worst:.0e}.")
    if load > BUSY * cores() > BUSY:
        remarks.append(f"The machine was busy: a load of {load:.1f} from others.")
    today = datetime.date.today().isoformat()
    remarks.append(f"Measured {today} on {machine()}, JAX on {backend}; {versions(case)}.")
    return " ".join(remarks)


def update(sections: dict[str, str], known: list[str], path: Path = TABLE) -> None:
    """Put new sections into the page, keep the others, drop cases that are no longer known."""
    old: dict[str, Any] = {}
    if path.exists():
        pattern = r"^\.\. begin (\S+)\n.*?^\.\. end \1\n"
        old = {found[1]: found[0] for found in re.finditer(pattern, path.read_text(), flags=re.S | re.M)}
    chosen = {**old, **sections}
    kept = [chosen[name] for name in known if name in chosen]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(".. Written by make bench; do not edit.\n\n" + "\n".join(kept))
