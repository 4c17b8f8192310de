"""Sums round otherwise on another processor: values that tie still tie, so that p-values stay the same."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas
import pytest

import meanmap as mm

# Instructions that linear algebra, the compiler and NumPy shall do without, as on older processors.
PROCESSORS = {
    "2013": {"OPENBLAS_CORETYPE": "Haswell", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
    "2008": {"OPENBLAS_CORETYPE": "Prescott", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
}


def table(n, seed):
    """Few values, so that most permutations tie with others."""
    random = np.random.default_rng(seed)
    labels = random.choice(list("xyz"), n)
    return pandas.DataFrame(
        {"count": random.integers(0, 4, n), "label": labels, "real": random.normal(size=n).round(1)}
    )


def pvalues():
    found = []
    for n in (8, 40):
        one, two, three = (table(n, seed) for seed in range(3))
        for columns in (["count"], ["label"], ["count", "label", "real"]):
            x, y = one[columns], two[["real"]]
            results = (
                mm.two_sample_test(x, two[columns], rng=0),
                mm.k_sample_test([x, two[columns], three[columns]], rng=0),
                mm.independence_test(x, y, rng=0),
                mm.joint_independence_test([x, y, three[["count"]]], rng=0),
                mm.conditional_independence_test(x, y, three[["count"]], rng=0),
            )
            found += [float(result.pvalue) for result in results]
    return found


@pytest.mark.parametrize("processor", PROCESSORS)
def test_pvalues_are_those_of_another_processor(processor):
    settings = dict(PROCESSORS[processor])
    settings["XLA_FLAGS"] += " " + os.environ.get("XLA_FLAGS", "")
    script = "import json; from tests.stats.test_processors import pvalues; print(json.dumps(pvalues()))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == pvalues()
