"""Beliefs beside draws of any family that go from the priors to the posterior."""

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.points import bucket, pad
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.conjugate import Bernoulli as Outcome
from meanmap.ep.inference.block import Beliefs, Sent
from meanmap.ep.inference.exact import LABELS, weighed
from meanmap.ep.lines import as_nodes, log_message, to_nodes
from meanmap.ep.sweeps.plan import Plan, State, fetched
from meanmap.ep.sweeps.sweep import compiled_cavities
from meanmap.ep.variables import Selection, Variable
from meanmap.families import Bernoulli, Normal

__all__ = ["by_draws"]

# Each of two runs has so many draws, and this many moves at each temperature. Of more numbers, or of more members
# of functions, there are no draws.
_DRAWS, _MOVES, _NUMBERS, _MEMBERS = 1024, 6, 6, 1000
# Half of the draws are worth as much as all at the next temperature; after so many the run gives up.
_WORTH, _STAGES = 0.5, 60
# Mass so many standard deviations from the mean of a belief is elsewhere. A larger share than this in both runs is
# worth a note, and so are standard deviations that differ by this factor in both.
_FAR, _SHARE, _TIMES = 4.0, 0.02, 1.5


def by_draws(
    plan: Plan,
    state: State,
    variables: dict[str, Variable],
    factors: tuple[Factor, ...],
    messages: Sent,
    beliefs: Beliefs,
) -> tuple[str, str]:
    """What draws say of standard deviations that are far off, and of other modes, in words; or empty.

    Draws of the priors are weighted, repeated and moved (Del Moral et al. 2006) as the other factors come in by powers
    that rise to one. They are of any family of numbers. Looked at are models of functions with few unknown numbers,
    some of them not Normal: for the others there are draws from their joint Gaussian.
    """
    with jax.enable_x64(True):
        model = _Model.of(plan, state, variables, factors, messages)
        runs = [] if model is None else [_drawn(model, seed) for seed in range(2)]
    if model is None or not all(runs):
        return "", ""
    wide, share, listed = False, 0.0, []
    for name in model.names:
        mean, sd = float(beliefs[name].mean()), float(beliefs[name].sd())
        times = [float(draws[name].std()) / sd for draws in runs]
        away = np.abs(np.stack([draws[name] for draws in runs]) - mean) / sd
        beyond, beside = (away > _FAR).mean(1), ((away > _FAR / 2) & (away <= _FAR)).mean(1)
        # A single broad mode has more mass nearer than far away.
        if (beyond > _SHARE).all() and (beyond > beside).all():
            share = max(share, float(beyond.mean()))
        wide = wide or min(times) > _TIMES or max(times) < 1 / _TIMES
        every = np.concatenate([draws[name] for draws in runs])
        listed.append(f"{name!r} {every.mean():.3g} ± {every.std():.2g}")
    found = f"means and standard deviations by {2 * _DRAWS:,} draws from the posterior: {', '.join(listed)}"
    if share:
        return "", (
            f"roughly {share:.0%} of the posterior lies at another mode: beliefs and log evidence are those of one. "
            f"For both, {found}. Priors that distinguish the components of a mixture leave a single mode"
        )
    return (found if wide else ""), ""


class _Function(NamedTuple):
    """A function of unknowns that are drawn: its place among the factors, its labels with their logits, (members, 1),
    and names of probabilities whose logits are added to these.
    """

    at: int
    incoming: tuple[Any, ...]
    labels: dict[int, tuple[np.ndarray, str | None]]


@dataclass(frozen=True)
class _Model:
    """The prior and the likelihood at draws of all unknowns that are not summed over or given by functions."""

    plan: Plan
    factors: tuple[Factor, ...]
    priors: dict[str, Any]
    functions: tuple[_Function, ...]
    told: tuple[tuple[str, Any], ...]

    @classmethod
    def of(
        cls, plan: Plan, state: State, variables: dict[str, Variable], factors: tuple[Factor, ...], messages: Sent
    ) -> "_Model | None":
        """None if some factor is not a function of few unknown numbers."""
        functions = [at for at, factor in enumerate(factors) if isinstance(factor, BlackBoxFactor)]
        outputs = {factors[at].arguments[-1].name for at in functions if getattr(factors[at], "outputs", 0)}
        labels = {name for name, variable in variables.items() if variable.family is Bernoulli}
        drawn = {name: v for name, v in variables.items() if name not in labels | outputs}
        other = any(variable.family is not Normal for variable in drawn.values())
        if not (functions and other and all(map(_is_number, drawn.values())) and len(drawn) <= _NUMBERS):
            return None
        told, links = [], {}
        for factor in factors:
            unknown = [a for a in factor.arguments if not a.known]
            if isinstance(factor, BlackBoxFactor):
                if factor.host or factor.random:
                    return None
            elif isinstance(factor, Outcome) and len(unknown) == 2 and not isinstance(unknown[1], Selection):
                links[unknown[1].name] = unknown[0].name, messages[factor.name][1]
            elif not (factor.constant and len(unknown) == 1):
                return None
            elif unknown[0].name in drawn:
                told += [
                    (a.name, m) for a, m in zip(factor.arguments, messages[factor.name], strict=True) if not a.known
                ]
        if sum(factors[at].plate or 1 for at in functions) > _MEMBERS:
            return None
        read = [_function(plan, state, factors, at, set(drawn), links) for at in functions]
        if not all(read) or len({name for name in labels | outputs if _users(factors, name) > 1}):
            return None
        priors = {name: jax.tree.map(np.asarray, variable.prior) for name, variable in drawn.items()}
        return cls(plan, factors, priors, tuple(filter(None, read)), tuple(told))

    @property
    def names(self) -> list[str]:
        """Of the unknowns that are drawn, in the order of columns."""
        return list(self.priors)

    def points(self, coordinates: np.ndarray) -> dict[str, Any]:
        """The nodes of draws in the coordinates of all families."""
        return {
            name: to_nodes(type(prior), jnp.asarray(coordinates[:, at]), jnp.zeros(()))
            for at, (name, prior) in enumerate(self.priors.items())
        }

    def logs(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logs of the prior density of the coordinates, and of all else, up to constants."""
        nodes = self.points(coordinates)
        before = sum(log_message(prior, nodes[name]) + nodes[name].log_weight for name, prior in self.priors.items())
        total: Any = np.zeros(len(coordinates))
        for name, message in self.told:
            each = log_message(jax.tree.map(lambda leaf: jnp.ravel(leaf)[:, None], message), nodes[name])
            total = total + np.asarray(each).sum(0)
        for function in self.functions:
            total = total + self._evaluated(function, nodes)
        return np.asarray(before), np.where(np.isnan(total), -np.inf, total)

    def _evaluated(self, function: _Function, nodes: dict[str, Any]) -> np.ndarray:
        factor: Any = self.factors[function.at]
        size, values = (self.plan.shapes[function.at] or (1,))[0], {}
        number = len(next(iter(nodes.values())).x)
        count = bucket(number)
        for position, argument in enumerate(factor.arguments):
            if not argument.known and argument.name in nodes:
                values[position] = np.tile(pad(np.asarray(nodes[argument.name].x), count), (size, 1))
        parts = []
        for chosen in product((0.0, 1.0), repeat=len(function.labels)):
            told = {at: np.full((size, count), value) for at, value in zip(function.labels, chosen, strict=True)}
            found = np.asarray(weighed(self.plan.factors[function.at], function.incoming, values | told))
            found = found[:, :number]
            for value, (logit, name) in zip(chosen, function.labels.values(), strict=True):
                logit = logit if name is None else logit + np.asarray(nodes[name].coordinate)
                found = found - np.logaddexp(0, -logit if value else logit)
            parts.append(found[: factor.plate or 1])
        return np.logaddexp.reduce(parts, axis=0).sum(0)


def _users(factors: tuple[Factor, ...], name: str) -> int:
    """The number of functions that meet an unknown."""
    functions = (factor for factor in factors if isinstance(factor, BlackBoxFactor))
    return sum(any(a.name == name for a in factor.arguments if not a.known) for factor in functions)


def _is_number(variable: Variable) -> bool:
    """Whether a variable is one number with a proper prior."""
    scalar = variable.plate is None and variable.family.is_scalar() and variable.family.states is None
    return scalar and variable.prior is not None and bool(np.all(fetched(variable.prior.is_proper())))


def _function(
    plan: Plan, state: State, factors: tuple[Factor, ...], at: int, drawn: set[str], links: dict[str, tuple[str, Any]]
) -> _Function | None:
    """A function with its incoming messages; None if an unknown is neither drawn, nor its output, nor a label."""
    factor: Any = factors[at]
    incoming = compiled_cavities(plan, state, at, 1.0)[0]
    alone, labels = not plan.shapes[at], {}
    incoming = jax.tree.map(lambda leaf: fetched(leaf)[None] if alone else fetched(leaf), incoming)
    for position, argument in enumerate(factor.arguments):
        last = factor.outputs and position == len(factor.arguments) - 1
        if argument.known or argument.name in drawn:
            if last:
                return None
            continue
        own = argument.variable
        if isinstance(argument, Selection) or own.plate != factor.plate or (last and own.prior is not None):
            return None
        if own.family is Bernoulli and not last:
            logit, name = np.asarray(incoming[position].logit)[:, None], None
            if argument.name in links:
                name, sent = links[argument.name]
                sent = np.ravel(fetched(sent.logit))[:, None]
                logit = logit - pad(np.broadcast_to(sent, (factor.plate or 1, 1)), len(logit))
            labels[position] = logit, name
        elif not last or argument.name in links:
            return None
    return None if len(labels) > LABELS else _Function(at, incoming, labels)


def _drawn(model: _Model, seed: int) -> dict[str, np.ndarray]:
    """Draws from the posterior by name; empty where they did not get there."""
    generator = np.random.default_rng(seed)
    columns = []
    for at, prior in enumerate(model.priors.values()):
        x = jnp.asarray(prior.sample(_DRAWS, int(generator.integers(2**31)) + at))
        columns.append(np.asarray(as_nodes(type(prior), x).coordinate, float))
    here, power = np.stack(columns, 1), 0.0
    before, rest = model.logs(here)
    for _ in range(_STAGES):
        if not np.isfinite(rest).any():
            return {}
        step = _next(rest, power)
        weights = np.exp(step * (rest - rest.max()))
        chosen = np.searchsorted(
            np.cumsum(weights) / weights.sum(), (np.arange(_DRAWS) + generator.random()) / _DRAWS
        ).clip(max=_DRAWS - 1)
        here, before, rest, power = here[chosen], before[chosen], rest[chosen], power + step
        root = np.linalg.cholesky(np.cov(here.T).reshape(here.shape[1], -1) + 1e-12 * np.eye(here.shape[1]))
        for _ in range(_MOVES):
            # Steps of many sizes: those that are large for one mode are small for the way between two.
            scale = 2.4 / np.sqrt(here.shape[1]) * 10 ** -generator.uniform(0, 2, size=(_DRAWS, 1))
            there = here + scale * (generator.normal(size=here.shape) @ root.T)
            prior, likelihood = model.logs(there)
            rise = prior - before + power * (np.maximum(likelihood, -1e300) - rest)
            taken = np.log(generator.random(_DRAWS)) < rise
            here = np.where(taken[:, None], there, here)
            before, rest = np.where(taken, prior, before), np.where(taken, likelihood, rest)
        if power >= 1:
            return {name: np.asarray(nodes.x) for name, nodes in model.points(here).items()}
    return {}


def _next(rest: np.ndarray, power: float) -> float:
    """By how much the power rises: until draws are worth a share of what they are."""

    def worth(step: float) -> float:
        weights = np.exp(step * (rest - rest.max()))
        return weights.sum() ** 2 / (weights**2).sum() / len(rest)

    low, high = 0.0, 1.0 - power
    if worth(high) >= _WORTH:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if worth(middle) >= _WORTH else (low, middle)
    return max(low, 1e-12)
