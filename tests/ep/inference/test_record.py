"""What a run says it took."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep

NAME = "d: evaluations of its function"


@pytest.mark.parametrize("way", [None, ep.ImportanceSampling(200)])
def test_the_report_counts_evaluations_and_seconds_of_functions_on_the_host(way):
    calls, z = 0, ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)

    def density(z, y):
        nonlocal calls
        calls += 1
        time.sleep(1e-4)
        return -np.hypot(1.0, float(z) - y)

    model = ep.FactorGraph(ep.Density(density, z, [0.0, 1.0, 2.0], name="d"))
    calls, start = 0, time.perf_counter()
    report = ep.infer(model, way, rng=0).report
    whole = time.perf_counter() - start
    assert report.counts[NAME] == calls > 100
    inside, besides = (report.measures[name] for name in ("d: seconds in its function", "seconds besides"))
    assert inside >= 1e-4 * calls
    assert besides > 0
    assert inside + besides <= whole


def test_functions_of_many_points_are_counted_by_points_and_compiled_ones_are_part_of_the_rest():
    points, z = 0, ep.Variable("z", ep.Normal(0.0, 1.0))

    def density(z):
        nonlocal points
        points += len(z)
        return -np.hypot(1.0, z)

    model = ep.FactorGraph(ep.Density(density, z, vectorised=True, name="d"))
    points = 0
    assert ep.infer(model).report.counts[NAME] == points > 10
    compiled = ep.infer(ep.FactorGraph(ep.Density(lambda z: -jnp.hypot(1.0, z), z, name="d"))).report
    assert NAME not in compiled.counts
    assert not compiled.measures


@pytest.mark.parametrize("rows", [1, 5])
def test_functions_are_not_called_for_what_fills_a_plate_up(rows):
    """Five rows took the evaluations of sixteen, and a hundred those of 128."""
    a, b, c = (ep.Variable(name, ep.Normal(0.0, 1.0), plate=rows) for name in "abc")
    density = ep.Density(lambda a, b, c: -((np.asarray(a) + b - c) ** 2), a, b, c, vectorised=True, name="d")
    report = ep.infer(ep.FactorGraph(density), ep.ImportanceSampling(200), rng=0).report
    assert report.counts[NAME] == 200 * rows * report.steps
