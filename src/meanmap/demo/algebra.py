"""The demo's part on conditional operators, likelihoods, exact embeddings, and summaries of these."""

import time

import numpy as np

from meanmap import families, kernels
from meanmap.embeddings import condition, embed, likelihood
from meanmap.plots.page import Section

__all__ = ["sections"]


def sections(rng: np.random.Generator) -> list[Section]:
    """One section per idea of the algebra."""
    return [_conditional(rng), _likelihood(rng), _shrinkage(rng)]


def _conditional(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    x = rng.uniform(-3, 3, 1000)
    y = np.where(rng.random(1000) < 0.5, 1, -1) * np.maximum(x, 0) + 0.25 * rng.normal(size=1000)
    start = time.perf_counter()
    op = condition(x, y)
    seconds = time.perf_counter() - start
    at = np.linspace(-3, 3, 61)
    beliefs = op(at)
    grid = np.linspace(-4, 4, 161)
    density = beliefs.density(grid, bandwidth=0.2)
    low, high = beliefs.quantile([0.05, 0.95]).T
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.pcolormesh(at, grid, density.T, cmap="Blues", shading="nearest")
    axes.plot(x[::3], y[::3], ".", color="black", ms=1.5, alpha=0.5)
    axes.plot(at, beliefs.mean(), color="C3", label="mean")
    axes.plot(at, low, "--", color="C1", label="5% and 95%")
    axes.plot(at, high, "--", color="C1")
    axes.set(xlabel="x", ylabel="y", title="Beliefs about y given x")
    axes.legend(loc="upper left")
    inside = np.mean((y > np.interp(x, at, low)) & (y < np.interp(x, at, high)))
    return Section(
        "A conditional distribution is an operator",
        f"Learned from 1000 pairs in {seconds:.1f} s, lengthscale and ridge chosen by leave-one-out; the 90% band "
        f"holds {100 * inside:.0f}% of the points.",
        "One factorisation answers every query, and each answer is again an embedding, with a mean, quantiles, "
        "modes, samples, and a density with two branches where the data have two.",
        "op = mm.condition(x, y)\nb = op(x_new)\nb.mean(), b.quantile([0.05, 0.95]), b.density(grid), b.mode()",
        ((figure, "Estimated conditional density, in blue, over the data, which have two branches for positive x."),),
    )


def _likelihood(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    rho, n = 0.7, 1000
    y = rng.normal(size=n)
    x = rho * y + np.sqrt(1 - rho**2) * rng.normal(size=n)
    op = likelihood(x, y)
    grid = np.linspace(-2.5, 2.5, 101)
    seen = np.array([-1.0, 0.0, 1.0])
    estimated = op(seen)(grid)
    spread = 1 - rho**2
    true = np.exp(-((seen[:, None] - rho * grid) ** 2) / (2 * spread) + seen[:, None] ** 2 / 2) / np.sqrt(spread)
    density = np.exp(-(grid**2) / 2)
    error = np.sqrt(((estimated - true) ** 2 * density).sum() / (true**2 * density).sum())
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    for i, value in enumerate(seen):
        axes.plot(grid, estimated[i], color=f"C{i}", label=f"x = {value:g}")
        axes.plot(grid, true[i], ":", color=f"C{i}")
    axes.set(xlabel="y", title="p(x | y) / p(x), learned (solid) and true (dotted)")
    axes.legend()
    return Section(
        "A likelihood is an operator too",
        f"From {n} pairs of a linear-Gaussian model the likelihood is learned to {100 * error:.0f}% relative error.",
        "This is the message that an observed node sends to its neighbour in a graphical model.",
        "op = mm.embeddings.likelihood(x, y)\nop([1.0])(grid)",
        ((figure, "Three learned likelihood functions, and the true ones, dotted."),),
    )


def _shrinkage(rng: np.random.Generator) -> Section:
    d, n, repeats = 10, 20, 60
    k = kernels.RBF(np.sqrt(d))
    law = families.MultivariateNormal.standard(d)
    truth = embed(law, k)
    names = ("empirical", "james-stein", "ridge", "shrinkage")
    errors = {name: [] for name in names}
    for _ in range(repeats):
        x = rng.normal(size=(n, d))
        for name in names:
            errors[name].append((embed(x, k, estimator=name) - truth).squared_norm())
    means = {name: np.mean(errors[name]) for name in names}
    rows = []
    for name in names:
        error, ratio = np.std(errors[name]) / np.sqrt(repeats), means[name] / means["empirical"]
        rows.append((name, f"{means[name]:.4f}", f"{error:.4f}", f"{ratio:.2f}"))
    return Section(
        "Shrinkage of the mean embedding",
        f"For {n} points in {d} dimensions the squared error with shrinkage is "
        f"{means['shrinkage'] / means['empirical']:.2f} times that of the average.",
        f"The truth is known, because the embedding of a normal distribution has a closed form. Mean over {repeats} "
        "samples of ‖estimate − truth‖², its standard error, and the ratio to the plain average.",
        'mm.embed(x, k, estimator="shrinkage") - mm.embed(mm.families.MultivariateNormal.standard(10), k)',
        tables=((("estimator", "mean squared error", "s.e.", "ratio"), *rows),),
    )
