"""What an installation costs, and what runs with nothing but it: python -m benchmarks.installing PYTHON ... --keep

Wheels of both packages are built and put into an empty environment of each Python that is named, with the versions of
constraints/newest.txt. There, with no extras, the README's blocks are run, and the time from starting Python to the
answer of a first two-sample test is taken three times; then all extras and the papers are installed, and it is taken
again. Sizes are those of the files that distributions list, without bytecode; pip and meanmap are not counted.

With the first of the Pythons, whole processes with one first answer each (benchmarks/first_calls.py) are compared with
one that loads NumPy and JAX and runs one compiled product: with nothing compiled before, and with the programs that an
earlier process of the same kind has left in the cache.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.table import list_table

__all__ = ["ANSWERS", "BARE", "SETS", "answers", "main", "measured", "page", "ratios", "seconds", "sizes"]

# Extras whose sizes are compared, on the first of the Pythons.
SETS = ("", "plots", "cli", "sampling", "data", "tables", "formulas", "dask", "cli,data,plots,sampling", "all")
READINGS = 3
BLOCKS = 4
# What a bare start is, and the processes that are compared with it.
BARE = "JAX alone"
ANSWERS = ("two_sample_test", "KernelGraph.fit", "ep.Density", "ep.infer", "learn_kernel", "pc")
FIRST = """
import numpy as np
import meanmap as mm
rng = np.random.default_rng(0)
print(mm.two_sample_test(rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) * [2.0, 1.0], rng=0))
"""
SIZES = """
import json
from importlib.metadata import distributions
print(json.dumps({each.name.lower().replace("_", "-"): sum(
    file.size or 0 for file in each.files or () if file.suffix != ".pyc") for each in distributions()}))
"""
BROUGHT = """
import json, sys
from importlib.metadata import requires
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

def brought(extras):
    seen, waiting = {}, [Requirement(f"meanmap[{extras}]")]
    while waiting:
        needed = waiting.pop()
        known = seen.setdefault(canonicalize_name(needed.name), set())
        new = {"", *needed.extras} - known
        known |= new
        for text in requires(needed.name) or () if new else ():
            each = Requirement(text)
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in new):
                waiting.append(each)
    return list(seen)

print(json.dumps({extras: brought(extras) for extras in json.loads(sys.argv[1])}))
"""
# What stands in every environment, or is what is installed.
OWN = {"pip", "setuptools", "meanmap", "meanmap-papers"}
# Settings of tests, and programs kept from before, would hide what is measured.
HIDING = ("XLA_", "JAX_", "MEANMAP_", "PYTHON", "PIP_CONSTRAINT")

Found = dict[str, Any]


def environment(cache: Path | None = None) -> dict[str, str]:
    """Variables as a new user has them, with the versions that were tried together; programs are kept in a folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(HIDING)}
    newest = str(pages.ROOT / "constraints" / "newest.txt")
    programs = {"JAX_ENABLE_COMPILATION_CACHE": "false"} if cache is None else {"MEANMAP_CACHE": str(cache)}
    return {**kept, "PIP_CONSTRAINT": newest, "PIP_BUILD_CONSTRAINT": newest, **programs}


def run(*command: str | Path, code: str | None = None, variables: dict[str, str] | None = None) -> str:
    """What a command prints, outside of the sources."""
    variables = environment() if variables is None else variables
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            list(map(str, command)), input=code, capture_output=True, text=True, env=variables, cwd=folder
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def sizes(python: str | Path) -> dict[str, int]:
    """Bytes of each distribution in the environment of a Python, by its name."""
    return {name: size for name, size in json.loads(run(python, "-c", SIZES)).items() if name not in OWN}


def seconds(python: str | Path, code: str, variables: dict[str, str] | None = None) -> dict[str, float]:
    """Processor and wall seconds of a process that runs some code, and how many processes wanted a core meanwhile."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run(python, "-", code=code, variables=variables)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu": round(cpu, 2), "wall": round(wall, 2), "load": round(os.getloadavg()[0], 1)}


def answers(python: str | Path, names: Sequence[str] = (BARE, *ANSWERS), readings: int = READINGS) -> Found:
    """Processor seconds of processes with one answer each: with nothing compiled before, and with kept programs."""
    found: Found = {}
    for name in names:
        code = f"import sys\nsys.path.append({str(pages.ROOT)!r})\nfrom benchmarks import first_calls\n"
        code += f"first_calls.CALLS[{name!r}]()()\n"
        with tempfile.TemporaryDirectory() as folder:
            kept = environment(Path(folder))
            run(python, "-", code=code, variables=kept)
            found[name] = {
                way: [seconds(python, code, variables)["cpu"] for _ in range(readings)]
                for way, variables in (("first", environment()), ("again", kept))
            }
    return found


def brought(python: str | Path, sets: Sequence[str]) -> dict[str, list[str]]:
    """The distributions that meanmap with some extras needs, where all of them are installed."""
    found = json.loads(run(python, "-c", BROUGHT, json.dumps(list(sets))))
    return {extras: sorted(set(names) - OWN) for extras, names in found.items()}


def measured(python: str, folder: Path, compared: Sequence[str] = ()) -> Found:
    """One Python: sizes, the README's blocks, first answers without and with extras."""
    place, dist = folder / "environment", folder / "dist"
    run(python, "-m", "venv", place)
    inside = place / "bin" / "python"
    run(inside, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", dist, pages.ROOT, pages.ROOT / "papers")
    (wheel,), (papers,) = dist.glob("meanmap-*.whl"), dist.glob("meanmap_papers-*.whl")
    run(inside, "-m", "pip", "install", "-qq", wheel)
    plain = sizes(inside)
    blocks = re.findall(r"```python\n(.*?)```", pages.README.read_text(encoding="utf-8"), re.DOTALL)[:BLOCKS]
    ran = [seconds(inside, block)["cpu"] for block in blocks]
    first = [seconds(inside, FIRST) for _ in range(READINGS)]
    found = answers(inside) if compared else {}
    run(inside, "-m", "pip", "install", "-qq", f"{wheel}[all]", papers)
    assert "kernel-learning" in run(place / "bin" / "meanmap", "list")
    everything = sizes(inside)
    return {
        "packages": len(plain),
        "bytes": sum(plain.values()),
        "blocks": ran,
        "first": first,
        "answers": found,
        "first with all": [seconds(inside, FIRST) for _ in range(READINGS)],
        "sets": {
            extras: (len(names), sum(everything[name] for name in names))
            for extras, names in brought(inside, compared).items()
        },
    }


def ratios(found: Found) -> list[list[Any]]:
    """Processor seconds of each answer, and their ratios to those of the bare start's reading of the same number."""
    rows = []
    for name, of in found.items():
        row: list[Any] = [f"``{name}``" if name != BARE else name]
        for way in ("first", "again"):
            row.append(", ".join(f"{each:.2f}" for each in of[way]))
            bare = found[BARE][way]
            row.append(", ".join(f"{each / least:.1f}" for each, least in zip(of[way], bare, strict=True)))
        rows.append(row)
    return rows


def page(found: Found) -> str:
    """The tables of the documentation."""
    lines = []
    for python, of in found.items():
        if of["sets"]:
            rows = [
                [f'``pip install ".[{extras}]"``' if extras else "``pip install .``", count, f"{size / 1e6:.0f} MB"]
                for extras, (count, size) in of["sets"].items()
            ]
            lines += list_table([f"with Python {python}", "packages", "size"], rows)
        if of.get("answers"):
            lines += list_table(
                [f"with Python {python}", "first", "ratio", "with kept programs", "ratio"], ratios(of["answers"])
            )
    head = ["Python", "packages", "size", "README's blocks", "first answer", "wall seconds", "load", "with ``all``"]
    rows = [
        [
            python,
            of["packages"],
            f"{of['bytes'] / 1e6:.0f} MB",
            ", ".join(f"{each:.1f}" for each in of["blocks"]),
            *(", ".join(f"{each[key]:.1f}" for each in of["first"]) for key in ("cpu", "wall", "load")),
            ", ".join(f"{each['cpu']:.1f}" for each in of["first with all"]),
        ]
        for python, of in found.items()
    ]
    return "\n".join([*lines, *list_table(head, rows)])


def main(arguments: list[str] | None = None) -> None:
    """Measure each Python in turn, and print or keep what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.installing", description=__doc__)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="interpreters, such as python3.11")
    parser.add_argument("--keep", action="store_true", help="store what was found, and write the pages")
    chosen = parser.parse_args(arguments)
    for number, python in enumerate(chosen.pythons):
        version = run(python, "-c", "import platform; print(platform.python_version())").strip()
        with tempfile.TemporaryDirectory() as folder:
            found = measured(python, Path(folder), SETS if number == 0 else ())
        print(version, json.dumps(found), flush=True)
        if chosen.keep:
            stored = pages.stored()
            pages.store({**stored, "installing": {**stored.get("installing", {}), version: found}})


if __name__ == "__main__":
    main()
