"""What oracles know about themselves: errors and doubts that hold at their rates, and work that lowers them."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from meanmap import ep
from meanmap.core import KindError, ParameterError

Z = ep.Variable("z", ep.Normal)
LABEL = ep.Logistic(Z, observed=1)
CAVITIES = ep.Normal([0.0, 2.0, -1.0, 8.0], [5.0, 0.5, 0.05, 0.3])  # the notes' table, easy to far out

W = ep.Variable("w", ep.MultivariateNormal.standard(2))
PLANE = ep.Density(lambda w: -jnp.logaddexp(0, -2 * w[0] + w[1]), W, name="plane")


def plane():
    """The message to the vector by its one direction that the factor sees, on a dense grid."""
    a, direction = np.sqrt(5.0), np.array([2.0, -1]) / np.sqrt(5)
    t = np.linspace(-12, 12, 200_001)
    weights = np.exp(-t * t / 2 - np.logaddexp(0, -a * t))
    weights /= weights.sum()
    mean = weights @ t
    variance = weights @ (t - mean) ** 2
    outer = np.outer(direction, direction)
    return ep.MultivariateNormal.from_natural(direction * mean / variance, outer * (1 / variance - 1))


def repeated(n=200):
    return ep.Normal(np.full(n, 2.0), 0.5)


def covers(missed, errors, rate=0.95, chance=1e-5):
    """Whether 95% intervals cover at their rate, down to a binomial chance of 1e-5."""
    assert (np.abs(missed) < 1.96 * errors).sum() >= scipy.stats.binom(len(missed), rate).ppf(chance)


@pytest.mark.slow
def test_doubts_are_the_root_mean_of_what_is_missed():
    incoming = repeated()
    truth = incoming * ep.extending.ask(LABEL, incoming).messages[0]
    answer = ep.extending.ask(LABEL, incoming, oracle=ep.ImportanceSampling(1000), rng=5)
    missed = 2 * (incoming * answer.messages[0]).kl(truth)
    # A sum of two squared normals over its mean: the mean of 200 has standard error .1 at most.
    assert 0.6 < (missed / answer.doubt**2).mean() < 1.4
    covers(
        answer.messages[0].precision - ep.extending.ask(LABEL, incoming).messages[0].precision,
        answer.errors[0].precision,
    )


@pytest.mark.slow
def test_more_work_lowers_the_doubt_where_it_is_asked_for():
    exact = CAVITIES * ep.extending.ask(LABEL, CAVITIES).messages[0]
    first = ep.extending.ask(LABEL, CAVITIES, oracle=ep.ImportanceSampling(100), rng=1)
    better = ep.extending.ask(LABEL, CAVITIES, oracle=ep.ImportanceSampling(100), error=0.02, rng=1)
    asked = first.doubt > 0.02
    assert (better.doubt <= 0.02).all()
    assert asked.any()
    assert asked.tolist() == (better.effective > first.effective).tolist()
    assert (better.effective[asked] > 4 * first.effective[asked]).all()
    assert (np.sqrt(2 * (CAVITIES * better.messages[0]).kl(exact)) < 4 * 0.02).all()
    # What cannot be reached is stated, and nothing hangs.
    some = ep.extending.ask(LABEL, CAVITIES[[0]], oracle=ep.ImportanceSampling(8), error=1e-9, rng=1)
    assert some.doubt[0] > 1e-9
    assert some.effective[0] <= 8 * 1024


@pytest.mark.slow
def test_laplace_is_exact_for_gaussians():
    square = ep.Density(lambda w: -((w[0] - 2 * w[1] - 1) ** 2) / 2, W)
    to_w = ep.extending.ask(square, W.prior, oracle=ep.Laplace(), rng=0)
    np.testing.assert_allclose(to_w.messages[0].precision, [[1, -2], [-2, 4]], atol=1e-7)
    np.testing.assert_allclose(to_w.messages[0].precision_mean, [1, -2], atol=1e-7)
    # ∫ f N(0, I) has the density of w₁ − 2 w₂ + noise, N(0, 6), at 1.
    evidence = scipy.stats.norm(0, np.sqrt(6)).logpdf(1) + np.log(2 * np.pi) / 2
    assert to_w.log_normaliser - W.prior.log_normaliser == pytest.approx(evidence, abs=1e-9)


@pytest.mark.slow
def test_laplace_is_exact_for_gammas_and_betas():
    rate, share = ep.Variable("rate", ep.Gamma), ep.Variable("share", ep.Beta)
    counts = ep.Density(lambda r: 3 * jnp.log(r) - 2 * r, rate)
    coins = ep.Density(lambda p: 2 * jnp.log(p) + 5 * jnp.log1p(-p), share)
    to_rate = ep.extending.ask(counts, ep.Gamma(1.5, 0.5), oracle=ep.Laplace(), rng=0)
    to_share = ep.extending.ask(coins, ep.Beta(0.7, 2.0), oracle=ep.Laplace(), rng=0)
    np.testing.assert_allclose(to_rate.messages[0].natural, (3, -2), rtol=1e-7)
    np.testing.assert_allclose(to_share.messages[0].natural, (2, 5), rtol=1e-7)


@pytest.mark.slow
def test_laplace_says_how_far_it_is_off_and_can_do_better():
    exact = ep.extending.ask(LABEL, CAVITIES)
    truth = CAVITIES * exact.messages[0]
    crude = ep.extending.ask(LABEL, CAVITIES, oracle=ep.Laplace(), rng=0)
    missed = np.sqrt(2 * truth.kl(CAVITIES * crude.messages[0]))
    assert missed.max() > 0.02
    assert (missed < crude.doubt).all()
    assert (np.abs(crude.messages[0].precision - exact.messages[0].precision) < 2 * crude.errors[0].precision).all()
    np.testing.assert_allclose(crude.log_normaliser, exact.log_normaliser, atol=0.05)
    better = ep.extending.ask(LABEL, CAVITIES, oracle=ep.Laplace(), error=0.02, rng=0)
    assert (better.doubt <= 0.02).all()
    assert (np.sqrt(2 * truth.kl(CAVITIES * better.messages[0])) < 4 * 0.02).all()
    np.testing.assert_allclose(better.log_normaliser, exact.log_normaliser, atol=0.02)


@pytest.mark.slow
def test_laplace_finds_far_modes_and_images():
    # A cavity far from where the factor lives, and the image of a curved function: the delta method.
    far = ep.Density(lambda z: -50 * (z - 30.0) ** 2, Z)
    message = ep.extending.ask(far, ep.Normal(0.0, 1.0), oracle=ep.Laplace(), rng=0).messages[0]
    np.testing.assert_allclose((message.precision_mean, message.precision), (3000, 100), rtol=1e-7)
    y = ep.Variable("y", ep.Normal)
    answer = ep.extending.ask(
        ep.BlackBox(jnp.exp, Z, y), ep.Normal(1.0, 1e-4), ep.Normal.flat(), oracle=ep.Laplace(), rng=0
    )
    assert answer.messages[1].mean() == pytest.approx(np.e, rel=1e-6)
    assert answer.messages[1].var() == pytest.approx(np.e**2 * 1e-4, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "oracle",
    [ep.ImportanceSampling(2000), ep.ImportanceSampling(2000, paired=False), ep.Laplace().more(2), ep.MCMC(2048)],
    ids=["paired", "plain", "around the mode", "MCMC"],
)
def test_stated_errors_of_messages_to_vectors_cover_at_their_rate(oracle):
    n, truth = 200, plane()
    answer = ep.extending.ask(PLANE, ep.MultivariateNormal.standard(2, (n,)), oracle=oracle, rng=9)
    message, errors = answer.messages[0], answer.errors[0]
    for at in range(2):
        covers(message.precision_mean[:, at] - truth.precision_mean[at], errors.precision_mean[:, at], rate=0.92)
        for other in range(2):
            covers(message.precision[:, at, other] - truth.precision[at, other], errors.precision[:, at, other], 0.92)
    # From 16 or 32 pieces: intervals of 95% by 1.96 errors cover 93 to 94%.
    belief = W.prior * truth
    missed = np.array([2 * (W.prior * message[i]).kl(belief) for i in range(n)])
    assert 0.6 < (missed / answer.doubt**2).mean() < 1.6


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [ep.Laplace().more(2), ep.MCMC(2048), ep.Stratified(500)])
def test_stated_errors_of_messages_to_numbers_cover_at_their_rate(oracle):
    incoming = repeated()
    exact = ep.extending.ask(LABEL, incoming)
    answer = ep.extending.ask(LABEL, incoming, oracle=oracle, rng=11)
    for name in ("precision", "precision_mean"):
        missed = getattr(answer.messages[0], name) - getattr(exact.messages[0], name)
        covers(missed, getattr(answer.errors[0], name), rate=0.9 if isinstance(oracle, ep.Stratified) else 0.92)
    assert (answer.effective > 20).all()
    assert np.abs(answer.log_normaliser - exact.log_normaliser).max() < 0.3


@pytest.mark.slow
def test_chains_agree_with_quadrature_in_every_family():
    rate, share = ep.Variable("rate", ep.Gamma(2.0, 1.0)), ep.Variable("share", ep.Beta(1.0, 2.0))
    factor = ep.Density(lambda r, p: 2 * jnp.log(p) - r * p, rate, share)
    exact = ep.extending.ask(factor, rate.prior, share.prior, oracle=ep.Quadrature())
    answer = ep.extending.ask(factor, rate.prior, share.prior, oracle=ep.MCMC(8000), rng=2)
    for message, truth, error in zip(answer.messages, exact.messages, answer.errors, strict=True):
        for a, b, e in zip(message.natural, truth.natural, error.natural, strict=True):
            assert abs(a - b) < 4.5 * e
    assert answer.log_normaliser == pytest.approx(exact.log_normaliser, abs=0.05)
    better = ep.extending.ask(factor, rate.prior, share.prior, oracle=ep.MCMC(1024), error=0.02, rng=2)
    assert better.doubt <= 0.02


COIN = ep.Variable("coin", ep.Beta)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: ep.BlackBox(lambda key, x: x, Z, COIN, random=True, oracle=ep.Laplace()),
            KindError,
            "random sampler, and ep.Laplace.* needs a density",
        ),
        (
            lambda: ep.Density(lambda x: -(float(x) ** 2), Z, oracle=ep.MCMC()),
            KindError,
            r"not a JAX function, and ep.MCMC.* needs its derivatives.*Stratified",
        ),
        (
            lambda: ep.Density(
                lambda q: jnp.log(q[0]), ep.Variable("q", ep.Dirichlet.standard(2)), oracle=ep.Laplace()
            ),
            KindError,
            "'q' of .* is a Dirichlet, which has no derivatives",
        ),
        (lambda: ep.MCMC(chains=3), ParameterError, "expected 2, 4, 8, 16 or 32"),
        (lambda: ep.MCMC(draws=10), ParameterError, "draws"),
        (lambda: ep.Laplace(points=3), ParameterError, "points"),
    ],
)
def test_what_the_smooth_oracles_refuse(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_an_answer_that_is_good_enough_is_left_alone():
    """Quadrature finds a jump by itself, so that asking for an error of .001 changes nothing."""
    upper = ep.Density(lambda z: jnp.where(z > 0.1, 0.0, -20.0), Z)
    plain, asked = (ep.extending.ask(upper, ep.Normal(0.0, 1.0), oracle=ep.Quadrature(), error=e) for e in (None, 1e-3))
    mass = scipy.stats.norm.sf(0.1) + np.exp(-20) * scipy.stats.norm.cdf(0.1)
    (message,) = plain.messages
    mean = message.precision_mean / (1 + message.precision)
    np.testing.assert_allclose(mean, scipy.stats.norm.pdf(0.1) * (1 - np.exp(-20)) / mass, rtol=1e-7)
    assert asked.doubt == plain.doubt < 1e-6
