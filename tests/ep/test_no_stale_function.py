"""No function is answered with data of an earlier run, wherever it reads them; counters and memos are no data."""

import collections
import contextvars
import dataclasses
import functools
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.calling import as_now, evaluated
from meanmap.ep.learned.signature import Functions

CENTRE = 1.0
MODULE = types.ModuleType("module")
exec("centre = 1.0\ndef read(): return centre", MODULE.__dict__)
CAME = (ep.Normal(np.linspace(-1, 1, 6), 1.0),)


def traced(t, centre):
    return -50.0 * (t - centre) ** 2


def hosted(t, centre):
    return -50.0 * (float(t) - float(centre)) ** 2


def helper():
    return CENTRE


def helper_of_helper():
    return helper()


def set_global(centre):
    globals()["CENTRE"] = centre


def into(holder, key):
    return lambda centre: holder.__setitem__(key, centre)


def onto(holder, name="centre"):
    return lambda centre: setattr(holder, name, centre)


def default(loss):
    def function(t, values=[1.0]):  # noqa: B006
        return loss(t, values[0])

    return function, into(function.__defaults__[0], 0)


def default_by_name(loss):
    def function(t, *, values={"centre": 1.0}):  # noqa: B006
        return loss(t, values["centre"])

    return function, into(function.__kwdefaults__["values"], "centre")


def default_replaced(loss):
    def function(t, centre=1.0):
        return loss(t, centre)

    return function, lambda centre: setattr(function, "__defaults__", (centre,))


def closure(loss):
    held = 1.0

    def change(centre):
        nonlocal held
        held = centre

    return lambda t: loss(t, held), change


def dictionary(loss):
    held = {"inside": {"centre": 1.0}}
    return lambda t: loss(t, held["inside"]["centre"]), into(held["inside"], "centre")


def of_entries(make):
    def reading(loss):
        held = make()
        return lambda t: loss(t, held[0]), into(held, 0)

    return reading


def view(loss):
    whole = np.ones(3)
    part = whole[:1]
    return lambda t: loss(t, part[0]), into(whole, 0)


def partial(loss):
    held = np.array([1.0])
    return functools.partial(lambda values, t: loss(t, values[0]), held), into(held, 0)


def class_attribute(loss):
    class Base:
        centre = 1.0

    class Own(Base):
        def __call__(self, t):
            return loss(t, self.centre)

    return Own(), onto(Base)


def class_method(loss):
    class Own:
        centre = 1.0

        @classmethod
        def read(cls, t):
            return loss(t, cls.centre)

    return Own.read, onto(Own)


def static_method(loss):
    class Own:
        centre = 1.0

        @staticmethod
        def read(t):
            return loss(t, Own.centre)

    return Own.read, onto(Own)


def method(loss):
    class Own:
        centre = 1.0

        def read(self, t):
            return loss(t, self.centre)

    own = Own()
    return own.read, onto(own)


def slots(loss):
    class Own:
        __slots__ = ("__weakref__", "centre")

        def __call__(self, t):
            return loss(t, self.centre)

    return (own := Own()), onto(own)


def through_a_property(loss):
    class Own:
        held = 1.0

        @property
        def centre(self):
            return self.held

    own = Own()
    return lambda t: loss(t, own.centre), onto(own, "held")


def data_class(loss):
    own = dataclasses.make_dataclass("Own", [("centre", float, 1.0)])()
    return lambda t: loss(t, own.centre), onto(own)


def helpers_inside(loss):
    def function(t):
        def inside():
            return helper_of_helper()

        return loss(t, inside())

    return function, set_global


def decorated(loss):
    held = [1.0]

    def reading(function):
        return functools.wraps(function)(lambda t: function(t, held[0]))

    return reading(lambda t, centre: loss(t, centre)), into(held, 0)


def context(loss):
    held = contextvars.ContextVar("held")
    return lambda t: loss(t, held.get()), held.set


def remembered_helper(loss):
    same = functools.lru_cache(lambda value: value)
    return lambda t: loss(t, same(CENTRE)), set_global


def compiled_helper(loss):
    if loss is hosted:
        return lambda t: hosted(t, CENTRE), set_global
    inner = jax.jit(lambda t: loss(t, helper()))
    return jax.jit(lambda t: inner(t)), set_global


def compiled_method(loss):
    if loss is hosted:
        return method(loss)

    class Own:
        centre = 1.0

        @functools.partial(jax.jit, static_argnums=0)
        def read(self, t):
            return loss(t, self.centre)

    own = Own()
    return lambda t: own.read(t), onto(own)


def with_its_own_derivative(loss):
    if loss is hosted:
        return closure(loss)
    inner = jax.custom_jvp(lambda t: loss(t, CENTRE))
    inner.defjvp(lambda values, steps: (inner(*values), steps[0]))
    return lambda t: inner(t), set_global


WAYS = {
    "a global": lambda loss: (lambda t: loss(t, CENTRE), set_global),
    "globals()": lambda loss: (lambda t: loss(t, globals()["CENTRE"]), set_global),
    "another module's variable": lambda loss: (lambda t: loss(t, MODULE.centre), onto(MODULE)),
    "another module's function": lambda loss: (lambda t: loss(t, MODULE.read()), onto(MODULE)),
    "a list": of_entries(lambda: [1.0]),
    "a deque": of_entries(lambda: collections.deque([1.0])),
    "an array changed in place": of_entries(lambda: np.ones(2)),
    "an array of objects": of_entries(lambda: np.array([1.0, None])),
    "a view of an array": view,
    "a dictionary": dictionary,
    "a closure": closure,
    "a mutable default": default,
    "a mutable default by name": default_by_name,
    "a default that is replaced": default_replaced,
    "a partial": partial,
    "an attribute of a base class": class_attribute,
    "a class method": class_method,
    "a static method": static_method,
    "a method": method,
    "slots": slots,
    "a property": through_a_property,
    "a data class": data_class,
    "helpers of nested functions": helpers_inside,
    "a decorator": decorated,
    "a context variable": context,
    "a remembered helper": remembered_helper,
    "a compiled helper": compiled_helper,
    "a compiled method": compiled_method,
    "a derivative of its own": with_its_own_derivative,
}


def run_by_run(way, loss, found):
    """What a factor is found to be in four runs, between which the data change to other ones and back."""
    function, change = WAYS[way](loss)
    change(1.0)
    factor, runs = ep.Density(function, ep.Variable("t", ep.Normal(0.0, 100.0)), name="d"), []
    for centre in (1.0, 8.0, 8.0, 1.0):
        change(centre)
        runs.append(found(factor))
    return runs


@pytest.mark.parametrize("way", WAYS)
def test_compiled_functions_have_the_data_of_their_run(way):
    programs = run_by_run(way, traced, lambda factor: as_now(factor).traced)
    assert [float(each(0.5)) for each in programs] == pytest.approx([-12.5, -2812.5, -2812.5, -12.5])
    first, other, same, last = (each.digest() for each in programs)
    assert first == last != other == same


@pytest.mark.parametrize("way", WAYS)
def test_what_is_learned_of_a_function_on_the_host_belongs_to_its_data(way):
    functions = Functions()
    first, other, same, last = run_by_run(way, hosted, lambda factor: functions.signature(as_now(factor), 1.0, CAME))
    assert first == last != other == same


def counting(hold):
    """A function that does something to an object in each call."""

    def make():
        held, do = hold()

        def function(t):
            do(held, float(t))
            return -(float(t) ** 2)

        return function

    return make


def counting_itself():
    def function(t):
        function.calls = getattr(function, "calls", 0) + 1
        return -(float(t) ** 2)

    return function


def counting_in_a_closure():
    calls = 0

    def function(t):
        nonlocal calls
        calls += 1
        return -(float(t) ** 2)

    return function


def counting_in_its_class():
    class Own:
        calls = 0

        def __call__(self, t):
            Own.calls += 1
            return -(float(t) ** 2)

    return Own()


def remembering_method():
    class Own:
        @functools.cache  # noqa: B019
        def value(self, t):
            return -(t**2)

        def __call__(self, t):
            return self.value(float(t))

    return Own()


def keeping_five(held, t):
    held[t] = t
    if len(held) > 5:
        held.popitem(last=False)


KEPT = {
    "a list": counting(lambda: ([], list.append)),
    "a list of pairs": counting(lambda: ([], lambda held, t: held.append((t, np.array([t]))))),
    "a memo": counting(lambda: ({}, lambda held, t: held.setdefault(t, -(t**2)))),
    "a memo of five": counting(lambda: (collections.OrderedDict(), keeping_five)),
    "a set": counting(lambda: (set(), set.add)),
    "a deque": counting(lambda: (collections.deque(maxlen=5), collections.deque.append)),
    "a counter": counting(lambda: (collections.Counter(), lambda held, t: held.update(calls=1))),
    "an array": counting(lambda: (np.zeros(3), np.ndarray.fill)),
    "an attribute": counting(lambda: (types.SimpleNamespace(), lambda held, t: setattr(held, "last", t))),
    "an iterator": counting(lambda: (itertools.count(), lambda held, t: next(held))),
    "a generator of numbers": counting(lambda: (np.random.default_rng(0), lambda held, t: held.normal())),
    "itself": counting_itself,
    "a closure": counting_in_a_closure,
    "its class": counting_in_its_class,
    "functools.cache": lambda: functools.cache(lambda t: -(float(t) ** 2)),
    "a method with functools.cache": remembering_method,
}


@pytest.mark.parametrize("kept", KEPT)
def test_counters_and_memos_are_no_data(kept):
    functions, rng = Functions(), np.random.default_rng(1)
    factor = as_now(ep.Density(KEPT[kept](), ep.Variable("t", ep.Normal(0.0, 100.0)), name="d"))
    found = set()
    for _ in range(3):
        found.add(functions.signature(factor, 1.0, CAME))
        for _ in range(2):
            functions.around(factor, lambda: evaluated(factor, [rng.normal(size=20)]))
            found.add(functions.signature(factor, 1.0, looked=True))
    assert len(found) == 1


def test_a_default_of_jax_that_changes_is_read_again():
    values = {"centre": jnp.array(1.0)}
    factor = ep.Density(lambda t: traced(t, values["centre"]), ep.Variable("t", ep.Normal(0.0, 100.0)), name="d")
    before = as_now(factor).traced
    values["centre"] = jnp.array(8.0)
    assert [float(each(0.5)) for each in (before, as_now(factor).traced)] == pytest.approx([-12.5, -2812.5])
