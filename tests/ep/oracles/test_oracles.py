"""Oracles against dense quadrature by SciPy's rules, and their stated errors against what they miss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from meanmap import ep
from meanmap.core import KindError, ParameterError, ShapeError
from meanmap.ep.oracles.mcmc import _precision

Z, P = ep.Variable("z", ep.Normal), ep.Variable("p", ep.Beta)
SIGMOID = ep.BlackBox(jax.nn.sigmoid, Z, P)

# The table (c) of the notes: incoming Beta and Normal, from easy to a cavity far out that is hard to sample.
BETAS = np.array([[2.0, 1], [1, 2], [2, 1], [2, 1]])
NORMALS = np.array([[0.0, 5], [2, 0.5], [-1, 0.05], [8, 0.3]])


def dense(a, b, m, v):
    """Outgoing Normal naturals, tilted Beta statistics and log normaliser by a plain sum over 40,001 points."""
    x = np.linspace(m - 14 * v**0.5, m + 14 * v**0.5, 40_001)
    log_p, log_q = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    weights = scipy.stats.norm(m, v**0.5).pdf(x) * np.exp((a - 1) * log_p + (b - 1) * log_q)
    total = weights.sum()
    mean = (weights * x).sum() / total
    variance = (weights * (x - mean) ** 2).sum() / total
    logs = (weights * log_p).sum() / total, (weights * log_q).sum() / total
    return mean / variance - m / v, 1 / variance - 1 / v, logs, np.log(total * (x[1] - x[0]))


def test_quadrature_is_exact_for_the_logistic_factor():
    answer = ep.extending.ask(SIGMOID, ep.Normal(*NORMALS.T), ep.Beta(*BETAS.T))
    to_z, to_p = answer.messages
    for at, (beta, normal) in enumerate(zip(BETAS, NORMALS, strict=True)):
        nu, tau, logs, log_total = dense(*beta, *normal)
        # Both are differences of precisions of size 1/v: 65 nodes leave up to 2e-11 of it.
        assert to_z.precision[at] == pytest.approx(tau, abs=1e-11 / normal[1])
        assert to_z.precision_mean[at] == pytest.approx(nu, abs=1e-10 / normal[1])
        tilted = ep.Beta(to_p.a[at] + beta[0] - 1, to_p.b[at] + beta[1] - 1)
        np.testing.assert_allclose(tilted.expected_statistics, logs, rtol=1e-8)
        known = ep.Normal(*normal).log_normaliser
        assert answer.log_normaliser[at] - known == pytest.approx(log_total, abs=1e-10)
    assert answer.errors[0].precision.max() < 1e-8


# By day the same programs on fewer messages: bounds are binomial, and say less from fewer.
REPEATS = [16, pytest.param(200, marks=pytest.mark.slow)]


@pytest.mark.parametrize("repeats", REPEATS)
def test_stratified_sampling_is_within_the_errors_of_the_notes_and_knows_its_own(repeats):
    truth = np.array([dense(*beta, *normal)[:2] for beta, normal in zip(BETAS, NORMALS, strict=True)])
    normal, beta = (np.tile(each, (repeats, 1)).T for each in (NORMALS, BETAS))
    answer = ep.extending.ask(SIGMOID, ep.Normal(*normal), ep.Beta(*beta), oracle=ep.Stratified(1000), rng=7)
    message, error = answer.messages[0], answer.errors[0]
    missed = message.precision.reshape(repeats, 4) - truth[:, 1]
    relative = np.sqrt((missed**2).mean(0)) / truth[:, 1]
    assert (relative < [0.003, 0.04, 0.02, 0.02]).all(), relative
    for values, column in ((message.precision, 1), (message.precision_mean, 0)):
        stated = (error.precision if column else error.precision_mean).reshape(repeats, 4)
        covered = np.abs(values.reshape(repeats, 4) - truth[:, column]) < 1.96 * stated
        # 95% intervals from two draws a stratum: at least 90% must cover, up to a binomial chance of 1e-4 a case.
        assert (covered.sum(0) >= scipy.stats.binom(repeats, 0.9).ppf(1e-4)).all(), covered.mean(0)


@pytest.mark.parametrize("repeats", REPEATS)
@pytest.mark.parametrize("paired", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_importance_sampling_knows_its_error(paired, repeats):
    (a, b), (m, v) = BETAS[1], NORMALS[1]
    nu, tau, logs, _ = dense(a, b, m, v)
    oracle = ep.ImportanceSampling(4000, proposal=None if paired else ep.Normal(0.0, 9.0), paired=paired)
    answer = ep.extending.ask(
        SIGMOID, ep.Normal(np.full(repeats, m), v), ep.Beta(np.full(repeats, a), b), oracle=oracle, rng=3
    )
    least = scipy.stats.binom(repeats, 0.95).ppf(1e-5)
    for name, truth in (("precision", tau), ("precision_mean", nu)):
        missed = np.abs(getattr(answer.messages[0], name) - truth)
        assert (missed < 1.96 * getattr(answer.errors[0], name)).sum() >= least
    truth = ep.Beta.from_moments(*logs).a - (a - 1)
    missed = np.abs(answer.messages[1].a - truth)
    assert (missed < 1.96 * answer.errors[1].coefficient_log_x).sum() >= least
    assert (answer.effective < 4000).all()
    assert (answer.effective > 100).all()


def test_derivatives_of_the_normaliser_are_those_of_quadrature():
    cavity = ep.Normal(np.array([0.3, -2.0]), np.array([2.0, 0.1]))
    factor = ep.Density(lambda z: -2.0 * jnp.log1p((6 - z) ** 2 / 0.3), Z)  # not log-concave: precisions below 0
    fine = ep.Quadrature(513)  # a second difference amplifies what 129 nodes leave
    alpha, beta = ep.extending.log_z_derivatives(cavity, ep.extending.ask(factor, cavity, oracle=fine).messages[0])
    h = 1e-3

    def log_z(shift):
        moved = ep.Normal(cavity.mean() + shift, cavity.var())
        return ep.extending.ask(factor, moved, oracle=fine).log_normaliser - moved.log_normaliser

    low, middle, high = log_z(-h), log_z(0.0), log_z(h)
    np.testing.assert_allclose(alpha, (high - low) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(beta, -(high - 2 * middle + low) / h**2, rtol=1e-4)
    assert (beta < 0).all()
    message = ep.extending.from_log_z_derivatives(cavity, alpha, beta)
    np.testing.assert_allclose(
        message.precision, ep.extending.ask(factor, cavity, oracle=fine).messages[0].precision, rtol=1e-12
    )


def test_the_papers_preset_is_what_the_paper_says():
    preset = ep.ImportanceSampling.of_the_paper()
    assert (preset.points, preset.paired) == (500_000, False)
    assert (preset.proposal.mean(), preset.proposal.var()) == (0, pytest.approx(200))


def test_a_message_of_one_point_is_in_doubt_as_a_whole():
    """The scatter of a single point is 0, and so was the doubt: its precision, 10²³, was learned and audited."""
    needle = ep.Density(lambda z: -1e8 * (z - 0.3) ** 2, ep.Variable("z", ep.Normal))
    answer = ep.extending.ask(needle, ep.Normal([0.0, 1.0], 1.0), oracle=ep.ImportanceSampling(50), rng=0)
    assert (answer.effective < 1.1).all()
    assert (answer.doubt > 0.9).all()


def of_two_numbers():
    """tau ~ Gamma(3, rate): the log density in both, and what comes in."""
    rate, tau = ep.Variable("rate", ep.Gamma(2.0, 1.0)), ep.Variable("tau", ep.Gamma(1.5, 2.0))
    return ep.Density(lambda r, t: 3 * jnp.log(r) + 2 * jnp.log(t) - r * t - jnp.log(2.0), rate, tau), rate, tau


def test_two_numbers_are_integrated_on_a_grid():
    factor, rate, tau = of_two_numbers()
    answer = ep.extending.ask(factor, rate.prior, tau.prior)
    u = np.linspace(-40, 6, 4601)
    r, t = np.exp(u)[:, None], np.exp(u)
    log_joint = 2 * np.log(r) - r + 1.5 * np.log(t) - 2 * t + 3 * np.log(r) + 2 * np.log(t) - r * t - np.log(2)
    joint = np.exp(log_joint)
    total = joint.sum()
    for message, prior, x in zip(answer.messages, (rate.prior, tau.prior), (r, t), strict=True):
        tilted = prior * message
        assert tilted.mean() == pytest.approx((joint * x).sum() / total, rel=1e-9)
        assert tilted.mean_in("log") == pytest.approx((joint * np.log(x)).sum() / total, abs=1e-9)
    # `log_normaliser` is that of unnormalised incoming messages.
    assert answer.log_normaliser == pytest.approx(np.log(total * (u[1] - u[0]) ** 2), abs=1e-9)


@pytest.mark.slow
def test_two_numbers_are_sampled_as_on_a_grid():
    factor, rate, tau = of_two_numbers()
    answer = ep.extending.ask(factor, rate.prior, tau.prior)
    sampled = ep.extending.ask(factor, rate.prior, tau.prior, oracle=ep.ImportanceSampling(20_000), rng=0)
    z = (sampled.messages[0].rate - answer.messages[0].rate) / sampled.errors[0].coefficient_x
    assert abs(z) < 4.5


@pytest.mark.slow
def test_python_functions_and_samplers_are_called_on_the_host():
    import math

    def squash(x):
        return 1 / (1 + math.exp(-x))

    host = ep.BlackBox(squash, Z, P)
    assert host.host
    assert not SIGMOID.host
    incoming = ep.Normal([0.0, 1.0], 1.0), ep.Beta([2.0, 1.0], 1.5)
    here, there = ep.extending.ask(host, *incoming), ep.extending.ask(SIGMOID, *incoming)
    np.testing.assert_allclose(here.messages[0].precision, there.messages[0].precision, rtol=1e-9)

    def noisy(rng, x):
        return x + float(rng.normal())

    # x + noise seen through N(y; 1, 1): exactly a Gaussian of variance 2.
    y = ep.Variable("y", ep.Normal)
    sampled = ep.extending.ask(ep.BlackBox(noisy, Z, y, random=True), ep.Normal(0.0, 1.0), ep.Normal(1.0, 1.0), rng=1)
    assert abs(sampled.messages[0].precision - 0.5) < 4.5 * sampled.errors[0].precision
    assert abs(sampled.messages[0].precision_mean - 0.5) < 4.5 * sampled.errors[0].precision_mean
    traced = ep.BlackBox(lambda key, x: x + jax.random.normal(key), Z, y, random=True)
    assert not traced.host


def test_a_weighted_sum_of_coins_is_enumerated():
    coin, z = ep.Variable("coin", ep.Bernoulli), ep.Variable("z", ep.Normal)
    mixture = ep.Density(lambda c, x: -((x - 4 * c) ** 2) / 2, coin, z)
    coin_law = ep.Variable("c", ep.Bernoulli).family(0.3)
    answer = ep.extending.ask(mixture, coin_law, ep.Normal(1.0, 1.0))
    log_odds = -(3**2) / 4 + 1 / 4
    assert answer.messages[0].logit == pytest.approx(log_odds, abs=1e-9)


@pytest.mark.parametrize("function", [lambda x: (x > 0).astype(int), lambda x: x > 0])
def test_whole_numbers_and_truth_values_are_numbers(function):
    y = ep.Variable("y", ep.Normal)
    answer = ep.extending.ask(ep.BlackBox(function, Z, y), ep.Normal(0.0, 1.0), ep.Normal(0.3, 1.0))
    share = 1 / (1 + np.exp(0.5 - 0.3))  # of N(1; 0.3, 1) beside N(0; 0.3, 1)
    belief = ep.Normal(0.3, 1.0) * answer.messages[1]
    assert belief.mean() == pytest.approx(share, abs=1e-6)


@pytest.mark.slow
def test_a_run_with_mcmc_stands_still_within_its_doubt():
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    z = ep.Variable("z", ep.Normal, plate=4)
    model = ep.FactorGraph(
        ep.Dot(np.eye(4, 2), w, z), ep.Density(lambda x, y: -jnp.logaddexp(0, -(2 * y - 1) * x), z, [0, 1, 1, 0])
    )
    post = ep.infer(model, messages=ep.MCMC(draws=640, warmup=50), rng=0)
    assert post.report.converged
    assert post.report.steps < 30


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ep.extending.ask(SIGMOID, ep.Normal(0.0, 1.0)), ShapeError, "2 variables; got 1"),
        (
            lambda: ep.extending.ask(SIGMOID, ep.Normal([0.0, 2.0], 1.0), ep.Beta(2.0, 3.0)),
            ShapeError,
            r"shapes \(2,\), \(\)",
        ),
        (lambda: ep.extending.ask(SIGMOID, ep.Beta(1, 1), ep.Beta(1, 1)), KindError, "is a Beta; expected a Normal"),
        (
            lambda: ep.extending.ask(ep.Probit(Z, observed=1), ep.Normal(0.0, 1.0), oracle=ep.Quadrature()),
            KindError,
            "leave out",
        ),
        (
            lambda: ep.extending.ask(SIGMOID, ep.Normal(0.0, 1.0), ep.Beta(1, 1), oracle=3),
            KindError,
            "expected an oracle",
        ),
        (
            lambda: ep.BlackBox(lambda k, x: x, Z, P, random=True, oracle=ep.Quadrature()),
            KindError,
            "random sampler.*Stratified",
        ),
        (
            lambda: ep.Density(lambda a, b, c: a, *(ep.Variable(n, ep.Normal) for n in "abc"), oracle=ep.Quadrature()),
            ParameterError,
            "over 3 variables; quadrature takes at most 2",
        ),
        (
            lambda: ep.Density(
                lambda w: w.sum(), ep.Variable("w", ep.MultivariateNormal.standard(2)), oracle=ep.Stratified()
            ),
            KindError,
            "has no strata",
        ),
    ],
)
def test_bad_questions(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("copies", [1, 2])
def test_draws_that_do_not_vary_in_a_direction_leave_a_finite_precision(copies):
    """Where a number stands still, or equals another one, proposals are as wide as rounding, or as usual."""
    x = np.random.default_rng(0).normal(size=(200, 2))
    still = x * [1.0, 0.0] if copies == 1 else x[:, [0, 0]]
    found = np.asarray(_precision(jnp.asarray(still - still.mean(axis=0)), jnp.ones(2)))
    assert np.isfinite(found).all()
    assert np.linalg.eigvalsh(found).min() > 0
    full = x - x.mean(axis=0)
    exact = np.linalg.inv(full.T @ full / 199)
    np.testing.assert_allclose(_precision(jnp.asarray(full), jnp.ones(2)), exact, rtol=1e-4)
