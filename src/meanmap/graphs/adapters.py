"""Converts discrete models of pgmpy to factors."""

from typing import Any

import numpy as np

from meanmap.core.errors import InputError, KindError
from meanmap.core.language import a_type
from meanmap.graphs.files import Factors

__all__ = ["from_pgmpy"]


def from_pgmpy(model: Any) -> Factors:
    """The factors of a discrete Bayesian network, Markov network or factor graph of pgmpy, with names and labels.

    `mm.bp.CliqueTree(from_pgmpy(model))` is exact for any number of parents;
    `mm.bp.DiscreteGraph.from_factors(from_pgmpy(model))` is for pairwise networks that are too dense for that. pgmpy is
    not imported: any object with `get_cpds` or `get_factors` is read as a model.
    """
    if hasattr(model, "get_cpds"):
        tables = list(model.get_cpds() or [])
        without = set(model.nodes()) - {table.variable for table in tables}
        if without:
            raise InputError(f"{sorted(map(str, without))[0]!r} has no conditional probabilities: call add_cpds first.")
        found = [table.to_factor() for table in tables]
    elif hasattr(model, "get_factors"):
        found = list(model.get_factors())
    else:
        raise KindError(f"model is {a_type(model)}; expected a discrete model of pgmpy.")
    if not found:
        raise InputError("model has no factors.")
    labels: dict[Any, tuple] = {}
    for factor in found:
        for name in factor.variables:
            states = tuple(factor.state_names[name])
            if labels.setdefault(name, states) != states:
                raise InputError(f"the factors of {name!r} disagree on its states: {labels[name]} and {states}.")
    names = tuple(labels)
    return Factors(
        np.array([len(labels[name]) for name in names]),
        tuple(tuple(names.index(name) for name in factor.variables) for factor in found),
        tuple(np.asarray(factor.values, dtype=float) for factor in found),
        names,
        labels,
    )
