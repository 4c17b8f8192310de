"""The posterior of a few unknown numbers that meet in rows of functions, by draws in place of messages."""

from itertools import combinations
from typing import Any

import numpy as np

from meanmap.core.language import in_percent, with_and
from meanmap.core.progress import waiting
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.ep.calls import Spent, accounting
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.affordable import Affordable, is_on_host
from meanmap.ep.inference.few_numbers import FewNumbers
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.inference.record import NOTICED
from meanmap.ep.inference.separate import LeftOut
from meanmap.ep.inference.tempered import MANY, Drawn, drawn, refuse_nan
from meanmap.ep.inference.unbounded import outgrown
from meanmap.families import MultivariateNormal, Normal

__all__ = ["drawn_posterior"]

# Quantiles, and by how many standard deviations those of draws differ from those of a belief where a note says so.
_QUANTILES, _AWAY = np.array([0.05, 0.5, 0.95]), 0.2
# The status speaks of larger standard errors than this, in standard deviations.
_LARGE = 0.02


def drawn_posterior(model: FactorGraph, source: Rng) -> Posterior | None:
    """The posterior; None if messages give it.

    One meeting of several numbers is left to messages, which are then exact, and so are functions that take too long,
    vectors and plates of unknowns, and densities that are no number at some draw.
    """
    if any(getattr(factor, "oracle", None) is not None for factor in model.factors):
        return None
    with accounting() as spent:
        few, effort = FewNumbers.of(model.variables, model.factors, meetings=2, hosts=True), MANY
        if few is not None and any(map(is_on_host, few.factors)):
            asked = Affordable.of(few.factors)
            if asked.effort is None:
                return None
            few, effort = FewNumbers.of(model.variables, asked.factors, meetings=2, hosts=True), asked.effort
        if few is None:
            return None
        generator = source.generator
        with waiting("draws of the numbers"):
            found = drawn(few, generator, effort)
        if found is None:
            refuse_nan(few, generator, effort.draws)
        if found is None or outgrown(few.factors, found.log_evidence):
            return None
        coordinates, values = found.alike(generator)
        inside = few.inside(coordinates[: 4 * effort.draws])
    beliefs, joint = _beliefs(few, found) | inside, few.apart(values)
    report = _report(found, few, values, beliefs, spent)
    return Posterior(
        {name: beliefs[name] for name in model.variables},
        {},
        found.log_evidence,
        report,
        source.seed,
        {},
        {},
        few.apart(found.errors[0]),
        {},
        model.variables,
        LeftOut.of(model.factors, report.status),
        joint,
    )


def _beliefs(few: FewNumbers, found: Drawn) -> dict[str, Any]:
    """With the means and covariances of draws."""
    made, covariance = {}, found.covariance
    for name, at in few.apart(np.arange(len(found.mean))).items():
        family, mean = type(few.priors[name]), found.mean[at]
        vector = family is MultivariateNormal
        own = covariance[np.ix_(at, at)] if vector else covariance[at, at]
        made[name] = family(mean, own) if vector else family.from_mean_variance(mean, own)
    return made


def _report(
    found: Drawn, few: FewNumbers, draws: np.ndarray, beliefs: dict[str, Any], spent: dict[str, Spent]
) -> Report:
    """Which way was taken, and how accurate it is."""
    sizes = dict(zip(few.priors, few.sizes, strict=True))
    names = [
        factor.name
        for factor in few.factors
        if (factor.has_density or is_on_host(factor))
        and not factor.constant
        and sum(sizes.get(a.name, 1) for a in factor.arguments if not a.known) > 1
    ]
    together = with_and([repr(name) for name in few.numbers])
    way = (
        f"{len(found.shares):,} weighted draws from the joint posterior in place of messages, as {together} meet in "
        f"rows of {with_and(names)}"
    )
    measures = {"draws: effective number": found.worth}
    largest, covariance = found.largest_error, found.covariance
    measures["largest standard error of a mean or standard deviation, in standard deviations"] = largest
    measures["log evidence: standard error by sampling"] = found.evidence_error
    for (i, one), (j, other) in combinations(enumerate(few.numbers), 2):
        correlation = covariance[i, j] / np.sqrt(covariance[i, i] * covariance[j, j])
        measures[f"correlation of {one!r} and {other!r}"] = float(correlation)
    marginals = [each for name in few.priors for each in _marginals(beliefs[name])]
    notes = tuple(filter(None, map(_shape, few.numbers, marginals, draws.T)))
    undefined, status = float(found.undefined.mean()), "converged"
    if largest > _LARGE:
        status = "converged, but errors of sampling are large"
    if found.apart is not None:
        status = "converged, but standard deviations may be wrong"
        listed = with_and([f"{name!r} by {off:.2g}" for name, off in zip(few.numbers, found.apart, strict=True)])
        said = (
            "draws may have missed part of the posterior, which is thin and curved or has a narrow neck: where others "
            f"moved to, means or standard deviations differ, in standard deviations, {listed}"
        )
        notes = (*notes, f"{said}. Numbers that the data or the priors tell apart leave an easier shape")
    if undefined > NOTICED:
        status = "converged, but a function returned no number in places"
    if undefined > 0:
        share = f"{in_percent(undefined)}% of draws near the posterior"
        notes = (*notes, f"{with_and(names)}: no number at {share}, where the density counts as zero")
    measures |= {f"{name}: seconds in its function": each.seconds for name, each in spent.items()}
    counts = {f"{name}: evaluations of its function": each.evaluations for name, each in spent.items()}
    return Report(status, True, found.stages, (), counts, notes, measures, {"beliefs: by": way})


def _marginals(belief: Any) -> list[Any]:
    """Of each number of a vector."""
    if not belief.event_shape:
        return [belief]
    return [Normal(mean, variance) for mean, variance in zip(belief.mean(), belief.var(), strict=True)]


def _shape(name: str, belief: Any, draws: np.ndarray) -> str:
    """A note on a belief whose quantiles are not those of draws; else empty."""
    own, exact = np.asarray(belief.quantile(_QUANTILES)), np.quantile(draws, _QUANTILES)
    if np.abs(own - exact).max() < _AWAY * draws.std():
        return ""
    listed = ", ".join(f"{value:.3g}" for value in exact)
    return (
        f"the posterior of {name!r} is not close to a {type(belief).__name__}: mean and standard deviation are those "
        f"of draws, with quantiles {listed} at 5%, 50% and 95%; mm.io.posterior_draws(post) gives joint draws"
    )
