"""The demo's part on graphical models, learned from data or specified."""

import time

import numpy as np

from meanmap.bp import DiscreteGraph, KernelGraph, KernelGrid
from meanmap.graphs import Flooding, Graph
from meanmap.plots.page import Section

__all__ = ["sections"]


def sections(rng: np.random.Generator) -> list[Section]:
    """A learned tree, a grid of given potentials, and an image whose relations are learned."""
    return [_tree(rng), _grid(rng), _image(rng)]


def _tree(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    state = np.where(rng.random(500) < 0.5, 1.0, -1.0) + 0.3 * rng.normal(size=500)
    label = np.where((state > 0) == (rng.random(500) < 0.8), "right", "left")
    table = {"state": state, "sensor": state**2 + 0.2 * rng.normal(size=500), "label": label}
    start = time.perf_counter()
    model = KernelGraph([("state", "sensor"), ("state", "label")]).fit(table)
    fitted = time.perf_counter() - start
    grid = np.linspace(-2.5, 2.5, 200)
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    for evidence in ({"sensor": 1.4}, {"sensor": 1.4, "label": "right"}):
        belief = model.query(evidence, targets=["state"])["state"]
        shown = ", ".join(f"{name} = {value}" for name, value in evidence.items())
        axes.plot(grid, belief.density(grid, bandwidth=0.15), label=shown)
    axes.set(xlabel="state", title="Belief about the state")
    axes.legend()
    right = float(belief.expect((state > 0).astype(float)))
    return Section(
        "A graphical model learned from a table",
        f"Three variables and 500 rows, learned in {fitted:.1f} s with every bandwidth and ridge chosen for its edge. "
        f"With both pieces of evidence the state is positive with probability {right:.2f}.",
        "The sensor measures the square of the state, so its value leaves two possibilities; a label that is right "
        "four times in five decides between them. Variables may be anything that has a kernel, and beliefs are "
        "embeddings.",
        'model = mm.KernelGraph([("state", "sensor"), ("state", "label")]).fit(table)\n'
        'model.query({"sensor": 1.4, "label": "right"}, targets=["state"])["state"].density(grid)',
        ((figure, "The belief with one piece of evidence, and with both."),),
    )


def _grid(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    side, colours = 40, 8
    y, x = np.mgrid[:side, :side] - side / 2 + 0.5
    truth = (np.sqrt(x**2 + y**2) / 3).astype(int) % colours
    seen = truth + 1.5 * rng.normal(size=truth.shape)
    index = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1),
            np.stack([index[:-1].ravel(), index[1:].ravel()], 1),
        ]
    )
    levels = np.arange(colours)
    potential = np.exp(-np.minimum(np.abs(levels[:, None] - levels), 2.0))
    likelihood = np.exp(-((seen.reshape(-1, 1) - levels) ** 2) / (2 * 1.5**2))
    network = DiscreteGraph(Graph.of(edges), potential, likelihood)
    start = time.perf_counter()
    beliefs = network.query(schedule=Flooding(30), damping=0.3, tolerance=1e-3)
    seconds = time.perf_counter() - start
    found = np.array([beliefs[i] @ levels for i in range(side * side)]).reshape(side, side)
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    for axes, image, title in zip(figure.subplots(1, 2), (seen, found), ("seen", "mean of the belief"), strict=True):
        axes.imshow(image, vmin=0, vmax=colours - 1)
        axes.set(title=title, xticks=[], yticks=[])
    before, after = (float(np.sqrt(np.mean((image - truth) ** 2))) for image in (seen, found))
    return Section(
        "Belief propagation on a graph with cycles",
        f"{side * side} variables with {colours} states: an error of {before:.2f} before and {after:.2f} after "
        f"{beliefs.report.steps} sweeps, {seconds:.1f} s with compiling.",
        "The same engine as for learned models. A message is a vector of values at the receiver's states, and "
        "products over all neighbours but one need neither divisions nor logarithms.",
        "network = mm.bp.DiscreteGraph(graph, potential, likelihood)\nnetwork.query(damping=0.3)[node]",
        ((figure, "Noisy rings, and what neighbours agree on."),),
    )


def _image(rng: np.random.Generator) -> Section:
    from matplotlib.figure import Figure

    down, right = np.mgrid[:40, :40]
    clean = np.floor(np.hypot(down - 19.5, right) / 44 * 40) * 255 / 40
    example, noisy = (clean + 30 * rng.normal(size=clean.shape) for _ in range(2))
    noisy[14:22, 24:34] = np.nan
    start = time.perf_counter()
    restored = KernelGrid().fit(clean, example, rng=rng).restore(noisy)
    seconds = time.perf_counter() - start
    figure = Figure(figsize=(8, 3), layout="constrained")
    images = {"seen": noisy, "mean of the belief": restored.mean(), "its standard deviation": restored.sd()}
    for axes, (title, image) in zip(figure.subplots(1, 3), images.items(), strict=True):
        axes.imshow(image, cmap="gray")
        axes.set(title=title, xticks=[], yticks=[])
    error = float(np.sqrt(np.mean((restored.mean() - clean) ** 2)))
    return Section(
        "Kernel belief propagation on an image",
        "1600 continuous variables on a graph with cycles, relations learned from an example: noise of 30 grey levels "
        f"before, an error of {error:.1f} after {seconds:.1f} s with learning and compiling.",
        "The cost of a sweep does not depend on the number of training pairs. The hole is filled from its neighbours.",
        "mm.KernelGrid().fit(clean, noisy_example).restore(noisy)",
        ((figure, "A noisy image with a hole, its restoration, and the uncertainty."),),
    )
