"""Bad input of every ready model is told: what came, what was expected, what to type."""

import numpy as np
import pandas as pd
import pytest

from meanmap import ep
from meanmap.core import ColumnError, EmptyError, InputError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.language import at_command_line
from meanmap.ep import models

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 2))
Y = np.array([0, 1] * 5)
ALL = [
    (models.logistic_regression, Y),
    (models.probit_regression, Y),
    (models.poisson_regression, Y),
    (models.ordinal_regression, Y),
    (models.robust_regression, X[:, 0] + Y),
    (models.gp_classification, Y),
]
REGRESSIONS = ALL[:5]


@pytest.mark.parametrize(("model", "y"), ALL)
def test_tables_that_no_model_takes(model, y):
    with pytest.raises(NonFiniteError, match=r"missing|not finite"):
        model(pd.DataFrame({"a": [np.nan, *X[1:, 0]], "b": X[:, 1]}), y)
    with pytest.raises(NonFiniteError, match="y"):
        model(X, [np.nan, *y[1:].astype(float)])
    with pytest.raises(ShapeError, match="X has 9 rows and y has 10"):
        model(X[:9], y)
    with pytest.raises(InputError, match=r"empty|at least"):
        model(X[:0], y[:0])


@pytest.mark.parametrize(("model", "y"), REGRESSIONS)
def test_columns_that_no_regression_takes(model, y):
    with pytest.raises(ColumnError, match=r"column 'b' of X is 3 in all 10 rows.*Remove it"):
        model(pd.DataFrame({"a": X[:, 0], "b": 3.0}), y)
    with pytest.raises(ColumnError, match=r"not numeric: 'colour'.*get_dummies"):
        model(pd.DataFrame({"a": X[:, 0], "colour": ["red", "blue"] * 5}), y)
    with pytest.raises(EmptyError, match="X has 1 point; expected at least 2"):
        model(X[:1], y[:1])
    with pytest.raises(ParameterError, match="prior_sd is"):
        model(X, y, prior_sd=-1.0)
    with pytest.raises(ShapeError, match=r"prior_sd has shape \(3,\); expected one number, or one for each of 2"):
        model(X, y, prior_sd=[1.0, 1.0, 1.0])
    with pytest.raises(ParameterError, match="damping"):
        model(X, y, damping=2.0)


@pytest.mark.parametrize("model", [models.logistic_regression, models.probit_regression, models.gp_classification])
def test_labels_that_are_not_two(model):
    with pytest.raises(ParameterError, match=r"y holds 1 label \(1\); expected two. There is nothing to learn"):
        model(X, np.ones(10))
    with at_command_line(), pytest.raises(ParameterError, match=r"use `meanmap ep ordinal --levels a,b,c`\.$"):
        model(X, list("abcabcabca"))
    with pytest.raises(ParameterError, match=r"y holds 3 labels \(a, b, c\).*use ordinal_regression"):
        model(X, list("abcabcabca"))
    with pytest.raises(ShapeError, match="y has 2 columns"):
        model(X, np.column_stack([Y, Y]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: models.robust_regression(X, [f"{y}.5" for y in Y]),
            ParameterError,
            r"y holds labels, such as '\d.5'; expected numbers, one for each row of X. y looks like numbers: convert",
        ),
        (lambda: models.poisson_regression(X, Y - 1), ParameterError, "y holds -1 at row 0; expected counts"),
        (lambda: models.poisson_regression(X, Y + 0.5), ParameterError, "y holds 0.5 at row 0"),
        (lambda: models.poisson_regression(X, ["a", "b"] * 5), ParameterError, "expected numbers"),
        (lambda: models.poisson_regression(X, Y, exposure=0.0), ParameterError, "exposure is 0"),
        (lambda: models.poisson_regression(X, Y, exposure=[1.0, 2.0]), ShapeError, "exposure has 2"),
        (lambda: models.ordinal_regression(X, ["a", "b"] * 5), ParameterError, "text, which has no order: pass levels"),
        (lambda: models.ordinal_regression(X, ["a", "b"] * 5, levels=["a"]), ParameterError, "'b', which is not among"),
        (lambda: models.ordinal_regression(X, Y, levels=[0, 1, 2]), ParameterError, "y holds never 2"),
        (lambda: models.ordinal_regression(X, Y, levels=[0, 1, 1]), ParameterError, "every label once"),
        (lambda: models.ordinal_regression(X, np.zeros(10)), ParameterError, "only one label"),
        (lambda: models.robust_regression(X, np.ones(10)), ColumnError, "y is 1 in all 10 rows"),
        (lambda: models.robust_regression(X, Y, degrees=0.0), ParameterError, "degrees"),
        (lambda: models.gp_classification(X, Y, link="tanh"), ParameterError, "link is 'tanh'; expected 'logistic'"),
        (lambda: models.gp_classification(X, Y, kernel=3), KindError, "expected a kernel"),
        (lambda: models.gp_classification(X, Y, variance=-1.0), ParameterError, "variance"),
        (lambda: models.ranking(["a"], ["b", "c"]), ShapeError, "winners has 1 games and losers 2"),
        (lambda: models.ranking(["a", "b"], ["b", "b"]), ParameterError, "game 1 is 'b' against 'b'"),
        (lambda: models.ranking(["a", None], ["b", "c"]), NonFiniteError, "missing"),
        (lambda: models.ranking([], []), InputError, "empty"),
        (lambda: models.ranking(["a"], ["b"], [2]), ParameterError, "True or False for each of 1 games"),
        (lambda: models.ranking(["a"], ["b"], performance_sd=0.0), ParameterError, "performance_sd"),
        (lambda: models.compound_gamma([]), ShapeError, "x is empty"),
        (lambda: models.compound_gamma([1.0], shape=-1.0), ParameterError, "shape is"),
        (lambda: models.simulator(lambda a: a, {}, observed=[1.0], noise_sd=1.0), KindError, "a prior by name"),
        (lambda: models.simulator(lambda a: a, {"a": 3}, observed=[1.0], noise_sd=1.0), KindError, "prior of 'a' is 3"),
        (
            lambda: models.simulator(lambda a: a, {"a": ep.Normal()}, observed=1.0, noise_sd=1.0),
            InputError,
            r"pass \[observed\]",
        ),
        (
            lambda: models.simulator(lambda a, t: a, {"a": ep.Normal()}, [1, 2], observed=[1.0], noise_sd=1.0),
            ShapeError,
            "plates of the program do not fit together: observed .* has 1, setting 0 .* has 2",
        ),
        (
            lambda: models.simulator(lambda a, t: a, {"a": ep.Normal()}, observed=[1.0], noise_sd=1.0),
            KindError,
            "failed for one value of each of its 1 arguments",
        ),
        (
            lambda: models.simulator(lambda a: a, {"a": ep.Normal()}, observed=[1.0], noise_sd=0.0),
            ParameterError,
            "noise_sd",
        ),
        (lambda: ep.Student(ep.Variable("z", ep.Normal), observed=1.0, scale=0.0), ParameterError, "scale of Student"),
        (lambda: ep.Student(ep.Variable("z", ep.Beta), observed=1.0), KindError, "expected a Normal"),
    ],
)
def test_settings_that_a_model_cannot_use(make, error, message):
    with pytest.raises(error, match=message):
        make()
