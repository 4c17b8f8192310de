"""From stored results to pages: every measured number that a reader meets comes from benchmarks/results.json.

Tables are files that pages include. Numbers in sentences have names: `|power-default|` in the documentation, and
`<!-- power-default -->0.71<!-- / -->` in the README and the paper, where the number is replaced in place.
"""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import dependences, power
from benchmarks.table import duration, error_of_mean

__all__ = ["ROOT", "numbers", "store", "stored", "written"]

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
README = ROOT / "README.md"
# Where numbers stand behind their names.
IN_PLACE = (README, ROOT / "paper.md")
FOLDER = ROOT / "docs" / "benchmarks"
# Pages whose sentences name numbers.
PAGES = (*(ROOT / "docs" / f"{name}.rst" for name in ("index", "choosing", "scales")), FOLDER / "index.rst")
PARTS = ("speed", "power", "dependences", "conditional", "discovery", "rows", "images", "first_calls", "posteriors")
# Parts that take too long for `make bench`: each is measured, and kept, by a command of its own.
BY_NIGHT = (
    "calibration",
    "imputation",
    "pooled",
    "battery",
    "scales",
    "hybrid",
    "networks",
    "learned_networks",
    "chains",
    "representations",
    "large",
    "sparse",
    "structures",
    "boundaries",
    "effects",
    "floors",
    "growth",
    "black_boxes",
    "learned_share",
    "streams",
    "mixed",
    "mixed_tables",
    "mixed_nuts",
    "installing",
    "tasks",
)
IN_PAGES = re.compile(r"\|([a-z0-9-]+)\|")
NAMED = re.compile(r"<!-- ([a-z0-9-]+) -->.*?<!-- / -->")
Found = dict[str, Any]


def stored() -> Found:
    """The results of the last run."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def store(found: Found) -> None:
    """Keep a run, one line for each thing that was measured."""
    parts = []
    for part, values in found.items():
        lines = ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()
        )
        parts.append(f"{json.dumps(part)}: {{\n{lines}\n}}")
    RESULTS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def written(found: Found) -> dict[Path, str]:
    """The text of every file that holds measured numbers."""
    known = numbers(found)
    parts = (*PARTS, *BY_NIGHT)
    texts = {FOLDER / f"{part}.rst": import_module(f"benchmarks.{part}").page(found[part]) for part in parts}
    texts[FOLDER / "run.rst"] = found["run"]["told"] + "\n"
    named = sorted({name for page in PAGES for name in IN_PAGES.findall(page.read_text(encoding="utf-8"))})
    texts[FOLDER / "numbers.rst"] = "".join(f".. |{name}| replace:: {known[name]}\n" for name in named)
    return texts | {path: in_place(path.read_text(encoding="utf-8"), known) for path in IN_PLACE}


def in_place(text: str, known: dict[str, str]) -> str:
    """The same text with these numbers behind their names."""
    return NAMED.sub(lambda found: f"<!-- {found[1]} -->{known[found[1]]}<!-- / -->", text)


def numbers(found: Found) -> dict[str, str]:
    """Every number that a sentence may name."""
    return dict(_named(found))


def _named(found: Found) -> Iterator[tuple[str, str]]:
    for case, of_case in found["speed"].items():
        for row in of_case["rows"]:
            key = f"speed-{case}-{row['n']}"
            yield f"{key}-first", duration(row["first"])
            for side, seconds in row["seconds"].items():
                yield f"{key}-{_slug(side)}", duration(seconds)
            for peer, (_, middle, _) in row["ratio"].items():
                yield f"{key}-{_slug(peer)}-ratio", f"{middle:.1f}" if middle < 10 else f"{middle:.0f}"
    for call, of_call in found["first_calls"].items():
        yield f"first-{_slug(call)}", duration(of_call["seconds"])
    for problem, methods in found["power"]["problems"].items():
        for method, (rate, _) in methods.items():
            yield f"power-{_slug(problem)}-{_slug(method)}", f"{rate:.2f}"
            yield f"power-{_slug(method)}", f"{power.mean_power(found['power'], method):.2f}"
            yield f"power-{_slug(method)}-error", f"{power.mean_error(found['power'], method):.2f}"
            yield f"power-{_slug(method)}-seconds", duration(power.median_seconds(found["power"], method))
    for part in ("own", "relations"):
        rates = found["dependences"][part]
        for problem, methods in rates.items():
            for method, rate in methods.items():
                yield f"dependence-{_slug(problem)}-{_slug(method)}", f"{rate:.2f}"
                for columns in ("1 column", "3 columns") if part == "relations" else ():
                    mean = dependences.mean_power(rates, method, columns)
                    yield f"dependence-{_slug(columns)}-{_slug(method)}", f"{mean:.2f}"
    own, repeats = found["dependences"]["own"], found["dependences"]["repeats"]
    for method in dependences.METHODS:
        yield f"dependence-own-{_slug(method)}", f"{dependences.mean_power(own, method):.2f}"
        yield f"dependence-own-{_slug(method)}-error", f"{dependences.mean_error(own, method, repeats):.2f}"
    for part in ("scales", "large"):
        yield from import_module(f"benchmarks.{part}").named(found[part]).items()
    for cell in found["conditional"]["level"]:
        key = f"level-{_slug(cell['method'])}-{cell['kind']}-{cell['n']}-{cell['d']}"
        rate, repeats = cell["rejected"] / found["conditional"]["level repeats"], found["conditional"]["level repeats"]
        yield key, f"{rate:.3f}"
        yield f"{key}-error", f"{error_of_mean([rate], repeats):.3f}"
        yield f"{key}-seconds", duration(cell["seconds"])


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
