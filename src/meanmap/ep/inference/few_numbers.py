"""Models of a few unknown numbers that functions join: the prior and the likelihood at draws of these."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.ep.asking.chosen_oracle import default
from meanmap.ep.calling import as_now
from meanmap.ep.calls import user_errors
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.conjugate import Bernoulli as Outcome
from meanmap.ep.inference.block import computed_by
from meanmap.ep.inference.computed import as_function, in_order, is_linear
from meanmap.ep.inference.exact import LABELS
from meanmap.ep.inference.few_densities import Function, inside_at, logs_at, moved, nodes_at
from meanmap.ep.inference.told import told_by
from meanmap.ep.oracles.sampling import ImportanceSampling
from meanmap.ep.sweeps.plan import Plan, fetched, prepare, real, unpadded
from meanmap.ep.variables import Selection, Variable
from meanmap.families import Bernoulli, Beta, Gamma, MultivariateNormal, Normal

__all__ = ["FewNumbers"]

# The most numbers for which draws are reliable, and members of factors: 24,000 draws of 10,000 rows with unknown noise
# take 18 s of processor time, and messages of 5000 had not settled after 75.
_NUMBERS, _MEMBERS = 6, 20_000
# Draws that are looked at together, and the most numbers of draws and rows at once.
_BLOCK, _TOGETHER = 128, 20_000_000


@dataclass(frozen=True)
class FewNumbers:
    """The density of all unknowns that are not summed over or given by functions.

    Attributes
    ----------
    factors : tuple
        As they are at the start of the run.
    priors : dict
        Of the numbers and vectors, by name, in the order of columns.
    told : tuple
        What other factors say about each, as a message.
    functions : tuple
        Those that give what others see are first.
    names : tuple
        For each function, the names of its labels by position.
    constant : number
        What the messages leave out of the log density.
    """

    factors: tuple[Factor, ...]
    priors: dict[str, Any]
    told: tuple[Any, ...]
    functions: tuple[Function, ...]
    names: tuple[dict[int, str], ...]
    plates: tuple[int | None, ...]
    constant: float

    @property
    def sizes(self) -> list[int]:
        """The number of components of each variable."""
        return [prior.dimension * int(np.prod(prior.shape)) for prior in self.priors.values()]

    @property
    def numbers(self) -> list[str]:
        """The name of each number, in the order of columns."""
        named = [(name, size, prior.event_shape or prior.shape) for (name, prior), size in self._sized]
        return [f"{name}[{at}]" if several else name for name, size, several in named for at in range(size)]

    @property
    def _sized(self) -> Any:
        """Names and priors, each with the number of its components."""
        return zip(self.priors.items(), self.sizes, strict=True)

    def apart(self, columns: np.ndarray) -> dict[str, np.ndarray]:
        """What the last axis has of each number, by variable: one, or those of a vector."""
        parts = np.split(columns, np.cumsum(self.sizes)[:-1], axis=-1)
        named = zip(self.priors.items(), parts, strict=True)
        return {name: part if prior.event_shape else part[..., 0] for (name, prior), part in named}

    @classmethod
    def of(
        cls,
        variables: dict[str, Variable],
        factors: tuple[Factor, ...],
        meetings: int = 0,
        hosts: bool = False,
        most: int = _NUMBERS,
        plates: bool = False,
    ) -> "FewNumbers | None":
        """None if some factor is not a function of at most this many unknown numbers, or one on the host or of a plate
        where these are not allowed, too many rows meet, or two or more of the numbers meet in fewer rows than this.

        Numbers that linear maps join have a joint belief, and count as one; so they do not meet in these alone.
        """
        makers = [at for at, factor in enumerate(factors) if factor.outputs or is_linear(factor)]
        outputs = {computed_by(factors[at]).name for at in makers}
        inner = outputs | {name for name, variable in variables.items() if variable.family is Bernoulli}
        drawn = [name for name in variables if name not in inner]
        numbers = [(variables[name].dimension or 1) * (variables[name].plate or 1) for name in drawn]
        if not 0 < sum(numbers) <= most or not all(_is_drawn(variables[name], plates) for name in drawn):
            return None
        linear = {factor.name for factor in factors if is_linear(factor)}
        factors = tuple(map(as_function, factors))
        functions, ordered = [f for f in factors if isinstance(f, BlackBoxFactor)], in_order(factors, makers)
        if not functions or ordered is None or len(outputs) < len(makers):
            return None
        if any(variables[name].prior is not None for name in outputs):
            return None
        if any(sum(name in _unknown(each) for each in functions) != 1 for name in inner - outputs):
            return None
        links, said, places = {}, [], []
        for at, factor in enumerate(factors):
            names = _unknown(factor)
            if factor.whole:
                return None
            if isinstance(factor, Outcome) and len(names) == 2 and names[0] in drawn and names[1] not in links:
                if variables[names[0]].plate is not None:
                    return None
                links[names[1]] = drawn.index(names[0])
            elif factor.constant and len(names) == 1:
                said.append(at)
            elif _has_density(factor, hosts):
                places.append(at)
            else:
                return None
        if sum(factors[at].plate or 1 for at in places if factors[at].name not in linear) > _MEMBERS:
            return None
        met = {name: {(at, part) for part in range(variables[name].dimension or 1)} for at, name in enumerate(drawn)}
        # Members of a plate are told apart where they meet.
        met |= {name: {name} for name in drawn if variables[name].plate is not None}
        met |= {name: {(at, 0)} for name, at in links.items()}
        rows = 0
        for at in [*ordered, *(at for at in places if at not in ordered)]:
            each = factors[at]
            joined = {-1} if each.name in linear else _joined(each, met)
            met |= {computed_by(each).name: joined} if at in ordered else {}
            if len(joined) > 1 and (isinstance(each, BlackBoxFactor) or outputs & set(_unknown(each))):
                rows += _rows(each)
        if rows < max(meetings, 2 if linear else 0):
            return None
        factors = tuple(as_now(each) if isinstance(each, BlackBoxFactor) else each for each in factors)
        if not all(_has_density(factors[at], hosts) for at in places):
            return None
        plan = prepare(variables, factors)
        told, constant = told_by(plan, factors, said)
        places = [*ordered, *(at for at in places if at not in ordered)]
        read = [_function(plan, factors[at], at, drawn, told, links, outputs) for at in places]
        found = tuple(filter(None, read))
        if len(found) < len(read):
            return None
        return cls(
            factors,
            {name: variables[name].prior for name in drawn},
            tuple(_together(told[name], variables[name].flat(variables[name].shape)) for name in drawn),
            tuple(each for each, _ in found),
            tuple(names for _, names in found),
            tuple(factors[at].plate for at in places),
            constant,
        )

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        """The numbers at draws (draws, numbers) in the coordinates of all families."""
        with jax.enable_x64(True):
            found = [np.asarray(nodes.x) for nodes in nodes_at(tuple(self.priors.values()), jnp.asarray(coordinates))]
        return np.column_stack(found)

    def logs(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the prior density of the coordinates and of all else, and where a function returned no number.

        Draws are a multiple of `BLOCK`.
        """
        blocks = np.asarray(coordinates).reshape(-1, _BLOCK, sum(self.sizes))
        with jax.enable_x64(True), user_errors():
            found = logs_at(tuple(self.priors.values()), self.told, self.functions, blocks)
        before, total, undefined = (np.asarray(each).ravel() for each in found)
        return before, total + self.constant, undefined

    def moved(self, begun: tuple[Any, ...], moves: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, float]:
        """Chains after moves by Hamiltonian dynamics, as in `few_densities.moved`."""
        with jax.enable_x64(True), user_errors():
            found = moved(tuple(self.priors.values()), self.told, self.functions, begun, moves)
        chains, shares, length = map(np.asarray, found)
        return chains, shares, float(length)

    def inside(self, coordinates: np.ndarray) -> dict[str, Any]:
        """Beliefs about labels and outputs, by draws from the posterior; of many rows by fewer draws."""
        found = {}
        coordinates = coordinates[: max(_TOGETHER // max(plate or 1 for plate in self.plates), 1)]
        asked = [at for at, labels in enumerate(self.names) if labels or self.functions[at].output is not None]
        if not asked:
            return found
        with jax.enable_x64(True), user_errors():
            functions = tuple(self.functions[at] for at in asked)
            answers = inside_at(tuple(self.priors.values()), functions, jnp.asarray(coordinates))
        for at, (laws, out) in zip(asked, answers, strict=True):
            output, labels, plate = self.functions[at].output, self.names[at], self.plates[at]
            found |= {labels[position]: unpadded(_alone(law, plate), plate) for position, law in laws.items()}
            if output is not None:
                found[output] = unpadded(_alone(out, plate), plate)
        return found


def _alone(law: Any, plate: int | None) -> Any:
    """Of a function without a plate, its one member."""
    return law if plate is not None else jax.tree.map(lambda leaf: leaf[0], law)


def _has_density(factor: Any, hosts: bool) -> bool:
    return factor.has_density or (hosts and isinstance(factor, BlackBoxFactor) and factor.host and not factor.random)


def _unknown(factor: Any) -> list[str]:
    """The names of its unknowns."""
    return [argument.name for argument in factor.arguments if not argument.known]


def _joined(function: Any, met: dict[str, set[Any]]) -> set[Any]:
    """Which numbers meet in a function, or in its labels and in what other functions give to it: of plates, members."""
    names = _unknown(function)
    return {
        (each, names[:at].count(name)) if isinstance(each, str) else each
        for at, name in enumerate(names)
        for each in met.get(name, set())
    }


def _rows(factor: Any) -> int:
    """In how many rows the numbers of a factor meet; one counts twice if messages would come from draws of priors.

    Functions of vectors that JAX cannot trace are called less often by messages, whose draws move to where the mass is.
    """
    if not isinstance(factor, BlackBoxFactor) or not isinstance(default(factor), ImportanceSampling):
        return factor.plate or 1
    costly = factor.host and any(variable.dimension for variable in factor.integrated())
    return max(factor.plate or 1, 1 if costly else 2)


def _is_drawn(variable: Variable, plates: bool) -> bool:
    """Whether a variable is one number, vector, or where allowed plate of numbers, with a prior of a known family."""
    families = Normal, MultivariateNormal, Gamma, Beta
    alone = variable.plate is None or (plates and not variable.dimension)
    return alone and variable.family in families and variable.prior is not None


def _together(messages: list[Any], flat: Any) -> Any:
    """The product of messages to one number or vector."""
    for message in messages:
        flat = jax.tree.map(lambda leaf, more: np.asarray(leaf + more), flat, message)
    return flat


def _function(
    plan: Plan,
    factor: Factor,
    at: int,
    drawn: list[str],
    told: dict[str, list[Any]],
    links: dict[str, int],
    outputs: set[str],
) -> tuple[Function, dict[int, str]] | None:
    """A function with its incoming messages, and the names of its labels; None if an unknown is of another kind."""
    shape = plan.shapes[at] or (1,)
    columns, labels, names, incoming, seen = {}, {}, {}, [], {}
    for position, (argument, port) in enumerate(zip(factor.arguments, plan.factors[at].arguments, strict=True)):
        last = factor.outputs and position == len(factor.arguments) - 1
        if argument.known:
            incoming.append(port.values if plan.shapes[at] else np.asarray(port.values)[None])
            continue
        own, number = argument.variable, drawn.index(argument.name) if argument.name in drawn else None
        if number is not None and own.plate is None:
            columns[position] = number
            incoming.append(np.zeros(shape))
            continue
        if number is not None or (argument.name in outputs and not last):
            index = argument.index if isinstance(argument, Selection) else np.arange(own.plate or 1)
            if own.plate is not None and len(index) != (factor.plate or 1):
                return None
            seen[position] = argument.name if number is None else number, np.resize(index, shape)
            incoming.append(np.zeros(shape))
            continue
        if isinstance(argument, Selection) or own.plate != factor.plate:
            return None
        message = own.flat(shape)
        for more in told[own.name]:
            more = jax.tree.map(lambda leaf: np.atleast_1d(leaf), more)
            message = jax.tree.map(lambda leaf, new: leaf + np.resize(new, leaf.shape), message, more)
        if last:
            if own.family is Bernoulli:
                return None
            incoming.append(message)
            continue
        if factor.outputs or own.family is not Bernoulli:
            return None
        second = np.asarray(message.logit)
        weights = np.stack([np.zeros(shape), second], 1)
        if own.prior is not None:
            logit = np.resize(np.atleast_1d(own.prior.logit), shape)
            weights = weights + np.stack([-np.logaddexp(0, logit), -np.logaddexp(0, -logit)], 1)
        labels[position], names[position] = (weights, links.get(own.name)), own.name
        incoming.append(np.zeros(shape))
    if len(labels) > LABELS or bool(labels and seen) or not (columns or seen):
        return None
    bare = replaced(plan.factors[at], arguments=(), oracle=None)
    if not getattr(bare, "host", False):
        bare = replaced(bare, name="", own=None)
    members = np.asarray(fetched(real(shape, plan.sizes[at])))
    output = factor.arguments[-1].name if factor.outputs else None
    return Function(bare, tuple(incoming), members, columns, labels, seen, output), names
