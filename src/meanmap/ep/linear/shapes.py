"""Skewed marginal distributions of linear combinations of effects."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from meanmap.ep.linear.effect_draws import ROUGH
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.held import Held
from meanmap.ep.linear.integrate import Integrated, Node
from meanmap.ep.linear.mixtures import GRID, Shaped
from meanmap.ep.linear.sites import Predictors, Settled
from meanmap.ep.linear.weights import Kinds
from meanmap.ep.weighted_draws import Weighted

__all__ = ["marginals", "skewness", "thirds_of_combinations", "thirds_of_shared"]

# A Normal is good enough if the skewness is below this: interval ends are then off by .05 standard deviations.
_SKEW = 0.1
# Marginals with at least this skewness are computed by runs; so are all marginals if the effective share of weighted
# draws is below _FEW; in each case as long as rows times marginals are at most _HELD_ROWS.
_VERY, _FEW, _HELD_ROWS = 0.25, 0.8, 20_000
# Points where densities are tabulated, in standard deviations; the most predictors evaluated over all nodes.
_PLACES, _MOST = np.linspace(GRID[0], GRID[-1], 25), 4_000_000
# Rows times combinations up to which their covariances are stored.
_HELD = 20_000_000
# Log ratios further than this below the largest are cut off.
_DEPTH = 100.0
# A density that exceeds this share of its peak at an end of the grid is not covered completely.
_WHOLE = 1e-3
# Strengths of the correction that are compared, and their prior standard deviation around 1.
_AMOUNTS, _TRUSTED = np.linspace(0.0, 1.0, 21), 0.1
# Of more rows, this many represent all in the density of one combination.
_SAMPLE = 5000
# Rows times combinations in memory at once, and the least rows.
_TOGETHER, _LEAST_ROWS = 200_000, 512
# Weighted draws correct a mean only if they differ from it by more than this many standard errors.
_BEYOND = 4.0


def marginals(model: Integrated, combinations: np.ndarray, judged: Weighted | None = None) -> Shaped:
    """Marginal distributions of C θ given each node, with the columns of C in the order of θ.

    Where combinations of the effects that all rows share are so skewed that only draws of all effects can be trusted,
    as at a label without events, they are those of draws, if there are any.
    """
    shared = len(model.components.fixed[0][0]) if model.components.fixed else 0
    if model.family.exact or not shared or combinations[:, shared:].any():
        return _without_draws(model, combinations, judged)
    skew = skewness(model, combinations)
    law, chosen = _without_draws(model, combinations, judged, skew), np.flatnonzero(np.abs(skew) > ROUGH)
    if not len(chosen) or model.effect_draws is None:
        return law
    asked, nodes = sparse.csr_array(combinations[chosen]), range(len(model.nodes))
    return law.replaced(chosen, np.stack([model.effect_draws.given(node, asked) for node in nodes], axis=1))


def _without_draws(
    model: Integrated, combinations: np.ndarray, judged: Weighted | None, first: np.ndarray | None = None
) -> Shaped:
    """Marginal distributions by runs or by rows; `first` are the skewnesses given the first node, where known.

    The density at a value z is the Normal density times the mean of the ratio of likelihood and sites over all effects
    given z; this mean is approximated by the product of the means of single rows (Cseke & Heskes 2011). The
    approximation is exact if z is the only effect, and overcorrects where many rows agree: its strength is estimated
    from weighted draws of the effects that all rows share, given the first node. If it may be inaccurate, the density
    of shared effects is computed by runs with z fixed at a value (`held`), unless there are too many rows. If the mean
    of the weighted draws differs significantly, means are shifted by the same number of standard deviations.
    """
    nodes = model.nodes
    shape = (len(combinations), len(nodes))
    means, sds, ratios = np.empty(shape), np.empty(shape), dict[tuple[int, int], np.ndarray]()
    runs: dict[int, np.ndarray] = {}
    left = 0 if model.family.exact or len(combinations) * len(model.observed.response) > _HELD else _MOST
    shared = len(model.components.fixed[0][0]) if model.components.fixed else 0
    of_shared = shared > 0 and not combinations[:, shared:].any()
    for at, node in enumerate(nodes):
        joint = node.settled.joint
        means[:, at] = combinations @ joint.mean
        if left <= 0 and of_shared:
            own = combinations[:, :shared]
            sds[:, at] = np.sqrt(np.maximum((own @ joint.within(0)[0] * own).sum(1), np.finfo(float).tiny))
            continue
        toward = joint.solve(combinations)
        sds[:, at] = np.sqrt(np.maximum((combinations * toward).sum(1), np.finfo(float).tiny))
        if left <= 0:
            continue
        law = _Rows.at(node, model)
        known = first is not None and not at
        skewness = np.abs(first if known else law.skewness(toward / sds[:, at, None]))
        if not at and judged is not None:
            skew = np.maximum(skewness, _VERY * (judged.effective < _FEW))
            runs = _by_runs(model, combinations, means[:, 0], sds[:, 0], skew)
        for one in (each for each in np.flatnonzero(skewness > _SKEW).tolist() if each not in runs):
            ratios[one, at] = law.log_ratio(joint.predictor.at(toward[one] / sds[one, at]))
            left -= len(_PLACES) * law.count
            if left <= 0:
                break
        if not at and not (skewness > _SKEW / 2).any():
            left = 0
    shares, bent = model.shares, sorted({one for one, _ in ratios} | set(runs))
    # If there is too much to compute, the first node represents the others.
    flat = np.zeros(len(_PLACES))
    logs = np.array([[ratios.get((one, at), ratios.get((one, 0), flat)) for at in range(len(nodes))] for one in bent])
    known = np.zeros(len(combinations))
    if not bent:
        means += sds * _moved(judged, combinations, means[:, 0], sds[:, 0], known)[:, None]
        return Shaped(means, sds, shares, np.zeros(0, int), np.zeros((0, len(nodes), len(GRID))), ())
    logs = np.maximum(logs, logs.max(2, keepdims=True) - _DEPTH)
    from scipy.interpolate import PchipInterpolator

    fine = PchipInterpolator(_PLACES, logs, axis=2)(GRID)
    if judged is not None:
        for place, one in enumerate(bent):
            if one in runs:
                # The standardised distribution given the first node represents the others.
                fine[place] = np.maximum(runs[one], runs[one].max() - _DEPTH)
                continue
            drawn = judged.draws @ combinations[one, : judged.draws.shape[1]]
            fine[place] *= _amount(fine[place, 0], (drawn - means[one, 0]) / sds[one, 0], judged)
    middle, spread, functions = _standardised(fine)
    known[bent] = middle[:, 0]
    moved = _moved(judged, combinations, means[:, 0], sds[:, 0], known)
    moved[list(runs)] = 0
    means += sds * moved[:, None]
    means[bent] += sds[bent] * middle
    sds[bent] *= spread
    return Shaped(means, sds, shares, np.array(bent), functions, tuple(runs))


def _by_runs(
    model: Integrated, combinations: np.ndarray, means: np.ndarray, sds: np.ndarray, skewness: np.ndarray
) -> dict[int, np.ndarray]:
    """Log ratios of the density and the Normal one at `GRID`, for the most skewed combinations."""
    if not model.components.fixed:
        return {}
    width, room, found = len(model.components.fixed[0][0]), _HELD_ROWS // len(model.observed.response), {}
    for one in np.argsort(-skewness, kind="stable")[:room].tolist():
        if skewness[one] < _VERY:
            break
        held = Held(model, combinations[one, :width])
        ratio = held.log_ratio(float(means[one]), float(sds[one]))
        if ratio is not None:
            found[one] = ratio
    return found


def skewness(model: Integrated, combinations: np.ndarray) -> np.ndarray:
    """Skewness of C θ given the first node, to first order."""
    toward = model.nodes[0].settled.joint.solve(combinations)
    sds = np.sqrt(np.maximum((combinations * toward).sum(1), np.finfo(float).tiny))
    return _Rows.at(model.nodes[0], model).skewness(toward / sds[:, None])


def thirds_of_shared(model: Integrated, width: int) -> np.ndarray:
    """Third cumulants (width, width, width) of the effects that all rows share given the first node, to first order."""
    joint, rows = model.nodes[0].settled.joint, _Rows.at(model.nodes[0], model)
    toward, found = joint.solve(np.eye(width, joint.predictor.total)), np.zeros((width, width, width))
    for piece, thirds in rows.thirds(_LEAST_ROWS * 8):
        by = joint.predictor.taken(piece).of_many(toward) / rows.settled.variances[piece, None]
        found += np.einsum("na,nb,nc->abc", by * thirds[:, None], by, by, optimize=True)
    return found


def thirds_of_combinations(model: Integrated, combinations: np.ndarray) -> np.ndarray:
    """Third cumulants of combinations (n, width) of the effects that all rows share, to first order."""
    joint, width = model.nodes[0].settled.joint, combinations.shape[1]
    toward = joint.solve(np.eye(width, joint.predictor.total))
    return _Rows.at(model.nodes[0], model).skewness(combinations @ toward)


@dataclass(frozen=True)
class _Rows:
    """The ratio of likelihood and site in every row, at one node."""

    settled: Settled
    family: Family
    observed: Observed
    parameters: np.ndarray
    alike: Kinds | None

    @classmethod
    def at(cls, node: Node, model: Integrated) -> "_Rows":
        return cls(node.settled, model.family, model.observed, model.parameters(node), model.alike)

    def skewness(self, toward: np.ndarray) -> np.ndarray:
        """First-order skewness of combinations c, from P⁻¹ c over the standard deviation for each: the sum of third
        cumulants of tilted predictors times the cubes of their covariances with c over their variances.
        """
        s, predictor, total = self.settled, self.settled.joint.predictor, np.zeros(len(toward))
        step = max(_LEAST_ROWS, _TOGETHER // max(len(toward), 1))
        for rows, thirds in self.thirds(step):
            some = predictor if step >= predictor.rows else predictor.taken(rows)
            part = some.of_many(toward) / s.variances[rows, None]
            total += thirds @ (part * part * part)
        return total

    def thirds(self, step: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Third cumulants of tilted predictors, some rows at a time."""
        s = self.settled
        for start in range(0, len(s.means), step):
            rows = slice(start, start + step)
            # The last sweep has them, unless the belief was changed since.
            if s.thirds is None or s.shared is not None:
                yield rows, s.taken(rows).tilted(self.family, self.observed.taken(rows), self.parameters).thirds
            else:
                yield rows, s.thirds[rows]

    @property
    def count(self) -> int:
        """The number of rows that represent all of them."""
        s, rows = self.settled, len(self.settled.means if self.alike is None else self.alike[0])
        return _SAMPLE if rows > _SAMPLE and s.thirds is not None and s.shared is None else rows

    def log_ratio(self, slope: np.ndarray) -> np.ndarray:
        """Log ratio of the density and the Normal one, up to a constant, from slopes per standard deviation."""
        s, (rows, times) = self.settled, self.alike or (np.arange(len(slope)), np.ones(len(slope)))
        if self.count < len(rows) and s.thirds is not None:
            # The more a row skews the combination, the likelier it is drawn: the ratio begins with these terms.
            skews = np.abs(times * (s.thirds * (slope / s.variances) ** 3)[rows])
            chances = 0.9 * skews / skews.sum() + 0.1 / len(skews)
            drawn = np.sort(np.random.default_rng(0).choice(len(skews), self.count, p=chances))
            rows, times = rows[drawn], times[drawn] / (self.count * chances[drawn])
        slope, known, many = slope[rows], s.taken(rows), np.tile(rows, len(_PLACES))
        left = np.maximum(known.variances - slope**2, 1e-9 * known.variances)
        means = (known.means + _PLACES[:, None] * slope).ravel()
        given = Predictors(means, np.tile(left, len(_PLACES)), s.weights[many], s.shifts[many])
        gains = given.tilted(self.family, self.observed.taken(many), self.parameters).gains
        found = gains.reshape(len(_PLACES), -1) @ times
        if s.shared is None:
            return found
        # The site on shared effects has what rows together say of mean and variance.
        root = np.exp(-(_PLACES**2) / 4)
        powers = _PLACES[:, None] ** np.arange(3)
        return found - powers @ np.linalg.lstsq(root[:, None] * powers, root * found)[0]


def _moved(
    judged: Weighted | None, combinations: np.ndarray, means: np.ndarray, sds: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """By how many standard deviations weighted draws shift each mean beyond `known`; 0 if not significant."""
    if judged is None:
        return np.zeros(len(combinations))
    away = (judged.draws @ combinations[:, : judged.draws.shape[1]].T - means) / sds
    # Draws are antithetic pairs; the second members follow all the first ones.
    pairs = ((judged.shares * len(away) - 1)[:, None] * away).reshape(2, -1, len(combinations)).mean(0)
    beyond = pairs.mean(0) - known
    return np.where(np.abs(beyond) > _BEYOND * pairs.std(0) / np.sqrt(len(pairs)), beyond, 0.0)


def _amount(log_ratio: np.ndarray, away: np.ndarray, judged: Weighted) -> float:
    """The strength of the correction that maximises the likelihood of weighted draws."""
    of_draws = judged.shares @ np.interp(away, GRID, log_ratio)
    heights = -(GRID**2) / 2 + _AMOUNTS[:, None] * log_ratio
    top = heights.max(1)
    normalisers = top + np.log(np.exp(heights - top[:, None]).sum(1))
    effective = judged.effective * len(judged.logs)
    score = effective * (_AMOUNTS * of_draws - normalisers) - ((_AMOUNTS - 1) / _TRUSTED) ** 2 / 2
    return float(_AMOUNTS[np.argmax(score)])


def _falling(density: np.ndarray) -> np.ndarray:
    """The density made to decrease away from its peak: in the tails the product over rows may increase again."""
    peak = density.argmax(2)[..., None]
    right = np.arange(len(GRID)) >= peak
    for side in (right, ~right):
        outwards = slice(None, None, 1 if side is right else -1)
        along = np.where(side, density, 1.0)[..., outwards]
        fallen = np.logical_and.accumulate(np.diff(along, prepend=1.0, axis=2) <= 0, axis=2)[..., outwards]
        density = np.where(side & ~fallen, 0.0, density)
    return density


def _standardised(log_ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, sds and distribution functions relative to the Normals; standard Normals if the grid cuts off a tail."""
    heights = -(GRID**2) / 2 + log_ratios
    density = _falling(np.exp(heights - heights.max(2, keepdims=True)))
    whole = np.maximum(density[..., 0], density[..., -1]) < _WHOLE
    density[~whole] = np.exp(-(GRID**2) / 2)
    density /= density.sum(2, keepdims=True)
    middle = density @ GRID
    spread = np.sqrt((density * (GRID - middle[..., None]) ** 2).sum(2))
    below, functions = np.cumsum(density, axis=2) - density / 2, np.empty_like(density)
    for at in np.ndindex(middle.shape):
        functions[at] = np.interp(middle[at] + spread[at] * GRID, GRID, below[at])
    return middle, spread, functions
