"""Answers to queries say what was known."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm


@pytest.mark.parametrize("model", [mm.KernelGraph, mm.BayesianNetwork])
def test_print_and_page_name_the_evidence(model, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=120), "soil": rng.choice(["loam", "sand"], 120)})
    table["b"] = table["a"] + 0.3 * rng.normal(size=120)
    fitted = model([("a", "b"), ("soil", "b")]).fit(table)
    found = fitted.query({"a": 0.5, "soil": "loam"}, ["b"])
    assert found.given == ("a = 0.5", "soil = loam")
    assert str(found).startswith("Beliefs(1 target given a = 0.5, soil = loam; ")
    found.page(tmp_path / "b.html")
    assert "Beliefs given a = 0.5, soil = loam" in (tmp_path / "b.html").read_text(encoding="utf-8")
    assert fitted.query(None, ["b"]).given == ()
    assert fitted.query({"a": [0.5, 1.0]}, ["b"]).given == ("a",)
