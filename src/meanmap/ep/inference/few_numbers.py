"""Models of a few unknown numbers that functions join: the prior and the likelihood at draws of these."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.compiling import compiled_values
from meanmap.core.types import Array
from meanmap.ep.calling import as_now
from meanmap.ep.calls import user_errors
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.conjugate import Bernoulli as Outcome
from meanmap.ep.inference.exact import LABELS
from meanmap.ep.lines import Nodes, log_message, project, to_nodes
from meanmap.ep.oracles.oracle import spread
from meanmap.ep.sweeps.plan import Plan, Port, fetched, gather, prepare, real, unpadded
from meanmap.ep.sweeps.sweep import compiled_answer
from meanmap.ep.variables import Selection, Variable
from meanmap.families import Bernoulli, Beta, Gamma, Normal

__all__ = ["FewNumbers"]

# The most numbers for which draws are reliable, and members of functions.
_NUMBERS, _MEMBERS = 6, 5000
# Draws that are looked at together.
_BLOCK = 128


class _Function(eqx.Module):
    """A function of numbers: its incoming messages, which members are real, and where its numbers are.

    Attributes
    ----------
    output : str or None
        The name of what it gives.
    seen : dict
        By position of an argument that another function gives, its name, and for each row the member.
    columns : dict
        By position of an argument the number that it is.
    labels : dict
        By position of a label, the log weights of its two values, and the number whose logit is added to the second.
    """

    factor: Any
    incoming: tuple[Any, ...]
    real: Any
    columns: dict[int, int]
    labels: dict[int, tuple[Any, int | None]]
    seen: dict[int, tuple[str, Any]]
    output: str | None


@dataclass(frozen=True)
class FewNumbers:
    """The density of all unknowns that are not summed over or given by functions.

    Attributes
    ----------
    factors : tuple
        As they are at the start of the run.
    priors : dict
        Of the numbers, by name, in the order of columns.
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
    functions: tuple[_Function, ...]
    names: tuple[dict[int, str], ...]
    plates: tuple[int | None, ...]
    constant: float

    @classmethod
    def of(
        cls, variables: dict[str, Variable], factors: tuple[Factor, ...], meetings: int = 0, hosts: bool = False
    ) -> "FewNumbers | None":
        """None if some factor is not a function of few unknown numbers, or one on the host where these are not allowed,
        too many rows meet, or two or more of the numbers meet in fewer rows than this.
        """
        functions = [factor for factor in factors if isinstance(factor, BlackBoxFactor)]
        makers = [factor for factor in functions if factor.outputs]
        outputs = {factor.arguments[-1].name for factor in makers}
        inner = outputs | {name for name, variable in variables.items() if variable.family is Bernoulli}
        drawn = [name for name in variables if name not in inner]
        if not functions or not 0 < len(drawn) <= _NUMBERS or not all(_is_number(variables[name]) for name in drawn):
            return None
        for name in inner:
            users = [each for each in (makers if name in outputs else functions) if name in _unknown(each)]
            if len(users) != 1 or (name in outputs and variables[name].prior is not None):
                return None
        links, said, places = {}, [], []
        for at, factor in enumerate(factors):
            names = _unknown(factor)
            if factor.whole:
                return None
            if isinstance(factor, Outcome) and len(names) == 2 and names[0] in drawn and names[1] not in links:
                links[names[1]] = drawn.index(names[0])
            elif factor.constant and len(names) == 1:
                said.append(at)
            elif _has_density(factor, hosts):
                places.append(at)
            else:
                return None
        if sum(factors[at].plate or 1 for at in places) > _MEMBERS:
            return None
        alike = {name: {at} for at, name in enumerate(drawn)} | {name: {at} for name, at in links.items()}
        alike |= {each.arguments[-1].name: _joined(each, alike) for each in makers}
        joining = [
            f for f in map(factors.__getitem__, places) if isinstance(f, BlackBoxFactor) or outputs & set(_unknown(f))
        ]
        if sum(each.plate or 1 for each in joining if len(_joined(each, alike)) > 1) < meetings:
            return None
        factors = tuple(as_now(each) if isinstance(each, BlackBoxFactor) else each for each in factors)
        if not all(_has_density(factors[at], hosts) for at in places):
            return None
        plan, told, constant = prepare(variables, factors), {name: [] for name in variables}, 0.0
        for at in said:
            message, left = _said(plan, factors[at], at)
            argument = next(each for each in factors[at].arguments if not each.known)
            if isinstance(argument, Selection):
                message = jax.tree.map(partial(_added, argument), message)
            elif argument.plate is None and factors[at].plate is not None:
                message = jax.tree.map(lambda leaf: np.asarray(leaf).sum(0), message)
            told[argument.name].append(message)
            constant += left
        places.sort(key=lambda at: not factors[at].outputs)
        read = [_function(plan, factors[at], at, drawn, told, links, outputs) for at in places]
        found = tuple(filter(None, read))
        if len(found) < len(read):
            return None
        return cls(
            factors,
            {name: variables[name].prior for name in drawn},
            tuple(_together(told[name], variables[name].flat(())) for name in drawn),
            tuple(each for each, _ in found),
            tuple(names for _, names in found),
            tuple(factors[at].plate for at in places),
            constant,
        )

    def points(self, coordinates: np.ndarray) -> dict[str, np.ndarray]:
        """The numbers at draws (draws, numbers) in the coordinates of all families."""
        with jax.enable_x64(True):
            found = [np.asarray(nodes.x) for nodes in _nodes(tuple(self.priors.values()), jnp.asarray(coordinates))]
        return dict(zip(self.priors, found, strict=True))

    def logs(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the prior density of the coordinates and of all else, and where a function returned no number.

        Draws are a multiple of `BLOCK`.
        """
        blocks = np.asarray(coordinates).reshape(-1, _BLOCK, len(self.priors))
        with jax.enable_x64(True), user_errors():
            found = _logs(tuple(self.priors.values()), self.told, self.functions, blocks)
        before, total, undefined = (np.asarray(each).ravel() for each in found)
        return before, total + self.constant, undefined

    def inside(self, coordinates: np.ndarray) -> dict[str, Any]:
        """Beliefs about labels and outputs, by draws from the posterior."""
        found = {}
        for function, labels, plate in zip(self.functions, self.names, self.plates, strict=True):
            if labels or function.output is not None:
                with jax.enable_x64(True), user_errors():
                    laws, out = _inside(tuple(self.priors.values()), function, jnp.asarray(coordinates))
                found |= {labels[at]: unpadded(_alone(law, plate), plate) for at, law in laws.items()}
                if function.output is not None:
                    found[function.output] = unpadded(_alone(out, plate), plate)
        return found


def _alone(law: Any, plate: int | None) -> Any:
    """Of a function without a plate, its one member."""
    return law if plate is not None else jax.tree.map(lambda leaf: leaf[0], law)


def _has_density(factor: Any, hosts: bool) -> bool:
    return factor.has_density or (hosts and isinstance(factor, BlackBoxFactor) and factor.host and not factor.random)


def _unknown(factor: Any) -> list[str]:
    """The names of its unknowns."""
    return [argument.name for argument in factor.arguments if not argument.known]


def _added(argument: Selection, leaf: Any) -> np.ndarray:
    """What rows say about members of a plate, added up."""
    total = np.zeros((*argument.variable.shape, *np.shape(leaf)[1:]))
    np.add.at(total, argument.index, leaf)
    return total


def _joined(function: Any, alike: dict[str, set[int]]) -> set[int]:
    """Which numbers meet in a function, or in its labels and in what other functions give to it."""
    return set().union(*(alike.get(name, set()) for name in _unknown(function)))


def _is_number(variable: Variable) -> bool:
    """Whether a variable is one number with a prior of a known family."""
    return variable.plate is None and variable.family in (Normal, Gamma, Beta) and variable.prior is not None


def _said(plan: Plan, factor: Factor, at: int) -> tuple[Any, float]:
    """What a factor says about its one unknown whatever comes in: its message, and the log of its constant."""
    incoming, position = [], 0
    for place, port in enumerate(plan.factors[at].arguments):
        if isinstance(port, Port):
            position, shape = place, plan.shapes[at]
            flat: Any = plan.flats[port.variable]
            given = plan.with_prior[port.variable]
            prior = plan.priors[port.variable] if given else type(flat).standard(shape)
            incoming.append(gather(prior, port, shape) if given else prior)
        else:
            incoming.append(port.values)
    with jax.enable_x64(True):
        answer = compiled_answer(plan.factors[at], tuple(incoming), 1.0, jax.random.key(0))
        message = jax.tree.map(fetched, answer.messages[position])
        both = jax.tree.map(lambda a, b: a + b, incoming[position], message)
        left = np.ravel(fetched(answer.log_normaliser - both.log_normaliser))[: factor.plate or 1]
    return unpadded(message, factor.plate), float(left.sum())


def _together(messages: list[Any], flat: Any) -> Any:
    """The product of messages to one number, those of plates included."""
    for message in messages:
        flat = jax.tree.map(lambda leaf, more: np.asarray(leaf + np.sum(more)), flat, message)
    return flat


def _function(
    plan: Plan,
    factor: Factor,
    at: int,
    drawn: list[str],
    told: dict[str, list[Any]],
    links: dict[str, int],
    outputs: set[str],
) -> tuple[_Function, dict[int, str]] | None:
    """A function with its incoming messages, and the names of its labels; None if an unknown is of another kind."""
    shape = plan.shapes[at] or (1,)
    columns, labels, names, incoming, seen = {}, {}, {}, [], {}
    for position, (argument, port) in enumerate(zip(factor.arguments, plan.factors[at].arguments, strict=True)):
        last = factor.outputs and position == len(factor.arguments) - 1
        if argument.known:
            incoming.append(port.values if plan.shapes[at] else np.asarray(port.values)[None])
            continue
        if argument.name in drawn:
            columns[position] = drawn.index(argument.name)
            incoming.append(np.zeros(shape))
            continue
        own = argument.variable
        if argument.name in outputs and not last:
            index = argument.index if isinstance(argument, Selection) else np.arange(own.plate or 1)
            if own.plate is not None and len(index) != (factor.plate or 1):
                return None
            seen[position] = argument.name, np.resize(index, shape)
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
    return _Function(bare, tuple(incoming), members, columns, labels, seen, output), names


def _nodes(priors: tuple[Any, ...], coordinates: Any) -> list[Nodes]:
    return [to_nodes(type(prior), coordinates[:, at], jnp.zeros(())) for at, prior in enumerate(priors)]


def _weighed(function: _Function, nodes: list[Nodes], given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """For each choice of labels the log factor of members at draws; what outputs take, and what is undefined.

    `given` is by name what other functions give, of their members at draws.
    """
    size, parts, undefined, images = function.real.shape[0], {}, False, None
    numbers = {position: nodes[column].x for position, column in function.columns.items()}
    count = len(nodes[0].x)
    incoming = spread(function.incoming, size)
    seen = {position: given[name][index] for position, (name, index) in function.seen.items()}
    for chosen in product((0, 1), repeat=len(function.labels)):
        told = {at: jnp.full(count, float(value)) for at, value in zip(function.labels, chosen, strict=True)}

        def one(came: tuple[Any, ...], own: dict[int, Any], told: dict[int, Any] = told) -> Any:
            return function.factor.weigh(numbers | told | own, came, jnp.asarray(1.0), jax.random.key(0))

        found, outputs, bad = jax.vmap(one)(incoming, seen)
        for value, (weights, column) in zip(chosen, function.labels.values(), strict=True):
            found = found + weights[:, value, None]
            if column is not None:
                found = found - jax.nn.softplus(-nodes[column].coordinate if value else nodes[column].coordinate)
        parts[chosen], undefined = found, undefined | bad
        images = next(iter(outputs.values()), None)
        if images is not None:
            # A flat message says nothing about the largest numbers either.
            flat = jnp.stack([leaf == 0 for leaf in jax.tree.leaves(incoming[-1])]).all(0)[:, None]
            parts[chosen] = jnp.where(flat & jnp.isnan(found) & jnp.isfinite(images.x), 0.0, found)
    return parts, images, undefined


@compiled_values
def _logs(priors: tuple[Any, ...], told: tuple[Any, ...], functions: tuple[_Function, ...], blocks: Array) -> Any:
    def one(coordinates: Array) -> tuple[Array, Array, Array]:
        nodes = _nodes(priors, coordinates)
        before, total = jnp.zeros(len(coordinates)), jnp.zeros(len(coordinates))
        undefined = jnp.zeros(len(coordinates), bool)
        for prior, message, own in zip(priors, told, nodes, strict=True):
            before += log_message(prior, own) + own.log_weight - prior._log_normaliser()
            total += log_message(message, own)
        given = {}
        for function in functions:
            parts, images, bad = _weighed(function, nodes, given)
            if images is not None:
                given[function.output] = images.x
            found = jax.nn.logsumexp(jnp.stack(list(parts.values())), 0) if len(parts) > 1 else parts[()]
            total += jnp.where(function.real[:, None], found, 0.0).sum(0)
            undefined |= (function.real[:, None] & bad).any(0)
        return before, total, undefined

    return jax.lax.map(one, blocks)


@compiled_values
def _inside(priors: tuple[Any, ...], function: _Function, coordinates: Array) -> Any:
    parts, images, _ = _weighed(function, _nodes(priors, coordinates), {})
    laws = {}
    share: Any = jax.nn.softmax(jnp.stack(list(parts.values())), 0) if function.labels else None
    for at, position in enumerate(function.labels):
        second = share[np.array([chosen[at] for chosen in parts], bool)].sum(0).mean(1)
        laws[position] = Bernoulli.from_natural(jnp.log(second) - jnp.log1p(-second))
    out = None
    if images is not None:
        kind = type(function.incoming[-1])
        turned = Nodes(images.coordinate.T, images.x.T, jnp.zeros(()))
        # Behind a barrier, as the compiler takes seconds to reduce so many zeros.
        out = project(kind, turned, jax.lax.optimization_barrier(jnp.zeros(turned.x.shape)))
    return laws, out
