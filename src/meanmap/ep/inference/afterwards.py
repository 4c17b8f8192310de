"""After the last sweep: the evidence, densities of zero, and functions that returned no number."""

import numpy as np

from meanmap.ep.calls import user_errors
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.inference.ranges import of_one_value, undefined, zero_everywhere
from meanmap.ep.inference.run import Run
from meanmap.ep.inference.verdict import Verdict
from meanmap.ep.sweeps.sweep import compiled_evidence

__all__ = ["log_evidence", "undefined_functions", "zero_density"]


def log_evidence(run: Run, verdict: Verdict) -> float:
    """The logarithm of the evidence.

    NaN where messages were left out, and after an interruption where functions on the host would be called.
    """
    if verdict.stuck:
        return np.nan
    if run.record.converged and np.isfinite(verdict.evidence):
        return verdict.evidence
    on_host = run.hosts or any(getattr(factor, "host", False) for factor in run.plan.factors)
    if run.record.interrupted and on_host:
        return np.nan
    known = {}
    for at in run.hosts:
        asked = verdict.answers.get(at) or run.ask_last(verdict.plans[0], verdict.state, at)
        known[at] = asked.answer.log_normaliser
    with user_errors():
        return float(compiled_evidence(verdict.plan, verdict.state, run.key, run.power, known))


def zero_density(run: Run, verdict: Verdict) -> str:
    """Which density is zero everywhere where no answer was lost: an oracle may stay at a point of no density."""
    every = {at: np.ones(factor.plate or 1, bool) for at, factor in enumerate(run.record.factors)}
    return run.first_reason(zero_everywhere, verdict.state, every)


def undefined_functions(run: Run, verdict: Verdict) -> tuple[str, ...]:
    """Notes on functions that returned no number somewhere."""
    notes, record = [], run.record
    for at, factor in enumerate(record.factors):
        shares = record.undefined.get(factor.name, np.zeros(1))
        if isinstance(factor, BlackBoxFactor):
            spent = record.spent.get(factor.name)
            notes.append(undefined(run.plan, verdict.state, at, factor, shares, spent, run.power))
    lost = {at: each for at, each in enumerate(verdict.lost) if each.any() and not record.beyond}
    notes.append(run.first_reason(of_one_value, verdict.state, lost))
    return tuple(filter(None, notes))
