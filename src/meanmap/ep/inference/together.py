"""Unknowns in factors that form loops: Gaussian ones compared with one joint belief, labels named."""

from typing import Any, NamedTuple

import numpy as np

from meanmap.core.language import with_and
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.precision import GaussianPrecision
from meanmap.ep.inference.block import Beliefs, Block, NotMeasured, diagonal, is_cyclic
from meanmap.ep.inference.ties import EVIDENCE, LESS
from meanmap.ep.variables import Variable
from meanmap.families import Bernoulli, Categorical, Dirichlet, MultivariateNormal, Normal

__all__ = ["LOOSE", "NARROW", "Loops", "labels_in_loops", "scales_in_loops", "together", "vectors_of_shares"]

# Separate beliefs narrower than this, over what the joint one says, are worth a note; with functions, whose curvature
# is only looked at in one place, narrower than that. Those that are wider than the last need no other look.
NARROW, _NARROW_CURVED, LOOSE = 0.9, 0.8, 0.97
# Laws that differ by less than this share of a standard deviation are the same.
_SAME = 1e-6


class Loops(NamedTuple):
    """What a joint belief says of separate ones in loops: notes, the least ratio of their standard deviations, and
    that ratio in words.
    """

    notes: tuple[str, ...] = ()
    least: float = 1.0
    told: str = ""


def together(
    variables: dict[str, Variable],
    factors: tuple[Factor, ...],
    messages: dict[str, tuple[Any, ...]],
    beliefs: Beliefs,
    converged: bool = True,
    measured: bool = False,
) -> Loops:
    """A note where separate beliefs are too narrow.

    Round loops, means of Gaussian messages are right and variances are too small. At convergence every other factor is
    the Gaussian that it last sent, so that priors, linear factors and these are one joint Gaussian, and its marginal
    variances follow by one factorisation. A function of several unknowns counts as linear, or its log as quadratic,
    about the beliefs. A run that did not converge is not measured; where beliefs and priors of some numbers are the
    same in it, as between the modes of a mixture, the note is that they need other priors.
    """
    block = Block.of(variables, factors)
    # A note on two unknowns of a function, where there is one, has been measured by its oracle.
    if not block.has_loops() or (block.curved and measured):
        return Loops()
    if not converged and block.curved and (alike := _alike(block.named, variables, beliefs)):
        return Loops((_exchangeable(alike, variables),))
    named = ", ".join(map(repr, block.named))
    where = "factors" if block.curved else "linear factors"
    apart = f"{named} have separate beliefs and meet in {where} that form loops: standard deviations"
    try:
        if not converged:
            raise NotMeasured
        joint = block.variances(messages, beliefs)
    except NotMeasured:
        return Loops((f"{apart} may be far too small, but by how much is not known, {EVIDENCE}. {_ADVICE}",))
    least, worst = np.inf, ""
    for name, (chosen, found) in joint.items():
        ratios = np.sqrt(_spread(beliefs[name])[chosen] / diagonal(found))
        if name in block.named and ratios.min() < least:
            at = "" if variables[name].shape == () else f" at [{chosen[np.argmin(ratios)]}]"
            least, worst = float(ratios.min()), f"{name!r}{at}"
    less = LESS if block.curved else ""
    told = (
        f"{apart} come out too small, about {least:.2g} of what they should be for {worst}{less}, {EVIDENCE}. {_ADVICE}"
    )
    return Loops((told,) if least < (_NARROW_CURVED if block.curved else NARROW) else (), least, told)


_ADVICE = (
    "Give them one belief: ep.Variable(name, ep.MultivariateNormal(mean, covariance)) of all effects, as w in "
    "ep.Dot(X, w, z) for sums and differences."
)


def labels_in_loops(factors: tuple[Factor, ...]) -> str:
    """A note where labels are joined in two ways, so that probabilities are approximate; else empty."""
    joining, first, nodes = [], {}, 0
    for factor in factors:
        unknown = [a for a in factor.arguments if not a.known and a.variable.family in (Bernoulli, Categorical)]
        if len(unknown) > 1:
            joining.append((factor, unknown))
            for argument in unknown:
                if argument.name not in first:
                    first[argument.name] = nodes
                    nodes += argument.variable.plate or 1
    starts, ends = [], []
    for factor, unknown in joining:
        members = nodes + np.arange(factor.plate or 1)
        for argument in unknown:
            starts.append(members)
            ends.append(np.broadcast_to(first[argument.name] + argument.index, members.shape))
        nodes += len(members)
    if not joining or not is_cyclic(np.concatenate(starts), np.concatenate(ends), nodes):
        return ""
    names = with_and([factor.name for factor, _ in joining])
    return (
        f"{names}: labels are joined in loops, and messages in loops count evidence more than once. "
        "Probabilities and the log evidence are approximate, often too near 0 or 1 where labels depend on each other "
        "strongly. Of tables mm.bp.CliqueTree computes exact ones where loops are not too many"
    )


def scales_in_loops(factors: tuple[Factor, ...]) -> str:
    """A note where groups share an unknown mean and precision, which have separate beliefs; else empty."""
    for factor in factors:
        if not isinstance(factor, GaussianPrecision) or factor.plate is None:
            continue
        mean, x, precision = factor.arguments
        if mean.known or x.known or any(len(np.unique(a.index)) == factor.plate for a in (mean, precision)):
            continue
        return (
            f"{mean.name!r} and {precision.name!r} have separate beliefs and meet in {factor.name} for each "
            f"{x.name!r}: the standard deviation of {precision.name!r} comes out too small, in simulations .55 to 1 "
            "times what it should be, and the log evidence was off by up to .2. mm.fit integrates over both"
        )
    return ""


def vectors_of_shares(factors: tuple[Factor, ...]) -> str:
    """A note where several rows of a function meet one vector of shares, whose belief has one size for all of them;
    else empty.
    """
    for factor in factors:
        if isinstance(factor, BlackBoxFactor) and factor.plate is not None and factor.plate > 1:
            for argument in factor.arguments:
                if not argument.known and argument.variable.family is Dirichlet and argument.plate is None:
                    return (
                        f"{argument.name!r} is a Dirichlet that rows of {factor.name} meet, and one number says how "
                        "sure it is of all shares: in simulations standard deviations came out .67 to 1.23 times what "
                        "they should be, means off by up to .13 of these, and the log evidence by .25"
                    )
    return ""


def _alike(named: list[str], variables: dict[str, Variable], beliefs: Beliefs) -> list[str]:
    """The first numbers of which several have the same prior and the same belief."""
    groups: list[list[str]] = []
    for name in named:
        if (
            variables[name].shape != ()
            or not isinstance(variables[name].prior, Normal)
            or not beliefs[name].is_proper()
        ):
            continue
        for group in groups:
            laws = [(variables[each].prior, beliefs[each]) for each in (name, group[0])]
            means, sds = ([[float(getattr(law, of)()) for law in pair] for pair in laws] for of in ("mean", "sd"))
            if np.allclose(sds[0], sds[1], rtol=_SAME) and np.allclose(
                means[0], means[1], rtol=0, atol=_SAME * min(sds[0])
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return next((group for group in groups if len(group) > 1), [])


def _exchangeable(alike: list[str], variables: dict[str, Variable]) -> str:
    """What to do about numbers that come out the same."""
    prior: Any = variables[alike[0]].prior
    mean, sd = float(prior.mean()), float(prior.sd())
    other = " and ".join(f"ep.Normal({mean + sign * sd / 2:.3g}, {sd**2:.3g})" for sign in (-1, 1))
    return (
        f"{', '.join(map(repr, alike))} have the same prior and the same belief: if they are exchangeable, like the "
        "components of a mixture, the posterior has several modes, and this belief is at none. Give them priors that "
        f"distinguish them, such as with means a standard deviation apart: {other}"
    )


def _spread(belief: Normal | MultivariateNormal) -> np.ndarray:
    """The variances of a belief."""
    if isinstance(belief, Normal):
        return np.atleast_1d(np.asarray(belief.var()))
    return np.diagonal(np.asarray(belief.cov()))
