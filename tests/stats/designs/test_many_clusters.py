"""Very many clusters are exchanged in groups: as exact, in bounded memory."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import binom

import meanmap as mm
from meanmap.core.errors import InputError
from meanmap.stats.designs import exchanges
from meanmap.stats.designs.exchanges import Exchange


def table(rng, users, shift=0.0, spread=1.0):
    """Two rows of each user; half of the users have a shifted `y`."""
    user = np.repeat(rng.permutation(users), 2)
    arm = np.where(user % 2 == 0, "A", "B")
    y = spread * rng.normal(size=users)[user] + rng.normal(size=2 * users) + shift * (arm == "B")
    return {"user": user, "arm": arm, "y": y, "x": rng.normal(size=2 * users)}


def test_memory_does_not_grow_with_clusters_times_permutations():
    """30,000 clusters of 60,000 rows took 1.2 GB: labels of all permutations, and features of all rows."""
    rows = table(np.random.default_rng(0), 30_000, shift=0.1)
    tracemalloc.start()
    found = mm.two_sample_test(rows, by="arm", clusters="user", rng=0)
    text = str(found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e8
    assert "of 30000 clusters" in found.method
    assert found.pvalue < 0.01
    assert "p-values   y 0.00" in text


def test_groups_hold_equally_many_clusters_of_one_sample_and_stratum(monkeypatch):
    monkeypatch.setattr(exchanges, "MOST_UNITS", 300)
    monkeypatch.setattr(exchanges, "ENOUGH", 100)
    monkeypatch.setattr(exchanges, "LEAST", 20)
    rng = np.random.default_rng(1)
    units = np.sort(rng.integers(0, 1000, 4000))
    units = np.unique(units, return_inverse=True)[1]
    strata, groups = (rng.integers(0, k, units.max() + 1)[units] for k in (3, 2))
    design = Exchange(strata, units, rng.uniform(1, 2, len(units)))
    few = design.bundled(groups, rng)
    assert len(few.first_rows) < 300
    few.of_units(groups)  # refuses units with rows of two samples
    for rows in (np.flatnonzero(few.units == unit) for unit in range(few.units.max() + 1)):
        assert len(np.unique(few.strata[rows])) == len(np.unique(strata[rows])) == 1
    clusters = np.bincount(few.units[design.first_rows])
    for stratum in np.unique(few.strata):
        assert len(np.unique(clusters[few.strata_of_units == stratum])) == 1
    alike = np.zeros(len(units), int)
    assert Exchange(alike, np.arange(len(units)) // 20, np.ones(len(units))).bundled(alike, rng).units.max() == 199
    with pytest.raises(mm.errors.InputError, match="two samples"):
        design.bundled(np.arange(len(units)) % 2, rng)


def test_level_and_power_within_strata(monkeypatch):
    for name, value in (("MOST_UNITS", 100), ("ENOUGH", 60), ("LEAST", 15)):
        monkeypatch.setattr(exchanges, name, value)

    def pvalue(seed, shift):
        rows = table(np.random.default_rng(seed), 200, shift)
        rows["site"] = np.where(rows["user"] % 3 == 0, "a", "b")
        rows["y"] = rows["y"] + 2.0 * (rows["site"] == "a")
        asked = {"by": "arm", "clusters": "user", "within": "site", "n_permutations": 99}
        return mm.two_sample_test(rows, **asked, rng=int(seed)).pvalue

    seeds = np.random.default_rng(2).integers(0, 2**31, 100)
    found = np.array([pvalue(seed, 0.0) for seed in seeds])
    for level in (0.05, 0.2):
        assert np.count_nonzero(found <= level) <= binom.ppf(0.9999, len(seeds), level)
    assert np.mean([pvalue(seed, 1.2) <= 0.05 for seed in seeds[:25]]) > 0.6


def test_more_rows_than_a_test_permutes_are_refused():
    """Features of a million rows were computed first."""
    Exchange.of(3).refuse_more(3)
    with pytest.raises(InputError, match=r"^there are 4 rows, and with within= or clusters= this test takes at most 3"):
        Exchange.of(4).refuse_more(3)
