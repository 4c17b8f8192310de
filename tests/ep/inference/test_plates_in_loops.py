"""Plates of rates and probabilities that meet in loops: what draws and ties say of standard deviations, exactly."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep


def pairs(n, chords=True):
    """A ring, with chords to the next but one."""
    steps = (1, 2) if chords else (1,)
    return np.array([(i, (i + step) % n) for step in steps for i in range(n)])


def betas(ties, y, strength):
    b = ep.Variable("b", ep.Beta(2.0, 2.0), plate=len(y))
    tie = ep.Density(lambda p, q: -0.5 * strength * (p - q) ** 2, b[ties[:, 0]], b[ties[:, 1]], name="tie")
    return ep.FactorGraph(tie, ep.Bernoulli(b, observed=y))


def gammas(ties, y, strength):
    g = ep.Variable("g", ep.Gamma(2.0, 1.0), plate=len(y))
    tie = ep.Density(
        lambda p, q: -0.5 * strength * (jnp.log(p) - jnp.log(q)) ** 2, g[ties[:, 0]], g[ties[:, 1]], name="tie"
    )
    return ep.FactorGraph(tie, ep.Poisson(g, observed=y, exposure=0.3))


def betas_exactly(ties, y, strength):
    """Standard deviations of four by a grid."""
    x = (np.arange(32) + 0.5) / 32
    grid = np.meshgrid(*[x] * len(y), indexing="ij", sparse=True)
    logs = sum(
        np.log(p) + np.log1p(-p) + (np.log(p) if seen else np.log1p(-p)) for p, seen in zip(grid, y, strict=True)
    )
    for i, j in ties:
        logs = logs - 0.5 * strength * (grid[i] - grid[j]) ** 2
    weights = np.exp(logs - logs.max())
    found = []
    for at in range(len(y)):
        own = weights.sum(tuple(k for k in range(len(y)) if k != at))
        own /= own.sum()
        found.append(np.sqrt(own @ x**2 - (own @ x) ** 2))
    return np.array(found)


def first_gamma_exactly(y, strength):
    """The standard deviation of the first of a ring with chords, by sums over pairs of neighbours."""
    count, size = len(y), 24
    t = np.linspace(-3.5, 3.0, size)
    tie = -0.5 * strength * (t[:, None] - t) ** 2
    total = np.eye(size * size)
    for at in range(count):
        # From (a, b) to (b, c): the ties of a with b and with c, and all about a.
        own = (2 + y[at]) * t - 1.3 * np.exp(t)
        step = np.zeros((size, size, size, size))
        for b in range(size):
            step[:, b, b, :] = np.exp(own[:, None] + tie[:, b][:, None] + tie)
        total = total @ step.reshape(size * size, -1)
        total /= total.max()
    law = np.diag(total).reshape(size, size).sum(1)
    law, x = law / law.sum(), np.exp(t)
    return np.sqrt(law @ x**2 - (law @ x) ** 2)


def test_probabilities_in_loops_are_compared_with_draws():
    ties, y = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]), np.array([0, 1, 1, 0])
    post, exact = ep.infer(betas(ties, y, 40.0)), betas_exactly(ties, y, 40.0)
    times = exact / post["b"].sd()
    assert times.min() > 1.15
    assert post.report.status.startswith("converged, but standard deviations may be ")
    (note,) = [each for each in post.report.notes if each.startswith("weighted draws give standard deviations")]
    said = {int(at): float(by) for by, at in re.findall(r"([\d.]+) times as large for 'b\[(\d)\]'", note)}
    assert len(said) == 4
    np.testing.assert_allclose([said[at] for at in range(4)], times, atol=0.06)


def test_more_rates_in_loops_are_said_to_be_too_sure():
    y = np.random.default_rng(1).poisson(2, 25)
    post = ep.infer(gammas(pairs(25), y, 8.0))
    share = post["g"].sd()[0] / first_gamma_exactly(y, 8.0)
    assert share < 0.9
    assert post.report.status == "converged, but standard deviations may be too small"
    (note,) = post.report.notes
    (said,) = re.findall(r"about ([\d.]+) of what they should be", note)
    assert float(said) == pytest.approx(share, abs=0.03)
    assert note.endswith("Only numbers with normal priors can have one belief, that of an ep.MultivariateNormal.")


@pytest.mark.parametrize("count", [8, 25])
@pytest.mark.parametrize("make", [betas, gammas])
def test_chains_have_no_note(make, count):
    y = np.random.default_rng(count).integers(0, 2, count)
    ties = pairs(count, chords=False)[:-1]
    report = ep.infer(make(ties, y, 8.0)).report
    assert (report.status, report.notes) == ("converged", ())


def test_rates_by_group_and_a_common_one_are_compared_with_draws():
    group = np.repeat(np.arange(5), 3)
    rng = np.random.default_rng(4)
    y = rng.poisson(rng.gamma(2.0, 0.5, 5)[group] * 2.0)
    g, c = ep.Variable("g", ep.Gamma(2.0, 2.0), plate=5), ep.Variable("c", ep.Gamma(2.0, 1.0))
    rate = ep.Variable("rate", ep.Gamma, plate=15)
    post = ep.infer(ep.FactorGraph(ep.BlackBox(lambda g, c: g * c, g[group], c, rate), ep.Poisson(rate, observed=y)))
    assert post.report.status != "converged"
    t = np.linspace(-6, 4, 401)
    # Given c, each group is a Gamma.
    sums = np.bincount(group, y)
    shape, by = 2.0 + sums, 2.0 + 3 * np.exp(t)[:, None]
    logs = 2 * t - np.exp(t) + sums.sum() * t - (shape * np.log(by)).sum(1)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean, square = (weights @ each for each in (shape / by, shape * (shape + 1) / by**2))
    sds = np.append(np.sqrt(square - mean**2), np.sqrt(weights @ np.exp(2 * t) - (weights @ np.exp(t)) ** 2))
    times = sds / np.append(post["g"].sd(), post["c"].sd())
    (note,) = [each for each in post.report.notes if each.startswith("weighted draws give standard deviations")]
    said = {at: float(by) for by, at in re.findall(r"([\d.]+) times as large for '([^']+)'", note)}
    names = [f"g[{at}]" for at in range(5)] + ["c"]
    exact = dict(zip(names, times, strict=True))
    assert names[int(np.argmax(times))] in said
    for name, by in said.items():
        assert by == pytest.approx(exact[name], rel=0.1)
