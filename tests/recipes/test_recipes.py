"""The recipes of CONTRIBUTING, followed from outside of the package: a toy of each kind, used through a public call."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import meanmap as mm
from meanmap import ep
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.families import Bernoulli, Family
from meanmap.families.gaussian_parts import points_with_weights
from meanmap.stats import Exchange, Null, Outcome, register_two_sample
from meanmap.stats.samples import ways
from meanmap.stats.samples.feature_statistics import gaussian_limit

RNG = np.random.default_rng(0)
KERNEL = mm.kernels.RBF(1.0)
X, Y = RNG.normal(size=(40, 2)), RNG.normal(1.0, 1.0, size=(30, 2))


class Inverse(mm.kernels.Kernel):
    """1/(1 + |x − y|²)."""

    def evaluate(self, x, y):
        return 1 / (1 + jnp.sum((x - y) ** 2))


def test_kernel():
    gram = 1 / (1 + np.sum((X[:, None] - Y[None]) ** 2, axis=2))
    np.testing.assert_allclose(Inverse()(X, Y), gram, rtol=1e-12)
    assert mm.two_sample_test(X, Y, Inverse(), n_permutations=99, rng=0).reject(0.05)
    np.testing.assert_allclose(mm.embed(Y, Inverse())(X), gram.mean(axis=1), rtol=1e-10)


class Squares(mm.features.Features):
    """(x, x²): the features of a polynomial kernel without its mixed terms."""

    kernel: mm.kernels.Kernel = mm.kernels.Polynomial(2)  # kernels do not change

    def transform(self, x):
        return jnp.concatenate([x, x**2], axis=1)

    def check(self, points, argument):
        assert points.ndim == 2, argument

    @property
    def size(self):
        return 4


def test_features():
    np.testing.assert_allclose(Squares()(X), np.c_[X, X**2], rtol=1e-12)
    found = mm.embed(X, Squares()) - mm.embed(Y, Squares())
    difference = np.c_[X, X**2].mean(axis=0) - np.c_[Y, Y**2].mean(axis=0)
    assert found.norm() == pytest.approx(np.linalg.norm(difference))


class Exponential(Family):
    """p(x) = r exp(−r x) on x > 0."""

    minus_rate: object
    coordinates: ClassVar[tuple[str, ...]] = ("x", "log")
    _fields_axes: ClassVar[dict[str, int]] = {"minus_rate": 0}
    _statistic_names: ClassVar[tuple[str, ...]] = ("mean",)

    def __init__(self, rate):
        self.minus_rate = -np.asarray(rate, float)

    @classmethod
    def standard(cls, shape=()):
        return cls(np.ones(shape))

    @classmethod
    def _statistics(cls, x):
        return (x,)

    @classmethod
    def _natural_from_moments(cls, mean):
        return (-1 / mean,)

    def _proper(self):
        return self.minus_rate < 0

    def _mean(self):
        return -1 / self.minus_rate

    def _variance(self):
        return 1 / self.minus_rate**2

    def _moments_in(self, coordinate):
        if coordinate == "x":
            return self._mean(), self._variance()
        return -jnp.euler_gamma - jnp.log(-self.minus_rate), jnp.full(self.shape, jnp.pi**2 / 6)

    def _expected_statistics(self):
        return (self._mean(),)

    def _log_normaliser(self):
        return -jnp.log(-self.minus_rate)

    def _kl(self, other):
        ratio = other.minus_rate / self.minus_rate
        return ratio - 1 - jnp.log(ratio)

    def _characteristic_function(self, w, coordinate):
        raise NotImplementedError

    def _sample(self, n, key):
        return jax.random.exponential(key, (n, *self.shape)) / -self.minus_rate

    def _tails(self):
        return 1.0, None  # of log x, like exp(log x) below


def test_family():
    wait = ep.Variable("wait", Exponential(2.0))
    model = ep.FactorGraph(ep.Density(lambda x: -x * x / 2, wait))
    by_quadrature, by_drawing = (ep.infer(model, messages=oracle, rng=0) for oracle in (None, ep.Stratified(2000)))
    moments = [scipy.integrate.quad(lambda x, k=k: x**k * np.exp(-2 * x - x * x / 2), 0, 30)[0] for k in (0, 1)]
    assert float(by_quadrature["wait"].mean()) == pytest.approx(moments[1] / moments[0], rel=1e-8)
    assert float(by_drawing["wait"].mean()) == pytest.approx(moments[1] / moments[0], rel=1e-2)


class Rademacher(Bernoulli):
    """−1 or 1: two points, which kernels on distributions embed in closed form."""

    def gaussian_parts(self, coordinate):
        p = jnp.asarray(self.mean())
        return points_with_weights(jnp.stack([1 - p, p], axis=-1), jnp.array([[-1.0], [1.0]], p.dtype))


def test_law_on_points():
    p = np.array([0.2, 0.7])
    weights, base = np.stack([1 - p, p], axis=1), np.exp(-0.5 * np.subtract.outer([-1.0, 1.0], [-1.0, 1.0]) ** 2)
    gram = mm.kernels.ExpectedProduct(mm.kernels.RBF(1.0))(Rademacher(p))
    np.testing.assert_allclose(gram, weights @ base @ weights.T, rtol=1e-12)


@pytest.fixture
def own_ways():
    known = dict(ways._WAYS)
    yield
    ways._WAYS.clear()
    ways._WAYS.update(known)


def distances(samples, orders):
    n, points = samples.sizes[0], np.asarray(samples.pooled)
    return np.array([np.linalg.norm(points[o[:n]].mean(axis=0) - points[o[n:]].mean(axis=0)) for o in orders])


@pytest.mark.usefixtures("own_ways")
def test_statistic():
    def distance(samples, n_draws, generator, door):
        size = sum(samples.sizes)
        found = distances(samples, [np.arange(size), *(generator.permutation(size) for _ in range(n_draws))])
        return Outcome(found[0], Null("permutation", found[1:], exact=True))

    register_two_sample("mean distance", "permutation", distance, label="distance of the means")
    result = mm.two_sample_test(X, Y, statistic="mean distance", n_permutations=99, rng=0)
    assert result.statistic == pytest.approx(np.linalg.norm(X.mean(axis=0) - Y.mean(axis=0)))
    assert result.reject(0.05)
    assert "distance of the means" in result.method
    with pytest.raises(ParameterError, match="mean distance"):
        register_two_sample("mean distance", "permutation", distance)
    with pytest.raises(ParameterError, match="'mean distance'"):
        mm.two_sample_test(X, Y, statistic="unknown", rng=0)


@pytest.mark.usefixtures("own_ways")
def test_null():
    def halved(samples, n_draws, generator, door):
        """The linear statistic against its draws from a normal law of known spread."""
        found = ways.way("linear", "normal").compute(samples, n_draws, generator, door)
        return Outcome(found.statistic, Null("halved", found.null.draws / 2, exact=False))

    register_two_sample("linear", "halved", halved, one_kernel=True)
    whole, half = (
        mm.two_sample_test(X[:30], Y, statistic="linear", null=null, n_permutations=99, rng=0)
        for null in ("normal", "halved")
    )
    np.testing.assert_allclose(half.null.draws, whole.null.draws / 2)
    assert half.null.kind == "halved"
    assert mm.two_sample_test(X[:30], Y, null="halved", n_permutations=99, rng=0).statistic == half.statistic


class Turned(Exchange):
    """The rows of a series, turned round a circle."""

    def labels(self, labels, n_draws, generator):
        return np.stack([np.roll(labels, k) for k in (0, *generator.integers(1, len(labels), n_draws))])

    def orders(self, n_draws, generator, constant=False):
        n = len(self.units)
        return np.stack([np.roll(np.arange(n), k) for k in (0, *generator.integers(1, n, n_draws))])


class Silent(Exchange):
    """A class of its own that gives neither labels nor orders."""


def mean_distance(samples, n_draws, generator, door):
    points = np.asarray(samples.pooled)
    labels = samples.labels(n_draws, generator)
    found = [np.linalg.norm(points[z == 0].mean(axis=0) - points[z == 1].mean(axis=0)) for z in labels]
    return Outcome(found[0], Null("exchanges", np.array(found[1:]), exact=True))


def sites(n, shift):
    """Two samples whose rows lie in three sites, far apart and shared unevenly."""
    rng = np.random.default_rng(1)
    site = np.concatenate([rng.choice(3, n, p=p) for p in ([0.6, 0.3, 0.1], [0.1, 0.3, 0.6])])
    points = rng.normal(size=(2 * n, 1)) + 5.0 * site[:, None]
    points[:n] += shift
    return points[:n], points[n:], site


LONG = pytest.param(500_000, marks=pytest.mark.slow)


@pytest.mark.usefixtures("own_ways")
@pytest.mark.parametrize("n", [200, LONG])
def test_statistic_within_strata(n):
    def within(samples, n_draws, generator, door):
        """Of rows measured from the mean of their site."""
        return mean_distance(
            replace(samples, pooled=samples.exchange.centred(samples.pooled)), n_draws, generator, door
        )

    register_two_sample("distance within", "exchanges", within, exchanges=True)
    asked = {"statistic": "distance within", "n_permutations": 99, "rng": 0}
    x, y, site = sites(n, 0.0)
    result = mm.two_sample_test(x, y, KERNEL, within=site, **asked)
    assert result.pvalue > 0.02  # across sites all draws would be smaller
    assert result.method == "two-sample test, distance within within strata"
    x, y, site = sites(n, 10 / np.sqrt(n))
    assert mm.two_sample_test(x, y, KERNEL, within=site, **asked).pvalue == 0.01
    register_two_sample("no design", "permutation", mean_distance)
    with pytest.raises(ParameterError, match=r"statistic is 'no design'; with within=.* expected 'auto' or 'dist"):
        mm.two_sample_test(x, y, KERNEL, within=site, statistic="no design")


@pytest.mark.usefixtures("own_ways")
@pytest.mark.parametrize("n", [60, LONG])
def test_design(n):
    register_two_sample("mean distance", "turns", mean_distance, exchanges=True)
    points = np.sin(np.arange(2 * n) / 30)[:, None]
    asked = {"within": Turned.of(2 * n), "n_permutations": 19, "rng": 0}
    result = mm.two_sample_test(points[:n], points[n:], KERNEL, statistic="mean distance", **asked)
    sums = np.cumsum(np.r_[0, points[:, 0], points[:, 0]])
    possible = np.abs(2 * (sums[n : 3 * n] - sums[: 2 * n]) - sums[2 * n]) / n  # the first half, less the second
    assert result.statistic == pytest.approx(possible[0], abs=1e-9)
    assert all(np.isclose(possible, draw, atol=1e-9).any() for draw in result.null.draws)
    if n == 60:
        mm.two_sample_test(points[:n], points[n:], KERNEL, **asked)
        x, noise = np.random.default_rng(0).normal(size=(2, n))
        dependent = mm.independence_test(x, x + noise, within=Turned.of(n), n_permutations=59, rng=0)
        independent = mm.independence_test(x, noise, within=Turned.of(n), n_permutations=59, rng=0)
        assert dependent.reject(0.05)
        assert len(np.unique(independent.null.draws)) <= n


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mm.two_sample_test(X, Y, within=Exchange.of(9)), ShapeError, "an Exchange of 9 rows; expected one of"),
        (lambda: mm.two_sample_test(X, Y, within=Exchange.of(70), clusters=3), ParameterError, "leave out by="),
        (lambda: mm.two_sample_test(X, Y, within=Silent.of(70)), KindError, "Silent has no labels of its own"),
        (lambda: mm.independence_test(*X.T, within=Silent.of(40)), KindError, "Silent has no orders of its own"),
        (lambda: mm.two_sample_effect(X, Y, within=Exchange.of(70)), KindError, "within is an Exchange, for tests of"),
        (lambda: mm.conditional_independence_test(*X.T, X, within=Exchange.of(40)), KindError, "within is an Exchange"),
        (
            lambda: register_two_sample("a", "b"),
            ParameterError,
            "pass either compute, for points in memory, or of_sums",
        ),
    ],
)
def test_designs_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("own_ways")
@pytest.mark.parametrize("n", [11_000, LONG])
def test_null_of_any_number_of_rows(n):
    def halved(x, y, features, n_draws, generator):
        found = gaussian_limit(x, y, features, n_draws, generator)
        return replace(found, null=Null("halved", found.null.draws / 2, exact=False))

    register_two_sample("features", "halved", of_sums=halved)
    asked = {"n_permutations": 99, "rng": 0}
    x, y = np.random.default_rng(2).normal(size=(2, n, 1))
    whole, half = (mm.two_sample_test(x, y, KERNEL, null=null, **asked) for null in ("spectral", "halved"))
    np.testing.assert_allclose(half.null.draws, whole.null.draws / 2)
    assert mm.two_sample_test(iter([x]), iter([y]), KERNEL, null="halved", **asked).sizes == (n, n)
    plan = mm.stats.plan("two samples", x, y, KERNEL, rng=0)
    assert plan.result(plan.state(x), plan.state(y), 99, null="halved").pvalue == half.pvalue
    small = mm.two_sample_test(x[:50], y[:50], KERNEL, statistic="features", null="halved", **asked)
    assert small.null.kind == "halved"
    assert small.witness(x[:1]).shape == half.witness(x[:1]).shape == (1,)


@pytest.mark.usefixtures("own_ways")
def test_statistic_of_any_number_of_rows():
    def largest(x, y, features, n_draws, generator):
        """The largest difference of a feature's means, in standard errors."""
        spread = np.sqrt(np.diag(x.covariance()) / x.n + np.diag(y.covariance()) / y.n)
        draws = np.abs(generator.standard_normal((n_draws, len(spread)))).max(axis=1)
        return Outcome(float(np.max(np.abs(x.mean - y.mean) / spread)), Null("normal", draws, exact=False))

    register_two_sample("largest", "normal", of_sums=largest)
    x, y = np.random.default_rng(3).normal([[0.0], [0.2]], size=(2, 11_000))[..., None]
    result = mm.two_sample_test(iter([x]), iter([y]), KERNEL, statistic="largest", rng=0)
    assert result.reject(0.05)
    assert result.method == "two-sample test, largest"


class Twice(ep.extending.Oracle):
    """Quadrature, asked for one member."""

    def member(self, factor, incoming, power, key):
        return ep.Quadrature().member(factor, incoming, power, key)


class Counting(ep.extending.HostOracle):
    """Quadrature, asked from the host."""

    asked = 0

    def answer(self, questions):
        self.asked += len(questions)
        return questions.ask(ep.Quadrature())


def test_oracles():
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    model, counting = ep.FactorGraph(ep.Logistic(z, observed=[0, 1, 1])), Counting()
    means = [ep.infer(model, messages=oracle)["z"].mean() for oracle in (ep.Quadrature(), Twice(), counting)]
    np.testing.assert_allclose(means[1:], [means[0]] * 2, rtol=1e-6)
    assert counting.asked >= 3


class Nearest(ep.learned.Regression):
    """What was answered to the nearest message."""

    def __init__(self, seen=None, numbers=None):
        self.seen, self.numbers = seen, numbers

    def fit(self, incoming, numbers, also=None):
        return Nearest(self._rows(incoming), numbers)

    def add(self, incoming, numbers):
        return Nearest(np.r_[self.seen, self._rows(incoming)], np.r_[self.numbers, numbers])

    def predict(self, incoming):
        apart = np.linalg.norm(self._rows(incoming)[:, None] - self.seen[None], axis=2)
        mean = self.numbers[apart.argmin(axis=1)]
        return ep.learned.Estimate(mean, np.full(mean.shape, 0.1), apart.min(axis=1))

    def settings(self):
        return {}

    @staticmethod
    def _rows(incoming):
        return np.concatenate(
            [np.stack([law.mean(), law.sd()], axis=1) for law in incoming if isinstance(law, Family)], 1
        )


def bend(z):
    return -jnp.logaddexp(0.0, -z)


def learned_from():
    generator = np.random.default_rng(1)
    came = ep.Normal(generator.normal(size=64), generator.uniform(0.5, 2.0, size=64))
    return ep.Density(bend, ep.Variable("z", ep.Normal(0.0, 1.0))), came


def test_regression_of_messages(tmp_path):
    factor, came = learned_from()
    exact = ep.extending.ask(factor, came)
    operator = ep.learned.MessageOperator(Nearest()).learn((came,), exact)
    np.testing.assert_allclose(operator.predict((came,)).messages[0].precision, exact.messages[0].precision, rtol=1e-6)
    saved = ep.learned.save_operator(operator, tmp_path / "nearest", factor)
    again = ep.learned.load_operator(saved, factor)
    np.testing.assert_array_equal(again.predict((came,)).numbers, operator.predict((came,)).numbers)


class Folded(mm.bp.Likelihood):
    """|x| is seen, with noise."""

    def at(self, observed, points):
        return np.exp(-((np.abs(np.ravel(points))[None] - np.ravel(observed)[:, None]) ** 2) / 0.02)


def test_likelihood():
    generator = np.random.default_rng(2)
    a = generator.normal(size=60)
    model = mm.KernelField([("a", "b")], update=mm.bp.Full())
    model = model.fit((a, a + 0.1 * generator.normal(size=60)), likelihood=Folded())
    belief = model.query(observed=np.array([1.0, np.nan]))["a"]
    # Both 1 and −1 explain what was seen.
    assert 0.8 < belief.expect(np.abs) < 1.2
    assert belief.var() > 0.3


@dataclass(frozen=True)
class Patient(mm.graphs.Schedule):
    """All messages at once, until none changes."""

    def run(self, passing):
        messages, changes = passing.silence(), []
        while not changes or float(np.max(changes[-1])) > 1e-12:
            messages, change = passing.sweep(messages)
            changes.append(change)
        return passing.sent(messages, len(changes), changes)


def test_schedule():
    chain = mm.bp.DiscreteGraph([("a", "b"), ("b", "c")], np.array([[2.0, 1.0], [0.5, 3.0]]))
    ours, exact = (chain.query({"a": 1}, schedule=schedule) for schedule in (Patient(), mm.graphs.TwoPass()))
    for name in "bc":
        np.testing.assert_allclose(ours[name], exact[name], rtol=1e-10)
    assert ours.report.steps <= 4


@dataclass(frozen=True)
class Cautious(mm.bp.Update):
    """The full update, with ten times the ridge."""

    def variable(self, sample, kernel, name):
        return mm.bp.Full().variable(sample, kernel, name)

    def learn(self, sender, receiver, pairs, ridge, keeps):
        return mm.bp.Full().learn(sender, receiver, pairs, 10 * ridge, keeps)

    def functions(self, receiver, points, pairs):
        return mm.bp.Full().functions(receiver, points, pairs)


def test_update():
    generator = np.random.default_rng(3)
    a = generator.normal(size=60)
    pairs = a, a + 0.3 * generator.normal(size=60)
    ours, theirs = (
        mm.KernelField([("a", "b")], ridge=ridge, update=update).fit(pairs).query({"a": 1.0})["b"].mean()
        for ridge, update in ((1e-4, Cautious()), (1e-3, mm.bp.Full()))
    )
    assert ours == pytest.approx(theirs, rel=1e-9)
