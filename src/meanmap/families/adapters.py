"""Distributions of NumPyro as families, and back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.extras import optional
from meanmap.core.language import a_type
from meanmap.families.base import Distribution
from meanmap.families.bernoulli import Bernoulli
from meanmap.families.beta import Beta
from meanmap.families.categorical import Categorical
from meanmap.families.dirichlet import Dirichlet
from meanmap.families.gamma import Gamma
from meanmap.families.laplace import Laplace
from meanmap.families.limits import PointMass
from meanmap.families.mixture import Mixture
from meanmap.families.multivariate_normal import MultivariateNormal
from meanmap.families.normal import Normal
from meanmap.families.uniform import Uniform

__all__ = ["from_numpyro", "to_numpyro"]

# NumPyro class names and the families here. Functions convert parameters that NumPyro names differently.
READERS: dict[str, Callable[[Any], Distribution]] = {
    "Normal": lambda d: Normal(d.loc, d.scale**2),
    "MultivariateNormal": lambda d: MultivariateNormal(d.loc, d.covariance_matrix),
    "Beta": lambda d: Beta(d.concentration1, d.concentration0),
    "Gamma": lambda d: Gamma(d.concentration, d.rate),
    "Exponential": lambda d: Gamma(np.ones(np.shape(d.rate)), d.rate),
    "Chi2": lambda d: Gamma(d.concentration, d.rate),
    "BernoulliProbs": lambda d: Bernoulli(d.probs),
    "BernoulliLogits": lambda d: Bernoulli.from_natural(d.logits),
    "CategoricalProbs": lambda d: Categorical(d.probs),
    "CategoricalLogits": lambda d: Categorical.from_natural(d.logits),
    "Dirichlet": lambda d: Dirichlet(d.concentration),
    "Laplace": lambda d: Laplace(d.loc, d.scale),
    "Uniform": lambda d: Uniform(d.low, d.high),
    "Delta": lambda d: PointMass(d.v, d.event_dim),
    "MixtureSameFamily": lambda d: Mixture(from_numpyro(d.component_distribution), d.mixing_distribution.probs),
    "Independent": lambda d: from_numpyro(d.base_dist),
    "ExpandedDistribution": lambda d: from_numpyro(d.base_dist).broadcast_to(d.batch_shape),
}


def from_numpyro(distribution: object) -> Distribution:
    """The family of a NumPyro distribution, with its batch, to be embedded or used as a prior or message of `mm.ep`.

    Reads Normal, MultivariateNormal, Beta, Gamma, Exponential, Chi2, Bernoulli, Categorical, Dirichlet, Laplace,
    Uniform, Delta, and MixtureSameFamily of these. Axes that `to_event` declares as event axes are batch axes here.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from_numpyro(dist.Gamma(2.0, 4.0))
    Gamma(shape=2, rate=4, mean=0.5, sd=0.3536)
    """
    with optional("from_numpyro"):
        from numpyro.distributions import Distribution as NumPyro

    if not isinstance(distribution, NumPyro):
        raise KindError(
            f"distribution is {a_type(distribution)}; expected one of numpyro.distributions, such as "
            "numpyro.distributions.Normal(0.0, 1.0)."
        )
    name = type(distribution).__name__
    if name not in READERS:
        raise KindError(f"{name} has no counterpart here; from_numpyro reads {', '.join(READERS)}.")
    return READERS[name](distribution)


def to_numpyro(distribution: Distribution) -> Any:
    """The NumPyro distribution of a family or mixture, with its batch.

    Examples
    --------
    >>> to_numpyro(Normal([0.0, 1.0], 4.0)).variance.tolist()
    [4.0, 4.0]
    """
    with optional("to_numpyro"):
        import numpyro.distributions as numpyro

    match distribution:
        case Normal():
            return numpyro.Normal(distribution.mean(), distribution.sd())
        case MultivariateNormal():
            return numpyro.MultivariateNormal(distribution.mean(), distribution.cov())
        case Beta():
            return numpyro.Beta(distribution.a, distribution.b)
        case Gamma():
            return numpyro.Gamma(distribution.shape_parameter, distribution.rate)
        case Bernoulli():
            return numpyro.BernoulliLogits(distribution.logit)
        case Categorical():
            return numpyro.CategoricalLogits(distribution.logits)
        case Dirichlet():
            return numpyro.Dirichlet(distribution.concentration)
        case Laplace():
            return numpyro.Laplace(distribution.location, distribution.scale)
        case Uniform():
            return numpyro.Uniform(distribution.low, distribution.high)
        case PointMass():
            return numpyro.Delta(distribution.x, event_dim=len(distribution.event_shape))
        case Mixture():
            labels = numpyro.CategoricalProbs(distribution.weights)
            return numpyro.MixtureSameFamily(labels, to_numpyro(distribution.components))
    raise KindError(f"{type(distribution).__name__} has no known counterpart in NumPyro.")
