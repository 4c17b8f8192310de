"""Which way to messages is chosen for functions on the host, by functions whose seconds are slept."""

import time

import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.calling import as_now
from meanmap.ep.inference import cheapest
from meanmap.ep.learned import Learned


def plate(rows, names="abc"):
    return [ep.Variable(name, ep.Normal(0.0, 1.0), plate=rows) for name in names]


def choice(function, rows, names="abc", **settings):
    """The kind of oracle, and the words, for a log density of some numbers in each row."""
    factor = ep.Density(function, *plate(rows, names), name="f", **settings)
    oracle, told = cheapest.cheapest(as_now(factor, 1))
    return type(oracle), told


def sleeping(seconds):
    def density(*z):
        time.sleep(seconds)
        return -float(np.hypot(1.0, z[0]))

    return density


@pytest.mark.parametrize("rows", [1, 100, 100_000])
def test_a_function_of_a_microsecond_is_never_learned(rows):
    kind, told = choice(lambda a, b, c: -np.abs(np.asarray(a) + b - c), rows, vectorised=True)
    assert kind is ep.ImportanceSampling
    assert told.startswith("sampling, ")


@pytest.mark.parametrize("rows", [1, 1000])
def test_a_function_of_a_second_is_always_learned(rows):
    kind, told = choice(sleeping(1.0), rows)
    assert kind is Learned
    assert told == "learning, 1 s per evaluation, 10,000 for each message asked"


@pytest.mark.parametrize(("rows", "kind"), [(20, ep.ImportanceSampling), (1000, Learned)])
def test_between_these_it_is_learned_where_many_messages_are_expected(rows, kind):
    assert choice(sleeping(1e-3), rows)[0] is kind


def test_one_and_two_numbers_have_tables_however_long_it_takes():
    for names in ("a", "ab"):
        assert choice(sleeping(1.0), 1000, names) == (ep.Quadrature, "a table of its values")


def test_a_function_of_arrays_is_timed_by_the_point():
    def density(a, b, c):
        time.sleep(1e-3 * len(a))
        return -np.hypot(a, b) - c**2

    factor = as_now(ep.Density(density, *plate(5), vectorised=True), 1)
    assert 0.9e-3 < cheapest.seconds_each(factor) < 2e-3
    at_once = as_now(ep.Density(lambda a, b, c: time.sleep(0.01) or -np.hypot(a, b), *plate(5), vectorised=True), 1)
    assert cheapest.seconds_each(at_once) < 2e-4


def test_values_of_arguments_are_those_that_functions_take():
    got = []
    rate, share = ep.Variable("r", ep.Gamma(3.0, 1.0), plate=2), ep.Variable("p", ep.Beta, plate=2)

    def density(r, p, z, x):
        got.append((r, p, z, x))
        return -float(np.hypot(r, p))

    factor = ep.Density(density, rate, share, ep.Variable("z", ep.Normal, plate=2), [7.0, 8.0], name="f")
    got.clear()
    cheapest.seconds_each(as_now(factor, 1))
    assert set(got) == {(3.0, 0.5, 0.0, 7.0)}


def test_vectors_are_sampled_and_functions_that_fail_are_left_to_the_run():
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    factor = as_now(ep.Density(lambda w: -float(np.abs(w).sum()), w, name="f"), 1)
    assert (
        cheapest.cheapest(factor)[1] == "sampling, as messages of vectors are learned only where ep.Learned() is given"
    )

    def fails(a, b, c):
        raise ValueError("no licence")

    with pytest.raises(ValueError, match="no licence"):
        ep.infer(ep.FactorGraph(ep.Density(fails, *plate(2), name="f")))


def test_the_report_says_what_was_chosen_and_evaluations_of_timing_are_counted():
    points = 0

    def density(z):
        nonlocal points
        points += len(z)
        return -np.hypot(1.0, z)

    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    model = ep.FactorGraph(ep.Density(density, z, vectorised=True, name="d"))
    points = 0
    report = ep.infer(model).report
    assert report.choices == {"d: messages by": "a table of its values"}
    assert "  d: messages by a table of its values" in str(report).splitlines()
    assert report.counts["d: evaluations of its function"] == points
    # What the user chose is not said again, and compiled functions are not timed.
    assert not ep.infer(model, ep.Quadrature()).report.choices


def test_what_was_learned_goes_on_with_the_oracles_of_the_posterior(monkeypatch):
    monkeypatch.setattr(cheapest, "seconds_each", lambda factor: 1.0)
    monkeypatch.setattr("meanmap.ep.learned.Learned", lambda: Learned(ep.ImportanceSampling(500), initial=40))
    a, b, c = plate(60)
    y = np.linspace(-1, 1, 60)
    factor = ep.Density(
        lambda a, b, c, y: -0.5 * (np.asarray(a) + np.tanh(b) + c - y) ** 2, a, b, c, y, vectorised=True, name="f"
    )
    model = ep.FactorGraph(factor)
    first = ep.infer(model, rng=0)
    assert first.report.choices["f: messages by"].startswith("learning, 1 s per evaluation")
    assert isinstance(first.oracles["f"], Learned)
    second = ep.infer(model, first.oracles, rng=0)
    asked = "f: asked of the oracle"
    assert second.report.counts[asked] < first.report.counts[asked] / 2
    assert not second.report.choices


def ridge(split):
    """One row of tanh(5 (a + b)): a function of two numbers, or of their sum; evaluations, and the posterior."""
    a, b = plate(2, "ab")
    points, s, x = 0, ep.Variable("s", ep.Normal, plate=2), ep.Variable("x", ep.Normal, plate=2)

    def steep(*z):
        nonlocal points
        points += len(z[0])
        return np.tanh(5 * sum(z))

    factors = [ep.Sum(a, b, out=s), ep.BlackBox(steep, s, x, vectorised=True, name="f")]
    factors = factors if split else [ep.BlackBox(steep, a, b, x, vectorised=True, name="f")]
    post = ep.infer(ep.FactorGraph(*factors, ep.Gaussian(x, precision=10.0, observed=[0.3, -0.8])))
    return points / 2, post


@pytest.mark.slow
def test_a_function_of_two_numbers_that_takes_many_evaluations_is_named_with_what_to_type():
    many, whole = ridge(split=False)
    few, split = ridge(split=True)
    (note,) = [note for note in whole.report.notes if "table of its values took" in note]
    assert note.startswith("f: the table")
    assert "ep.Sum(a, b, out=s, weights=...)" in note
    assert many > 10 * few
    assert not any("table of its values" in note for note in split.report.notes)
    # What to type gives the same answer.
    np.testing.assert_allclose(split["a"].mean(), whole["a"].mean(), atol=1e-3)
    np.testing.assert_allclose(split["a"].sd(), whole["a"].sd(), rtol=1e-3)


def test_a_smooth_function_of_two_numbers_needs_no_note():
    a, b = plate(1, "ab")
    factor = ep.Density(lambda a, b: -(np.asarray(a) ** 2) + np.sin(b), a, b, vectorised=True, name="f")
    report = ep.infer(ep.FactorGraph(factor)).report
    assert 100 < report.counts["f: evaluations of its function"] < 1500
    assert not report.notes


def test_an_interrupted_call_decides_nothing():
    """The first call with 16 points is interrupted, as by another program."""
    interruptions = iter([0.05])

    def density(a, b, c):
        if len(a) == 16:
            time.sleep(next(interruptions, 0.0))
        return -np.abs(a + b - c)

    kind, told = choice(density, 100, vectorised=True)
    assert kind is ep.ImportanceSampling, told
