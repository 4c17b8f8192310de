"""Ordered labels by formula: thresholds are integrated, as long chains of draws and reversed labels say."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from scipy.special import expit

pytest.importorskip("formulae")

from meanmap.core.errors import ParameterError
from meanmap.ep.linear import fit


def table(seed, rows=60, groups=10):
    rng = np.random.default_rng([seed, rows])
    g, x = np.arange(rows) % groups, 5 + 2 * rng.normal(size=rows)
    latent = 0.6 * (x - 5) + rng.normal(size=groups)[g] + rng.logistic(size=rows)
    return pd.DataFrame({"x": x, "g": g, "y": np.digitize(latent, [-1.5, -0.3, 1.2])})


def log_posterior(theta, frame, grouped):
    """Of chains θ (chains, d): intercept and slope at the mean of x, logs of gaps, then log sd and effects in sds."""
    x = (frame.x - frame.x.mean()).to_numpy()
    middle, slope, gaps = theta[:, :1], theta[:, 1:2], theta[:, 2:4]
    cuts = np.concatenate([0 * middle, np.cumsum(np.exp(gaps), axis=1)], axis=1)
    cuts = cuts - cuts.mean(1, keepdims=True) - middle
    eta = slope * x
    found = scipy.stats.norm.logpdf(middle[:, 0], 0, 2.5)
    found += scipy.stats.norm.logpdf(slope[:, 0], 0, 2.5 / frame.x.std(ddof=0))
    logs = [gaps]
    if grouped:
        logs.append(theta[:, 4:5])
        eta = eta + (np.exp(theta[:, 4:5]) * theta[:, 5:])[:, frame.g]
        found += scipy.stats.norm.logpdf(theta[:, 5:]).sum(1)
    for log in logs:
        found += (scipy.stats.t.logpdf(np.exp(log), 3, scale=2.5) + log).sum(1)
    below = expit(cuts[:, :, None] - eta[:, None, :])
    ends = np.concatenate([0 * below[:, :1], below, 0 * below[:, :1] + 1], axis=1)
    mass = np.take_along_axis(np.diff(ends, axis=1), np.broadcast_to(frame.y.to_numpy(), (len(theta), 1, len(x))), 1)
    return found + np.log(np.maximum(mass[:, 0], 1e-300)).sum(1)


def by_chains(frame, grouped, chains, steps):
    """Differential evolution between chains (ter Braak 2006), after a third of the steps: thresholds, slope, (sd)."""
    rng = np.random.default_rng(1)
    size = 5 + frame.g.nunique() if grouped else 4
    theta = 0.3 * rng.normal(size=(chains, size))
    height, kept = log_posterior(theta, frame, grouped), []
    for step in range(steps):
        half = np.arange(chains) % 2 == step % 2  # pairs come from the other half, which stays
        others = np.flatnonzero(~half)
        one, two = (others[rng.integers(0, len(others), half.sum())] for _ in range(2))
        length = 1.0 if step % 20 < 2 else 2.38 / np.sqrt(2 * size)
        moved = theta[half] + length * (theta[one] - theta[two]) + 1e-4 * rng.normal(size=(half.sum(), size))
        new = log_posterior(moved, frame, grouped)
        taken = np.log(rng.random(half.sum())) < new - height[half]
        at = np.flatnonzero(half)[taken]
        theta[at], height[at] = moved[taken], new[taken]
        if step > steps / 3 and step % 4 == 0:
            kept.append(theta.copy())
    drawn = np.concatenate(kept)
    cuts = np.concatenate([np.zeros((len(drawn), 1)), np.cumsum(np.exp(drawn[:, 2:4]), axis=1)], axis=1)
    at_zero = drawn[:, :1] - drawn[:, 1:2] * frame.x.mean()
    parts = [cuts - cuts.mean(1, keepdims=True) - at_zero, drawn[:, 1:2]]
    return np.concatenate([*parts, np.exp(drawn[:, 4:5])] if grouped else parts, axis=1)


@pytest.mark.parametrize("seed", [1, 2])
def test_sixty_rows_against_long_chains(seed):
    """With cutpoints that are held fixed the sds of intercepts are .8 of these."""
    frame = table(seed)
    found = fit("y ~ x", frame, "cumulative").to_frame()
    drawn = by_chains(frame, False, 400, 1500)
    assert list(found.index) == ["threshold[0|1]", "threshold[1|2]", "threshold[2|3]", "x"]
    np.testing.assert_allclose((found.estimate - drawn.mean(0)) / drawn.std(0), 0, atol=0.05)
    np.testing.assert_allclose(found.sd / drawn.std(0), 1, atol=0.03)
    np.testing.assert_allclose(
        (found[["low", "high"]] - np.quantile(drawn, [0.025, 0.975], axis=0).T).T / found.sd, 0, atol=0.12
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 4])
def test_groups_of_six_against_long_chains(seed):
    frame = table(seed)
    found = fit("y ~ x + (1 | g)", frame, "cumulative").to_frame()
    drawn = by_chains(frame, True, 600, 12_000)
    np.testing.assert_allclose((found.estimate - drawn.mean(0)) / drawn.std(0), 0, atol=0.08)
    np.testing.assert_allclose(found.sd / drawn.std(0), 1, atol=0.05)


def test_two_labels_are_a_logistic_regression():
    frame = table(5).assign(y=lambda f: (f.y > 1).astype(int))
    two, one = (fit("y ~ x + (1 | g)", frame, family) for family in ("cumulative", "bernoulli"))
    turned = one.to_frame()
    turned.loc["Intercept"] = [-turned.estimate.iloc[0], turned.sd.iloc[0], -turned.high.iloc[0], -turned.low.iloc[0]]
    np.testing.assert_allclose(two.to_frame(), turned, rtol=1e-6, atol=1e-8)
    assert two.log_evidence == pytest.approx(one.log_evidence)
    np.testing.assert_allclose(
        two.predict().xs(1, level="y")[["estimate", "sd"]], one.predict()[["estimate", "sd"]], rtol=1e-5
    )


def test_names_order_and_containers_change_nothing_and_reversed_labels_turn_all_around():
    frame = table(6, 80)
    words = np.array(["bad", "ok", "good", "best"])
    named = pd.Categorical(words[frame.y], words, ordered=True)
    found = fit("y ~ x", frame, "cumulative")
    plain = found.to_frame()
    others = {
        "words": frame.assign(y=named),
        "numbers apart": frame.assign(y=np.array([-3.0, 0.5, 4.0, 100.0])[frame.y]),
        "floats backwards": frame[::-1].astype({"y": "float32"}),
        "a mapping": {"x": frame.x.to_numpy(), "y": named},
        "polars": pl.DataFrame({"x": frame.x.to_numpy(), "y": pl.Series(words[frame.y], dtype=pl.Enum(words))}),
    }
    for name, other in others.items():
        np.testing.assert_allclose(fit("y ~ x", other, "cumulative").to_frame(), plain, rtol=1e-5, err_msg=name)
    turned = fit("y ~ x", frame.assign(y=3 - frame.y), "cumulative").to_frame()
    np.testing.assert_allclose(turned.estimate, -plain.estimate.iloc[[2, 1, 0, 3]], rtol=1e-4)
    np.testing.assert_allclose(turned.sd, plain.sd.iloc[[2, 1, 0, 3]], rtol=1e-3)
    units = fit("y ~ x", frame.assign(x=1000 * frame.x + 7), "cumulative").to_frame()
    np.testing.assert_allclose(units.sd.iloc[3], plain.sd.iloc[3] / 1000, rtol=1e-6)
    shown = fit("y ~ x", frame.assign(y=named), "cumulative")
    assert "bad < ok < good < best" in str(shown)
    assert shown.levels == tuple(words)
    assert list(shown.to_frame().index) == ["threshold[bad|ok]", "threshold[ok|good]", "threshold[good|best]", "x"]


def test_predictions_draws_and_responses_of_ordered_labels():
    frame = table(7, 80)
    words = np.array(["bad", "ok", "good", "best"])
    found = fit("y ~ x + (1 | g)", frame.assign(y=pd.Categorical(words[frame.y], words, ordered=True)), "cumulative")
    chances = found.predict(pd.DataFrame({"x": [3.0, 8.0], "g": [0, 99]}, index=["a", "b"]))
    wide = chances["estimate"].unstack()
    assert list(wide.columns) == list(words)
    assert list(wide.index) == ["a", "b"]
    np.testing.assert_allclose(wide.to_numpy().sum(1), 1, rtol=1e-6)
    assert wide.loc["b", "best"] > wide.loc["a", "best"]
    assert ((chances.low < chances.estimate) & (chances.estimate < chances.high)).all()
    drawn = found.simulate(pd.DataFrame({"x": [3.0, 8.0], "g": [0, 99]}), draws=4000, rng=0)
    for at, row in enumerate("ab"):
        share = (drawn[:, at, None] == words).mean(0)
        np.testing.assert_allclose(share, wide.loc[row], atol=4 * 0.5 / np.sqrt(4000))
    posterior = found.draws(20_000, rng=0)
    assert list(posterior.columns) == list(found.to_frame().index)
    assert (np.diff(posterior.iloc[:, :3]) > 0).all()
    error = found.to_frame().sd.iloc[:4] / np.sqrt(20_000)
    assert (abs(posterior.mean().iloc[:4] - found.to_frame().estimate.iloc[:4]) < 4 * error).all()
    out, shares = found.leave_one_out(), np.bincount(frame.y) / 80
    assert np.log(shares) @ shares < out.mean() < 0
    # Quantiles of a probability that is not monotone in the predictor, by draws.
    flat = fit("y ~ x", frame, "cumulative")
    at = flat.draws(50_000, rng=1).to_numpy()
    middle = expit(at[:, 1] - 5 * at[:, 3]) - expit(at[:, 0] - 5 * at[:, 3])
    shown = flat.predict({"x": [5.0]}).loc[(0, 1)]
    np.testing.assert_allclose(shown[["low", "high"]], np.quantile(middle, [0.025, 0.975]), atol=0.01)
    np.testing.assert_allclose(shown[["estimate", "sd"]], [middle.mean(), middle.std()], rtol=0.02)


@pytest.mark.parametrize(
    ("change", "formula", "words"),
    [
        (lambda f: f.assign(y=f.y.map(str)), "y ~ x", "labels without an order; expected numbers, or"),
        (lambda f: f.assign(y=f.y.map(str).astype("category")), "y ~ x", r"categories=\[lowest, ..., highest\]"),
        (lambda f: f.assign(y=f.x), "y ~ x", "has 60 levels; family='cumulative' expects 2 to 20"),
        (lambda f: f.assign(y=1), "y ~ x", "has 1 levels"),
        (lambda f: f, "y ~ 0 + x", "has no intercept; thresholds take its place"),
    ],
)
def test_what_has_no_order_is_refused(change, formula, words):
    with pytest.raises(ParameterError, match=words):
        fit(formula, change(table(8)), "cumulative")
