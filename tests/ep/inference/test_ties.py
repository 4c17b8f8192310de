"""Separate beliefs about unknowns that the data tie together: said to be too narrow, and by how much."""

import math

import numpy as np
import pytest

from meanmap import ep
from meanmap.core import InputError
from meanmap.ep.piecewise.memory import memory_of


def teams(joint):
    """Twenty games of two against two among six players."""
    rng = np.random.default_rng(0)
    players = np.array([rng.choice(6, 4, replace=False) for _ in range(20)])
    margin = ep.Variable("margin", ep.Normal, plate=20)
    if joint:
        turn = np.zeros((20, 6))
        for column, sign in zip(players.T, (1, 1, -1, -1), strict=True):
            turn[np.arange(20), column] = sign
        skill = ep.Variable("skill", ep.MultivariateNormal(np.zeros(6), 4 * np.eye(6)))
        return ep.FactorGraph(ep.Dot(turn, skill, margin), ep.Interval(margin, 0.0, noise=1.0))
    skill = ep.Variable("skill", ep.Normal(np.zeros(6), 4.0))
    total = ep.Sum(*(skill[column] for column in players.T), out=margin, weights=(1, 1, -1, -1), precision=1.0)
    return ep.FactorGraph(total, ep.Interval(margin, 0.0, noise=0.0))


def test_teams_by_sums_share_a_belief_or_are_too_sure_and_say_by_how_much(monkeypatch):
    summed, together = ep.infer(teams(joint=False)), ep.infer(teams(joint=True))
    np.testing.assert_allclose(summed["skill"].sd(), np.sqrt(np.diag(together["skill"].cov())), rtol=1e-6)
    assert summed.log_evidence == pytest.approx(together.log_evidence, abs=1e-6)
    assert summed.report.notes == ()
    monkeypatch.setattr("meanmap.ep.inference.joined._LENGTH", 5)
    monkeypatch.setattr("meanmap.ep.inference.eliminated._LEFT", 0)
    apart = ep.infer(teams(joint=False))
    ratio = apart["skill"].sd() / np.sqrt(np.diag(together["skill"].cov()))
    assert ratio.min() < 0.6
    (note,) = [n for n in apart.report.notes if "separate beliefs" in n]
    assert "'skill' at [" in note
    assert f"about {ratio.min():.2g} of what they should be" in note
    assert "ep.Dot(X, w, z) for sums and differences" in note
    assert not any("separate beliefs" in n for n in together.report.notes)


@pytest.mark.parametrize("black_box", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_two_parameters_of_a_curve_are_named(black_box):
    x = np.linspace(0.05, 1, 12)
    y = 2 * x / (0.5 + x) + 0.1 * np.random.default_rng(0).normal(size=12)
    top, half = ep.Variable("top", ep.Normal(2.0, 1.0)), ep.Variable("half", ep.Normal(0.6, 0.01))
    if black_box:
        out = ep.Variable("out", ep.Normal, plate=12)
        model = ep.FactorGraph(
            ep.BlackBox(lambda t, h, x: t * x / (h + x), top, half, x, out),
            ep.Gaussian(out, observed=y, precision=100.0),
        )
    else:
        model = ep.FactorGraph(ep.Density(lambda t, h, x, y: -50 * (y - t * x / (h + x)) ** 2, top, half, x, y))
    post = ep.infer(model, ep.Quadrature(), sweeps=200)
    note = next(n for n in post.report.notes if "separate beliefs" in n)
    assert "'top' and 'half'" in note
    assert "of what they should be or less, as functions are evaluated only where these narrow beliefs are" in note
    # Beside the exact law, by a plain sum.
    t, h = (grid[..., None] for grid in np.meshgrid(np.linspace(1, 3, 300), np.linspace(0.2, 1.0, 300), indexing="ij"))
    log_law = -((t - 2) ** 2) / 2 - (h - 0.6) ** 2 / 0.02 - 50 * ((y - t * x / (h + x)) ** 2).sum(-1, keepdims=True)
    law = np.exp(log_law - log_law.max())
    law /= law.sum()
    ratios = [
        post[name].sd() / np.sqrt((law * (grid - (law * grid).sum()) ** 2).sum())
        for name, grid in (("top", t), ("half", h))
    ]
    said = float(note.split("about ")[1].split(" of")[0])
    assert said == pytest.approx(min(ratios), abs=0.1)
    assert min(ratios) < 0.7


def test_where_no_way_leads_back_nothing_is_said():
    z = ep.Variable("z", ep.Normal(np.zeros(12), 1.0))
    steps = np.arange(11)
    walk = ep.Sum(z[steps], out=z[steps + 1], precision=50.0)
    post = ep.infer(ep.FactorGraph(walk, ep.Gaussian(z, observed=np.ones(12))))
    assert post.report.converged
    assert post.report.notes == ()


@pytest.mark.parametrize(
    ("seed", "noise", "wide", "in_steps"),
    [
        (0, 0.5, True, False),
        (2, 1.0, True, False),
        (1, 0.5, False, False),
        pytest.param(0, 0.5, True, True, marks=pytest.mark.slow),
    ],
)
def test_a_chain_with_an_unknown_coefficient_is_too_wide_and_says_by_how_much(seed, noise, wide, in_steps):
    """An autoregression of 25 latent steps, "converged"; exact is a sum over the coefficient of closed forms."""
    rng, steps = np.random.default_rng(seed), 25
    states = np.zeros(steps)
    states[0] = rng.normal()
    for t in range(1, steps):
        states[t] = 0.7 * states[t - 1] + rng.normal()
    y = states + noise * rng.normal(size=steps)
    phi, z = ep.Variable("phi", ep.Normal(0.0, 1.0)), ep.Variable("z", ep.Normal(np.zeros(steps), 4.0))
    at = np.arange(steps - 1)
    if in_steps:  # coefficient and next state meet only by way of the product, which was not looked at
        product = ep.Variable("product", ep.Normal, plate=steps - 1)
        chain = ep.Product(phi, z[at], product), ep.Gaussian(product, z[at + 1])
    else:
        chain = (ep.Density(lambda p, a, b: -0.5 * (b - p * a) ** 2, phi, z[at], z[at + 1]),)
    post = ep.infer(ep.FactorGraph(*chain, ep.Gaussian(z, observed=y, precision=noise**-2)), sweeps=200)
    line, heights = np.linspace(-1.5, 2.5, 801), []
    for p in line:
        precision = np.diag(
            np.full(steps, 1 / 4 + noise**-2) + np.r_[np.full(steps - 1, p * p), 0] + np.r_[0, at * 0 + 1]
        )
        precision[at, at + 1] = precision[at + 1, at] = -p
        toward = y * noise**-2
        heights.append(
            toward @ np.linalg.solve(precision, toward) / 2 - np.linalg.slogdet(precision)[1] / 2 - p * p / 2
        )
    share = np.exp(np.array(heights) - max(heights))
    share /= share.sum()
    exact = np.sqrt(share @ (line - share @ line) ** 2)
    found = [note for note in post.report.notes if "comes out too large" in note]
    assert bool(found) == wide
    if wide:
        assert post.report.status == "converged, but standard deviations may be too large"
        assert "the standard deviation of 'phi'" in found[0]
        said = float(found[0].split("about ")[1].split(" times")[0])
        assert said == pytest.approx(post["phi"].sd() / exact, abs=0.08)


def doses(host, seed=4):
    """Patients whose greatest effect varies about a mean: nothing has both unknowns of the curve as arguments."""
    n = 6 if host else 30  # tables of two numbers for each row take long
    rng = np.random.default_rng(seed)
    dose = rng.choice([1.0, 2, 5, 10, 20], n)
    y = rng.normal(10, 2, n) * dose / (dose + 4) + rng.normal(0, 0.5, n)
    half, top = ep.Variable("half", ep.Gamma(2.0, 0.5)), ep.Variable("top", ep.Normal(10.0, 4.0))
    each, effect = ep.Variable("each", ep.Normal, plate=n), ep.Variable("effect", ep.Normal, plate=n)

    def curve(h, m, d):
        return m * d / (d + h)

    def on_host(h, m, d):
        return float(curve(h, m, d))

    model = ep.FactorGraph(
        ep.BlackBox(on_host if host else curve, half, each, dose, effect),
        ep.Gaussian(effect, observed=y, precision=4.0),
        ep.Gaussian(top, each, precision=0.25),
    )
    h, m = np.linspace(0.5, 15, 500)[:, None, None], np.linspace(6, 16, 400)[None, :, None]
    gain = dose / (dose + h)
    variance = 4 * gain**2 + 0.25
    log_law = (-((y - m * gain) ** 2) / variance / 2 - np.log(variance) / 2).sum(-1)
    log_law += np.log(h[..., 0]) - h[..., 0] / 2 - (m[..., 0] - 10) ** 2 / 8
    law = np.exp(log_law - log_law.max())
    return model, h[..., 0], law.sum(1, keepdims=True) / law.sum()


@pytest.mark.parametrize("host", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_unknowns_tied_by_a_plate_without_a_prior_of_its_own_are_named(host):
    """Half of the exact standard deviation, "converged", without a word."""
    model, h, law = doses(host)
    post = ep.infer(model)
    exact = np.sqrt((law * (h - (law * h).sum()) ** 2).sum())
    (note,) = (n for n in post.report.notes if "separate beliefs" in n)
    assert post.report.status == "converged, but standard deviations may be too small"
    assert "'half' and 'each' at [" in note if host else "'half' and 'top'" in note
    if not host:
        assert float(note.split("about ")[1].split(" of")[0]) == pytest.approx(post["half"].sd() / exact, abs=0.08)
        assert post["half"].sd() / exact < 0.7


def test_an_error_raised_after_the_last_sweep_is_the_users_own(monkeypatch, caplog):
    """It was a ValueError of the runtime, with a traceback printed first."""
    over = []

    def forget(factors, number):
        memory_of(number)._functions.clear()
        over.append(True)
        return ()

    def density(a, b):
        if over:
            raise RuntimeError("the solver failed")
        return -math.hypot(1.0, a - b)

    monkeypatch.setattr("meanmap.ep.inference.infer.rough", forget)
    a, b = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0))
    with pytest.raises(InputError, match=r"function of d raised RuntimeError.*the solver failed"):
        ep.infer(ep.FactorGraph(ep.Density(density, a, b, name="d")))
    assert not caplog.records
