"""Models of linear Gaussian factors alone: dense algebra and rational arithmetic are the judges."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from meanmap import ep
from meanmap.ep.inference import solved as module


def gaussian(design, prior_mean, prior_variance, y, precision):
    """Mean, standard deviations and log evidence of y = design θ + noise."""
    noise = np.broadcast_to(1 / np.asarray(precision, float), (len(y),))
    covariance = np.linalg.inv(np.diag(1 / prior_variance) + design.T @ (design / noise[:, None]))
    mean = covariance @ (prior_mean / prior_variance + design.T @ (y / noise))
    spread = design @ np.diag(prior_variance) @ design.T + np.diag(noise)
    return mean, np.sqrt(np.diag(covariance)), scipy.stats.multivariate_normal(design @ prior_mean, spread).logpdf(y)


def assert_solved(post, names, expected):
    mean, sd, log_evidence = expected
    np.testing.assert_allclose(np.concatenate([np.ravel(post[name].mean()) for name in names]), mean, atol=1e-9)
    np.testing.assert_allclose(np.concatenate([np.ravel(post[name].sd()) for name in names]), sd, rtol=1e-9)
    assert post.log_evidence == pytest.approx(log_evidence, abs=1e-7)
    assert post.report.status == "converged"
    assert post.report.notes == ()


@pytest.mark.parametrize(("groups", "rows", "precision"), [(1, 3, 4.0), (3, 9, 4.0), (3, 90, 4.0), (30, 900, 0.1)])
def test_groups_of_many_rows_are_exact(groups, rows, precision):
    """Messages diverge where a constant and few groups share many rows."""
    rng = np.random.default_rng(groups)
    g = np.arange(rows) % groups
    y = rng.normal(size=groups)[g] + rng.normal(size=rows)
    a, u = ep.Variable("a", ep.Normal(1.0, 10.0)), ep.Variable("u", ep.Normal(0.0, 0.5), plate=groups)
    post = ep.infer(ep.FactorGraph(ep.Sum(a, u[g], out=y, precision=precision)))
    prior = np.r_[1.0, np.zeros(groups)], np.r_[10.0, np.full(groups, 0.5)]
    assert_solved(post, "au", gaussian(np.c_[np.ones(rows), np.eye(groups)[g]], *prior, y, precision))


def test_sums_and_differences_are_exact_without_a_false_note():
    v = [ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "ab"]
    signs = np.array([[1.0, 1.0], [1.0, -1.0]])
    y = np.array([1.0, 2.0])
    post = ep.infer(
        ep.FactorGraph(*(ep.Sum(*v, out=out, weights=w, precision=10.0) for out, w in zip(y, signs, strict=True)))
    )
    assert_solved(post, "ab", gaussian(signs, np.zeros(2), np.ones(2), y, 10.0))


def test_what_is_written_in_steps_is_the_same():
    rng = np.random.default_rng(1)
    n, groups = 40, 5
    g, X = np.arange(n) % groups, np.c_[np.ones(n), rng.normal(size=n)]
    y = rng.normal(size=n)
    w, u = (
        ep.Variable("w", ep.MultivariateNormal(np.array([0.0, 1.0]), np.diag([4.0, 9.0]))),
        ep.Variable("u", ep.Normal, 5),
    )
    centre = ep.Variable("c", ep.Normal(0.5, 2.0), plate=groups)
    m, f = (ep.Variable(name, ep.Normal, plate=n) for name in "mf")
    post = ep.infer(
        ep.FactorGraph(
            ep.Dot(X, w, m),
            ep.Sum(centre, 1.0, out=u),  # u = c + 1
            ep.Sum(m, u[g], out=f),
            ep.Gaussian(f, observed=y, precision=3.0),
        )
    )
    design = np.c_[X, np.eye(groups)[g]]
    prior = np.r_[0.0, 1.0, np.full(groups, 1.5)], np.r_[4.0, 9.0, np.full(groups, 2.0)]
    expected = gaussian(design, *prior, y, 3.0)
    assert_solved(post, "wu", expected)
    np.testing.assert_allclose(post["f"].mean(), design @ expected[0], atol=1e-9)


def test_sums_that_hold_exactly_are_solved():
    a, b, c = (ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "abc")
    post = ep.infer(
        ep.FactorGraph(
            ep.Sum(a, b, c, out=3.0), ep.Sum(a, b, out=1.5, precision=2.0), ep.Sum(a, c, out=0.0, precision=1.0)
        )
    )
    expected = gaussian(
        np.array([[1.0, 1, 1], [1, 1, 0], [1, 0, 1]]), np.zeros(3), np.ones(3), [3, 1.5, 0], [1e9, 2, 1]
    )
    np.testing.assert_allclose([post[name].mean() for name in "abc"], expected[0], atol=1e-6)
    assert post.log_evidence == pytest.approx(expected[2], abs=1e-6)


def test_long_vectors_are_solved_sparsely(monkeypatch):
    rng = np.random.default_rng(2)
    n, steps = 60, 20
    level, slope = (ep.Variable(name, ep.Normal(0.0, 1.0), plate=steps) for name in ("level", "slope"))
    at, y = np.arange(n) % steps, rng.normal(size=n)
    factors = (
        ep.Sum(level[:-1], slope[:-1], out=level[1:], precision=5.0),
        ep.Gaussian(slope[:-1], slope[1:], precision=50.0),
        ep.Sum(level[at], out=y, precision=2.0),
    )
    dense = ep.infer(ep.FactorGraph(*factors))
    monkeypatch.setattr(module, "_DENSE", 5)
    monkeypatch.setattr(module, "_COLUMNS", 7)
    other = ep.infer(ep.FactorGraph(*factors))
    for name in ("level", "slope"):
        np.testing.assert_allclose(other[name].mean(), dense[name].mean(), atol=1e-9)
        np.testing.assert_allclose(other[name].sd(), dense[name].sd(), rtol=1e-9)
    assert other.log_evidence == pytest.approx(dense.log_evidence, abs=1e-7)


@pytest.mark.parametrize("offset", [1e7, 1e9])
def test_evidence_does_not_depend_on_where_zero_is(offset):
    y = np.random.default_rng(3).normal(size=20) + offset
    a = ep.Variable("a", ep.Normal(offset, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Gaussian(a, observed=y)))
    off = [Fraction(float(each)) - Fraction(offset) for each in y]
    square = sum(each * each for each in off) - sum(off) ** 2 / 21
    assert post.log_evidence == pytest.approx(-(20 * np.log(2 * np.pi) + np.log(21) + float(square)) / 2, abs=1e-6)


def test_columns_of_any_size_have_proper_beliefs():
    """A year and its square, as they are."""
    year = np.arange(2001.0, 2021)
    y = np.random.default_rng(4).normal(size=20)
    X, prior = np.c_[np.ones(20), year, year**2], np.array([1e8, 100.0, 1.0])
    w, z = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), np.diag(prior))), ep.Variable("z", ep.Normal, plate=20)
    post = ep.infer(ep.FactorGraph(ep.Dot(X, w, z), ep.Gaussian(z, observed=y)))
    scale = np.array([1.0, 2000.0, 4e6])
    precision = np.diag(1 / (prior * scale**2)) + (X / scale).T @ (X / scale)
    np.testing.assert_allclose(post["w"].sd(), np.sqrt(np.diag(np.linalg.inv(precision))) / scale, rtol=1e-4)
    assert post.report.notes == ()


@pytest.mark.parametrize("variance", [1e13, 1e16])
def test_rounding_that_decides_is_named(variance):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 2))
    w = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), variance * np.eye(3)))
    z = ep.Variable("z", ep.Normal, plate=20)
    post = ep.infer(ep.FactorGraph(ep.Dot(np.c_[X, X[:, 0]], w, z), ep.Gaussian(z, observed=X[:, 0])))
    assert any(note.startswith("'w': rounding affects standard deviations") for note in post.report.notes)
    assert post.report.status != "converged"


def test_a_run_continues_from_what_was_solved():
    a, u = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("u", ep.Normal(0.0, 1.0), plate=2)
    model = ep.FactorGraph(ep.Sum(a, u[[0, 0, 1]], out=[1.0, 2.0, 3.0], precision=1.0))
    first = ep.infer(model)
    assert first.messages == {}
    assert ep.infer(model, start_from=first)["a"] == first["a"]
    probit = ep.FactorGraph(*model.factors, ep.Probit(a, observed=1))
    assert ep.infer(probit, start_from=first)["a"].mean() == pytest.approx(ep.infer(probit)["a"].mean(), abs=1e-6)


@pytest.mark.parametrize("labels", [True, False])
def test_rows_of_zeros_are_known(labels):
    """A treatment of 0 or 1 without an intercept, beside effects of groups."""
    x, g = np.array([0.0, 1.0, 0.0, 1.0]), [0, 0, 1, 1]
    w, u = ep.Variable("w", ep.MultivariateNormal.standard(1)), ep.Variable("u", ep.Normal(0.0, 1.0), plate=2)
    z, f = (ep.Variable(name, ep.Normal, plate=4) for name in "zf")
    both, whole = ep.Variable("w, u", ep.MultivariateNormal.standard(3)), ep.Variable("whole", ep.Normal, plate=4)
    design = np.c_[x, np.eye(2)[g]]

    def said(of):
        return ep.Probit(of, observed=[0, 1, 1, 1]) if labels else ep.Gaussian(of, observed=[0.0, 1.0, 1.0, 2.0])

    post = ep.infer(ep.FactorGraph(ep.Dot(x[:, None], w, z), ep.Sum(z, u[g], out=f), said(f)))
    one = ep.infer(ep.FactorGraph(ep.Dot(design, both, whole), said(whole)))
    mean = np.concatenate([post["w"].mean(), post["u"].mean()])
    np.testing.assert_allclose(mean, one["w, u"].mean(), atol=1e-6)
    np.testing.assert_allclose(np.concatenate([post["w"].sd(), post["u"].sd()]), one["w, u"].sd(), rtol=1e-6)
    np.testing.assert_allclose(post["z"].mean()[::2], 0.0, atol=1e-12)
    assert post["z"].sd()[0] < 1e-5
    assert post.log_evidence == pytest.approx(one.log_evidence, abs=1e-6)
    assert post.report.status == "converged"
