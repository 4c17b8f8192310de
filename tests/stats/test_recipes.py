"""Scripts of the documentation for engines and devices that not every machine has, as they stand on the page."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas
import pytest

import meanmap as mm
from tests.documented import recipe

pytestmark = pytest.mark.slow


def printed(word, folder, **environment):
    """What the script with this word prints."""
    (folder / "recipe.py").write_text(recipe(word))
    done = subprocess.run(
        [sys.executable, "recipe.py"], cwd=folder, env=os.environ | environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout.split("\r")[-1].strip().splitlines()


def test_spark_finds_the_p_value_of_memory(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed here")
    if shutil.which("java") is None:
        pytest.skip("there is no Java here, which Spark needs")
    rng, frames = np.random.default_rng(0), {}
    for name, scale in {"before": 1.0, "after": 1.02}.items():
        a, b = rng.gamma(2.0, scale, 12_000), rng.poisson(3.0, 12_000)
        frames[name] = pandas.DataFrame({"a": a, "b": b})
        (tmp_path / name).mkdir()
        for i in range(4):
            frames[name][2900 * i : None if i == 3 else 2900 * (i + 1)].to_parquet(tmp_path / name / f"{i}.parquet")
    settings = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
    in_memory = mm.two_sample_test(frames["before"], frames["after"], rng=0)
    assert 0.01 < in_memory.pvalue < 0.99
    assert float(printed("mapInArrow", tmp_path, **settings)[-1]) == in_memory.pvalue


def test_a_card_computes_what_the_processor_does(tmp_path):
    import jax

    try:
        jax.devices("gpu")
    except RuntimeError:
        pytest.skip("JAX finds no graphics card here")
    where, means = printed("gram.devices", tmp_path)
    assert "cpu" not in where.lower()
    assert where.endswith("float32")
    rows = np.random.default_rng(0).normal(size=(2, 2000, 3))
    with jax.default_device(jax.devices("cpu")[0]):
        alone = mm.ep.models.logistic_regression(rows[0], rows[0][:, 0] > rows[1][:, 0])
    np.testing.assert_allclose(json.loads(means), alone.mean, atol=1e-7)
