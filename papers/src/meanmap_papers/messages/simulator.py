"""A factor that is a simulator: an infection spreads on a ward, and only whether many fell ill is observed."""

import math
import time
from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting
from meanmap_papers.number import written

__all__ = ["EXPERIMENT"]

# Patients of a ward, and how many of them make an outbreak.
WARD, MANY = 40, 5
# Beliefs about coefficients are required to a thousandth of a standard deviation.
TOLERANCE = 1e-3
# One operator serves all hospitals, so that they are not repetitions.
ONE = "hospitals of one run"
# The effects of covariates on the log infection rate.
COEFFICIENTS = np.array([0.3, 0.5, -0.4, 0.3])


def chances(log_rate: float) -> tuple[float, float]:
    """The chances that an infection stays small, and that MANY patients or more fall ill.

    The jump chain of the stochastic SIR model: with i ill and s not yet, the next event is an infection with
    probability r s/(r s + 1), r being the infection rate of a pair over the rate of recovery. All paths are followed.
    """
    rate = math.exp(log_rate) / WARD
    ill = [0.0] * (WARD + 2)  # the chance of each number of ill, given how many have been infected so far
    ill[1] = 1.0
    small = large = 0.0
    for infected in range(1, WARD + 1):
        caught = rate * (WARD - infected)
        spreads = caught / (caught + 1)
        after = [0.0] * (WARD + 2)
        for now in range(infected, 0, -1):
            after[now + 1] += ill[now] * spreads
            ill[now - 1] += ill[now] * (1 - spreads)
        if infected < MANY:
            small += ill[0]
        else:
            large += ill[0]
        ill = after
    return small, large


def log_chance(log_rate: float, outbreak: float) -> float:
    """The factor: the log of the chance of what was observed."""
    chance = chances(log_rate)[int(outbreak)]
    return math.log(chance) if chance > 0 else -math.inf


def problem(rows: int, rng: np.random.Generator) -> Any:
    """Wards with covariates, and whether each had an outbreak, as a model."""
    from meanmap import ep

    X = np.column_stack([np.ones(rows), rng.normal(size=(rows, 3))])
    outbreaks = [float(rng.uniform() < chances(log_rate)[1]) for log_rate in X @ COEFFICIENTS]
    w = ep.Variable("w", ep.MultivariateNormal.standard(4))
    z = ep.Variable("z", ep.Normal, plate=rows)
    return ep.FactorGraph(ep.Dot(X, w, z), ep.Density(log_chance, z, outbreaks, name="ward"))


def run(setting: Setting) -> Outcome:
    """Hospitals one by one: the oracle computes every message, or a learned operator predicts those it is sure of."""
    from matplotlib import pyplot

    from meanmap import ep

    rows = setting.choose(smoke=12, quick=256, paper=1024)
    hospitals = setting.choose(smoke=1, quick=3, paper=10)
    learned = ep.Learned(ep.Quadrature(), initial=setting.choose(smoke=20, quick=60, paper=60))
    lines = []
    for at in range(hospitals):
        model, seconds, posts = problem(rows, setting.rng(at)), [], []
        for messages in (None, learned):
            start = time.process_time()
            posts.append(ep.infer(model, messages=messages, rng=setting.seed, tolerance=TOLERANCE))
            seconds.append(time.process_time() - start)
        asked = posts[1].report.counts["ward: asked of the oracle"]
        calls = rows * (posts[0].report.steps + 1)  # once more for the evidence
        lines.append((calls, asked, *seconds, float(posts[0]["w"].kl(posts[1]["w"]))))
    calls_each, asks, always, just_in_time, divergences = map(np.array, zip(*lines, strict=True))
    costs = 1e3 * always / calls_each
    numbers = {
        "time without learning over time with it": Number.ratio(always, just_in_time),
        "KL": Number.mean(divergences),
        "milliseconds a message": Number.mean(costs),
        "share asked": Number.ratio(asks, calls_each),
    }
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3), constrained_layout=True)
    place = np.arange(hospitals)
    left.bar(place - 0.2, always, 0.4, label="asked always")
    left.bar(place + 0.2, just_in_time, 0.4, label="learned")
    left.set(ylabel="processor seconds, compilation included", xlabel="hospital", xticks=place, xticklabels=place + 1)
    left.legend(frameon=False)
    right.bar(place, asks)
    right.set(ylabel="questions to the simulator", xlabel="hospital", xticks=place, xticklabels=place + 1)
    text = (
        f"A message from the simulator costs {written(1e3 * always.sum() / calls_each.sum(), 2)} ms, and a sweep has "
        f"{rows} of them. Without learning all hospitals take "
        f"{numbers['time without learning over time with it'].value:.1f} times as long, compilation included; the "
        f"posteriors differ by at most {written(divergences.max(), 2)} nats."
    )
    table = [("hospital", "messages", "asked", "always, s", "learned, s", "KL")]
    table += [
        (str(at + 1), str(calls), str(asked), f"{slow:.1f}", f"{quick:.1f}", written(kl, 2))
        for at, (calls, asked, slow, quick, kl) in enumerate(lines)
    ]
    caption = "Time of each inference, and how often the simulator was run for a learned message."
    note = (
        "The oracle is the default. As the simulator is a function of one number, that is quadrature over values of it "
        "which are kept and interpolated. The simulator is a Python function; no delay is added to it."
    )
    return Outcome(text, numbers, ((figure, caption),), tuple(table), (note,))


EXPERIMENT = Experiment(
    "messages-simulator",
    "A simulator as a factor, with and without learned messages",
    "Ours: a simulator as in Jitkrittum et al. (2015)",
    (
        Claim(
            "inference takes a fifth of the time or less, all included",
            "time without learning over time with it",
            low=5.0,
            scales=("quick", "paper"),
            ours=True,
            over=ONE,
        ),
        Claim(
            "posteriors differ by at most 0.01 nats", "KL", high=1e-2, scales=("quick", "paper"), ours=True, over=ONE
        ),
        Claim(
            "a message costs 20 ms or more",
            "milliseconds a message",
            low=20.0,
            scales=("quick", "paper"),
            ours=True,
            over=ONE,
        ),
    ),
    {"smoke": 0.3, "quick": 6, "paper": 20},
    run,
)
