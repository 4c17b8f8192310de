"""Whether the data are impossible under a model: then its evidence is zero, and there are no beliefs."""

from typing import Any

import numpy as np

from meanmap.ep.factor import Factor
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.factors.interval import Common, is_sharp
from meanmap.ep.factors.table import Table
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.block import Block
from meanmap.ep.inference.definitions import Contradiction, NotMeasured
from meanmap.ep.inference.run import Run
from meanmap.ep.sweeps.plan import State, fetched
from meanmap.ep.sweeps.sweep import compiled_cavities

__all__ = ["contradicted", "excluded", "forbidden", "touching", "without_room"]

# What tables forbid has e⁻¹⁰⁰⁰⁰⁰ for its weight, so that a share above this is none that other weights could give.
_SHARE = 1e-30
# Beliefs squeezed between sharp ends that exclude one another are narrower than rounding, and their evidence is below
# any that numbers can come to by being far away.
_LEAST = -1e15
# Of at most this many sharp ends of several factors a sum that leaves no room is looked for before a run, and of this
# many of any number of factors after one that found no beliefs; room of this share of them is rounding.
_ENDS, _ENDS_AFTERWARDS, _ROUNDING = 1000, 20_000, 1e-12


def excluded(factors: tuple[Factor, ...]) -> str:
    """Which sharp intervals of one unknown have nothing in common, in words; empty where all have."""
    common: dict[str, Common] = {}
    for factor in filter(is_sharp, factors):
        z = factor.arguments[0]
        held = common.setdefault(z.name, Common(z.variable.plate or 1))
        held.add(factor)
        wrong = np.flatnonzero(held.low >= held.high)
        if len(wrong):
            where = "" if z.variable.plate is None else f" at [{wrong[0]}]"
            return (
                f"{z.name!r}{where} would have to be above {held.low[wrong[0]]:g} and below {held.high[wrong[0]]:g} by "
                f"{factor.name} and the intervals before it"
            )
    return ""


def contradicted(model: FactorGraph) -> str:
    """Which sums without noise contradict each other, in words; empty where none do."""
    block = Block.of(model.variables, tuple(factor for factor in model.factors if isinstance(factor, Dot | Sum)))
    if block.has_loops():
        try:
            block.system({})
        except Contradiction as found:
            return str(found)
        except NotMeasured:
            return ""
    return ""


def touching(model: FactorGraph, afterwards: bool = False) -> str:
    """Which sharp intervals, by way of sums without noise, leave no value or single ones, in words; empty where they
    have room.

    Ends are rows × x ≤ most. By Farkas' lemma there is room unless weights, not all 0, leave nothing of the rows and 0
    or less of the ends.
    """
    sharp: Any = [*filter(is_sharp, model.factors)]
    block = Block.of(model.variables, tuple(factor for factor in model.factors if isinstance(factor, Dot | Sum)))
    least, most_ends = (1, _ENDS_AFTERWARDS) if afterwards else (2, _ENDS)
    if len(sharp) < least or not block.linear or 2 * sum(f.plate or 1 for f in sharp) > most_ends:
        return ""
    try:
        system: Any = block.system({})
    except NotMeasured:
        return ""
    from scipy import sparse
    from scipy.optimize import linprog

    parts, ends, names = [], [], []
    for factor in sharp:
        z, low, high = factor.arguments
        places = block.places(z, factor.plate)
        for sign, end in ((-1, low), (1, high)):
            most = sign * (end.values - system.offset[places])
            held = np.isfinite(most)
            parts.append(sign * system.spread[places[held]])
            ends.append(most[held])
            names += [factor.name] * int(held.sum())
    rows, most = sparse.csr_matrix(sparse.vstack(parts)), np.concatenate(ends)
    whole = sparse.vstack([rows.T, np.ones((1, len(most)))])
    found = linprog(most, A_eq=whole, b_eq=np.append(np.zeros(system.spread.shape[1]), 1.0)).x
    if found is None or np.abs(rows.T @ found).max() > _ROUNDING * np.abs(rows.data).max(initial=0):
        return ""
    room, rounding = found @ most, _ROUNDING * (found @ np.abs(most))
    if room > rounding:
        return ""
    which = ", ".join(dict.fromkeys(name for name, weight in zip(names, found, strict=True) if weight > 0))
    left = "no value" if room < -rounding else "single points only, of probability 0,"
    return f"the sharp ends of {which} leave {left} that the other factors allow"


def forbidden(run: Run, state: State) -> str:
    """Which table is left with nothing but what it forbids, in words; empty where none is.

    Where labels exist that all tables allow, messages on trees and in loops leave what is forbidden no share.
    """
    for at, factor in enumerate(run.plan.factors):
        if isinstance(factor, Table) and factor.forbids:
            incoming, _ = compiled_cavities(run.plan, state, at, run.power)
            shares = np.atleast_1d(fetched(factor.forbidden_share(incoming)))[: int(run.plan.sizes[at])]
            if (shares > _SHARE).any():
                where = f" at [{np.argmax(shares > _SHARE)}]" if run.plan.shapes[at] else ""
                return f"{factor.name}{where} gives probability 0 to all labels that the rest of the model allows"
    return ""


def without_room(factors: tuple[Factor, ...], log_evidence: float) -> str:
    """Which sharp intervals exclude one another by way of other factors, in words; empty where none do."""
    sharp = [factor.name for factor in filter(is_sharp, factors)]
    if len(sharp) > 0 and log_evidence < _LEAST:
        return f"the sharp ends of {', '.join(sharp)} leave no value that the other factors allow"
    return ""
