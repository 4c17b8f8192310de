"""What parts of a table add is the same bit by bit whoever adds it up, in every plan; what is fitted is, too."""

import os
import signal
import threading
import time
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas
import pytest

import meanmap as mm
from meanmap.bp.edges import samples
from meanmap.embeddings import RegressionPlan
from meanmap.estimators import ConditionalMeanRegressor, reading

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The inplace keyword")]
N, PARTS = 3000, 6
RANDOM = np.random.default_rng(0)
Z = RANDOM.normal(size=N)
FRAME = pandas.DataFrame({"x": np.sin(Z) + RANDOM.normal(size=N), "y": Z**2 + RANDOM.exponential(size=N), "z": Z})


def part(index, begun):
    """A partition that takes a while, and says that it was begun."""
    Path(begun, f"{index} {time.monotonic_ns()}").touch()
    time.sleep(0.2)
    return FRAME.iloc[index * N // PARTS : (index + 1) * N // PARTS]


def table(begun):
    return dd.from_map(part, range(PARTS), begun=str(begun), meta=FRAME[:0])


def states(data):
    """What all rows add, in every pass of every plan that was made from the rows in memory."""
    x, y, z = FRAME["x"], FRAME["y"], FRAME["z"]
    yield mm.stats.plan("several samples", [FRAME[:900], FRAME[900:2000], FRAME[2000:]], rng=0).state(data)
    yield mm.stats.plan("independence", x, y, rng=0).state(data["x"], data["y"])
    yield mm.stats.plan("joint independence", FRAME, rng=0).state(data)
    features = [mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=20, rng=seed) for seed in (0, 1)]
    yield RegressionPlan.of(x, y, *features, rng=0).state(data["x"], data["y"])
    plan = mm.stats.plan("conditional independence", x, y, z, rng=0)
    while True:
        state = plan.state(data["x"], data["y"], data["z"])
        yield state
        if plan.passes == 1:
            return
        plan = plan.after(state)


def fitted(data):
    """What a regression and the edges of a tree, learned from a thousand rows drawn by number, say about some rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "MOST_ROWS", 1000)
        patch.setattr(reading, "MOST_ROWS", 1000)
        regressor = ConditionalMeanRegressor(mm.kernels.RBF(1.0), 1e-2).fit(data[["x", "z"]], data["y"])
        tree = mm.KernelGraph([("x", "z"), ("z", "y")], rank=20).fit(data)
    rows = FRAME[:50]
    return regressor.predict(rows[["x", "z"]]).tobytes(), tree.score(rows).tobytes()


@pytest.fixture(scope="module")
def expected():
    found = [*states(FRAME), fitted(FRAME)]
    assert len(found) == 8
    assert {state.n for state in found[:-1]} == {N}
    return found


@pytest.mark.parametrize(
    "settings", [{"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 4}], ids=str
)
def test_threads_do_not_change_it(settings, expected):
    data = dd.from_pandas(FRAME, npartitions=PARTS)
    with dask.config.set(**settings):
        assert [*states(data), fitted(data)] == expected


def cluster_of(workers):
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_processes_do_not_change_it(workers, expected, tmp_path):
    with cluster_of(workers) as cluster, cluster.get_client() as client:
        assert len(client.run(os.getpid)) == workers
        data = table(tmp_path)
        assert [*states(data), fitted(data)] == expected
    assert any(tmp_path.iterdir())


def test_a_worker_may_be_killed_in_the_middle(tmp_path, expected):
    """Once, while it works: what it had done is done again, by the other or by the one that its nanny starts."""
    ended = threading.Event()

    def kill(process):
        while len(list(tmp_path.iterdir())) < 4 * PARTS and not ended.wait(0.02):
            pass
        os.kill(process, signal.SIGKILL)

    with cluster_of(2) as cluster, cluster.get_client() as client:
        before = sorted(client.run(os.getpid).values())
        killer = threading.Thread(target=kill, args=before[:1])
        killer.start()
        try:
            data = table(tmp_path)
            found = [*states(data), fitted(data)]
        finally:
            ended.set()
            killer.join()
        after = client.run(os.getpid).values()
    assert found == expected
    assert len(list(tmp_path.iterdir())) > 4 * PARTS
    assert before[0] not in after
