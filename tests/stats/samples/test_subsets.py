"""Sums over random subsets: a few at a time, whatever their size, and a line while they are added up."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.stats.independence import joint_independence
from meanmap.stats.samples import subsets

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dense", [0, 10**6])
def test_sums_are_those_of_the_rows(monkeypatch, dense):
    monkeypatch.setattr(subsets, "PICKED", 300)
    monkeypatch.setattr(subsets, "DENSE", dense)
    features = [RNG.normal(size=(90, 3)), RNG.normal(size=90)]
    drawn = [RNG.choice(90, 40, replace=False) for _ in range(11)]
    for found, block in zip(subsets.subset_sums(iter(drawn), 11, 40, features), features, strict=True):
        np.testing.assert_allclose(found, [block[chosen].sum(axis=0) for chosen in drawn], atol=1e-12)


def heard(monkeypatch, module):
    """The descriptions of loops that a line would tell of."""
    said, track = [], module.track
    monkeypatch.setattr(module, "track", lambda items, what, *more: (said.append(what), track(items, what, *more))[1])
    return said


def test_a_monitor_with_many_rows_says_that_it_works(monkeypatch):
    said = heard(monkeypatch, subsets)
    monkeypatch.setattr(subsets, "PICKED", 2000)
    reference, batch = RNG.normal(size=(200, 2)), RNG.normal(size=(100, 2))
    few = mm.DriftMonitor.of(reference, n_permutations=99, rng=0).step(batch).pvalues
    assert said == ["subsets"]
    monkeypatch.setattr(subsets, "DENSE", 10)
    many = mm.DriftMonitor.of(reference, n_permutations=99, rng=0).step(batch).pvalues
    np.testing.assert_array_equal(few, many)


def test_a_joint_test_of_many_variables_says_that_it_works(monkeypatch):
    said = heard(monkeypatch, joint_independence)
    mm.joint_independence_test(RNG.normal(size=(30, 40)), n_permutations=19, rng=0)
    assert "permutations" in said
