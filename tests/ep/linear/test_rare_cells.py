"""Predictions at a label that separates, and in small groups, beside a grid of the exact posterior."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, gammaln, logsumexp

pytest.importorskip("formulae")

import meanmap as mm

T = np.linspace(-6, 6, 61)
NORMAL = stats.norm.logpdf(T) - logsumexp(stats.norm.logpdf(T))
PRIORS = {"Intercept": (0.0, 2.0), "f[b]": (0.0, 8.0)}


def table(family, seed, each=3, groups=16):
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(groups), each)
    rare = rng.random(len(g)) < 0.08
    rare[:2] = False, True
    eta = (-1.0 if family == "poisson" else 0.3) + 0.8 * rng.normal(size=groups)[g]
    y = rng.poisson(np.exp(eta)) if family == "poisson" else (rng.random(len(g)) < expit(eta)).astype(int)
    y[rare] = 0
    return pd.DataFrame({"y": y, "f": np.where(rare, "b", "a"), "g": [f"g{at}" for at in g]})


def exact(frame, family, at):
    """Posterior means of the expected response in all rows, and the probabilities that it is below `at` (n, ends)."""
    y, rare = frame["y"].to_numpy(), (frame["f"] == "b").to_numpy()
    code, count = pd.factorize(frame["g"])[0], frame["g"].nunique()
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    link = np.exp if family == "poisson" else expit
    logs, means, below = [], [], []
    grids = np.linspace(-3.5, 2.5, 25), np.linspace(-30, 4, 69), np.linspace(0.05, 4.0, 16)
    with np.errstate(divide="ignore"):
        ends = np.log(at) if family == "poisson" else np.log(at / (1 - at))
    for a, b, sd in product(*grids):
        fixed = a + b * rare
        eta = fixed[:, None] + sd * T
        rate = np.logaddexp(0, eta) if family == "bernoulli" else np.exp(eta) + gammaln(y + 1)[:, None]
        logs_u = NORMAL + np.add.reduceat(y[:, None] * eta - rate, starts)
        of_groups = logsumexp(logs_u, axis=1)
        masses = np.exp(logs_u - of_groups[:, None])
        prior = sum(stats.norm.logpdf(value, *PRIORS[name]) for value, name in ((a, "Intercept"), (b, "f[b]")))
        logs.append(of_groups.sum() + prior + stats.t.logpdf(sd / 2.5, 3))
        if logs[-1] < max(logs) - 14:
            means.append(np.zeros(len(y)))
            below.append(np.zeros(at.shape))
            continue
        means.append((masses[code] * link(eta)).sum(1))
        reached = np.cumsum(masses, axis=1) - masses / 2
        places = (ends - fixed[:, None]) / sd
        below.append(np.stack([np.interp(each, T, own, 0, 1) for each, own in zip(places, reached[code], strict=True)]))
    share = np.exp(np.array(logs) - logsumexp(logs))
    assert count == len(starts)
    return share @ np.array(means), np.tensordot(share, np.array(below), 1)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "seed"), [("poisson", 1), ("poisson", 2), ("bernoulli", 3)])
def test_expected_responses_at_a_label_without_events_have_their_means_and_ends(family, seed):
    frame = table(family, seed)
    found = mm.fit("y ~ f + (1 | g)", frame, family=family, priors=PRIORS)
    told = found.predict()
    drawn = found.expected(draws=4000, rng=0)
    means, below = exact(frame, family, told[["low", "high"]].to_numpy())
    sds = told["sd"].to_numpy()
    assert np.abs(told["estimate"] - means).max() < 0.2 * sds.max()
    assert (np.abs(told["estimate"] - means) < 0.2 * sds).all()
    assert told["estimate"].sum() == pytest.approx(means.sum(), rel=0.03)
    assert drawn.mean(0).sum() == pytest.approx(means.sum(), rel=0.05)
    assert np.abs(below[:, 1] - 0.975).max() < 0.015
    assert np.abs(below[:, 0] - 0.025).max() < 0.03


def test_expected_responses_add_up_to_what_was_seen_and_draws_agree_with_them():
    """The score equation of the intercept, but for its prior; before, sums were up to 1e30."""
    rng = np.random.default_rng(97054)
    g = np.repeat(np.arange(20), 15)
    rare = rng.random(300) < 0.02
    rare[:2] = False, True
    y = rng.poisson(np.exp(0.8 * rng.normal(size=20)[g]))
    y[rare] = 0
    frame = pd.DataFrame({"y": y, "f": np.where(rare, "b", "a"), "g": [f"g{at}" for at in g]})
    found = mm.fit("y ~ f + (1 | g)", frame, family="poisson")
    told, drawn = found.predict(), found.expected(draws=2000, rng=0)
    assert told["estimate"].sum() == pytest.approx(y.sum(), rel=0.02)
    assert drawn.mean(0).sum() == pytest.approx(y.sum(), rel=0.03)
    assert (np.abs(np.log(told["high"][rare] / np.quantile(drawn[:, rare], 0.975, axis=0))) < 0.5).all()
    assert found.predict(frame[rare])["high"].tolist() == pytest.approx(told["high"][rare].tolist())


@pytest.mark.parametrize("family", ["poisson", "bernoulli", "gamma", "t", "negativebinomial"])
def test_a_factor_of_one_group_is_fitted_with_a_note(family):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=40), "g": "a", "h": np.arange(40) % 5})
    frame["y"] = rng.poisson(1.0, 40).clip(0, 1) if family == "bernoulli" else rng.poisson(3.0, 40)
    frame["y"] += family in ("gamma", "t")
    for formula in ("y ~ x + (1 | g)", "y ~ x + (1 | g) + (1 | h)"):
        found = mm.fit(formula, frame, family=family)
        assert any("'g' has one group" in note for note in found.report.notes)
        assert np.isfinite(found.to_frame().to_numpy()).all()
