"""What parts of a table add is the same bit by bit whoever adds it up, in every plan."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas
import pytest

import meanmap as mm
from meanmap.embeddings import RegressionPlan
from meanmap.stats import ConditionalIndependencePlan, IndependencePlan, JointIndependencePlan, KSamplePlan

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The inplace keyword")]
N = 3000
RANDOM = np.random.default_rng(0)
Z = RANDOM.normal(size=N)
FRAME = pandas.DataFrame({"x": np.sin(Z) + RANDOM.normal(size=N), "y": Z**2 + RANDOM.exponential(size=N), "z": Z})


def states(data):
    """What all rows add, in every pass of every plan that was made from the rows in memory."""
    x, y, z = FRAME["x"], FRAME["y"], FRAME["z"]
    yield KSamplePlan.of([FRAME[:900], FRAME[900:2000], FRAME[2000:]], rng=0).state(data)
    yield IndependencePlan.of(x, y, rng=0).state(data["x"], data["y"])
    yield JointIndependencePlan.of(FRAME, rng=0).state(data)
    features = [mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=20, rng=seed) for seed in (0, 1)]
    yield RegressionPlan.of(x, y, *features, rng=0).state(data["x"], data["y"])
    plan = ConditionalIndependencePlan.of(x, y, z, rng=0)
    while True:
        state = plan.state(data["x"], data["y"], data["z"])
        yield state
        if plan.passes == 1:
            return
        plan = plan.after(state)


@pytest.fixture(scope="module")
def expected():
    found = list(states(FRAME))
    assert len(found) == 7
    assert {state.n for state in found} == {N}
    return found


@pytest.mark.parametrize(
    "settings", [{"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 4}], ids=str
)
def test_threads_do_not_change_it(settings, expected):
    with dask.config.set(**settings):
        assert list(states(dd.from_pandas(FRAME, npartitions=6))) == expected
