"""Functions on the host of few unknown numbers: answered by draws where they are quick enough, beside grids."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import meanmap as mm
from meanmap import ep
from meanmap.core.rng import Rng
from meanmap.ep.calling import evaluated
from meanmap.ep.inference import affordable
from meanmap.ep.inference.beside import by_draws
from meanmap.ep.inference.drawn import drawn_posterior
from meanmap.ep.inference.tempered import FEW, MANY
from tests.ep.inference.few import added, on_a_grid

X = np.linspace(0.2, 4, 12)
Y = 2.3 * special.erf(0.45 * X) + 0.2 * np.random.default_rng(0).normal(size=12)


def by_row(a, b, x):
    return a * math.erf(math.exp(-b / 4) * x / 2)


def of_arrays(a, b, x):
    return a * special.erf(np.exp(-b / 4) * x / 2)


def curve(function):
    a, b = ep.Variable("a", ep.Normal(2.0, 1.0)), ep.Variable("b", ep.Normal(1.0, 1.0))
    out = ep.Variable("out", ep.Normal, plate=len(X))
    noise = ep.Gaussian(out, observed=Y, precision=25.0)
    return ep.FactorGraph(ep.BlackBox(function, a, b, X, out, name="f"), noise)


def called(function) -> Any:
    """The factor as it is called for draws."""
    return affordable.Affordable.of(curve(function).factors).factors[0]


def exact():
    def log_density(a, b):
        rows = added(lambda a, b, x, y: stats.norm.logpdf(y, of_arrays(a, b, x), 0.2), X, Y)
        return stats.norm.logpdf(a, 2) + stats.norm.logpdf(b, 1) + rows(a, b)

    return on_a_grid([np.linspace(0, 7, 400), np.linspace(-3, 5, 400)], log_density)


@pytest.mark.parametrize("function", [by_row, of_arrays])
def test_answers_are_those_of_a_grid(function, monkeypatch):
    if function is by_row:
        monkeypatch.setattr(affordable, "_EFFORTS", ((FEW, np.inf),))
    post = ep.infer(curve(function), rng=3)
    for name, mean, sd in zip("ab", *exact()[:2], strict=True):
        assert float(post[name].mean()) == pytest.approx(mean, abs=0.08 * sd)
        assert float(post[name].sd()) == pytest.approx(sd, rel=0.06)
        assert float(post.standard_errors[name]) < 0.02 * sd
    assert post.log_evidence == pytest.approx(exact()[2], abs=0.05)
    assert post.report.status == "converged"
    assert "draws from the joint posterior in place of messages" in post.report.choices["beliefs: by"]
    assert post.report.counts["f: evaluations of its function"] > 50_000
    draws = mm.io.posterior_draws(post, 8000, 0)["posterior"]
    images = of_arrays(draws["a"][0], draws["b"][0], X[0])
    assert float(post["out"].mean()[0]) == pytest.approx(images.mean(), abs=0.15 * images.std())


def test_functions_that_take_arrays_are_called_with_them():
    assert affordable.Affordable.of(curve(of_arrays).factors).effort is MANY
    assert called(of_arrays).vectorised
    assert not called(by_row).vectorised

    def mean_of_all(a, b, x):  # takes arrays, and returns something else for them
        return a * x - np.mean(b)

    assert not called(mean_of_all).vectorised


@pytest.mark.parametrize(("seconds", "effort"), [(1e-5, MANY), (4e-4, FEW), (2e-3, None)])
def test_what_a_function_takes_decides_on_the_number_of_draws(seconds, effort, monkeypatch):
    monkeypatch.setattr(affordable, "seconds_each", lambda factor: seconds)
    monkeypatch.setattr(affordable, "_QUICK", 0.0)
    assert affordable.Affordable.of(curve(by_row).factors).effort is effort


def test_slow_functions_are_left_to_messages_with_a_note(monkeypatch):
    monkeypatch.setattr(affordable, "_EFFORTS", ())
    model = curve(by_row)
    assert drawn_posterior(model, Rng.of(0)) is None
    assert "takes less than 15 milliseconds for all rows" in by_draws(model.variables, model.factors, {}, 0.0)[0]


def test_errors_of_a_function_are_raised_as_they_are():
    def fails(a, b, x):
        if math.isfinite(a) and x > 3:
            raise ValueError("no licence")
        return a * b * x

    with pytest.raises(ValueError, match=r"the function of f raised ValueError \(no licence\) when called with"):
        ep.infer(curve(fails), rng=0)


def test_arguments_are_put_in_words_for_errors_only(monkeypatch):
    """This took 50 of the 57 microseconds of a call."""
    monkeypatch.setattr("meanmap.ep.calls.in_words", lambda *_: pytest.fail("words were made"))
    factor: Any = curve(lambda a, b, x: math.hypot(a, b) * x).factors[0]
    np.testing.assert_allclose(evaluated(factor, [np.full(3, value) for value in (3.0, 4.0, 2.0)]), 10.0)
