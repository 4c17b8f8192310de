"""The figures of kernel belief propagation: registered, and the fastest one run."""

import pytest

from meanmap.datasets.files import DataNotFoundError
from meanmap_papers.experiment import Setting, verdict
from meanmap_papers.registry import find

FIGURES = [f"loopy-figure-{number}" for number in (1, 2, 3, 4)]
FIGURES += ["loopy-depth", "loopy-stereo", "loopy-torsion", "loopy-competitors", "loopy-cost", "loopy-constants"]
FIGURES += ["loopy-labels"]


def test_ranks_are_those_of_figure_2():
    experiment = find("loopy-figure-2")
    outcome = experiment.run(Setting("smoke"))
    assert verdict(experiment.claims, outcome.numbers, "smoke") == "not shown at this scale"
    assert outcome.numbers["fine over coarse"].value > 1


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_figures_run_at_smoke_scale(figure):
    experiment = find(figure)
    try:
        outcome = experiment.run(Setting("smoke"))
    except DataNotFoundError as error:
        pytest.skip(f"needs data: {error}")
    assert outcome.answer
    assert set(outcome.numbers) >= {name for claim in experiment.claims for name in claim.names}
