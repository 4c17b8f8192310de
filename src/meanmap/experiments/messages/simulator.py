"""A factor that is a simulator: growth by an ordinary differential equation, observed once for each member."""

import time
from typing import Any

import numpy as np

from meanmap.experiments.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

# Nodes of the rule that an oracle asks the simulator at, in standard deviations of what comes in.
NODES, REACH = 41, 5.0
# Standard deviation of what is observed of a size.
NOISE = 0.1


def population(log_rate: float) -> float:
    """Size at time 4 of a population that grows towards 1 with a rate that is its unknown, by an adaptive solver."""
    from scipy.integrate import solve_ivp

    rate = np.exp(log_rate)
    solved = solve_ivp(lambda _, x: rate * x * (1 - x) - 0.3 * x / (0.2 + x), (0.0, 4.0), [0.6], rtol=1e-4, atol=1e-7)
    return float(solved.y[0, -1])


def oracle(questions: Any) -> Any:
    """Messages by the trapezium rule: the simulator is run at each node of each question."""
    from meanmap import ep

    came, observed = questions.incoming
    unit = np.linspace(-REACH, REACH, NODES)
    mean, sd = came.mean, np.sqrt(came.variance)
    points = mean[:, None] + sd[:, None] * unit
    sizes = np.vectorize(population)(points)
    logs = -((np.reshape(observed, (-1, 1)) - sizes) ** 2) / (2 * NOISE**2)
    weights = np.exp(logs - unit**2 / 2 - (logs - unit**2 / 2).max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    first = (weights * points).sum(1)
    second = (weights * (points - first[:, None]) ** 2).sum(1)
    # The cavity's own moments by the same rule, so that its error cancels.
    cavity = ep.Normal(mean, sd**2)
    sent = ep.Normal(first, second) / cavity
    return (sent,)


def run(setting: Setting) -> Outcome:
    """Log rates are a linear function of covariates; sizes are observed with noise."""
    from matplotlib import pyplot

    from meanmap import ep

    rows = setting.choose(smoke=40, quick=160, paper=2000)
    rng = setting.rng(0)
    X = np.column_stack([np.ones(rows), rng.normal(size=(rows, 2))])
    rates = X @ np.array([0.4, 0.3, -0.2])
    observed = np.vectorize(population)(rates) + NOISE * rng.normal(size=rows)

    def model():
        w = ep.Variable("w", ep.MultivariateNormal.standard(3))
        z = ep.Variable("z", ep.Normal, plate=rows)
        return ep.FactorGraph(ep.Dot(X, w, z), ep.Density(log_growth, z, observed, name="growth"))

    seconds, posts = {}, {}
    learner = ep.Learned(oracle, initial=setting.choose(smoke=20, quick=80, paper=300))
    for name, messages in (("asked always", oracle), ("learned", learner)):
        start = time.perf_counter()
        posts[name] = ep.infer(model(), messages=messages, rng=setting.seed, tolerance=1e-4)
        seconds[name] = time.perf_counter() - start
    counts = posts["learned"].report.counts
    each = (
        1e3
        * seconds["asked always"]
        / max(posts["asked always"].report.counts["growth: messages asked of the host"], 1)
    )
    divergence = float(posts["asked always"]["w"].kl(posts["learned"]["w"]))
    numbers = {
        "times less": Number(seconds["asked always"] / seconds["learned"]),
        "KL": Number(divergence),
        "milliseconds a message": Number(each),
    }
    figure, axes = pyplot.subplots(figsize=(5, 3), constrained_layout=True)
    axes.barh(list(seconds), list(seconds.values()))
    axes.set_xlabel("seconds, compilation included")
    text = (
        f"A message costs {each:.0f} ms; learned messages take {numbers['times less'].value:.1f} times less time and "
        f"end within {divergence:.1e} nats, with {counts['growth: asked of the oracle']} questions."
    )
    return Outcome(text, numbers, ((figure, "Wall time of the whole inference."),))


def log_growth(z: Any, observed: Any) -> Any:
    """The log likelihood of one observed size, up to a constant: for oracles that ask point by point."""
    return -((observed - population(float(z))) ** 2) / (2 * NOISE**2)


EXPERIMENT = Experiment(
    "messages-simulator",
    "A simulator as a factor: asked always, or learned",
    "Jitkrittum et al. (2015), figure 4c: orders of magnitude less time",
    (
        Claim("at least five times less time end to end (ours)", "times less", low=5.0, scales=("quick", "paper")),
        Claim("the same posterior (ours)", "KL", high=1e-2, scales=("quick", "paper")),
        Claim("a message costs 20 ms or more", "milliseconds a message", low=20.0),
    ),
    {"smoke": 0.5, "quick": 5, "paper": 30},
    run,
)
