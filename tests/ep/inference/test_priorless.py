"""Variables without a prior whose beliefs are no distributions are named, with what to type."""

import math

import numpy as np
import pytest
import scipy.stats

from meanmap import ep


def note_of(*factors):
    post = ep.infer(ep.FactorGraph(*factors))
    assert "improper belief" in post.report.status or post.report.status == "converged, but a belief is improper"
    assert np.isnan(post.log_evidence)
    return post.report.notes[0]


def test_a_number_without_a_prior_is_named_with_what_to_type():
    x, y = ep.Variable("x", ep.Normal), ep.Variable("y", ep.Normal)
    assert note_of(ep.Gaussian(x, y, precision=1.0)) == (
        "'x' has no prior, and the belief about it is improper, so there is no log "
        "evidence: give it a prior, such as ep.Variable('x', ep.Normal(0.0, 1.0))"
    )
    assert note_of(ep.Interval(x, 0.0)).endswith("give it a prior, such as ep.Variable('x', ep.Normal(0.0, 1.0))")


def test_what_is_computed_from_weights_without_a_prior_is_not_named():
    w, z = ep.Variable("w", ep.MultivariateNormal, dimension=2), ep.Variable("z", ep.Normal, plate=3)
    note = note_of(ep.Dot(np.eye(3)[:, :2], w, z), ep.Logistic(z, observed=[0, 1, 1]))
    assert note.startswith("'w' has no prior, ")
    assert note.endswith("such as ep.Variable('w', ep.MultivariateNormal.standard(2))")


@pytest.mark.parametrize("plate", [None, 2])
def test_data_that_say_enough_need_no_prior(plate):
    x = ep.Variable("x", ep.Normal, plate=plate)
    post = ep.infer(ep.FactorGraph(ep.Gaussian(x, observed=1.0 if plate is None else [1.0, 2.0], precision=2.0)))
    assert post.report.status == "converged"
    (note,) = post.report.notes
    assert note.startswith("'x' has no prior: the log evidence is that of a density of 1")


def test_a_belief_under_a_name_that_is_nearly_known():
    post = ep.infer(ep.FactorGraph(ep.Gaussian(ep.Variable("slope", ep.Normal(0.0, 1.0)), observed=1.0)))
    with pytest.raises(KeyError, match="did you mean 'slope'"):
        post["slop"]


def over_flat(design, y, variance):
    """The log of the integral of a normal density of y, of mean X b, over all b."""
    inverse = np.linalg.inv(variance)
    square = design.T @ inverse @ design
    off = y - design @ np.linalg.solve(square, design.T @ inverse @ y)
    log = -off @ inverse @ off - (len(y) - design.shape[1]) * np.log(2 * np.pi)
    return (log - np.linalg.slogdet(variance)[1] - np.linalg.slogdet(square)[1]) / 2


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_the_evidence_without_a_prior_is_an_integral_over_all_values(groups, vector, unit):
    """In units of what has no prior, which a note says."""
    y, g, x = np.array([0.0, 2.0, 1.0, 5.0, 3.0, 4.0]), np.array([0, 1, 0, 1, 0, 1]), np.arange(6.0)
    design = np.c_[np.ones(6), x] if vector else np.ones((6, 1))
    u = ep.Variable("u", ep.Normal(0.0, 1.0), plate=2)
    if vector:
        b, f = ep.Variable("b", ep.MultivariateNormal, dimension=2), ep.Variable("f", ep.Normal, plate=6)
        factors, terms, weights = [ep.Dot(design / unit, b, f)], [f], [1.0]
    else:
        factors, terms, weights = [], [ep.Variable("b", ep.Normal)], [1 / unit]
    if groups:
        terms, weights = [*terms, u[g]], [*weights, 1.0]
    post = ep.infer(ep.FactorGraph(*factors, ep.Sum(*terms, out=y, weights=weights, precision=2.0)))
    effects = np.eye(2)[g] if groups else np.zeros((6, 1))
    expected = over_flat(design / unit, y, np.eye(6) / 2 + effects @ effects.T)
    assert post.log_evidence == pytest.approx(expected, abs=1e-8)
    assert post.report.status == "converged"
    (note,) = post.report.notes
    assert note == (
        "'b' has no prior: the log evidence is that of a density of 1 for all values of it. It depends on its unit, "
        "and compares only models that also have it"
    )


def test_a_positive_number_without_a_prior_is_named_too():
    rate, precision = ep.Variable("rate", ep.Gamma), ep.Variable("precision", ep.Gamma)
    post = ep.infer(ep.FactorGraph(ep.Poisson(rate, observed=[3, 4])))
    assert post.log_evidence == pytest.approx(math.log(math.factorial(7) / 2**8 / 144), abs=1e-9)
    (note,) = post.report.notes
    assert note.startswith("'rate' has no prior: the log evidence is that of a density of 1 for all values of it")
    # The integral of a normal density of four numbers of mean 0 over all precisions.
    y = np.array([1.0, -2.0, 0.5, 1.5])
    post = ep.infer(ep.FactorGraph(ep.Gaussian(0.0, observed=y, precision=precision)))
    expected = math.lgamma(3) - 3 * math.log((y**2).sum() / 2) - 2 * math.log(2 * math.pi)
    assert post.log_evidence == pytest.approx(expected, abs=1e-9)
    assert post.report.notes[0].startswith("'precision' has no prior")


def test_what_has_a_law_by_factors_is_not_called_flat():
    x, y, s = (ep.Variable(name, ep.Normal, plate=plate) for name, plate in (("x", 3), ("y", None), ("s", None)))
    chain = (
        ep.Gaussian(0.0, x[[0]]),
        ep.Sum(x[[0, 1]], out=x[[1, 2]], precision=1.0),
        ep.Gaussian(x, observed=[1, 2, 3]),
    )
    assert ep.infer(ep.FactorGraph(*chain)).report.notes == ()
    density = ep.Density(lambda value: -(value**2) / 2, y)
    assert not any("density of 1" in n for n in ep.infer(ep.FactorGraph(density, ep.Gaussian(y, 1.0))).report.notes)
    total = ep.Variable("total", ep.Normal(0.0, 1.0))
    assert ep.infer(ep.FactorGraph(ep.Sum(s, out=total, precision=1.0), ep.Gaussian(s, 1.0))).report.notes == ()


def test_several_without_a_prior_are_named_beside_a_likelihood_that_is_not_normal():
    """One Probit, whose normal law is given by rows: Φ of its mean over the root of one more than its variance."""
    a, b = (ep.Variable(name, ep.Normal) for name in "ab")
    rows = [ep.Sum(a, b, out=y, weights=w, precision=1.0) for y, w in ((1.0, (1, 1)), (2.0, (1, -1)), (0.0, (1, 2)))]
    post = ep.infer(ep.FactorGraph(*rows, ep.Probit(a, observed=1)))
    design, y = np.array([[1.0, 1], [1, -1], [1, 2]]), np.array([1.0, 2, 0])
    covariance = np.linalg.inv(design.T @ design)
    mean = covariance @ design.T @ y
    log_share = scipy.stats.norm.logcdf(mean[0] / np.sqrt(1 + covariance[0, 0]))
    assert post.log_evidence == pytest.approx(over_flat(design, y, np.eye(3)) + log_share, abs=1e-9)
    assert post.report.notes[0].startswith("'a', 'b' have no prior: the log evidence is that of a density of 1")
