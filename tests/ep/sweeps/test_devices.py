"""One posterior, on one device and on several, and what devices tell each other."""

import json
import os
import re
import socket
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from meanmap import ep
from meanmap.core.errors import KindError, ShapeError
from tests.documented import recipe
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


def started(script, folder, number=2):
    """Processes that run a script together."""
    (folder / "recipe.py").write_text(script)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "recipe.py", address, str(number)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen([*command, str(i)], cwd=folder, **pipes) for i in range(number)]


@pytest.mark.parametrize("number", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_recipe_with_several_processes(tmp_path, number):
    """All processes print what one device finds."""
    running = started(recipe("mesh=mesh"), tmp_path, number)
    said = [process.communicate(timeout=300)[0].splitlines()[-1] for process in running]
    assert [process.returncode for process in running] == [0] * number
    assert set(said) == {said[0]}
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 3))
    alone = ep.models.logistic_regression(x, x[:, 0] + rng.normal(size=1000) > 0)
    means, evidence = said[0].rsplit(" ", 1)
    np.testing.assert_allclose(json.loads(means), alone.mean, atol=1e-7)
    assert float(evidence) == pytest.approx(alone.log_evidence, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_where_a_process_dies_the_other_ends_and_says_so(tmp_path, victim):
    again = recipe("mesh=mesh").replace("fit =", "while True:\n    fit =").replace("\nprint(", "\n    print(")
    running = started(again.replace("log_evidence)", "log_evidence, flush=True)"), tmp_path)
    assert all(process.stdout.readline() for process in running)
    running[victim].kill()
    try:
        # Ten seconds without a heartbeat, and what a machine needs that is busy with something else.
        _, error = running[1 - victim].communicate(timeout=60)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert running[1 - victim].returncode != 0
    assert re.search("Connection (reset|closed) by peer|another task died", error)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 4, 8])
def test_devices_at_length(devices):
    check(printed(devices=devices), devices)


@pytest.mark.slow
def test_each_of_eight_devices_holds_an_eighth():
    """Members that are integrated over at a time are fewer on each device, so that all together hold what one does."""
    ((one, each),) = printed("held", devices=8)
    assert each < 1.1 * one / 8


def test_what_devices_cannot_share_is_explained():
    mesh = Mesh(np.array(jax.devices()[:1]), ("rows",))
    model = on_devices.black_box()
    with pytest.raises(KindError, match=r"mesh is an int; expected devices along one axis, such as jax.make_mesh"):
        ep.infer(model, mesh=8)
    with pytest.raises(ShapeError, match=r"mesh has the axes \('a', 'b'\); expected one"):
        ep.infer(model, mesh=Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b")))
    with pytest.raises(KindError, match=r"has an oracle on the host, which is asked for whole plates: leave mesh= out"):
        ep.infer(model, lambda questions: None, mesh=mesh)
    with pytest.raises(KindError, match="members of a plate would be updated one by one"):
        ep.infer(model, schedule="sequential", mesh=mesh)
