"""Draws from a fitted formula: effects and components together, and new responses."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from meanmap.core.errors import ParameterError
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.formula import Rows
from meanmap.ep.linear.integrate import Integrated, Node
from meanmap.ep.linear.mixtures import Smooth
from meanmap.ep.linear.scaled import Scaled

__all__ = ["counts", "log_likelihoods", "responses", "smooth", "trials_of"]


def counts(model: Integrated, draws: int, generator: np.random.Generator) -> np.ndarray:
    """The number of draws from each node."""
    return generator.multinomial(draws, model.shares / model.shares.sum())


def smooth(
    model: Integrated, coordinates: Coordinates, taken: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """φ of each draw, jittered around its node so that draws are not all equal to nodes."""
    psi = coordinates.split(np.stack([node.phi for node in model.nodes]))
    return coordinates.joined(Smooth(psi, model.shares).draws(taken, generator))


def responses(
    model: Integrated,
    rows: Rows,
    trials: np.ndarray | float,
    scaled: Scaled,
    draws: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """(draws, n) new responses; all rows of a new group share one draw of its effects."""
    observed, found = Observed.of(np.zeros(len(rows.kept)), trials).columns(), []
    for node, eta in _predictors(model, rows, scaled, draws, generator):
        eta += (rows.offset / scaled.unit)[:, None]
        found.append(model.family.draw(observed, eta, model.parameters(node), generator).T)
    return generator.permutation(np.concatenate(found) * scaled.unit + scaled.base)


def log_likelihoods(
    model: Integrated, rows: Rows, scaled: Scaled, draws: int, generator: np.random.Generator
) -> np.ndarray:
    """(draws, n) log densities of the responses of the fitted rows given draws of effects and components."""
    observed, found = model.observed.columns(), []
    for node, eta in _predictors(model, rows, scaled, draws, generator):
        found.append(model.family.weighted(observed, eta, model.parameters(node)).T)
    of_unit = model.observed.weights * model.family.densities(model.observed)
    return generator.permutation(np.concatenate(found) - of_unit * np.log(scaled.unit))


def _predictors(
    model: Integrated, rows: Rows, scaled: Scaled, draws: int, generator: np.random.Generator
) -> Iterator[tuple[Node, np.ndarray]]:
    """Nodes, and predictors (n, draws of the node) without offsets."""
    asked = scaled.predictor(rows)
    for node, count in zip(model.nodes, counts(model, draws, generator), strict=True):
        if not count:
            continue
        thetas = node.settled.joint.draws(int(count), generator)
        eta = np.stack([asked.at(theta) for theta in thetas], axis=1)
        laws = model.components.covariances(node.phi)
        for group, design, law in zip(rows.groups, scaled.group_designs(rows), laws, strict=True):
            new = group.index < 0
            if new.any():
                effects = generator.multivariate_normal(np.zeros(len(law)), law, (-int(group.index.min()), count))
                eta[new] += np.einsum("na,nca->nc", design[new], effects[-1 - group.index[new]])
        yield node, eta


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
