"""Laws of effects that are no Normals, beside exact posteriors on a grid."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import fit, shapes
from meanmap.ep.weighted_draws import Weighted


def exact(x, y, family, wide=2.5):
    """Mean, sd and ends of 95% of the slope, and of the predictor at the largest x, on a grid."""
    z = (x - x.mean()) / x.std()
    centre = np.log((y.mean() + 1e-3) / 1) if family == "poisson" else 0.0
    # Where a single row is an event the constant is far below that of the prior.
    constant = np.linspace(centre - 30, centre + 15, 450)[:, None]
    slope = np.linspace(-9, 9, 500) * wide / 2.5
    height = -((constant - centre) ** 2) / 12.5 - (slope / wide) ** 2 / 2
    for value, count in zip(*np.unique(np.column_stack([z, y]), axis=0, return_counts=True), strict=True):
        eta = constant + slope * value[0]
        one = value[1] * eta - (np.logaddexp(0, eta) if family == "bernoulli" else np.exp(eta))
        height = height + count * one
    share = np.exp(height - height.max()).ravel()
    share /= share.sum()
    found = []
    for values in (np.broadcast_to(slope / x.std(), height.shape), constant + slope * z.max()):
        order = np.argsort(values.ravel())
        reached, mean = np.cumsum(share[order]), share @ values.ravel()
        ends = values.ravel()[order][np.searchsorted(reached, [0.025, 0.975])]
        found.append([mean, np.sqrt(share @ (values.ravel() - mean) ** 2), *ends])
    return np.array(found)


def rare(seed, family):
    """Two rows of thirty at a level that knows one outcome."""
    rng = np.random.default_rng(seed)
    x = (np.arange(30) >= 28) * 1.0
    return x, np.r_[rng.integers(2, size=28), 1, 1] if family == "bernoulli" else np.r_[rng.poisson(1, size=28), 0, 0]


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
@pytest.mark.parametrize("seed", [10, 11])
def test_a_rare_level_that_separates_has_a_skewed_law(family, seed):
    """Ends were off by .4 to .6 standard deviations, and one of them on the other side of 0, "converged"."""
    x, y = rare(seed, family)
    found = fit("y ~ x", {"x": x, "y": y}, family)
    slope, top = exact(x, y, family)
    row = found.to_frame().loc["x"].to_numpy()
    np.testing.assert_allclose(row[0], slope[0], atol=0.06 * slope[1])
    np.testing.assert_allclose(row[1], slope[1], rtol=0.05)
    np.testing.assert_allclose(row[2:], slope[2:], atol=0.12 * slope[1])
    plain = found.shared.plain[1]
    middle = found.model.nodes[0].settled.joint.mean[1] / x.std()
    assert np.abs(middle + np.array([-1.96, 1.96]) * plain - slope[2:]).max() > 0.4 * slope[1]
    assert found.report.status == "converged"
    assert [note[:16] for note in found.report.notes] == ["'x' separates th"]
    # What is asked otherwise has the same shape: draws, moments, contrasts of labels, predictions.
    drawn = found.draws(40_000, rng=0)["x"]
    np.testing.assert_allclose(drawn.quantile([0.025, 0.975]), row[2:], atol=0.06 * slope[1])
    np.testing.assert_allclose([found.mean[1], found.covariance[1, 1] ** 0.5], row[:2])
    labelled = fit("y ~ x", {"x": np.where(x, "b", "a"), "y": y}, family)
    contrast = -labelled.contrasts("x").loc["a - b"].to_numpy()
    np.testing.assert_allclose(contrast[[0, 3, 2]], row[[0, 2, 3]], atol=0.01 * slope[1])
    ends = found.predict({"x": [1.0, 0.0, 1.0]})[["low", "high"]].to_numpy()
    np.testing.assert_allclose(ends[0], ends[2])
    of_eta = np.log(ends[0] / (1 - ends[0])) if family == "bernoulli" else np.log(ends[0])
    np.testing.assert_allclose(of_eta, top[2:], atol=0.15 * top[1])


@pytest.mark.parametrize("seed", [20, 21])
@pytest.mark.parametrize("place", ["the largest x", "anywhere"])
def test_one_event_in_many_rows(seed, place):
    """Ends were off by .13 to .3 standard deviations, and half of the reports said nothing."""
    x = np.random.default_rng(seed).normal(size=300)
    y = np.zeros(300)
    y[x.argmax() if place == "the largest x" else 7] = 1
    slope, _ = exact(x, y, "bernoulli")
    found = fit("y ~ x", {"x": x, "y": y}, "bernoulli")
    row = found.to_frame().loc["x"].to_numpy()
    np.testing.assert_allclose(row[1], slope[1], rtol=0.01)
    np.testing.assert_allclose(row[[0, 2, 3]], slope[[0, 2, 3]], atol=0.03 * slope[1])
    assert found.report.status == "converged"


def test_a_law_far_from_the_joint_gaussian_is_found_by_runs_or_named(monkeypatch):
    x = np.random.default_rng(4).normal(size=50)
    data, priors = {"x": x, "y": (x > 0.1) * 1.0}, {"x": (0.0, 100.0)}
    found = fit("y ~ x", data, "bernoulli", priors=priors)
    slope, _ = exact(x, data["y"], "bernoulli", 100.0 * x.std())
    row = found.to_frame().loc["x"].to_numpy()
    # The joint Gaussian has .6 of the standard deviation.
    np.testing.assert_allclose(row, slope, atol=0.05 * slope[1])
    assert found.report.status == "converged"
    monkeypatch.setattr(shapes, "_HELD_ROWS", 0)
    found = fit("y ~ x", data, "bernoulli", priors=priors)
    np.testing.assert_allclose(found.to_frame().loc["x"].to_numpy()[:2], slope[:2], rtol=0.2)
    assert found.report.status == "converged, but standard deviations may be wrong"
    assert "'x' (the upper tail is longer)" in found.report.notes[-1]


def test_reflected_labels_have_reflected_laws():
    x, y = rare(12, "bernoulli")
    one, other = (fit("y ~ x", {"x": x, "y": y if up else 1 - y}, "bernoulli").to_frame() for up in (True, False))
    np.testing.assert_allclose(one["low"], -other["high"], atol=0.01 * one["sd"].max())
    np.testing.assert_allclose(one["sd"], other["sd"], rtol=0.01)


def test_weighted_draws_move_means_beyond_chance():
    """A coefficient within mothers of one or two labels was .16 standard deviations off, and draws knew."""
    half = np.random.default_rng(0).normal(size=(100, 2))
    draws = 3 + 2 * np.concatenate([half, -half])
    means, sds, nothing = np.full(2, 3.0), np.full(2, 2.0), np.zeros(2)
    # Weights exp(.2 z) of a standard Normal z move its mean by .2; the second effect is independent of the first.
    judged = Weighted(draws, 0.2 * (draws[:, 0] - 3) / 2)
    first, second = shapes._moved(judged, np.eye(2), means, sds, nothing)
    assert first == pytest.approx(0.2, abs=0.05)
    assert second == 0
    np.testing.assert_array_equal(shapes._moved(judged, np.eye(2), means, sds, np.array([first, 0.0])), 0)
    alike = Weighted(draws, 0.2 * np.random.default_rng(1).normal(size=200))
    np.testing.assert_array_equal(shapes._moved(alike, np.eye(2), means, sds, nothing), 0)
    np.testing.assert_array_equal(shapes._moved(None, np.eye(2), means, sds, nothing), 0)


@pytest.mark.parametrize(("family", "rows"), [("poisson", 80_000), ("bernoulli", 16_000)])
def test_levels_with_few_events_in_many_rows_have_their_own_laws(family, rows):
    """Each level is independent of the others. From 40,000 rows on, lower ends were off by .4 sd, "converged"."""
    rng = np.random.default_rng([rows, 3])
    level, y = np.arange(rows) % 6, np.zeros(rows, int)
    y[rng.choice(rows, 14, replace=False)] = 1
    found = fit("y ~ 0 + C(level)", {"y": y, "level": level}, family).to_frame(0.9)
    middle = np.log(y.mean()) if family == "poisson" else 0.0
    eta = np.linspace(np.log(y.mean()) - 14, np.log(y.mean()) + 6, 40_001)
    for at, row in enumerate(found.itertuples()):
        events, count = y[level == at].sum(), (level == at).sum()
        loss = np.exp(eta) if family == "poisson" else np.logaddexp(0, eta)
        height = events * eta - count * loss - ((eta - middle) / 2.5) ** 2 / 2
        mass = np.exp(height - height.max())
        mass /= mass.sum()
        mean, below = mass @ eta, np.cumsum(mass)
        sd = np.sqrt(mass @ (eta - mean) ** 2)
        assert row.estimate == pytest.approx(mean, abs=0.03 * sd)
        assert row.sd == pytest.approx(sd, rel=0.04)
        for end, share in ((row.low, 0.05), (row.high, 0.95)):
            assert end == pytest.approx(eta[np.searchsorted(below, share)], abs=0.08 * sd)
