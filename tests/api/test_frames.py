"""What takes a table takes pandas, polars and dictionaries alike, with the same answer, and reads columns by name."""

import numpy as np
import pandas
import polars
import pytest

import meanmap as mm
from meanmap import ep

RNG = np.random.default_rng(0)
SUN, WATER = RNG.normal(size=(2, 60))
COLUMNS = {
    "sun": SUN,
    "growth": np.tanh(SUN) + 0.3 * RNG.normal(size=60),
    "water": WATER,
    "kind": np.where(WATER > 0, "wet", "dry"),
}
FRAMES = {"dict": dict, "pandas": pandas.DataFrame, "polars": polars.DataFrame}
# Functions that take a table, from what each is told of it to a number.
TASKS = {
    "two-sample": lambda frame: (
        mm.two_sample_test(frame(cut(30, 0)), frame(cut(60, 30)), n_permutations=99, rng=0).pvalue
    ),
    "independence": lambda frame: (
        mm.independence_test(
            frame({"sun": SUN}), frame({"growth": COLUMNS["growth"]}), n_permutations=99, rng=0
        ).statistic
    ),
    "default kernel": lambda frame: mm.default_kernel(frame(COLUMNS), rng=0)(frame(COLUMNS)).mean(),
    "embedding": lambda frame: mm.embed(frame(COLUMNS)).norm(),
    "tree": lambda frame: len(mm.chow_liu(frame(COLUMNS), rng=0).edges),
    "drift": lambda frame: mm.DriftMonitor.of(frame(COLUMNS), n_permutations=19, rng=0).step(frame(COLUMNS)).pvalues[0],
}


def cut(stop, start):
    return {name: COLUMNS[name][start:stop] for name in ("sun", "growth", "water")}


@pytest.mark.parametrize(
    "task", [pytest.param(t, marks=pytest.mark.slow) if t in ("tree", "drift") else t for t in TASKS]
)
def test_frames_are_all_alike(task):
    found = {name: TASKS[task](frame) for name, frame in FRAMES.items()}
    assert found["pandas"] == found["dict"]
    assert found["polars"] == found["dict"]


@pytest.mark.slow
def test_models_of_frames_are_all_alike():
    """Graphs that are learned and asked, and a table of coefficients as a frame again."""
    means, tables = [], []
    for frame in FRAMES.values():
        model = mm.KernelGraph([("sun", "growth")]).fit(frame(COLUMNS))
        means.append(model.query({"growth": 0.5}, targets=["sun"])["sun"].mean())
        fit = ep.models.logistic_regression(frame({"sun": SUN, "water": WATER}), COLUMNS["kind"])
        tables.append(fit.to_frame())
    assert len(set(means)) == 1
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert "water" in tables[0].index
