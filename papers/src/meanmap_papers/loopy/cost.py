"""The cost of a message: seconds against the number of pairs, for full, linear and constant updates."""

import time
from functools import partial

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

TOLERANCE = 1e-2
# Messages at a time, and repetitions, of which the fastest is shown.
TOGETHER, REPEATS = 16, 10
# Exponents are those from this many pairs on, where there are two such sizes: below, most of the time is that of
# calling a compiled program.
FROM = {"full": 300, "linear": 10_000, "constant": 1000}


def run(setting: Setting) -> Outcome:
    """Learn an edge from increasingly many pairs, and send messages along it."""
    from matplotlib.figure import Figure

    sizes = setting.choose(
        smoke=(100, 300), quick=(300, 1000, 3000, 10_000, 100_000), paper=(300, 1000, 3000, 10_000, 100_000, 1_000_000)
    )
    most = {"full": setting.choose(smoke=300, quick=3000, paper=3000)}
    found: dict[str, dict[int, list[float]]] = {}
    for name in ("full", "linear", "constant"):
        for m in sizes:
            if m <= most.get(name, m):
                one = setting.part(f"{name}, {m}", partial(measured, name, m, setting))
                found.setdefault(name, {})[m] = one
    numbers = {f"exponent, {name}": _exponent(name, times) for name, times in found.items()}
    last, largest = sizes[-1], max(found["full"])
    constant = found["constant"][last][0]
    times = {
        name: np.array(each[3:])
        for name, each in (("constant", found["constant"][last]), ("linear", found["linear"][last]))
    }
    times["full"] = np.array(found["full"][largest][3:]) * (last / largest) ** 2
    numbers["linear over constant"] = Number.ratio(times["linear"], times["constant"])
    numbers["full over constant, by m²"] = Number.ratio(times["full"], times["constant"])
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    message, learning = figure.subplots(1, 2, sharex=True)
    for name, times in found.items():
        message.plot(list(times), [each[0] for each in times.values()], "o-", ms=4, label=name)
        learning.plot(list(times), [each[1] for each in times.values()], "o-", ms=4, label=name)
    message.set(xscale="log", yscale="log", xlabel="pairs", ylabel="seconds a message")
    learning.set(xscale="log", yscale="log", xlabel="pairs", ylabel="seconds to learn the edge")
    message.legend(frameon=False)
    rows = [("update", "pairs", "microseconds a message", "seconds to learn", "length of a message")]
    rows += [
        (name, f"{m:,}", f"{1e6 * each[0]:.3g}", f"{each[1]:.2g}", f"{each[2]:.0f}")
        for name, times in found.items()
        for m, each in times.items()
    ]
    return Outcome(
        f"With {last:,} pairs a message takes {1e6 * constant:.2g} µs by constant updates and "
        f"{1e6 * found['linear'][last][0]:,.0f} µs by linear ones, the least of {REPEATS} runs. In means over them "
        f"linear ones take {numbers['linear over constant'].value:,.0f} times as long as constant ones, and full "
        f"ones, whose matrix of {largest:,} pairs is the largest that was formed, would take "
        f"{numbers['full over constant, by m²'].value:.1g} times as long.",
        numbers,
        ((figure, "Seconds a message, and to learn the edge, against the number of pairs."),),
        tuple(rows),
        (
            (
                "Pairs of standard normal numbers with correlation .9, a lengthscale of one half and a ridge that are "
                f"given, ε = {TOLERANCE:g}. A message is one product with what was learned, without the products of "
                f"messages at a node; the least processor seconds of {REPEATS} runs of {TOGETHER} at a time; "
                "ratios are of means."
            ),
            (
                "Both ends share a kind, and pairs serve in both directions, so that messages have values at twice as "
                "many points as there are pairs where the update keeps them all. The matrix of full updates would take "
                "32 terabytes for a million pairs."
            ),
        ),
    )


def measured(name: str, m: int, setting: Setting) -> list[float]:
    """Seconds a message, seconds to learn, the length of a message, and the seconds a message of each run."""
    import jax
    import jax.numpy as jnp

    import meanmap as mm
    from meanmap import bp

    rng = setting.rng(m)
    x = rng.normal(size=m)
    y = 0.9 * x + np.sqrt(1 - 0.9**2) * rng.normal(size=m)
    update = {"full": bp.Full(), "linear": bp.Linear(TOLERANCE), "constant": bp.Constant(TOLERANCE)}[name]
    start = time.process_time()
    field = mm.KernelField([(0, 1)], kernels=mm.kernels.RBF(0.5), ridge=1e-3, update=update).fit((x, y))
    learning = time.process_time() - start
    with jax.enable_x64(True):
        operators = jax.tree.map(jnp.asarray, field.learned.operators)
        sent = jnp.ones((1, TOGETHER, field.learned.length))
        send = jax.jit(lambda operators, sent: operators.apply(sent, 0))
        send(operators, sent).block_until_ready()
        times = []
        for _ in range(REPEATS):
            start = time.process_time()
            send(operators, sent).block_until_ready()
            times.append(time.process_time() - start)
    return [min(times) / TOGETHER, learning, float(field.learned.length), *(time / TOGETHER for time in times)]


def _exponent(name: str, times: dict[int, list[float]]) -> Number:
    """Of the rise of seconds a message with pairs, by least squares, with the standard error of its residuals."""
    floor = min(FROM[name], sorted(times)[-2])
    sizes = [m for m in times if m >= floor]
    pairs, seconds = np.log(sizes), np.log([times[m][0] for m in sizes])
    slope, level = np.polyfit(pairs, seconds, 1)
    if len(sizes) < 3:
        return Number(float(slope))
    squares = ((seconds - slope * pairs - level) ** 2).sum() / (len(sizes) - 2)
    return Number(float(slope), float(np.sqrt(squares / ((pairs - pairs.mean()) ** 2).sum())))


EXPERIMENT = Experiment(
    "loopy-cost",
    "What a message costs, against the number of pairs",
    "Song et al. (2011), appendix, section 3, and Song, Gretton & Guestrin (2010), section 5: costs that were stated",
    (
        Claim(
            "a full message costs O(m²) (Song, Gretton & Guestrin 2010, section 5)",
            "exponent, full",
            1.6,
            2.4,
            scales=("paper",),
        ),
        Claim("a linear one O(m) (appendix 3)", "exponent, linear", 0.8, 1.2, scales=("paper",)),
        Claim(
            "the cost of a constant one does not grow with m (appendix 3)",
            "exponent, constant",
            -0.1,
            0.1,
            scales=("paper",),
        ),
    ),
    {"smoke": 0.3, "quick": 0.5, "paper": 2},
    run,
)
