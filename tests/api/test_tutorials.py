"""Tutorials run as they are, within what they promise: two minutes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("plot_*.py"))
QUIET = {**os.environ, "MPLBACKEND": "agg"}


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    found = subprocess.run(
        [sys.executable, "-W", "error", path], cwd=tmp_path, env=QUIET, capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stderr


def test_there_is_one_for_each_reader():
    assert [path.stem.split("_", 2)[2] for path in TUTORIALS] == ["testing", "causes", "models", "messages"]
