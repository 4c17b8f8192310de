"""Measure two or more ways to the same answer in turn, in one process, in processor seconds.

Machines are noisy and shared, so a time alone says little. Here every round runs ours and each peer one after the
other at every size; ratios and growth are taken within the round, and their medians are reported, ratios with their
quartiles. The first call, which for JAX includes compilation, is kept apart. Processor seconds do not count the time
that other processes take away; peers in processes of their own report theirs.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from benchmarks import peers

__all__ = ["Case", "Row", "Side", "growth", "measure"]

# A sample shorter than this would mostly measure the clock and the interpreter: the call is repeated inside it.
SHORTEST_SAMPLE = 0.005
FEWEST_ROUNDS, MOST_ROUNDS = 3, 40
# About how long the rounds of one case may take, all sizes and sides together.
SECONDS = 3.0

Call = Callable[[Any], Any]


def largest_difference(ours: Any, theirs: Any) -> float:
    """The largest absolute difference of two arrays."""
    return float(np.max(np.abs(np.asarray(ours) - np.asarray(theirs))))


@dataclass(frozen=True)
class Case:
    """One comparison: what is computed, at which sizes, and by whom.

    Parameters
    ----------
    name : str
        What `python -m benchmarks.speed name` measures.
    title : str
        One line for readers: the problem, its dimension, its precision.
    sizes : tuple of int
        Values of n, growing.
    setup : callable, n -> data
        Everything both sides are given; not timed.
    ours : callable, data -> answer
        The timed call.
    peers : mapping from a name to a callable, data -> answer
        What it is compared with; empty where only the growth with n is of interest.
    difference : callable, (answer, peer's answer) -> float
        By how much the answers differ, so that nobody wins by computing something else.
    """

    name: str
    title: str
    sizes: tuple[int, ...]
    setup: Callable[[int], Any]
    ours: Call
    peers: Mapping[str, Call] = field(default_factory=dict)
    difference: Callable[[Any, Any], float] = largest_difference

    def side(self, name: str) -> Call:
        """The timed call of "ours" or of a peer."""
        return self.ours if name == "ours" else self.peers[name]


@dataclass
class Side:
    """One side at one size: processor seconds per call, and what the first call took."""

    first: float
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the seconds per call."""
        return statistics.median(self.samples)


@dataclass
class Row:
    """Everything measured at one size."""

    n: int
    sides: dict[str, Side]
    differences: dict[str, float]

    def ratio(self, peer: str) -> tuple[float, float, float]:
        """The peer's time over ours, round by round: lower quartile, median, upper quartile."""
        ours, theirs = self.sides["ours"].samples, self.sides[peer].samples
        ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, middle, high


def _spent() -> float:
    """Processor seconds of this process and of the peers that it asked."""
    return time.process_time() + peers.spent()


def _timed(call: Call, data: Any, times: int = 1) -> tuple[float, Any]:
    start = _spent()
    for _ in range(times):
        answer = jax.block_until_ready(call(data))
    return (_spent() - start) / times, answer


def measure(case: Case, *, seconds: float = SECONDS) -> list[Row]:
    """Run all sides of `case` at all its sizes, in turn, for about `seconds`."""
    sizes = case.sizes
    calls = {name: case.side(name) for name in ("ours", *case.peers)}
    data = {n: case.setup(n) for n in sizes}
    # First calls pay for their own compilation, whatever other cases have compiled before.
    jax.clear_caches()
    rows = [_first_calls(case, n, calls, data[n]) for n in sizes]
    # A second call each, no longer compiling, says how many rounds there is time for.
    single = {(n, name): _timed(call, data[n])[0] for n in sizes for name, call in calls.items()}
    times = {key: max(1, math.ceil(SHORTEST_SAMPLE / max(value, 1e-9))) for key, value in single.items()}
    of_one_round = sum(max(single[key], 1e-9) * times[key] for key in single)
    rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, int(seconds / of_one_round)))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for row in rows:
                for name, call in calls.items():
                    row.sides[name].samples.append(_timed(call, data[row.n], times[row.n, name])[0])
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return rows


def _first_calls(case: Case, n: int, calls: Mapping[str, Call], data: Any) -> Row:
    sides, answers = {}, {}
    for name, call in calls.items():
        first, answers[name] = _timed(call, data)
        sides[name] = Side(first)
    differences = {name: float(case.difference(answers["ours"], answers[name])) for name in case.peers}
    return Row(n, sides, differences)


def growth(rows: Sequence[Row], side: str) -> float | None:
    """The exponent a of time ∝ n^a, by least squares in logarithms in each round; the median of rounds.

    None with fewer than two sizes.
    """
    if len(rows) < 2:
        return None
    seconds = np.array([row.sides[side].samples for row in rows])
    return float(np.median(np.polyfit(np.log([row.n for row in rows]), np.log(seconds), 1)[0]))
