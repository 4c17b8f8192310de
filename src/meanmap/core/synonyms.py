"""Arguments of public functions: for other libraries' names an error gives the name here; switches are checked."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from meanmap.core.containers import handed_over
from meanmap.core.errors import NonFiniteError
from meanmap.core.language import with_article
from meanmap.core.meant import did_you_mean
from meanmap.core.settings import is_number, truth

__all__ = ["made_by", "own_words"]

P = ParamSpec("P")
R = TypeVar("R")
# What people type, and the argument they mean; the first one that a function has counts.
MEANT = {
    "seed": ("rng",),
    "random_state": ("rng",),
    "key": ("rng",),
    "alpha": ("level", "confidence", "concentration", "shape", "a"),
    "level": ("confidence",),
    "confidence": ("level",),
    "n_perm": ("n_permutations",),
    "permutations": ("n_permutations",),
    **dict.fromkeys(("loc", "location", "mean"), ("mean", "location")),
    "mu": ("mean", "location", "z"),
    **dict.fromkeys(("sd", "std", "stddev"), ("noise", "precision", "variance")),
    "sigma": ("noise", "scale", "precision", "variance"),
    "scale": ("precision", "variance", "rate"),
    **dict.fromkeys(("variance", "var"), ("variance", "precision")),
    "precision": ("variance", "covariance"),
    **dict.fromkeys(("cov", "covariance_matrix"), ("covariance",)),
    "beta": ("rate", "b"),
    **dict.fromkeys(("p", "prob", "probs", "probability", "probabilities"), ("p", "probability", "probabilities")),
    **dict.fromkeys(("lower", "lo", "minimum"), ("low",)),
    **dict.fromkeys(("upper", "hi", "maximum"), ("high",)),
    **dict.fromkeys(("df", "dof", "nu"), ("degrees",)),
    **dict.fromkeys(("y", "obs"), ("observed",)),
}
# How other words for spread become the argument that is meant.
_SD = ("sd", "std", "stddev", "sigma", "scale")
FORMULAS = {
    **dict.fromkeys(((word, "precision") for word in _SD), "1/{}**2"),
    **dict.fromkeys(((word, "variance") for word in _SD), "{}**2"),
    **dict.fromkeys(((word, "precision") for word in ("variance", "var")), "1/{}"),
    ("precision", "variance"): "1/{}",
    ("precision", "covariance"): "numpy.linalg.inv({})",
    ("scale", "rate"): "1/{}",
}
# A value that takes more letters is not repeated.
_LONG = 40
# A level of a test below this is meant by `level`, and a confidence above it.
HALF = 0.5
# How rows are grouped, and which functions accept it.
_SAMPLES = "two_sample_test, k_sample_test, two_sample_effect, k_sample_effect, closeness_test"
_EXCHANGED = f"{_SAMPLES}, independence_test, joint_independence_test, conditional_independence_test"
DESIGNS = {"weights": _SAMPLES, "clusters": _EXCHANGED, "within": f"{_EXCHANGED}, DriftMonitor.of"}
# What functions have no argument for, and what to type.
_OBSERVED = "its last argument is a Variable: observe that by another factor, such as ep.Gaussian(out, observed=y)"
_OUTPUT = "type the output as the last argument: ep.BlackBox(function, x, out)"
_DATA = "type the data as another argument of the function: ep.Density(log_factor, x, y)"
_DRAWS = "draws are made of what it returns: type mm.io.posterior_draws(post, 1000)"
_SAMPLER = ("samples", "draws", "n_samples", "num_samples", "chains", "tune", "warmup")
ELSEWHERE = {
    ("BlackBox", "observed"): _OBSERVED,
    **dict.fromkeys((("BlackBox", word) for word in ("out", "output")), _OUTPUT),
    **dict.fromkeys((("Density", word) for word in ("observed", "data")), _DATA),
    **dict.fromkeys((("infer", word) for word in _SAMPLER), _DRAWS),
    **dict.fromkeys((("infer", word) for word in ("iterations", "n_iter", "max_iter")), "type sweeps=1000"),
}


def own_words(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse `seed=` and the like with this function's own name for it, and switches other than True and False.

    Tables and arrays that other libraries hand over by a protocol are read before it is called, each once. Signature,
    documentation and types stay those of the function.

    Raises
    ------
    TypeError
        Naming the argument to type instead; and of a method that is called on its class.
    ParameterError
        Of a switch that is neither True nor False, such as "no".

    Examples
    --------
    >>> @own_words
    ... def draw(n, rng=None):
    ...     return n
    >>> draw(3, seed=0)
    Traceback (most recent call last):
    TypeError: draw() takes no seed=; here it is called rng: type rng=0.
    """
    known = inspect.signature(function).parameters
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2] if next(iter(known), "") == "self" else ""
    open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())

    called = function.__qualname__.removesuffix(".__init__")
    name = called if function.__name__ == "__init__" else function.__name__
    drops = "missing" in known and known["missing"].default == "raise"
    switches = [name for name, each in known.items() if isinstance(each.default, bool)]
    places = {
        name: place for place, (name, each) in enumerate(known.items()) if each.kind is each.POSITIONAL_OR_KEYWORD
    }

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if owner and not (args and owner in (each.__name__ for each in type(args[0]).__mro__)):
            raise TypeError(f"{called}() was called on the class; make {with_article(owner)} first.")
        for word in [each for each in kwargs if each not in known]:
            meant = next((each for each in MEANT.get(word, ()) if each in known), None)
            if meant:
                raise TypeError(f"{name}() takes no {word}=; {_instead(kwargs[word], word, meant)}.")
            if word in ("alpha", "level"):
                raise TypeError(
                    f"{name}() takes no {word}=: it returns a p-value, which "
                    f"result.reject({kwargs[word]!r}) compares with a level."
                )
            if word in DESIGNS:
                raise TypeError(f"{called}() takes no {word}=; these do: {DESIGNS[word]}.")
            if not open_ended and (called, word) in ELSEWHERE:
                raise TypeError(f"{called}() takes no {word}=; {ELSEWHERE[called, word]}.")
            if not open_ended and (meant := did_you_mean(word, known)):
                raise TypeError(f"{called}() takes no {word}={meant}.")
        for switch in switches:
            given = {switch: args[places[switch]]} if places.get(switch, len(args)) < len(args) else kwargs
            if switch in given:
                truth(given[switch], switch)
        args = tuple(map(handed_over, args))  # pyright: ignore[reportAssignmentType]
        try:
            return function(*args, **{each: handed_over(value) for each, value in kwargs.items()})  # pyright: ignore[reportCallIssue]
        except NonFiniteError as problem:
            if drops and problem.droppable and kwargs.get("missing", "raise") == "raise":
                problem.args = (f"{str(problem).removesuffix('.')}, or pass missing='drop'.",)
                problem.droppable = False
            raise

    return call


def made_by(how: str) -> Callable[[type[R]], type[R]]:
    """A decorator of classes with fields that users do not know: who calls one with too few of them, such as with
    data, learns what to type.

    Examples
    --------
    >>> @made_by("Counts.of(x)")
    ... class Counts:
    ...     def __init__(self, states, total): ...
    >>> Counts([1.0, 2.0])
    Traceback (most recent call last):
    TypeError: Counts() is not called by itself; type Counts.of(x).
    """

    def decorate(cls: type[R]) -> type[R]:
        plain = cls.__init__
        _, *fields = inspect.signature(plain).parameters.values()
        needed = sum(each.default is each.empty for each in fields)

        @functools.wraps(plain)
        def init(self: R, *args: Any, **kwargs: Any) -> None:
            if len(args) + len(kwargs) < needed:
                raise TypeError(f"{cls.__name__}() is not called by itself; type {how}.")
            plain(self, *args, **kwargs)

        cls.__init__ = init
        return cls

    return decorate


def _instead(value: object, word: str, meant: str) -> str:
    """What the argument is here, and what to type."""
    formula = FORMULAS.get((word, meant))
    if formula is None:
        typed = repr(_converted(value, word, meant)) if isinstance(value, str | list | tuple | None) else word
        typed = f"{_converted(value, word, meant)}" if is_number(value) else typed
        return f"here it is called {meant}: type {meant}={typed if len(typed) <= _LONG else word}"
    return f"here it is the {meant}: type {meant}={formula.format(value if is_number(value) else word)}"


def _converted(value: object, word: str, meant: str) -> object:
    """The value as the argument that is meant takes it: a level of 0.05 is a confidence of 0.95."""
    if {word, meant} not in ({"alpha", "confidence"}, {"level", "confidence"}) or not is_number(value):
        return value
    other = value < HALF if meant == "confidence" else value > HALF
    return round(1 - value, 12) if other else value
