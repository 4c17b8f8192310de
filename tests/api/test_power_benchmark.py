import numpy as np
import pytest

from benchmarks import power


@pytest.mark.parametrize("name", list(power.PROBLEMS))
def test_problems_draw_two_samples_that_can_be_repeated(name):
    first, again = (power.PROBLEMS[name](np.random.default_rng(0)) for _ in range(2))
    assert first[0].shape == first[1].shape
    for one, other in zip(first, again, strict=True):
        assert (one == other).all()


def test_bumps_leave_the_unit_interval_and_its_mean_alone():
    """Each cell has as much above as below: the perturbed density integrates to one and keeps its mass per cell."""
    _, y = power.perturbed_uniform(1, 2, 0.7, 4000)(np.random.default_rng(1))
    assert 0 <= y.min() <= y.max() <= 1
    assert abs(np.mean(y < 0.5) - 0.5) < 5 * 0.5 / np.sqrt(4000)
    counts = np.histogram(y, 4, (0, 1))[0] / 4000
    assert np.abs(counts - 0.25).max() > 0.05


def test_the_page_shows_every_method_and_marks_the_best():
    methods = {"always": lambda x, y, seed: True, "never": lambda x, y, seed: False}
    problems = {"two modes": power.bimodal}
    found = power.panel(problems, methods, repeats=3, seed=0)
    text = power.page({"repeats": 3, "seed": 0, "problems": found})
    assert "**1.00 ± 0.00**" in text
    assert "     - 0.00 ± 0.00" in text
    assert "3 data sets for each problem, from seed 0" in text
