"""Sites that are updated all at once, against sites one after another in dense algebra, and against quadrature."""

import numpy as np
import pytest

from meanmap.ep.linear import sites
from meanmap.ep.linear.block import Block
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.likelihoods import FAMILIES
from meanmap.ep.linear.predictor import Predictor, Prior
from meanmap.ep.linear.sites import settle

PARAMETERS = {
    "gaussian": [0.3],
    "t": [0.3, 1.2],
    "negativebinomial": [0.4],
    "gamma": [0.7],
    "cumulative": [0.2, -0.4],
}
EVERY = pytest.mark.parametrize(("name", "link"), list(FAMILIES))


def problem(name, link, rows=30):
    rng = np.random.default_rng(11)
    family, parameters = FAMILIES[name, link], np.array(PARAMETERS.get(name, []))
    x = rng.normal(size=(rows, 2))
    blocks = (Block.fixed(x), Block(np.arange(rows) % 6, np.ones((rows, 1)), 6))
    prior = Prior((np.array([0.5, 0.0]), np.zeros(1)), (np.diag([4.0, 1.0]), np.array([[0.8]])))
    offset, weights = rng.normal(size=rows) / 3, np.where(np.arange(rows) < 3, 2.0, 1.0)
    eta = x @ [0.4, -0.6] + rng.normal(size=6)[np.arange(rows) % 6]
    empty = Observed.of(np.zeros(rows), 4.0 if name == "binomial" else 1.0)
    y = family.draw(empty, eta + offset, parameters, rng)
    return family, parameters, Predictor(blocks), prior, Observed.of(y, empty.trials, offset, weights)


def one_by_one(family, parameters, predictor, prior, observed, sweeps=60):
    """Expectation propagation as in the books: a dense joint, cavities, moments on a fine grid."""
    rows = predictor.rows
    A = np.concatenate([block.matrix.toarray() for block in predictor.blocks], axis=1)
    Q = np.diag(np.concatenate([1 / np.diag(prior.covariances[0]), np.full(6, 1 / prior.covariances[1][0, 0])]))
    m = np.concatenate([prior.means[0], np.zeros(6)])
    tau, nu, log_z = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for _ in range(sweeps):
        for i in range(rows):
            S = np.linalg.inv(Q + A.T @ np.diag(tau) @ A)
            mean, v = A[i] @ S @ (Q @ m + A.T @ nu), A[i] @ S @ A[i]
            left = 1 / v - tau[i]
            vc, mc = 1 / left, (mean / v - nu[i]) / left
            t = mc + np.sqrt(vc) * np.linspace(-9, 9, 3001)
            log_p = family.weighted(observed.taken(slice(i, i + 1)).columns(), t[None], parameters)[0]
            p = np.exp(log_p - (t - mc) ** 2 / (2 * vc)) * (t[1] - t[0]) / np.sqrt(2 * np.pi * vc)
            z, m1 = p.sum(), (p * t).sum() / p.sum()
            v1 = (p * (t - m1) ** 2).sum() / z
            tau[i], nu[i] = 1 / v1 - 1 / vc, m1 / v1 - mc / vc
            # Mass of the cavity times the new site, whose product is N(m1, v1) up to a constant.
            log_z[i] = np.log(z) - (np.log(v1 / vc) + m1**2 / v1 - mc**2 / vc) / 2
    P = Q + A.T @ np.diag(tau) @ A
    S, h = np.linalg.inv(P), Q @ m + A.T @ nu
    log_gauss = (h @ S @ h - m @ Q @ m - np.linalg.slogdet(P)[1] + np.linalg.slogdet(Q)[1]) / 2
    return S @ h, S, log_gauss + log_z.sum(), A


@EVERY
def test_the_fixed_point_is_that_of_sites_one_after_another(name, link):
    family, parameters, predictor, prior, observed = problem(name, link)
    mean, covariance, log_evidence, A = one_by_one(family, parameters, predictor, prior, observed, sweeps=15)
    found = settle(predictor, prior, family, observed, parameters, tolerance=1e-9)
    assert found.converged
    assert found.sweeps == 1 if family.exact else found.sweeps < 40
    np.testing.assert_allclose(found.joint.mean, mean, atol=2e-5)
    np.testing.assert_allclose(found.variances, np.einsum("ni,ij,nj->n", A, covariance, A), rtol=1e-4)
    np.testing.assert_allclose(found.log_evidence, log_evidence, atol=2e-5)


@EVERY
def test_one_row_is_exact(name, link):
    """With one site expectation propagation has the moments and the evidence of the posterior."""
    family, parameters, _, _, observed = problem(name, link)
    seen = observed.taken(slice(0, 1))
    found = settle(
        Predictor((Block.fixed(np.array([[1.5]])),)),
        Prior((np.array([0.2]),), (np.array([[2.0]]),)),
        family,
        seen,
        parameters,
        tolerance=1e-10,
    )
    theta = 0.2 + np.sqrt(2.0) * np.linspace(-10, 10, 20_001)
    p = np.exp(family.weighted(seen.columns(), 1.5 * theta[None], parameters)[0] - (theta - 0.2) ** 2 / 4)
    p *= (theta[1] - theta[0]) / np.sqrt(4 * np.pi)
    mean = (p * theta).sum() / p.sum()
    np.testing.assert_allclose(found.joint.mean, [mean], atol=1e-6)
    np.testing.assert_allclose(found.variances / 1.5**2, (p * (theta - mean) ** 2).sum() / p.sum(), rtol=1e-6)
    np.testing.assert_allclose(found.log_evidence, np.log(p.sum()), atol=1e-6)


def test_a_run_goes_on_from_sites_of_another():
    family, parameters, predictor, prior, observed = problem("bernoulli", "logit")
    first = settle(predictor, prior, family, observed, parameters)
    again = settle(predictor, prior, family, observed, parameters, first)
    assert first.sweeps > 3
    assert again.sweeps == 1
    np.testing.assert_allclose(again.log_evidence, first.log_evidence, atol=1e-9)


def test_many_rows_of_one_group_settle():
    """All rows of a group move at once and overshoot; steps are as long as residuals say."""
    rng = np.random.default_rng(0)
    index = np.repeat(np.arange(20), 200)
    predictor = Predictor((Block(index, np.ones((4000, 1)), 20),))
    eta = 3 * rng.normal(size=20)[index]
    observed = Observed.of((rng.random(4000) < 1 / (1 + np.exp(-eta))).astype(float))
    prior = Prior((np.zeros(1),), (np.array([[25.0]]),))
    found = settle(predictor, prior, FAMILIES["bernoulli", "logit"], observed, np.zeros(0))
    assert found.converged
    # Each group is one posterior on the line.
    grid = np.linspace(-25, 25, 20_001)
    for group in range(0, 20, 5):
        y = observed.response[index == group]
        log_p = y.sum() * grid - 200 * np.logaddexp(0, grid) - grid**2 / 50
        p = np.exp(log_p - log_p.max())
        mean = (p * grid).sum() / p.sum()
        sd = np.sqrt((p * (grid - mean) ** 2).sum() / p.sum())
        assert abs(found.joint.mean[group] - mean) < 0.03 * sd


LITTLE = [
    ("bernoulli", "logit"),
    ("bernoulli", "probit"),
    ("binomial", "logit"),
    ("poisson", "log"),
    ("negativebinomial", "log"),
    ("cumulative", "logit"),
]


@pytest.mark.parametrize(("name", "link"), LITTLE)
def test_few_nodes_serve_where_a_row_says_little(name, link, monkeypatch):
    """For beliefs and sites, which need not fit the likelihood, up to where the rule is chosen."""
    rng = np.random.default_rng(8)
    family, n = FAMILIES[name, link], 4000
    p = np.array(PARAMETERS.get(name, []))
    means, variances = 2 * rng.normal(size=n), rng.uniform(1e-4, 1, n)
    observed = Observed.of(np.zeros(n), 7.0 if name == "binomial" else 1.0)
    observed = Observed.of(
        family.draw(observed, means + np.sqrt(variances) * rng.normal(size=n), p, rng), observed.trials
    )
    weights = 0.25 * rng.random(n) / variances
    weights = np.minimum(weights, family.first_sites(observed, p)[0] * 2)
    shifts = weights * means
    known = sites.Predictors(means, variances, weights, shifts)
    few = known.tilted(family, observed, p)
    monkeypatch.setattr(sites, "_LITTLE", -1.0)
    many = known.tilted(family, observed, p)
    atol = 2e-6 if observed.response.max() <= 2 else 5e-5
    np.testing.assert_allclose(few[0], many[0], atol=atol)
    np.testing.assert_allclose((few[1] - many[1]) / np.sqrt(variances), 0, atol=atol)
    np.testing.assert_allclose(few[2], many[2], rtol=5 * atol)
    assert not np.array_equal(few[0], many[0])
    line = np.linspace(-9, 9, 1801)
    second = np.diff(family.log_density(observed.columns(), line, p), 2, axis=1) / 0.01**2
    assert (np.abs(second) <= 1.001 * family.bend(observed.columns(), line[1:-1], p) + 1e-6).all()


def test_what_many_rows_have_left_in_common_is_not_left():
    """A million labels were .75 standard deviations from their mode, each row within its tolerance: "converged"."""
    rng, rows = np.random.default_rng(0), 100_000
    x = np.column_stack([np.ones(rows), rng.normal(size=(rows, 3))])
    chance = 1 / (1 + np.exp(-x @ [0.3, 0.5, -0.4, 0.2]))
    y = (rng.random(rows) < chance).astype(float)
    predictor = Predictor((Block.fixed(x),))
    prior = Prior((np.zeros(4),), (10 * np.eye(4),))
    observed = Observed.of(y, 1.0)
    found = settle(predictor, prior, FAMILIES["bernoulli", "logit"], observed, np.zeros(0), tolerance=1e-4)
    best = settle(predictor, prior, FAMILIES["bernoulli", "logit"], observed, np.zeros(0), tolerance=1e-10)
    away = (found.means - best.means) * np.sqrt(chance * (1 - chance))
    assert found.converged
    assert np.sqrt(away @ away) < 0.01  # of every combination of effects, in standard deviations
