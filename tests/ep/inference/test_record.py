"""What a run says it took."""

import math
import time

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.core.language import in_digits
from meanmap.ep.calls import in_words

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


def test_a_call_of_more_than_a_second_is_in_a_note_with_its_arguments(monkeypatch):
    shown, calls, slow = [], 0, []
    monkeypatch.setattr("meanmap.ep.calls.beside", shown.append)

    def density(a, b):
        nonlocal calls
        calls += 1
        if isinstance(a, float) and a < -1 and not slow:
            slow.append(a)
            time.sleep(1.1)
        return -math.hypot(1.0, a - b)

    a, b = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0))
    model = ep.FactorGraph(ep.Density(density, a, b, name="d"))
    calls = 0
    report = ep.infer(model).report
    (note,) = [note for note in report.notes if "the slowest call" in note]
    assert note.startswith("d: the slowest call of its function took 1.")
    assert f"with the arguments {in_words((slow[0],))}, " in note
    assert report.counts[NAME] == calls
    assert shown
    assert all("d called" in words for words in shown)


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


def test_numbers_whose_squares_are_infinite_are_named():
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    post = ep.infer(ep.FactorGraph(ep.Gaussian(z, observed=[1.0, -1e300, 3.0], name="seen")))
    assert float(post["z"].mean()[1]) == pytest.approx(-5e299)
    assert post.report.notes[-1] == (
        "the log evidence is not a number: observed at [1] of seen is 1e+300, whose square is too large to "
        "compute with: measure it in a larger unit"
    )


def test_log_evidence_of_a_run_that_stopped_is_said_to_be_none():
    """A bump that no point had seen: 190 was stated, and no evidence is above -.23."""
    x, out = ep.Variable("x", ep.Normal(0.3, 4.0)), ep.Variable("out", ep.Normal)
    bump = ep.BlackBox(lambda x: 10 * jnp.exp(-0.5 * ((x - 1.234) / 0.003) ** 2), x, out)
    post = ep.infer(ep.FactorGraph(bump, ep.Gaussian(out, observed=10.0, precision=4.0)), sweeps=40)
    assert not post.report.converged
    said = "which may be off by any amount, as messages have not converged"
    assert str(post).endswith(f"  log evidence {post.log_evidence:.5g}, {said}")
    assert post.report.notes[-1] == f"log evidence {in_digits(post.log_evidence, 3)}, {said}"
    assert said in post._repr_html_()
    later = post.update(ep.FactorGraph(ep.Gaussian(x, observed=1.0)))
    assert later.report.converged
    assert str(later).endswith(said)
