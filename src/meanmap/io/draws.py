"""Posteriors as ArviZ reads them: draws by name, of as many chains as there were."""

from importlib import import_module
from typing import Any

import numpy as np

from meanmap.bp import Beliefs
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.types import Points, Seed
from meanmap.embeddings.posterior import GaussianElement
from meanmap.embeddings.readouts import Readouts
from meanmap.ep import Posterior
from meanmap.ep.models.programs import Program
from meanmap.ep.models.ranking import Ranking
from meanmap.ep.models.regression import Regression
from meanmap.families import Distribution
from meanmap.learning import KernelDraws

__all__ = ["posterior_draws", "to_arviz"]


def posterior_draws(
    posterior: Any, draws: int = 1000, rng: Seed = None, points: Points = None
) -> dict[str, dict[str, Any]]:
    """Groups of arrays (chains, draws, ...) by name, as `arviz.from_dict` takes them.

    Parameters
    ----------
    posterior : object
        - Draws of a kernel ([`mm.sample_kernel`][]): those draws, with their divergences and steps.
        - A regression, a ranking or a program of `mm.ep.models`: draws of the coefficients, skills or parameters by
          their names, jointly where the belief is joint.
        - What [`mm.ep.infer`][] returned: draws of each variable's belief. Beliefs of different variables are drawn
          independently, because that is all that expectation propagation keeps.
        - The answer of a query ([`bp.Beliefs`][]): draws of each target; states where variables are discrete.
        - A posterior embedding or witness: joint draws of the function at `points`.
        - One distribution: draws called x.
    draws : int
        How many, in one chain; those of a kernel are what they are.
    rng : None, int, numpy.random.Generator or JAX key
        Where they come from.
    points : points, optional
        Where functions are drawn.

    Examples
    --------
    >>> from meanmap.families import Normal
    >>> posterior_draws(Normal([0.0, 1.0], 1.0), draws=500, rng=0)["posterior"]["x"].shape
    (1, 500, 2)
    """
    if isinstance(posterior, KernelDraws):
        return posterior.groups()
    whole_number(draws, "draws")
    generator = Rng.of(rng).generator
    if isinstance(posterior, Regression | Ranking):
        names = posterior.names if isinstance(posterior, Regression) else map(str, posterior.players)
        drawn = generator.multivariate_normal(posterior.mean, posterior.covariance, int(draws))
        found = dict(zip(names, drawn.T, strict=True))
    elif isinstance(posterior, GaussianElement):
        if points is None:
            raise ParameterError("a function is drawn at points: pass points=.")
        found = {"f": posterior.sample(points, int(draws), generator)}
    else:
        laws: Any = posterior
        if isinstance(posterior, Program):
            laws = posterior.parameters
        elif isinstance(posterior, Distribution | Readouts):
            laws = {"x": posterior}
        if not isinstance(laws, Posterior | Beliefs | dict):
            raise KindError(
                f"a {type(posterior).__name__} has no draws; expected draws of a kernel, a posterior or model of "
                "mm.ep, beliefs of a query, a posterior embedding or a distribution."
            )
        found = {str(name): _drawn(law, int(draws), generator) for name, law in laws.items()}
    return {"posterior": {name: np.asarray(values)[None] for name, values in found.items()}}


def to_arviz(posterior: Any, draws: int = 1000, rng: Seed = None, points: Points = None) -> Any:
    """`posterior_draws` as ArviZ's InferenceData (from ArviZ 1.0 on a DataTree), for its plots and tables.

    ArviZ comes with `pip install 'meanmap[arviz]'`; the arguments are those of [`posterior_draws`][].
    """
    groups = posterior_draws(posterior, draws, rng, points)
    try:
        arviz: Any = import_module("arviz")
    except ImportError as error:
        raise KindError("ArviZ is not installed here: type pip install 'meanmap[arviz]'.") from error
    before_1 = int(arviz.__version__.split(".")[0]) < 1
    return arviz.from_dict(**groups) if before_1 else arviz.from_dict(groups)


def _drawn(law: Any, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Draws of one belief, the axis of draws first."""
    if isinstance(law, Distribution):
        return np.asarray(law.sample(draws, generator))
    if isinstance(law, Readouts):
        if law.batch:
            raise KindError("these beliefs answer several queries: ask one query for draws.")
        return np.asarray(law.sample(draws, generator))
    probabilities = np.asarray(law, dtype=float)
    if probabilities.ndim != 1:
        raise KindError("these beliefs answer several queries: ask one query for draws.")
    return generator.choice(len(probabilities), draws, p=probabilities / probabilities.sum())
