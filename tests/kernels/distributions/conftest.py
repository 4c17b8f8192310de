import numpy as np
import pytest

from meanmap.families import Beta, Normal


@pytest.fixture
def tuples():
    """40 incoming messages of a factor: a normal law and a Beta."""
    rng = np.random.default_rng(0)
    normal = Normal(rng.normal(0, 2, 40), np.exp(rng.normal(0, 1, 40)))
    return normal, Beta(rng.uniform(0.5, 9, 40), rng.uniform(0.5, 9, 40))


@pytest.fixture
def bags():
    """Twelve ragged samples in the plane."""
    rng = np.random.default_rng(1)
    return [rng.normal(rng.normal(size=2), 1.0, size=(size, 2)) for size in rng.integers(1, 40, 12)]
