"""The numbers that are regressed in place of an outgoing message, which follows from them without division.

Learning the tilted distribution and dividing by the cavity multiplies a relative error of the variance by v_c/(v_c −
v_t): with a cavity variance of .05 and a message precision of .2, one percent becomes a hundred. Derivatives of log Z
with respect to the incoming message are the message itself, so that their errors are its errors.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.language import a_type
from meanmap.core.types import Array
from meanmap.ep.learned import vectors
from meanmap.ep.learned.points import in_bucket
from meanmap.ep.learned.recorded import Recorded, laws_among
from meanmap.families import Dirichlet, Family, Gamma, MultivariateNormal, Normal

__all__ = ["TARGETS", "Derivatives", "Target", "TiltedMoments", "is_learned"]


class Target(ABC):
    """A map between outgoing messages, given the incoming ones, and rows of numbers; one more column is log Z."""

    name: str

    @classmethod
    @abstractmethod
    def chosen(cls, seen: Recorded) -> "Target":
        """The variant that suits some messages."""

    @abstractmethod
    def of(self, incoming: Any, outgoing: Any) -> np.ndarray:
        """The numbers, (n, q), of one direction; not finite where they do not exist."""

    @abstractmethod
    def message(self, incoming: Family, values: np.ndarray) -> Family:
        """The outgoing message of the numbers."""

    def table(self, seen: Recorded) -> np.ndarray:
        """The numbers of all directions side by side, and log Z = log ∫ f Π p_l where it is known throughout."""
        pairs = list(zip(seen.incoming, seen.messages, strict=True))
        for came, went in pairs:
            if went is not None and not is_learned(type(came)):
                raise KindError(
                    f"messages to {a_type(came)} are not learned, only those about numbers, normal vectors "
                    "and a Dirichlet. Give the factor an oracle of its own: "
                    "messages={'name of the factor': ep.ImportanceSampling()}."
                )
        columns = [self.of(came, went) for came, went in pairs if went is not None]
        if np.isfinite(seen.log_normaliser).all():
            columns.append((seen.log_normaliser - log_normalisers(seen.incoming))[:, None])
        return np.concatenate(columns, axis=1)

    def messages(self, incoming: tuple[Any, ...], values: np.ndarray) -> tuple[Any, ...]:
        """The outgoing messages of such rows."""
        messages, at = [], 0
        for came in incoming:
            if not isinstance(came, Family):
                messages.append(None)
                continue
            width = _width(came)
            messages.append(self.message(came, values[:, at : at + width]))
            at += width
        return tuple(messages)

    def log_normaliser(self, incoming: tuple[Any, ...], values: np.ndarray) -> np.ndarray:
        """The last column as log ∫ f Π exp(η·t); NaN if log Z is not among the columns."""
        if values.shape[1] == sum(map(_width, laws_among(incoming))):
            return np.full(len(values), np.nan)
        return values[:, -1] + log_normalisers(incoming)


@dataclass(frozen=True)
class Derivatives(Target):
    """Derivatives of log Z, the log normaliser of the tilted distribution.

    For a Normal N(m, v): α = ∂ log Z/∂m = (m_t − m)/v and the precision τ = 1/v_t − 1/v, as log τ where the factor is
    log-concave (`logarithm`). For a Beta, Dirichlet and Gamma: the logarithms of the ratios of tilted parameters to the
    incoming ones, which exist even if the message is improper. For other families, such as a Bernoulli: the natural
    parameters that are sent.

    For a normal vector N(m, V): α = V⁻¹(m_t − m) and the symmetric matrix N with V_t⁻¹ = L⁻ᵀ exp(LᵀNL) L⁻¹ for V = LLᵀ,
    for any root L. Any prediction gives a proper belief; N is close to the precision of the message where this adds
    little to the belief, and both change with the coordinates as a gradient and a precision do.

    Attributes
    ----------
    logarithm : bool
        Whether all precisions that were seen are positive, so that their logarithm is learned.
    """

    logarithm: bool = True
    name = "derivatives"

    @classmethod
    def chosen(cls, seen: Recorded) -> "Derivatives":
        """Logarithms of precisions if none of them is zero or below."""
        return cls(all((m.precision > 0).all() for m in seen.messages if isinstance(m, Normal)))

    def of(self, incoming: Any, outgoing: Any) -> np.ndarray:
        """(α, log τ or τ); (α, N); (log a_t/a, log b_t/b); log odds."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if isinstance(incoming, MultivariateNormal):
                return vectors.derivatives(incoming, outgoing)
            if isinstance(incoming, Normal):
                (mean, variance), tau = mean_variance(incoming), outgoing.precision
                alpha = (outgoing.precision_mean - mean * tau) / (1 + variance * tau)
                return np.stack([alpha, np.log(tau) if self.logarithm else tau], axis=1)
            if (exponents := incoming._exponents()) is None:
                return np.stack(outgoing.natural, axis=1)
            ratios = [1 + sent / came for came, sent in zip(exponents, outgoing.natural, strict=True)]
            return np.log(_side_by_side(ratios))

    def message(self, incoming: Family, values: np.ndarray) -> Family:
        """τ and m τ + α (1 + v τ); a (exp r − 1): no difference of nearly equal numbers anywhere."""
        if isinstance(incoming, MultivariateNormal):
            return vectors.from_derivatives(incoming, values)
        if isinstance(incoming, Normal):
            alpha, tau = values[:, 0], np.exp(values[:, 1]) if self.logarithm else values[:, 1]
            mean, variance = mean_variance(incoming)
            return Normal.from_natural(mean * tau + alpha * (1 + variance * tau), tau)
        if (exponents := incoming._exponents()) is None:
            return type(incoming).from_natural(*values.T)
        changes = [came * np.expm1(ratio) for came, ratio in zip(exponents, _apart(values, exponents), strict=True)]
        return type(incoming).from_natural(*changes)


@dataclass(frozen=True)
class TiltedMoments(Target):
    """The target of the paper: the tilted distribution, from which the message follows by division.

    For a Normal these are the mean and log variance of the tilted distribution (for a vector, the logarithm of the
    covariance matrix), for a Beta and Dirichlet its log parameters, and for a Gamma the log parameters of the message
    itself. If it is improper they do not exist, and the answer cannot be learned.
    """

    name = "tilted moments"

    @classmethod
    def chosen(cls, seen: Recorded) -> "TiltedMoments":
        """There is one variant."""
        del seen
        return cls()

    def of(self, incoming: Any, outgoing: Any) -> np.ndarray:
        """(m_t, log v_t); (log a_t, log b_t); (log shape, log rate) of the message."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if isinstance(incoming, MultivariateNormal):
                return vectors.tilted(incoming, outgoing)
            if isinstance(incoming, Normal):
                precision = incoming.precision + outgoing.precision
                mean = (incoming.precision_mean + outgoing.precision_mean) / precision
                return np.stack([mean, -np.log(precision)], axis=1)
            if (exponents := incoming._exponents()) is None:
                return np.stack(outgoing.natural, axis=1)
            if isinstance(incoming, Gamma):
                return np.log(np.stack([outgoing.shape_parameter, outgoing.rate], axis=1))
            return np.log(_side_by_side([c + s for c, s in zip(exponents, outgoing.natural, strict=True)]))

    def message(self, incoming: Family, values: np.ndarray) -> Family:
        """The tilted distribution over the incoming one."""
        if isinstance(incoming, MultivariateNormal):
            return vectors.from_tilted(incoming, values)
        if isinstance(incoming, Normal):
            precision = np.exp(-values[:, 1])
            return Normal.from_natural(
                values[:, 0] * precision - incoming.precision_mean, precision - incoming.precision
            )
        if (exponents := incoming._exponents()) is None:
            return type(incoming).from_natural(*values.T)
        if isinstance(incoming, Gamma):
            return Gamma(*np.exp(values.T))
        changes = [tilted - came for tilted, came in zip(_apart(np.exp(values), exponents), exponents, strict=True)]
        return type(incoming).from_natural(*changes)


TARGETS: dict[str, type[Target]] = {each.name: each for each in (Derivatives, TiltedMoments)}


def is_learned(family: type[Family]) -> bool:
    """Whether messages about variables of a family are learned: numbers, normal vectors and shares."""
    return family.is_scalar() or family in (MultivariateNormal, Dirichlet)


def _width(came: Family) -> int:
    """The number of targets for one direction."""
    if isinstance(came, MultivariateNormal):
        return vectors.width(came.dimension)
    return sum(int(np.prod(leaf.shape[1:])) for leaf in came.natural)


def _side_by_side(arrays: list[Any]) -> np.ndarray:
    return np.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)


def _apart(values: np.ndarray, arrays: tuple[Any, ...]) -> list[np.ndarray]:
    """Columns in the shapes of some arrays."""
    ends = np.cumsum([int(np.prod(array.shape[1:])) for array in arrays])[:-1]
    return [part.reshape(array.shape) for part, array in zip(np.split(values, ends, axis=1), arrays, strict=True)]


def log_normalisers(incoming: tuple[Any, ...]) -> np.ndarray:
    """Σ A(η) of the incoming distributions: what turns log ∫ f Π exp(η·t) into log ∫ f Π p."""
    return np.sum([in_bucket(lambda law: law.log_normaliser, law) for law in laws_among(incoming)], 0)


def mean_variance(law: Normal) -> tuple[Array, Array]:
    """Of Normal distributions, by NumPy: a compiled program for every number of messages would cost more than the
    numbers.
    """
    return law.precision_mean / law.precision, 1 / law.precision
