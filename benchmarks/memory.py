"""Peak memory of one call beyond what the process holds: the data do not count, and the answer does."""

import contextlib
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

__all__ = ["above"]

STATUS = Path("/proc/self/status")


def _kilobytes(entry: str) -> int | None:
    """An entry of Linux's account of this process, if there is one."""
    with contextlib.suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith(entry + ":"):
                return int(line.split()[1])
    return None


def _peak() -> int:
    peak = _kilobytes("VmHWM")
    if peak is not None:
        return peak
    value = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return value // 1024 if sys.platform == "darwin" else value


def above(call: Callable[[], Any]) -> float:
    """MiB that a call, with its answer, takes at its peak beyond what this process holds before."""
    gc.collect()
    with contextlib.suppress(OSError):
        # Linux: 5 sets the peak back to what is held now. Elsewhere the peak of the warm-up is the floor.
        Path("/proc/self/clear_refs").write_text("5")
    before = _kilobytes("VmRSS") or _peak()
    answer = jax.block_until_ready(call())
    found = max(0, _peak() - before) / 1024
    del answer
    return found
