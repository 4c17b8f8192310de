"""Type checkers see what the main calls return."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import meanmap as mm

SCRIPT = """
import jax
import numpy as np

import meanmap as mm
from meanmap import ep

rng = np.random.default_rng(0)
x, y = rng.normal(size=(100, 2)), rng.normal(size=(80, 2))
table = {"a": x[:, 0], "b": x[:, 1]}
w = ep.Variable("w", ep.MultivariateNormal.standard(2))
z, p = ep.Variable("z", ep.Normal, plate=100), ep.Variable("p", ep.Beta, plate=100)
graph = ep.FactorGraph(ep.Dot(x, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=np.ones(100)))
model = mm.KernelGraph([("a", "b")]).fit(table)

reveal_type(mm.two_sample_test(x, y, rng=0))
reveal_type(mm.two_sample_test(x, y, rng=0).pvalue)
reveal_type(mm.two_sample_test(x, y, rng=0).driving_columns())
reveal_type(mm.independence_test(x[:, 0], x[:, 1]).reject(0.05))
reveal_type(mm.conditional_independence_test(x[:, 0], x[:, 1], y[:, 0]).pvalue)
reveal_type(mm.k_sample_test([x, y]))
reveal_type(mm.pc(table, rng=0).report)
reveal_type(mm.chow_liu(table))
reveal_type(mm.learn_kernel(x, rng=0).kernel)
reveal_type(mm.embed(x, mm.kernels.RBF(1.0)))
reveal_type(mm.condition(x[:, 0], x[:, 1]))
reveal_type(model)
reveal_type(model.query({"a": 1.0}, targets=["b"]).report)
reveal_type(mm.DriftMonitor.of(x).step(y).alarms)
reveal_type(ep.infer(graph)["w"])
reveal_type(ep.models.logistic_regression(x, np.ones(100)).summary())
"""


def test_the_package_says_that_it_is_typed():
    assert (Path(mm.__file__).parent / "py.typed").exists()


@pytest.mark.slow
def test_main_calls_have_types(tmp_path):
    pytest.importorskip("basedpyright", reason="basedpyright comes with the development environment")
    script = tmp_path / "user.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, str(script)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=Path(mm.__file__).parents[1], check=False).stdout
    revealed = re.findall(r'Type of "(.*)" is "(.*)"', said)
    assert len(revealed) == SCRIPT.count("reveal_type")
    assert [(call, kind) for call, kind in revealed if re.search("Any|Unknown", kind)] == []
    assert "0 errors" in said
