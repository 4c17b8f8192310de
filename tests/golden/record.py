"""Recorded outputs: `python -m tests.golden.record [NAME ...]` runs the cases again and keeps what they give.

A change of results is recorded with the change that makes it, whose message says why. Arrays are stored with what they
were computed on; elsewhere the last digits of sums differ, and iterations carry them on.
"""

import os
import platform
import sys
from pathlib import Path

import jax
import numpy as np
import scipy

from tests.golden.cases import MODELS, OUTPUTS

HERE = Path(__file__).parent
STORE = HERE / "outputs.npz"


def machine():
    """What decides how sums are rounded."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    processor = next((line for line in lines if line.startswith("model name")), "")
    versions = jax.__version__, np.__version__, scipy.__version__
    return " ".join([platform.machine(), processor, *versions, os.environ.get("XLA_FLAGS", "")])


def outputs(name):
    """The arrays of one case."""
    if name in OUTPUTS:
        return numbers(OUTPUTS[name]())
    made, asked = MODELS[name]
    return numbers(asked(made()))


def numbers(parts):
    return [np.asarray(part, dtype=float) for part in parts]


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
        print(name, sum(part.nbytes for key, part in kept.items() if key.startswith(f"{name}/")), flush=True)
        np.savez_compressed(STORE, **{**kept, "machine": np.array(machine())})


if __name__ == "__main__":
    main(sys.argv[1:])
