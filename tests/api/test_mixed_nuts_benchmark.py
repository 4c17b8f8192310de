"""The script that compares mixed models with the No-U-Turn sampler reads chains, and has the names of the table."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("formulae")
pytest.importorskip("numpyro")

import meanmap as mm
from benchmarks import mixed_nuts


def test_estimates_are_compared_with_chains():
    chains = 2 + 0.5 * np.random.default_rng(0).normal(size=(2, 5000))
    found = mixed_nuts.compared(chains, pd.Series({"estimate": 2.1, "sd": 0.55}))
    # Draws are independent: standard errors are those of 10,000.
    assert found["off"] == pytest.approx(0.2, abs=0.04)
    assert found["off error"] == pytest.approx(0.01, rel=0.1)
    assert found["sd"] == pytest.approx(1.1, abs=0.03)
    assert found["sd error"] == pytest.approx(0.0071, rel=0.1)
    assert found["ratio"] == pytest.approx(1.05, abs=0.01)


def test_the_page_has_the_worst_of_each_model():
    near = {"off": 0.01, "off error": 0.02, "sd": 1.0, "sd error": 0.01, "ratio": 1.0, "ratio error": 0.01}
    far, wide = near | {"off": -0.3}, near | {"sd": 0.8, "ratio": 1.2}
    components = {"sd(Intercept | g)": wide, "cor(Intercept, x | g)": near | {"ratio": -9.0}}
    model = {"rows": 7, "draws": [2, 50], "seconds": 0.1, "NUTS": 9.0, "effects": {"x": near, "z": far}}
    lines = mixed_nuts.page({"cbpp, binomial": model | {"components": components}})
    for cell in ("cbpp, binomial", "2 × 50", "0.300 (0.020)", "1.000 (0.010)", "1.200 (0.010)", "0.800 (0.010)", "9"):
        assert f"- {cell}\n" in lines + "\n"


@pytest.mark.slow
def test_chains_have_the_names_and_units_of_the_table():
    rng = np.random.default_rng(0)
    g, x = np.repeat(np.arange(20), 10), 5 + rng.normal(size=200)
    y = 100 + 20 * (x + rng.normal(size=20)[g] + rng.normal(size=20)[g] * (x - 5) + rng.normal(size=200))
    found = mm.fit("y ~ x + (1 + x | g)", {"y": y, "x": x, "g": g})
    chains, table = mixed_nuts.sampled(found, 500, 500), found.to_frame()
    assert set(chains) == set(table.index)
    for name, each in chains.items():
        assert each.shape == (2, 500)
        assert abs(each.mean() - table.loc[name, "estimate"]) < 0.4 * table.loc[name, "sd"]
