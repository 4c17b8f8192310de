"""A network in which all unknown variables are labels, as tables, so that answers are exact."""

from collections.abc import Hashable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.given_parents import joined
from meanmap.bp.conditionals.laws import Law
from meanmap.core.errors import InputError
from meanmap.core.extras import optional
from meanmap.graphs import Factors
from meanmap.graphs.elimination import CliqueForest

__all__ = ["tables_of", "to_pgmpy"]

# The most joint states of a variable with its parents, and of all cliques; beyond these, draws are faster.
MOST_CONFIGURATIONS, MOST_STATES = 20_000, 1_000_000
# Likelihood ratios between states are at most e to this power, since densities far out would be zero in all states.
MOST_SURPRISE = 50.0


def tables_of(
    columns: Mapping[Hashable, CodedColumn],
    conditionals: Mapping[Hashable, Law],
    parents: Mapping[Hashable, Sequence[Hashable]],
    known: Mapping[Hashable, np.ndarray],
    names: Sequence[Hashable],
    told: Sequence[Hashable],
) -> Factors | None:
    """The distributions of the labels `names` and of what is known, `told`, given their parents; None if that is too
    much, or one of the names is a number.
    """
    sizes = {name: columns[name].width for name in names if columns[name].labels is not None}
    if len(sizes) < len(names):
        return None
    families = {name: [each for each in (*parents[name], name) if each not in known] for name in (*names, *told)}
    if any(prod(sizes[each] for each in family) > MOST_CONFIGURATIONS for family in families.values()):
        return None
    numbers = {name: i for i, name in enumerate(names)}
    scopes = tuple(tuple(numbers[each] for each in family) for family in families.values())
    cardinalities = np.array([sizes[name] for name in names])
    if CliqueForest.of(cardinalities, scopes).size > MOST_STATES:
        return None
    tables = [_table(conditionals[name], parents[name], name, known, sizes) for name in families]
    return Factors(cardinalities, scopes, tuple(tables), tuple(names))


def to_pgmpy(
    columns: Mapping[Hashable, CodedColumn],
    conditionals: Mapping[Hashable, Law],
    parents: Mapping[Hashable, Sequence[Hashable]],
) -> Any:
    """A `DiscreteBayesianNetwork` with the probabilities of each label given its parents."""
    states = {name: _states(name, column) for name, column in columns.items()}
    with optional("a network of pgmpy"):
        from pgmpy.factors.discrete import TabularCPD  # pyright: ignore[reportMissingImports]
        from pgmpy.models import DiscreteBayesianNetwork  # pyright: ignore[reportMissingImports]

    network = DiscreteBayesianNetwork([(parent, name) for name, above in parents.items() for parent in above])
    network.add_nodes_from(list(parents))
    sizes = {name: len(labels) for name, labels in states.items()}
    for name, above in parents.items():
        table = _table(conditionals[name], above, name, {}, sizes).reshape(-1, sizes[name]).T
        named = {each: states[each] for each in (name, *above)}
        network.add_cpds(TabularCPD(name, sizes[name], table, list(above), [sizes[p] for p in above], named))
    return network


def _states(name: Hashable, column: CodedColumn) -> list[Any]:
    if column.labels is None:
        raise InputError(
            f"{name!r} is not a label, and networks of pgmpy have tables: bin it into labels before fitting, such as "
            "np.digitize(x, np.quantile(x, [0.25, 0.5, 0.75])).astype(str)."
        )
    return column.states


def _table(
    law: Law,
    parents: Sequence[Hashable],
    name: Hashable,
    known: Mapping[Hashable, np.ndarray],
    sizes: Mapping[Hashable, int],
) -> np.ndarray:
    """p(value | parents) at all states of what is not known, parents first; of a value that is known as a share of the
    largest.
    """
    free = [each for each in (*parents, name) if each not in known]
    shape = tuple(sizes[each] for each in free)
    states = dict(zip(free, np.indices(shape).reshape(len(shape), prod(shape)), strict=True))

    def numbers(each: Hashable) -> np.ndarray:
        return np.eye(sizes[each])[states[each]] if each in states else np.repeat(known[each], prod(shape), axis=0)

    rows = joined([numbers(parent) for parent in parents], prod(shape))
    logs = law.log_chance(rows, numbers(name))
    if name in known:
        logs = np.maximum(logs - logs.max(), -MOST_SURPRISE)
    return np.exp(logs).reshape(shape)
