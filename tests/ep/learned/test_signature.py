"""Whether a function is the one that it was, with the data that it had."""

import contextvars
import importlib
import os
import sys
import types

import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.learned.signature import Functions, _points

CENTRE = 1.0
HELD = types.ModuleType("held")
SET = contextvars.ContextVar("SET")
CAME = (ep.Normal(np.linspace(-1, 1, 6), 1.0),)


class Meta(type):
    centre = 1.0


class Class(metaclass=Meta):
    pass


class Hiding:
    def __init__(self):
        self.centre = 1.0

    def __reduce__(self):
        return Hiding, ()


class Marked(dict):
    pass


HIDING, MARKED, OF_NUMPY = Hiding(), Marked(), np.zeros(2).view(type("Named", (np.ndarray,), {}))


def from_a_module_inside():
    import held

    return held.centre


def from_its_own_attribute():
    return from_its_own_attribute.centre


def from_what_goes_on():
    while True:
        yield HELD.centre


GOING = from_what_goes_on()
READERS = {
    "globals()": lambda: globals()["CENTRE"],
    "getattr": lambda: getattr(HELD, "centre"),  # noqa: B009
    "import": from_a_module_inside,
    "importlib": lambda: importlib.import_module("held").centre,
    "environment": lambda: os.environ["CENTRE"],
    "context": lambda: SET.get(),
    "metaclass": lambda: Class.centre,
    "generator": lambda: next(GOING),
    "hidden from copies": lambda: HIDING.centre,
    "attribute of a function": from_its_own_attribute,
    "attribute of a dictionary": lambda: MARKED.centre,
    "attribute of an array": lambda: OF_NUMPY.centre,
}


def say(monkeypatch, centre):
    monkeypatch.setitem(globals(), "CENTRE", centre)
    monkeypatch.setitem(os.environ, "CENTRE", str(centre))
    monkeypatch.setitem(sys.modules, "held", HELD)
    for holder in (HELD, Meta, HIDING, from_its_own_attribute, MARKED, OF_NUMPY):
        monkeypatch.setattr(holder, "centre", centre, raising=False)
    SET.set(centre)


@pytest.mark.parametrize("way", READERS)
def test_functions_with_other_data_are_others_wherever_these_lie(way, monkeypatch):
    read, functions = READERS[way], Functions()
    factor = ep.Density(lambda z: -((float(z) - float(read())) ** 2), ep.Variable("z", ep.Normal), name="d")
    found = []
    for centre in (1.0, 3.0, 3.0, 1.0):
        say(monkeypatch, centre)
        found.append(functions.signature(factor, 1.0, CAME))
    assert found[0] == found[3] != found[1] == found[2]


def test_samplers_and_functions_of_many_points_are_looked_at_too(monkeypatch):
    z, x = ep.Variable("z", ep.Gamma(2.0, 1.0), plate=6), ep.Variable("x", ep.Normal, plate=6)
    came = (ep.Gamma(np.full(6, 2.0), np.ones(6)), np.arange(6.0), ep.Normal(np.zeros(6), 1.0))

    def sampled(generator, z, given):
        return float(z) * given + HELD.__dict__["centre"] * generator.normal()

    def many(z, given):
        assert isinstance(z, np.ndarray)
        return z * given + HELD.__dict__["centre"]

    for function, words in ((sampled, {"random": True}), (many, {"vectorised": True})):
        factor, functions = ep.BlackBox(function, z, np.arange(6.0), x, name="f", **words), Functions()
        found = []
        for centre in (1.0, 3.0, 1.0):
            say(monkeypatch, centre)
            found.append(functions.signature(factor, 1.0, came))
        assert found[0] == found[2] != found[1]


def test_a_function_with_noise_of_its_own_is_known_by_what_it_reads():
    noise = iter(range(1000))
    factor = ep.Density(lambda z: float(z) + next(noise), ep.Variable("z", ep.Normal), name="d")
    functions = Functions()
    assert functions.signature(factor, 1.0, CAME) == functions.signature(factor, 1.0, CAME)


def test_frames_are_the_same_as_long_as_their_values_are():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"y": [1.0, 2.0]})
    factor = ep.Density(lambda z: -float(((frame["y"] - float(z)) ** 2).sum()), ep.Variable("z", ep.Normal), name="d")
    functions = Functions()
    one, same = (functions.signature(factor, 1.0) for _ in range(2))
    frame["y"] = [1.0, 3.0]
    assert one == same != functions.signature(factor, 1.0)


def test_points_where_a_function_of_shares_is_compared_are_shares():
    law = ep.Dirichlet(np.random.default_rng(0).uniform(0.5, 9.0, (8, 3)))
    (points,) = _points((law,))
    assert points.shape == (4, 3)
    np.testing.assert_allclose(points.sum(1), 1.0)
    assert (points > 0).all()
    (vectors,) = _points((ep.MultivariateNormal.standard(2, (8,)),))
    np.testing.assert_allclose(vectors, np.outer([0.3, -0.7, 1.1, -1.4], [1.0, 1.0]))
