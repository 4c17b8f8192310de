"""Posteriors as ArviZ reads them: draws by name, for each chain."""

from collections.abc import Iterable
from functools import singledispatch
from importlib import import_module
from typing import Any

import numpy as np

from meanmap.bp import Beliefs
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.extras import optional
from meanmap.core.language import a_type
from meanmap.core.notes import warn_of
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.types import Data, Seed
from meanmap.embeddings.posterior import GaussianElement
from meanmap.embeddings.readouts import Readouts
from meanmap.ep import Posterior
from meanmap.ep.linear.contrasts import named
from meanmap.ep.linear.fitted import Fitted
from meanmap.ep.models.programs import Program
from meanmap.ep.models.ranking import Ranking
from meanmap.ep.models.regression import Regression
from meanmap.families import Distribution
from meanmap.learning import KernelDraws

__all__ = ["posterior_draws", "to_arviz"]

# Numbers of responses that are drawn.
_MOST = 20_000_000
Groups = dict[str, dict[str, Any]]
SEVERAL = "these beliefs answer several queries: ask one query for draws."


def posterior_draws(posterior: object, draws: int = 1000, rng: Seed = None, points: Data = None) -> Groups:
    """Groups of arrays (chains, draws, ...) by name, as `arviz.from_dict` takes them.

    Parameters
    ----------
    posterior : object
        - Draws of a kernel (`mm.learning.sample_kernel`): those draws, with their divergences and steps.
        - What `mm.fit` found: joint draws of everything in its table and of the effects of groups, an array for each
          effect, such as `Intercept | g`; with groups `observed_data` and `posterior_predictive` (ordered labels as 0,
          1, ...; neither where responses are censored or truncated), and `log_likelihood`, which `arviz.loo` needs.
        - A regression, a ranking or a program of `mm.ep.models`: draws of the coefficients, skills or parameters by
          their names, jointly where the belief is joint.
        - What `mm.ep.infer` returned: draws of each variable's belief. Beliefs about different variables are drawn
          independently, because expectation propagation keeps only marginals; numbers that `infer` answers by draws
          are drawn jointly, and from the posterior itself.
        - The answer of a query (`bp.Beliefs`): draws of each target; states where variables are discrete.
        - A posterior embedding or witness: joint draws of the function at `points`.
        - One distribution: draws called x.
    draws : int
        The number of draws, in one chain; a sampled kernel returns all of its own draws.
    rng : None, int, numpy.random.Generator or JAX key
        The source of randomness.
    points : points, optional
        Where functions are evaluated.

    Examples
    --------
    >>> from meanmap.families import Normal
    >>> posterior_draws(Normal([0.0, 1.0], 1.0), draws=500, rng=0)["posterior"]["x"].shape
    (1, 500, 2)
    """
    whole_number(draws, "draws")
    return _groups(posterior, int(draws), Rng.of(rng).generator, points)


def to_arviz(posterior: object, draws: int = 1000, rng: Seed = None, points: Data = None) -> Any:
    """`posterior_draws` as ArviZ's InferenceData (from ArviZ 1.0 on a DataTree), for its plots and tables.

    ArviZ comes with the extra `arviz`; the arguments are those of `posterior_draws`.
    """
    groups = posterior_draws(posterior, draws, rng, points)
    with optional("to_arviz"):
        arviz: Any = import_module("arviz")
    before_1, said = int(arviz.__version__.split(".")[0]) < 1, _dimensions(posterior)
    return arviz.from_dict(**groups, **said) if before_1 else arviz.from_dict(groups, **said)


def _dimensions(posterior: object) -> dict[str, Any]:
    """What the axes of effects of groups are called, and the groups."""
    groups = posterior.formula.rows.groups if isinstance(posterior, Fitted) else ()
    dims = {f"{label} | {group.name}": [group.name] for group in groups for label in group.labels}
    return {"dims": dims, "coords": {group.name: [named(each) for each in group.levels] for group in groups}}


def _one_chain(drawn: Iterable[tuple[object, Any]]) -> Groups:
    return {"posterior": {str(name): np.asarray(values)[None] for name, values in drawn}}


def _together(names: Iterable[object], normal: Any, draws: int, generator: np.random.Generator) -> Groups:
    """Joint draws of several numbers whose belief is normal."""
    drawn = generator.multivariate_normal(normal.mean, normal.covariance, draws)
    return _one_chain(zip(names, drawn.T, strict=True))


@singledispatch
def _groups(posterior: object, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    """The groups of one kind of posterior; other kinds are registered."""
    raise KindError(
        f"{a_type(posterior)} has no draws; expected draws of a kernel, a posterior or model of mm.ep, "
        "beliefs of a query, a posterior embedding or a distribution."
    )


@_groups.register
def _of_a_kernel(posterior: KernelDraws, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    return posterior.groups()


@_groups.register
def _of_a_formula(posterior: Fitted, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    seed, rows, name = int(generator.integers(2**53)), posterior.formula.rows, posterior.response
    joint, found = posterior._drawn(draws, Rng.of(seed).generator), _one_chain(posterior.draws(draws, seed).items())
    if draws * sum(len(group.levels) * len(group.labels) for group in rows.groups) <= _MOST:
        found["posterior"] |= {effect: values[None] for effect, values in joint.of_groups(posterior.formula).items()}
    observed, scaled = posterior.model.observed, posterior.scaled
    if draws * len(rows.kept) > _MOST:
        note = f"{draws} draws of {len(rows.kept)} rows are too many for groups of responses: ask for fewer draws"
        warn_of([note])
        return found
    if not posterior.limits:
        response = observed.response * scaled.unit + scaled.base
        values = joint.responses(rows, observed.trials, generator)
        found |= {"posterior_predictive": {name: values[None]}, "observed_data": {name: response}}
    return found | {"log_likelihood": {name: joint.log_likelihoods(rows, generator)[None]}}


@_groups.register
def _of_coefficients(posterior: Regression, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    return _together(posterior.names, posterior, draws, generator)


@_groups.register
def _of_skills(posterior: Ranking, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    return _together(posterior.players, posterior, draws, generator)


@_groups.register
def _of_a_function(posterior: GaussianElement, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    if points is None:
        raise ParameterError("a function is drawn at points: pass points=.")
    return _one_chain([("f", posterior.sample(points, draws, generator))])


@_groups.register
def _of_a_run(posterior: Posterior, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    joint = posterior._joint
    kept = len(next(iter(joint.values()))) if joint else 0
    rows = generator.choice(kept, draws, replace=draws > kept) if joint else np.empty(0, int)
    return _one_chain(
        (name, joint[name][rows] if name in joint else _drawn(law, draws, generator)) for name, law in posterior.items()
    )


@_groups.register(Beliefs | dict)
def _of_beliefs(posterior: Any, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    return _one_chain((name, _drawn(law, draws, generator)) for name, law in posterior.items())


@_groups.register
def _of_a_program(posterior: Program, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    return _of_beliefs(posterior.parameters, draws, generator, points)


@_groups.register(Distribution | Readouts)
def _of_one_law(posterior: object, draws: int, generator: np.random.Generator, points: Data) -> Groups:
    return _one_chain([("x", _drawn(posterior, draws, generator))])


@singledispatch
def _drawn(law: object, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Draws of one belief, with the axis of draws first; draws of states if the belief is their probabilities."""
    probabilities = np.asarray(law, dtype=float)
    if probabilities.ndim != 1:
        raise KindError(SEVERAL)
    return generator.choice(len(probabilities), draws, p=probabilities / probabilities.sum())


@_drawn.register
def _from_a_law(law: Distribution, draws: int, generator: np.random.Generator) -> np.ndarray:
    return np.asarray(law.sample(draws, generator))


@_drawn.register
def _from_readouts(law: Readouts, draws: int, generator: np.random.Generator) -> np.ndarray:
    if law.batch:
        raise KindError(SEVERAL)
    return np.asarray(law.sample(draws, generator))
