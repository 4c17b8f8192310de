"""The posterior of components at given values: the evidence of a run, its gradient, and corrections by draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from meanmap.ep.linear.components import Components
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.grouped import Regrouped, regrouped
from meanmap.ep.linear.newton import has_many_rows, sites_at_mode
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.sites import Predictors, Settled, settle
from meanmap.ep.linear.stacked import Stack, Stacked
from meanmap.ep.linear.weights import Kinds, affordable, kinds, weighted
from meanmap.ep.weighted_draws import Weighted

__all__ = ["Height", "Problem"]

# The smallest and largest maximum number of nodes; in between, the limit is this many predictors over all nodes, more
# if sites are exact.
_NODES, _MET, _MET_EXACT = (600, 2000), 200_000, 3_000_000
# Numbers held in memory at once where nodes are evaluated together, and the most of these.
_PIECE, _TOGETHER = 1_000_000, 256
# The longest step of sweeps, and a shorter one to use if these do not converge.
_LONG, _SHORT = 1.5, 0.5
# What the moves of many rows may add up to, where few sweeps are needed.
_ADDED = 0.01
# Evaluations of the likelihood for a correction of the evidence at a node, the least and the most draws for it.
_EVALUATIONS, _DRAWS = 500_000, (4, 64)
# A few draws are enough if the standard error of the correction is below this.
_FEW, _SURE = 8, 0.01


class Height(NamedTuple):
    """The log posterior of the components at one point, its gradient, and the run; None if it failed, or if many points
    were evaluated together.
    """

    value: float
    gradient: np.ndarray
    settled: Settled | None


@dataclass
class Problem:
    """A model whose evidence is a function of its components."""

    predictor: Predictor
    components: Components
    family: Family
    observed: Observed
    tolerance: float = 1e-4
    runs: int = 0
    # Of which the posterior of the components consists.
    nodes: int = 1
    sweeps: int = 0
    # If the lattice was truncated, the share of the probability in the last fifth of its nodes.
    late: float = 0.0
    # The share of the probability that interpolation between nodes of a lattice moves to other cells than theirs.
    elsewhere: float = 0.0
    # If there is a design in place of a lattice, the standard deviations of effects that may be 0.
    near_0: tuple[int, ...] = ()
    # By how many of its standard deviations weighted draws move the log of each standard deviation of effects.
    moved: np.ndarray = field(default_factory=lambda: np.zeros(0))
    # Of a family with outliers: whether sweeps converged anywhere; if a lattice ends where they do not, how much of the
    # probability is expected there.
    settled_once: bool = False
    beyond: float = 0.0
    # If nodes are weighted draws, how many equally weighted ones they are worth.
    worth: float = np.inf

    @property
    def most_nodes(self) -> int:
        """The largest number of nodes."""
        return int(np.clip((_MET_EXACT if self.family.exact else _MET) // self.predictor.rows, *_NODES))

    @cached_property
    def stack(self) -> Stack | None:
        """For many nodes at once, if that is possible."""
        if not self.family.exact or self.predictor.nesting is None:
            return None
        return Stack(self.predictor, self.predictor.nesting, self.components, self.family, self.observed)

    @cached_property
    def alike(self) -> Kinds | None:
        """Rows that are equal, if many are."""
        return kinds(self.predictor, self.observed)

    @property
    def size(self) -> int:
        """What the evidence at a node costs: numbers of sums over groups if these are enough, otherwise rows."""
        return self.predictor.rows if self.stack is None else self.stack.size

    @property
    def together(self) -> int:
        """The number of nodes that are evaluated at once."""
        return 1 if self.stack is None else int(np.clip(_PIECE // self.stack.room, 1, _TOGETHER))

    def coordinates(self) -> Coordinates:
        """The chart in which all standard deviations are split."""
        sizes = tuple(block.size for block in self.predictor.blocks)
        return Coordinates.of(self.components, sizes, self.family.parameters)

    def run(self, phi: np.ndarray, start: Settled | None = None) -> Settled | None:
        """Effects given components, starting from the sites of another run; None if there is no joint belief.

        If long steps do not converge, shorter ones are tried, and then sweeps from the mode of the effects,
        which says little where responses may have outliers: there may be several. Of many rows without groups that is
        first where the family has exact derivatives, as it takes less time.
        """
        prior, parameters = self.components.prior(phi), self.components.likelihood(phi)
        model = (self.predictor, prior, self.family, self.observed, parameters)
        tried, tolerance = [(start, _LONG, False), (None, _LONG, False), (None, _SHORT, False)], self.tolerance
        if not self.family.heavy:
            tried += [(None, _LONG, True), (None, _SHORT, True)]
            if start is None and self.family.bends is not None and has_many_rows(self.predictor):
                # Sweeps look at several values of each row, steps to the mode at one.
                tried.insert(1, tried.pop(3))
                tolerance = min(tolerance, _ADDED / self.predictor.rows)
        found = None
        for first, longest, at_mode in tried[start is None :]:
            try:
                begin = sites_at_mode(*model) if at_mode else first
                found = settle(*model, begin, tolerance, longest=longest)
            except np.linalg.LinAlgError:
                continue
            self.runs, self.sweeps = self.runs + 1, self.sweeps + found.sweeps
            if found.converged:
                break
        return found

    def gradient(self, phi: np.ndarray, settled: Settled, better: Regrouped | None = None) -> np.ndarray:
        """The gradient of the log evidence of a converged run; sites contribute nothing, since the evidence is
        stationary in them. Where groups were integrated, exact moments replace those given the shared effects.
        """
        joint = settled.joint if better is None else better.settled.joint
        by, prior = [], joint.prior
        for at in range(len(self.components.fixed), len(prior.covariances)):
            covariance, precision, size = prior.covariances[at], prior.precisions[at], self.predictor.blocks[at].size
            second = joint.second_moment(at)
            if better is not None and at == joint.order[0]:
                second = second + better.second
            by.append(precision @ (second - size * covariance) @ precision / 2)
        gradient = self.components.chain(phi, by)
        count = len(self.components.parameters)
        if count:
            found = self._by_parameters(phi, settled if better is None else better.settled)
            if better is not None:
                given = better.settled.given_shared()
                found += better.by_parameters - self._by_tilts(phi, given)
            gradient[len(phi) - count :] = found
        return gradient

    def _by_parameters(self, phi: np.ndarray, settled: Settled) -> np.ndarray:
        parameters = self.components.likelihood(phi)
        if self.family.exact:
            # For the noise: slopes are quadratic in η, and Σ weight · variance of predictors is the trace of
            # Aᵀ W A P⁻¹, which is that of P P⁻¹ less that of Q P⁻¹.
            joint = settled.joint
            slopes = self.family.weighted_slopes(self.observed, settled.means, parameters)
            traces = [np.trace(q @ joint.total_covariance(at)) for at, q in enumerate(joint.prior.precisions)]
            return np.array([float(each.sum()) + self.predictor.total - sum(traces) for each in slopes])
        return self._by_tilts(phi, settled.taken(slice(None)))

    def _by_tilts(self, phi: np.ndarray, known: Predictors) -> np.ndarray:
        """Expected slopes of the log likelihood by parameters, row by row."""
        parameters = self.components.likelihood(phi)
        total, step = np.zeros(len(parameters)), 8192
        for at in range(0, self.predictor.rows, step):
            rows = slice(at, at + step)
            observed = self.observed.taken(rows)
            eta, log_mass = known.taken(rows).log_tilt(self.family, observed, parameters)
            mass = np.exp(log_mass - log_mass.max(0))
            mass /= mass.sum(0)
            slopes = self.family.weighted_slopes(observed, eta, parameters)
            total += [float((mass * each).sum()) for each in slopes]
        return total

    def correction(self, phi: np.ndarray, settled: Settled | None) -> float:
        """The correction of the log evidence of a converged run by weighted draws."""
        if settled is None or self.family.exact:
            return 0.0
        draws = affordable(settled, _EVALUATIONS, *_DRAWS)
        found = self.weighted(phi, settled, min(draws, _FEW))
        if draws <= _FEW or (1 / found.effective - 1) / _FEW < _SURE**2:
            return found.gain
        return self.weighted(phi, settled, draws).gain

    def weighted(self, phi: np.ndarray, settled: Settled, draws: int, alike: Kinds | None = None) -> Weighted:
        """Weighted draws of the effects at a point."""
        return weighted(settled, self.family, self.observed, self.components.likelihood(phi), draws, alike)

    def height(self, phi: np.ndarray, start: Settled | None = None, sloped: bool = True) -> Height:
        """Log evidence plus log prior, its gradient if asked (else 0), and the run; −∞ if the run fails.

        Sites of outliers have negative weights, and where sweeps do not converge the evidence is any number, often far
        larger than elsewhere: such a point counts as one where the run failed.
        """
        settled = self.run(phi, start)
        if settled is None or (self.family.heavy and self.settled_once and not settled.converged):
            return Height(-np.inf, np.zeros(len(phi)), settled)
        self.settled_once = self.settled_once or settled.converged
        log_prior, slope = self.components.log_density(phi)
        better = regrouped(settled, self.family, self.observed, self.components.likelihood(phi))
        gradient = self.gradient(phi, settled, better) + slope if sloped else np.zeros(len(phi))
        settled = settled if better is None else better.settled
        return Height(settled.log_evidence + float(log_prior), gradient, settled)

    def values(self, phis: np.ndarray) -> np.ndarray:
        """The values of `heights` at many points that are evaluated together, where there is a `stack`."""
        found = []
        for at in range(0, len(phis), self.together):
            piece = phis[at : at + self.together]
            try:
                found.append(self._stacked(piece)[1])
            except np.linalg.LinAlgError:
                found.append([self.height(phi, None, False).value for phi in piece])
        return np.concatenate(found)

    def _stacked(self, phis: np.ndarray) -> tuple[Stacked, np.ndarray, np.ndarray]:
        """The beliefs at points, the log posterior of the components there, and slopes of their log prior."""
        assert self.stack is not None
        stacked, (log_priors, slopes) = self.stack.at(phis), self.components.log_density(phis)
        self.runs, self.sweeps = self.runs + len(phis), self.sweeps + len(phis)
        values = stacked.log_evidences + log_priors
        # Far out, where precisions have no Cholesky factors of 64 bits.
        return stacked, np.where(np.isfinite(values), values, -np.inf), slopes

    def heights(self, phis: np.ndarray, starts: Sequence[Settled | None], sloped: bool = True) -> list[Height]:
        """`height` at several points, together if possible."""
        stack = self.stack
        if stack is None or len(phis) == 1:
            return [self.height(phi, start, sloped) for phi, start in zip(phis, starts, strict=True)]
        found = []
        for at in range(0, len(phis), self.together):
            piece = phis[at : at + self.together]
            try:
                stacked, values, slopes = self._stacked(piece)
            except np.linalg.LinAlgError:
                found += [self.height(phi, None, sloped) for phi in piece]
                continue
            gradients = stacked.gradients() + slopes if sloped else np.zeros(piece.shape)
            found += [Height(float(v), g, None) for v, g in zip(values, gradients, strict=True)]
        return found

    def runs_at(self, phis: np.ndarray, heights: Sequence[Height]) -> Iterator[Settled | None]:
        """The runs at points that were evaluated, one after the other; made again if there are none."""
        for at in range(0, len(phis), self.together):
            piece, own = phis[at : at + self.together], heights[at : at + self.together]
            if self.stack is None or all(height.settled is not None for height in own):
                yield from (height.settled for height in own)
                continue
            try:
                stacked = self.stack.at(piece)
            except np.linalg.LinAlgError:
                yield from map(self.run, piece)
            else:
                yield from map(stacked.settled, range(len(piece)))

    def heights_at(self, chart: Coordinates, psis: np.ndarray, starts: Sequence[Settled | None]) -> list[Height]:
        """Like `heights`, as a function of the coordinates ψ of the chart."""
        heights, slopes = self.heights(chart.joined(psis), starts), chart.slopes(psis)
        return [
            height._replace(gradient=slope.T @ height.gradient) for height, slope in zip(heights, slopes, strict=True)
        ]
