"""The cost of a message: seconds against the number of pairs, for full, linear and constant updates."""

import time
from typing import Any, NamedTuple

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting
from meanmap_papers.number import written

__all__ = ["EXPERIMENT"]

TOLERANCE = 1e-2
# Messages at a time, and repetitions, of which the fastest counts: what else the machine does only adds.
TOGETHER, REPEATS = 16, 10
# Exponents are those from this many pairs on, where there are two such sizes: below, most of the time is that of
# calling a compiled program.
FROM = {"full": 300, "linear": 10_000, "constant": 1000}
# Exponents that are called those of m², m and 1 differ from them by less.
NEAR = 0.2


def run(setting: Setting) -> Outcome:
    """Learn an edge from increasingly many pairs, and send messages along all of them in turn, in several rounds."""
    from matplotlib.figure import Figure

    sizes = setting.choose(
        smoke=(100, 300), quick=(300, 1000, 3000, 10_000, 100_000), paper=(300, 1000, 3000, 10_000, 100_000, 1_000_000)
    )
    rounds = setting.choose(smoke=2, quick=5, paper=10)
    most = {"full": setting.choose(smoke=300, quick=3000, paper=3000)}
    edges = {(name, m): learned(name, m, setting) for name in FROM for m in sizes if m <= most.get(name, m)}
    found = {key: np.zeros(rounds) for key in edges}
    for at in range(rounds):
        for m in sizes:
            for key in ((name, m) for name in FROM if (name, m) in edges):
                found[key][at] = seconds(edges[key])
    numbers = {f"exponent, {name}": Number.mean(_exponents(name, found)) for name in FROM}
    last, largest = sizes[-1], min(sizes[-1], most["full"])
    times = {name: found[name, last] for name in ("linear", "constant")}
    times["full"] = found["full", largest] * (last / largest) ** 2
    numbers["linear over constant"] = Number.ratio(times["linear"], times["constant"])
    numbers["full over constant, by m²"] = Number.ratio(times["full"], times["constant"])
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    message, learning = figure.subplots(1, 2, sharex=True)
    for name in FROM:
        shown = [m for m in sizes if (name, m) in found]
        values = np.array([found[name, m] for m in shown])
        (line,) = message.plot(shown, values.mean(axis=1), "o-", ms=4, label=name)
        message.plot(shown, values, ".", ms=2, color=line.get_color())
        learning.plot(shown, [edges[name, m].learning for m in shown], "o-", ms=4, label=name)
    for axes in figure.axes:
        axes.set(xscale="log", yscale="log", xlabel="pairs")
    message.set(ylabel="seconds per message")
    learning.set(ylabel="seconds to learn the edge")
    message.legend(frameon=False)
    rows = [("update", "pairs", "microseconds a message", "seconds to learn", "length of a message")]
    rows += [
        (name, f"{m:,}", str(Number.mean(1e6 * each)), f"{edges[name, m].learning:.2g}", f"{edges[name, m].length}")
        for (name, m), each in found.items()
    ]
    return Outcome(
        f"With {last:,} pairs a message takes {1e6 * times['constant'].mean():.2g} µs by constant updates and "
        f"{numbers['linear over constant'].value:,.0f} times as long by linear ones. Full ones, whose matrix of "
        f"{largest:,} pairs is the largest that was formed, would take "
        f"{written(numbers['full over constant, by m²'].value, 1)} times as long.",
        numbers,
        ((figure, "Seconds per message, and to learn the edge, against the number of pairs; small dots are rounds."),),
        tuple(rows),
        (
            (
                "The papers state costs as numbers of operations, O(m²), O(ℓm) and O(ℓ²), which follow from the "
                "algorithms. Seconds on a machine with caches neither show nor refute a number of operations, so that "
                "the claims about time are ours."
            ),
            (
                "Pairs are standard normal numbers with correlation 0.9; the lengthscale, one half, and the ridge are "
                f"fixed, ε = {TOLERANCE:g}. A message is one product with what was learned, without the products of "
                "messages at a node."
            ),
            (
                f"All edges were learned once. In each of {rounds} rounds messages were sent along one edge after "
                "another, by operators copied to new memory and a newly compiled program: a time is the least "
                f"processor time of {REPEATS} runs of {TOGETHER} messages. Each round has an exponent; numbers are "
                "means over rounds, whose spread is that of the machine, not of the pairs. Exponents are fitted from "
                + ", ".join(f"{m:,} pairs on ({name})" for name, m in FROM.items())
                + ": below, most of the time is that of calling a compiled program."
            ),
            (
                "Both ends have the same kind of variable, and pairs are used in both directions, so that messages "
                "have values at twice as many points as there are pairs where the update keeps them all. The matrix "
                "of full updates would take 32 terabytes for a million pairs."
            ),
        ),
    )


class Edge(NamedTuple):
    """An edge that was learned, seconds to learn it, and the length of a message."""

    operators: Any
    learning: float
    length: int


def learned(name: str, m: int, setting: Setting) -> Edge:
    """An edge learned from m pairs."""
    import meanmap as mm
    from meanmap import bp

    rng = setting.rng(m)
    x = rng.normal(size=m)
    y = 0.9 * x + np.sqrt(1 - 0.9**2) * rng.normal(size=m)
    update = {"full": bp.Full(), "linear": bp.Linear(TOLERANCE), "constant": bp.Constant(TOLERANCE)}[name]
    start = time.process_time()
    field = mm.KernelField([(0, 1)], kernels=mm.kernels.RBF(0.5), ridge=1e-3, update=update).fit((x, y))
    return Edge(field.learned.operators, time.process_time() - start, int(field.learned.length))


def seconds(edge: Edge) -> float:
    """Processor seconds per message, by a copy of the operators in new memory and a newly compiled program."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        operators = jax.tree.map(lambda each: jnp.array(each, copy=True), edge.operators)
        sent = jnp.ones((1, TOGETHER, edge.length))
        send = jax.jit(lambda operators, sent: operators.apply(sent, 0))
        send(operators, sent).block_until_ready()
        times = []
        for _ in range(REPEATS):
            start = time.process_time()
            send(operators, sent).block_until_ready()
            times.append(time.process_time() - start)
    return min(times) / TOGETHER


def _exponents(name: str, found: dict[tuple[str, int], np.ndarray]) -> np.ndarray:
    """Least-squares exponents of seconds per message against pairs, one for each round."""
    every = sorted(m for update, m in found if update == name)
    sizes = [m for m in every if m >= min(FROM[name], every[-2])]
    return np.polyfit(np.log(sizes), np.log([found[name, m] for m in sizes]), 1)[0]


EXPERIMENT = Experiment(
    "loopy-cost",
    "What a message costs, against the number of pairs",
    "Song et al. (2011), appendix, section 3; Song, Gretton & Guestrin (2010), section 5: costs that were stated",
    (
        *(
            Claim(says, f"exponent, {name}", power - NEAR, power + NEAR, scales=("paper",), ours=True)
            for name, power, says in (
                ("full", 2.0, "the time of a full message grows like m²: its exponent"),
                ("linear", 1.0, "that of a linear one like m"),
                ("constant", 0.0, "that of a constant one does not grow with m"),
            )
        ),
    ),
    {"smoke": 0.5, "quick": 1, "paper": 2},
    run,
)
