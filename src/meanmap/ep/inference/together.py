"""Gaussian unknowns in factors that form cycles: their separate beliefs compared with one joint belief."""

from typing import Any

import numpy as np

from meanmap.ep.factor import Factor
from meanmap.ep.inference.block import Beliefs, Block, NotMeasured, diagonal
from meanmap.ep.variables import Variable
from meanmap.families import MultivariateNormal, Normal

__all__ = ["together"]

# Separate beliefs narrower than this, over what the joint one says, are worth a note; with functions, whose curvature
# is only looked at in one place, narrower than that.
_NARROW, _NARROW_CURVED = 0.9, 0.8


def together(
    variables: dict[str, Variable],
    factors: tuple[Factor, ...],
    messages: dict[str, tuple[Any, ...]],
    beliefs: Beliefs,
    converged: bool = True,
    measured: bool = False,
) -> tuple[str, ...]:
    """A note where separate beliefs are too narrow.

    Round loops, means of Gaussian messages are right and variances are too small. At convergence every other factor is
    the Gaussian that it last sent, so that priors, linear factors and these are one joint Gaussian, and its marginal
    variances follow by one factorisation. A function of several unknowns counts as linear, or its log as quadratic,
    about the beliefs. A run that did not converge is not measured.
    """
    block = Block.of(variables, factors)
    # A note on two unknowns of a function, where there is one, has been measured by its oracle.
    if not block.has_loops() or (block.curved and measured):
        return ()
    named = ", ".join(map(repr, block.named))
    where = "factors" if block.curved else "linear factors"
    apart = f"{named} have separate beliefs and meet in {where} round loops: standard deviations"
    try:
        if not converged:
            raise NotMeasured
        joint = block.variances(messages, beliefs)
    except NotMeasured:
        return (f"{apart} may be far too small, and how much was not measured. {_ADVICE}",)
    least, worst = np.inf, ""
    for name, (chosen, found) in joint.items():
        ratios = np.sqrt(_spread(beliefs[name])[chosen] / diagonal(found))
        if name in block.named and ratios.min() < least:
            at = "" if variables[name].shape == () else f" at [{chosen[np.argmin(ratios)]}]"
            least, worst = float(ratios.min()), f"{name!r}{at}"
    told = f"{apart} come out too small, about {least:.2g} of what they should be for {worst}. {_ADVICE}"
    return (told,) if least < (_NARROW_CURVED if block.curved else _NARROW) else ()


_ADVICE = (
    "Give them one belief: ep.Variable(name, ep.MultivariateNormal(mean, covariance)) of all effects, as w in "
    "ep.Dot(X, w, z) for sums and differences."
)


def _spread(belief: Normal | MultivariateNormal) -> np.ndarray:
    """The variances of a belief."""
    if isinstance(belief, Normal):
        return np.atleast_1d(np.asarray(belief.var()))
    return np.diagonal(np.asarray(belief.cov()))
