"""Every function that learns from a column of numbers names codes for missing values and gross outliers in it, once."""

import warnings

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap import ep, estimators

N = 80
LEARNERS = {
    "robust_regression": lambda t: ep.models.robust_regression(t[["x"]], t["y"]),
    "ConditionalMeanRegressor": lambda t: estimators.ConditionalMeanRegressor().fit(t[["x"]], t["y"]),
    "KernelGraphRegressor": lambda t: estimators.KernelGraphRegressor().fit(t[["x"]], t["y"]),
    "KernelGraphImputer": lambda t: estimators.KernelGraphImputer().fit(t),
    "chow_liu": mm.chow_liu,
    "condition": lambda t: mm.condition(t["x"], t["y"]),
    "embed": mm.embed,
    "two_sample_test": lambda t: mm.two_sample_test(t[:40], t[40:], n_permutations=99, rng=0),
    "fit": lambda t: mm.fit("y ~ x", t),
}


def table(column, values):
    rng = np.random.default_rng(3)
    x = rng.normal(8.0, 1.0, N)
    found = pd.DataFrame({"x": x, "y": 3 * x + rng.normal(size=N)})
    found.loc[rng.permutation(N)[: len(values)], column] = values
    return found


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize(("values", "shown"), [([-999.0] * 10, "-999"), ([123456.0], "123456")])
@pytest.mark.parametrize("name", LEARNERS)
def test_codes_and_outliers_are_named_once(name, values, shown, column):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = LEARNERS[name](table(column, values))
    report = getattr(found, "report", None)
    held = [*getattr(report, "notes", ()), *getattr(found, "warnings", ()), *getattr(found, "notes", ())]
    notes = {*map(str, (each.message for each in heard)), *held}
    assert sum(f" {shown} in " in note for note in notes) == 1, notes
