"""Rows that repeat others count as independent, unless clusters say which belong together."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm

NOTE = "count as independent"


def repeated(times=4, n=80):
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    t = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    table = {"z": z, "t": t, "y": t + z + rng.normal(size=n), "who": rng.permutation(n)}
    return pd.concat([pd.DataFrame(table)] * times, ignore_index=True)


def halves(table):
    return [part.drop(columns="t").reset_index(drop=True) for _, part in table.groupby("t")]


def network(table, **said):
    """Of a network, whose table holds its variables only."""
    graph = mm.BayesianNetwork([("z", "t"), ("z", "y"), ("t", "y")])
    said = {name: table[column].to_numpy() for name, column in said.items()}
    return graph.effect(table[["z", "t", "y"]], "y", of="t", from_=0, to=1, rng=0, **said).notes


DOORS = {
    "two": lambda table, **said: mm.two_sample_test(*halves(table), n_permutations=99, rng=0, **said).warnings,
    "two by": lambda table, **said: mm.two_sample_test(table, by="t", n_permutations=99, rng=0, **said).warnings,
    "k by": lambda table, **said: mm.k_sample_test(table, by="t", n_permutations=99, rng=0, **said).warnings,
    "ask": lambda table, **said: mm.test("z + y ~ t", table, n_permutations=99, rng=0, **said).warnings,
    "effect": lambda table, **said: mm.two_sample_effect(table, by="t", rng=0, **said).warnings,
    "close": lambda table, **said: mm.closeness_test(*halves(table), 0.5, rng=0, **said).warnings,
    "network": network,
    "independence": lambda table, **said: (
        mm.independence_test("z", "y", data=table, n_permutations=99, rng=0, **said).warnings
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_rows_that_clusters_keep_together_do_not_count_as_independent(door):
    """The note on 240 of 320 rows came with clusters=, too, which say that they are not independent."""
    table = repeated()
    assert not any(NOTE in note for note in DOORS[door](table, clusters="who"))
    alone = table.drop(columns="who")
    assert any(NOTE in note for note in DOORS[door](alone))
