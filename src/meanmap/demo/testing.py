"""The demo's part on two-sample tests, marginal and conditional independence, level and power."""

import time

import numpy as np

from meanmap.plots.page import Section
from meanmap.stats import (
    conditional_independence_test,
    independence_test,
    joint_independence_test,
    power_curve,
    rejection_rate,
    two_sample_test,
)

__all__ = ["sections"]

NULL = "the null distribution; the line is the statistic."


def sections(rng: np.random.Generator) -> list[Section]:
    """One section per test."""
    return [_two_samples(rng), _independence(rng), _conditional(rng), _simulation(rng)]


def _two_samples(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    x, y = _grid(np.eye(2), rng), _grid(turn @ np.diag([1.0, 3.0]) @ turn.T, rng)
    seed = int(rng.integers(2**31))
    start = time.perf_counter()
    default = two_sample_test(x, y, rng=seed)
    seconds = time.perf_counter() - start
    median = two_sample_test(x, y, "median", rng=seed)
    figure = Figure(figsize=(9.2, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    default.plot_witness(left)
    default.plot(right)
    return Section(
        "Do two samples come from the same distribution?",
        f"p = {default.pvalue:.3g} with the default, {median.pvalue:.2g} with the median heuristic, "
        f"in {seconds:.1f} s.",
        "The samples differ only in the shape of each of nine clusters: y is spread along a diagonal. The median "
        "distance is that between clusters, too wide for the shape of one. The default combines five scales and keeps "
        "the level exactly. The witness is high where x is denser, and low where y is.",
        "r = mm.two_sample_test(x, y)\nr.pvalue, r.reject(0.05), r.plot(), r.plot_witness(), r.driving_columns()",
        ((figure, f"Left: the witness over both samples, 900 points each. Right: {NULL}"),),
    )


def _independence(rng: np.random.Generator) -> Section:
    angle = rng.uniform(0, 2 * np.pi, 300)
    x, y = np.cos(angle) + 0.2 * rng.normal(size=300), np.sin(angle) + 0.2 * rng.normal(size=300)
    result = independence_test(x, y, rng=int(rng.integers(2**31)))
    signs, noise = rng.choice([-1.0, 1.0], size=(2, 200)), np.abs(rng.normal(size=(3, 200)))
    joint = joint_independence_test(np.array([*signs, signs.prod(axis=0)]).T * noise.T, rng=int(rng.integers(2**31)))
    correlation = abs(np.corrcoef(x, y)[0, 1])
    return Section(
        "Are two variables independent?",
        f"Points on a noisy circle: absolute correlation {correlation:.2f}, HSIC p = {result.pvalue:.3g}.",
        "The norm of the cross-covariance operator is zero only for independent variables. Numbers, labels and whole "
        "tables can be tested against each other, and rescaling a column changes nothing. Three variables may be "
        f"dependent although each pair is independent, as here: the joint test gives p = {joint.pvalue:.3g}.",
        'mm.independence_test(x, y)\nmm.independence_test(table[["age", "town"]], table["income"])\n'
        "mm.joint_independence_test([a, b, c])",
    )


def _simulation(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    def test(x: np.ndarray, y: np.ndarray, rng: int) -> object:
        return independence_test(x, y, n_permutations=99, rng=rng)

    def wave(n: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x = generator.uniform(-np.pi, np.pi, n)
        return x, np.sin(2 * x) + generator.normal(size=n)

    def independent(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return generator.normal(size=40), generator.exponential(size=40)

    seed = int(rng.integers(2**31))
    level = rejection_rate(test, independent, repeats=100, rng=seed)
    power = power_curve(test, wave, [25, 50, 100], repeats=30, rng=seed)
    figure = Figure(figsize=(9.2, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    level.plot(left)
    power.plot(right)
    low, high = level.interval()
    return Section(
        "What level does a test keep, and how many points does it need?",
        f"{level.rejections} of {level.repeats} independent data sets were rejected at level 0.05. With only "
        f"{level.repeats} data sets, the rate may lie anywhere between {low:.2f} and {high:.2f} (95% interval).",
        "Any test, from any package, is run on repeatedly simulated data; more repeats narrow the interval. P-values "
        "of a calibrated test stay in the band; the power curve says which sample size is enough.",
        "mm.stats.rejection_rate(test, draw)\nmm.power_curve(test, draw, [25, 50, 100]).needed(0.8)",
        ((figure, "Left: the p-values of independent data. Right: the power on a noisy wave."),),
    )


def _conditional(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    z = rng.uniform(-2, 2, 400)
    x, y = np.sin(2 * z) + 0.3 * rng.normal(size=400), z**2 / 2 + 0.3 * rng.normal(size=400)
    seed = int(rng.integers(2**31))
    alone, given = independence_test(x, y, rng=seed), conditional_independence_test(x, y, z, rng=seed)
    linked = conditional_independence_test(x, y + 0.4 * x, z, rng=seed)
    figure = Figure(figsize=(9.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.scatter(x, y, c=z, s=8)
    left.set(title="two effects of one cause (colour)", xlabel="x", ylabel="y")
    given.plot(right)
    right.set_title("given the cause")
    return Section(
        "Are two variables independent given a third?",
        f"Independence of x and y: {_judged(alone.pvalue)}. Given z, their common cause: "
        f"{_judged(given.pvalue, true=True)}. Given z, after x is added to y: {_judged(linked.pvalue)}.",
        "The effect of z on each is removed by regression, in a metric learned from the data; for the null the signs "
        "of residuals are flipped at random. The level was measured with up to five conditioning variables.",
        "mm.conditional_independence_test(x, y, z)\n"
        'mm.conditional_independence_test(income, drink, table[["age", "town"]])',
        ((figure, f"Left: the data. Right: given z, {NULL}"),),
    )


def _judged(pvalue: float, true: bool = False) -> str:
    """A p-value and what it comes to at level 0.05, for a null hypothesis that is true or false by construction."""
    said = f"p = {pvalue:.2g}, {'rejected' if pvalue <= 0.05 else 'not rejected'}"
    if pvalue <= 0.05 and true:
        return f"{said} although it is true, as one true null hypothesis in twenty is at level 0.05"
    return said if pvalue <= 0.05 or true else f"{said} although it is false"


def _grid(covariance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    centres = 10.0 * np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(-1, 2)
    return centres[rng.integers(9, size=900)] + rng.multivariate_normal([0, 0], covariance, size=900)
