"""The outcome of an experiment as a file: JSON that includes its pictures, written atomically."""

import base64
import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meanmap import __version__
from meanmap.core.saved.files import write_whole
from meanmap.plots.page import png_of
from meanmap_papers.experiment import Experiment, Number, Outcome, Scale, Setting, Verdict, verdict

__all__ = ["Record", "read_record", "record_of", "record_path", "write_record"]

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """The record of one run of an experiment: outcome, pictures as PNG, setting, processor seconds and versions."""

    id: str
    setting: Setting
    verdict: Verdict
    answer: str
    numbers: dict[str, Number]
    figures: tuple[tuple[bytes, str], ...]
    table: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    seconds: float
    versions: dict[str, str]


def record_of(experiment: Experiment, setting: Setting, outcome: Outcome, seconds: float) -> Record:
    """The record of an outcome; its figures are drawn now and closed."""
    return Record(
        experiment.id,
        setting,
        verdict(experiment.claims, outcome.numbers, setting.scale),
        outcome.answer,
        {name: Number(float(number.value), number.error, number.runs) for name, number in outcome.numbers.items()},
        tuple((_drawn(figure), caption) for figure, caption in outcome.figures),
        outcome.table,
        outcome.notes,
        seconds,
        _versions(),
    )


def record_path(folder: Path, id: str, setting: Setting) -> Path:
    """The path of an experiment's record: one file for each version of the library, scale and seed."""
    key = json.dumps([FORMAT, __version__, setting.scale, setting.seed])
    return folder / f"{id}.{setting.scale}.{hashlib.sha256(key.encode()).hexdigest()[:12]}.json"


def write_record(path: Path, record: Record) -> None:
    """Write a record; an interrupt leaves the old file or none."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "id": record.id,
        "scale": record.setting.scale,
        "seed": record.setting.seed,
        "verdict": record.verdict,
        "answer": record.answer,
        "numbers": {name: [number.value, number.error, number.runs] for name, number in record.numbers.items()},
        "figures": [[base64.b64encode(png).decode(), caption] for png, caption in record.figures],
        "table": record.table,
        "notes": record.notes,
        "seconds": record.seconds,
        "versions": record.versions,
    }
    write_whole(path, json.dumps(content, indent=1))


def read_record(path: Path) -> Record | None:
    """The record in a file; None if there is no file or it is not a record of this format."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            return None
        scale: Scale = content["scale"]
        return Record(
            content["id"],
            Setting(scale, content["seed"]),
            content["verdict"],
            content["answer"],
            {name: Number(*each) for name, each in content["numbers"].items()},
            tuple((base64.b64decode(png), caption) for png, caption in content["figures"]),
            tuple(tuple(row) for row in content["table"]),
            tuple(content["notes"]),
            content["seconds"],
            content["versions"],
        )
    except (FileNotFoundError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        return None  # then the experiment is run again


def _drawn(figure: Any) -> bytes:
    from matplotlib import pyplot

    png = png_of(figure)
    pyplot.close(figure)
    return png


def _versions() -> dict[str, str]:
    import jax
    import numpy

    return {
        "meanmap": __version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": numpy.__version__,
    }
