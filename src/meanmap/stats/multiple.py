"""Multiple testing: p-values and bets corrected for the number of tests."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.containers import is_frame
from meanmap.core.errors import EmptyError, KindError, ParameterError
from meanmap.core.language import a_type
from meanmap.core.settings import is_number, one_of, probability
from meanmap.core.synonyms import own_words
from meanmap.core.values import Value, entries_of, frame_of, is_sequence, plain
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged
from meanmap.stats.pages import adjusted_page

__all__ = ["Adjusted", "adjusted", "holm"]

# Rounding of a p-value times a number of tests, so that .05 counts as at most .05.
ROUNDING = 1e-12
METHODS = {
    "holm": "Holm: the chance of any false rejection is at most the level",
    "benjamini-yekutieli": "Benjamini and Yekutieli: the expected share of false rejections is at most the level",
    "e-bh": "e-BH: the expected share of false rejections is at most the level",
}
# Names of a procedure that holds only for tests that are independent or positively dependent.
_UNDER_INDEPENDENCE = ("bh", "fdr", "fdr_bh", "benjamini-hochberg", "BH")


@dataclass(frozen=True, eq=False, repr=False)
class Adjusted(Paged, Value):
    """Results of tests, corrected for multiplicity.

    `mm.stats.adjusted` returns it: `found.pvalues`, `found.rejected(0.05)`, `print(found)`, `found.to_frame()`.

    Attributes
    ----------
    pvalues : dict
        Adjusted p-values by name, in the given order: the smallest level at which each hypothesis is rejected.
    method : str
        The correction, and the error rate that it controls.
    least : float
        The smallest level at which these tests can reject anything: above 0 for permutation p-values.
    """

    pvalues: dict[Any, float]
    method: str
    least: float

    @own_words
    def rejected(self, level: float = 0.05) -> list[Any]:
        """The names of the hypotheses rejected at this level, in the given order."""
        if self.least > probability(level, "level", 0.05) * (1 + ROUNDING):
            raise ParameterError(
                f"level is {level:g}; with this many draws these {len(self.pvalues)} tests cannot reject below level "
                f"{self.least:.3g}. Run them with {int(np.ceil(self.least / level))} times as many "
                "(n_permutations=)."
            )
        return [name for name, pvalue in self.pvalues.items() if pvalue <= level * (1 + ROUNDING)]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain Python values, ready for JSON."""
        return plain(self, "method", "pvalues")

    def to_frame(self) -> Any:
        """A pandas frame with the column `pvalue`, and a row for each hypothesis by its name."""
        return frame_of({"pvalue": list(self.pvalues.values())}, list(self.pvalues))

    def _as_page(self, brief: bool = False) -> Page:
        return adjusted_page(self)

    def __str__(self) -> str:
        shown = sorted(self.pvalues.items(), key=lambda item: item[1])
        width = max(len(str(name)) for name in self.pvalues)
        return "\n".join([self.method, *(f"  {name!s:<{width}}  {pvalue:.4g}" for name, pvalue in shown)])


@own_words
def adjusted(results: Any, method: str = "holm") -> Adjusted:
    """Correct tests for multiplicity, so that error rates hold for all of them together.

    Parameters
    ----------
    results : mapping from names to results, or a sequence of them
        Results of tests, bets, drift monitors, or numbers: p-values, or e-values for "e-bh". Pass all tests that were
        made, not only those with small p-values. Entries of a sequence are named by their number, from 0.
    method : {"holm", "benjamini-yekutieli", "e-bh"}
        "holm" controls the probability of any false rejection (family-wise error rate). The others control the expected
        share of false rejections (false discovery rate), which has more power if many hypotheses are false: from
        p-values, or from e-values of bets and monitors.

    Returns
    -------
    Adjusted
        `found.pvalues` by name, `found.rejected(level)`.

    Notes
    -----
    All three are valid under any dependence between the tests, such as tests that share data: Holm (1979), Benjamini &
    Yekutieli (2001), e-BH (Wang & Ramdas 2022, eq. 3), which rejects the k largest of m e-values where the k-th is at
    least m / (k level). The p-value of a bet is its anytime-valid one; e-BH uses its current e-value. The time at which
    a bet is examined may depend on other bets only if their data are independent of its own.

    Examples
    --------
    >>> import meanmap as mm
    >>> found = mm.stats.adjusted({"age": 0.004, "height": 0.02, "weight": 0.03, "town": 0.6})
    >>> print(found)
    Holm: the chance of any false rejection is at most the level
      age     0.016
      height  0.06
      weight  0.06
      town    0.6
    >>> found.rejected(0.05)
    ['age']
    >>> mm.stats.adjusted([120.0, 0.3, 45.0], method="e-bh").rejected(0.05)
    [0, 2]
    """
    if method in _UNDER_INDEPENDENCE:
        raise ParameterError(
            f"method is {method!r}, the procedure of Benjamini and Hochberg, for tests that are independent or depend "
            "on each other positively; expected 'benjamini-yekutieli', which holds under any dependence, or 'holm'."
        )
    one_of(method, "method", METHODS)
    named = _named(results)
    if not named:
        raise EmptyError("results is empty; expected at least one test.")
    read = _evalue if method == "e-bh" else _pvalue
    pairs = [read(result, f"results[{name!r}]") for name, result in named.items()]
    values, least = np.array(pairs, dtype=float).T
    correct = (
        holm if method == "holm" else _benjamini_yekutieli if method == "benjamini-yekutieli" else _benjamini_hochberg
    )
    pvalues = dict(zip(named, correct(values).tolist(), strict=True))
    return Adjusted(pvalues, METHODS[method], float(correct(least).min()))


def holm(pvalues: np.ndarray) -> np.ndarray:
    """p-values adjusted by Holm's step-down procedure: the smallest times m, the next times m − 1, made monotone.

    Examples
    --------
    >>> holm(np.array([0.01, 0.5, 0.01])).tolist()
    [0.03, 0.5, 0.03]
    """
    order = np.argsort(pvalues, kind="stable")
    found = np.empty(len(pvalues))
    found[order] = np.maximum.accumulate(pvalues[order] * np.arange(len(pvalues), 0, -1))
    return np.minimum(found, 1.0)


def _benjamini_hochberg(pvalues: np.ndarray) -> np.ndarray:
    """p-values adjusted by Benjamini & Hochberg's step-up: the k-th smallest times m / k, made monotone."""
    order = np.argsort(-pvalues, kind="stable")
    m = len(pvalues)
    found = np.empty(m)
    found[order] = np.minimum.accumulate(pvalues[order] * m / np.arange(m, 0, -1))
    return np.minimum(found, 1.0)


def _benjamini_yekutieli(pvalues: np.ndarray) -> np.ndarray:
    """Benjamini & Hochberg's times 1 + 1/2 + ... + 1/m, valid under any dependence."""
    return np.minimum(_benjamini_hochberg(pvalues) * np.sum(1 / np.arange(1, len(pvalues) + 1)), 1.0)


def _named(results: Any) -> dict[Any, Any]:
    """Results by name: keys of mappings, the index of pandas series, else numbers."""
    if is_frame(results):
        raise KindError("results is a table; expected one column of it, such as results['p'], or a list of p-values.")
    if (named := entries_of(results)) is not None:
        if len(named) < len(results):
            raise ParameterError("results has one name for several tests; expected a name for each.")
        return named
    if is_sequence(results):
        return dict(enumerate(results))
    if np.ndim(results) == 1:
        return dict(enumerate(np.asarray(results).tolist()))
    raise KindError(
        f"results is {a_type(results)}; expected a mapping from names to results of tests, or a list of them."
    )


def _pvalue(result: Any, argument: str) -> tuple[float, float]:
    """A p-value, and the smallest that it could have been."""
    if is_number(result):
        value, least = float(result), 0.0
    elif is_number(getattr(result, "pvalue", None)):
        draws = getattr(getattr(result, "null", None), "draws", ())
        value, least = float(result.pvalue), 1 / (1 + len(draws)) if len(draws) else 0.0
    elif is_number(getattr(result, "evalue", None)):  # of monitors, by Markov's inequality
        value, least = 1 / max(1.0, float(result.evalue)), 0.0
    else:
        raise KindError(f"{argument} is {a_type(result)}; expected the result of a test, or its p-value.")
    if not 0 <= value <= 1:
        raise ParameterError(f"{argument} is {value:g}; expected a p-value, from 0 to 1.")
    return value, least


def _evalue(result: Any, argument: str) -> tuple[float, float]:
    """One over an e-value, which is corrected as p-values are by Benjamini & Hochberg, and the smallest possible."""
    value = result if is_number(result) else getattr(result, "evalue", None)
    if not is_number(value):
        tested = is_number(getattr(result, "pvalue", None))
        otherwise = " For its p-value use method='holm' or 'benjamini-yekutieli'." if tested else ""
        raise KindError(f"{argument} is {a_type(result)}; expected a bet, a drift monitor or an e-value.{otherwise}")
    if not value >= 0:
        raise ParameterError(f"{argument} is {value:g}; expected an e-value, from 0 on.")
    return (1 / float(value) if value > 0 else np.inf), 0.0
