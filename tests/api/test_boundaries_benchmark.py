"""The script behind the table of levels at the boundary asks what it says, and goes on where it was ended."""

import numpy as np
import pytest

import meanmap as mm
from benchmarks import boundaries


@pytest.mark.parametrize("seed", [0, 1])
def test_one_look_at_the_true_shift_says_what_the_tests_and_the_interval_say(seed):
    draw, deviation = boundaries.LAWS["t5"]
    rng = np.random.default_rng([boundaries.SEED, seed, 1, 60])
    x, y = draw(rng, (60, 1)), draw(rng, (60, 1)) + boundaries.MARGIN * deviation
    said = boundaries.shift("t5", 1, 60, seed)
    ends = mm.two_sample_effect(x, y, rng=seed).shift
    assert said[2] == (not ends.low <= boundaries.MARGIN <= ends.high)
    asked = [mm.closeness_test(x, y, boundaries.MARGIN, claim=claim, rng=seed) for claim in ("close", "far")]
    assert said[:2] == [each.pvalue <= boundaries.LEVEL for each in asked]


def test_rounds_go_on_where_the_file_ends(monkeypatch, tmp_path):
    for name, value in (("ROWS", (24,)), ("COLUMNS", (1,)), ("LAWS", {"t2.2": boundaries.LAWS["t2.2"]})):
        monkeypatch.setattr(boundaries, name, value)
    monkeypatch.setattr(boundaries, "QUESTIONS", {k: (*v[:2], (2,)) for k, v in boundaries.QUESTIONS.items()})
    path = tmp_path / "cells.jsonl"
    boundaries.measure(path, 1)
    before = path.read_text()
    boundaries.measure(path, 2)
    assert path.read_text().startswith(before)
    found = boundaries.gathered(path)
    assert {key: repeats for key, (_, repeats) in found.items()} == dict.fromkeys(
        ("shift, t2.2, 1, 24", "sites, t2.2, 1, 24", "columns, t2.2, 1, 24"), 4
    )
    found["sites, t2.2, 1, 24"] = [[40], 100]
    assert "     - 100\n     - **0.400**\n" in boundaries.page(found)
