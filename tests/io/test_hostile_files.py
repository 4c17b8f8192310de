"""Files cut short, altered, newer, or made to do harm are refused with a sentence, quickly and in little memory."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import save as as_bytes

import meanmap as mm
from meanmap.core.saved.encode import Encoder
from meanmap.core.saved.saving import _checksum
from meanmap.io import FORMAT, FileFormatError
from meanmap.stats.permutations import CentredGram


def forged(tree, arrays=None, **changes) -> bytes:
    """A file whose checksum is right, whatever it says."""
    arrays = arrays or {}
    description = tree if isinstance(tree, str) else json.dumps({"format": FORMAT, "value": tree, **changes})
    return as_bytes(arrays, {"meanmap": description, "sha256": _checksum(description, arrays)})


def refused(content: bytes, tmp_path, match: str) -> None:
    path = tmp_path / "bad.meanmap"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=match):
        mm.load(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> bytes:
    x = np.random.default_rng(0).normal(size=(10, 2))
    value = {"kernel": mm.kernels.RBF(0.5), "element": mm.embed(x, mm.kernels.RBF(1.0)), "words": np.array(["a", "b"])}
    return mm.save(value, tmp_path_factory.mktemp("written") / "a").read_bytes()


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, -1, -8])
def test_cut_short(written, length, tmp_path):
    refused(written[:length], tmp_path, "not written by mm.save, or was truncated")


def test_not_ours(tmp_path):
    for content in (b"PK\x03\x04", b"a,b\n1,2\n", as_bytes({"x": np.zeros(3)}), b"\x80\x04\x95pickle", b"\xff" * 64):
        refused(content, tmp_path, "not written by mm.save")


def test_an_altered_number_is_seen(written, tmp_path):
    altered = bytearray(written)
    altered[-3] ^= 1
    refused(bytes(altered), tmp_path, "checksum differs")


def test_a_field_of_another_kind_is_refused(tmp_path):
    for value in ("wide", {"dict": []}, None):
        rbf = {"value": ["meanmap.kernels.RBF", {"lengthscale": value}]}
        refused(forged(rbf), tmp_path, "the field 'lengthscale' of its RBF holds")


def test_what_cannot_be_loaded_is_not_saved(tmp_path):
    inside: list = []
    inside.append(inside)
    deep: list = []
    for _ in range(101):
        deep = [deep]
    for value in (inside, deep, {"a": inside}):
        with pytest.raises(TypeError, match="nested more than 100 deep, or holds itself"):
            mm.save(value, tmp_path / "a")
    assert mm.load(mm.save(deep[0], tmp_path / "a")) == deep[0]
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(TypeError, match=r"holds (float|longdouble)"):
            mm.save({"x": np.longdouble(1)}, tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_newer_format_says_what_to_do(tmp_path):
    refused(forged(None, format=FORMAT + 1), tmp_path, f"has format {FORMAT + 1}, .* install a newer one")
    rbf = {"value": ["meanmap.kernels.RBF", {"lengthscale": 1.0, "colour": "red"}]}
    refused(forged(rbf), tmp_path, "unknown field 'colour': another version of meanmap")
    refused(forged({"value": ["meanmap.kernels.RBF", {}]}), tmp_path, "no field 'lengthscale'")
    refused(forged({"value": ["meanmap.kernels.Nonesuch", {}]}), tmp_path, "does not have")


@pytest.mark.parametrize(
    "name",
    [
        "os.system", "builtins.eval", "meanmap.cli.main", "meanmap.core.saved.files.write_whole",
        "meanmap.core.saved.files.os", "meanmap.core.saved.saving.load", "meanmap.kernels.base.np.ndarray",
        "meanmap..kernels", "meanmap.kernels.base.jax.jit",
        "meanmap.kernels.__builtins__", "meanmap.core.arrays.np", "meanmap.stats.os", "", 3, None, ["meanmap.kernels"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["value", "class"])
def test_only_classes_of_the_library_can_be_named(name, shape, tmp_path):
    content = [name, {}] if shape == "value" else name
    refused(forged({shape: content}), tmp_path, "not a class|does not have|was expected")


HARM = {
    "deep lists": "[" * 200_000 + "]" * 200_000,
    "deep values": json.dumps({"format": FORMAT, "value": None}).replace("null", '{"tuple":[' * 5000 + "]}" * 5000),
    "long number": json.dumps({"format": FORMAT, "value": 0}).replace(" 0", " " + "9" * 100_000),
    "not a number": '{"format": 1, "value": NaNN}',
    "format of words": '{"format": "1"}',
    "no object": "[1]",
}
HARMFUL = {
    "wide words": {"objects": ["<U1000000000", [1], ["a"]]},
    "wide words again and again": [{"objects": ["<U20000", [500], [""] * 500]}] * 100,
    "words of ranges": {"objects": ["<U1", [1], [{"range": [0, 2**40, 1]}]]},
    "a sparse matrix of ranges": {
        "sparse": {"data": {"range": [0, 2**40, 1]}, "indices": [], "indptr": [], "shape": [1, 1]}
    },
    "a scalar of a range": {"scalar": ["<f8", {"range": [0, 2**40, 1]}]},
    "a key of a range": {"key": ["threefry2x32", {"range": [0, 2**40, 1]}]},
    "words spelled in numbers": {"words": ["<U1", [1, 2]]},
    "a key that is an object": {"dict": [[{"value": ["meanmap.kernels.RBF", {"lengthscale": 1.0}]}, 1]]},
    "many words": {"objects": ["<U1", [10**12], ["a"]]},
    "negative shape": {"objects": ["<U1", [-1, -1], ["a"]]},
    "an unknown kind": {"pickle": "gASVAAAA"},
    "two kinds": {"tuple": [], "array": "0"},
    "no kind": {},
    "an array that is not there": {"array": "7"},
    "a path": {"array": "../../etc/passwd"},
    "a wide sparse matrix": {"sparse": {"data": [], "indices": [], "indptr": [], "shape": [10**15, 10**15]}},
    "a subarray": {"scalar": ["(100000,100000)f8", 0]},
    "an object scalar": {"scalar": ["O", 0]},
    "a key of nothing": {"key": ["threefry2x32", {"array": "0"}]},
    "an unknown key": {"key": ["rot13", [0, 0]]},
    "pairs of three": {"dict": [[1, 2, 3]]},
    "a list as key": {"dict": [[[1], 2]]},
    "complex of what": {"complex": ["<c16", 3]},
    "an error": {"value": ["meanmap.core.errors.ShapeError", {}]},
    "a float of words": {"float": "1" * 1000},
}


WRONG = {
    "a number for several": mm.kernels.RBF(1.0) + mm.kernels.Laplace(1.0),
    "a text for a number": mm.two_sample_test(
        [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 7.0], n_permutations=19, rng=0
    ),
    "a number for a text": mm.Schema.of({"a": [1.0, 2.0]}),
}
INSTEAD = {
    "a number for several": ("members", 3),
    "a text for a number": ("pvalue", "small"),
    "a number for a text": ("columns", 3),
}


@pytest.mark.parametrize("name", WRONG)
def test_fields_of_the_wrong_kind(name, tmp_path):
    encoder, (field, wrong) = Encoder(), INSTEAD[name]
    tree = encoder.encode(WRONG[name])
    tree["value"][1][field] = wrong
    match = f"cannot be loaded: the field '{field}' of its .* holds {type(wrong).__name__}: another version"
    refused(forged(tree, encoder.arrays), tmp_path, match)


def test_a_killed_save_leaves_nothing_for_ever(tmp_path):
    """Neighbours that nobody writes any more go with the next file; others that look like them stay."""
    left = tmp_path / f".{'0a' * 8}.part"
    young, mine = tmp_path / f".{'1b' * 8}.part", tmp_path / ".notes.part"
    for path in (left, young, mine):
        path.write_bytes(b"half")
    for path in (left, mine):
        os.utime(path, (time.time() - 7200,) * 2)
    mm.save([1, 2], tmp_path / "value")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young.name, mine.name, "value"])


@pytest.mark.parametrize("name", HARM)
def test_malformed_descriptions(name, tmp_path):
    refused(forged(HARM[name]), tmp_path, "cannot be loaded")


@pytest.mark.parametrize("name", HARMFUL)
def test_harmful_values(name, tmp_path):
    refused(forged(HARMFUL[name]), tmp_path, "cannot be loaded")


@pytest.mark.parametrize("count", [120_000_000, 2**40])
def test_ranges_are_never_spread_out(count, tmp_path):
    path = tmp_path / "range"
    path.write_bytes(forged({"objects": ["|O", [1], [{"range": [0, count, 1]}]]}))
    assert mm.load(path).tolist() == [range(count)]


def test_an_array_that_is_named_again_and_again_is_one(tmp_path):
    path = tmp_path / "again"
    path.write_bytes(forged([{"jax": "0"}] * 2000, {"0": np.zeros(10**5)}))
    assert len({id(each) for each in mm.load(path)}) == 1
    part = {"data": {"array": "0"}, "indices": {"array": "0"}, "indptr": {"array": "1"}, "shape": [1, 1]}
    zeros = {"0": np.zeros(10**6, np.int64), "1": np.array([0, 10**6])}
    refused(forged([{"sparse": part}] * 2000, zeros), tmp_path, "cannot be loaded")


def test_nothing_of_a_half_built_object_is_called(tmp_path, monkeypatch):
    """Not its repr, its hash, its equality nor the setter of a property: any of them may meet what is not there."""

    def called(*_):
        raise AssertionError

    for name in ("__repr__", "__str__", "__hash__", "__eq__", "__len__", "__iter__", "__array__"):
        monkeypatch.setattr(mm.kernels.RBF, name, called, raising=False)
    monkeypatch.setattr(CentredGram, "kind", property(called, called), raising=False)
    kernel = {"value": ["meanmap.kernels.RBF", {"lengthscale": 1.0}]}
    gram = {"value": ["meanmap.stats.permutations.CentredGram", {"kind": 3}]}
    path = tmp_path / "objects"
    for tree in ({"objects": ["<U1", [1], [kernel]]}, {"dict": [[kernel, 1]]}, {"scalar": ["<f8", kernel]}):
        refused(forged(tree), tmp_path, "cannot be loaded")
    path.write_bytes(forged([kernel, {"objects": ["|O", [1], [kernel]]}, {"dict": [[1, kernel]]}, gram]))
    assert mm.load(path)[1].shape == (1,)


def test_a_declared_shape_larger_than_the_file(tmp_path):
    header = {"0": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}, "__metadata__": {"meanmap": "{}"}}
    text = json.dumps(header).encode()
    refused(len(text).to_bytes(8, "little") + text + b"\0" * 64, tmp_path, "not written by mm.save")
    refused((2**62).to_bytes(8, "little") + text, tmp_path, "not written by mm.save")


def test_what_is_no_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        mm.load(tmp_path / "none")


def test_a_killed_save_leaves_the_old_file(tmp_path):
    """The process is killed while it writes again and again; what lies there is whole at every time."""
    path = tmp_path / "value"
    code = f"""
import numpy as np, meanmap as mm
for i in range(10**6):
    mm.save(np.full(10**6, i), {str(path)!r})
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(set(mm.load(path).tolist())) == 1


def test_the_checksum_is_over_everything():
    arrays = {"0": np.zeros(3)}
    assert _checksum("a", arrays) != _checksum("b", arrays)
    assert _checksum("a", arrays) != _checksum("a", {"0": np.zeros(3, np.int64)})
    assert _checksum("a", arrays) != _checksum("a", {"0": np.zeros((3, 1))})
    assert len(_checksum("a", {})) == hashlib.sha256().digest_size * 2
