"""The median of distances is NumPy's, digit for digit."""

import numpy as np
import pytest

from meanmap.kernels.medians import median, nonzero_median


@pytest.mark.parametrize("n", [1, 2, 3, 44, 4950, 44_851])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_that_of_numpy(n, dtype):
    rng = np.random.default_rng(n)
    for values in (rng.exponential(size=n), rng.integers(0, 4, n)):
        values = values.astype(dtype)
        kept = values.copy()
        assert median(values) == np.median(values)
        assert median(values).dtype == np.median(values).dtype
        np.testing.assert_array_equal(values, kept)


def test_without_numbers_it_is_unknown():
    assert np.isnan(median(np.array([1.0, np.nan, 3.0])))
    assert np.isnan(nonzero_median(np.zeros(3)))
    assert nonzero_median(np.array([0.0, 0.0, 0.0, 2.0, 4.0])) == 3.0
