"""Tables of the documentation, and what they say about the machine."""

import math
import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version

__all__ = ["cores", "duration", "error_of_mean", "list_table", "machine", "others", "versions"]

PACKAGES = ("meanmap", "jax", "numpy", "scipy", "scikit-learn", "causal-learn", "goodpoints")


def list_table(
    head: Sequence[object], rows: Iterable[Sequence[object]], title: str = "", option: str = "class: numbers"
) -> list[str]:
    """Lines of reStructuredText."""
    lines = [f".. list-table:: {title}".rstrip(), "   :header-rows: 1", f"   :{option}", ""]
    for row in [head, *rows]:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}".rstrip() for i, cell in enumerate(row)]
    return [*lines, ""]


def duration(seconds: float) -> str:
    """Seconds with two figures and a unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 0.995 or unit == "µs":
            value = float(f"{seconds * scale:.2g}")
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    raise AssertionError


def error_of_mean(rates: Iterable[float], repeats: int) -> float:
    """The standard error of the mean of rates, each of which was counted in this many data sets."""
    known = list(rates)
    return math.sqrt(sum(rate * (1 - rate) for rate in known) / repeats) / len(known)


def cores() -> list[int]:
    """Cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def machine() -> str:
    """The size of this machine, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    count = len(cores())
    return f"{count} core{'s' * (count > 1)} ({platform.machine()}), {memory:.0f} GiB of memory"


def others() -> float:
    """How many processes wanted a core over the last minute: before a benchmark, how busy others keep the machine."""
    return os.getloadavg()[0]


def versions() -> str:
    """The versions that were measured."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
