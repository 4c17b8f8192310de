"""Beliefs of a run beside draws that are weighted by the exact density of the model."""

from collections import Counter
from collections.abc import Iterator
from math import lgamma
from typing import Any, NamedTuple

import jax
import numpy as np

from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.gaussian import Dot
from meanmap.ep.inference.block import Beliefs, Block, NotMeasured, Sent
from meanmap.ep.inference.exact import Exact, evaluable
from meanmap.ep.sweeps.plan import Plan, State, fetched
from meanmap.ep.variables import Variable
from meanmap.ep.weighted_draws import Weighted, apart
from meanmap.families import Beta, Gamma, Normal

__all__ = ["Single", "all_single", "met_once", "singles", "weighted_notes"]

# The least and the most draws, and evaluations of factors between these; of more members there are no draws.
_DRAWS, _EVALUATIONS, _MEMBERS = (100, 1000), 200_000, 5000
# Half of the draws are Student variables with these degrees of freedom, which reach the tails.
_NU = 5.0
# Standard deviations that differ by this share, and by three standard errors, are worth a note. Draws that are worth
# fewer equally weighted ones than this say nothing.
_APART, _WORTH = 0.1, 50.0
# Of at most _FEW numbers draws from a proposal that is too narrow are moved and widened, in at most this many rounds,
# until they are worth this share of their number: of a hundred draws, moves for the sake of more would follow chance.
_FEW, _ROUNDS, _ENOUGH = 10, 4, 0.3
# Log densities so large that they are rounded by this or more say nothing.
_ROUNDED = 0.01
# Draws of a number are spread as its belief where their standard deviations would be smaller than this share of it.
_NARROW = 0.5
# A note names at most this many unknowns.
_NAMED = 5
# At most this many numbers are exchanged to find other modes, which are at least this far away, in standard deviations;
# one is worth a note from this share of the mass, and where the log density between both is lower by this.
_EXCHANGED, _AWAY, _SHARE, _DIP = 6, 6.0, 0.01, 2.0


class Single(NamedTuple):
    """A function of one unknown number, by position, and a Gamma or Beta that it says all about: the number itself, or
    what the function gives.
    """

    at: int
    position: int
    about: int


def singles(factors: tuple[Factor, ...]) -> list[Single]:
    """Where a number is the only unknown of a function and in no other row, or given by one and met by nothing else."""
    met, found = _meetings(factors), []
    names = Counter(a.name for factor in factors for a in factor.arguments if not a.known)
    for at, factor in enumerate(factors):
        if not isinstance(factor, BlackBoxFactor) or factor.random:
            continue
        inputs = factor.arguments[:-1] if factor.outputs else factor.arguments
        unknown = [position for position, argument in enumerate(inputs) if not argument.known]
        if len(unknown) != 1 or inputs[unknown[0]].variable.family not in (Normal, Gamma, Beta):
            continue
        number, last = inputs[unknown[0]], factor.arguments[-1]
        if _in_part(number) and (met[number.name] <= 1).all():
            found.append(Single(at, unknown[0], unknown[0]))
        if factor.outputs and _in_part(last) and names[last.name] == 1:
            found.append(Single(at, unknown[0], len(factor.arguments) - 1))
    return found


def all_single(factors: tuple[Factor, ...]) -> bool:
    """Whether all Gammas and Betas are `singles`."""
    found = {factors[each.at].arguments[each.about].name for each in singles(factors)}
    return all(a.name in found for factor in factors for a in factor.arguments if _in_part(a))


def _in_part(argument: Any) -> bool:
    """Whether a belief has not the standard deviation of what it stands for, but other moments."""
    return not argument.known and argument.variable.family in (Gamma, Beta)


def met_once(factors: tuple[Factor, ...]) -> bool:
    """Whether no unknown number is in two rows of factors but those that send the same message whatever comes in.

    The belief is then that of one integral.
    """
    return all((rows <= 1).all() for rows in _meetings(factors).values())


def _meetings(factors: tuple[Factor, ...]) -> dict[str, np.ndarray]:
    """In how many rows each number is, but those that send the same message whatever comes in."""
    met: dict[str, np.ndarray] = {}
    for factor in factors:
        for argument in (a for a in factor.arguments if not factor.constant and not a.known):
            rows = met.setdefault(argument.name, np.zeros(argument.variable.plate or 1, int))
            says = ~factor.silent
            number = says.sum() if argument.plate is None else says if argument.plate == factor.plate else 1
            np.add.at(rows, argument.index, number)
    return met


def weighted_notes(
    plan: Plan,
    state: State,
    variables: dict[str, Variable],
    factors: tuple[Factor, ...],
    messages: Sent,
    beliefs: Beliefs,
) -> tuple[str | None, str]:
    """Which standard deviations differ from those of weighted draws, and which other mode there is; or empty. The first
    is None if draws say nothing.

    Draws are from the joint Gaussian of priors, linear factors and what others last sent, half of them with heavier
    tails. Weights are exact but for factors that cannot be evaluated at numbers, which count as what they sent.
    """
    block = Block.of(variables, factors)
    asked = [at for at, factor in enumerate(factors) if evaluable(factor, factors, block)]
    members = sum(factors[at].plate or 1 for at in asked)
    known = all(any(factor is factors[at] for at in asked) for factor in block.curved)
    if not asked or not known or members > _MEMBERS or (block.has_loops() and not block.curved):
        return None, ""
    messages, beliefs = jax.tree.map(fetched, (messages, beliefs))
    try:
        proposal = _Proposal.of(block, messages, beliefs)
    except NotMeasured:
        return None, ""
    count = int(np.clip(_EVALUATIONS / members, *_DRAWS)) // 4 * 4
    exact = Exact(plan, state, block, factors, messages, beliefs, tuple(asked))
    noise, log_densities = _noise(count, proposal.size)
    judged = _weighted(proposal, exact, noise, log_densities)
    if not np.spacing(np.abs(judged.logs.max())) < _ROUNDED:
        return None, ""
    labels = _labels(block)
    elsewhere = _elsewhere(proposal, labels, exact, judged.draws, judged.logs, log_densities)
    near, rounds = proposal, 0
    while proposal.size <= _FEW and rounds < _ROUNDS and judged.effective < _ENOUGH:
        near, rounds = near.moved_to(judged), rounds + 1
        judged = _weighted(near, exact, noise, log_densities)
    alike = Weighted(judged.draws, -(noise**2).sum(1) / 2 - log_densities)
    return _apart(block, near, labels, beliefs, judged, alike), elsewhere


def _weighted(proposal: "_Proposal", exact: Exact, noise: np.ndarray, log_densities: np.ndarray) -> Weighted:
    """Draws of a proposal, and their log weights up to a constant."""
    free = proposal.middle[proposal.chosen] + noise @ proposal.root.T
    return Weighted(free, exact.at(proposal.places(free)) - log_densities)


class _Proposal(NamedTuple):
    """A joint Gaussian of the numbers that nothing defines, from which all follow.

    Attributes
    ----------
    middle : (numbers,) array
    chosen : array
        Which numbers are drawn.
    root : (drawn, drawn) array
        Of their covariance.
    spread : (numbers, drawn) array
    """

    middle: np.ndarray
    chosen: np.ndarray
    root: np.ndarray
    spread: Any

    @property
    def size(self) -> int:
        """The number of numbers that are drawn."""
        return len(self.chosen)

    def places(self, free: np.ndarray) -> np.ndarray:
        """All numbers, (draws, numbers), by those that are drawn."""
        return self.middle + (self.spread @ (free - self.middle[self.chosen]).T).T

    def away(self, free: np.ndarray) -> np.ndarray:
        """How far points are from the middle, in standard deviations."""
        return np.linalg.norm(np.linalg.solve(self.root, (free - self.middle[self.chosen]).T), axis=0)

    def moved_to(self, judged: Weighted) -> "_Proposal":
        """A proposal with the mean and covariance of weighted draws (Bugallo et al. 2017), and a part of its own
        covariance.
        """
        shares, free = judged.shares, judged.draws
        middle = shares @ free
        covariance = (free - middle).T @ (shares[:, None] * (free - middle))
        covariance += self.root @ self.root.T / (judged.effective * len(free))
        return self._replace(middle=self.places(middle[None])[0], root=np.linalg.cholesky(covariance))

    @classmethod
    def of(cls, block: Block, messages: Sent, beliefs: Beliefs) -> "_Proposal":
        """About the means of beliefs."""
        middle = np.concatenate([_moments(beliefs[name])[0] for name in block.first])
        if len(block.linear) == 1 and isinstance(block.linear[0], Dot) and len(block.first) == 2 and not block.curved:
            # The belief about w is the joint one; no sparse matrices are made.
            matrix, w, z = block.linear[0].arguments
            chosen = block.first[w.name] + np.arange(block.sizes[w.name])
            spread = np.zeros((block.total, len(chosen)))
            spread[chosen] = np.eye(len(chosen))
            spread[block.places(z, block.linear[0].plate)] = matrix.values
            precision = np.asarray(beliefs[w.name].precision)
        elif block.total > _MEMBERS:
            raise NotMeasured
        else:
            spread, precision, chosen = block.joint(messages, beliefs)
            precision = precision.toarray()
        if len(precision) > _DRAWS[1]:
            raise NotMeasured
        try:
            root = np.linalg.inv(np.linalg.cholesky(precision)).T
        except np.linalg.LinAlgError:
            raise NotMeasured from None
        # Improper messages may leave a joint Gaussian narrower than the beliefs, from which draws see one mode only.
        own = np.concatenate([_moments(beliefs[name])[1] for name in block.first])[chosen]
        narrow = np.sqrt((root**2).sum(1)) / own
        return cls(middle, chosen, np.where(narrow < _NARROW, 1 / narrow, 1.0)[:, None] * root, spread)


def _noise(count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Antithetic draws, half of them Normals and half Students, and the logs of their density up to a constant."""
    generator = np.random.default_rng(0)
    half = generator.normal(size=(count // 2, size))
    half[::2] *= np.sqrt(_NU / generator.chisquare(_NU, size=(len(half[::2]), 1)))
    noise = np.concatenate([half, -half])
    square = (noise**2).sum(1)
    student = lgamma((_NU + size) / 2) - lgamma(_NU / 2) - size / 2 * np.log(_NU / 2)
    return noise, np.logaddexp(-square / 2, student - (_NU + size) / 2 * np.log1p(square / _NU))


def _apart(
    block: Block,
    proposal: _Proposal,
    labels: list[tuple[str, str]],
    beliefs: Beliefs,
    judged: Weighted,
    alike: Weighted,
) -> str | None:
    """Which standard deviations differ from those of weighted draws, worst first, in words; `alike` are the same draws
    weighted as those of the Gaussian they are from. None if they are worth too little.
    """
    free, worth = judged.draws, judged.effective * len(judged.draws)
    if worth < _WORTH:
        return None
    # Chance deviations are nearly the same in both.
    found, same = (np.sqrt(each @ (free - each @ free) ** 2) for each in (judged.shares, alike.shares))
    own = np.concatenate([_moments(beliefs[name])[1] for name in block.first])[proposal.chosen]
    times = found / same * np.sqrt((proposal.root**2).sum(1)) / own
    return apart(times, worth, _APART, [labels[at][1] for at in proposal.chosen], _NAMED)


def _moments(belief: Any) -> tuple[np.ndarray, np.ndarray]:
    """All means and standard deviations, by NumPy: nothing is compiled for their number."""
    toward, precision = np.asarray(belief.precision_mean), np.asarray(belief.precision)
    if isinstance(belief, Normal):
        return np.ravel(toward / precision), np.ravel(precision**-0.5)
    covariance = np.linalg.inv(precision)
    mean = np.einsum("...ij,...j->...i", covariance, toward)
    return np.ravel(mean), np.ravel(np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1)))


def _labels(block: Block) -> list[tuple[str, str]]:
    """For each number of the block the name of its variable, and what it is called in a note."""
    found = []
    for name in block.first:
        variable = block.variables[name]
        shape = (*variable.shape, *([] if variable.dimension is None else [int(variable.dimension)]))
        found += [(name, f"{name!r} at {list(at)}" if at else repr(name)) for at in np.ndindex(*shape)]
    return found


def _elsewhere(
    proposal: _Proposal,
    labels: list[tuple[str, str]],
    exact: Exact,
    free: np.ndarray,
    logs: np.ndarray,
    log_densities: np.ndarray,
) -> str:
    """Which numbers have another mode where they are exchanged, and its share, in words; empty where none have.

    Looked at are numbers without a plate in functions that may have several modes.
    """
    met = exact.in_any_function()
    labelled = [labels[at] for at in proposal.chosen]
    numbers = [at for at, (name, _) in enumerate(labelled) if name in met]
    if not 2 <= len(numbers) <= _EXCHANGED:
        return ""
    orders = [_order(proposal.size, pairs) for pairs in _pairings(numbers) if pairs]
    middle = proposal.middle[proposal.chosen]
    far = [order for order in orders if proposal.away(middle[order]) > _AWAY]
    if not far or 2 * len(far) >= len(free):
        return ""
    # As many as draws, so that nothing is compiled for their number.
    there = np.stack([middle[order] for order in far])
    tried = np.resize(np.concatenate([[middle], there, (there + middle) / 2]), free.shape)
    here, *heights = exact.at(proposal.places(tried))[: 2 * len(far) + 1]
    at = int(np.argmax(heights[: len(far)]))
    if min(here, heights[at]) - heights[len(far) + at] < _DIP:
        return ""
    order = far[at]
    # Each mode has the draws that are closer to it: those from far away would measure the mass of the other one.
    beyond = np.where(proposal.away(free) < proposal.away(free[:, order]), 0.0, -np.inf)
    swapped = exact.at(proposal.places(free[:, order])) - log_densities
    masses = [float(np.logaddexp.reduce(each + beyond)) for each in (logs, swapped)]
    share = 1 / (1 + np.exp(masses[0] - masses[1]))
    if share < _SHARE:
        return ""
    alone, other = _mean(free, logs + beyond), _mean(free[:, order], swapped + beyond)
    if proposal.away((1 - share) * alone + share * other) < proposal.away(alone):
        return ""  # the belief has the mean of both, as one by a single integral does
    moved = ", ".join(labelled[at][1] for at in np.flatnonzero(order != np.arange(proposal.size)))
    return (
        f"the posterior has another mode, with {moved} exchanged and {share:.2g} of the mass of both: beliefs and log "
        "evidence are those of one. Priors that distinguish them leave a single mode"
    )


def _mean(draws: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Of weighted draws."""
    return np.exp(logs - np.logaddexp.reduce(logs)) @ draws


def _pairings(numbers: list[int]) -> Iterator[list[tuple[int, int]]]:
    """All ways to exchange some of the numbers in pairs."""
    if len(numbers) < 2:
        yield []
        return
    first, *rest = numbers
    yield from _pairings(rest)
    for at, other in enumerate(rest):
        for pairs in _pairings(rest[:at] + rest[at + 1 :]):
            yield [(first, other), *pairs]


def _order(size: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    order = np.arange(size)
    for one, two in pairs:
        order[[one, two]] = two, one
    return order
