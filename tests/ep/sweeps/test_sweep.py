"""What one factor sends in a sweep, by messages that are made up: whom it may ask, and what is taken back."""

from typing import Any

import jax
import numpy as np

from meanmap import ep
from meanmap.ep.factor import Answer, Factor
from meanmap.ep.sweeps.plan import State, beliefs, prepare
from meanmap.ep.sweeps.sweep import EVENTS, Settings, send

PLATE = 3


class Told(Factor):
    """A factor of two variables that says what it is told to say."""

    arguments: tuple[Any, ...]
    says: tuple[Any, ...]
    name: str = "told"
    approximate = True

    def answer(self, incoming, power, key):
        """The same, whatever comes in."""
        del incoming, power, key
        return Answer(self.says, np.zeros(PLATE))


def precisions(*values):
    return ep.Normal.from_natural(np.zeros(len(values)), np.array(values, float))


def sent(says, before, others):
    """Precisions of the messages of a factor to both variables, (2, members), and its events.

    It sent `before`, and another factor `others`; both variables have standard priors.
    """
    variables = {name: ep.Variable(name, ep.Normal(np.zeros(PLATE), 1.0)) for name in "ab"}
    factors = tuple(Told(tuple(variables.values()), message) for message in (says, others))
    plan, messages = prepare(variables, factors, length=int), (before, others)
    state = State(messages, beliefs(plan, messages))
    after, happened, _ = send(plan, state, 0, jax.random.key(0), Settings(1.0, 1.0, 1.0), "allow")
    events = dict(zip(EVENTS, np.asarray(happened.events).tolist(), strict=True))
    return np.stack([np.asarray(message.precision) for message in after.messages[0]]), events


def test_a_factor_needs_a_law_from_each_of_its_variables():
    """Of members 1 and 2 one variable sends no law each: both keep both of their messages."""
    before = precisions(1, 5, 1), precisions(1, 1, 5)
    others = precisions(0, -4, 0), precisions(0, 0, -4)
    found, events = sent((precisions(2, 2, 2), precisions(3, 3, 3)), before, others)
    np.testing.assert_array_equal(found, [[2, 5, 1], [3, 1, 5]])
    assert events["improper cavities"] == [False, True, True]
    assert events["improper beliefs"] == [False, False, False]


def test_a_belief_of_either_variable_that_would_cease_to_be_a_law_takes_both_messages_back():
    """Members 1 and 2 would each make the belief about one variable improper."""
    before = precisions(0, 0.1, 0.2), precisions(0, 0.3, 0.4)
    nothing = precisions(0, 0, 0), precisions(0, 0, 0)
    found, events = sent((precisions(2, -3, 2), precisions(3, 3, -3)), before, nothing)
    np.testing.assert_allclose(found, [[2, 0.1, 0.2], [3, 0.3, 0.4]], rtol=1e-6)
    assert events["improper beliefs"] == [False, True, True]
    assert events["improper cavities"] == [False, False, False]
