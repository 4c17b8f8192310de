"""Names that other libraries have: the error says what to type."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from meanmap import ep
from meanmap.core import errors as ep_errors
from meanmap.ep import instead
from meanmap.families import base


def posterior() -> Any:
    a = ep.Variable("a", ep.Normal(0.0, 1.0))
    return ep.infer(ep.FactorGraph(ep.Gaussian(a, observed=1.0, precision=1.0)))


@pytest.mark.parametrize(
    ("name", "typed"),
    [("HalfNormal", r"type ep\.Gamma\(shape, rate\)"), ("Exponential", r"ep\.Gamma\(1\.0, rate\)"), ("Nothing", "'$")],
)
def test_of_the_module(name, typed):
    with pytest.raises(AttributeError, match=rf"module 'meanmap.ep' has no attribute '{name}.*{typed}"):
        getattr(ep, name)


@pytest.mark.parametrize(
    ("name", "typed"), [("sample", "mm.io.posterior_draws"), ("summary", r"print\(post\)"), ("nothing", "'$")]
)
def test_of_a_posterior(name, typed):
    with pytest.raises(AttributeError, match=rf"'Posterior' object has no attribute '{name}.*{typed}"):
        getattr(posterior(), name)


MISTYPED: Any = ep


def variables() -> Any:
    return ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("z", ep.Normal, plate=2)


@pytest.mark.parametrize(
    ("mistake", "typed"),
    [
        (
            lambda a, z: MISTYPED.BlackBox(lambda a: a, a, observed=[1, 2]),
            r"another factor, such as ep\.Gaussian",
        ),
        (lambda a, z: MISTYPED.BlackBox(lambda a: a, a, out=z), "type the output as the last argument"),
        (
            lambda a, z: MISTYPED.Density(lambda a, y: -((a - y) ** 2), a, observed=[1, 2]),
            r"ep\.Density\(log_factor, x, y\)",
        ),
        (
            lambda a, z: MISTYPED.infer(ep.FactorGraph(ep.Gaussian(a, z)), samples=100),
            r"mm\.io\.posterior_draws\(post, 1000\)",
        ),
        (lambda a, z: MISTYPED.infer(ep.FactorGraph(ep.Gaussian(a, z)), iterations=100), "type sweeps="),
        (lambda a, z: MISTYPED.FactorGraph([ep.Gaussian(a, z)]), r"type ep\.FactorGraph\(\*factors\)"),
    ],
)
def test_of_arguments(mistake, typed):
    with pytest.raises(TypeError, match=typed):
        mistake(*variables())


def test_of_a_belief():
    post = posterior()
    with pytest.raises(AttributeError, match=r"'Normal' object has no attribute 'std'; type \.sd\(\)"):
        _ = post["a"].std()
    with pytest.raises(AttributeError, match=r"'Normal' object has no attribute 'nothing'$"):
        _ = post["a"].nothing
    with pytest.raises(AttributeError, match=r"has no attribute 'a'; type post\['a'\]"):
        _ = post.a
    assert not [name for name in base._MEANT for law in (post["a"], ep.Gamma(1.0, 1.0)) if name in dir(law)]
    assert copy.deepcopy(post["a"]).mean() == post["a"].mean()


@pytest.mark.parametrize("family", [ep.Normal, ep.Gamma])
def test_a_function_of_numbers_without_a_prior_is_refused_before_it_is_evaluated(family):
    """Twelve seconds of sweeps said so."""
    calls = []
    a, b, z = ep.Variable("a", family), ep.Variable("b", ep.Normal(0.0, 1.0)), ep.Variable("z", ep.Normal, plate=3)
    box = ep.BlackBox(lambda a, b, x: calls.append(1) or a + b * x, a, b, np.arange(3.0), z)
    calls.clear()
    with pytest.raises(ep_errors.InputError, match=rf"'a' has no prior, .*ep\.Variable\('a', ep\.{family.__name__}\("):
        ep.infer(ep.FactorGraph(box, ep.Gaussian(z, observed=[1.0, 2.0, 3.0])))
    assert not calls


def test_no_name_that_exists_is_answered():
    post = posterior()
    assert not [name for name in instead._MODULE if name in dir(ep)]
    assert not [name for name in instead._POSTERIOR if name in dir(post)]
    assert copy.copy(post)["a"].mean() == pickle.loads(pickle.dumps(post))["a"].mean() == post["a"].mean()
    assert not hasattr(post, "__array__")
