"""Recorded outputs: `python -m tests.golden.record [NAME ...]` runs the cases again and keeps what they give.

A change of results is recorded with the change that makes it, whose message says why. Arrays are stored with what they
were computed on; elsewhere the last digits of sums differ, and iterations carry them on.
"""

import lzma
import os
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np
import scipy

import meanmap as mm
from tests.golden.cases import MODELS, OUTPUTS

HERE = Path(__file__).parent
STORE = HERE / "outputs.npz"
# Files of the same kind as another's.
UNKEPT = ("ring_full", "ring_linear", "bins_reweighted")


def machine():
    """What decides how sums are rounded."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    processor = next((line for line in lines if line.startswith("model name")), "")
    versions = jax.__version__, np.__version__, scipy.__version__
    return " ".join([platform.machine(), processor, *versions, os.environ.get("XLA_FLAGS", "")])


def outputs(name, model=None):
    """The arrays of one case; of a model that was loaded where one is given."""
    if name in OUTPUTS:
        return [np.asarray(part, dtype=float) for part in OUTPUTS[name][0]()]
    made, asked, _ = MODELS[name]
    return [np.asarray(part, dtype=float) for part in asked(made() if model is None else model)]


def packed(name):
    """Where a saved model is kept."""
    return HERE / "files" / f"{name}.meanmap.xz"


def unpacked(name, folder):
    """The model that was saved by an earlier version, loaded."""
    path = Path(folder) / name
    path.write_bytes(lzma.decompress(packed(name).read_bytes()))
    return mm.load(path)


def stored():
    """All that was recorded: arrays by case, and the machine."""
    with np.load(STORE) as file:
        return {name: file[name] for name in file.files}


def main(names):
    kept = stored() if STORE.exists() else {}
    for name in names or [*MODELS, *OUTPUTS]:
        kept = {key: value for key, value in kept.items() if key.split("/")[0] != name}
        for i, part in enumerate(outputs(name)):
            kept[f"{name}/{i}"] = part
        if name in MODELS and name not in UNKEPT and not packed(name).exists():
            with TemporaryDirectory() as folder:
                content = mm.save(MODELS[name][0](), Path(folder) / name).read_bytes()
            packed(name).write_bytes(lzma.compress(content))
        print(name, sum(part.nbytes for key, part in kept.items() if key.startswith(f"{name}/")), flush=True)
        np.savez_compressed(STORE, **{**kept, "machine": np.array(machine())})


if __name__ == "__main__":
    main(sys.argv[1:])
