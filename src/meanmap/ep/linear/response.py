"""The response of a formula as its family requires it, or an error that explains why it does not fit."""

from typing import Any, NamedTuple

import numpy as np

from meanmap.core.arrays import is_categorical
from meanmap.core.errors import NonFiniteError, ParameterError
from meanmap.core.values import says_yes
from meanmap.ep.linear.family import Family
from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.levels import counted, not_numbers
from meanmap.ep.linear.limits import LIMITS

__all__ = ["Response", "of_zeros_and_ones", "read_response", "without_trials"]


class Response(NamedTuple):
    """Values, numbers of trials, the name, and the limits of a censored or truncated response, with this word."""

    values: np.ndarray
    trials: np.ndarray
    name: str
    low: np.ndarray | float = -np.inf
    high: np.ndarray | float = np.inf
    limits: str = ""


def read_response(formula: Formula, law: Family) -> Response:
    """The response as its family requires it."""
    found, family = formula.matrices.response, law.name
    values, name = np.asarray(found.design_matrix, float), str(found.name)
    one = np.ones(len(values))
    numbers = values[:, 0] if values.ndim > 1 else values
    if not np.isfinite(numbers).all():
        at = int(np.argmin(np.isfinite(numbers)))
        raise NonFiniteError(f"the response {name!r} is {numbers[at]} in row {formula.rows.kept[at]}.")
    if found.kind == "proportion":
        if not law.of_trials:
            raise ParameterError(f"{name} is a share of trials; type family='binomial'.")
        return Response(_within(values[:, 0], values[:, 1], name), values[:, 1], name)
    limits = next((each for each in LIMITS if name.startswith(f"{each}(")), "")
    if limits:
        values, low, high = values.T
        _demand(values, law.fits(values), name, family, law.expected)
        if limits == "censored" and ((low == -np.inf).all() or (high == np.inf).all()):
            side = "below" if (low == -np.inf).all() else "above"
            raise ParameterError(
                f"every row of {name!r} is known only to be {side} its value, so that there is no best estimate; "
                "expected some rows with status 'none' or 'interval'."
            )
        return Response(values, one, name, low, high, limits)
    if law.of_trials:
        raise ParameterError(
            f"the response {name!r} of family='binomial' has no number of trials; type p(successes, trials) ~ ..., or "
            "family='bernoulli' for zeros and ones."
        )
    if found.kind == "categoric":
        values, name = _of_two(values, found, name, law, formula)
    _demand(values, law.fits(values), name, family, law.expected)
    none = law.ends > 0 and not values.any()  # counts of 0
    if values.min() == values.max() and not law.of_labels and not none:
        raise ParameterError(f"the response {name!r} is {values[0]:g} in all {len(values)} rows; it must vary.")
    return Response(values, one, name)


def of_zeros_and_ones(response: Response, law: Family) -> list[str]:
    """The note on a response of zeros and ones under a family of numbers with a scale."""
    if "sigma" not in law.parameters or response.limits or not np.isin(response.values, (0, 1)).all():
        return []
    said = (
        f"the response {response.name!r} has only the values 0 and 1, and family={law.name!r} models its mean as "
        "linear and its variance as constant: type family='bernoulli' for probabilities"
    )
    return [said]


def without_trials(response: Response) -> list[str]:
    """The note on rows of a binomial response that have no trials."""
    count = int((response.trials == 0).sum())
    if not count:
        return []
    rows = "1 row of {} has" if count == 1 else f"{count} rows of {{}} have"
    return [f"{rows.format(repr(response.name))} 0 trials: they count as nothing"]


def _of_two(values: np.ndarray, found: Any, name: str, law: Family, formula: Formula) -> tuple[np.ndarray, str]:
    """Ones for the label that the formula names; of two labels, for the one that means yes, or else the second.

    Labels with an order of their own keep it.
    """
    column, kept = formula.rows.frame.get(name), formula.rows.kept
    if not law.of_labels:
        said = "labels" if column is None or is_categorical(column) else not_numbers(column.to_numpy(), kept)
        more = "" if "text that" in said else " For two labels type family='bernoulli'."
        raise ParameterError(f"the response {name!r} holds {said}; expected numbers for family={law.name!r}.{more}")
    if values.ndim == 1:
        return values, name
    if values.shape[1] != 2:
        labels = np.array(list(map(str, found.levels)), object)[values.argmax(1)]
        often = found.levels[int(values.sum(0).argmax())]
        raise ParameterError(
            f"the response {name!r} holds {values.shape[1]} labels: {counted(labels, kept)}; expected two, or the "
            f"label to be modelled: {name}['{often}'] ~ ..."
        )
    ordered = is_categorical(column)
    said = [at for at, level in enumerate(found.levels) if says_yes(level)]
    at = said[0] if len(said) == 1 and not ordered else 1
    return values[:, at], f"{name}[{found.levels[at]}]"


def _within(successes: np.ndarray, trials: np.ndarray, name: str) -> np.ndarray:
    if (trials < 0).any() or not trials.any():
        at = int(np.argmin(trials))
        raise ParameterError(f"the response {name!r} has {trials[at]:g} trials at row {at}; expected 1 or more.")
    fits = (successes >= 0) & (successes <= trials) & (trials == np.round(trials))
    _demand(successes, fits & (successes == np.round(successes)), name, "binomial", "integers from 0 to the trials")
    return successes


def _demand(values: np.ndarray, fits: np.ndarray, name: str, family: str, expected: str) -> None:
    if not fits.all():
        at = int(np.argmin(fits))
        raise ParameterError(
            f"the response {name!r} is {values[at]:g} at row {at}; family={family!r} expects {expected}."
        )
