"""The figures of kernel belief propagation: registered, and the fastest one run."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from meanmap.datasets.files import DataNotFoundError
from meanmap_papers.experiment import Number, Setting, verdict
from meanmap_papers.loopy import competitors, cost, figure_4
from meanmap_papers.loopy.denoising import ONE_PICTURE, noisy, rings
from meanmap_papers.loopy.tuned import METHODS, PRESETS
from meanmap_papers.registry import find
from papers import pages

FIGURES = [f"loopy-figure-{number}" for number in (1, 2, 3, 4)]
FIGURES += ["loopy-depth", "loopy-stereo", "loopy-torsion", "loopy-competitors", "loopy-cost", "loopy-constants"]
FIGURES += ["loopy-labels", "loopy-pictures"]


def test_ranks_are_those_of_figure_2():
    experiment = find("loopy-figure-2")
    outcome = experiment.run(Setting("smoke"))
    assert verdict(experiment.claims, outcome.numbers, "smoke") == "not shown at this scale"
    assert outcome.numbers["fine over coarse"].value > 1


def test_a_setting_of_the_appendix_is_a_rival_whether_tuning_chose_it_or_not():
    noise = np.random.default_rng(0).normal(scale=0.01, size=6)
    found = {}
    for method in METHODS:
        settings = [*method.pictures, *(rival for key, rival in PRESETS.items() if key == ("denoising", method.name))]
        for rival in settings:
            level = 1.0 if method.name == "kernel" else 2.0
            found["denoising", method.name, rival.label] = np.stack([level + noise, *np.ones((3, 6))], axis=1)
    chosen = {("denoising", method.name): method.pictures[0].label for method in METHODS}
    (claim,) = [each for each in find("loopy-competitors").claims if each.names[0].startswith("denoising: log error")]
    ahead = competitors.outcome(found, chosen, ["denoising"], 2, 4).numbers
    assert claim.judged(*claim.of(ahead)) == "yes"
    better = {key: 0.4 * each if key[2] == "appendix 2.2.1" else each for key, each in found.items()}
    numbers = competitors.outcome(better, chosen, ["denoising"], 2, 4).numbers
    assert numbers["denoising: log error ratio, appendix 2.2.1 to kernel"].value < 0
    assert claim.judged(*claim.of(numbers)) == "no"
    # A setting that is neither the appendix's nor chosen is no rival, of the kernel's settings as of those of others.
    better = {key: 0.4 * each if key[2] == "bins chosen" else each for key, each in found.items()}
    numbers = competitors.outcome(better, chosen, ["denoising"], 2, 4).numbers
    assert claim.judged(*claim.of(numbers)) == "yes"


def test_an_exponent_of_costs_is_a_mean_over_rounds_and_all_have_bands_of_one_width():
    sizes = np.array([300, 1000, 3000])
    rounds = np.array([1.9, 2.0, 2.2])
    found = {("full", m): 1e-9 * m**rounds for m in sizes}
    exponents = cost._exponents("full", found)
    assert exponents == pytest.approx(rounds)
    assert Number.mean(exponents).runs == 3
    widths = {round(claim.high - claim.low, 9) for claim in find("loopy-cost").claims}
    assert widths == {2 * cost.NEAR}
    assert all(claim.ours for claim in find("loopy-cost").claims)  # seconds do not judge a number of operations


def test_how_often_alike_papers_cite_each_other_is_counted_over_all_pairs():
    rng = np.random.default_rng(0)
    topics = rng.uniform(size=(300, 3)) < 0.4
    together = (topics.astype(int) @ topics.T.astype(int)) > 0
    drawn = np.triu(rng.uniform(size=(300, 300)) < np.where(together, 0.06, 0.02), 1)
    data = SimpleNamespace(topics=topics, links=scipy.sparse.csr_array((drawn | drawn.T).astype(float)))
    found = figure_4.alike(data, rng)
    every = np.triu(np.ones((300, 300), bool), 1)
    rates = [drawn[every & which].mean() for which in (together, ~together)]
    assert found.value == pytest.approx(np.log(rates[0] / rates[1]))
    # Links are independent here: the error is that of two counts, from a jackknife of 20 groups within a factor of 2.
    binomial = np.sqrt(sum(1 / drawn[which].sum() for which in (together, ~together)))
    assert 0.5 < found.error / binomial < 2


def test_like_sentences_of_figures_1_and_3_have_like_bands_and_keep_their_signs():
    """Each is judged in the figure of which the paper says it."""
    slightly = [
        [(claim.low, claim.high) for claim in find(id).claims if "slightly" in claim.says]
        for id in ("loopy-figure-1", "loopy-figure-3")
    ]
    assert slightly == [[(1.0, 1.5)], [(0.0, 1.0)] * 2]
    same, unaffected = [claim for claim in find("loopy-figure-1").claims if claim.low == -1.0]
    assert same.high == unaffected.high == 1.0  # "about the same" and "not affected"
    assert same.names == unaffected.names
    behind = Number.in_spreads([-0.1, -0.2, -0.3], 0.4)
    assert behind.value == pytest.approx(-0.5)
    assert behind.runs == 3


def test_repetitions_of_denoising_differ_in_noise_alone_and_every_page_says_so():
    sunrise = rings(50)
    draws = [noisy(sunrise, np.random.default_rng(seed)) - sunrise for seed in range(40)]
    assert np.abs(np.mean(draws, axis=0)).max() < 5 * 30 / np.sqrt(40)
    assert sunrise.argmin() == 50 * 24  # the middle of the left edge
    assert np.unravel_index(rings(50, centre=(0.2, 0.6)).argmin(), (50, 50)) == (9, 30)
    for id in ("loopy-figure-1", "loopy-figure-3", "loopy-competitors"):
        assert any(ONE_PICTURE in note for note in pages.kept()[id]["notes"])


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_figures_run_at_smoke_scale(figure):
    experiment = find(figure)
    try:
        outcome = experiment.run(Setting("smoke"))
    except DataNotFoundError as error:
        pytest.skip(f"needs data: {error}")
    assert outcome.answer
    shown = [claim for claim in experiment.claims if "smoke" in claim.scales]
    assert set(outcome.numbers) >= {name for claim in shown for name in claim.names}
