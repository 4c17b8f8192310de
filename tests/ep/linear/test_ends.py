"""Ends of intervals that come from weighted draws have standard errors, and are noted where these are large."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t

import meanmap as mm
from meanmap.ep.linear.ends import error_of_end
from meanmap.ep.linear.mixtures import quantiles


@pytest.mark.parametrize("p", [0.025, 0.5, 0.975])
def test_the_standard_error_is_that_of_repetitions(p):
    """A normal distribution by weighted draws of Student's t: 400 repetitions, whose sd has an error of 3.5%."""
    rng, ends, errors = np.random.default_rng(5), [], []
    for _ in range(400):
        values = t.rvs(4, size=2000, random_state=rng)
        shares = norm.pdf(values) / t.pdf(values, 4)
        shares /= shares.sum()
        ends.append(float(quantiles(values, shares, np.array([p]))[0]))
        errors.append(error_of_end(values, shares, p))
    assert np.mean(errors) == pytest.approx(np.std(ends), rel=0.15)


def crossed(rng, slopes=True):
    rows, groups = 80, 5
    a, b = (np.r_[np.arange(groups), rng.integers(0, groups, rows - groups)] for _ in range(2))
    x = rng.normal(size=rows)
    y = 1 + 0.5 * x + rng.normal(size=groups)[a] + 0.7 * rng.normal(size=groups)[b] + 0.7 * rng.normal(size=rows)
    y += slopes * x * (0.6 * rng.normal(size=groups)[a] + 0.3 * rng.normal(size=groups)[b])
    return pd.DataFrame({"y": y, "x": x, "a": [f"a{k}" for k in a], "b": [f"b{k}" for k in b]})


def test_uncertain_ends_of_crossed_slopes_are_noted():
    found = mm.fit("y ~ x + (1 + x | a) + (1 + x | b)", crossed(np.random.default_rng(8)))
    (note,) = (note for note in found._notes if "weighted draws: ends of their 95% intervals" in note)
    assert "sd(" in note.partition("of up to: ")[2]
    assert "ends of their 95% intervals" in " ".join(str(found).split())


def test_components_of_a_lattice_have_no_such_note():
    found = mm.fit("y ~ x + (1 | a) + (1 | b)", crossed(np.random.default_rng(8), slopes=False))
    assert not [note for note in found._notes if "ends of their 95% intervals" in note]
