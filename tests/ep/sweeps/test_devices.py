"""One posterior, on one device and on several, and what devices tell each other."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from meanmap import ep
from meanmap.core.errors import KindError, ShapeError
from tests.ep.sweeps import on_devices


def printed(*models, devices):
    """What the program of several devices prints about these models."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-m", "tests.ep.sweeps.on_devices", *models]
    done = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(found, devices):
    for one in found:
        assert one["gap"] < 1e-10, one
        assert one["evidence"] < 1e-10, one
        # All that devices tell each other in a sweep is sums of what plates share: nothing as long as a plate.
        assert set(one["collectives"]) == {"all-reduce"}, one
        assert one["collectives"]["all-reduce"] < 100, one
        assert set(one["devices"].values()) <= {devices}, one


def test_eight_devices_find_what_one_finds():
    found = printed("probit", "uneven", "blocks", "hierarchy", devices=8)
    check(found, 8)
    # What belongs to rows stays on their devices, but where padding has to be cut off.
    assert [one["devices"] for one in found] == [{"z": 8}, {}, {"z": 8}, {}]
    # d for the mean and d² for the precision of what rows share, and numbers that say how far beliefs moved.
    assert found[0]["collectives"]["all-reduce"] == 3 + 9 + 3


def test_the_recipe_with_two_processes(tmp_path):
    """The script of the documentation, as it stands there: both processes print what one device finds."""
    page = Path(__file__).parents[3] / "docs" / "scaling.rst"
    (block,) = [
        b for b in re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", page.read_text()) if "mesh=mesh" in b
    ]
    (tmp_path / "recipe.py").write_text(re.sub(r"^   ", "", block, flags=re.MULTILINE))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "recipe.py", address, "2"]
    running = [subprocess.Popen([*command, str(i)], cwd=tmp_path, stdout=subprocess.PIPE, text=True) for i in range(2)]
    said = [process.communicate(timeout=300)[0].splitlines()[-1] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert said[0] == said[1]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 3))
    alone = ep.models.logistic_regression(x, x[:, 0] + rng.normal(size=1000) > 0)
    means, evidence = said[0].rsplit(" ", 1)
    np.testing.assert_allclose(json.loads(means), alone.mean, atol=1e-7)
    assert float(evidence) == pytest.approx(alone.log_evidence, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 4, 8])
def test_devices_at_length(devices):
    check(printed(devices=devices), devices)


def test_what_devices_cannot_share_is_explained():
    mesh = Mesh(np.array(jax.devices()[:1]), ("rows",))
    model = on_devices.black_box()
    with pytest.raises(KindError, match=r"mesh is a int; expected devices along one axis, such as jax.make_mesh"):
        ep.infer(model, mesh=8)
    with pytest.raises(ShapeError, match=r"mesh has the axes \('a', 'b'\); expected one"):
        ep.infer(model, mesh=Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b")))
    with pytest.raises(KindError, match=r"has an oracle on the host, which is asked for whole plates: leave mesh= out"):
        ep.infer(model, lambda questions: None, mesh=mesh)
    with pytest.raises(KindError, match="members of a plate would be met one by one"):
        ep.infer(model, schedule="sequential", mesh=mesh)
