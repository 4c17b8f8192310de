"""The density of a model at draws of its Gaussian unknowns, by its factors as they were given."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.compiling import compiled_values
from meanmap.core.points import bucket, pad
from meanmap.core.types import Array
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.gaussian import Dot
from meanmap.ep.factors.interval import Interval, log_difference
from meanmap.ep.factors.links import slopes_of
from meanmap.ep.factors.precision import GaussianPrecision
from meanmap.ep.inference.block import Beliefs, Block
from meanmap.ep.oracles.oracle import spread
from meanmap.ep.sweeps.plan import Plan, State, fetched
from meanmap.ep.sweeps.sweep import compiled_cavities
from meanmap.families import Bernoulli, MultivariateNormal, Normal

__all__ = ["LABELS", "Exact", "evaluable", "weighed"]

# Labels that are summed over, at most.
LABELS = 2


def evaluable(factor: Factor, factors: tuple[Factor, ...], block: Block) -> bool:
    """Whether a factor is a function of Gaussian unknowns, which can be evaluated at draws of them.

    Labels of two values, and what a function gives to observations, may be among its unknowns where nothing else says
    anything about them: they are summed over, or taken as the function gives them.
    """
    if isinstance(factor, Interval):
        return True
    if not isinstance(factor, BlackBoxFactor) or factor.host or factor.random:
        return False
    unknown = [a for a in factor.arguments if not a.known]
    outputs = unknown[-1:] if factor.outputs else []
    inner = [a for a in unknown if a.name not in block.first or (a in outputs and a.variable.prior is None)]
    labels = [a for a in inner if a.variable.family is Bernoulli]
    if len(inner) == len(unknown) or len(labels) > LABELS or len(inner) > len(labels) + len(outputs):
        return False
    if outputs and outputs[0] not in inner:
        return False
    names = {a.name for a in inner}
    others = [f for f in factors if f is not factor and names & {a.name for a in f.arguments if not a.known}]
    return all(f.constant for f in others) and all(a.plate == factor.plate for a in inner)


@dataclass(frozen=True, eq=False)
class Exact:
    """The log density of a model, up to a constant.

    Attributes
    ----------
    asked : tuple of int
        The factors that are evaluated; linear ones are, too, and all others count as what they sent last.
    """

    plan: Plan
    state: State
    block: Block
    factors: tuple[Factor, ...]
    messages: dict[str, tuple[Any, ...]]
    beliefs: Beliefs
    asked: tuple[int, ...]

    def at(self, places: np.ndarray) -> np.ndarray:
        """At draws (draws, numbers of the block)."""
        total = sum((self._prior(name, places) for name in self.block.first), np.zeros(len(places)))
        for at, factor in enumerate(self.factors):
            if at in self.asked:
                total = total + self._evaluated(at, places)
            elif self._given_by_functions(factor):
                continue  # what it says about outputs is in their functions
            elif any(factor is linear for linear in self.block.linear):
                total = total + self._noise(factor, places)
            else:
                total = total + self._sent(factor, places)
        return np.where(np.isnan(total), -np.inf, total)

    def in_any_function(self) -> set[str]:
        """Unknowns without a plate in functions of the user, which may have several modes."""
        functions = (f for f in map(self.factors.__getitem__, self.asked) if not isinstance(f, Interval))
        return {
            a.name
            for factor in functions
            if slopes_of(factor) is None
            for a in factor.arguments
            if not a.known and a.name in self.block.first and a.variable.plate is None
        }

    def _given_by_functions(self, factor: Factor) -> bool:
        """Whether all unknowns of a factor are outputs of functions that are evaluated."""
        functions = [each for at in self.asked if getattr(each := self.factors[at], "outputs", False)]
        outputs = {each.arguments[-1].name for each in functions}
        return all(a.known or a.name in outputs for a in factor.arguments)

    def _prior(self, name: str, places: np.ndarray) -> np.ndarray:
        variable = self.block.variables[name]
        if variable.prior is None:
            return np.zeros(len(places))
        first, size = self.block.first[name], self.block.sizes[name]
        return _log_normal(variable.prior, places[:, first : first + size])

    def _sent(self, factor: Factor, places: np.ndarray) -> np.ndarray:
        total = np.zeros(len(places))
        for argument, message in zip(factor.arguments, self.messages[factor.name], strict=True):
            if not argument.known and argument.name in self.block.first:
                total = total + _log_normal(message, self._values(argument, factor.plate, places))
        return total

    def _values(self, argument: Any, plate: int | None, places: np.ndarray) -> np.ndarray:
        """(draws, members) of numbers, and (draws, members × length) of vectors."""
        first, length = self.block.places(argument, plate), argument.variable.dimension or 1
        return places[:, (first[:, None] + np.arange(length)).ravel()]

    def _noise(self, factor: Any, places: np.ndarray) -> np.ndarray:
        """What is linear with noise; without noise nothing, as draws obey it."""
        if isinstance(factor, Dot):
            return np.zeros(len(places))
        if isinstance(factor, GaussianPrecision):
            mean, out, given = factor.arguments
            precision = np.asarray(self.beliefs[given.name].mean())
            precision = np.ravel(precision)[given.index]
            off = self._given(out, factor, places) - self._given(mean, factor, places)
        elif len(factor.arguments) > len(factor.weights) + 1:
            out, *terms = factor.arguments
            precision = np.atleast_1d(terms.pop().values)
            parts = [self._given(term, factor, places) for term in terms]
            off = self._given(out, factor, places) - sum(a * x for a, x in zip(factor.weights, parts, strict=True))
        else:
            return np.zeros(len(places))
        return -(precision * off**2 * np.ones(factor.plate or 1)).sum(1) / 2

    def _given(self, argument: Any, factor: Any, places: np.ndarray) -> Any:
        return np.atleast_1d(argument.values) if argument.known else self._values(argument, factor.plate, places)

    def _evaluated(self, at: int, places: np.ndarray) -> np.ndarray:
        factor: Any = self.factors[at]
        if isinstance(factor, Interval):
            z, low, high = factor.arguments
            return _log_inside(self._values(z, factor.plate, places), low.values, high.values, factor.noise).sum(1)
        slopes = slopes_of(factor)
        if slopes is not None:
            z, *given = factor.arguments
            return slopes(self._values(z, factor.plate, places), *(each.values for each in given))[0].sum(1)
        with jax.enable_x64(True):
            incoming = compiled_cavities(self.plan, self.state, at, 1.0)[0]
        alone = not self.plan.shapes[at]
        incoming = jax.tree.map(lambda leaf: fetched(leaf)[None] if alone else fetched(leaf), incoming)
        size, count, values = (self.plan.shapes[at] or (1,))[0], bucket(len(places)), {}
        labels = []
        for position, argument in enumerate(factor.arguments):
            if argument.known or (factor.outputs and argument is factor.arguments[-1]):
                continue
            if argument.name in self.block.first:
                own = self._values(argument, factor.plate, places)
                own = own.reshape(len(places), factor.plate or 1, -1).swapaxes(0, 1)
                own = own if argument.variable.dimension else own[..., 0]
                values[position] = pad(pad(own, size).swapaxes(0, 1), count).swapaxes(0, 1)
            elif argument.variable.family is Bernoulli:
                labels.append(position)
        parts = []
        for chosen in product((0.0, 1.0), repeat=len(labels)):
            told = {position: np.full((size, count), value) for position, value in zip(labels, chosen, strict=True)}
            with jax.enable_x64(True):
                found = np.asarray(weighed(self.plan.factors[at], incoming, values | told))
            for position, value in zip(labels, chosen, strict=True):
                logit = np.asarray(incoming[position].logit)[:, None]
                found = found - np.logaddexp(0, -logit if value else logit)
            parts.append(found[: factor.plate or 1, : len(places)])
        return np.logaddexp.reduce(parts, axis=0).sum(0)


@compiled_values
def weighed(factor: Any, incoming: tuple[Any, ...], values: dict[int, Array]) -> jax.Array:
    """The log factor of all members at their own points, (members, points)."""
    size = next(iter(values.values())).shape[0]

    def one(asked: tuple[tuple[Any, ...], dict[int, Array]]) -> jax.Array:
        came, own = asked
        return factor.weigh(own, came, jnp.asarray(1.0), jax.random.key(0))[0]

    return jax.vmap(one)((spread(incoming, size), values))


def _log_normal(law: Any, values: np.ndarray) -> np.ndarray:
    """Of draws (draws, numbers), up to a constant; the distribution may be improper."""
    toward, precision = (np.asarray(each) for each in (law.precision_mean, law.precision))
    if isinstance(law, Normal):
        count = values.shape[1]
        toward, precision = (np.broadcast_to(np.ravel(each), (count,)) for each in (toward, precision))
        return values @ toward - values**2 @ precision / 2
    assert isinstance(law, MultivariateNormal)
    length = precision.shape[-1]
    vectors = values.reshape(len(values), -1, length)
    quadratic = np.einsum(
        "smi,mij,smj->s", vectors, np.broadcast_to(precision, (vectors.shape[1], length, length)), vectors
    )
    return np.einsum("smi,mi->s", vectors, np.broadcast_to(toward, vectors.shape[1:])) - quadratic / 2


def _log_inside(z: np.ndarray, low: np.ndarray, high: np.ndarray, noise: float) -> np.ndarray:
    """log P(low < z + noise < high)."""
    if noise == 0:
        with np.errstate(divide="ignore"):
            return np.log(((z > low) & (z < high)).astype(float))
    return log_difference((low - z) / noise, (high - z) / noise)
