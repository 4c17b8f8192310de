"""Settings that all tests share."""

import gc
import os
import sys
from importlib.metadata import version
from pathlib import Path

# Programs are kept beside the tests, never in the user's cache. JAX reads this once.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent / ".jax_cache"))

# Programs compile in less time without emitters of fused loops. Later versions have no such setting, and XLA ends the
# process at one that it does not know.
if os.environ.get("TEST_EMITTERS") == "off" and tuple(map(int, version("jaxlib").split(".")[:2])) <= (0, 10):
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_use_fusion_emitters=false"

import jax
import pytest
from hypothesis import HealthCheck, settings

# While one waits very few examples, by day few, the same ones every time; by night many, and new ones.
settings.register_profile(
    "quick", max_examples=3, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "day", max_examples=8, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("night", max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("MEANMAP_TEST_PROFILE", "day"))


pytest_plugins = ["pytester", "tests.costs"]
# A script as users write it, which type checkers read: to look for doctests in it would run it.
collect_ignore = ["tests/api/user.py"]

# Tracing makes many small objects that stay: the collector would walk over them again and again.
gc.set_threshold(100_000, 50, 100)

# A program takes about a megabyte of memory until it is dropped. Kept from file to file, small ones serve many.
KEPT = 500
compiled = 0


def _count(event: str, seconds: float, **details: object) -> None:
    global compiled
    compiled += event == "/jax/core/compile/backend_compile_duration"


jax.monitoring.register_event_duration_secs_listener(_count)


@pytest.fixture(autouse=True, scope="module")
def _forget_compilations():
    """Drop compiled programs when there are many: all together they would take gigabytes of memory per worker."""
    global compiled
    yield
    if compiled > KEPT:
        jax.clear_caches()
        compiled = 0


@pytest.fixture(autouse=True)
def _close_pictures():
    """Close the figures that a test drew: pyplot keeps them, and warns when there are many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
