"""Models that cannot be, each refused in words: what came, and what was expected."""

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.calling import evaluated


def N(name="z", **words):
    return ep.Variable(name, ep.Normal(0.0, 1.0), **words)


def G(*factors):
    return ep.FactorGraph(*factors)


class Votes(ep.Dirichlet):
    """A family of the user's own, of vectors."""


# By what is wrong: the model, and part of what is said.
MODELS = {
    "no factors": (lambda: G(), "the graph has no factors; expected at least one"),
    "model is a list": (lambda: ep.infer([ep.Logistic(N(), observed=1)]), "model is a list; expected a FactorGraph"),
    "model is a variable": (lambda: ep.infer(N()), "model is a Variable; expected a FactorGraph"),
    "model is a factor": (lambda: ep.infer(ep.Logistic(N(), observed=1)), "model is a Density; expected a FactorGraph"),
    "factor is a number": (lambda: G(3.0), "factor 0 is a float; expected a factor"),
    "factor is a function": (lambda: G(lambda z: z), "factor 0 is a function; expected a factor"),
    "variable among factors": (lambda: G(N()), "factor 0 is a Variable; expected a factor"),
    "two variables of one name": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1), ep.Logistic(N(), observed=0))),
        "two variables are called 'z'",
    ),
    "name is a number": (lambda: ep.Variable(3, ep.Normal(0.0, 1.0)), "name is 3; expected text"),
    "name is empty": (lambda: ep.Variable("", ep.Normal(0.0, 1.0)), "name is ''; expected text"),
    "prior is a number": (lambda: ep.Variable("z", 0.0), "the family of variable 'z' is 0.0; expected one of"),
    "prior is a string": (
        lambda: ep.Variable("z", "normal"),
        "the family of variable 'z' is 'normal'; expected one of",
    ),
    "prior of negative variance": (
        lambda: ep.Variable("z", ep.Normal(0.0, -1.0)),
        "variance is -1.; expected values above 0",
    ),
    "prior of variance 0": (
        lambda: ep.infer(G(ep.Logistic(ep.Variable("z", ep.Normal(0.0, 0.0)), observed=1))),
        "variance is 0.; expected values above 0",
    ),
    "prior of NaN": (lambda: ep.Variable("z", ep.Normal(np.nan, 1.0)), "mean holds NaN; expected numbers"),
    "prior of infinity": (
        lambda: ep.Variable("z", ep.Normal(np.inf, 1.0)),
        "mean holds infinity; expected finite numbers",
    ),
    "gamma of negative shape": (lambda: ep.Variable("t", ep.Gamma(-1.0, 1.0)), "shape is -1.; expected values above 0"),
    "beta of 0": (lambda: ep.Variable("p", ep.Beta(0.0, 1.0)), "a is 0.; expected values above 0"),
    "plate of 0": (lambda: N(plate=0), "plate of variable 'z' is 0; expected a whole number"),
    "plate is negative": (lambda: N(plate=-3), "plate of variable 'z' is -3; expected a whole number"),
    "plate is a fraction": (lambda: N(plate=2.5), "plate of variable 'z' is 2.5; expected a whole number"),
    "plate is text": (lambda: N(plate="3"), "plate of variable 'z' is '3'; expected a whole number"),
    "plate and prior differ": (
        lambda: ep.Variable("z", ep.Normal(np.zeros(3), 1.0), plate=4),
        "has plate=4, but its prior has 3 members",
    ),
    "plates of a factor differ": (
        lambda: ep.Density(lambda a, b: -a * b, N("a", plate=3), N("b", plate=4)),
        "do not fit together: argument 0 'a' has 3, argument 1 'b' has 4",
    ),
    "data and plate differ": (
        lambda: ep.Logistic(N(plate=3), observed=[0, 1]),
        "argument 0 'z' has 3, argument 1 'observed' has 2",
    ),
    "labels beyond 0 and 1": (
        lambda: ep.Logistic(N(plate=3), observed=[0, 1, 2]),
        "holds 2 at [2]; expected zeros and ones",
    ),
    "labels between": (lambda: ep.Logistic(N(plate=2), observed=[0.5, 1]), "holds 0.5 at [0]; expected zeros and ones"),
    "observed NaN": (lambda: ep.Gaussian(N(), observed=np.nan), "observed is nan, which is not finite"),
    "observed infinity": (lambda: ep.Gaussian(N(), observed=np.inf), "observed is inf, which is not finite"),
    "observed text": (lambda: ep.Gaussian(N(), observed="high"), "observed is the text 'high'; expected numbers"),
    "observed complex": (lambda: ep.Gaussian(N(), observed=1j), "observed holds complex numbers; expected real ones"),
    "observed None": (
        lambda: ep.Gaussian(N(), observed=None),
        "needs an outcome: a Variable as out, or numbers as observed",
    ),
    "precision 0": (lambda: ep.Gaussian(N(), observed=1.0, precision=0.0), "is 0 at least; expected values above 0"),
    "precision negative": (
        lambda: ep.Gaussian(N(), observed=1.0, precision=-1.0),
        "is -1 at least; expected values above 0",
    ),
    "precision is a Normal": (
        lambda: ep.infer(G(ep.Gaussian(N(), observed=1.0, precision=N("t")))),
        "is the Normal 't'; expected a Gamma variable",
    ),
    "function is a number": (lambda: ep.Density(3.0, N()), "is 3.0; expected something to call"),
    "function is None": (lambda: ep.Density(None, N()), "is None; expected something to call"),
    "function without variables": (
        lambda: ep.Density(lambda: 0.0),
        "has no arguments; expected Variables after the function",
    ),
    "everything is given": (lambda: ep.Density(lambda z: -z * z, 1.0), "has no variable: everything in it is given"),
    "function of too many arguments": (
        lambda: ep.Density(lambda a, b: -a * b, N()),
        "missing 1 required positional argument: 'b'",
    ),
    "function of too few": (
        lambda: ep.Density(lambda a: -a * a, N("a"), N("b")),
        "takes 1 positional argument but 2 were given",
    ),
    "function returns a vector": (
        lambda: ep.Density(lambda z: jnp.array([z, z]), N()),
        "returned shape (2,) for one value of each argument; expected one number",
    ),
    "function returns a law": (
        lambda: ep.Density(lambda z: ep.Normal(z, 1.0), N()),
        "returned Normal for one value of each argument; expected one number",
    ),
    "function returns a law with a shape": (
        lambda: ep.Density(lambda z: ep.Gamma(jnp.exp(z), 1.0), N()),
        "returned Gamma for one value of each argument; expected one number",
    ),
    "function returns None": (
        lambda: ep.infer(G(ep.Density(lambda z: None, N()))),
        "returned NoneType for one value of each argument; expected one number",
    ),
    "function on the host returns None in places": (
        lambda: evaluated(ep.Density(lambda z: None if float(z) > 1 else 0.0, N(), name="d"), [np.array([0.0, 2.0])]),
        "the function of d returned None for one value of each argument, when called with 2.; expected numbers",
    ),
    "function returns text": (
        lambda: ep.infer(G(ep.Density(lambda z: str(float(z)), N()))),
        "for one value of each argument, when called with",
    ),
    "function returns complex numbers": (
        lambda: ep.Density(lambda z: jnp.exp(1j * z), N()),
        "returned complex numbers; expected real ones",
    ),
    "function on the host returns complex numbers": (
        lambda: ep.infer(G(ep.Density(lambda z: np.complex128(float(z)), N()))),
        "for one value of each argument, when called with",
    ),
    "given numbers are ragged": (lambda: ep.Density(lambda z, x: -z, N(), [[1.0, 2.0], [3.0]]), "ragged"),
    "given numbers are missing": (lambda: ep.Density(lambda z, x: -z, N(), [1.0, None]), "has 1 missing value"),
    "given numbers have two axes": (
        lambda: ep.Density(lambda z, x: -z, N(), np.ones((2, 3))),
        "expected one number a row: pass its columns one by one",
    ),
    "one unknown twice": (lambda: (lambda z: G(ep.Density(lambda a, b: -a * b, z, z)))(N()), "has 'z' twice"),
    "a ufunc of two": (lambda: ep.Density(np.add, N()), "add() takes from 2 to 3 positional arguments but 1 was given"),
    "keywords are missing": (
        lambda: ep.Density(lambda z, *, s: -s * z, N()),
        "missing 1 required keyword-only argument: 's'",
    ),
    "output is given": (lambda: ep.BlackBox(jnp.exp, N(), 1.0), "is its output, and must be a Variable"),
    "a vector as output": (
        lambda: ep.BlackBox(lambda z: z, N(), ep.Variable("w", ep.MultivariateNormal.standard(2))),
        "is a MultivariateNormal; expected a number",
    ),
    "a label in a density": (
        lambda: ep.Density(lambda k: k, ep.Variable("k", ep.Categorical([0.5, 0.5]))),
        "for the prior of a Variable type mm.families.Categorical",
    ),
    "messages is a number": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), 3),
        "messages is 3; expected an oracle such as",
    ),
    "messages is a class": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), ep.Quadrature),
        "expected an oracle: type messages=ep.Quadrature()",
    ),
    "messages is a word": (
        lambda: ep.infer(G(ep.Gaussian(N(), observed=1.0)), "mcmc"),
        "messages is 'mcmc'; expected an oracle: type messages=ep.MCMC().",
    ),
    "messages holds a word": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), {"Logistic(z)": "laplce"}),
        "messages['Logistic(z)'] is 'laplce'; expected an oracle: type messages['Logistic(z)']=ep.Laplace().",
    ),
    "oracle is a word": (
        lambda: ep.Density(lambda z: -z, N(), oracle="quadrture"),
        "oracle is 'quadrture'; expected an oracle: type oracle=ep.Quadrature().",
    ),
    "oracle of a function is a number": (
        lambda: ep.BlackBox(jnp.exp, N(), ep.Variable("y", ep.Normal), oracle=3),
        "oracle is 3; expected an oracle such as",
    ),
    "oracle of a question is a class": (
        lambda: ep.extending.ask(ep.Gaussian(N(), observed=1.0), ep.Normal(0.0, 1.0), oracle=ep.MCMC),
        "type oracle=ep.MCMC().",
    ),
    "weights of a sum are ragged": (
        lambda: ep.Sum(N("a"), N("b"), out=1.0, weights=[[1.0, 2.0], [3.0]], precision=1.0),
        "is ragged: row 0 has 2 entries and row 1 has 1 entry",
    ),
    "weights of a sum are too few": (
        lambda: ep.Sum(N("a"), N("b"), out=1.0, weights=[1.0], precision=1.0),
        "weights of Sum(a, b, out) are [1.0], 1 of them; expected 2 numbers other than 0, one for each term",
    ),
    "a matrix is ragged": (
        lambda: ep.Dot([[1.0, 2.0], [3.0]], ep.Variable("w", ep.MultivariateNormal.standard(2)), N("z", plate=2)),
        "is ragged: row 0 has 2 entries and row 1 has 1 entry",
    ),
    "messages name another factor": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), {"probit": ep.Quadrature()}),
        "messages names 'probit'; the factors that ask an oracle are 'Logistic(z)'.",
    ),
    "messages return nonsense": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), lambda questions: 3),
        "returned 3 messages for Logistic(z); expected 2",
    ),
    "learned vectors of another family": (
        lambda: ep.infer(G(ep.Density(lambda p: -p @ p, ep.Variable("p", Votes.standard(2)))), ep.Learned()),
        "a Votes; expected numbers, normal vectors or a Dirichlet: other messages are not learned. Type messages=",
    ),
    "quadrature over three": (
        lambda: ep.infer(G(ep.Density(lambda a, b, c: -a * b * c, N("a"), N("b"), N("c"))), ep.Quadrature()),
        "integrates over 3 variables; quadrature takes at most 2",
    ),
    "sweeps 0": (lambda: ep.infer(G(ep.Logistic(N(), observed=1)), sweeps=0), "sweeps is 0.0; expected values above 0"),
    "damping 2": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), damping=2.0),
        "damping is 2.0; expected at least 0 and less than 1",
    ),
    "power 0": (lambda: ep.infer(G(ep.Logistic(N(), observed=1)), power=0.0), "power is 0.0; expected values above 0"),
    "improper unknown": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), improper="ignore"),
        "improper is 'ignore'; expected one of",
    ),
    "schedule unknown": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), schedule="fast"),
        "schedule is 'fast'; expected one of",
    ),
    "start from text": (
        lambda: ep.infer(G(ep.Logistic(N(), observed=1)), start_from="before"),
        "start_from is 'before'; expected a Posterior",
    ),
    "tolerance negative": (lambda: ep.infer(G(ep.Logistic(N(), observed=1)), tolerance=-1.0), "tolerance is"),
    "sweeps is a fraction": (lambda: ep.infer(G(ep.Logistic(N(), observed=1)), sweeps=2.5), "sweeps is 2.5"),
}
SLOW = {"function returns text", "function on the host returns complex numbers"}


@pytest.mark.parametrize("wrong", [pytest.param(k, marks=pytest.mark.slow if k in SLOW else ()) for k in MODELS])
def test_models_that_cannot_be_are_refused_in_words(wrong):
    make, words = MODELS[wrong]
    with pytest.raises((ValueError, TypeError)) as refused:
        make()
    assert type(refused.value).__module__ == "meanmap.core.errors"
    assert words in str(refused.value)
