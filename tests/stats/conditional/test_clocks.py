"""Given a column that counts the rows series are told of, wherever conditional tests are asked."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app

SAID = "as a clock or an id does"
DRAWS = {"n_permutations": 99, "rng": 0}


def walks(seed, n=60):
    """Two series with a walk in common and noise of their own, and when they were seen."""
    rng = np.random.default_rng([seed, 9])
    walk = 0.5 * rng.normal(size=n).cumsum()
    x, y = walk + rng.normal(size=(2, n))
    return x, y, np.arange(n)


SHUFFLED = np.random.default_rng(1).permutation(60)
CLOCKS = {
    "whole": np.arange(60),
    "from elsewhere": 1000 - np.arange(60.0),
    "equal steps": np.linspace(-3, 3, 60),
    "days": pd.date_range("2024-01-01", periods=60).to_numpy(),
    "shuffled": SHUFFLED,
    "list": list(range(60)),
    "column": pd.DataFrame({"id": np.arange(60)}),
    "beside": {"a": np.random.default_rng(2).normal(size=60), "id": np.arange(60)},
}


@pytest.mark.parametrize("z", CLOCKS.values(), ids=CLOCKS.keys())
def test_clocks_are_told_of(z):
    x, y, _ = walks(0)
    (said,) = [text for text in mm.conditional_independence_test(x, y, z, **DRAWS).warnings if SAID in text]
    assert said.startswith("column 'id' of z holds" if isinstance(z, dict) else "z holds")


def test_others_are_not():
    rng = np.random.default_rng(3)
    x, y, t = walks(1)
    for z in (rng.normal(size=60), rng.normal(size=60).round(1), t // 2, t**2.0):
        assert not any(SAID in text for text in mm.conditional_independence_test(x, y, z, **DRAWS).warnings)
    blocks = mm.conditional_independence_test(x, y, t, clusters=5, method="kci", **DRAWS)
    assert not any(SAID in text for text in blocks.warnings)


def test_whoever_asks_is_told():
    x, y, t = walks(2)
    table = pd.DataFrame({"x": x, "y": y, "id": t})
    assert any(SAID in text for text in mm.test("y ~ x | id", table, rng=0).warnings)
    assert any(SAID in text for text in mm.conditional_independence_effect("x", "y", "id", data=table, rng=0).warnings)
    many = np.random.default_rng(0).normal(size=(2, 5001))
    found = mm.conditional_independence_test(*many, np.arange(5001), **DRAWS)  # streamed
    assert any(SAID in text for text in found.warnings)


def test_the_command_tells_it(tmp_path):
    x, y, t = walks(2)
    path = tmp_path / "table.csv"
    pd.DataFrame({"x": x, "y": y, "id": t}).to_csv(path, index=False)
    asked = ["test", "conditional", str(path), "--x", "x", "--y", "y", "--z", "id", "--seed", "0"]
    for more in ([], ["--effect"]):
        found = CliRunner().invoke(app, asked + more)
        assert found.exit_code == 0, found.output
        assert SAID in found.output + found.stderr
