"""The script behind the table of learned networks draws and judges as it says."""

import numpy as np
import pytest

from benchmarks import learned_networks
from meanmap.graphs import Factors

# An effect of two others, which come behind it.
TABLE = np.array([[[0.9, 0.5], [0.4, 0.2]], [[0.1, 0.5], [0.6, 0.8]]])
NETWORK = Factors(np.array([2, 2, 2]), ((0, 1, 2), (1,), (2, 1)), (TABLE, np.array([0.3, 0.7]), np.full((2, 2), 0.5)))


def test_rows_have_the_shares_of_the_network_and_their_log_probabilities():
    rows = learned_networks.drawn(NETWORK, np.random.default_rng(0), 20_000)
    cells, counts = np.unique(rows, axis=0, return_counts=True)
    expected = [TABLE[a, b, c] * (0.3, 0.7)[b] * 0.5 for a, b, c in cells]
    assert len(cells) == 8
    assert np.sum(expected) == pytest.approx(1)
    assert np.abs(counts / 20_000 - expected).max() < 4 * np.sqrt(0.25 / 20_000)
    np.testing.assert_allclose(learned_networks.log_shares(NETWORK, cells, {0, 1, 2}), np.log(expected))
    np.testing.assert_allclose(learned_networks.log_shares(NETWORK, cells, {1}), np.log([0.3, 0.7])[cells[:, 1]])


def test_our_scores_come_close_to_the_truth():
    known, new = (learned_networks.drawn(NETWORK, np.random.default_rng(seed), 1000) for seed in (1, 2))
    labelled = learned_networks.labelled
    scores = learned_networks.ours(labelled(known), labelled(new), list(NETWORK.scopes))
    found = learned_networks.summed(
        learned_networks.log_shares(NETWORK, new, {0, 1, 2}), {"one": scores, "two": scores - np.inf}
    )
    assert found["one"][0] < 0.02
    assert found["two"] == [None, None]


def test_a_row_that_is_behind_by_more_than_the_aim_is_bold():
    labels = {"variables": 8, "truth": -2.0, "BDeu 5": [0.01, 0.001], "counts + 1": [0.02, 0.0], "counts": [None, None]}
    numbers = {"variables": 9, "truth": -50.0, learned_networks.LINEAR: [0.1, 0.01]}
    ours = learned_networks.OURS
    page = learned_networks.page(
        {
            "near; 5000": labels | {ours: [0.029, 0.0]},
            "far; 5000": labels | {ours: [0.035, 0.0]},
            "line; 5000": numbers | {ours: [0.55, 0.0]},
            "bent; 5000": numbers | {ours: [0.7, 0.0]},
        }
    )
    assert [word for word in page.split() if word.startswith("**")] == ["**+0.025**", "**+0.600**"]
    assert "+0.019" in page
    assert "+0.450" in page
    assert "−∞" in page
