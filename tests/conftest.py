"""Settings that all tests share."""

import os
import sys

import jax
import pytest
from hypothesis import HealthCheck, settings

# By day few examples, the same ones every time; by night many, and new ones.
settings.register_profile(
    "day", max_examples=8, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("night", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("MEANMAP_TEST_PROFILE", "day"))


@pytest.fixture(autouse=True, scope="module")
def _forget_compilations():
    """Drop compiled programs after each file: kept to the end they would take gigabytes of memory per worker."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def _close_pictures():
    """Close the figures that a test drew: pyplot keeps them, and warns when there are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
