"""Unknown labels joined by tables: against enumeration of all of them."""

import itertools

import numpy as np
import pytest
import scipy.stats

from meanmap import ep
from meanmap.core import KindError, ParameterError, ShapeError
from meanmap.families import Categorical


def test_a_hidden_markov_model_is_that_of_enumeration():
    rng = np.random.default_rng(0)
    start, moves, emission = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(4), 3)
    moves[0, 2] = 0  # what cannot be, too
    y = rng.integers(0, 4, 6)
    state = ep.Variable("state", ep.Categorical, plate=6, dimension=3)
    model = ep.FactorGraph(
        ep.Table(start, state[:1], name="start"),
        ep.Table(moves, state[:-1], state[1:], name="moves"),
        ep.Table(emission[:, y].T, state, name="seen"),
    )
    post = ep.infer(model)
    assert post.report.converged
    shares = np.zeros((6, 3))
    for path in itertools.product(range(3), repeat=6):
        weight = start[path[0]] * np.prod(emission[list(path), y])
        weight *= np.prod([moves[a, b] for a, b in itertools.pairwise(path)])
        shares[np.arange(6), path] += weight
    total = shares[0].sum()
    np.testing.assert_allclose(post["state"].mean, shares / total, atol=1e-9)
    assert post.log_evidence == pytest.approx(np.log(total), abs=1e-9)


def test_three_labels_in_one_factor():
    rng = np.random.default_rng(1)
    table, prior = rng.uniform(size=(2, 3, 2)), rng.dirichlet(np.ones(3))
    a, b, c = (
        ep.Variable("a", ep.Categorical, dimension=2),
        ep.Variable("b", Categorical(prior)),
        ep.Variable("c", ep.Categorical, dimension=2),
    )
    post = ep.infer(ep.FactorGraph(ep.Table(table, a, b, c), ep.Table([0.2, 0.8], a, name="a")))
    joint = table * prior[:, None] * np.array([0.2, 0.8])[:, None, None]
    for name, axes in (("a", (1, 2)), ("b", (0, 2)), ("c", (0, 1))):
        np.testing.assert_allclose(post[name].mean, joint.sum(axes) / joint.sum(), atol=1e-12)
    assert post.log_evidence == pytest.approx(np.log(joint.sum()), abs=1e-12)


def test_what_cannot_be_said_is_refused_in_words():
    x = ep.Variable("x", ep.Categorical, plate=6, dimension=3)
    z, g = ep.Variable("z", ep.Normal(0.0, 1.0), plate=6), ep.Variable("g", ep.Gamma(2.0, 2.0))
    with pytest.raises(ShapeError, match=r"has shape .2, 3.; expected .3, 3., or .5, 3, 3. with one table for each"):
        ep.Table(np.ones((2, 3)), x[:-1], x[1:])
    with pytest.raises(ParameterError, match=r"holds -1; expected numbers, 0 or more"):
        ep.Table([-1.0, 1.0, 1.0], x)
    with pytest.raises(KindError, match=r"label 0 of .* is the Normal 'z'; expected a Categorical"):
        ep.Table([1.0, 1.0], z)
    with pytest.raises(ShapeError, match="Table has no labels"):
        ep.Table([1.0, 1.0])
    with pytest.raises(KindError, match=r"'x' of the factor is a Categorical.*type ep.Table"):
        ep.Density(lambda label: label, x)
    with pytest.raises(KindError, match=r"noise of Interval.z. is the variable 'g'; expected a number.*precision=tau"):
        ep.Interval(z, 0.0, noise=g)
    with pytest.raises(KindError, match=r"cutpoints of Ordinal.z. are variables; expected numbers.*ordinal_regression"):
        ep.Ordinal(z, [z, z], observed=np.zeros(6))
    with pytest.raises(ParameterError, match=r"plate of variable 'q' is .2, 3.; .* A plate has one axis"):
        ep.Variable("q", ep.Normal, plate=(2, 3))


def test_student_noise_of_unknown_scale_is_that_of_a_sum():
    y = 1 + 2 * np.random.default_rng(0).standard_t(4, 30)
    mu, scale = ep.Variable("mu", ep.Normal(0.0, 100.0)), ep.Variable("scale", ep.Gamma(2.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Student(mu, observed=y, scale=scale)))
    m, log_s = np.meshgrid(np.linspace(-3, 5, 200), np.linspace(-1, 2, 200), indexing="ij")
    log_joint = scipy.stats.norm.logpdf(m, 0, 10) + scipy.stats.gamma.logpdf(np.exp(log_s), 2) + log_s
    log_joint += scipy.stats.t.logpdf(y[:, None, None], 4, m, np.exp(log_s)).sum(0)
    law = np.exp(log_joint - log_joint.max())
    cell = 8 / 199 * 3 / 199
    assert post.log_evidence == pytest.approx(np.log(law.sum() * cell) + log_joint.max(), abs=0.05)
    law /= law.sum()
    mean, expected = (law * m).sum(), (law * np.exp(log_s)).sum()
    assert post["mu"].mean == pytest.approx(mean, abs=0.03)
    assert post["mu"].sd == pytest.approx(np.sqrt((law * (m - mean) ** 2).sum()), rel=0.03)
    assert post["scale"].mean == pytest.approx(expected, rel=0.02)
    with pytest.raises(KindError, match=r"scale of .* is the Normal 'mu'; expected a Gamma"):
        ep.Student(mu, observed=y, scale=mu)
