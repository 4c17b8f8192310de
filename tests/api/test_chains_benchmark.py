"""The benchmark of long chains: exact means, maximum likelihood, and what its page says."""

import numpy as np
import pytest

from benchmarks import chains


def test_exact_means_are_those_of_closed_forms():
    """Between ends at 1.5 of a Gaussian chain; of two modes nothing but their symmetry is known."""
    normal, modes = chains.CHAINS.values()
    found, deviation = normal.means([normal.truth] * chains.STEPS)
    places = np.arange(1, chains.STEPS)
    both = np.stack([0.9**places, 0.9 ** places[::-1]], axis=1)
    ends = np.array([[1.0, 0.9**chains.STEPS], [0.9**chains.STEPS, 1.0]])
    np.testing.assert_allclose(found, 1.5 * both @ np.linalg.solve(ends, np.ones(2)), atol=2e-3)
    assert deviation == pytest.approx(1, abs=1e-3)
    found, deviation = modes.means([modes.truth] * chains.STEPS)
    np.testing.assert_allclose(found, found[::-1], rtol=1e-9)
    assert 0 < found[9] < found[0] < 1.2
    assert deviation == pytest.approx(np.sqrt(1 + 0.45**2), abs=1e-3)


@pytest.mark.parametrize("name", chains.CHAINS)
def test_rows_have_the_law_that_is_fitted_to_them(name):
    chain = chains.CHAINS[name]
    rows = chain.rows(np.random.default_rng(0), 20_000, 3)
    np.testing.assert_allclose(chain.fit(rows[:, 1], rows[:, 2]), chain.truth, atol=0.1)
    assert (
        chain.logs(chain.truth, rows[:, 0], rows[:, 1]).mean() > chain.logs(chain.truth, rows[:, 0], -rows[:, 1]).mean()
    )


def test_errors_are_summed_over_variables_and_sets_and_large_ones_are_bold():
    drawn = np.random.default_rng(1).normal(size=(400, 2, 19)) * np.array([0.2, 0.1])[:, None]
    found = chains.summed(drawn)
    assert found["ours"][0] == pytest.approx(0.2, abs=4 * found["ours"][1])
    assert found["likelihood"][0] == pytest.approx(0.1, abs=4 * found["likelihood"][1])
    assert found["ours"][1] == pytest.approx(0.2 / np.sqrt(2 * 19 * 400), rel=0.1)
    assert abs(found["middle"][0]) < 4 * found["middle"][1] == pytest.approx(0.04, rel=0.1)
    page = chains.page({"KernelGraph; normal; 300": found})
    assert f"**{found['ours'][0]:.3f} ± " in page
    assert "**" not in chains.page({"KernelGraph; normal; 300": found | {"ours": [0.1, 0.01]}})


def test_ours_is_near_the_exact_means():
    ours, likelihood = chains.errors("KernelField", chains.CHAINS["normal"], 1000, 3)
    assert np.sqrt(np.mean(ours**2)) < 0.2
    assert np.sqrt(np.mean(likelihood**2)) < 0.15
