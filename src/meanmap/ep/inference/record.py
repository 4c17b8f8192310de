"""The record of a run: how far beliefs moved, what happened to which message of which factor, and the status."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.core.language import in_digits, in_few_words
from meanmap.core.report import Report
from meanmap.ep.calls import Spent, in_words
from meanmap.ep.doubt import ENOUGH
from meanmap.ep.factor import Factor
from meanmap.ep.inference.priorless import nearly_singular, without_prior
from meanmap.ep.inference.sampled import LARGE, Sampled
from meanmap.ep.inference.verdict import Ending, Verdict
from meanmap.ep.oracles.host import HostOracle
from meanmap.ep.oracles.sampling import FEW, Sampler
from meanmap.ep.sweeps.plan import fetched
from meanmap.ep.sweeps.sweep import EVENTS
from meanmap.families import Family

__all__ = ["NOTICED", "OF_NO_FIXED_POINT", "Record"]

# In a note, at most this many members of a factor are named.
_NAMED = 5

# A single call of a function that takes more seconds is in a note.
_SLOW = 1.0

# Samples of an effective size below this are too few points for a mean and a variance.
_LEAST_POINTS = 5.0
# Numbers above this have squares that are infinite.
_SQUARES = 1e154
# Where a function has no value on a larger share of its input, the status says so.
NOTICED = 1e-3
# What is said of the log evidence of a run that did not converge.
OF_NO_FIXED_POINT = "which may be off by any amount, as messages have not converged"
# Doubt of samples, and of messages learned from them, is reported beyond this: they always have an error.
_DOUBTED_SAMPLES = 0.1


class Record:
    """Collects what the sweeps of one run report."""

    def __init__(
        self,
        factors: tuple[Factor, ...],
        hosts: dict[int, HostOracle],
        spent: dict[str, Spent] | None = None,
        choices: dict[str, str] | None = None,
    ):
        self.factors, self.hosts = factors, hosts
        # By factor which way to messages was chosen, in words.
        self.choices = choices or {}
        # By factor what its function on the host has taken so far, and when the run began.
        self.spent, self.began = {} if spent is None else spent, time.perf_counter()
        self.asked = dict.fromkeys(hosts, 0)
        self.residuals: list[float] = []
        self.totals = np.zeros((len(factors), len(EVENTS)), int)
        # What happened in the last sweep, and whether messages were left out of it.
        self.last: tuple[np.ndarray, ...] = (np.zeros((len(EVENTS), 0), bool),) * len(factors)
        self.stuck = False
        self.effective: dict[str, np.ndarray] = {}
        self.doubt: dict[str, np.ndarray] = {}
        self.sampled = Sampled()
        # By factor, the share of the input of each member on which its function returned no number, and notes on
        # this.
        self.undefined: dict[str, np.ndarray] = {}
        self.without_value: tuple[str, ...] = ()
        self.converged = self.interrupted = False
        self.starts: list[str] = []
        self.advice: tuple[str, ...] = ()
        # Whether notes say that standard deviations are too small or too large.
        self.narrow = self.wide = False
        # The note that labels are joined in loops.
        self.in_loops = ""
        # Where weighted draws disagree with beliefs, and which other mode there is, in words.
        self.apart = self.elsewhere = ""
        # Which means and standard deviations of single numbers are not those of the posterior, in words.
        self.projected = ""
        self.at_once = False
        # The note that a function leaves the range of its output.
        self.beyond = ""
        # Notes on functions of two numbers that took many evaluations.
        self.rough: tuple[str, ...] = ()
        # What the log evidence leaves out, or is an integral over, in words.
        self.remarks: tuple[str, ...] = ()
        # Why the data are impossible under the model, in words.
        self.impossible = ""
        # Which densities leave no posterior, in words.
        self.outgrown = ""

    def add(self, verdict: Verdict) -> None:
        """One more sweep."""
        self.residuals.append(verdict.moved)
        self.last, self.stuck, self.beyond = verdict.events, verdict.stuck, verdict.beyond
        self.totals += [[int(row.sum()) for row in event] for event in self.last]
        for factor, one in zip(self.factors, verdict.happened, strict=True):
            stated = (self.effective, one.effective), (self.doubt, one.doubt), (self.undefined, one.undefined)
            for kept, value in stated:
                if value is not None:
                    kept[factor.name] = np.array(fetched(value)[: factor.plate] if factor.plate else value)
        self.sampled = Sampled.of(self.factors, verdict.happened)

    @property
    def doubted(self) -> bool:
        """Whether a message of the last sweep may be off by a standard deviation, or by anything."""
        return any((~(doubt < 1)).any() for doubt in self.doubt.values())

    def end(self, ending: Ending) -> None:
        """No sweep follows."""
        self.converged, self.at_once, self.impossible = ending.converged, ending.at_once, ending.impossible
        self.beyond = ending.beyond or self.beyond
        if ending.at_once:
            self.residuals[-1] = 0.0

    def started_anew(self, share: float) -> None:
        """Sweeps made no progress, and the run restarts with this share of each step."""
        self.starts.append(f"after sweep {len(self.residuals)} with {share:.2g} of each step")

    def report(self, policy: str, log_evidence: float, found: Mapping[str, Family]) -> Report:
        """The run, which `found` these beliefs, in words and counts; the notes say which members of which factor."""
        sampling = self.sampled.in_deviations(found)
        priorless = "" if self.beyond or self.interrupted else without_prior(self.factors, found)
        singular = "" if priorless or self.interrupted else nearly_singular(self.factors, found)
        status = self._status(sampling, priorless, singular)
        # Only beliefs must be distributions: that messages are none is no doubt by itself, where it was allowed.
        harmless = EVENTS[:1] if policy == "allow" and status == "converged" and np.isfinite(log_evidence) else ()
        notes = [
            *self._of_the_last_sweep(policy, harmless),
            *self._of_few_points(),
            *self._of_doubt(),
            *self.without_value,
            *self.sampled.notes(sampling),
            *self._together(),
            *(f"{factor.name}: {note}" for factor, oracle in self._on_host() for note in oracle.notes(factor)),
            *self._of_slow_calls(),
            *self.rough,
            *filter(None, [singular, *(self.remarks if np.isfinite(log_evidence) else ())]),
            *self.advice,
            *filter(None, (self.in_loops, self.elsewhere, self.apart)),
        ]
        return Report(
            status,
            self.converged and not (self.impossible or self.outgrown),
            len(self.residuals),
            self.residuals,
            self._counts(harmless),
            self._with_the_end(notes, log_evidence, priorless),
            self._seconds() | self.sampled.measures(sampling),
            {f"{name}: messages by": way for name, way in self.choices.items()},
        )

    def _on_host(self) -> list[tuple[Any, HostOracle]]:
        """The factors whose oracles are on the host, and these."""
        return [(self.factors[at], oracle) for at, oracle in self.hosts.items()]

    def _counts(self, harmless: tuple[str, ...]) -> dict[str, int]:
        """Counts of unusual treatment of messages, and of calls on the host."""
        counts = {
            f"{factor.name}: {what}": int(total)
            for factor, row in zip(self.factors, self.totals, strict=True)
            for what, total in zip(EVENTS, row, strict=True)
            if total and what not in harmless
        }
        for (factor, oracle), asked in zip(self._on_host(), self.asked.values(), strict=True):
            counts[f"{factor.name}: requests to the host"] = asked
            counts |= {f"{factor.name}: {what}": int(number) for what, number in oracle.counts(factor).items()}
        return counts | {
            f"{name}: evaluations of its function": spent.evaluations for name, spent in self.spent.items()
        }

    def _of_the_last_sweep(self, policy: str, harmless: tuple[str, ...]) -> list[str]:
        """What happened to messages in the last sweep, unless it is harmless, and the starts before it."""
        notes = [self.beyond] if self.beyond and self.stuck else []
        for factor, event in zip(self.factors, self.last, strict=True):
            for what, flags in zip(EVENTS, event, strict=True):
                if flags.any() and what not in harmless:
                    treatment = f" ({policy})" if what == EVENTS[0] else " (message kept)"
                    notes.append(f"in the last sweep {factor.name}{_where(flags)}: {what}{treatment}")
        if self.starts:
            notes.append(f"steps made no progress, and the run restarted {', and '.join(self.starts)}")
        return notes

    def _of_few_points(self) -> list[str]:
        """Where few of the points of an oracle have weight."""
        notes = []
        for name, size in self.effective.items():
            low = size < FEW
            if low.any():
                notes.append(f"{name}{_where(low)}: effective sample size below {FEW}, the least {size.min():.3g}")
            if size.min() < _LEAST_POINTS:
                notes.append(
                    f"{name}: the points missed most of its mass: do not use its beliefs; for a function of "
                    "JAX type messages=ep.MCMC(), otherwise give narrower priors"
                )
        return notes

    def _of_doubt(self) -> list[str]:
        """Where messages may be further off than they should be."""
        notes = []
        for name, doubt in self._stated().items():
            high = doubt > (_DOUBTED_SAMPLES if name in self._with_errors else ENOUGH)
            if high.any():
                off = _off(doubt[high].max(), name in self._predicted)
                notes.append(f"{name}{_where(high)}: beliefs may be off by {off}")
        return notes

    def _stated(self) -> dict[str, np.ndarray]:
        """By factor, the doubt of its members; of messages without an error at convergence nothing is known."""
        nothing = np.inf if self.converged else 0.0
        return {name: np.where(np.isnan(doubt), nothing, doubt) for name, doubt in self.doubt.items()}

    @property
    def _with_errors(self) -> set[str]:
        """The factors whose messages always have an error: sampled, or answered by the host."""
        return {*self.effective, *(self.factors[at].name for at in self.hosts)}

    @property
    def _predicted(self) -> set[str]:
        """The factors whose messages are predicted by what was learned."""
        return {self.factors[at].name for at, oracle in self.hosts.items() if oracle.predicts}

    def _uncertain(self) -> tuple[bool, bool]:
        """Whether errors that notes tell of are large, beside beliefs: those of sampling, and others."""
        asked = {self.factors[at].name for at in self.hosts}
        draws = {f.name for f in self.factors if isinstance(getattr(f, "oracle", None), Sampler)}
        draws |= asked & set(self.effective)
        large = {
            name
            for name, doubt in self._stated().items()
            if (doubt > (_DOUBTED_SAMPLES if name in self._with_errors else LARGE)).any()
        }
        large |= set(self._totals())
        large |= {factor.name for factor, oracle in self._on_host() if oracle.doubts_itself(factor)}
        return bool(large & draws), bool(large - draws)

    def _of_slow_calls(self) -> list[str]:
        return [
            f"{name}: the slowest call of its function took {in_digits(spent.slowest)} s, with the arguments "
            f"{in_words(spent.there)}, and all {spent.evaluations:,} calls took {in_digits(spent.seconds, 3)} s"
            for name, spent in self.spent.items()
            if spent.slowest > _SLOW
        ]

    def _with_the_end(self, notes: list[str], log_evidence: float, priorless: str) -> tuple[str, ...]:
        """These notes, and why there are no beliefs, first, or no evidence, last."""
        if self.impossible:
            why = f"these data are impossible under the model: {self.impossible}. Its evidence is 0: ignore the beliefs"
            return why, *filter(None, [_enormous(self.factors)]), *notes
        if self.outgrown:
            why = f"this model has no posterior: {self.outgrown}. Look for a wrong sign; ignore the beliefs"
            return why, *notes
        if priorless:
            return priorless, *notes
        if self.stuck:
            return *notes, "there is no log evidence: it would need the messages that were left out"
        if self.converged and not np.isfinite(log_evidence):
            why = _enormous(self.factors) or "an improper message leaves a factor without a normaliser"
            return *notes, f"the log evidence is not a number: {why}"
        if not self.converged and np.isfinite(log_evidence):
            return *notes, f"log evidence {in_digits(log_evidence, 3)}, {OF_NO_FIXED_POINT}"
        return tuple(notes)

    def _seconds(self) -> dict[str, float]:
        """How long functions on the host took, and everything else, which includes compiled functions."""
        if not self.spent:
            return {}
        inside = {f"{name}: seconds in its function": spent.seconds for name, spent in self.spent.items()}
        return inside | {"seconds besides": time.perf_counter() - self.began - sum(inside.values())}

    def _together(self) -> list[str]:
        """What the errors of single messages add up to in a belief that the members of a plate share."""
        plates = {factor.name: factor.plate for factor in self.factors}
        return [
            f"{name}: errors of its {plates[name]} messages, if independent, may add up to {in_digits(total)} standard "
            "deviations for the variables they share: give the oracle more points, or use another one"
            for name, total in self._totals().items()
        ]

    def _totals(self) -> dict[str, float]:
        """By factor, what errors of single messages add up to where that is much.

        Errors are small beside the belief about one member, of which the others say most: for independent ones the
        expected 2 KL between joint beliefs is the sum over members, and that of any part is at most as large.
        """
        variables = [argument for factor in self.factors for argument in factor.arguments]
        totals = {}
        for factor in self.factors:
            doubt = self.doubt.get(factor.name)
            if factor.plate is None or doubt is None or factor.name in self._predicted:
                continue
            total = float(np.sqrt((doubt**2).sum()))
            shares = any(not v.known and v.variable.plate != factor.plate for v in variables)
            if shares and _DOUBTED_SAMPLES < total < np.inf:
                totals[factor.name] = total
        return totals

    def _status(self, sampling: Mapping[str, float], priorless: str, singular: str) -> str:
        if self.impossible:
            return "stopped at impossible data"
        if self.outgrown:
            return "stopped without a posterior"
        drawn, doubted = self._uncertain()
        if self.converged and any(size.min() < _LEAST_POINTS for size in self.effective.values()):
            return "converged, but samples missed most of the mass"
        if self.converged and self.elsewhere:
            return "converged, but at one of several modes"
        if self.converged and (drawn or self.sampled.few or max(sampling.values(), default=0.0) > LARGE):
            return "converged, but errors of sampling are large"
        if self.converged and any(share.max() > NOTICED for share in self.undefined.values()):
            return "converged, but a function returned no number in places"
        if self.converged and priorless:
            return "converged, but a belief is improper"
        if self.converged and (doubted or singular or (self.apart and not self.narrow)):
            return "converged, but standard deviations may be wrong"
        if self.converged and self.in_loops and not self.narrow:
            return "converged, but probabilities of labels are approximate"
        if self.converged:
            size = "large" if self.wide else "small"
            return f"converged, but standard deviations may be too {size}" if self.narrow else "converged"
        if self.interrupted:
            return "interrupted"
        if self.residuals and np.isinf(self.residuals[-1]):
            return "stopped with an improper belief"
        return "stopped with messages left out" if self.stuck else "stopped before converging"


def _enormous(factors: tuple[Factor, ...]) -> str:
    """Which given number has a square that is more than a number can hold, in words; empty where none has."""
    for factor in factors:
        for argument in factor.arguments:
            values = np.atleast_1d(np.abs(np.asarray(argument.values, float))) if argument.known else np.zeros(1)
            values = np.where(np.isinf(values), 0.0, values)  # the end of an interval that has none
            if values.max(initial=0.0) > _SQUARES:
                row = np.unravel_index(values.argmax(), values.shape)[0]
                where = f"{_where(np.arange(len(values)) == row)}" if argument.plate is not None else ""
                return (
                    f"{argument.name}{where} of {factor.name} is {values.max():.3g}, whose square is too large to "
                    "compute with: measure it in a larger unit"
                )
    return ""


def _off(doubt: float, predicted: bool) -> str:
    """A doubt in words."""
    if doubt >= 1 and predicted:
        return "a standard deviation or more, by errors of predicted messages: an oracle that does not learn has none"
    if doubt >= 1:
        return "a standard deviation or more: give the oracle more points, or use another one"
    return (
        f"{doubt:.2g} standard deviations by errors of its integrals, as the oracle estimates them; that messages "
        "approximate the model is not part of this"
    )


def _where(flags: np.ndarray) -> str:
    if flags.ndim == 0:
        return ""
    found = np.flatnonzero(flags)
    return f" at {in_few_words([f'[{i}]' for i in found], _NAMED)}"
