"""Unknown labels in tables that form loops: messages are those of loopy belief propagation."""

import numpy as np

from meanmap.core.language import with_and
from meanmap.ep.factor import Factor
from meanmap.ep.factors.table import Table
from meanmap.ep.inference.block import is_cyclic

__all__ = ["labels_in_loops"]


def labels_in_loops(factors: tuple[Factor, ...]) -> str:
    """A note where labels are joined in two ways, so that probabilities are approximate; else empty."""
    joining, first, nodes = [], {}, 0
    for factor in factors:
        unknown = [argument for argument in factor.arguments if not argument.known]
        if isinstance(factor, Table) and len(unknown) > 1:
            joining.append((factor, unknown))
            for argument in unknown:
                if argument.name not in first:
                    first[argument.name] = nodes
                    nodes += argument.variable.plate or 1
    starts, ends = [], []
    for factor, unknown in joining:
        members = nodes + np.arange(factor.plate or 1)
        for argument in unknown:
            starts.append(members)
            ends.append(np.broadcast_to(first[argument.name] + argument.index, members.shape))
        nodes += len(members)
    if not joining or not is_cyclic(np.concatenate(starts), np.concatenate(ends), nodes):
        return ""
    tables = with_and([factor.name for factor, _ in joining])
    return (
        f"{tables}: tables join labels in loops, and messages in loops count evidence more than once. "
        "Probabilities and the log evidence are approximate, often too near 0 or 1 where labels depend on each other "
        "strongly. mm.bp.CliqueTree computes exact ones where loops are not too many"
    )
