"""Few nodes for labels and counts, against a rule with a thousand."""

import jax
import numpy as np
import pytest
from scipy.special import gammaln

from meanmap import ep
from meanmap.ep.calling import as_now
from meanmap.ep.factors.links import slopes_of
from meanmap.ep.quadrature.few import FewNodes
from meanmap.ep.quadrature.quadrature import Quadrature


def cavities(kind, members=200):
    """Labels or counts, and messages that come in: narrow and wide, where these are likely and where they are not."""
    rng = np.random.default_rng(5)
    mean, sd = 4 * rng.normal(size=members), np.exp(rng.uniform(np.log(1e-4), np.log(9.0), members))
    z = ep.Variable("z", ep.Normal(mean, sd**2), plate=members)
    if kind == "labels":
        return ep.Logistic(z, observed=rng.integers(0, 2, members)), mean, sd
    counts, exposure = rng.poisson(np.exp(rng.normal(size=members) * 3)), np.exp(rng.normal(size=members))
    return ep.Poisson(z, observed=counts, exposure=exposure), mean, sd


def asked(factor, mean, sd, oracle):
    """Answers to these messages: moves in standard deviations, gains of precision, log masses and doubts."""
    incoming = ep.Normal(mean, sd**2), *(each.values for each in factor.arguments[1:])
    with jax.enable_x64(True):
        answer = jax.jit(lambda given: oracle.answer(factor, given, 1.0, jax.random.key(0)))(incoming)
        mass = np.asarray(answer.log_normaliser - incoming[0].log_normaliser)
    told = answer.messages[0]
    precision = 1 + np.asarray(told.precision) * sd**2
    with np.errstate(invalid="ignore"):  # all mass may be at one node, which is in doubt
        moved = (np.asarray(told.precision_mean) - mean * np.asarray(told.precision)) * sd / precision
    return moved, precision, mass, np.asarray(answer.doubt)


def known(factor, mean, sd):
    """The same by 20,001 nodes."""
    t = np.linspace(-12, 12, 20_001)
    given = [each.values[:, None] for each in factor.arguments[1:]]
    log_likelihood = slopes_of(factor)(mean[:, None] + sd[:, None] * t, *given)[0]
    if len(given) == 2:
        log_likelihood += given[0] * np.log(given[1]) - gammaln(given[0] + 1)
    height = log_likelihood - t**2 / 2 - np.log(np.exp(-(t**2) / 2).sum())
    top = height.max(1)
    mass = np.exp(height - top[:, None])
    total = mass.sum(1)
    moved = mass @ t / total
    spread = (mass * (t - moved[:, None]) ** 2).sum(1) / total
    return moved, 1 / spread, np.log(total) + top


@pytest.mark.parametrize("kind", ["labels", "counts"])
def test_nodes_that_do_not_doubt_themselves_are_enough_and_others_have_more(kind):
    factor, mean, sd = cavities(kind)
    exact = known(factor, mean, sd)
    inside = np.abs(exact[0]) < 6  # where the reference holds what counts
    rounding = [0.0, 0.0, 1e-15 * (mean / sd) ** 2]  # of the normaliser of what comes in
    *few, doubt = asked(factor, mean, sd, FewNodes())
    sure = doubt < 1e-6
    assert 0.3 < sure.mean() < 0.9
    assert inside[sure].all()
    for one, other, more in zip(few, exact, rounding, strict=True):
        assert (np.abs(one - other) < 1e-12 * (1 + np.abs(other)) + doubt + more)[sure].all()
    # What many rows say together is as exact: next to nothing keeps its digits.
    narrow = sure & (sd < 0.01)
    np.testing.assert_allclose(few[0][narrow], exact[0][narrow], rtol=1e-8)
    *all_of_them, doubt = asked(factor, mean, sd, Quadrature())
    assert (doubt < 1e-6).all()
    for one, other, more in zip(all_of_them, exact, rounding, strict=True):
        assert (np.abs(one - other) < 1e-8 * (1 + np.abs(other)) + more)[inside].all()


@pytest.mark.parametrize("counts", [0.0, 1.0, 4.0])
def test_few_nodes_of_a_sigmoid_know_the_belief_about_the_probability_too(counts):
    rng, members = np.random.default_rng(7), 200
    mean, sd = 3 * rng.normal(size=members), np.exp(rng.uniform(np.log(1e-2), np.log(3.0), members))
    one = rng.integers(0, 2, members)
    z, p = ep.Variable("z", ep.Normal(mean, sd**2), plate=members), ep.Variable("p", ep.Beta, plate=members)
    with jax.enable_x64(True):
        factor = as_now(ep.BlackBox(jax.nn.sigmoid, z, p))
        told = ep.Beta(1 + counts * one, 1 + counts * (1 - one))
        answer = jax.jit(lambda given: FewNodes().answer(factor, given, 1.0, jax.random.key(0)))(
            (ep.Normal(mean, sd**2), told)
        )
        doubt = np.asarray(answer.doubt)
        sure = doubt < 1e-6
        belief = jax.tree.map(lambda one, two: np.asarray(one + two)[sure], answer.messages[1], told)
        found = np.stack(belief.expected_statistics)
    t = np.linspace(-12, 12, 4001)
    logit = (mean[:, None] + sd[:, None] * t)[sure]
    logs = np.stack([-np.logaddexp(0, -logit), -np.logaddexp(0, logit)])
    height = counts * np.where(one[sure, None], *logs) - t**2 / 2
    shares = np.exp(height - height.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    exact = (shares * logs).sum(-1)
    spread = np.sqrt((shares * (logs - exact[..., None]) ** 2).sum(-1))
    assert 0.5 < sure.mean() < 1
    assert (np.abs(found - exact) < 1e-6 * spread).all()
