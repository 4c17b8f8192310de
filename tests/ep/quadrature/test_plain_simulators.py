"""Log densities of two numbers in plain Python: loops, kinks, ends, noise, and values that overflow."""

import math

import numpy as np
import pytest

from meanmap import ep


def run(function):
    """A posterior over two unknowns, and how often the function was called."""
    calls = []

    def counted(a, b):
        a, b = float(a), float(b)  # which JAX cannot trace
        calls.append((a, b))
        return function(a, b)

    unknown = [ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "ab"]
    post = ep.infer(ep.FactorGraph(ep.Density(counted, *unknown, name="f")))
    assert len(calls) == len(set(calls))
    return post, len(calls)


def unstable(a, b):
    """A recursion that blows up."""
    x = 1.0
    for _ in range(60):
        x = x + 0.3 * x * abs(x * a) if abs(x) < 1e150 else x
    return -min(x * x, 1e305) * 1e-3 - b * b - (a - 1) ** 2


def steep(a, b):
    """Its peaks are so high that 14 less is the same number."""
    return 1e306 * math.sin(5 * a) * math.cos(5 * b)


@pytest.mark.parametrize("function", [unstable, steep])
def test_values_that_overflow_give_no_warning_and_no_error_of_numpy(function):
    """NumPy warned of squares of differences, and a peak without points was an error of a reduction."""
    post, calls = run(function)
    assert np.isfinite(post["a"].mean())
    assert calls < 25_000


def kinked(a, b):
    total = 0.0
    for k in range(5):
        total -= abs(a - b / 2 - 0.1 * k) + max(b, -a) ** 2 / 2
    return total


def one_sided(a, b):
    return -math.inf if a + b < 0 else math.log(a + b + 1e-300) - (a - 1) ** 2 / 2 - b**2 / 2


@pytest.mark.parametrize("function", [kinked, one_sided])
def test_notes_about_ties_cost_no_evaluations(function):
    """65,880 evaluations of which the table took 28,349: the rest were for a note that never came."""
    post, calls = run(function)
    (took,) = (note for note in post.report.notes if "the table of its values took" in note)
    number = int(took.split(" took ")[1].split(" evaluations")[0].replace(",", ""))
    assert number <= calls < 1.02 * number
