"""Whether separate beliefs about unknowns that are correlated given the data are too narrow or too wide."""

from typing import Any

import jax
import numpy as np
from scipy import sparse

from meanmap.ep.calls import user_errors
from meanmap.ep.factor import Factor
from meanmap.ep.inference.block import computed_by
from meanmap.ep.inference.run import Run, knowing
from meanmap.ep.inference.verdict import Verdict
from meanmap.ep.piecewise.memory import KNOWN
from meanmap.ep.quadrature.enough import is_remembered
from meanmap.ep.quadrature.quadrature import Quadrature
from meanmap.ep.sweeps.plan import Plan, Port, fetched
from meanmap.ep.sweeps.sweep import compiled_answer, compiled_cavities
from meanmap.families import Beta, Family, Gamma, Normal

__all__ = ["EVIDENCE", "LESS", "TOO_WIDE", "advice"]

# Beliefs narrower than this, over what all ties together leave, are worth a note: of normal ones, which are compared
# with draws, too, and of others. At most this many are looked at.
_NARROW, _NARROW_OTHERS, _MOST = 0.8, 0.9, 500
# Beliefs that are this many times as wide as the joint one are worth a note, too: a coefficient of a chain of unknowns.
_WIDE = 1.1
# Correlations of what goes in and out of a function have a lower eigenvalue than this where it is as good as linear.
_SINGULAR = 1e-4
# How far incoming messages are moved to find what moves with them, in standard deviations.
_STEP = 1e-3

_ONE_BELIEF = (
    "Give them one belief: ep.Variable(name, ep.MultivariateNormal(mean, covariance)), as the one argument of a "
    "function, or as w in ep.Dot(X, w, z) for sums and differences."
)
_NO_ONE_BELIEF = "Only numbers with normal priors can have one belief, that of an ep.MultivariateNormal."
NUMBERS = (Normal, Gamma, Beta)
# How notes of beliefs that are too wide can be known.
TOO_WIDE = "comes out too large"
# Of functions, which are measured where beliefs that are too narrow are.
EVIDENCE = "and the log evidence may be off, the more so the more of them there are"
LESS = " or less, as functions are evaluated only where these narrow beliefs are"


def advice(run: Run, verdict: Verdict, names: tuple[str, ...]) -> tuple[str, ...]:
    """A note about the unknowns whose separate beliefs are furthest too narrow or too wide; none if there are none.

    Every factor between unknowns that are not computed from others determines how they vary together: the mean of one
    moves with the message from another by their covariance. Together these give the precision matrix that one joint
    belief would have, whose inverse is compared with the separate variances. On trees of Gaussians both agree.
    """
    plan, state = verdict.plan, verdict.state
    first, spreads, limits, total = {}, [], [], 0
    through = [names.index(name) for name in _passed_on(run.record.factors)]
    for at in (*_unknown(plan), *through):
        if not isinstance(state.beliefs[at], NUMBERS):
            continue
        belief = _real(state.beliefs[at], plan, at)
        if fetched(belief.is_proper()).all():
            first[at] = total
            spreads.append(_spread(belief))
            limits.append(np.full(len(spreads[-1]), _NARROW if isinstance(belief, Normal) else _NARROW_OTHERS))
            total += int(plan.variable_sizes[at])
    tied = {
        at: places
        for at, factor in enumerate(plan.factors)
        if at not in run.hosts
        and not factor.whole
        and not _asks_anew(run.record.factors[at])
        and len(places := [k for k, port in enumerate(factor.arguments) if port.variable in first]) > 1
    }
    looked_at = _looked_at(plan, {at: place for at, place in first.items() if at not in through})
    if not tied or not len(looked_at):
        return ()
    spread = np.concatenate(spreads)
    everywhere = np.arange(total)
    rows, columns, entries = [everywhere], [everywhere], [1 / spread]
    for at, places in tied.items():
        covariance = _covariance(run, verdict, at, places)
        size, each = len(covariance), np.arange(len(places))
        nodes = np.stack([_members(plan.factors[at].arguments[k], first, size) for k in places], axis=1)
        passes_on = computed_by(run.record.factors[at]) is not None
        usable = _proper(covariance, _SINGULAR if passes_on else 0.0)
        if passes_on and not usable.any() and len(places) > 2:
            # What the function gives is as good as linear in what it takes: only the others vary by themselves.
            places, each = places[:-1], each[:-1]
            covariance, nodes = covariance[:, :-1, :-1], nodes[:, :-1]
            usable = _proper(covariance)
        if not usable.any():
            return ()
        # What a factor says about one unknown given the others, in place of what it says about one, and the ties.
        ties = np.linalg.inv(covariance[usable])
        ties[:, each, each] -= 1 / covariance[usable][:, each, each]
        nodes = nodes[usable]
        rows.append(np.repeat(nodes, len(places), axis=1).ravel())
        columns.append(np.tile(nodes, (1, len(places))).ravel())
        entries.append(ties.ravel())
    joint = _inverse(np.concatenate(rows), np.concatenate(columns), np.concatenate(entries), total, looked_at)
    if joint is None:
        return ()
    ratio, limit = np.sqrt(spread[looked_at] / np.diag(joint)), np.concatenate(limits)[looked_at]
    narrow = ratio < limit
    wide = bool(not narrow.any() and ratio.max() > _WIDE)
    worst = int(np.argmax(ratio) if wide else np.argmin(np.where(narrow, ratio, np.inf)))
    correlation = joint[worst] / (np.sqrt(joint[worst, worst]) * np.sqrt(np.diag(joint)))
    correlation[worst] = 0
    other = int(np.argmax(np.abs(correlation)))
    if not (wide or narrow[worst]) or correlation[other] == 0:
        return ()
    if wide:
        name = _label(plan, names, first, looked_at[worst])
        note = f"{name} and what it is tied to have separate beliefs: the standard deviation of {name} {TOO_WIDE}"
        return (f"{note}, about {ratio[worst]:.3g} times what it should be",)
    one, two = (_label(plan, names, first, looked_at[node]) for node in sorted((worst, other)))
    within = LESS if any(run.record.factors[at].approximate for at in tied) else ""
    note = (
        f"{one} and {two} have separate beliefs, and the data tie them together (correlation "
        f"{correlation[other]:.2f}): standard deviations come out too small, about {ratio[worst]:.2g} of what they "
        f"should be{within}, {EVIDENCE}. "
    )
    normal = all(isinstance(state.beliefs[_variable(first, looked_at[node])], Normal) for node in (worst, other))
    return (note + (_ONE_BELIEF if normal else _NO_ONE_BELIEF),)


def _asks_anew(factor: Any) -> bool:
    """Whether other messages cost evaluations of a function on the host, whose values are not kept in a table."""
    if not getattr(factor, "host", False):
        return False
    kinds = [variable.family for variable in factor.integrated()]
    return not isinstance(factor.oracle, Quadrature) or not is_remembered(factor, kinds)


def _passed_on(factors: tuple[Factor, ...]) -> set[str]:
    """What functions of several unknowns give, without a prior, and other factors tie to further unknowns."""
    given = {
        factor.arguments[-1].name
        for factor in factors
        if getattr(factor, "outputs", 0) and not getattr(factor, "random", False)
        if sum(not a.known for a in factor.arguments) > 2 and factor.arguments[-1].variable.prior is None
    }
    tied = [[a.name for a in f.arguments if not a.known] for f in factors if computed_by(f) is None]
    return given & {name for names in tied if len(names) > 1 for name in names}


def _unknown(plan: Plan) -> list[int]:
    """The variables that are not computed from others: what a function or a sum gives is decided by what it takes."""
    computed = {
        out.variable
        for factor in plan.factors
        if (out := computed_by(factor)) is not None and not getattr(factor, "random", False)
    }
    return [at for at, given in enumerate(plan.with_prior) if given or at not in computed]


def _looked_at(plan: Plan, first: dict[int, int]) -> np.ndarray:
    """The places of as many unknowns as their joint covariance is computed of, those of the smallest plates first."""
    chosen: list[int] = []
    for at in sorted(first, key=lambda at: int(plan.variable_sizes[at])):
        if len(chosen) + int(plan.variable_sizes[at]) > _MOST:
            break
        chosen += range(first[at], first[at] + int(plan.variable_sizes[at]))
    return np.array(sorted(chosen), int)


def _proper(covariance: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Which of several covariance matrices have an inverse: their correlations no eigenvalue as low as this."""
    with np.errstate(invalid="ignore", divide="ignore"):
        sds = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        correlation = covariance / (sds[:, :, None] * sds[:, None, :])
    finite = np.asarray(np.isfinite(correlation).all((1, 2)))
    return finite & (np.linalg.eigvalsh(np.where(finite[:, None, None], correlation, 0))[:, 0] > least)


def _inverse(
    rows: np.ndarray, columns: np.ndarray, entries: np.ndarray, total: int, chosen: np.ndarray
) -> np.ndarray | None:
    """Rows and columns of the inverse of a sparse precision matrix; None if it is none."""
    from scipy.sparse.linalg import splu

    precision = sparse.csc_matrix((entries, (rows, columns)), shape=(total, total))
    symmetric = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        solved = splu(precision, **symmetric)
    except RuntimeError:  # exactly singular
        return None
    if not (solved.U.diagonal() > 0).all() or (solved.perm_r != solved.perm_c).any():
        return None
    units = np.zeros((total, len(chosen)))
    units[chosen, np.arange(len(chosen))] = 1.0
    return solved.solve(units)[chosen]


def _real(belief: Family, plan: Plan, at: int) -> Family:
    """The belief about the members of a plate that are real."""
    size = int(plan.variable_sizes[at])
    return jax.tree.map(lambda leaf: fetched(leaf)[:size] if plan.flats[at].shape else fetched(leaf), belief)


def _place(law: Family) -> np.ndarray:
    return fetched(law.mean_in(law.coordinates[-1]))


def _spread(law: Family) -> np.ndarray:
    return np.atleast_1d(fetched(law.variance_in(law.coordinates[-1])))


def _covariance(run: Run, verdict: Verdict, at: int, places: list[int]) -> np.ndarray:
    """Of each member's tilted distribution, between the arguments at some places."""
    plan, key = knowing(verdict.plan, KNOWN), run.keys[at]
    factor, size = plan.factors[at], int(plan.sizes[at])
    alpha = run.power if factor.powered else 1.0
    incoming = list(compiled_cavities(plan, verdict.state, at, run.power)[0])

    # Other members, and those that fill up the plate, are not looked at.
    proper = np.all([fetched(incoming[k].is_proper()) for k in places], axis=0)
    chosen = np.flatnonzero(np.atleast_1d(proper)[:size])

    def real(law: Family) -> Family:
        return jax.tree.map(lambda leaf: fetched(leaf)[chosen] if proper.ndim else fetched(leaf)[None][chosen], law)

    def means(came: list[Any]) -> np.ndarray:
        with user_errors():
            sent = jax.block_until_ready(compiled_answer(factor, tuple(came), alpha, key).messages)
        return np.stack([_place(real(jax.tree.map(lambda a, b: a + b, came[k], sent[k]))) for k in places], axis=1)

    before, columns = means(incoming), []
    for k in places:
        step = np.full(proper.size, _STEP)
        step[chosen] = _STEP / np.sqrt(_spread(real(incoming[k])))
        step = step.reshape(proper.shape)
        moved = [*incoming[:k], incoming[k]._turned(step), *incoming[k + 1 :]]
        columns.append((means(moved) - before) / np.atleast_1d(step)[chosen, None])
    covariance = np.full((size, len(places), len(places)), np.nan)
    covariance[chosen] = np.stack(columns, axis=2)
    return (covariance + covariance.transpose(0, 2, 1)) / 2


def _members(port: Port, first: dict[int, int], size: int) -> np.ndarray:
    index = {"selected": port.index, "same": np.arange(size)}.get(port.way)
    return first[port.variable] + (np.zeros(size, int) if index is None else fetched(index)[:size])


def _label(plan: Plan, names: tuple[str, ...], first: dict[int, int], node: int) -> str:
    at = _variable(first, node)
    return repr(names[at]) if plan.flats[at].shape == () else f"{names[at]!r} at [{node - first[at]}]"


def _variable(first: dict[int, int], node: int) -> int:
    """The variable that a place is of."""
    return max((at for at in first if first[at] <= node), key=lambda at: first[at])
