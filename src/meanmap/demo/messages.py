"""The demo's part on expectation propagation: any function as a factor."""

import time

import jax
import numpy as np

from meanmap import ep
from meanmap.plots.page import Section

__all__ = ["sections"]


def sections(rng: np.random.Generator) -> list[Section]:
    """Logistic regression with the sigmoid as a black box."""
    from matplotlib.figure import Figure

    n = 80
    X = rng.normal(size=(n, 2))
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-X @ [2.0, -1.0]))).astype(int)
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    z, p = ep.Variable("z", ep.Normal, plate=n), ep.Variable("p", ep.Beta, plate=n)
    model = ep.FactorGraph(ep.Dot(X, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y))
    post = ep.infer(model)
    start = time.perf_counter()
    ep.infer(model)
    seconds = time.perf_counter() - start
    grid = np.linspace(-3, 5, 161)
    points = np.stack(np.meshgrid(grid, grid), -1)
    log_posterior = -(points**2).sum(-1) / 2 - np.logaddexp(0, (1 - 2 * y) * (points @ X.T)).sum(-1)
    figure = Figure(figsize=(9.2, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.contourf(grid, grid, np.exp(log_posterior - log_posterior.max()), levels=12, cmap="Blues")
    left.contour(grid, grid, np.exp(post["w"].log_density(points)), levels=6, colors="tab:orange", linewidths=1)
    left.set(title="weights: exact (blue) and EP (orange)", xlim=(0, 4), ylim=(-3, 1))
    order = np.argsort(X @ [2.0, -1.0])
    right.fill_between(range(n), *(post["p"].quantile(q)[order] for q in (0.1, 0.9)), alpha=0.4)
    right.plot(1 / (1 + np.exp(-np.sort(X @ [2.0, -1.0]))), "k", lw=1)
    right.plot(y[order], ".", ms=3)
    right.set(title="Each probability: 80% intervals, and the truth", xlabel="rows, sorted")
    return [
        Section(
            "Can any function be a factor?",
            f"{post.report.status.capitalize()} in {post.report.steps} sweeps, {seconds:.2f} s once compiled; "
            f"log evidence {post.log_evidence:.2f}.",
            "The linear map and the Bernoulli likelihood have exact messages; the sigmoid between them is a plain "
            "function, and its messages are computed by quadrature, for a whole plate at once.",
            "model = ep.FactorGraph(\n    ep.Dot(X, w, z), ep.BlackBox(sigmoid, z, p), ep.Bernoulli(p, observed=y)\n)\n"
            'post = ep.infer(model)\npost["w"].mean(), post["w"].cov(), post.report',
            ((figure, "Left: the posterior of two weights. Right: the belief about the probability of each label."),),
        )
    ]
