"""Fields answer misspelt names and wrong forms in words, as graphs do."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import InputError, KindError

EDGES = [("a", "b"), ("b", "c")]


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    return x, x + 0.5 * rng.normal(size=60)


def test_misspelt_options_are_answered_with_the_name_that_is_meant(pair):
    for make in (mm.KernelField, mm.KernelGraph):
        with pytest.raises(TypeError, match=rf"^{make.__name__}\(\) takes no schedul= \(did you mean 'schedule'\?\)"):
            make(EDGES, schedul=None)
        with pytest.raises(KindError, match=r"schedule is 'flooding'; expected one of mm.graphs.TwoPass"):
            make(EDGES, schedule="flooding")
    with pytest.raises(TypeError, match=r"KernelGrid\(\) takes no neighbors=.*neighbours"):
        mm.bp.KernelGrid(neighbors=4)
    fields = mm.KernelField(EDGES).fit(pair)
    with pytest.raises(TypeError, match=r"query\(\) takes no dampnig= \(did you mean 'damping'\?\)"):
        fields.query({"a": 1.0}, dampnig=0.1)


@pytest.mark.parametrize("argument", ["observed", "likelihood"])
def test_a_kind_that_no_variable_has_is_refused(argument, pair):
    """It was ignored, and later queries said that there is no likelihood."""
    given = pair if argument == "observed" else lambda y, x: np.ones((len(y), len(x)))
    field = mm.KernelField(EDGES, variables=["height"] * 3, relations=["near"] * 2)
    with pytest.raises(InputError, match=rf"^{argument} names the kind 'hieght' \(did you mean 'height'\?\)"):
        field.fit({"near": pair}, **{argument: {"hieght": given}})


def test_observed_that_is_no_pair_is_refused(pair):
    """It was "zip() argument 2 is shorter than argument 1"."""
    with pytest.raises(KindError, match=r"observed is an ndarray; expected a pair of samples \(hidden, observed\)"):
        mm.KernelField(EDGES).fit(pair, observed=pair[0])


def test_a_misspelt_variable_is_answered_with_the_name_that_is_meant(pair):
    kinds = {"a": "height", "b": "height", "cc": "height"}
    with pytest.raises(InputError, match=r"variables has no entry for 'c' \(did you mean 'cc'\?\)"):
        mm.KernelField(EDGES, variables=kinds).fit(pair)
