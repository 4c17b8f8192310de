import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

import meanmap as mm
from meanmap.core.threads import one_blas_thread


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
