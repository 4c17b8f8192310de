"""The script behind the table of pooled intervals measures what it says."""

import numpy as np
import pytest

from benchmarks import pooled


def test_intervals_of_complete_tables_are_those_of_least_squares():
    """Without gaps every drawn table is the table itself, and intervals hold at their rate."""
    held = []
    for number in range(300):
        random = np.random.default_rng(number)
        a, b, noise = random.normal(size=(3, 40))
        y = pooled.design("y ~ a + b + a:b", a, b) @ [1, 0.5, 0.5, 0.5] + noise
        found, variances = pooled.least_squares("y ~ a + b + a:b", np.stack([a, b, y], axis=1))
        held.append(np.abs(found - [1, 0.5, 0.5, 0.5]) < 2.028 * np.sqrt(variances))
    assert np.mean(held, axis=0) == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 300))


def test_gaps_are_a_share_of_all_cells_and_the_last_column_is_as_the_model_says():
    rows = np.concatenate([pooled.data("y ~ a + b + a²", seed) for seed in range(20)])
    assert np.isnan(rows).mean() == pytest.approx(pooled.HIDDEN, abs=0.02)
    whole = rows[~np.isnan(rows).any(axis=1)]
    found, variances = pooled.least_squares("y ~ a + b + a²", whole)
    assert np.all(np.abs(found - [1, 0.5, 0.5, 0.5]) < 4 * np.sqrt(variances))


def test_one_data_set_is_answered_and_shares_by_chance_are_bold(monkeypatch):
    monkeypatch.setattr(pooled, "MODELS", {"y ~ a + b": (2, pooled.MODELS["y ~ a + b"][1])})
    monkeypatch.setattr(pooled, "DRAWS", 2)
    monkeypatch.delenv("MEANMAP_MICEFOREST", raising=False)
    found = pooled.measure()
    of_network = found["y ~ a + b"]["DependencyNetwork"]
    assert of_network["mean"] == pytest.approx([1, 0.5, 0.5], abs=0.4)
    of_network |= {"sets": 500, "held": [0.96, 0.9, 1.0]}
    text = pooled.page(found)
    assert text.count("**0.960**") == text.count("- 0.900") == text.count("- 1.000") == 1
