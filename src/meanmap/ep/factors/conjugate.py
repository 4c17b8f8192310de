"""Factors whose messages are known in closed form: counts and labels with conjugate or discrete neighbours."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.language import in_short
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data
from meanmap.ep.factor import Answer, Factor, check_family, check_observed, common_plate
from meanmap.ep.variables import Argument, Given, Selection, Variable, read_argument, read_given
from meanmap.families import Bernoulli as BernoulliFamily
from meanmap.families import Beta, Dirichlet, Gamma
from meanmap.families import Categorical as CategoricalFamily

__all__ = ["Bernoulli", "Categorical", "PoissonRate"]


class Bernoulli(Factor):
    """x = 1 with probability p, else 0, for each member of a plate.

    As a family of a variable, `Variable("x", ep.Bernoulli)` means `families.Bernoulli`.

    Parameters
    ----------
    p : Variable
        A Beta.
    x : Variable
        A Bernoulli; leave it out where the outcome is `observed`.
    observed : array_like
        Zeros and ones, instead of x.

    Notes
    -----
    An observed outcome sends Beta(1 + y, 2 − y). To an unobserved one goes the mean of p, and to p the projection of a
    mixture of two Betas.

    Examples
    --------
    >>> from meanmap import ep
    >>> p = ep.Variable("p", ep.Beta(1.0, 1.0))
    >>> ep.infer(ep.FactorGraph(ep.Bernoulli(p, observed=[1, 1, 0])))["p"]
    Beta(a=3, b=2, mean=0.6, sd=0.2)
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    family: ClassVar[type] = BernoulliFamily

    @own_words
    def __init__(self, p: Argument, x: Argument = None, *, observed: Data = None, name: str | None = None):
        _refuse_prior("Bernoulli", p, x, observed)
        outcome = _outcome("Bernoulli", x, observed)
        p = read_argument(p, "p")
        label = name or f"Bernoulli({', '.join(a.name for a in (p, outcome) if not a.known)})"
        check_family(label, "p", p, Beta)
        check_family(label, "x", outcome, BernoulliFamily, given=True)
        if outcome.known:
            check_observed(label, outcome, np.isin(outcome.values, (0, 1)), "zeros and ones")
        common_plate(label, {"p": p, "x": outcome})
        self.arguments, self.name = (p, outcome), label

    @property
    def constant(self) -> bool:
        """With an observed outcome."""
        return self.arguments[1].known

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Conjugate for given outcomes, else a mixture of two Betas."""
        del power, key
        p, x = incoming
        if not isinstance(x, BernoulliFamily):
            y = jnp.broadcast_to(x, p.shape)
            message = Beta.from_natural(y, 1 - y)
            return Answer((message, None), jax.tree.map(jnp.add, p, message).log_normaliser)
        one, zero = (
            Beta.from_natural(p.coefficient_log_x + 1, p.coefficient_log_complement),
            Beta.from_natural(p.coefficient_log_x, p.coefficient_log_complement + 1),
        )
        log_one, log_zero = one.log_normaliser + x.logit, zero.log_normaliser
        share = jax.nn.sigmoid(log_one - log_zero)
        expected = [
            share * a + (1 - share) * b for a, b in zip(one.expected_statistics, zero.expected_statistics, strict=True)
        ]
        message = jax.tree.map(lambda a, b: a - b, Beta.from_moments(*expected), p)
        logit = jnp.log(p.a) - jnp.log(p.b)
        return Answer((message, BernoulliFamily.from_natural(logit)), jnp.logaddexp(log_one, log_zero))


class Categorical(Factor):
    """Labels 0, ..., k − 1 drawn with probabilities p, observed, for each member of a plate.

    As a family of a variable, `Variable("x", ep.Categorical)` means `families.Categorical`.

    Parameters
    ----------
    p : Variable
        A Dirichlet of length k.
    observed : array_like
        Labels.

    Examples
    --------
    >>> from meanmap import ep
    >>> p = ep.Variable("p", ep.Dirichlet([1.0, 1.0, 1.0]))
    >>> ep.infer(ep.FactorGraph(ep.Categorical(p, observed=[0, 0, 2])))["p"].concentration.tolist()
    [3.0, 1.0, 2.0]
    """

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    family: ClassVar[type] = CategoricalFamily

    @own_words
    def __init__(self, p: Argument, *, observed: Data = None, name: str | None = None):
        _refuse_prior("Categorical", p, None, observed)
        if observed is None:
            raise KindError("Categorical needs labels: whole numbers as observed=.")
        p, labels = read_argument(p, "p"), read_given(observed, "observed")
        label = name or f"Categorical({p.name})"
        check_family(label, "p", p, Dirichlet)
        k = int(p.variable.dimension)
        check_observed(label, labels, np.isin(labels.values, np.arange(k)), f"whole numbers from 0 to {k - 1}")
        common_plate(label, {"p": p, "observed": labels})
        self.arguments, self.name = (p, labels), label

    @property
    def constant(self) -> bool:
        """Always: the outcome is given, so that the message never changes."""
        return True

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """One more count for the label."""
        del power, key
        p, labels = incoming
        one = jax.nn.one_hot(labels.astype(int), p.natural[0].shape[-1], dtype=p.natural[0].dtype)
        message = Dirichlet.from_natural(jnp.broadcast_to(one, p.natural[0].shape))
        return Answer((message, None), jax.tree.map(jnp.add, p, message).log_normaliser)


class PoissonRate(Factor):
    """Counts with mean exposure × rate, observed, and a Gamma belief about the rate; made by `Poisson`."""

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)

    @own_words
    def __init__(self, rate: Argument, counts: Given, exposure: Given, name: str):
        common_plate(name, {"rate": rate, "observed": counts, "exposure": exposure})
        self.arguments, self.name = (rate, counts, exposure), name

    @property
    def constant(self) -> bool:
        """Always: the outcome is given, so that the message never changes."""
        return True

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Gamma(1 + count, exposure)."""
        del power, key
        rate, counts, exposure = incoming
        message = Gamma.from_natural(jnp.broadcast_to(counts, rate.shape), jnp.broadcast_to(-exposure, rate.shape))
        constant = counts * jnp.log(exposure) - jax.scipy.special.gammaln(counts + 1)
        return Answer((message, None, None), jax.tree.map(jnp.add, rate, message).log_normaliser + constant)


def _refuse_prior(kind: str, p: object, x: object, observed: Data) -> None:
    """Raise where numbers are given alone: a prior is meant, whose distribution has the name of the factor."""
    if x is None and observed is None and not isinstance(p, Variable | Selection):
        raise KindError(
            f"ep.{kind} is a factor between a Variable and its outcomes; for the prior of a Variable type "
            f"mm.families.{kind}({in_short(p)})."
        )


def _outcome(kind: str, x: Data, observed: Data) -> Any:
    if (x is None) == (observed is None):
        raise KindError(f"{kind} needs an outcome: a Variable as x, or numbers as observed, and not both.")
    return read_given(observed, "observed") if x is None else read_argument(x, "x")
