"""Beliefs about single numbers beside their posterior, whose standard deviation not every family has."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.compiling import compiled_values
from meanmap.core.language import in_few_words
from meanmap.core.points import bucket, pad
from meanmap.core.types import Array
from meanmap.ep.calling import remembered
from meanmap.ep.factor import Factor
from meanmap.ep.inference.weighted import Single
from meanmap.ep.lines import REACH, log_message, to_nodes
from meanmap.ep.oracles.oracle import spread
from meanmap.ep.quadrature.enough import is_remembered
from meanmap.ep.sweeps.plan import Plan, State, fetched
from meanmap.ep.sweeps.sweep import compiled_cavities

__all__ = ["by_integrals"]

# Points about the belief, and about what the function received, each over `REACH` standard deviations on both sides.
# Looked at are no more rows than this, spread evenly over a plate.
_NEAR, _FAR, _ROWS = 513, 193, 1024
# Standard deviations that differ by this share, or means by this share of them, are worth a note; it names this many.
_APART, _NAMED = 0.1, 5
# The rule is accurate if it finds the mean that beliefs have by construction, up to this share of the spread.
_ACCURATE = 0.02


def by_integrals(
    plan: Plan, state: State, factors: tuple[Factor, ...], variables: list[str], singles: list[Single]
) -> str:
    """Which means and standard deviations of single numbers differ from those of the posterior, worst first, in words;
    or empty.

    Gammas and Betas have the means of their statistics, such as E[log x], in common with the posterior.
    """
    found, looked_at = [], ""
    for each in singles:
        argument, plate = factors[each.at].arguments[each.about], factors[each.at].plate or 1
        rows = np.linspace(0, plate - 1, min(plate, _ROWS)).astype(int)
        looked_at = f", of {_ROWS} rows that were looked at" if plate > _ROWS else looked_at

        def believed(of: Any, rows: np.ndarray = rows) -> Any:
            belief, members = state.beliefs[variables.index(of.name)], of.index[rows if len(of.index) > 1 else 0 * rows]
            return jax.tree.map(lambda leaf: np.atleast_1d(fetched(leaf))[members], belief)

        law, members = believed(argument), argument.index[rows if len(argument.index) > 1 else 0 * rows]
        mean, sd, centre = _posterior(plan, state, each, rows, believed(factors[each.at].arguments[each.position]))
        line = law.coordinates[-1]
        sure = abs(centre - np.asarray(law.mean_in(line))) < _ACCURATE * np.sqrt(law.variance_in(line))
        away = np.maximum(abs(sd / np.asarray(law.sd()) - 1), abs(mean - np.asarray(law.mean())) / sd) * sure
        for row in np.flatnonzero(away > _APART):
            place = "" if argument.variable.plate is None else f" at [{members[row]}]"
            said = f"{argument.name!r}{place} {mean[row]:.3g} ± {sd[row]:.2g}"
            found.append((-away[row], said, f"a {type(law).__name__}"))
    if not found:
        return ""
    return (
        f"the posterior is not close to {' or '.join(sorted({kind for *_, kind in found}))}: means and standard "
        f"deviations by quadrature are {in_few_words([said for _, said, _ in sorted(found)], _NAMED)}{looked_at}"
    )


def _posterior(
    plan: Plan, state: State, single: Single, rows: np.ndarray, law: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of some rows the mean, the standard deviation, and the mean of the coordinate, by points about `law`, the beliefs
    about the number.
    """
    with jax.enable_x64(True):
        incoming = compiled_cavities(plan, state, single.at, 1.0)[0]
        if not plan.shapes[single.at]:
            incoming = jax.tree.map(lambda leaf: leaf[None], incoming)
        padded = pad(rows, bucket(len(rows)))
        spread_out = spread(incoming, (plan.shapes[single.at] or (1,))[0])
        incoming = jax.tree.map(lambda leaf: fetched(leaf)[padded], spread_out)
        came, line = incoming[single.position], law.coordinates[-1]
        middle, sd = np.asarray(law.mean_in(line)), np.sqrt(law.variance_in(line))
        before, wide = (np.asarray(each)[: len(rows)] for each in (came.mean_in(line), came.variance_in(line)))
        proper = np.isfinite(before) & np.isfinite(wide)
        before, wide = np.where(proper, before, middle), np.where(proper, np.sqrt(np.abs(wide)), sd)
        points = [
            centre[:, None] + width[:, None] * np.linspace(-REACH, REACH, count)
            for centre, width, count in zip((middle, before), (sd, wide), (_NEAR, _FAR), strict=True)
        ]
        points = pad(np.sort(np.concatenate(points, 1), 1), len(padded))
        found = _integrated(plan.factors[single.at], incoming, {single.position: points}, single.about)
    mean, sd, centre = (np.asarray(each)[: len(rows)] for each in found)
    return mean, sd, centre


@compiled_values
def _integrated(
    factor: Any, incoming: tuple[Any, ...], points: dict[int, jax.Array], about: int
) -> tuple[Array, Array, Array]:
    """By the trapezium rule over points (members, points) of the coordinate."""
    ((position, coordinates),) = points.items()
    name = incoming[position].coordinates[-1]

    def one(came: tuple[Any, ...], c: jax.Array) -> tuple[Array, Array, Array]:
        nodes = to_nodes(type(came[position]), c, jnp.zeros(()))
        logs = log_message(came[position], nodes) + nodes.log_weight
        if is_remembered(factor, [type(came[position])]):  # no function is called for a check
            given, nothing = list(came[: len(came) - factor.outputs]), jnp.full_like(c, jnp.nan)
            asked = remembered(factor, (name,), (c,), given, (position,), c != c, (nothing, nothing), jnp.zeros((1, 1)))
            value = jnp.where(jnp.isinf(asked[1]), jnp.nan, asked[0])
            log_factor, images, _ = factor.judge(value, came, jnp.asarray(1.0))
        else:
            log_factor, images, _ = factor.weigh({position: nodes.x}, came, jnp.asarray(1.0), jax.random.key(0))
        logs = jnp.nan_to_num(logs + log_factor, nan=-jnp.inf, posinf=-jnp.inf, neginf=-jnp.inf)
        steps, looked_at = jnp.pad(jnp.diff(c), 1), nodes if about == position else images[about]
        shares = jax.nn.softmax(logs + jnp.log(steps[1:] + steps[:-1]))
        mean = shares @ looked_at.x
        return mean, jnp.sqrt(shares @ (looked_at.x - mean) ** 2), shares @ looked_at.coordinate

    return jax.vmap(one)(incoming, coordinates)
