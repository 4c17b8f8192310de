"""Models with a function inside: a noisy simulator, and the compound Gamma."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from meanmap.core.arrays import parameter
from meanmap.core.errors import InputError, KindError
from meanmap.core.notes import note_lines
from meanmap.core.synonyms import own_words
from meanmap.core.types import Axes, Data
from meanmap.ep.calling import is_host_function
from meanmap.ep.factor import common_plate
from meanmap.ep.factors.blackbox import BlackBox, Density
from meanmap.ep.factors.precision import Gaussian
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.infer import infer
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.models.summary import Summarised, Summary
from meanmap.ep.variables import Argument, Given, Variable, read_given
from meanmap.families import Family, Gamma, Normal

__all__ = ["Program", "compound_gamma", "simulator"]


@dataclass(frozen=True, eq=False, repr=False)
class Program(Summarised):
    """The posterior of the named parameters of a model.

    Attributes
    ----------
    title : str
        What was fitted, in words.
    parameters : dict of str to Family
        Beliefs by name.
    posterior : Posterior
        What inference returned.
    """

    title: str
    parameters: dict[str, Family]
    posterior: Posterior

    def __getitem__(self, name: str) -> Family:
        if name not in self.parameters:
            raise KeyError(f"{name!r}; the parameters are {', '.join(map(repr, self.parameters))}")
        return self.parameters[name]

    def summary(self, confidence: float = 0.95) -> Summary:
        """The table of parameters, with intervals of this probability."""
        tables = [Summary.of([name], law, confidence) for name, law in self.parameters.items()]
        columns: dict[str, Any] = {
            field: np.concatenate([getattr(table, field) for table in tables])
            for field in ("mean", "sd", "low", "high", "positive")
        }
        return Summary(names=tuple(self.parameters), confidence=confidence, **columns)

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw every parameter with its interval; returns the matplotlib Axes."""
        return self.summary().plot(ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return {
            "model": self.title,
            "parameters": self.summary().to_dict(),
            "log_evidence": self.log_evidence,
            "converged": bool(self.report.converged),
            "notes": list(self.report.notes),
        }

    def __str__(self) -> str:
        how = f"{self.report.status} after {self.report.steps} sweeps"
        notes = "".join(f"\n{line}" for line in note_lines(self.report.notes))
        return f"{self.title}\n  log evidence: {self.log_evidence:.6g}\n  inference: {how}{notes}\n{self.summary()}"


@own_words
def simulator(
    function: Callable[..., Any],
    parameters: Mapping[str, Family],
    *settings: object,
    observed: Data,
    noise_sd: object,
    random: bool = False,
    **options: Any,
) -> Program:
    """The parameters of any program, from its outputs: observed = function(parameters, settings) + Gaussian noise.

    Parameters
    ----------
    function : callable
        From one value of each parameter, then one of each setting, to one number. Any Python function; a function that
        JAX can trace is compiled.
    parameters : dict of str to Family
        The prior of each: a Normal, Gamma or Beta.
    *settings : array_like (n,)
        Inputs of the program at each observation, such as a time.
    observed : array_like (n,)
        The outputs.
    noise_sd : number or (n,) array
        Standard deviation of the noise of each observation.
    random : bool
        Whether the function is random: it then takes a JAX key (or a `numpy.random.Generator`) first.
    **options
        Passed on to `meanmap.ep.infer`; `messages=` says how messages are computed.

    Notes
    -----
    A function without randomness gives one factor, the likelihood of all observations: the belief about each parameter
    is the projection of its exact marginal, by quadrature for up to two parameters and by importance sampling from the
    prior beyond; a note says where a Gamma or Beta has not its standard deviation. A function
    that draws is one factor for each observation, a plate, with damping 0.5; beliefs about different parameters are
    then independent, and their standard deviations are too small if the parameters are correlated given the data.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from meanmap import ep
    >>> t = np.linspace(0, 3, 20)
    >>> fit = ep.models.simulator(
    ...     lambda rate, t: jnp.exp(-rate * t), {"rate": ep.Gamma(2.0, 2.0)}, t, observed=np.exp(-1.5 * t), noise_sd=0.1
    ... )
    >>> bool(abs(fit["rate"].mean() - 1.5) < 0.1)
    True
    """
    if not isinstance(parameters, Mapping) or not parameters:
        raise KindError(f"parameters is {parameters!r}; expected a prior by name, such as {{'rate': ep.Gamma(2, 1)}}.")
    for name, prior in parameters.items():
        if not isinstance(prior, Family) or prior.shape != () or prior.event_shape != ():
            raise KindError(
                f"the prior of {name!r} is {prior!r}; expected that of a single number, such as ep.Normal(0, 1)."
            )
    values = read_given(observed, "observed").values
    if values.ndim != 1:
        raise InputError("observed is one number; expected one for each run of the program: pass [observed].")
    sds = parameter(noise_sd, "noise_sd")
    unknown = [Variable(name, prior) for name, prior in parameters.items()]
    told = [read_given(value, f"setting {at}") for at, value in enumerate(settings)]
    common_plate(
        "the program",
        {"observed": Given(values, "observed"), "noise_sd": Given(sds, "noise_sd")}
        | {each.name: each for each in told},
    )
    if random:
        out = Variable("output", Normal, plate=len(values))
        model = FactorGraph(
            BlackBox(function, *unknown, *told, out, random=True, name="program"),
            Gaussian(out, observed=values, precision=1 / sds**2),
        )
        options = {"damping": 0.5, **options}
    else:
        likelihood = _likelihood(function, [*unknown, *told], values, sds)
        model = FactorGraph(Density(likelihood, *unknown, name="program"))
    post = infer(model, **options)
    title = f"program with {len(unknown)} unknown numbers, {len(values)} observations"
    return Program(title, {name: post[name] for name in parameters}, post)


def _likelihood(
    function: Callable[..., Any], arguments: list[Argument], observed: np.ndarray, sds: np.ndarray
) -> Callable[..., Any]:
    """Σ log N(observedᵢ; function(parameters, settingsᵢ), sdᵢ²), as a function of one value of each parameter."""
    told = [argument.values for argument in arguments if argument.known]
    host = is_host_function(function, tuple(arguments), "the program")
    library = np if host else jnp
    constant = -(np.log(sds * np.sqrt(2 * np.pi)) * np.ones_like(observed)).sum()

    def log_likelihood(*numbers):
        if host:
            each = (np.broadcast_to(values, observed.shape).tolist() for values in told)
            rows = zip(*each, strict=True) if told else [()] * len(observed)
            outputs = np.array([function(*numbers, *row) for row in rows])
        else:
            each = [jnp.broadcast_to(jnp.asarray(values), observed.shape) for values in told]
            one = lambda *row: function(*numbers, *row)  # noqa: E731
            outputs = jax.vmap(one)(*each) if told else one()
        return constant - library.sum(((observed - outputs) / sds) ** 2) / 2

    return log_likelihood


def compound_gamma(
    x: Data, *, mean: float = 0.0, shape: float = 1.0, rate_shape: float = 1.0, rate_rate: float = 1.0, **options: Any
) -> Program:
    """x ~ N(mean, 1/precision), precision ~ Gamma(shape, rate), rate ~ Gamma(rate_shape, rate_rate).

    The precision of normal numbers, with a prior that is vague about its scale.

    Parameters
    ----------
    x : array_like (n,)
        Numbers.
    mean : number
        Their known mean.
    shape, rate_shape, rate_rate : number
        Of the two Gammas, as in Jitkrittum et al. (2015), section 4, where all are 1.
    **options
        Passed on to `meanmap.ep.infer`.

    Notes
    -----
    Two exact factors and one by quadrature over both of its variables. The outgoing message of that one is improper
    where the prior decays slower than every Gamma; the belief is not.

    Examples
    --------
    >>> from meanmap import ep
    >>> fit = ep.models.compound_gamma([1.0, -2.0, 0.5])
    >>> fit["precision"]
    Gamma(shape=2.268, rate=3.363, mean=0.6744, sd=0.4478)
    """
    values = read_given(x, "x").values
    a, b, c = (
        float(parameter(value, name, axes=0))
        for value, name in ((shape, "shape"), (rate_shape, "rate_shape"), (rate_rate, "rate_rate"))
    )
    centre = float(parameter(mean, "mean", axes=0, positive=False))
    rate, precision = Variable("rate", Gamma(b, c)), Variable("precision", Gamma)

    def log_gamma(rate, precision):
        return a * jnp.log(rate) + (a - 1) * jnp.log(precision) - rate * precision - gammaln(a)

    model = FactorGraph(
        Density(log_gamma, rate, precision, name="compound"),
        Gaussian(centre, observed=values, precision=precision),
    )
    post = infer(model, **options)
    return Program("compound Gamma", {"precision": post["precision"], "rate": post["rate"]}, post)
