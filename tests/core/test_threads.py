import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import meanmap as mm
from meanmap.core.threads import blas_threads_for, one_blas_thread


def threads():
    assert scipy.linalg.inv(np.eye(2)).shape == (2, 2)
    return {
        library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with one_blas_thread():
            assert set(threads().values()) == {1}
        assert threads() == before
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            raise ZeroDivisionError
        assert threads() == before


def test_searches_run_on_one_thread():
    seen = []

    def test(x, y, z):
        seen.append(set(threads().values()))
        return 1.0

    with threadpool_limits(2, user_api="blas"):
        mm.pc(np.random.default_rng(0).normal(size=(20, 3)), test=test)
    assert seen == [{1}] * 3


class Noting(dict):
    """A table that notes how many threads there are when it is read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = []

    def __getitem__(self, name):
        self.seen.append(set(threads().values()))
        return super().__getitem__(name)

    def items(self):
        self.seen.append(set(threads().values()))
        return super().items()

    def values(self):
        self.seen.append(set(threads().values()))
        return super().values()


@pytest.mark.parametrize(
    "fit",
    [
        lambda table: mm.KernelGraph([("x", "y")]).fit(table),
        lambda table: mm.bp.BayesianNetwork([("x", "y")]).fit(table),
        lambda table: mm.bp.DependencyNetwork().fit(table),
        lambda table: mm.condition(table, table["x"]),
        lambda table: mm.learn_kernel(table, rng=0),
        lambda table: mm.two_sample_test(table, table, n_permutations=19),
        lambda table: mm.k_sample_test([table, table, table], n_permutations=19),
        lambda table: mm.independence_test(table, table, n_permutations=19),
        lambda table: mm.joint_independence_test([table, table, table], n_permutations=19),
        lambda table: mm.conditional_independence_test(table, table["y"], table["x"]),
        lambda table: mm.stats.two_sample_effect(table, table),
        lambda table: mm.stats.k_sample_effect([table, table, table]),
        lambda table: mm.stats.independence_effect(table, table),
        lambda table: mm.chow_liu(table),
    ],
    ids=[
        *["KernelGraph", "BayesianNetwork", "DependencyNetwork", "condition", "learn_kernel", "two_sample_test"],
        *["k_sample_test", "independence_test", "joint_independence_test", "conditional_independence_test"],
        *["two_sample_effect", "k_sample_effect", "independence_effect", "chow_liu"],
    ],
)
def test_computations_run_on_one_thread(fit):
    x = np.random.default_rng(0).normal(size=30)
    table = Noting({"x": x, "y": x + 0.1 * np.cos(9 * x)})
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        fit(table)
        assert {1} in table.seen
        assert threads() == before


def test_what_is_large_has_all_threads_again():
    with threadpool_limits(2, user_api="blas"):
        before = set(threads().values())
        with one_blas_thread():
            with blas_threads_for(1e12), one_blas_thread():
                assert set(threads().values()) == before
            with blas_threads_for(1e6):
                assert set(threads().values()) == {1}
            assert set(threads().values()) == {1}
        assert set(threads().values()) == before
        with blas_threads_for(1e12):
            assert set(threads().values()) == before


@pytest.mark.slow
def test_a_fit_beside_busy_processors_costs_what_it_costs_with_one_thread():
    measured = (
        "import time, numpy as np, meanmap as mm; r = np.random.default_rng(0); x = r.normal(size=(500, 4));"
        "t = {c: x[:, 0] + .3 * x[:, i] for i, c in enumerate('abcd')};"
        "fit = mm.KernelGraph([('a', 'b'), ('b', 'c'), ('c', 'd')]).fit; fit(t);"
        "start = time.process_time(); fit(t); print(time.process_time() - start)"
    )

    def seconds(**set_by_hand):
        chosen = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
        done = subprocess.run(
            [sys.executable, "-c", measured], env=chosen | set_by_hand, capture_output=True, check=True
        )
        return float(done.stdout)

    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        by_hand = min(seconds(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1") for _ in range(2))
        assert min(seconds() for _ in range(2)) < 1.5 * by_hand + 0.1
    finally:
        for one in busy:
            one.kill()
            one.wait()
