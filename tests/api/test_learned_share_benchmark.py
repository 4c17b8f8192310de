"""The table of learned messages counts what it says, and its simulators are what they are called."""

import numpy as np
import pytest

from benchmarks import learned_share, pages
from meanmap import ep

FOUND = pages.stored()["learned_share"]


def test_every_simulator_is_on_the_page_with_eight_problems():
    assert {name: len(rows) for name, rows in FOUND.items()} == dict.fromkeys(learned_share.SIMULATORS, 8)


def test_problems_ask_what_the_page_says():
    shares = {name: [share for share, _, _ in rows] for name, rows in FOUND.items()}
    assert max(shares["queue"][:5]) < 0.5
    for name in ("drug", "epidemic"):
        assert shares[name][0] < 0.02
        assert max(shares[name][1:]) < 0.01
        assert max(off for _, off, _ in FOUND[name]) < 0.05
    stars = {name: [abandoned for _, _, abandoned in rows] for name, rows in FOUND.items()}
    assert stars == {"queue": [0] * 5 + [1] * 3, "drug": [0] * 8, "epidemic": [0] * 8}


def test_the_drug_follows_its_differential_equation():
    a, b, t, step = 0.3, -0.2, 1.5, 1e-5
    absorbed, cleared = np.exp(0.5 * a + 0.7), np.exp(0.5 * b - 1)
    gut, blood = 1.0, 0.0
    for _ in range(int(t / step)):
        gut, blood = gut - step * absorbed * gut, blood + step * (absorbed * gut - cleared * blood)
    found = learned_share.drug(np.array([a]), np.array([b]), np.array([1.0]), np.array([t]))
    assert found[0] == pytest.approx(np.log(blood) - 0.3, abs=1e-4)


@pytest.mark.parametrize("name", learned_share.SIMULATORS)
def test_sampling_takes_a_thousand_points_for_each_row_and_sweep(name):
    counted = learned_share.Counted(learned_share.SIMULATORS[name][0])
    model = learned_share.problem(name, counted, 0)
    counted.points = 0
    report = ep.infer(model, ep.ImportanceSampling(learned_share.POINTS), sweeps=2, rng=0).report
    assert report.steps == 2
    # The evidence asks once more, and what fills the plate up may count as one more row.
    assert 300_000 <= counted.points <= 303_000


def test_the_page_marks_where_predictions_were_given_up():
    page = learned_share.page({"queue": [[0.35, 0.19, 0], [0.0033, 0.16, 1]]})
    assert "* - queue: evaluations\n     - 35.0%\n     - 0.3%*\n" in page
