"""Sites that are updated all at once, against sites one after another in dense algebra, and against quadrature."""

import numpy as np
import pytest

from meanmap.ep.linear import sites
from meanmap.ep.linear.block import Block
from meanmap.ep.linear.components import Components, HalfStudent
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.likelihoods import FAMILIES
from meanmap.ep.linear.predictor import Predictor, Prior
from meanmap.ep.linear.problem import Problem
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


def rows_of_all_kinds(family, name, p, n=700):
    """Beliefs, and sites that need not fit: narrow and wide, many trials, responses that are likely or not."""
    rng = np.random.default_rng(8)
    means, variances = 2 * rng.normal(size=n), np.exp(rng.uniform(np.log(1e-6), np.log(9), n))
    trials = np.exp(rng.uniform(0, np.log(1e6), n)).round() if name == "binomial" else np.ones(n)
    empty = Observed.of(np.zeros(n), trials)
    y = family.draw(empty, means + np.sqrt(variances) * rng.normal(size=n), p, rng)
    observed = Observed.of(y, trials, rng.normal(size=n) / 9, np.where(np.arange(n) % 7, 1.0, 3.0))
    step = 1e-3 * np.minimum(1, np.sqrt(variances))
    low, middle, high = (family.weighted(observed, means + side * step, p) for side in (-1, 0, 1))
    weights = np.minimum((2 * middle - low - high) / step**2 * np.exp(0.2 * rng.normal(size=n)), 0.95 / variances)
    shifts = (high - low) / (2 * step) * rng.uniform(0.8, 1.2, n) + weights * means
    return sites.Predictors(means, variances, weights, shifts), observed


@EVERY
def test_few_nodes_do_where_they_say_so(name, link, monkeypatch):
    """Against a rule with 4001 nodes, for all that the rules of Gauss and Hermite do not pass on."""
    family, p = FAMILIES[name, link], np.array(PARAMETERS.get(name, []))
    if family.exact:
        return
    known, observed = rows_of_all_kinds(family, name, p)
    found = known.tilted(family, observed, p)
    passed_on = sites._Rule(np.zeros(1), np.full(1, np.nan), np.full((4, 1), np.nan))
    rules = sites._rules()
    monkeypatch.setattr(sites, "_rules", lambda: (*rules[:-1], passed_on))
    sure = np.isfinite(known.tilted(family, observed, p).gains)
    assert sure.mean() > 0.3
    t = np.linspace(-14, 14, 4001)
    fine = sites._Rule(t, -(t**2) / 2 - np.log(np.exp(-(t**2) / 2).sum()), rules[0].polynomials[:4, :1])
    _, log_tilted = known.log_tilt(family, observed, p, fine)
    mass = np.exp(log_tilted - log_tilted.max(0))
    total = mass.sum(0)
    mean = t @ mass / total
    variance, third = (((t[:, None] - mean) ** k * mass).sum(0) / total for k in (2, 3))
    sd = np.sqrt(known.variances)
    for one, other, atol in (
        (found.gains, np.log(total) + log_tilted.max(0), 1e-8),
        ((found.means - known.means) / sd, mean, 1e-8),
        (found.variances / sd**2, variance, 1e-7),
        (found.thirds / sd**3, third, 1e-6),
    ):
        np.testing.assert_allclose(one[sure], other[sure], rtol=1e-8, atol=atol)


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


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_many_rows_without_groups_begin_at_the_mode(name):
    """Of which some rows lead near; the belief is the same."""
    rng, rows = np.random.default_rng(5), 40_000
    family = next(family for (each, _), family in FAMILIES.items() if each == name)
    X = np.column_stack([np.ones(rows), rng.normal(size=rows), np.arange(rows) % 200 == 0])
    parameters = np.array(PARAMETERS.get(name, []))
    observed = Observed.of(family.draw(Observed.of(np.zeros(rows)), X @ [-0.5, 0.4, -1.0], parameters, rng))
    law = HalfStudent(3.0, 2.5)
    components = Components(((np.zeros(3), 6 * np.eye(3)),), (), (), (law,) * len(parameters))
    problem = Problem(Predictor((Block.fixed(X),)), components, family, observed)
    found = problem.run(parameters)
    plain = settle(problem.predictor, components.prior(parameters), family, observed, parameters, tolerance=1e-6)
    assert found is not None
    assert found.converged
    assert problem.runs == 1
    sds = np.sqrt(np.diag(plain.joint.within(0)[0]))
    np.testing.assert_allclose((found.joint.mean - plain.joint.mean) / sds, 0, atol=1e-4)
    np.testing.assert_allclose(np.sqrt(np.diag(found.joint.within(0)[0])), sds, rtol=3e-5)
    np.testing.assert_allclose(found.log_evidence, plain.log_evidence, atol=1e-5)
