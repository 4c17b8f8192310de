"""Unknowns that meet in linear factors round loops share one joint belief, also where the likelihood is not normal."""

import itertools

import numpy as np
import pytest
import scipy.stats

from meanmap import ep
from meanmap.ep.inference import eliminated, joined

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(2), 6)
X = RNG.normal(size=12)
PASSED = (RNG.normal(size=12) + X > 0.5).astype(int)
DESIGN = np.column_stack([np.ones(12), X, np.eye(2)[GROUPS]])
SDS = np.array([2.0, 2.0, 1.5, 1.5])


def by_vector_and_sum(likelihood=ep.Logistic, known=0.0, observed=PASSED):
    w, u = ep.Variable("w", ep.MultivariateNormal([0.0, 0.0], 4 * np.eye(2))), effects()
    f, h = plates("f", "h")
    terms = (f, u[GROUPS]) if np.all(known == 0) else (f, u[GROUPS], known)
    return ep.Dot(DESIGN[:, :2], w, f), ep.Sum(*terms, out=h), likelihood(h, observed=observed)


def effects(sd=1.5):
    return ep.Variable("u", ep.Normal(0.0, sd**2), plate=2)


def plates(*names):
    return tuple(ep.Variable(name, ep.Normal, plate=12) for name in names)


def one_vector(likelihood=ep.Logistic, known=0.0, observed=PASSED):
    w = ep.Variable("w", ep.MultivariateNormal(np.zeros(4), np.diag(SDS**2)))
    f, h = plates("f", "h")
    return ep.infer(ep.FactorGraph(ep.Dot(DESIGN, w, f), ep.Sum(f, known, out=h), likelihood(h, observed=observed)))


def moments(post, *names):
    means = np.concatenate([np.ravel(post[name].mean()) for name in names])
    variances = [np.diag(post[n].cov()) if np.ndim(post[n].mean()) and n == "w" else post[n].var() for n in names]
    return means, np.sqrt(np.concatenate([np.ravel(each) for each in variances]))


def assert_same(post, other, *names):
    for one, two in zip(moments(post, *names), moments(other, "w"), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    assert post.log_evidence == pytest.approx(other.log_evidence, abs=1e-6)
    assert post.report.status == "converged"
    assert post.report.notes == ()


def test_deviations_are_those_of_quadrature():
    model = ep.FactorGraph(*by_vector_and_sum())
    post = ep.infer(model)
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    points = np.array(list(itertools.product(nodes, repeat=4))) * SDS
    prior = np.prod(np.array(list(itertools.product(weights / weights.sum(), repeat=4))), axis=1)
    mass = prior * np.exp(-np.logaddexp(0, (1 - 2 * PASSED) * (points @ DESIGN.T)).sum(1))
    mean = mass @ points / mass.sum()
    sd = np.sqrt(mass @ (points - mean) ** 2 / mass.sum())
    found = moments(post, "w", "u")
    np.testing.assert_allclose(found[1], sd, rtol=0.03)
    np.testing.assert_allclose(found[0], mean, atol=0.05)
    assert post.log_evidence == pytest.approx(np.log(mass.sum()), abs=0.05)
    assert list(post) == list(model.variables)


def test_the_belief_is_that_of_one_vector():
    found = ep.infer(ep.FactorGraph(*by_vector_and_sum()))
    assert_same(found, one_vector(), "w", "u")
    np.testing.assert_allclose(found["h"].mean(), found["f"].mean() + found["u"].mean()[GROUPS], atol=1e-6)


def test_numbers_in_plates_and_sums_of_sums_are_part_of_it():
    a, b, u = ep.Variable("a", ep.Normal(0.0, 4.0)), ep.Variable("b", ep.Normal(0.0, 4.0)), effects()
    half, f, h = plates("half", "f", "h")
    left, right = np.where(X < 0, 1.0, 0.0), GROUPS
    sums = (
        ep.Sum(a, u[right], out=f),
        ep.Sum(f, weights=[0.5], out=half),
        ep.Sum(half, b, left, weights=[2.0, -1.0, 3.0], out=h),
    )
    vector = ep.Variable("w", ep.MultivariateNormal(np.zeros(4), np.diag([4.0, 2.25, 2.25, 4.0])))
    design = np.column_stack([np.ones(12), np.eye(2)[GROUPS], -np.ones(12)])
    g, k = plates("g", "k")
    judge = ep.FactorGraph(ep.Dot(design, vector, g), ep.Sum(g, 3 * left, out=k), ep.Probit(k, observed=PASSED))
    assert_same(ep.infer(ep.FactorGraph(*sums, ep.Probit(h, observed=PASSED))), ep.infer(judge), "a", "u", "b")


def test_known_numbers_are_part_of_sums():
    known = np.linspace(-1, 1, 12)
    found = ep.infer(ep.FactorGraph(*by_vector_and_sum(ep.Probit, known)))
    assert_same(found, one_vector(ep.Probit, known), "w", "u")


def test_rows_with_normal_noise_beside_others():
    """An observed sum of the same unknowns with noise, and a factor of one of them."""
    w, u = ep.Variable("w", ep.Normal(0.0, 4.0)), effects()
    (h,) = plates("h")
    observed = ep.Sum(w, u[[0]], 2.0, out=[3.0], precision=4.0)
    model = ep.FactorGraph(
        ep.Sum(w, u[GROUPS], out=h), ep.Probit(h, observed=PASSED), observed, ep.Interval(u, 0.0, noise=1)
    )
    vector = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), np.diag([4, 2.25, 2.25])))
    (g,), r, v = plates("g"), ep.Variable("r", ep.Normal, plate=1), ep.Variable("v", ep.Normal, plate=2)
    judge = ep.FactorGraph(
        ep.Dot(np.column_stack([np.ones(12), np.eye(2)[GROUPS]]), vector, g),
        ep.Probit(g, observed=PASSED),
        ep.Dot([[1.0, 1.0, 0.0]], vector, r),
        ep.Sum(r, 2.0, out=[3.0], precision=4.0),
        ep.Dot(np.eye(3)[1:], vector, v),
        ep.Interval(v, 0.0, noise=1),
    )
    assert_same(ep.infer(model), ep.infer(judge), "w", "u")


def test_runs_continue_and_batches_follow():
    model = ep.FactorGraph(*by_vector_and_sum())
    post = ep.infer(model)
    again = ep.infer(model, start_from=post)
    assert again.report.steps <= 2
    np.testing.assert_allclose(again["u"].var(), post["u"].var(), rtol=1e-5)
    more = ep.Variable("u", ep.Normal(0.0, 1.5**2), plate=3)
    w, (f, h) = model.variables["w"], plates("f", "h")
    grown = ep.Dot(DESIGN[:, :2], w, f), ep.Sum(f, more[GROUPS], out=h), ep.Logistic(h, observed=PASSED)
    np.testing.assert_allclose(
        ep.infer(ep.FactorGraph(*grown), start_from=post)["u"].var()[:2], post["u"].var(), rtol=1e-5
    )
    u = model.variables["u"]
    later = post.update(ep.FactorGraph(ep.Sum(u, out=[0.0, 0.0], precision=1.0)))
    np.testing.assert_allclose(1 / later["u"].var(), 1 / post["u"].var() + 1, rtol=1e-9)


def test_gradients_of_the_evidence_are_differences_of_runs():
    def run(sd):
        w = ep.Variable("w", ep.MultivariateNormal([0.0, 0.0], 4 * np.eye(2)))
        u, (f, h) = effects(sd), plates("f", "h")
        factors = ep.Dot(DESIGN[:, :2], w, f), ep.Sum(f, u[GROUPS], out=h), ep.Probit(h, observed=PASSED)
        return ep.infer(ep.FactorGraph(*factors), tolerance=1e-10)

    found = run(1.5).evidence_gradient(lambda sd: {"u": ep.Normal(0.0, sd**2)}, 1.5)
    assert found == pytest.approx((run(1.501).log_evidence - run(1.499).log_evidence) / 0.002, rel=1e-4)


def test_what_is_computed_in_part_is_part_of_it():
    """A chain without noise, whose first member is not computed from others."""
    x, u, (h,) = ep.Variable("x", ep.Normal, plate=12), effects(), plates("h")
    chain = ep.Gaussian(0.0, x[[0]]), ep.Sum(x[np.arange(11)], out=x[np.arange(1, 12)], weights=[0.9])
    post = ep.infer(ep.FactorGraph(*chain, ep.Sum(x, u[GROUPS], out=h), ep.Probit(h, observed=PASSED)))
    vector = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), np.diag([1.0, 2.25, 2.25])))
    (g,) = plates("g")
    design = np.column_stack([0.9 ** np.arange(12), np.eye(2)[GROUPS]])
    judge = ep.infer(ep.FactorGraph(ep.Dot(design, vector, g), ep.Probit(g, observed=PASSED)))
    np.testing.assert_allclose(post["x"].sd(), judge["w"].sd()[0] * 0.9 ** np.arange(12), rtol=1e-6)
    np.testing.assert_allclose(post["u"].sd(), judge["w"].sd()[1:], rtol=1e-6)
    assert post.log_evidence == pytest.approx(judge.log_evidence, abs=1e-6)
    assert post.report.status == "converged"


@pytest.mark.parametrize("known", [0.0, np.linspace(-1, 1, 12)])
@pytest.mark.parametrize("others", [False, True])
def test_long_vectors_have_some_numbers_integrated_out(monkeypatch, known, others):
    """With an observed sum and a factor of the effects, or without."""
    factors = by_vector_and_sum(ep.Probit, known)
    if others:
        w, u = factors[0].arguments[1], factors[1].arguments[2].variable
        first = ep.Variable("first", ep.Normal)
        factors += (
            ep.Dot([[1.0, 2.0]], w, ep.Variable("at 2", ep.Normal, plate=1)),
            ep.Sum(u[[0]], out=[0.5], precision=2.0),
            ep.Sum(u[[1]], 0.5, out=first),
            ep.Probit(first, observed=1),
        )
    model = ep.FactorGraph(*factors)
    short = ep.infer(model)
    monkeypatch.setattr(joined, "_LENGTH", 3)
    long = ep.infer(model)
    assert type(joined.Joined.of(model).law).__name__ == "_Effects"
    assert list(long) == list(short)
    for name in short:
        np.testing.assert_allclose(long[name].mean(), short[name].mean(), atol=1e-5)
        np.testing.assert_allclose(long[name].sd(), short[name].sd(), rtol=1e-5)
    np.testing.assert_allclose(long["w"].cov(), short["w"].cov(), rtol=1e-4, atol=1e-6)
    assert long.log_evidence == pytest.approx(short.log_evidence, abs=1e-6)
    assert long.report.status == "converged"
    assert long.report.notes == ()
    assert ep.infer(model, start_from=long).report.steps <= 2


@pytest.mark.parametrize("length", [3, 1500])
def test_what_other_factors_do_not_meet_is_exact(monkeypatch, length):
    monkeypatch.setattr(joined, "_LENGTH", length)
    a, u, q = ep.Variable("a", ep.Normal(0.0, 4.0)), effects(), ep.Variable("q", ep.Normal(0.0, 1.0))
    rows = ep.Sum(a, u[GROUPS], out=X, precision=2.0)
    post, own = ep.infer(ep.FactorGraph(rows, ep.Probit(q, observed=1))), ep.infer(ep.FactorGraph(rows))
    for name in "au":
        np.testing.assert_allclose(post[name].sd(), own[name].sd(), rtol=1e-9)
    assert post.log_evidence == pytest.approx(own.log_evidence + np.log(0.5), abs=1e-9)
    assert post.report.status == "converged"


def test_thousands_of_groups_share_a_belief():
    """Beside one constant each group is integrated by quadrature, and the constant on a grid."""
    count = 2000
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(count), 2)
    y = (rng.normal(size=count)[groups] + rng.normal(size=2 * count) > 0.3).astype(int)
    a, u = ep.Variable("a", ep.Normal(0.0, 4.0)), ep.Variable("u", ep.Normal(0.0, 1.0), plate=count)
    h = ep.Variable("h", ep.Normal, plate=2 * count)
    post = ep.infer(ep.FactorGraph(ep.Sum(a, u[groups], out=h), ep.Probit(h, observed=y)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    grid = np.linspace(-0.8, 0.2, 401)
    passed = scipy.stats.norm.cdf(grid[:, None] + nodes)
    successes = y.reshape(count, 2).sum(1)
    each = np.log(np.stack([(passed**k * (1 - passed) ** (2 - k)) @ weights for k in range(3)]))
    log = np.bincount(successes, minlength=3) @ each + scipy.stats.norm(0, 2).logpdf(grid)
    share = np.exp(log - log.max())
    log_evidence = log.max() + np.log(share.sum() * (grid[1] - grid[0]))
    share /= share.sum()
    mean = share @ grid
    sd = np.sqrt(share @ (grid - mean) ** 2)
    assert post["a"].mean() == pytest.approx(mean, abs=0.1 * sd)
    assert post["a"].sd() == pytest.approx(sd, rel=0.02)
    assert post.log_evidence == pytest.approx(log_evidence, abs=1e-3 * count)
    assert post.report.status == "converged"
    assert post.report.notes == ()


def test_vectors_that_would_be_too_long_stay_apart_and_a_note_says_so(monkeypatch):
    monkeypatch.setattr(joined, "_LENGTH", 3)
    monkeypatch.setattr(eliminated, "_LEFT", 1)
    (note,) = ep.infer(ep.FactorGraph(*by_vector_and_sum())).report.notes
    assert "have separate beliefs and meet in linear factors that form loops" in note
