"""Names that other libraries have: the error says what to type."""

import copy
import pickle
from typing import Any

import pytest

from meanmap import ep
from meanmap.ep import instead


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


def test_no_name_that_exists_is_answered():
    post = posterior()
    assert not [name for name in instead._MODULE if name in dir(ep)]
    assert not [name for name in instead._POSTERIOR if name in dir(post)]
    assert copy.copy(post)["a"].mean() == pickle.loads(pickle.dumps(post))["a"].mean() == post["a"].mean()
    assert not hasattr(post, "__array__")
