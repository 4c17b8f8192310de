"""Joint draws of effects that all rows share, of groups, and of expected responses, beside exact posteriors."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm

pytest.importorskip("formulae")

from meanmap.core.errors import ParameterError
from meanmap.ep.linear import fit
from meanmap.io import posterior_draws
from tests.ep.linear.test_contrasts import by_group, dense, fixed, table_rows
from tests.ep.linear.test_fit import DATA

MANY = 20_000


def test_effects_and_expected_responses_have_the_exact_joint_covariance():
    """Sums of shared and group effects are more certain than each; all pairs beside dense algebra."""
    found = fit("y ~ x + k + (1 + x | g)", DATA)
    drawn, expected = found.draws(MANY, rng=0, groups=True), found.expected(draws=MANY, rng=0)
    names = ["x", *(f"{effect} | g[{group}]" for group in (0, 7) for effect in ("Intercept", "x"))]
    rows, prior = table_rows()
    shared, groups = np.zeros((5, 4)), np.zeros((5, 24))
    shared[0, 1] = 1
    groups[range(1, 5), [0, 1, 14, 15]] = 1
    here = fixed(DATA.x.to_numpy()[:3], DATA.k.to_numpy()[:3])[0]
    of_rows = by_group(np.zeros(3, int), np.column_stack([np.ones(3), DATA.x[:3]]))
    asked = np.concatenate([shared, here]), np.concatenate([groups, of_rows])
    mean, covariance = dense(found, rows, prior, asked)
    mean[5:] += DATA.y.mean()
    both = np.column_stack([drawn[names], expected[:, :3]])
    sds = np.sqrt(np.diag(covariance))
    assert (abs(both.mean(0) - mean) < 4.5 * sds / np.sqrt(MANY)).all()
    np.testing.assert_allclose(np.cov(both.T) / np.outer(sds, sds), covariance / np.outer(sds, sds), atol=0.04)
    assert expected[:, 0].std() < 0.5 * drawn["Intercept | g[0]"].std()
    # Row by row they are the same draws.
    by_hand = drawn["Intercept"] + drawn["Intercept | g[0]"]
    by_hand += (drawn["x"] + drawn["x | g[0]"]) * DATA.x[0]
    by_hand += sum(drawn[f"k[{label}]"] * (DATA.k[0] == label) for label in ("lo", "mid"))
    np.testing.assert_allclose(expected[:, 0], by_hand)
    pd.testing.assert_frame_equal(found.draws(50, rng=3, groups=True)[list(found.to_frame().index)], found.draws(50, 3))


def exact_labels(table: Any, b: Any, logs: Any) -> Any:
    """Mean and covariance of the intercept and the first two groups, and of the probability in the first, on grids."""
    total, firsts, seconds = (list[Any]() for _ in range(3))
    labels = table.groupby("g").b.agg(["sum", "size"]).to_numpy()
    for log in logs:
        u = np.exp(log) * np.linspace(-8, 8, 801)
        prior = norm.logpdf(u, 0, np.exp(log)) + np.log(u[1] - u[0])
        # (b, groups, u): the posterior of each group is independent given b and the sd.
        eta = b[:, None] + u
        kinds, place = np.unique(labels, axis=0, return_inverse=True)
        parts = np.stack([prior - s * np.logaddexp(0, -eta) - (n - s) * np.logaddexp(0, eta) for s, n in kinds], 1)
        masses: Any = logsumexp(parts, axis=2)
        shares = np.exp(parts - masses[..., None])[:, place.ravel()[:2]]
        height = masses[:, place.ravel()].sum(1) + norm.logpdf(b, 0, 2.5)
        height += -2 * np.log1p((np.exp(log) / 2.5) ** 2 / 3) + log
        means = shares @ u
        p = (shares[:, 0] * expit(eta)).sum(1)
        p_u = (shares[:, 0] * expit(eta) * u).sum(1)
        first = np.column_stack([b, means, p])
        second = first[:, :, None] * first[:, None]
        second[:, [1, 2], [1, 2]] = shares @ u**2
        second[:, 3, 3] = (shares[:, 0] * expit(eta) ** 2).sum(1)
        second[:, 1, 3] = second[:, 3, 1] = p_u
        for kept, each in zip((total, firsts, seconds), (height, first, second), strict=True):
            kept.append(each)
    weights = np.exp(np.concatenate(total) - logsumexp(total))
    mean = weights @ np.concatenate(firsts)
    return mean, np.einsum("k,kab->ab", weights, np.concatenate(seconds)) - np.outer(mean, mean)


def test_labels_beside_grids_of_the_exact_posterior():
    """Rare labels, so that the shapes of marginals move the shared effect; groups move against it."""
    rng = np.random.default_rng(11)
    g = np.repeat(np.arange(8), 12)
    table = pd.DataFrame({"g": g, "b": (rng.random(96) < expit(-2 + 1.5 * rng.normal(size=8)[g])).astype(int)})
    found = fit("b ~ 1 + (1 | g)", table, "bernoulli")
    mean, covariance = exact_labels(table, np.linspace(-9, 7, 161), np.linspace(-5, 3, 81))
    drawn = found.draws(MANY, rng=0, groups=True)
    shown = np.column_stack([drawn[["Intercept", "Intercept | g[0]", "Intercept | g[1]"]],
                             found.expected(table[:1], draws=MANY, rng=0)])  # fmt: skip
    sds = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((shown.mean(0) - mean) / sds, 0, atol=0.08)
    np.testing.assert_allclose(shown.std(0) / sds, 1, atol=0.06)
    np.testing.assert_allclose(np.corrcoef(shown.T), covariance / np.outer(sds, sds), atol=0.06)
    for group in (1, 2):
        sum_sd = np.sqrt(covariance[0, 0] + covariance[group, group] + 2 * covariance[0, group])
        assert (shown[:, 0] + shown[:, group]).std() == pytest.approx(sum_sd, rel=0.06)


def test_expected_responses_of_new_groups_labels_and_counts():
    counts = fit("c ~ x + offset(np.log(h + 1)) + (1 | g)", DATA, "poisson")
    new = pd.DataFrame({"x": [2.0, 2.0, 2.0], "h": [3, 3, 0], "g": [100, 100, 0]})
    drawn, summary = counts.expected(new, 4000, rng=0), counts.predict(new)
    np.testing.assert_allclose(drawn.mean(0)[2], summary.estimate[2], rtol=0.02)
    np.testing.assert_allclose(np.log(drawn).mean(0)[0] - np.log(4), np.log(counts.expected(
        new.assign(h=0), 4000, rng=0)).mean(0)[0])  # fmt: skip
    np.testing.assert_array_equal(drawn[:, 0], drawn[:, 1])
    grades = fit("h ~ x + (1 | g)", DATA, "cumulative")
    drawn = grades.expected(DATA[:3], 4000, rng=0)
    assert drawn.shape == (4000, 3, 5)
    np.testing.assert_allclose(drawn.sum(2), 1)
    np.testing.assert_allclose(drawn.mean(0).ravel(), grades.predict(DATA[:3]).estimate, atol=0.006)
    with pytest.raises(ParameterError, match="draws is 0; expected a whole number"):
        grades.expected(draws=0)


def test_arviz_has_groups_in_the_same_draws():
    found = fit("y ~ x + (1 | g)", DATA)
    posterior = posterior_draws(found, 500, rng=0)
    effects = posterior["posterior"]["Intercept | g"]
    assert effects.shape == (1, 500, 12)
    at_0 = posterior["posterior"]["Intercept"] + effects[..., 0] + 3.0 * posterior["posterior"]["x"]
    assert at_0.std() < 0.8 * effects[..., 0].std()
    # Responses of a row are about the expected ones of the same draw.
    replies = posterior["posterior_predictive"]["y"][0, :, GROUP_0]
    assert np.corrcoef(replies.mean(0), at_0[0])[0, 1] > 0.2


GROUP_0 = np.flatnonzero(DATA.g == 0)


def test_groups_whose_labels_hold_colons_have_names_of_their_own():
    rng = np.random.default_rng(2)
    a, b = np.array(["a:b", "a"])[np.arange(80) % 2], np.array(["c", "b:c"])[np.arange(80) // 2 % 2]
    found = fit("y ~ 1 + (1 | a:b)", {"y": rng.normal(size=80), "a": a, "b": b})
    names = [name for name in found.draws(10, rng=0, groups=True) if name.startswith("Intercept | a:b[")]
    assert len(names) == len(set(names)) == 4
    assert "Intercept | a:b['a:b':c]" in names
