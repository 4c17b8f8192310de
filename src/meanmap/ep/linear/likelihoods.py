"""Families of likelihoods, by the names that Bambi uses."""

from dataclasses import replace

import numpy as np
from scipy.special import digamma, expit, gammaln, log_expit, log_ndtr, ndtr, ndtri

from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.ordered import cumulative

__all__ = ["FAMILIES"]

_HALF_LOG_2PI = np.log(2 * np.pi) / 2


def _none(observed: Observed, eta: np.ndarray, parameters: np.ndarray) -> list[np.ndarray]:
    return []


# Gaussian: parameters are (log sigma,)


def _gaussian(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    return -0.5 * np.exp(-2 * p[0]) * (o.response - eta) ** 2 - p[0] - _HALF_LOG_2PI


def _gaussian_slopes(o: Observed, eta: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    return [np.exp(-2 * p[0]) * (o.response - eta) ** 2 - 1]


# Student: (log sigma, log nu)


def _student(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    nu, square = np.exp(p[1]), ((o.response - eta) * np.exp(-p[0])) ** 2
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi) - p[0]
    return constant - (nu + 1) / 2 * np.log1p(square / nu)


def _student_slopes(o: Observed, eta: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    nu, square = np.exp(p[1]), ((o.response - eta) * np.exp(-p[0])) ** 2
    share = square / (nu + square)
    by_nu = (digamma((nu + 1) / 2) - digamma(nu / 2) - 1 / nu - np.log1p(square / nu)) / 2 + (nu + 1) / (2 * nu) * share
    return [(nu + 1) * share - 1, nu * by_nu]


def _start_student(o: Observed, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outliers start with small weights."""
    nu, square = np.exp(p[1]), ((o.response - o.offset) * np.exp(-p[0])) ** 2
    return o.response, (nu + 1) / (nu + square) * np.exp(-2 * p[0])


# Bernoulli and binomial: none


def _choose(o: Observed) -> np.ndarray:
    if (o.trials == 1).all():
        return np.zeros(o.trials.shape)
    return gammaln(o.trials + 1) - gammaln(o.response + 1) - gammaln(o.trials - o.response + 1)


def _logit(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    # log(1 + e^η), in a third of the time of log_expit.
    grown = np.maximum(eta, 0) + np.log(1 + np.exp(-np.abs(eta)))
    return o.response * eta - o.trials * grown + _choose(o)


def _logit_bends(o: Observed, eta: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    fallen = np.exp(-np.abs(eta))
    larger = 1 / (1 + fallen)
    share = np.where(eta > 0, larger, 1 - larger)
    here = o.response * eta - o.trials * (np.maximum(eta, 0) - np.log(larger)) + _choose(o)
    return here, o.response - o.trials * share, -o.trials * (fallen * larger * larger)


def _probit(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    return o.response * log_ndtr(eta) + (o.trials - o.response) * log_ndtr(-eta) + _choose(o)


def _share(o: Observed) -> np.ndarray:
    return (o.response + 0.5) / (o.trials + 1)


def _start_logit(o: Observed, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    share = _share(o)
    return np.log(share / (1 - share)), o.trials * share * (1 - share)


def _start_probit(o: Observed, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    place = ndtri(_share(o))
    return place, o.trials * np.full_like(place, 2 / np.pi)


def _draw_logit(o: Observed, eta: np.ndarray, p: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return generator.binomial(np.broadcast_to(o.trials, eta.shape).astype(int), expit(eta)).astype(float)


def _draw_probit(o: Observed, eta: np.ndarray, p: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return generator.binomial(np.broadcast_to(o.trials, eta.shape).astype(int), ndtr(eta)).astype(float)


# Counts: Poisson has none, the negative binomial (log alpha,)


def _exp(eta: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(eta, 600.0))


def _poisson(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    return o.response * eta - _exp(eta) - gammaln(o.response + 1)


def _poisson_bends(o: Observed, eta: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rate = _exp(eta)
    return o.response * eta - rate - gammaln(o.response + 1), o.response - rate, -rate


def _expected(o: Observed) -> np.ndarray:
    """The average of each count and its expectation at the overall rate, as one count says little about its rate."""
    exposed = _exp(o.offset)
    rate = (o.weights @ o.response + 0.5) / (o.weights @ exposed)
    return (o.response + rate * exposed) / 2


def _start_log(o: Observed, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    expected = _expected(o)
    return np.log(expected) + (o.response - expected) / expected, expected


def _negative_binomial(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    alpha = np.exp(p[0])
    constant = gammaln(o.response + alpha) - gammaln(alpha) - gammaln(o.response + 1)
    return constant + alpha * log_expit(p[0] - eta) + o.response * log_expit(eta - p[0])


def _negative_binomial_slopes(o: Observed, eta: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    alpha, below = np.exp(p[0]), expit(eta - p[0])
    moved = digamma(o.response + alpha) - digamma(alpha) + log_expit(p[0] - eta) + below
    return [alpha * moved - o.response * (1 - below)]


def _start_negative_binomial(o: Observed, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    expected = _expected(o)
    return np.log(expected) + (o.response - expected) / expected, expected / (1 + expected * np.exp(-p[0]))


def _draw_negative_binomial(o: Observed, eta: np.ndarray, p: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    alpha = np.exp(p[0])
    return generator.poisson(generator.gamma(alpha, _exp(eta) / alpha)).astype(float)


# Gamma with mean exp(η): (log alpha,)


def _gamma(o: Observed, eta: np.ndarray, p: np.ndarray) -> np.ndarray:
    alpha, y = np.exp(p[0]), o.response
    return alpha * (p[0] - eta) + (alpha - 1) * np.log(y) - alpha * y * _exp(-eta) - gammaln(alpha)


def _gamma_slopes(o: Observed, eta: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    alpha, y = np.exp(p[0]), o.response
    return [alpha * (p[0] - eta + 1 + np.log(y) - y * _exp(-eta) - digamma(alpha))]


def _are_counts(values: np.ndarray) -> np.ndarray:
    return (values >= 0) & (values == np.round(values))


_BINARY = Family(
    "bernoulli",
    "logit",
    (),
    _logit,
    _none,
    lambda o, e, p: o.trials * expit(e),
    _draw_logit,
    _start_logit,
    fits=lambda values: (values == 0) | (values == 1),
    expected="0 and 1, or two labels",
    of_labels=True,
    ends=2,
    bends=_logit_bends,
)
_NORMAL = Family(
    "gaussian",
    "identity",
    ("sigma",),
    _gaussian,
    _gaussian_slopes,
    lambda o, e, p: e,
    lambda o, e, p, generator: e + np.exp(p[0]) * generator.normal(size=e.shape),
    lambda o, p: (o.response, np.full(o.response.shape, np.exp(-2 * p[0]))),
    exact=True,
)
_PROBIT = replace(
    _BINARY,
    link="probit",
    log_density=_probit,
    mean=lambda o, e, p: o.trials * ndtr(e),
    draw=_draw_probit,
    start=_start_probit,
    bends=None,
)
_COUNTS = Family(
    "poisson",
    "log",
    (),
    _poisson,
    _none,
    lambda o, e, p: _exp(e),
    lambda o, e, p, generator: generator.poisson(np.exp(np.minimum(e, 40.0))).astype(float),
    _start_log,
    fits=_are_counts,
    expected="counts: 0, 1, 2, ...",
    ends=1,
    bends=_poisson_bends,
)
# By name and link; the first of a name is its default. Of ordered labels there are three until they are read.
FAMILIES: dict[tuple[str, str], Family] = {
    (family.name, family.link): family
    for family in (
        _NORMAL,
        replace(
            _NORMAL,
            name="t",
            parameters=("sigma", "nu"),
            log_density=_student,
            slopes=_student_slopes,
            start=_start_student,
            draw=lambda o, e, p, generator: e + np.exp(p[0]) * generator.standard_t(np.exp(p[1]), size=e.shape),
            exact=False,
            first={"nu": np.log(4.0)},
            heavy=True,
        ),
        _BINARY,
        _PROBIT,
        replace(_BINARY, name="binomial", of_labels=False, of_trials=True),
        replace(_PROBIT, name="binomial", of_labels=False, of_trials=True),
        _COUNTS,
        replace(
            _COUNTS,
            name="negativebinomial",
            parameters=("alpha",),
            log_density=_negative_binomial,
            slopes=_negative_binomial_slopes,
            draw=_draw_negative_binomial,
            start=_start_negative_binomial,
            bends=None,
        ),
        Family(
            "gamma",
            "log",
            ("alpha",),
            _gamma,
            _gamma_slopes,
            lambda o, e, p: _exp(e),
            lambda o, e, p, generator: generator.gamma(np.exp(p[0]), _exp(e) / np.exp(p[0])),
            lambda o, p: (np.log(o.response), np.full(o.response.shape, np.exp(p[0]))),
            fits=lambda values: values > 0,
            expected="numbers above 0",
        ),
        cumulative(3),
    )
}
