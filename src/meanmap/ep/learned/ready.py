"""Operators of common factors, ready to use: trained on messages over a wide range, audited, with a card."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.rng import Rng
from meanmap.core.settings import one_of
from meanmap.core.types import Seed
from meanmap.ep.asking.ask import ask
from meanmap.ep.factors.blackbox import BlackBox, Density
from meanmap.ep.factors.links import Logistic, Poisson, Student
from meanmap.ep.learned.card import Card
from meanmap.ep.learned.just_in_time import Learned
from meanmap.ep.learned.kernel_regression import KernelRegression
from meanmap.ep.learned.operator import MessageOperator
from meanmap.ep.learned.recorded import Recorded, laws_among
from meanmap.ep.oracles.questions import Questions
from meanmap.ep.quadrature.quadrature import Quadrature
from meanmap.ep.variables import Variable
from meanmap.families import Beta, Gamma, Normal

__all__ = ["READY", "Ready", "build_operator", "log_compound_gamma"]

# Messages are drawn in this many rounds; in each, those that are new to the operator are learned.
_ROUNDS = 4
_FIRST = 300
_QUICK_ORACLE = (
    "alone: quadrature of this factor takes microseconds. It is useful where messages are requested one by one."
)

Draw = Callable[[int, np.random.Generator], tuple[Any, tuple[Any, ...]]]


@dataclass(frozen=True)
class Ready:
    """How an operator is trained.

    Attributes
    ----------
    about : str
        The factor, in words.
    within : str
        The messages it is trained on; errors outside their range are unknown.
    draw : callable
        From a number n and a generator to a factor with a plate of n, and n messages for each of its arguments.
    advice : tuple of str
        When not to use it.
    """

    about: str
    within: str
    draw: Draw
    advice: tuple[str, ...]


def _normals(n: int, rng: np.random.Generator, reach: float, low: float, high: float) -> Normal:
    """Means up to `reach`, variances log-uniform."""
    return Normal(rng.uniform(-reach, reach, n), np.exp(rng.uniform(np.log(low), np.log(high), n)))


def _logistic(n: int, rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
    labels = rng.integers(0, 2, n).astype(float)
    return Logistic(Variable("z", Normal, plate=n), observed=labels), (_normals(n, rng, 10.0, 0.01, 30.0), labels)


def _sigmoid(n: int, rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
    z, p = Variable("z", Normal, plate=n), Variable("p", Beta, plate=n)
    labels = rng.integers(0, 2, n)
    incoming = _normals(n, rng, 4.0, 0.1, 5.0), Beta(1.0 + labels, 2.0 - labels)
    return BlackBox(jax.nn.sigmoid, z, p, name="sigmoid"), incoming


def _poisson(n: int, rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
    came = _normals(n, rng, 2.0, 0.02, 2.0)
    counts = np.minimum(rng.poisson(np.exp(rng.normal(came.mean(), came.sd()))), 10).astype(float)
    return Poisson(Variable("z", Normal, plate=n), observed=counts), (came, counts, np.ones(n))


def _student(n: int, rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
    came = _normals(n, rng, 2.0, 0.02, 2.0)
    observed = rng.normal(came.mean(), came.sd()) + rng.standard_t(4.0, n).clip(-6, 6)
    factor = Student(Variable("z", Normal, plate=n), observed=observed)
    return factor, (came, observed, np.ones(n), np.full(n, 4.0))


def log_compound_gamma(tau: Any) -> Any:
    """The prior ∫ Gamma(τ; 1, r) Gamma(r; 1, 1) dr = (1 + τ)⁻² of a precision (Jitkrittum et al. 2015, section 4)."""
    return -2 * jnp.log1p(tau)


def _compound_gamma(n: int, rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
    shape, mean = (np.exp(rng.uniform(np.log(low), np.log(high), n)) for low, high in ((1.5, 60.0), (1e-3, 1e3)))
    return Density(log_compound_gamma, Variable("tau", Gamma, plate=n)), (Gamma(shape, shape / mean),)


READY: dict[str, Ready] = {
    "logistic": Ready(
        "ep.Logistic(z, observed=labels): labels of a logistic regression",
        "means −10 to 10, variances .01 to 30",
        _logistic,
        (_QUICK_ORACLE,),
    ),
    "sigmoid": Ready(
        "ep.BlackBox(jax.nn.sigmoid, z, p): the factor of the paper, between a Normal and a Beta",
        "means −4 to 4, variances .1 to 5, one label",
        _sigmoid,
        (_QUICK_ORACLE, "for a p of which more than one label was seen."),
    ),
    "poisson": Ready(
        "ep.Poisson(z, observed=counts): counts of a Poisson regression",
        "means −2 to 2, variances .02 to 2, counts to 10",
        _poisson,
        (_QUICK_ORACLE, "with exposures: add their logarithms to z with ep.Sum."),
    ),
    "compound-gamma": Ready(
        "ep.Density(ep.learned.log_compound_gamma, tau): a prior of a precision",
        "shapes 1.5 to 60, means .001 to 1000",
        _compound_gamma,
        (_QUICK_ORACLE, "with other shapes and rates than 1."),
    ),
    "student": Ready(
        "ep.Student(z, observed=y): outcomes with outliers",
        "means −2 to 2, variances .02 to 2, outcomes up to 6 away from them",
        _student,
        (_QUICK_ORACLE, "with another scale or other degrees of freedom than 1 and 4: divide y and z by the scale."),
    ),
}


def build_operator(
    name: str, messages: int = 8000, operator: MessageOperator | None = None, rng: Seed = None
) -> tuple[MessageOperator, Card, Any]:
    """Train the operator of a common factor, and audit it.

    Each is trained on messages of a stated range, `READY[name].within`, which its card repeats: "logistic" on means of
    −10 to 10 and variances of .01 to 30. The default priors of a regression on a table can be wider in the first sweeps
    (an intercept with deviation 10 has variance 100): there `Learned` asks its oracle, and says in the notes of the
    run how often.

    Parameters
    ----------
    name : str
        One of `READY`: "logistic", "sigmoid", "poisson", "compound-gamma", "student".
    messages : int
        The number of draws; the oracle is called for those that are new, and they are learned. A quarter as many others
        are for the audit.
    operator : MessageOperator, optional
        How it learns: by default the kernel with 300 and 1000 features.
    rng : None, int, numpy Generator or JAX key
        Draws the messages.

    Returns
    -------
    operator : MessageOperator
    card : Card
    factor : Factor
        One of its kind: what `save_operator` marks the file with.

    Examples
    --------
    >>> from meanmap import ep
    >>> small = ep.learned.MessageOperator(ep.learned.KernelRegression(d_in=100, d_out=200, tune=None))
    >>> operator, card, factor = ep.learned.build_operator("logistic", messages=1200, operator=small, rng=0)
    >>> card.audited, card.high < 0.1
    (300, True)
    >>> known = ep.Learned().reuse(factor, operator)  # and then ep.infer(model, messages=known)
    """
    one_of(name, "name", READY)
    total = int(parameter(messages, "messages", axes=0, integer=True, at_least=4 * _FIRST))
    ready, generator = READY[name], Rng.of(rng).generator
    operator = MessageOperator(KernelRegression(d_in=300, d_out=1000)) if operator is None else operator
    learned, each = Learned(Quadrature(), initial=_FIRST, audit=0.0, operator=operator), total // _ROUNDS
    for at in range(_ROUNDS):
        factor, incoming = ready.draw(each, generator)
        learned.check(factor)
        learned.answer(Questions.of(factor, incoming, 1.0, jax.random.key(at), at))
    factor, incoming = ready.draw(each, generator)
    exact = ask(factor, *laws_among(incoming))
    found = learned.trained(factor)
    return found, Card.of(found, factor, Recorded.of(incoming, exact), advice=ready.advice), factor
