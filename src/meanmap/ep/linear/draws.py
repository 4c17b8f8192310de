"""Joint draws from a fitted formula: effects, components, expected responses and new ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.core.notes import warn_of
from meanmap.ep.linear.contrasts import named
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.effect_draws import refusal, rough
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.formula import Formula, Rows
from meanmap.ep.linear.integrate import Integrated, Node
from meanmap.ep.linear.mixtures import Smooth
from meanmap.ep.linear.predictions import of_new, without_mean
from meanmap.ep.linear.scaled import Scaled
from meanmap.ep.linear.shared import Shared
from meanmap.ep.linear.undetermined import no_mean

__all__ = ["JointDraws", "smooth", "trials_of"]


@dataclass(frozen=True)
class JointDraws:
    """Draws of all effects, made node by node and shown in a random order; the same each time they are asked for.

    Attributes
    ----------
    taken : (nodes,) array
        The number of draws from each node.
    order : (draws,) array
        In which draws are shown.
    seed : int
        Of the effects.
    """

    model: Integrated
    scaled: Scaled
    shared: Shared
    taken: np.ndarray
    order: np.ndarray
    seed: int

    @classmethod
    def of(
        cls, model: Integrated, scaled: Scaled, shared: Shared, draws: int, generator: np.random.Generator
    ) -> "JointDraws":
        """Choose the nodes."""
        taken = generator.multinomial(draws, model.shares / model.shares.sum())
        return cls(model, scaled, shared, taken, generator.permutation(draws), int(generator.integers(2**63)))

    def effects(self) -> Iterator[tuple[Node, np.ndarray, np.ndarray]]:
        """Nodes, with draws of the effects that all rows share, in the units of the data, and of θ."""
        generator = np.random.default_rng(self.seed)
        for at in np.flatnonzero(self.taken).tolist():
            node = self.model.nodes[at]
            yield (node, *self.shared.shaped(at, self.model, int(self.taken[at]), generator))

    def of_shared(self) -> np.ndarray:
        """(draws, p) effects that all rows share, in the units of the data, before they are put in order."""
        return np.concatenate([shared for _, shared, _ in self.effects()])

    def of_groups(self, formula: Formula) -> dict[str, np.ndarray]:
        """(draws, groups) for each effect of each factor, in the units of the data, by the name of the effect."""
        found: dict[str, list[np.ndarray]] = {}
        for _, _, thetas in self.effects():
            start = self.scaled.width
            for group, units in zip(formula.rows.groups, self.scaled.groups, strict=True):
                size, width = len(group.levels), len(group.labels)
                part = thetas[:, start : (start := start + size * width)].reshape(-1, size, width)
                part = part @ (self.scaled.unit * units.turn.T)
                for at, label in enumerate(group.labels):
                    found.setdefault(f"{label} | {group.name}", []).append(part[..., at])
        return {name: np.concatenate(parts)[self.order] for name, parts in found.items()}

    def columns(self, formula: Formula) -> dict[str, np.ndarray]:
        """A column for each effect of each group."""
        levels = {group.name: list(map(named, group.levels)) for group in formula.rows.groups}
        return {
            f"{name}[{level}]": values[:, at]
            for name, values in self.of_groups(formula).items()
            for at, level in enumerate(levels[name.rpartition(" | ")[2]])
        }

    def expected(self, rows: Rows, generator: np.random.Generator) -> np.ndarray:
        """(draws, n) expected responses; (draws, n, labels) probabilities if they are ordered labels."""
        none, found = np.zeros(len(rows.kept)), []
        for node, eta in self._predictors(rows, generator):
            parameters = self.model.parameters(node)
            eta += (rows.offset / self.scaled.unit)[:, None]
            if self.model.family.ordered:
                each = [Observed.of(none + label).columns() for label in range(len(parameters) + 2)]
                values = np.stack([np.exp(self.model.family.weighted(one, eta, parameters)) for one in each], axis=-1)
            else:
                values = self.model.family.mean(Observed.of(none).columns(), eta, parameters)
            found.append(values.swapaxes(0, 1))
        return self._confirmed(rows, np.concatenate(found)[self.order] * self.scaled.unit + self.scaled.base)

    def responses(self, rows: Rows, trials: np.ndarray | float, generator: np.random.Generator) -> np.ndarray:
        """(draws, n) new responses; all rows of a new group share one draw of its effects."""
        observed, found = Observed.of(np.zeros(len(rows.kept)), trials).columns(), []
        for node, eta in self._predictors(rows, generator):
            eta += (rows.offset / self.scaled.unit)[:, None]
            found.append(self.model.family.draw(observed, eta, self.model.parameters(node), generator).T)
        return self._confirmed(rows, np.concatenate(found)[self.order] * self.scaled.unit + self.scaled.base)

    def _confirmed(self, rows: Rows, drawn: np.ndarray) -> np.ndarray:
        """Draws (draws, n), with nan in the rows where `predict` has only nan, and a note on those without a mean."""
        if self.model.family.link == "log":
            which = without_mean(self.model, rows, self.scaled)
            if which.any():
                warn_of([no_mean(int(which.sum()), rows, "The mean of these draws says nothing")])
        if not self.model.lacks_draws or self.model.family.ordered:
            return drawn
        asked, first = self.scaled.predictor(rows), self.model.nodes[0]
        laws = self.model.components.covariances(first.phi)
        variances = first.settled.joint.variances(asked) + of_new(laws, rows, self.scaled.group_designs(rows))
        if (wanting := rough(self.model, asked.matrix, variances)).any():
            warn_of([refusal(int(wanting.sum()))])
            return np.where(wanting, np.nan, drawn)
        return drawn

    def log_likelihoods(self, rows: Rows, generator: np.random.Generator) -> np.ndarray:
        """(draws, n) log densities of the responses of the fitted rows given draws of effects and components."""
        observed, found = self.model.observed.columns(), []
        for node, eta in self._predictors(rows, generator):
            found.append(self.model.family.weighted(observed, eta, self.model.parameters(node)).T)
        of_unit = self.model.observed.weights * self.model.family.densities(self.model.observed)
        return np.concatenate(found)[self.order] - of_unit * np.log(self.scaled.unit)

    def _predictors(self, rows: Rows, generator: np.random.Generator) -> Iterator[tuple[Node, np.ndarray]]:
        """Nodes, and predictors (n, draws of the node) without offsets."""
        asked = self.scaled.predictor(rows)
        for node, _, thetas in self.effects():
            eta = np.stack([asked.at(theta) for theta in thetas], axis=1)
            laws = self.model.components.covariances(node.phi)
            for group, design, law in zip(rows.groups, self.scaled.group_designs(rows), laws, strict=True):
                new = group.index < 0
                if new.any():
                    sizes = (-int(group.index.min()), len(thetas))
                    effects = generator.multivariate_normal(np.zeros(len(law)), law, sizes)
                    eta[new] += np.einsum("na,nca->nc", design[new], effects[-1 - group.index[new]])
            yield node, eta


def smooth(
    model: Integrated, coordinates: Coordinates, taken: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """φ of each draw, jittered around its node so that draws are not all equal to nodes."""
    psi = coordinates.split(np.stack([node.phi for node in model.nodes]))
    return coordinates.joined(Smooth(psi, model.shares).draws(taken, generator))


def trials_of(response: str, data: Any) -> np.ndarray | float:
    """Numbers of trials of new rows, for a response `p(successes, trials)`."""
    if not response.startswith("p("):
        return 1.0
    asked = response[2:-1].split(",")[-1].strip()
    try:
        return float(asked)
    except ValueError:
        pass
    try:
        return np.asarray(data[asked], float)
    except (KeyError, ValueError) as error:
        raise ParameterError(f"data has no column {asked!r}, the number of trials; new responses need it.") from error
