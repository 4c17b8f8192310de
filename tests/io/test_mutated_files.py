"""Files with bytes changed, cut out, doubled: read or refused by one error, in little memory, and nothing is run."""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import meanmap as mm
from meanmap import bp, ep, families
from meanmap.core.errors import InputError
from meanmap.core.saved.encode import Encoder
from meanmap.graphs import Factors
from meanmap.io import FORMAT, FileFormatError
from tests.io.test_hostile_files import forged
from tests.io.test_round_trips import PLAIN, SAMPLE, made

# What a file may make Python do only if it is obeyed.
FORBIDDEN = {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect", "os.remove", "os.rename"}
FORBIDDEN |= {"pickle.find_class", "ctypes.dlopen", "shutil.rmtree", "code.__new__"}
PIECES = ["null", "-1", "1e400", "{}", "[]", '"array"', "99999999999999999999", "true", '"meanmap.kernels.RBF"', "1e9"]
PIECES += ['{"range": [0, 1099511627776, 1]}', '{"array": "0"}', '"<U99999999"', '"|O"', '"value"']
watched: list[str] | None = None


def watch(event: str, _: Any) -> None:
    if watched is not None and event in FORBIDDEN:
        watched.append(event)


@pytest.fixture(scope="module", autouse=True)
def _watching():
    sys.addaudithook(watch)  # for the life of the process: a hook cannot be taken away, only be idle


def simple() -> list[Any]:
    """Values of each plain kind, and a few small objects."""
    kernel = mm.kernels.RBF(0.5) + mm.kernels.Laplace(2.0)
    report = mm.core.Report("done", True, 1, [1.0], notes=("a",))
    return [PLAIN, [kernel, mm.embed(SAMPLE[:4], kernel), report], mm.Table.of({"a": SAMPLE[:4, 0], "b": list("uvwx")})]


def everything() -> list[Any]:
    """One of each kind of thing that a user would save."""
    pairs = SAMPLE[:, 0], SAMPLE[:, 0] + SAMPLE[:, 1]
    field = mm.KernelField([(0, 1), (1, 2)]).fit(pairs)
    discrete = bp.DiscreteGraph([(0, 1)], np.array([[2.0, 1.0], [1.0, 2.0]]))
    regression = ep.models.logistic_regression({"x": SAMPLE[:, 0], "w": SAMPLE[:, 1]}, SAMPLE.sum(axis=1) > 0)
    monitor = mm.DriftMonitor.of(np.tile(SAMPLE, (2, 1)), n_permutations=19, rng=0).step(SAMPLE)
    more = [field, field.query({0: 0.3}), discrete, discrete.query({0: 1}), regression, monitor]
    return [*simple(), *made().values(), *more, families.Gamma(2.0, [1.0, 3.0])]


def changed_text(text: str, rng: np.random.Generator) -> str:
    letters = list(text)
    for _ in range(rng.integers(1, 6)):
        i, j = sorted(rng.integers(len(letters), size=2))
        act = rng.integers(4)
        if act == 0:
            letters[i] = chr(rng.integers(32, 127))
        elif act == 1:
            del letters[i : i + rng.integers(1, 8)]
        elif act == 2:
            letters[i:i] = letters[i : min(j, i + 40)]
        else:
            letters[i:i] = str(rng.choice(PIECES))
    return "".join(letters)


def changed_bytes(written: bytes, rng: np.random.Generator) -> bytes:
    content = bytearray(written)
    for _ in range(rng.integers(1, 20)):
        content[rng.integers(len(content))] = rng.integers(256)
    return bytes(content[: rng.integers(len(content)) if rng.random() < 0.3 else None])


def mutations(values: list[Any], count: int, rng: np.random.Generator):
    """Files with bytes changed or cut; of four in five the description is changed, and the checksum mended."""
    encoders = [Encoder() for _ in values]
    trees = [encoder.encode(value) for encoder, value in zip(encoders, values, strict=True)]
    texts = [json.dumps({"format": FORMAT, "value": tree}) for tree in trees]
    for number in range(count):
        at = number % len(values)
        if rng.random() < 0.2:
            yield changed_bytes(forged(texts[at], encoders[at].arrays), rng)
        else:
            yield forged(changed_text(texts[at], rng), encoders[at].arrays)


def read_all(contents: Any, read: Callable[[Any], Any], error: type[Exception], path: Any) -> int:
    """How many of the files were refused; anything but an answer or that error fails."""
    global watched
    refusals, watched = 0, []
    tracemalloc.start()
    try:
        for content in contents:
            path.write_bytes(content)
            tracemalloc.reset_peak()
            before, started = tracemalloc.get_traced_memory()[0], time.monotonic()
            try:
                read(path)
            except error:
                refusals += 1
            assert tracemalloc.get_traced_memory()[1] - before < 2**26 + 300 * len(content)
            assert time.monotonic() - started < 5.0
            assert watched == []
    finally:
        tracemalloc.stop()
        watched = None
    return refusals


def test_mutated_files_are_refused_or_read(tmp_path):
    contents = mutations(simple(), 300, np.random.default_rng(0))
    assert 150 < read_all(contents, mm.load, FileFormatError, tmp_path / "f") < 300


@pytest.mark.slow
def test_twenty_thousand_mutated_files_of_every_kind(tmp_path):
    contents = mutations(everything(), 20_000, np.random.default_rng(1))
    assert 10_000 < read_all(contents, mm.load, FileFormatError, tmp_path / "f") < 20_000


UAI = Factors([2, 3, 2], ((0, 1), (1, 2), (2,)), (np.ones((2, 3)), np.full((3, 2), 0.5), np.array([1.0, 1e-3])))


def graphs(count: int, ending: str, tmp_path) -> int:
    rng = np.random.default_rng(2)
    path = tmp_path / f"a{ending}"
    if ending == ".uai":
        mm.graphs.write_uai(UAI, path)
        read = mm.graphs.read_uai
    else:
        mm.graphs.write_graphml([("a", "b"), ("b", "c")], path)
        read = mm.graphs.read_graphml
    written = path.read_bytes()
    contents = (
        changed_text(written.decode(), rng).encode() if rng.random() < 0.7 else changed_bytes(written, rng)
        for _ in range(count)
    )
    return read_all(contents, read, InputError, path)


@pytest.mark.parametrize("ending", [".uai", ".graphml"])
def test_mutated_graphs_are_refused_or_read(ending, tmp_path):
    assert graphs(200, ending, tmp_path) > 20


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".uai", ".graphml"])
def test_many_mutated_graphs(ending, tmp_path):
    assert graphs(20_000, ending, tmp_path) > 2000
