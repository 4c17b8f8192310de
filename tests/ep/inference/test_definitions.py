"""Sums without noise that share unknowns are exact: dense conditioning of normal unknowns and quadrature are judges."""

import itertools

import numpy as np
import pytest
import scipy.stats

from meanmap import ep
from meanmap.ep.inference import definitions

MEAN, SD = np.array([1.0, 0.0, -0.5]), np.array([2.0, 3.0, 1.0])


def unknowns(unit=1.0):
    return [ep.Variable(name, ep.Normal(unit * m, (unit * s) ** 2)) for name, m, s in zip("abc", MEAN, SD, strict=True)]


def flat(*names):
    return [ep.Variable(name, ep.Normal) for name in names]


def conditioned(rows, given, variances):
    """Mean and covariance of a, b and c given sums of them with noise, or without, and the log density of these."""
    rows, covariance = np.asarray(rows, float), np.diag(SD**2)
    spread = rows @ covariance @ rows.T + np.diag(variances)
    sds = np.sqrt(np.diag(spread))
    unitless = spread / np.outer(sds, sds)
    gain = covariance @ (rows / sds[:, None]).T @ np.linalg.inv(unitless) / sds
    off = (given - rows @ MEAN) / sds
    density = scipy.stats.multivariate_normal(np.zeros(len(off)), unitless).logpdf(off) - np.log(sds).sum()
    return MEAN + gain @ (given - rows @ MEAN), covariance - gain @ rows @ covariance, density


def run(*factors):
    post = ep.infer(ep.FactorGraph(*factors))
    assert post.report.status == "converged"
    return post


def assert_known(post, expected, rows=((1, 0, 0), (0, 1, 0), (0, 0, 1)), names="abc"):
    """Beliefs are those of sums of a, b and c."""
    mean, covariance, log_evidence = expected
    rows = np.asarray(rows, float)[: len(names)]
    sds = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, covariance, rows), 0))
    np.testing.assert_allclose([post[name].mean() for name in names], rows @ mean, atol=1e-8)
    np.testing.assert_allclose([post[name].sd() for name in names], sds, rtol=1e-8, atol=1e-5)
    assert post.log_evidence == pytest.approx(log_evidence, abs=1e-8)


SUMS = [
    ([[1, 1, 0], [1, -1, 0]], [3.0, 1.0]),
    ([[1, 1, 1], [1, 0, 2]], [3.0, 1.0]),
    ([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1.0, 2.0, -4.0]),
    ([[1e-6, 1e-6, 0], [0, 1e5, -1e5]], [1e-6, 2e5]),
]


@pytest.mark.parametrize(("rows", "given"), SUMS)
@pytest.mark.parametrize("noisy", [False, True])
def test_given_sums_that_share_unknowns(rows, given, noisy):
    v = unknowns()
    factors = [
        ep.Sum(*(x for x, a in zip(v, row, strict=True) if a), weights=[a for a in row if a], out=out)
        for row, out in zip(rows, given, strict=True)
    ]
    factors.append(ep.Gaussian(v[2], observed=0.5, precision=4.0))
    rows, given, variances = [*rows, [0, 0, 1]], [*given, 0.5], [*(0 for _ in given), 0.25]
    if noisy:
        factors.append(ep.Sum(*v, out=2.0, precision=0.5))
        rows, given, variances = [*rows, [1, 1, 1]], [*given, 2.0], [*variances, 2.0]
    expected = conditioned(rows, given, variances)
    assert_known(run(*factors), expected)
    assert_known(run(*reversed(factors)), expected)


def sums_and_differences(v):
    """Results of sums that are unknowns, one of them of two sums, and one of a sum of others."""
    s, d, t = flat("s", "d", "t")
    a, b, c = v
    return [
        ep.Sum(a, b, out=s),
        ep.Sum(a, b, out=d, weights=(1, -1)),
        ep.Sum(s, c, out=t),
        ep.Sum(b, d, c, out=t, weights=(1, 1, 3)),
    ], [[1, 1, 0], [1, -1, 0], [1, 1, 1]]


# Both sums of t are the same: a + b + c = a + 3 c.
SAME = [0, 1, -2]


@pytest.mark.parametrize("backwards", [False, True])
def test_results_of_two_sums(backwards):
    factors, rows = sums_and_differences(unknowns())
    t = factors[2].arguments[0]
    factors.append(ep.Gaussian(t, observed=1.0, precision=2.0))
    post = run(*(reversed(factors) if backwards else factors))
    expected = conditioned([SAME, rows[2]], [0.0, 1.0], [0.0, 0.5])
    assert_known(post, expected)
    assert_known(post, expected, rows, "sdt")


@pytest.mark.parametrize("unit", [1.0, 1e-7, 1e7])
def test_a_likelihood_that_is_not_normal(unit):
    """One Probit of a normal unknown: moments and evidence are those of quadrature."""
    v = unknowns(unit)
    factors, rows = sums_and_differences(v)
    t = factors[2].arguments[0]
    factors += [
        ep.Interval(t, 0.0, noise=unit),
        ep.Gaussian(v[0], observed=2.0 * unit, precision=unit**-2),
        ep.Sum(*v, out=3.0 * unit, weights=(1, 2, 1)),
    ]
    post = run(*factors)
    mean, covariance, log_density = conditioned([SAME, [1, 0, 0], [1, 2, 1]], [0.0, 2.0, 3.0], [0.0, 1.0, 0.0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    values, vectors = np.linalg.eigh(covariance)
    assert (values[:2] < 1e-12).all()  # One direction is left.
    points = mean + np.sqrt(values[2]) * nodes[:, None] * vectors[:, 2]
    shares = weights / weights.sum() * scipy.stats.norm.cdf(points @ np.array(rows[2]))
    log_evidence = log_density + np.log(shares.sum()) - 3 * np.log(unit)
    shares /= shares.sum()
    middle = shares @ points
    off = points - middle
    for names, of in (("abc", np.eye(3)), ("sdt", np.array(rows))):
        np.testing.assert_allclose([post[name].mean() / unit for name in names], of @ middle, atol=1e-6)
        sds = np.sqrt(shares @ (off @ of.T) ** 2)
        np.testing.assert_allclose([post[name].sd() / unit for name in names], sds, rtol=1e-5)
    assert post.log_evidence == pytest.approx(log_evidence, abs=1e-6)


GROUPS = np.array([0, 1, 2, 3, 0, 1, 2, 0])
PASSED = np.array([1, 0, 1, 1, 1, 0, 0, 1])


def test_effects_that_add_up_to_zero():
    u, m = ep.Variable("u", ep.Normal(0.0, 1.0), plate=4), ep.Variable("m", ep.Normal(0.5, 4.0))
    h = ep.Variable("h", ep.Normal, plate=8)
    zero = ep.Sum(*(u[[at]] for at in range(4)), out=[0.0])
    post = run(zero, ep.Sum(m, u[GROUPS], out=h), ep.Logistic(h, observed=PASSED))
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    basis = np.linalg.svd(np.ones((1, 4)))[2][1:]  # of what adds up to zero
    units = np.array(list(itertools.product(nodes, repeat=4)))
    prior = np.prod(np.array(list(itertools.product(weights / weights.sum(), repeat=4))), axis=1)
    points = np.c_[0.5 + 2 * units[:, 0], units[:, 1:] @ basis]
    eta = points[:, :1] + points[:, 1:][:, GROUPS]
    mass = prior * np.exp(-np.logaddexp(0, (1 - 2 * PASSED) * eta).sum(1))
    mean = mass @ points / mass.sum()
    sd = np.sqrt(mass @ (points - mean) ** 2 / mass.sum())
    np.testing.assert_allclose(np.r_[post["m"].mean(), post["u"].mean()], mean, atol=0.02)
    np.testing.assert_allclose(np.r_[post["m"].sd(), post["u"].sd()], sd, rtol=0.02)
    log_density = scipy.stats.norm(0, 2).logpdf(0)  # of the sum of four
    assert post.log_evidence == pytest.approx(log_density + np.log(mass.sum()), abs=0.01)


@pytest.mark.parametrize("rows", [6, 2000])
def test_noise_that_is_an_unknown(rows):
    """Each row defines its own noise: no matrix of all rows is made."""
    rng = np.random.default_rng(rows)
    g, y = np.arange(rows) % 3, rng.normal(size=rows)
    a, u = ep.Variable("a", ep.Normal(0.0, 4.0)), ep.Variable("u", ep.Normal(0.0, 1.0), plate=3)
    e = ep.Variable("e", ep.Normal(0.0, 0.5), plate=rows)
    post = run(ep.Sum(a, u[g], e, out=y))
    other = run(ep.Sum(a, u[g], out=y, precision=2.0))
    for name in "au":
        np.testing.assert_allclose(post[name].mean(), other[name].mean(), atol=1e-8)
        np.testing.assert_allclose(post[name].sd(), other[name].sd(), rtol=1e-8)
    np.testing.assert_allclose(post["e"].mean(), y - other["a"].mean() - other["u"].mean()[g], atol=1e-8)
    assert post.log_evidence == pytest.approx(other.log_evidence, abs=1e-6)


def test_many_pairs_of_sums():
    """Each pair is solved by itself."""
    rng = np.random.default_rng(1)
    a, b = (ep.Variable(name, ep.Normal(0.0, 1.0), plate=3000) for name in "ab")
    total, difference = rng.normal(size=(2, 3000))
    post = run(ep.Sum(a, b, out=total), ep.Sum(a, b, out=difference, weights=(2, -1)))
    np.testing.assert_allclose(post["a"].mean(), (total + difference) / 3, atol=1e-9)
    each = scipy.stats.multivariate_normal(np.zeros(2), [[2, 1], [1, 5]]).logpdf(np.c_[total, difference])
    assert post.log_evidence == pytest.approx(each.sum(), rel=1e-9)


def test_a_long_chain():
    """A level and a slope, whose changes are unknowns: no noise is left."""
    steps, rng = 40, np.random.default_rng(2)
    level, slope = (ep.Variable(name, ep.Normal, plate=steps) for name in ("level", "slope"))
    e, f = (ep.Variable(name, ep.Normal(0.0, 0.5), plate=steps - 1) for name in "ef")
    y, now, then = rng.normal(size=steps), np.arange(steps - 1), np.arange(1, steps)
    start = [ep.Gaussian(x[[0]], observed=[0.0], precision=1.0) for x in (level, slope)]
    seen = ep.Gaussian(level, observed=y, precision=2.0)
    changes = ep.Sum(level[now], slope[now], e, out=level[then]), ep.Sum(slope[now], f, out=slope[then])
    noisy = (
        ep.Sum(level[now], slope[now], out=level[then], precision=2.0),
        ep.Sum(slope[now], out=slope[then], precision=2.0),
    )
    post, other = run(*changes, *start, seen), run(*noisy, *start, seen)
    for name in ("level", "slope"):
        np.testing.assert_allclose(post[name].mean(), other[name].mean(), atol=1e-8)
        np.testing.assert_allclose(post[name].sd(), other[name].sd(), rtol=1e-7)
    assert post.log_evidence == pytest.approx(other.log_evidence, abs=1e-7)


def test_a_vector_with_a_known_sum():
    w, z = ep.Variable("w", ep.MultivariateNormal(MEAN, np.diag(SD**2))), ep.Variable("z", ep.Normal, plate=4)
    X = np.array([[1.0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]])
    known = ep.Sum(z[[0]], z[[1]], out=[3.0])
    post = run(ep.Dot(X, w, z), known, ep.Gaussian(z[[2]], observed=[1.0], precision=2.0))
    mean, covariance, log_evidence = conditioned([[2, 1, 0], [1, 1, 1]], [3.0, 1.0], [0.0, 0.5])
    np.testing.assert_allclose(post["w"].mean(), mean, atol=1e-5)
    np.testing.assert_allclose(post["w"].cov(), covariance, atol=1e-4)
    np.testing.assert_allclose(post["z"].mean(), X @ mean, atol=1e-8)
    assert post.log_evidence == pytest.approx(log_evidence, abs=1e-8)
    assert post.report.notes == ()


def test_unknown_precision_beside_known_sums():
    a, b, _ = unknowns()
    y = np.array([0.5, 2.0, 1.0, 0.0])
    tau = ep.Variable("tau", ep.Gamma(2.0, 1.0))
    sums = ep.Sum(a, b, out=3.0), ep.Sum(a, b, out=1.5, weights=(1, -1), precision=1.0)
    post = run(*sums, ep.Gaussian(a, observed=y, precision=tau))
    grid = np.linspace(-12, 6, 4001)
    rows, given = np.array([[1.0, 1, 0], [1, -1, 0], *[[1, 0, 0]] * 4]), np.r_[3.0, 1.5, y]
    prior = scipy.stats.gamma(2.0).logpdf(np.exp(grid)) + grid
    found = [conditioned(rows, given, np.r_[0.0, 1.0, np.full(4, np.exp(-at))]) for at in grid]
    logs = np.array([each[2] for each in found]) + prior
    top, shares = logs.max(), np.exp(logs - logs.max())
    assert post.log_evidence == pytest.approx(top + np.log(shares.sum() * (grid[1] - grid[0])), abs=1e-6)
    mean = shares @ np.array([each[0] for each in found]) / shares.sum()
    np.testing.assert_allclose([post["a"].mean(), post["b"].mean()], mean[:2], atol=1e-6)


def repeated(order=slice(None), likelihood=False):
    a, b, c = unknowns()
    (s,) = flat("s")
    factors = [
        ep.Sum(a, b, out=3.0, name="once"),
        ep.Sum(a, b, out=s, weights=(0.5, 0.5), name="half"),
        ep.Sum(a, b, out=1.5, weights=(0.5, 0.5), name="again"),
        ep.Probit(a, observed=1) if likelihood else ep.Gaussian(a, observed=2.0, precision=1.0),
        ep.Sum(s, c, out=0.0, precision=1.0),
    ]
    return run(*factors[order])


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_sums_that_say_the_same_twice(order):
    post = repeated(order)
    assert_known(post, conditioned([[1, 1, 0], [1, 0, 0], [0.5, 0.5, 1]], [3.0, 2.0, 0.0], [0.0, 1.0, 1.0]))
    (note,) = post.report.notes
    assert note == (
        "again follows from other sums without noise: it is left out, and the log evidence is that of the model without"
    )
    assert repeated(order, likelihood=True).report.notes == (note,)


def test_sums_round_a_loop():
    a, b, c = unknowns()
    s, d = flat("s", "d")
    loop = [ep.Sum(a, b, out=s), ep.Sum(s, c, out=d), ep.Sum(d, b, c, out=a, weights=(1, -1, -1))]
    for factors in (loop, loop[::-1]):
        post = run(*factors, ep.Gaussian(s, observed=1.0, precision=2.0))
        assert_known(post, conditioned([[1, 1, 0]], [1.0], [0.5]))
        assert "follows from other sums without noise" in post.report.notes[0]


@pytest.mark.parametrize("likelihood", [ep.Probit, ep.Gaussian])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_sums_that_contradict_each_other(likelihood, unit):
    a, b, _ = unknowns(unit)
    s, t = flat("s", "t")
    sums = ep.Sum(a, b, out=s), ep.Sum(s, a, b, out=t), ep.Sum(t, s, out=3.0 * unit), ep.Sum(a, b, out=1.1 * unit)
    factors = [*sums, likelihood(a, observed=1)]
    for given in (factors, factors[::-1]):
        post = ep.infer(ep.FactorGraph(*given))
        assert post.log_evidence == -np.inf
        assert not post.report.converged
        assert post.report.status == "stopped at impossible data"
        (note,) = post.report.notes
        assert "from the value that other sums without noise imply; give precision= if numbers are rounded" in note


@pytest.mark.parametrize(("groups", "some"), [(3, 1000), (40, 20)])
def test_rows_whose_noise_was_forgotten_contradict_each_other(monkeypatch, groups, some):
    """Also where there are too many to be solved."""
    monkeypatch.setattr(definitions, "_SOME", some)
    monkeypatch.setattr(definitions, "_WORK", 1e4)
    rng = np.random.default_rng(groups)
    a, u = ep.Variable("a", ep.Normal(0.0, 4.0)), ep.Variable("u", ep.Normal(0.0, 1.0), plate=groups)
    g = np.arange(20 * groups) % groups
    post = ep.infer(ep.FactorGraph(ep.Sum(a, u[g], out=rng.normal(size=len(g)))))
    assert post.log_evidence == -np.inf
    assert "give precision= if numbers are rounded or measured" in post.report.notes[0]


def test_rounding_contradicts_nothing():
    a, b, c = unknowns()
    pairs = ep.Sum(a, b, out=0.1), ep.Sum(c, b, out=0.2)
    post = run(*pairs, ep.Sum(a, b, c, out=0.1 + 0.2, weights=(1, 2, 1)))
    assert "follows from other sums" in post.report.notes[0]
    assert_known(post, conditioned([[1, 1, 0], [0, 1, 1]], [0.1, 0.2], [0.0, 0.0]))


def test_nothing_is_left_to_know():
    a, b, _ = unknowns()
    post = run(ep.Sum(a, b, out=3.0), ep.Sum(a, b, out=1.0, weights=(1, -1)), ep.Probit(a, observed=1))
    log_density = conditioned([[1, 1, 0], [1, -1, 0]], [3.0, 1.0], [0.0, 0.0])[2]
    assert post["a"].mean() == pytest.approx(2.0)
    assert post["a"].sd() < 1e-4
    assert post.log_evidence == pytest.approx(log_density + scipy.stats.norm.logcdf(2.0), abs=1e-6)
