"""Notes on where weighted draws disagree with the marginals of shared effects."""

import numpy as np
from scipy.special import ndtri

from meanmap.ep.linear.mixtures import quantiles
from meanmap.ep.linear.shared import Shared
from meanmap.ep.weighted_draws import Weighted, apart

__all__ = ["disagreements"]

# Standard deviations by weighted draws that differ by this share, and ends of intervals of 90% that differ by this
# many of these, are worth a note where they also differ by three standard errors.
_APART, _END = 0.15, 0.25
# Marginals this many times as wide as the joint Gaussian are far from it, unless found by separate runs: draws from it,
# however weighted, do not reach their tails.
_FAR = 1.25


def disagreements(judged: Weighted, shared: Shared, names: tuple[str, ...]) -> list[str]:
    """Standard deviations and ends of intervals of effects that all rows share, given the first node, worst first.

    Those of draws of all effects reach further into tails, and are not judged by these.
    """
    if not len(names):
        return []
    shares, values = judged.shares, judged.draws @ shared.turn.T + shared.offsets[:, 0]
    effective = judged.effective * len(shares)
    first = shared.laws.at_node(0)
    sds, own, found, better = first.sds[:, 0], values.std(0), [], list(first.by_draws)
    # Weighted draws are compared with the same draws unweighted: chance deviations of a few draws are the same in both.
    with np.errstate(divide="ignore"):
        times = np.sqrt(shares @ (values - shares @ values) ** 2) / own * shared.plain / sds
    times[better] = 1
    if said := apart(times, effective, _APART, list(map(repr, names))):
        found.append(said)
    # The density of a Normal at its quantile of 5% is .103.
    least, alike = _END + 3 * np.sqrt(0.05 * 0.95 / effective) / 0.103, np.full(len(shares), 1 / len(shares))
    for side, p in (("lower", 0.05), ("upper", 0.95)):
        ends, plain = (
            np.array([float(quantiles(each, weights, np.array([p]))[0]) for each in values.T])
            for weights in (shares, alike)
        )
        moved = (ends - plain - (first.quantiles(p) - shared.middle - shared.plain * ndtri(p))) / sds
        moved[better] = 0
        listed = [f"{moved[at]:+.2g} for {names[at]!r}" for at in np.argsort(-np.abs(moved)) if abs(moved[at]) > least]
        if listed:
            found.append(f"weighted draws move {side} ends of intervals, in standard deviations: {', '.join(listed)}")
    beyond = sds / shared.plain > _FAR
    beyond[[*first.by_runs, *better]] = False
    far = np.flatnonzero(beyond)
    if len(far):
        upper = first.quantiles(0.95) + first.quantiles(0.05) > 2 * first.quantiles(0.5)
        listed = [f"{names[at]!r} (the {'upper' if upper[at] else 'lower'} tail is longer)" for at in far]
        found.append(f"the joint Gaussian is a poor approximation for {', '.join(listed)}")
    return found
