"""Improper messages in the cases that are known to be hard: treated by a named policy, located by factor and index."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from meanmap import ep
from meanmap.ep.sweeps.sweep import compiled_answer


def compound_gamma(n=24, m=20):
    """x ~ N(0, 1/τ), τ ~ Gamma(1, rate), rate ~ Gamma(1, 1), n problems of m points each (Jitkrittum et al. 2015)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, m)) * np.sqrt(rng.exponential(size=n) / rng.exponential(size=n))[:, None]
    rate, tau = ep.Variable("rate", ep.Gamma(np.ones(n), 1.0)), ep.Variable("tau", ep.Gamma, plate=n)
    model = ep.FactorGraph(
        ep.Density(lambda r, t: jnp.log(r) - r * t, rate, tau, name="compound"),
        ep.Gaussian(0.0, observed=x.ravel(), precision=tau[np.repeat(np.arange(n), m)], name="data"),
    )
    # Over the rate the prior of τ is 1/(1 + τ)²: one number is left to integrate, here over log τ.
    u = np.linspace(-30, 30, 20_001)[:, None]
    log_posterior = (m / 2 + 1) * u - (x**2).sum(1) / 2 * np.exp(u) - 2 * np.log1p(np.exp(u))
    weights = np.exp(log_posterior - log_posterior.max(0))
    weights /= weights.sum(0)
    return model, ep.Gamma.from_moments((weights * u).sum(0), (weights * np.exp(u)).sum(0))


@pytest.mark.slow
def test_the_compound_gamma_needs_messages_that_are_no_laws():
    model, truth = compound_gamma()
    allowed, forced = ep.infer(model), ep.infer(model, improper="force")
    found = allowed["tau"]
    np.testing.assert_allclose(found.shape_parameter, truth.shape_parameter, rtol=1e-8)
    np.testing.assert_allclose(found.rate, truth.rate, rtol=1e-8)
    message = allowed.messages["compound"][1]
    improper = (message.shape_parameter <= 0) | (message.rate < 0)
    assert 0.1 < improper.mean() < 0.6  # about a third, as the prior's tail is heavier than any Gamma's
    first = ", ".join(f"[{i}]" for i in np.flatnonzero(improper)[:5])
    assert allowed.report.converged
    assert "improper" not in str(allowed.report)
    assert forced.report.converged
    assert forced.report.counts["compound: improper messages"] > 0
    assert any(note.startswith(f"in the last sweep compound at {first}") for note in forced.report.notes)
    assert any("(force)" in note for note in forced.report.notes)
    # What is forced into a law keeps the mean and loses up to a fifth of the shape.
    np.testing.assert_allclose(forced["tau"].mean(), truth.mean(), rtol=0.02)
    assert 0.05 < np.abs(np.log(forced["tau"].shape_parameter / truth.shape_parameter)).max() < 0.4


@pytest.mark.parametrize("policy", ["allow", "force", "skip", "damp"])
def test_errors_of_a_tilted_variance_are_amplified_and_located(policy):
    """Outgoing = tilted over incoming: an error of 5% in the tilted variance changes the sign of the precision."""
    n = 40
    z = ep.Variable("z", ep.Normal(np.zeros(n), 0.05))
    model = ep.FactorGraph(ep.Logistic(z, observed=np.arange(n) % 2, name="labels"))
    exact = ep.extending.ask(ep.Logistic(ep.Variable("z", ep.Normal, plate=n), observed=np.arange(n) % 2), z.prior)
    noise = np.random.default_rng(1).normal(size=n) * 0.05

    def projected(questions):
        tilted = questions.incoming[0] * exact.messages[0]
        wrong = ep.Normal(tilted.mean(), tilted.var() * np.exp(noise))
        return (wrong / questions.incoming[0], None)

    post = ep.infer(model, messages=projected, improper=policy, sweeps=3)
    precision = post.messages["labels"][0].precision
    told = 20 * (np.exp(-noise) - 1) + exact.messages[0].precision * np.exp(-noise)
    improper = told < 0
    assert 0.2 < improper.mean() < 0.7
    assert post.report.counts["labels: improper messages"] == post.report.steps * improper.sum()
    first = ", ".join(f"[{i}]" for i in np.flatnonzero(improper)[:5])
    note = f"in the last sweep labels at {first} and {improper.sum() - 5} more: improper messages ({policy})"
    assert note in post.report.notes
    expected = {"allow": told, "force": np.zeros(n), "skip": np.zeros(n), "damp": np.zeros(n)}[policy]
    np.testing.assert_allclose(precision[improper], expected[improper], atol=1e-9)
    if policy == "force":  # the mean of the tilted law is kept
        np.testing.assert_allclose(post["z"].mean(), (z.prior * exact.messages[0]).mean(), atol=1e-9)
    if policy == "skip":  # nothing is told
        np.testing.assert_array_equal(post["z"].mean()[improper], 0)


def test_an_unknown_precision_with_given_outcomes_needs_no_prior():
    # The factor is conjugate there: it speaks first, and a factor that needs a law hears it.
    tau = ep.Variable("tau", ep.Gamma)
    x = np.array([0.3, -1.0, 2.0, 0.5])
    post = ep.infer(ep.FactorGraph(ep.Gaussian(0.0, observed=x, precision=tau)))
    assert post["tau"].shape_parameter == pytest.approx(1 + len(x) / 2)
    assert post["tau"].rate == pytest.approx((x**2).sum() / 2)


def test_evidence_needs_proper_beliefs_only():
    # What a steep function sends is denser at both ends than between them: no Normal looks like that.
    prior, observed, precision = (0.5, 1.0), np.array([0.5, 1.5, 2.9]), 25.0
    leak, lost = ep.Variable("leak", ep.Normal(np.full(3, prior[0]), prior[1])), ep.Variable("lost", ep.Normal, plate=3)
    model = ep.FactorGraph(
        ep.BlackBox(lambda x: 3 / (1 + jnp.exp(-2 * x)), leak, lost, name="loss"),
        ep.Gaussian(lost, observed=observed, precision=precision),
    )
    post = ep.infer(model)
    x = np.linspace(-9, 10, 40_001)[:, None]
    laws = norm(*prior).pdf(x) * norm(3 / (1 + np.exp(-2 * x)), precision**-0.5).pdf(observed)
    assert post.log_evidence == pytest.approx(np.log(np.trapezoid(laws, x, axis=0)).sum(), abs=1e-7)
    assert not all(message.is_proper().all() for message in post.messages["loss"])
    assert "improper" not in str(post.report)


@pytest.mark.parametrize("precisions", [(2.0, 1.0, -0.2), (-0.1, 1.0, 1.0), (1.0, -0.2, 4.0), (0.0, 1.0, 2.0)])
def test_a_sum_integrates_over_one_message_that_is_no_law(precisions):
    precisions, shifts, noise = np.array(precisions), np.array([0.3, -0.7, 1.1]), 3.0
    out, a, b = (ep.Variable(name, ep.Normal) for name in ("out", "a", "b"))
    factor = ep.Sum(a, b, out=out, weights=(2, -1), precision=noise)
    incoming = [ep.Normal.from_natural(*pair) for pair in zip(shifts, precisions, strict=True)]
    direction = np.array([1.0, -2.0, 1.0])
    joint = np.diag(precisions) + noise * np.outer(direction, direction)
    assert np.linalg.eigvalsh(joint)[0] > 0
    gaussian = shifts @ np.linalg.solve(joint, shifts) / 2 - np.linalg.slogdet(joint)[1] / 2
    expected = gaussian + 1.5 * np.log(2 * np.pi) + np.log(noise / (2 * np.pi)) / 2
    with jax.enable_x64(True):
        answer = compiled_answer(factor, (*incoming, np.float64(noise)), 1.0, jax.random.key(0))
    assert float(answer.log_normaliser) == pytest.approx(expected, abs=1e-10)
