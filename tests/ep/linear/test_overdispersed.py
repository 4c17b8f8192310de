"""Counts that scatter more than their family has it are named, with what to type."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm


def notes(formula, frame, family):
    return [note for note in mm.fit(formula, frame, family=family).report.notes if "scatter" in note]


def test_scattered_counts_are_named_and_an_effect_of_each_row_removes_the_note():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "row": np.arange(200)})
    mean = np.exp(1 + 0.3 * frame.x)
    frame["y"] = rng.poisson(mean * np.exp(rng.normal(size=200)))
    (note,) = notes("y ~ x", frame, "poisson")
    at = np.exp(mm.fit("y ~ x", frame, family="poisson").mean[1] * frame.x)
    expected = np.sum((frame.y - (m := at * frame.y.sum() / at.sum())) ** 2 / m) / 198
    assert float(note.split()[2]) == pytest.approx(expected, rel=0.05)
    assert "family='negativebinomial'" in note
    assert not notes("y ~ x", frame, "negativebinomial")
    assert not notes("y ~ x + (1 | row)", frame, "poisson")


def test_scattered_successes_are_named_and_labels_never():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=100), "n": 20})
    frame["y"] = rng.binomial(20, 1 / (1 + np.exp(-rng.normal(0.0, 1.5, 100))))
    (note,) = notes("p(y, n) ~ x", frame, "binomial")
    assert "negativebinomial" not in note
    assert "(1 | row)" in note
    assert not notes("z ~ x", frame.assign(z=frame.y > 10), "bernoulli")


def test_counts_of_their_family_are_not_named():
    rng = np.random.default_rng(2)
    for mean in (0.05, 0.5, 5.0):
        frame = pd.DataFrame({"x": rng.normal(size=200)})
        frame["y"] = rng.poisson(mean * np.exp(0.5 * frame.x))
        assert not notes("y ~ x", frame, "poisson")
    frame["log_time"] = np.log(rng.uniform(1.0, 50.0, 200))
    frame["y"] = rng.poisson(0.1 * np.exp(0.5 * frame.x + frame.log_time))
    assert not notes("y ~ x + offset(log_time)", frame, "poisson")
