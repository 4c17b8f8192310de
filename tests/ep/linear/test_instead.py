"""Families and names of a fit that other libraries have: the error says what to type."""

import numpy as np
import pytest

pytest.importorskip("formulae")

import meanmap as mm
from meanmap.core.errors import ParameterError
from meanmap.ep.linear import instead
from meanmap.ep.linear.likelihoods import FAMILIES

ROWS = {"y": np.array([1.0, 2.0, 2.0, 5.0, 3.0, 4.0]), "x": np.arange(6.0)}


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("student", "'student' is 't' here"),
        ("negative_binomial", "'negative_binomial' is 'negativebinomial' here"),
        ("Gaussian", r"family is 'Gaussian' \(did you mean 'gaussian'\?\)"),
        ("ordinal", "'ordinal' is 'cumulative' here"),
        (3, r"family is 3; expected one of 'gaussian', 't'.*'cumulative'\.$"),
    ],
)
def test_families(typed, words):
    with pytest.raises(ParameterError, match=words):
        mm.fit("y ~ x", ROWS, family=typed)


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("coef", r"; type .* columns of found.draws\(groups=True\)"),
        ("ranef", r"; type found.group_effects\(\)"),
        ("nothing", ""),
    ],
)
def test_names_of_a_fit(name, typed):
    found = mm.fit("y ~ x", ROWS)
    with pytest.raises(AttributeError, match=rf"'Fitted' object has no attribute '{name}'{typed}$"):
        getattr(found, name)
    assert not [name for name in instead._FIT if name in dir(found)]
    assert not [name for name in instead._FAMILIES if name in {family for family, _ in FAMILIES}]
    assert set(instead._FAMILIES.values()) <= {family for family, _ in FAMILIES}
