"""The most probable values of all variables together."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.rng import Rng
from meanmap.core.settings import by_name, whole_number
from meanmap.core.types import Seed
from meanmap.core.values import Value

__all__ = ["Configuration", "most_probable"]

# The number of values tried for each variable while the others are fixed, and the maximum number of rounds.
CANDIDATES, ROUNDS = 200, 20


@dataclass(frozen=True, eq=False, repr=False)
class Configuration(Value):
    """A value for every variable.

    Attributes
    ----------
    values : dict
    score : float
        The logarithm of their density, or probability, together, as `model.score` has it.
    """

    values: Mapping[Hashable, Any]
    score: float


def most_probable(
    model: Any, evidence: Mapping[Any, Any] | None = None, *, draws: int = 1000, rng: Seed = None
) -> Configuration:
    """The values of all variables that are most probable together, given some of them.

    Parameters
    ----------
    model : fitted model
        Any with `sample` and `score`, of `mm.KernelGraph`, `mm.bp.BayesianNetwork` or `mm.bp.DependencyNetwork`.
    evidence : mapping from names to single values, optional
        What is known.
    draws : int
        The number of configurations that are drawn initially.
    rng : None, int, Generator or JAX key
        Makes the draws reproducible.

    Returns
    -------
    Configuration

    Notes
    -----
    The best of the draws, then each variable in turn set to the best of the values that were drawn for it, until none
    improves (iterated conditional modes, Besag 1986): changing any one of these values does not make the configuration
    more probable. Where values repeat, as counts do, their density is that of their narrow bin.

    Examples
    --------
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=300)
    >>> model = mm.KernelGraph([("a", "b")]).fit({"a": a, "b": a**2 + 0.1 * rng.normal(size=300)})
    >>> found = most_probable(model, {"a": 1.0}, rng=0)
    >>> bool(abs(found.values["b"] - 1) < 0.3)
    True
    """
    known = by_name(evidence)
    drawn = model.sample(whole_number(draws, "draws"), known or None, rng=Rng.of(rng).generator)
    scores = model.score(drawn)
    best = int(np.argmax(scores))
    values, score = {name: column[best] for name, column in drawn.items()}, float(scores[best])
    for _ in range(ROUNDS):
        before = score
        for name, column in drawn.items():
            if name in known:
                continue
            tried = np.unique(column[:CANDIDATES])
            frame = {other: np.repeat(np.asarray([value]), len(tried)) for other, value in values.items()}
            scores = model.score(frame | {name: tried})
            if scores.max() > score:
                best = int(np.argmax(scores))
                values, score = values | {name: tried[best]}, float(scores[best])
        if score == before:
            break
    return Configuration(values, score)
