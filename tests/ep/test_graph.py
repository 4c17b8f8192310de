"""Variables, factors and graphs: what they hold, print and draw, and what they refuse."""

import numpy as np
import pytest

from meanmap import ep
from meanmap.core import EmptyError, InputError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.families import Flat, Laplace


def plate(n=3, name="z"):
    return ep.Variable(name, ep.Normal, plate=n)


def test_a_graph_prints_and_draws_its_parts():
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    z, skill = plate(), ep.Variable("skill", ep.Normal(0.0, 1.0), plate=5)
    graph = ep.FactorGraph(
        ep.Dot(np.ones((3, 2)), w, z), ep.Probit(z, observed=[0, 1, 1]), ep.Sum(z, out=skill[[0, 4, 4]])
    )
    assert str(graph).splitlines() == [
        "FactorGraph of 3 factors and 3 variables",
        "  w: MultivariateNormal(mean=[0, 0], sd=[1, 1])",
        "  z: Normal, plate of 3",
        "  skill: Normal(mean=0, sd=1), plate of 5",
        "  Dot(w, z): X[3, 2], w, z",
        "  Probit(z), plate of 3: z, low[3], high[3]",
        "  Sum(z, skill), plate of 3: skill[3 members], z",
    ]
    assert repr(graph) == "FactorGraph(Dot(w, z), Probit(z), Sum(z, skill))"
    ax = graph.plot()
    drawn = {text.get_text() for text in ax.texts}
    factors = {"Dot(w, z) × 3", "X[3, 2]", "Probit(z) × 3", "low[3], high[3]", "Sum(z, skill) × 3"}
    assert drawn == factors | {"w", "z × 3", "skill × 5"}
    # Five edges, of which the one to the weights that all rows share is double; three circles and three squares.
    assert len(ax.lines) == 6 + 6


def test_factors_of_one_name_are_numbered():
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    graph = ep.FactorGraph(ep.Probit(z, observed=1), ep.Probit(z, observed=0), ep.Probit(z, observed=1, name="third"))
    assert [factor.name for factor in graph.factors] == ["Probit(z) #1", "Probit(z) #2", "third"]


def test_a_prior_is_repeated_over_the_plate_or_brings_it():
    assert ep.Variable("a", ep.Normal(0.0, 1.0), plate=4).prior.shape == (4,)
    assert ep.Variable("a", ep.Normal([0.0, 1.0], 1.0)).plate == 2
    assert ep.Variable("b", ep.Bernoulli).family.__name__ == "Bernoulli"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ep.Variable("", ep.Normal), KindError, "expected text"),
        (lambda: ep.Variable("a", Laplace(0.0, 1.0)), KindError, "expected one of Bernoulli, Beta"),
        (lambda: ep.Variable("a", Flat()), KindError, "expected one of"),
        (lambda: ep.Variable("a", ep.Normal, plate=0), ParameterError, "whole number, 1 or more"),
        (lambda: ep.Variable("a", ep.Normal, plate=2.0), ParameterError, "whole number"),
        (lambda: ep.Variable("a", ep.Normal([0.0, 1.0], 1.0), plate=3), ShapeError, "plate=3, but its prior has 2"),
        (lambda: ep.Variable("a", ep.Normal(np.zeros((2, 2)), 1.0)), ShapeError, "expected one axis"),
        (lambda: ep.Variable("a", ep.Normal.flat()), ParameterError, "is improper"),
        (lambda: ep.Variable("a", ep.MultivariateNormal), ParameterError, "dimension=3"),
        (lambda: ep.Variable("a", ep.Normal, dimension=3), ParameterError, "leave out dimension"),
        (lambda: ep.Variable("a", ep.MultivariateNormal.standard(2), dimension=3), ShapeError, "length 2"),
        (lambda: ep.Variable("a", ep.Normal)[[0]], ShapeError, "not a plate"),
        (lambda: plate()[[0.5]], KindError, "whole numbers"),
        (lambda: plate()[[0, 3]], ParameterError, "holds 3 at 1; expected 0 to 2"),
        (lambda: plate()[["x", "y"]], KindError, "holds labels; expected whole numbers from 0: to number labels type"),
        (lambda: list(plate()), TypeError, "cannot be iterated"),
    ],
)
def test_bad_variables(make, error, message):
    with pytest.raises(error, match=message):
        make()


W = ep.Variable("w", ep.MultivariateNormal.standard(2))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: ep.Dot(np.ones((4, 2)), W, plate()),
            ShapeError,
            "has 4 rows and 'z' has a plate of 3; expected a member for each row, plate=4",
        ),
        (lambda: ep.Dot(np.ones((3, 3)), W, plate()), ShapeError, "3 columns and 'w' has length 2"),
        (lambda: ep.Dot([[np.nan, 1]] * 3, W, plate()), NonFiniteError, "X holds"),
        (lambda: ep.Dot(np.ones((3, 2)), plate(), W), KindError, "w of Dot.z, w. is the Normal 'z'"),
        (lambda: ep.Sum(out=plate()), ShapeError, "no terms"),
        (lambda: ep.Sum(plate(3), plate(4, "u"), out=0.0), ShapeError, "argument 1 'z' has 3, argument 2 'u' has 4"),
        (lambda: ep.Sum(plate(), plate(3, "u"), out=0.0, weights=[0, 1]), ParameterError, "other than 0"),
        (lambda: ep.Sum(1.0, out=2.0), KindError, "no variable"),
        (lambda: ep.Gaussian(plate()), KindError, "needs an outcome"),
        (lambda: ep.Variable("c", ep.Bernoulli(0.5)), KindError, r"type mm.families.Bernoulli\(0.5\)"),
        (
            lambda: ep.Variable("t", ep.Categorical([0.5, 0.5])),
            KindError,
            r"type mm.families.Categorical\(\[0.5, 0.5\]\)",
        ),
        (lambda: ep.Categorical(ep.Variable("p", ep.Dirichlet([1.0, 1.0]))), KindError, "whole numbers as observed="),
        (lambda: ep.Gaussian(plate(), observed=[1, 2]), ShapeError, "same number of members"),
        (lambda: ep.Gaussian(plate(), observed=0.0, precision=-1.0), ParameterError, "above 0"),
        (lambda: ep.Gaussian(plate(), observed=[np.inf] * 3), NonFiniteError, "not finite"),
        (lambda: ep.Gaussian(plate(), observed=0.0, precision=plate(3, "u")), KindError, "expected a Gamma"),
        (lambda: ep.Probit(plate(), observed=[0, 1, 2]), ParameterError, r"holds 2 at \[2\]; expected zeros and ones"),
        (lambda: ep.Logistic(plate(), observed=[0, -1, 1]), ParameterError, r"holds -1 at \[1\]"),
        (lambda: ep.Poisson(plate(), observed=[0, 1, 0.5]), ParameterError, r"holds 0.5 at \[2\]; expected whole"),
        (lambda: ep.Poisson(plate(), observed=1, exposure=0.0), ParameterError, "exposure"),
        (lambda: ep.Ordinal(plate(), [1, 0], observed=[0, 1, 2]), ParameterError, "increasing"),
        (lambda: ep.Ordinal(plate(), [0, 1], observed=[0, 1, 3]), ParameterError, "from 0 to 2"),
        (lambda: ep.Interval(plate(), 1.0, 0.0), ParameterError, "not below high"),
        (lambda: ep.Interval(plate(), np.nan), NonFiniteError, "holds NaN"),
        (lambda: ep.Interval(plate(), 0.0, noise=-1.0), ParameterError, "0 or more"),
        (lambda: ep.Ordinal(plate(), plate(2, "c"), observed=0), KindError, "ep.models.ordinal_regression"),
        (lambda: ep.Bernoulli(plate(), observed=[0, 1, 1]), KindError, "expected a Beta"),
        (lambda: ep.Bernoulli(ep.Variable("p", ep.Beta), observed=2), ParameterError, "zeros and ones"),
        (lambda: ep.Categorical(ep.Variable("q", ep.Dirichlet.standard(2)), observed=[2]), ParameterError, "0 to 1"),
        (lambda: ep.FactorGraph(), InputError, "no factors"),
        (lambda: ep.FactorGraph(plate()), KindError, "factor 0 is a Variable"),
        (
            lambda: ep.FactorGraph(ep.Probit(plate(), observed=[0, 1, 1]), ep.Probit(plate(), observed=[0, 1, 1])),
            InputError,
            "two variables are called 'z'",
        ),
        (lambda: ep.Density(3.0, plate()), KindError, "something to call"),
        (lambda: ep.Density(lambda: 0.0), ShapeError, "no arguments"),
        (lambda: ep.Density(lambda x: x, 1.0), KindError, "no variable"),
        (lambda: ep.Density(lambda x, y: x, plate()), KindError, "failed for one value .* all variables but the last"),
        (lambda: ep.Logistic(plate(), observed=["rich"]), KindError, "holds labels, such as 'rich'; .* == 'rich'"),
        (
            lambda: ep.Logistic(plate(), observed=["1", "0"]),
            KindError,
            r"look like numbers, such as '1'; type np.asarray",
        ),
        (lambda: ep.Categorical(np.full(35, 1 / 35)), KindError, r"^.{1,200}mm.families.Categorical.{1,60}$"),
        (lambda: ep.Density(lambda x: [x, x], plate()), ShapeError, "returned list"),
        (lambda: ep.Density(lambda x: np.ones(3) * x, plate()), ShapeError, r"returned shape \(3,\)"),
        (lambda: ep.BlackBox(lambda x: x, plate(), [1.0] * 3), KindError, "must be a Variable"),
        (lambda: ep.BlackBox(lambda x: x, plate(), W), KindError, "expected a number"),
        (lambda: ep.BlackBox(lambda x: x, plate(3), plate(4, "u")), ShapeError, "same number of members"),
        (lambda: ep.Quadrature(3), ParameterError, "at least 9"),
        (lambda: ep.ImportanceSampling(1), ParameterError, "at least 4"),
        (lambda: ep.ImportanceSampling(proposal=3), KindError, "expected one distribution"),
    ],
)
def test_bad_factors_and_graphs(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_an_empty_observation_is_refused():
    with pytest.raises((ShapeError, EmptyError), match="empty"):
        ep.Gaussian(plate(), observed=[])


def test_an_unknown_that_a_factor_meets_twice_is_refused():
    a, c = ep.Variable("a", ep.Normal(2.0, 0.1)), ep.Variable("c", ep.Normal)
    z, mu = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3), ep.Variable("mu", ep.Normal(0.0, 1.0))
    twice = [
        (ep.Product(a, a, c), "multiply.a, a, c. has 'a' twice"),
        (ep.Sum(a, a, out=c), "has 'a' twice, and would treat it as two independent unknowns"),
        (ep.Gaussian(a, a), "has 'a' twice"),
        (ep.Sum(z[[0, 1]], z[[2, 1]], out=[0.0, 1.0]), "member 1 of Sum.* has 'z' twice"),
        (ep.Sum(z, z[[1, 2, 2]], out=[0.0, 1.0, 2.0]), "member 2 of Sum.* has 'z' twice"),
        (ep.Sum(mu, mu, z, out=[0.0, 1.0, 2.0]), "has 'mu' twice.*ep.Sum.a, weights=.2."),
    ]
    for factor, message in twice:
        with pytest.raises(InputError, match=message):
            ep.FactorGraph(factor)
    # The same member in different members of a factor, or another one of its plate, is no repetition.
    ep.FactorGraph(ep.Sum(z[[0, 0]], z[[1, 2]], out=[0.0, 1.0]))


def test_a_product_with_a_known_number_is_a_multiple():
    m, out = ep.Variable("m", ep.Normal(1.0, 1.0)), ep.Variable("out", ep.Normal)
    product = ep.Product(2.0, m, out)
    assert product.name == "multiply(m, out)"
    belief = ep.infer(ep.FactorGraph(product))["out"]
    assert (float(belief.mean()), float(belief.var())) == pytest.approx((2.0, 4.0), rel=1e-6)
