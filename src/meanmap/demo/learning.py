"""The demo's part on learning a kernel and a causal graph."""

import time

import numpy as np

from meanmap.kernels.stationary import RBF
from meanmap.learning import learn_kernel, median_heuristic
from meanmap.plots.page import Section
from meanmap.structure import pc

__all__ = ["causes", "sections"]


def sections(rng: np.random.Generator) -> list[Section]:
    """A learned lengthscale beside the median."""
    return [_kernel(rng)]


def causes(rng: np.random.Generator) -> list[Section]:
    """The PC algorithm."""
    return [_causes(rng)]


def _kernel(rng: np.random.Generator) -> Section:
    centres = 10.0 * np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(-1, 2)
    x = centres[rng.integers(9, size=600)] + rng.normal(size=(600, 2))
    start = time.perf_counter()
    fit = learn_kernel(x, RBF(), landmarks=0.15, rng=rng)
    seconds = time.perf_counter() - start
    modes = ", ".join(f"{float(np.asarray(vars(mode.kernel)['lengthscale'])):.2g}" for mode in fit.modes)
    return Section(
        "A kernel learned from a sample",
        f"Nine clusters on a grid: the lengthscales are {modes}, likeliest first ({seconds:.1f} s with compiling), and "
        f"the median distance is {median_heuristic(x):.3g}.",
        "The median is a distance between clusters and does not resolve any of them. All modes are reported: which "
        "matters depends on what the kernel is for.",
        "fit = mm.learn_kernel(x, landmarks=0.15)\nfit.kernel, fit.modes, fit.report",
        ((fit.plot().figure, "The objective over lengthscales, for each draw of landmarks and on average."),),
    )


def _causes(rng: np.random.Generator) -> Section:
    sun, water = rng.normal(size=(2, 500))
    growth = np.tanh(sun) + np.abs(water) + 0.2 * rng.normal(size=500)
    harvest = growth**2 + 0.5 * rng.normal(size=500)
    start = time.perf_counter()
    found = pc({"sun": sun, "water": water, "growth": growth, "harvest": harvest}, 0.01, rng=rng)
    seconds = time.perf_counter() - start
    arrows = ", ".join(f"{cause} → {effect}" for cause, effect in found.named("directed"))
    return Section(
        "What causes what?",
        f"500 rows of four variables, {found.report.steps} kernel tests, {seconds:.1f} s: {arrows or 'no arrow'}. "
        "The data were made with sun → growth, water → growth and growth → harvest.",
        "Variables that no conditioning set makes independent are adjacent; two causes of one effect differ from a "
        "chain, since they become dependent given the effect. The relations here are not linear, and their form was "
        "not specified.",
        "mm.pc(table, level=0.01)",
        ((found.plot().figure, "The graph that was found: arrows from causes to effects."),),
    )
