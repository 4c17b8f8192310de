"""Data that cannot be under a model: their evidence is zero, and the report says why."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.core import KindError, NonFiniteError, ParameterError
from meanmap.ep.inference.exclusive import exclusive
from meanmap.ep.inference.impossible import touching
from meanmap.families import Bernoulli


def assert_impossible(post, *words):
    assert post.log_evidence == -np.inf
    assert post.report.status == "stopped at impossible data"
    assert not post.report.converged
    assert post.report.notes[0].startswith("these data are impossible under the model: ")
    assert all(word in post.report.notes[0] for word in words)


def test_intervals_that_exclude_one_another():
    z = ep.Variable("z", ep.Normal(np.zeros(3), 1.0))
    above, below = ep.Interval(z, 1.0, noise=0.0), ep.Interval(z[[2, 1]], high=[2.0, 0.5], noise=0.0, name="below")
    assert_impossible(
        ep.infer(ep.FactorGraph(above, below)), "'z' at [1] would have to be above 1 and below 0.5", "below"
    )
    noisy = ep.Interval(z[[2, 1]], high=[2.0, 0.5], name="below")
    assert np.isfinite(ep.infer(ep.FactorGraph(above, noisy)).log_evidence)
    one = ep.Variable("one", ep.Normal(0.0, 1.0))
    shared = ep.Interval(one, [0.0, 3.0], [5.0, 6.0], noise=0.0), ep.Interval(one, high=3.0, noise=0.0, name="last")
    assert_impossible(ep.infer(ep.FactorGraph(*shared)), "'one' would have to be above 3 and below 3 by last")


def test_intervals_that_exclude_one_another_by_way_of_a_sum():
    z, minus = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("minus", ep.Normal)

    def model(low):
        turned = ep.Sum(z, out=minus, weights=[-1.0])
        return ep.FactorGraph(turned, ep.Interval(z, 1.0, noise=0.0), ep.Interval(minus, low, noise=0.0, name="below"))

    assert_impossible(ep.infer(model(1.0)), "the sharp ends of Interval(z), below leave no value")
    assert np.isfinite(ep.infer(model(-2.0)).log_evidence)


def test_intervals_that_touch_in_one_point():
    """The log evidence was 320, converged."""
    a, b = (ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "ab")
    less = ep.Variable("d", ep.Normal)

    def model(low):
        difference = ep.Sum(a, b, out=less, weights=(1, -1))
        ends = ep.Interval(a, -1.0, 0.5, noise=0.0), ep.Interval(b, low, 3.0, noise=0.0)
        return ep.FactorGraph(difference, ep.Interval(less, 1.0, noise=0.0), *ends)

    assert_impossible(
        ep.infer(model(-0.5)),
        "the sharp ends of Interval(d), Interval(a), Interval(b) leave single points only, of probability 0",
    )
    assert_impossible(ep.infer(model(-0.49)), "leave no value that the other factors allow")
    # Room of a ten millionth is room.
    assert touching(model(-0.5 - 1e-7)) == ""


def test_tables_that_exclude_one_another():
    x = ep.Variable("x", ep.Categorical, dimension=2)
    one, two = ep.Table([0.0, 1.0], x, name="one"), ep.Table([1.0, 0.0], x, name="two")
    assert_impossible(ep.infer(ep.FactorGraph(one, two)), "gives probability 0 to all labels")
    assert ep.infer(ep.FactorGraph(one)).log_evidence == pytest.approx(0.0, abs=1e-9)


def chain(moves, likelihood, start=(1.0, 0.0)):
    state = ep.Variable("state", ep.Categorical, plate=len(likelihood), dimension=2)
    return ep.FactorGraph(
        ep.Table(start, state[:1], name="start"),
        ep.Table(moves, state[:-1], state[1:], name="moves"),
        ep.Table(likelihood, state, name="seen"),
    )


def test_a_chain_that_cannot_have_emitted_what_was_seen():
    seen = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    assert_impossible(ep.infer(chain(np.eye(2), seen)), "gives probability 0")
    post = ep.infer(chain([[0.9, 0.1], [0.0, 1.0]], seen))
    assert post.report.converged
    assert post.log_evidence == pytest.approx(np.log(0.5 * (0.1 + 0.9 * 0.1)), abs=1e-9)


def test_no_evidence_outweighs_what_cannot_be():
    # Nothing leads back to state 0; 150 labels of log odds 6.9 each pull there, 1000 in all.
    n, moves = 300, np.array([[0.5, 0.5], [0.0, 1.0]])
    seen = np.where(np.arange(n)[:, None] < n // 2, [0.001, 0.999], [0.999, 0.001])
    log = np.log(seen)
    with np.errstate(divide="ignore"):
        forward = np.log([1.0, 0.0]) + log[0]
        for row in log[1:]:
            forward = np.logaddexp.reduce(forward[:, None] + np.log(moves), axis=0) + row
    assert ep.infer(chain(moves, seen)).log_evidence == pytest.approx(np.logaddexp.reduce(forward), rel=1e-9)


def test_numbers_that_cannot_be_data_are_refused_in_words():
    z = ep.Variable("z", ep.Normal(np.zeros(2), 1.0))
    one = ep.Variable("one", ep.Normal(0.0, 1.0))
    with pytest.raises(NonFiniteError, match=r"observed is inf, which is not finite; expected a number"):
        ep.Gaussian(one, observed=np.inf)
    with pytest.raises(KindError, match="observed holds complex numbers; expected real ones"):
        ep.Gaussian(z, observed=[1 + 2j, 3.0])
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    for given in (days, list(days), days[0]):
        with pytest.raises(
            KindError, match=r"observed holds dates; expected numbers.*\(dates - dates.min\(\)\) / numpy"
        ):
            ep.Gaussian(z, observed=given)
    with pytest.raises(KindError, match="low holds dates; expected numbers"):
        ep.Interval(z, days)
    with pytest.raises(KindError, match="X holds durations; expected numbers"):
        ep.Dot((days - days[0])[:, None], ep.Variable("w", ep.MultivariateNormal.standard(1)), z)


def test_columns_that_are_too_small_to_be_squared_are_refused():
    X, y = np.array([[1.0, 1e-200], [2.0, -3e-200], [0.5, 0.0]]), [0, 1, 1]
    z = ep.Variable("z", ep.Normal, plate=3)
    with pytest.raises(ParameterError, match=r"column 1 of X holds no number larger than 3e-200.*multiply the column"):
        ep.Dot(X, ep.Variable("w", ep.MultivariateNormal.standard(2)), z)
    with pytest.raises(ParameterError, match=r"column 1 of X holds no number larger than 3e-200"):
        ep.models.logistic_regression(X, y)
    ep.Dot(X * [1.0, 0.0], ep.Variable("w", ep.MultivariateNormal.standard(2)), z)


@pytest.mark.parametrize(
    ("messages", "plate"), [(None, None), (None, 3), (ep.ImportanceSampling(), None), (ep.Laplace(), None)]
)
def test_a_density_that_is_zero_everywhere(messages, plate):
    x = ep.Variable("x", ep.Normal(0.0, 1.0), plate=plate)
    post = ep.infer(ep.FactorGraph(ep.Density(lambda x: -jnp.inf + 0 * x, x, name="never")), messages, rng=0)
    assert_impossible(post, "never", "is 0 (the function returns -inf) for 'x' at each of 2,009 values", "near and far")


@pytest.mark.parametrize("prior", [ep.Beta(2.0, 2.0), ep.Gamma(2.0, 2.0), ep.Normal(0.0, 1.0)])
def test_no_evidence_is_left_whatever_the_family(prior):
    """It was infinite for betas and gammas."""
    end = ep.Variable("end", prior)
    below = ep.Density(lambda e, y: jnp.where(y < jnp.minimum(e, 1.0), 0.0, -jnp.inf), end, np.array([0.3, 1.3]))
    post = ep.infer(ep.FactorGraph(below))
    assert post.log_evidence == -np.inf
    assert "impossible" in post.report.status


def test_a_density_on_the_host_is_called_few_times_where_it_is_zero_everywhere():
    calls = []

    def never(x):
        calls.append(float(x))
        return -math.inf

    x = ep.Variable("x", ep.Normal(0.0, 1.0), plate=2)
    assert_impossible(ep.infer(ep.FactorGraph(ep.Density(never, x))), "at each of 45 values")
    assert np.isfinite(calls).all()
    assert len(calls) < 500


def test_a_density_of_a_label_or_of_three_numbers_that_is_zero_everywhere():
    x = ep.Variable("x", Bernoulli(0.5))
    assert_impossible(ep.infer(ep.FactorGraph(ep.Density(lambda x: -jnp.inf + 0 * x, x))), "at each of its values")
    abc = [ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "abc"]
    post = ep.infer(ep.FactorGraph(ep.Density(lambda a, b, c: -jnp.inf + 0 * a * b * c, *abc)), rng=0)
    assert_impossible(post, "for 'a', 'b', 'c'")


def test_a_density_that_is_zero_only_where_the_prior_is_says_so():
    x = ep.Variable("x", ep.Normal(0.0, 1.0))
    far = ep.Density(lambda x: jnp.where(x > 1e3, 0.0, -jnp.inf), x, name="far")
    report = ep.infer(ep.FactorGraph(far), ep.ImportanceSampling(), rng=0).report
    assert report.status == "stopped with messages left out"
    assert report.notes[0] == (
        "far is 0 (the function returns -inf) at all 2,001 values of 'x' tried where the rest of the model leaves it, "
        "and not further out: check the prior, and the sign and unit of the function"
    )


def above(function, *unknowns, name):
    return ep.Density(lambda *given: jnp.where(function(*given), 0.0, -jnp.inf), *unknowns, name=name)


def pair(first, second, *given, plate=None, host=False):
    """Two densities of x, each above 0 where its condition holds."""
    x = ep.Variable("x", ep.Normal(0.0, 1.0), plate=plate)
    if host:
        return [
            ep.Density(lambda x, f=f: 0.0 if f(float(x)) else -math.inf, x, name=name)
            for f, name in ((first, "one"), (second, "other"))
        ]
    return [above(first, x, *given, name="one"), above(second, x, name="other")]


def two(first, second):
    """Two densities of a and b."""
    a, b = (ep.Variable(name, ep.Normal(0.0, 1.0)) for name in "ab")
    return [above(first, a, b, name="one"), above(second, a, b, name="other")]


TOGETHER = {
    "a gap": (lambda: pair(lambda x: x > 1, lambda x: x < -1), "one and other exclude one another"),
    "an end": (lambda: pair(lambda x: x > 0, lambda x: x < 0), "at none of 2,009 values of 'x', near and far"),
    "an end at no point of a grid": (lambda: pair(lambda x: x > 0.1234567, lambda x: x < 0.1234567), "one and other"),
    "a little room": (lambda: pair(lambda x: x > 0.1, lambda x: x < 0.1 + 1e-9), ""),
    "room between two parts": (lambda: pair(lambda x: abs(x) > 1, lambda x: (x < 1.0001) & (x > 0.5)), ""),
    "much room": (lambda: pair(lambda x: x > 0, lambda x: x < 1), ""),
    "on the host": (lambda: pair(lambda x: x > 0.2, lambda x: x < 0.2, host=True), "at none of 45 values of 'x'"),
    "on the host with room": (lambda: pair(lambda x: x > 0.2, lambda x: x < 0.21, host=True), ""),
    "a row": (lambda: pair(lambda x, y: x > y, lambda x: x < 0, [-1.0, 2.0]), "one at [1] and other"),
    "rows of one": (
        lambda: [above(lambda x, y: abs(x - y) < 1, ep.Variable("x", ep.Normal(0.0, 1.0)), [0.0, 3.0], name="near")],
        "near at [0] and near at [1]",
    ),
    "a member": (
        lambda: pair(lambda x, y: x > y, lambda x: x < 0, [-1.0, -2.0, 2.0], plate=3),
        "one at [2] and other at [2]",
    ),
    "two numbers": (lambda: two(lambda a, b: a > b, lambda a, b: a < b), "values of 'a', 'b'"),
    "two numbers with a little room": (lambda: two(lambda a, b: a > b, lambda a, b: a < b + 1e-9), ""),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_densities_that_exclude_one_another(name):
    make, words = TOGETHER[name]
    with jax.enable_x64(True):
        said = exclusive(make())
    assert words in said
    assert bool(said) is bool(words)


def test_functions_that_cannot_be_called_far_out_are_not_judged():
    def near(x):
        if abs(x) > 50:
            raise OverflowError("too far")
        return x > 0

    with jax.enable_x64(True):
        assert exclusive(pair(near, lambda x: x < 0, host=True)) == ""


@pytest.mark.parametrize("name", ["a gap", pytest.param("an end", marks=pytest.mark.slow)])
def test_a_run_with_densities_that_exclude_one_another(name):
    make, words = TOGETHER[name]
    found = ep.infer(ep.FactorGraph(*make()))
    assert_impossible(found, words)
    assert len(found.report.residuals) <= 10


def test_numbers_that_are_given_once_are_those_of_all_rows():
    mu = ep.Variable("mu", ep.Normal(0.0, 1.0))
    early = ep.infer(ep.FactorGraph(ep.Student(mu, observed=[0.3, -1.0, 2.0])), sweeps=1)
    assert not early.report.converged
    assert "impossible" not in early.report.status


def test_a_polytope_of_one_plate_that_has_no_room():
    """Each pair of half-planes meets, and all three do not; of six hundred the last excludes the sum of the others."""
    r = np.random.default_rng(5)
    many = r.normal(size=(600, 3))
    many[-1] = -many[:-1].mean(0)
    few = np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    for design, low in ((few, [1.0, -0.2, -0.2]), (many, [*np.zeros(599), 0.01])):
        w = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), np.eye(3)))
        z = ep.Variable("z", ep.Normal, plate=len(design))
        held = ep.Interval(z, low, noise=0.0, name="held")
        assert_impossible(ep.infer(ep.FactorGraph(ep.Dot(design, w, z), held)), "the sharp ends of held leave no value")
    open_ = np.array([1.0, -0.6, -0.6])
    w, z = ep.Variable("w", ep.MultivariateNormal(np.zeros(3), np.eye(3))), ep.Variable("z", ep.Normal, plate=3)
    post = ep.infer(ep.FactorGraph(ep.Dot(few, w, z), ep.Interval(z, open_, noise=0.0)))
    assert np.isfinite(post.log_evidence)
