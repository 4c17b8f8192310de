"""Models that expectation propagation solves exactly, against linear algebra, conjugate formulas and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from meanmap import ep
from meanmap.core import KindError
from meanmap.ep.factors.gaussian import _square

TIGHT = {"rtol": 1e-10, "atol": 1e-10}


def linear(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n) / 2


def test_linear_regression_is_linear_algebra():
    X, y = linear()
    precision = np.linspace(1, 5, len(y))
    w = ep.Variable("w", ep.MultivariateNormal.standard(3))
    z = ep.Variable("z", ep.Normal, plate=len(y))
    post = ep.infer(ep.FactorGraph(ep.Dot(X, w, z), ep.Gaussian(z, observed=y, precision=precision)))
    covariance = np.linalg.inv(np.eye(3) + X.T @ (precision[:, None] * X))
    mean = covariance @ X.T @ (precision * y)
    np.testing.assert_allclose(post["w"].mean(), mean, **TIGHT)
    np.testing.assert_allclose(post["w"].cov(), covariance, **TIGHT)
    np.testing.assert_allclose(post["z"].mean(), X @ mean, **TIGHT)
    np.testing.assert_allclose(post["z"].var(), np.einsum("ni,ij,nj->n", X, covariance, X), **TIGHT)
    marginal = scipy.stats.multivariate_normal(np.zeros(len(y)), X @ X.T + np.diag(1 / precision))
    assert post.log_evidence == pytest.approx(marginal.logpdf(y), abs=1e-9)
    assert post.report.converged
    assert post.report.steps <= 3


def test_sums_with_weights_noise_and_shared_terms_are_linear_algebra():
    # out_i = 2 a − b_i + noise observed for three members, a shared, and one b named twice through a selection.
    y, index = np.array([1.0, -0.5, 2.0]), np.array([0, 1, 1])
    a = ep.Variable("a", ep.Normal(0.5, 2.0))
    b = ep.Variable("b", ep.Normal([0.0, 1.0], [1.0, 3.0]))
    factor = ep.Sum(a, b[index], out=y, weights=(2, -1), precision=[1.0, 2.0, 4.0])
    post = ep.infer(ep.FactorGraph(factor), tolerance=1e-9, sweeps=500)
    design = np.array([[2, -1, 0], [2, 0, -1], [2, 0, -1.0]])
    prior = np.diag([1 / 2, 1, 1 / 3])
    noise = np.diag([1.0, 2.0, 4.0])
    covariance = np.linalg.inv(prior + design.T @ noise @ design)
    mean = covariance @ (prior @ [0.5, 0, 1] + design.T @ noise @ y)
    # Means of loopy Gaussian propagation are exact where it converges; variances are not (Weiss & Freeman 2001).
    np.testing.assert_allclose([post["a"].mean(), *post["b"].mean()], mean, atol=1e-7)


def test_a_sum_on_a_tree_is_exact_in_every_direction():
    a, b = ep.Variable("a", ep.Normal(1.0, 2.0)), ep.Variable("b", ep.Normal(-1.0, 0.5))
    c = ep.Variable("c", ep.Normal)
    graph = ep.FactorGraph(ep.Sum(a, b, out=c, weights=(1, 3)), ep.Gaussian(c, observed=2.5, precision=4.0))
    post = ep.infer(graph)
    design = np.array([[1, 0], [0, 1], [1, 3.0]])
    prior = np.diag([1 / 2, 2.0])
    covariance = np.linalg.inv(prior + 4.0 * np.outer(design[2], design[2]))
    mean = covariance @ (prior @ [1, -1] + 4.0 * design[2] * 2.5)
    np.testing.assert_allclose([post[n].mean() for n in "abc"], design @ mean, **TIGHT)
    np.testing.assert_allclose([post[n].var() for n in "abc"], np.diag(design @ covariance @ design.T), **TIGHT)
    sd = np.sqrt(2 + 9 * 0.5 + 1 / 4)
    assert post.log_evidence == pytest.approx(scipy.stats.norm(1 - 3, sd).logpdf(2.5), abs=1e-12)


def test_labels_counts_and_precisions_are_conjugate():
    p, q = ep.Variable("p", ep.Beta(2.0, 3.0)), ep.Variable("q", ep.Dirichlet([1.0, 2.0, 0.5]))
    tau, rate = ep.Variable("tau", ep.Gamma(2.0, 3.0)), ep.Variable("rate", ep.Gamma(2.0, 1.5))
    x, counts, exposure = np.array([0.3, -1.2, 2.0]), np.array([3, 0, 2]), np.array([1.0, 0.5, 2.0])
    post = ep.infer(
        ep.FactorGraph(
            ep.Bernoulli(p, observed=[1, 0, 1, 1]),
            ep.Categorical(q, observed=[2, 2, 0]),
            ep.Gaussian(0.5, observed=x, precision=tau),
            ep.Poisson(rate, observed=counts, exposure=exposure),
        )
    )
    assert (post["p"].a, post["p"].b) == pytest.approx((5, 4), abs=1e-10)
    np.testing.assert_allclose(post["q"].concentration, [2, 2, 2.5], **TIGHT)
    assert post["tau"].shape_parameter == pytest.approx(3.5, abs=1e-10)
    assert post["tau"].rate == pytest.approx(3 + ((x - 0.5) ** 2).sum() / 2, abs=1e-10)
    assert (post["rate"].shape_parameter, post["rate"].rate) == pytest.approx((7, 5), abs=1e-10)
    parts = [
        scipy.special.betaln(5, 4) - scipy.special.betaln(2, 3),
        scipy.special.gammaln([2, 2, 2.5]).sum() - scipy.special.gammaln(6.5)
        - scipy.special.gammaln([1, 2, 0.5]).sum() + scipy.special.gammaln(3.5),
        np.log(scipy.integrate.quad(lambda t: scipy.stats.gamma(2, scale=1 / 3).pdf(t)
                                    * np.prod(scipy.stats.norm(0.5, t**-0.5).pdf(x)), 1e-9, 30)[0]),
        np.log(scipy.integrate.quad(lambda r: scipy.stats.gamma(2, scale=1 / 1.5).pdf(r)
                                    * np.prod(scipy.stats.poisson(r * exposure).pmf(counts)), 0, 40)[0]),
    ]  # fmt: skip
    assert post.log_evidence == pytest.approx(sum(parts), abs=1e-7)


def test_an_unobserved_coin_meets_two_beliefs():
    p = ep.Variable("p", ep.Beta(3.0, 1.0))
    x = ep.Variable("x", ep.Bernoulli)
    post = ep.infer(ep.FactorGraph(ep.Bernoulli(p, x)))
    assert post["x"].probability == pytest.approx(0.75, abs=1e-12)
    assert (post["p"].a, post["p"].b) == pytest.approx((3, 1), abs=1e-8)
    assert post.log_evidence == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(
    ("low", "high", "noise"), [(-np.inf, 0.4, 1.0), (0.1, 0.2, 0.0), (1.0, 2.5, 0.3), (9.0, np.inf, 0.0)]
)
def test_an_interval_has_the_moments_of_quadrature(low, high, noise):
    mean, variance = 0.3, 1.7
    z = ep.Variable("z", ep.Normal(mean, variance))
    post = ep.infer(ep.FactorGraph(ep.Interval(z, low, high, noise=noise)))
    x = np.linspace(mean - 12 * variance**0.5, mean + 12 * variance**0.5, 400_001)
    prior = scipy.stats.norm(mean, variance**0.5).pdf(x)
    if noise:
        factor = scipy.special.ndtr((high - x) / noise) - scipy.special.ndtr((low - x) / noise)
        weights = prior * factor
        total = weights.sum() * (x[1] - x[0])
        first = (weights * x).sum() / weights.sum()
        second = (weights * (x - first) ** 2).sum() / weights.sum()
    else:
        sd = variance**0.5
        law = scipy.stats.truncnorm((low - mean) / sd, (high - mean) / sd, mean, sd)
        first, second = law.mean(), law.var()
        total = np.diff(scipy.special.ndtr(-(np.array([high, low]) - mean) / sd))[0]
    assert post["z"].mean() == pytest.approx(first, rel=1e-8)
    assert post["z"].var() == pytest.approx(second, rel=1e-6)
    assert post.log_evidence == pytest.approx(np.log(total), rel=1e-8)


def test_probit_in_one_dimension_is_the_closed_form():
    # E w | y with prior N(m, v): Rasmussen & Williams (2006), equations 3.82 and 3.85 to 3.87.
    m, v = 0.7, 2.0
    z = ep.Variable("z", ep.Normal(m, v))
    post = ep.infer(ep.FactorGraph(ep.Probit(z, observed=0)))
    t = -m / np.sqrt(1 + v)
    ratio = scipy.stats.norm.pdf(t) / scipy.stats.norm.cdf(t)
    assert post["z"].mean() == pytest.approx(m - v * ratio / np.sqrt(1 + v), abs=1e-12)
    assert post["z"].var() == pytest.approx(v - v**2 * ratio / (1 + v) * (t + ratio), abs=1e-12)
    assert post.log_evidence == pytest.approx(scipy.stats.norm.logcdf(t), abs=1e-12)


def test_unknown_precision_and_mean_have_the_moments_of_quadrature():
    # One observation: the projections of the two marginals of the exact posterior are what EP converges to.
    y, m, v, a, b = 3.0, 0.0, 1.0, 2.0, 1.0
    mu, tau = ep.Variable("mu", ep.Normal(m, v)), ep.Variable("tau", ep.Gamma(a, b))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=y, precision=tau)))
    u = np.linspace(-25, 5, 3001)[:, None]
    x = np.linspace(-9, 9, 1801)
    t = np.exp(u)
    joint = scipy.stats.norm(m, v**0.5).pdf(x) * scipy.stats.gamma(a, scale=1 / b).pdf(t) * t
    joint = joint * np.sqrt(t / (2 * np.pi)) * np.exp(-t * (y - x) ** 2 / 2)
    total = joint.sum()
    mean = (joint * x).sum() / total
    assert post["mu"].mean() == pytest.approx(mean, abs=1e-8)
    assert post["mu"].var() == pytest.approx((joint * (x - mean) ** 2).sum() / total, abs=1e-8)
    assert post["tau"].mean() == pytest.approx((joint * t).sum() / total, rel=1e-8)
    assert post["tau"].mean_in("log") == pytest.approx((joint * u).sum() / total, abs=1e-8)
    assert post.log_evidence == pytest.approx(np.log(total * 0.01 * 0.01), abs=1e-8)


@pytest.mark.parametrize(
    ("mean", "low", "high"), [(0.0, 0.3, 0.300001), (-3000.0, 0.0, np.inf), (-3000.0, 0.3, 0.300001), (0.0, -2.5, 3.0)]
)
def test_an_interval_keeps_its_digits_where_it_is_narrow_or_far(mean, low, high):
    # By Gauss and Legendre in the distance from the nearest end: the closed form gave variances of -1002 and 592 times.
    answer = ep.extending.ask(ep.Interval(ep.Variable("z", ep.Normal), low, high, noise=0.0), ep.Normal(mean, 1.0))
    belief = ep.Normal(mean, 1.0) * answer.messages[0]
    nodes, weights = np.polynomial.legendre.leggauss(60)
    a = low - mean
    reach = min(high - low, 37 / max(a, 1.0) if a > 0 else np.inf)
    steps = reach * (nodes + 1) / 2
    density = weights * np.exp(-steps * (2 * a + steps) / 2)
    first = (density * steps).sum() / density.sum()
    variance = (density * (steps - first) ** 2).sum() / density.sum()
    assert belief.mean() == pytest.approx(low + first, abs=1e-5 * variance**0.5)
    assert belief.var() == pytest.approx(variance, rel=1e-8)
    log_mass = np.log(density.sum() * reach / 2) - a**2 / 2 - np.log(2 * np.pi) / 2
    assert answer.log_normaliser - ep.Normal(mean, 1.0).log_normaliser == pytest.approx(log_mass, rel=1e-10)


def test_rows_of_zeros_say_that_a_sum_is_zero():
    # They tell nothing of the weights, and each of their labels has the probability of a fair coin.
    X, y = np.array([[1.0], [-0.5], [2.0], [0.3]]), np.array([1, 1, 0, 1])
    w = ep.Variable("w", ep.MultivariateNormal.standard(1))

    def run(rows, labels):
        z = ep.Variable("z", ep.Normal, plate=len(rows))
        return ep.infer(ep.FactorGraph(ep.Dot(rows, w, z), ep.Probit(z, observed=labels)))

    without, with_zeros = run(X, y), run(np.vstack([X, np.zeros((3, 1))]), [*y, 0, 1, 1])
    assert with_zeros.report.converged
    assert with_zeros["w"].mean() == pytest.approx(without["w"].mean(), abs=1e-6)
    assert with_zeros["w"].cov().ravel() == pytest.approx(without["w"].cov().ravel(), abs=1e-6)
    assert with_zeros.log_evidence == pytest.approx(without.log_evidence + 3 * np.log(0.5), abs=1e-8)


def test_a_sum_without_noise_of_one_unknown_is_refused():
    with pytest.raises(KindError, match="says exactly what 'a' is: write that number in its place"):
        ep.Sum(ep.Variable("a", ep.Normal()), 2.0, out=3.0)


def test_an_unknown_precision_meets_what_is_flat():
    # A new draw tells nothing about mean and precision, and is predicted by the law of both.
    tau, mu = ep.Variable("tau", ep.Gamma), ep.Variable("mu", ep.Normal)
    factor = ep.Gaussian(mu, ep.Variable("new", ep.Normal), precision=tau)
    came = ep.Normal(1.0, 0.25), ep.Normal.flat(), ep.Gamma(4.0, 2.0)
    answer = ep.extending.ask(factor, *came)
    to_mean, to_new, to_tau = answer.messages
    assert abs(to_mean.precision) < 1e-9
    assert abs(to_tau.coefficient_x) < 1e-9
    assert (to_new.mean(), to_new.var()) == (pytest.approx(1.0), pytest.approx(0.25 + 2.0 / 3.0, rel=1e-8))
    assert answer.log_normaliser == pytest.approx(came[0].log_normaliser + came[2].log_normaliser, abs=1e-9)
    assert answer.doubt < 1e-6
    for far in (ep.Normal(1e4, 1e-6), ep.Normal(-1e4, 1.0)):  # large means do not cancel
        answer = ep.extending.ask(factor, far, ep.Normal(far.mean() + 1, 1e-6), ep.Gamma(4.0, 2.0))
        assert answer.doubt < 1e-4


@pytest.mark.slow
def test_models_with_an_unknown_precision_start_from_nothing():
    rng = np.random.default_rng(1)
    tau = ep.Variable("tau", ep.Gamma(2.0, 2.0))
    groups, labels = np.repeat(np.arange(6), 5), rng.integers(0, 2, 30)
    u = ep.Variable("u", ep.Normal, plate=6)
    grouped = ep.infer(ep.FactorGraph(ep.Gaussian(0.0, u, precision=tau), ep.Logistic(u[groups], observed=labels)))
    assert grouped.report.converged
    mu, star = ep.Variable("mu", ep.Normal(0.0, 4.0)), ep.Variable("star", ep.Normal, plate=3)
    seen = ep.Gaussian(mu, observed=rng.normal(size=8), precision=tau)
    cut = ep.infer(
        ep.FactorGraph(seen, ep.Gaussian(mu, star, precision=tau), ep.Interval(star, -np.inf, -0.5, noise=0.0))
    )
    assert cut.report.converged
    vague = ep.Variable("vague", ep.Gamma(0.001, 0.001))
    y = rng.normal(3, 0.5, 30)
    post = ep.infer(ep.FactorGraph(ep.Gaussian(ep.Variable("m", ep.Normal(0.0, 100.0)), observed=y, precision=vague)))
    assert post["m"].mean() == pytest.approx(y.mean(), abs=0.01)
    assert post["m"].sd() == pytest.approx(y.std(ddof=1) / np.sqrt(30), rel=0.1)


def test_squares_of_many_rows_are_those_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(9 * 1024, 3)), rng.normal(size=9 * 1024)
    with jax.enable_x64(True):
        found = _square(jnp.asarray(x), jnp.asarray(weights))
    np.testing.assert_allclose(found, (x.T * weights) @ x, rtol=1e-11, atol=1e-9)
