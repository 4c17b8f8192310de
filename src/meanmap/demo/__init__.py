"""The demo: each part of the library on simulated data, as one HTML page."""

import time
from pathlib import Path

import numpy as np

from meanmap.core.extras import optional
from meanmap.core.progress import track
from meanmap.core.saved.files import write_whole
from meanmap.demo import algebra, graphs, ground, learning, messages, testing
from meanmap.plots.page import Section, made_by, render

__all__ = ["PARTS", "run"]

# One entry per part of the library, each a function from a generator to sections: the README's four things in order,
# then what they are built from.
PARTS = {
    "tests": testing.sections,
    "causes": learning.causes,
    "graphical models": graphs.sections,
    "expectation propagation": messages.sections,
    "kernels and features": ground.sections,
    "elements and operators": algebra.sections,
    "learned kernels": learning.sections,
}


def run(path: str | Path = "meanmap-demo.html", seed: int = 0) -> tuple[Path, list[Section], float]:
    """Run every part and write the page; returns its path, its sections and the seconds it took."""
    with optional("the demo"):
        import matplotlib  # noqa: F401  # before anything is computed
        import networkx  # noqa: F401
    start = time.perf_counter()
    made: list[Section] = []
    for number, name in enumerate(track(list(PARTS), "demo")):
        made += PARTS[name](np.random.default_rng([seed, number]))
    seconds = time.perf_counter() - start
    footer = f"{made_by()}, seed {seed}, {seconds:.0f} seconds. Run it again with: meanmap demo"
    lead = "Questions about data, and what the answers are built from. Everything below was computed just now."
    return write_whole(path, render("meanmap: the demo", lead, made, footer)), made, seconds
