"""Functions of which values are learned instead of messages: beliefs as by sampling, at few evaluations."""

import contextlib
import time

import numpy as np
import pytest

from meanmap import ep
from meanmap.core.errors import InputError

ROWS, POINTS, NOISE = 24, 500, 0.3
shift = 0.0


class Counted:
    """A function that counts its evaluations."""

    def __init__(self, function):
        self.function, self.points = function, 0

    def __call__(self, *values):
        self.points += len(values[-1])
        return self.function(*values)


def decay(a, b, t):
    return a + 0.3 * np.sin(b) - 0.2 * t * np.exp(0.3 * b)


def moved(a, b, t):
    return a + 0.1 * b + t + shift


def model_of(function, seed, truth=None):
    """Rows with a mean in common, and a time each."""
    rng = np.random.default_rng([seed, 3])
    a, b, t = rng.normal() + 0.5 * rng.normal(size=ROWS), rng.normal(size=ROWS), rng.uniform(0, 4, ROWS)
    plain = function.function if isinstance(function, Counted) else function
    y = (truth or plain)(a, b, t) + NOISE * rng.normal(size=ROWS)
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    one, two = ep.Variable("a", ep.Normal, plate=ROWS), ep.Variable("b", ep.Normal(0.0, 1.0), plate=ROWS)
    out = ep.Variable("out", ep.Normal, plate=ROWS)
    return ep.FactorGraph(
        ep.Gaussian(mu, one, precision=4.0),
        ep.BlackBox(function, one, two, t, out, vectorised=True, name="f"),
        ep.Gaussian(out, precision=NOISE**-2, observed=y),
    )


def model_of_three(function):
    a, b, c = (ep.Variable(name, ep.Normal(0.0, 1.0), plate=5) for name in "abc")
    out = ep.Variable("out", ep.Normal, plate=5)
    factor = ep.BlackBox(function, a, b, c, out, vectorised=True, name="f")
    return ep.FactorGraph(factor, ep.Gaussian(out, precision=4.0, observed=np.linspace(-1, 1, 5)))


def test_beliefs_are_those_of_sampling_and_evaluations_fall():
    counted, learned, shares = Counted(decay), ep.Learned(ep.ImportanceSampling(POINTS)), []
    for seed in range(3):
        model, points, posts = model_of(counted, seed), [], []
        for oracle in (ep.ImportanceSampling(POINTS), learned):
            counted.points = 0
            posts.append(ep.infer(model, oracle, rng=seed))
            points.append(counted.points)
        shares.append(points[1] / points[0])
        exact, post = posts
        for name in ("mu", "a", "b"):  # by the same random numbers
            off = np.abs(post[name].mean() - exact[name].mean()) / exact[name].sd()
            assert off.max() < 0.05
            np.testing.assert_allclose(post[name].sd(), exact[name].sd(), rtol=0.02)
        assert (post.doubt["f"] >= exact.doubt["f"] - 1e-3).all()
        (note,) = (note for note in post.report.notes if "points are learned ones" in note)
        assert "which is part of the doubt" in note
        assert post.log_evidence == pytest.approx(exact.log_evidence, abs=0.1)
    assert shares[0] < 0.1
    assert shares[1] < 0.02
    assert shares[2] < 0.01
    again = [ep.infer(model, ep.Learned(ep.ImportanceSampling(POINTS)), rng=0)["mu"].mean() for _ in range(2)]
    assert again[0] == again[1]


def changed_by_a_global():
    def change(value):
        globals()["shift"] = value

    return moved, change


def changed_by_a_closure():
    kept = 0.0

    def change(value):
        nonlocal kept
        kept = value

    return lambda a, b, t: a + 0.1 * b + t + kept, change


def changed_by_an_attribute():
    holder = Counted(None)

    def change(value):
        holder.points = value

    return lambda a, b, t: a + 0.1 * b + t + holder.points, change


def changed_by_a_file_in_one_place(tmp_path):
    """The first four points at which functions are looked at do not show it."""
    path = tmp_path / "shift.txt"

    def change(value):
        path.write_text(str(value))

    return lambda a, b, t: a + 0.1 * b + t + np.where(np.abs(b) > 1.8, float(path.read_text()), 0.0), change


@pytest.mark.parametrize("way", [changed_by_a_global, changed_by_a_closure, changed_by_an_attribute])
def test_a_function_that_changed_is_learned_anew(way):
    function, change = way()
    learned, model, found = ep.Learned(ep.ImportanceSampling(POINTS)), None, []
    try:
        for value in (0.0, 0.5, 0.0):
            change(value)
            model = model_of(function, 0, truth=lambda a, b, t: a + 0.1 * b + t)
            exact = ep.infer(model, ep.ImportanceSampling(POINTS), rng=0)["mu"].mean()
            found.append(ep.infer(model, learned, rng=0)["mu"].mean())
            assert found[-1] == pytest.approx(exact, abs=0.01)
    finally:
        change(0.0)
    assert abs(found[1] - found[0]) > 0.2


def test_a_function_that_changed_in_one_place_is_learned_anew(tmp_path):
    function, change = changed_by_a_file_in_one_place(tmp_path)
    learned = ep.Learned(ep.ImportanceSampling(POINTS))
    for value in (0.0, 3.0):
        change(value)
        model = model_of(function, 0, truth=lambda a, b, t: a + 0.1 * b + t)
        exact, post = (ep.infer(model, oracle, rng=0) for oracle in (ep.ImportanceSampling(POINTS), learned))
        off = np.abs(post["b"].mean() - exact["b"].mean()) / exact["b"].sd()
        assert off.max() < 0.15


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_error_and_an_interruption_leave_no_values_behind(error):
    batches = []

    def failing(a, b, t):
        if len(a) > 100:
            batches.append(len(a))
            if len(batches) == 2:
                raise error
        return decay(a, b, t)

    learned, model = ep.Learned(ep.ImportanceSampling(POINTS)), model_of(failing, 0, truth=decay)
    with contextlib.suppress(InputError):
        assert "interrupted" in ep.infer(model, learned, rng=0).report.status
    assert len(batches) == 2
    post, exact = (ep.infer(model, oracle, rng=0) for oracle in (learned, ep.ImportanceSampling(POINTS)))
    assert abs(post["mu"].mean() - exact["mu"].mean()) < 0.05 * exact["mu"].sd()


def test_two_factors_of_one_function_with_other_shapes_have_values_of_their_own():
    def total(u, v):
        u, v = np.atleast_1d(u), np.atleast_1d(v)
        return float(u.sum() - v.sum() ** 2)

    a, v = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("v", ep.MultivariateNormal.standard(2))
    one, two = (ep.Variable(name, ep.Normal) for name in ("one", "two"))
    model = ep.FactorGraph(
        ep.BlackBox(total, a, v, one, name="f"),
        ep.BlackBox(total, v, a, two, name="g"),
        ep.Gaussian(one, precision=4.0, observed=1.0),
        ep.Gaussian(two, precision=4.0, observed=-0.5),
    )
    post, exact = (
        ep.infer(model, oracle, rng=0)
        for oracle in (ep.Learned(ep.ImportanceSampling(1000)), ep.ImportanceSampling(1000))
    )
    assert sum("points are learned ones" in note for note in post.report.notes) == 2
    for name in ("a", "v"):
        np.testing.assert_allclose(post[name].mean(), exact[name].mean(), atol=0.15)


def test_a_function_with_noise_of_its_own_and_a_jumping_one_are_called():
    rng = np.random.default_rng(0)

    def rough(a, b, t):
        return a + 0.5 * np.sign(np.sin(400 * a)) * np.sign(np.sin(300 * b)) + 0.1 * t

    def noisy(rng, a, b, t):
        return a + 0.1 * b + 0.2 * rng.normal(size=len(a))

    learned, model = ep.Learned(ep.ImportanceSampling(POINTS)), model_of(rough, 0)
    post, exact = (ep.infer(model, oracle, rng=0, sweeps=6) for oracle in (learned, ep.ImportanceSampling(POINTS)))
    assert any("its values were not learned: polynomials of" in note for note in post.report.notes)
    assert abs(post["mu"].mean() - exact["mu"].mean()) < 0.01 * exact["mu"].sd()
    b, t, out = ep.Variable("b", ep.Normal(0.0, 1.0), plate=5), np.ones(5), ep.Variable("out", ep.Normal, plate=5)
    random = ep.FactorGraph(
        ep.BlackBox(noisy, ep.Variable("a", ep.Normal(0.0, 1.0), plate=5), b, t, out, random=True, vectorised=True),
        ep.Gaussian(out, precision=4.0, observed=rng.normal(size=5)),
    )
    post = ep.infer(random, learned, rng=0, sweeps=2)
    assert not any("learned ones" in note or "values were not" in note for note in post.report.notes)


def test_nothing_is_learned_without_audits_or_of_a_quick_function():
    counted = Counted(decay)
    model = model_of(counted, 0)
    counted.points = 0
    post = ep.infer(model, ep.Learned(ep.ImportanceSampling(POINTS), audit=0.0), rng=0, sweeps=2)
    assert not any("learned ones" in note for note in post.report.notes)
    far = ep.ImportanceSampling(POINTS, proposal=ep.Normal(0.0, 5.0))
    post = ep.infer(model, ep.Learned(far), rng=0, sweeps=1)
    assert not any("learned ones" in note for note in post.report.notes)
    post = ep.infer(model_of_three(lambda a, b, c: a + b * c), ep.Learned(), rng=0, sweeps=2)
    assert any("its values were not learned: calling it took only" in note for note in post.report.notes)


def test_a_slow_function_is_learned_by_default():
    def slow(a, b, c):
        time.sleep(2e-5 * len(a))
        return quick(a, b, c)

    def quick(a, b, c):
        return a + np.tanh(b) * c

    post = ep.infer(model_of_three(slow), ep.Learned(), rng=0)
    assert post.report.counts["f: evaluations of its function"] < 6000
    exact = ep.infer(model_of_three(quick), ep.ImportanceSampling(10_000), rng=0)
    np.testing.assert_allclose(post["a"].mean(), exact["a"].mean(), atol=0.05)
