"""Beliefs of a run beside draws from the posterior, where not all unknowns are normal."""

from typing import Any

import numpy as np

from meanmap.core.language import in_percent, with_and
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.inference.block import Beliefs
from meanmap.ep.inference.few_numbers import FewNumbers
from meanmap.ep.inference.mixture import Mixture
from meanmap.ep.inference.tempered import Drawn, drawn, weighed
from meanmap.ep.variables import Variable
from meanmap.ep.weighted_draws import apart
from meanmap.families import MultivariateNormal, Normal

__all__ = ["by_draws"]

# Mass this many standard deviations from the mean of a belief is elsewhere. A larger share than this is worth a note.
_FAR, _ELSEWHERE = 4.0, 0.02
# Of up to this many numbers draws near the beliefs are moved and widened, in at most this many rounds, until they are
# worth enough; then at most this many are added until standard errors are this share of standard deviations.
_MORE, _DRAWS, _ROUNDS, _ENOUGH, _MOST, _ACCURATE = 20, 4096, 6, 1000.0, 131_072, 0.03
# Of up to this many numbers, in at most this many rows, standard deviations are those of chains.
_MANY, _ROWS = 500, 1000
# Standard deviations that differ by this share, means by this share of them, or a log evidence by this are worth a note
# if they do by as many standard errors; it names at most this many.
_APART, _ERRORS, _NAMED = 0.1, 3.0, 5


def by_draws(
    variables: dict[str, Variable],
    factors: tuple[Factor, ...],
    beliefs: Beliefs,
    log_evidence: float,
    known: bool = False,
) -> tuple[str | None, str]:
    """What draws say of moments and a log evidence that are off, and of other modes, in words; or empty.

    Looked at are models of functions with few unknown numbers. Of many, chains are not asked where it is `known` how
    wide beliefs should be; the first is None if they should be and cannot answer.
    """
    model, generator = FewNumbers.of(variables, factors), np.random.default_rng(0)
    if model is None:
        said = _of_more(variables, factors, beliefs, generator)
        if said is None:
            said = "" if known else _of_many(variables, factors, beliefs, generator)
        return said or _on_host(factors) or said, ""
    found = drawn(model, generator)
    if found is None:
        return _on_host(factors), ""
    differ = abs(log_evidence - found.log_evidence) > max(_APART, _ERRORS * found.evidence_error)
    middle, spread = _moments(model, beliefs)
    share, listed = _elsewhere(model, beliefs, found.alike(generator)[0]), []
    for name, mean, sd, mean_error, sd_error, own, own_sd in zip(
        model.numbers, found.mean, found.sd, *found.errors, middle, spread, strict=True
    ):
        differ = differ or abs(mean - own) > max(_APART * sd, _ERRORS * mean_error)
        differ = differ or abs(sd - own_sd) > max(_APART * own_sd, _ERRORS * sd_error)
        listed.append(f"{name!r} {mean:.3g} ± {sd:.2g}")
    said = (
        f"means and standard deviations by draws from the posterior: {', '.join(listed)}; log evidence "
        f"{found.log_evidence:.4g}"
    )
    if share:
        return "", (
            f"roughly {in_percent(share)}% of the posterior lies at another mode: beliefs and log evidence are those "
            f"of one. For both, {said}. Priors that distinguish the components of a mixture leave a single mode"
        )
    return (said if differ else ""), ""


def _elsewhere(model: FewNumbers, beliefs: Beliefs, coordinates: np.ndarray) -> float:
    """The largest share of draws that lie at another mode of some number.

    Of one broad mode, seen in the coordinate of its family, more mass is nearer than far away; a belief that is as wide
    as both modes has the mass of both.
    """
    middle, spread = _places(model, beliefs)
    away = np.abs(coordinates - middle) / spread
    beyond, beside = (away > _FAR).mean(0), ((away > _FAR / 2) & (away <= _FAR)).mean(0)
    wider = coordinates.std(0) > (1 + _APART) * spread
    return float(np.max(beyond, initial=0.0, where=(beyond > np.maximum(_ELSEWHERE, beside)) & wider))


def _of_more(
    variables: dict[str, Variable], factors: tuple[Factor, ...], beliefs: Beliefs, generator: np.random.Generator
) -> str | None:
    """Which standard deviations differ from those of draws near the beliefs, or that none are worth enough; or empty.
    None if nothing is known.

    Looked at are more numbers than are drawn from the priors on, not all of them normal, that meet in rows.
    """
    model = FewNumbers.of(variables, factors, meetings=2, most=_MORE, plates=True)
    if model is None or all(isinstance(prior, Normal | MultivariateNormal) for prior in model.priors.values()):
        return None
    found = _near(model, beliefs, generator)
    if found is None and any(prior.shape for prior in model.priors.values()):
        return None
    if found is None:
        return (
            f"{with_and([repr(name) for name in model.priors])} have separate beliefs and meet in rows: standard "
            "deviations may be too small, by how much is not known, as too few draws reach the posterior"
        )
    _, spread = _moments(model, beliefs)
    worth = 1 / (2 * found.largest_error**2)
    return apart(found.sd / spread, worth, _APART, list(map(repr, model.numbers)), _NAMED)


def _of_many(
    variables: dict[str, Variable], factors: tuple[Factor, ...], beliefs: Beliefs, generator: np.random.Generator
) -> str | None:
    """Which standard deviations differ from those of chains that begin at the beliefs, or empty; None if these are not
    affordable or do not settle.
    """
    model = FewNumbers.of(variables, factors, meetings=2, most=_MANY, plates=True)
    if model is None or sum(factor.plate or 1 for factor in factors) > _ROWS:
        return None
    from meanmap.ep.inference.chains import chains  # which most models do without

    centre, spread = _places(model, beliefs)
    found = chains(model, centre, spread, generator)
    if found is None:
        return None
    said = apart(found.sd / _moments(model, beliefs)[1], found.worth, _APART, list(map(repr, model.numbers)), _NAMED)
    joining = [f for f in factors if isinstance(f, BlackBoxFactor) and sum(not a.known for a in f.arguments) > 1]
    met = dict.fromkeys(a.name for f in joining for a in f.arguments if not a.known and a.name in model.priors)
    return said and (
        f"{said}: {with_and(list(map(repr, met)))} have separate beliefs and meet in rows of "
        f"{with_and([f.name for f in joining])}, which tie them together. Multiply standard deviations by these numbers"
    )


def _places(model: FewNumbers, beliefs: Beliefs) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the beliefs about all numbers, in the coordinates of their families."""
    laws = [_in_line(beliefs[name], prior) for name, prior in model.priors.items()]
    middle, spread = (np.concatenate(each) for each in zip(*laws, strict=True))
    return middle, spread


def _in_line(belief: Any, prior: Any) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations in the coordinates of a family."""
    if belief.event_shape:
        return np.ravel(belief.mean()), np.ravel(np.sqrt(belief.var()))
    line = prior.coordinates[-1]
    return np.ravel(belief.mean_in(line)), np.sqrt(np.ravel(belief.variance_in(line)))


def _near(model: FewNumbers, beliefs: Beliefs, generator: np.random.Generator) -> Drawn | None:
    """Weighted draws of a Student distribution, at first with the moments of beliefs and then with their own; None if
    they are not worth enough.
    """
    from scipy.linalg import block_diag

    laws = [(beliefs[name], prior.coordinates[-1]) for name, prior in model.priors.items()]
    means = [belief.mean() if belief.event_shape else belief.mean_in(line) for belief, line in laws]
    squares = [
        belief.cov() if belief.event_shape else np.diag(np.ravel(belief.variance_in(line))) for belief, line in laws
    ]
    centre, covariance = np.concatenate(list(map(np.ravel, means))), np.asarray(block_diag(*squares))
    for _ in range(_ROUNDS):
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return None
        own = Mixture(root, np.linalg.solve(root, centre)[None], np.eye(len(root))[None])
        found = weighed(model, own.draws(_DRAWS, generator), 0)
        if found is None:
            return None
        if found.worth > _ENOUGH:
            return _with_more(model, own, found, generator)
        centre = found.shares @ found.coordinates
        off = found.coordinates - centre
        covariance = off.T @ (found.shares[:, None] * off) + covariance / found.worth
    return None


def _with_more(model: FewNumbers, own: Mixture, found: Drawn, generator: np.random.Generator) -> Drawn | None:
    """With draws of the same distribution, until they are accurate; None if they do not become so."""
    while found.largest_error > _ACCURATE and len(found.shares) < _MOST:
        more = weighed(model, own.draws(len(found.shares), generator), 0)
        if more is None:
            return None
        found = found.with_more(more)
    return found if found.largest_error <= _ACCURATE else None


def _moments(model: FewNumbers, beliefs: Beliefs) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the beliefs about all numbers."""
    laws = [beliefs[name] for name in model.priors]
    means, sds = ([np.ravel(getattr(law, what)()) for law in laws] for what in ("mean", "sd"))
    return np.concatenate(means), np.concatenate(sds)


def _on_host(factors: tuple[Factor, ...]) -> str:
    """A note on a function that JAX does not trace and in whose rows several numbers meet; or empty."""
    for factor in factors:
        if getattr(factor, "host", False) and not getattr(factor, "random", False) and (factor.plate or 1) > 1:
            inputs = factor.arguments[: len(factor.arguments) - factor.outputs]
            names = [a.name for a in inputs if not a.known and a.plate is None and not a.variable.dimension]
            if len(names) > 1:
                return (
                    f"{with_and([repr(name) for name in names])} have separate beliefs and meet in all rows of "
                    f"{factor.name}: if the data correlate them, standard deviations are too small, by how much is not "
                    "known. A function of jax.numpy, which JAX traces, is answered by draws from the joint posterior; "
                    "so is one that takes less than 15 milliseconds for all rows"
                )
    return ""
