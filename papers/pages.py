"""Every figure of the papers beside ours, as pages: python -m papers.pages FOLDER COMMIT.

Takes in the records that `meanmap reproduce --folder FOLDER` left, of the library at COMMIT, and writes
docs/reproductions from all that are kept. Without arguments the pages are written again and nothing is taken in.
Errata are told once, in docs/errata.toml: all of them on a page of their own, each beside the figures it names. What is
written or measured after a run is kept in its record by hand: "afterwards" is a short text that stands below the
answer, "more" are paragraphs that are folded in, and "later" are numbers by name. What earlier runs found stands in
docs/reproductions/earlier.rst, which is written by hand.
"""

import datetime
import io
import json
import math
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.pages import ROOT
from benchmarks.table import list_table
from meanmap_papers.experiment import SCALES, Experiment, Number, how_judged, verdict
from meanmap_papers.record import read_record
from meanmap_papers.registry import PAPERS, all_experiments
from meanmap_papers.report import claim_tables, counted
from papers import claims

__all__ = ["FOLDER", "errata", "kept", "known", "take", "written"]

FOLDER = ROOT / "docs" / "reproductions"
ERRATA = ROOT / "docs" / "errata.toml"
RECORDS = Path(__file__).with_name("results")
# Bytes of a picture.
LARGEST = 200_000
# Rows of a table that is not folded in.
MOST_ROWS = 24
Kept = dict[str, Any]


def take(folder: Path, commit: str) -> None:
    """Keep the records in a folder: numbers as JSON, pictures as files. A larger scale replaces a smaller one."""
    for path in sorted(folder.glob("*.json")):
        record = read_record(path)
        if record is None:
            print(f"{path} is no record, or one of another version.", file=sys.stderr)
            continue
        content, before = json.loads(path.read_text(encoding="utf-8")), kept().get(record.id)
        if before and SCALES.index(before["scale"]) > SCALES.index(record.setting.scale):
            continue
        for number, (png, _) in enumerate(record.figures, 1):
            _picture(record.id, number).write_bytes(small(png))
        kept_by_hand = {key: before[key] for key in ("afterwards", "more", "later") if key in before} if before else {}
        if kept_by_hand:
            content |= kept_by_hand
            print(f"{record.id}: what was written afterwards is about the run before: read it again.", file=sys.stderr)
        content["captions"] = [caption for _, caption in content.pop("figures")]
        del content["verdict"]  # the pages judge anew
        content["numbers"] = {name: each for name, each in content["numbers"].items() if not math.isnan(each[0])}
        content |= {"date": str(datetime.date.fromtimestamp(path.stat().st_mtime)), "commit": commit}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (RECORDS / f"{record.id}.json").write_text(text, encoding="utf-8")


def kept() -> dict[str, Kept]:
    """The records by id."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDS.glob("*.json"))]
    return {each["id"]: each for each in found}


def errata() -> dict[str, Any]:
    """What is used in another form than it was printed: "about", and of each paper "title", "about" and "errata"."""
    return tomllib.loads(ERRATA.read_text(encoding="utf-8"))


def small(png: bytes) -> bytes:
    """The same picture in at most `LARGEST` bytes: with 256 colours, and then smaller."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    while len(png) > LARGEST:
        written = io.BytesIO()
        picture.quantize(256).save(written, format="PNG", optimize=True)
        png = written.getvalue()
        picture = picture.resize((picture.width * 9 // 10, picture.height * 9 // 10))
    return png


def written(records: dict[str, Kept]) -> dict[Path, str]:
    """The text of every page."""
    experiments = all_experiments()
    misprints = errata()
    pages = {
        FOLDER / "verdicts.rst": "\n".join(_verdicts(experiments, records)),
        FOLDER / "claims.rst": "\n".join(claims.page(experiments, known(experiments, records))),
        ERRATA.with_suffix(".rst"): "\n".join(_all_errata(misprints)),
    }
    for paper, source in PAPERS.items():
        ours = [each for each in experiments.values() if paper in each.run.__module__.split(".")]
        slug = paper.replace("_", "-")
        lines = [
            *_heading(source, "="),
            "Formulas that are used here in another form than printed are listed with the figures they affect; † marks",
            f"those confirmed numerically. One page lists all of them: :ref:`errata-{slug}`.",
            "",
        ]
        for experiment in ours:
            beside = [each for each in misprints[slug]["errata"] if experiment.id in each.get("figures", ())]
            lines += _section(experiment, records.get(experiment.id), beside)
        pages[FOLDER / f"{slug}.rst"] = "\n".join(lines)
    return pages


def _verdicts(experiments: dict[str, Experiment], records: dict[str, Kept]) -> Iterator[str]:
    rows = []
    for experiment in experiments.values():
        found, record = ["not run", "", "", "", ""], records.get(experiment.id)
        if record:
            numbers, scale = _measured(experiment, record), record["scale"]
            found = [
                experiment.said(verdict(experiment.claims, numbers, scale)),
                *(counted(how_judged(experiment.claims, numbers, scale, ours=ours)) for ours in (False, True)),
                scale,
                f"{record['seconds'] / 60:.1f}",
            ]
        rows.append([f":ref:`{claims.plain(experiment.title)} <{experiment.id}>`", *found])
    head = ["figure", "verdict", "claims of the paper", "claims of ours", "scale", "processor minutes"]
    yield from list_table(head, rows, option="class: verdicts")


def _all_errata(misprints: dict[str, Any]) -> Iterator[str]:
    yield from (*_heading("Errata of the papers", "="), misprints["about"].strip(), "")
    for slug, paper in misprints.items():
        if slug != "about":
            yield from (f".. _errata-{slug}:", "", *_heading(paper["title"], "-"), paper["about"].strip(), "")
            yield from _errata_table(paper["errata"])


def _errata_table(rows: list[dict[str, str]]) -> list[str]:
    cells = [[" ".join(row[name].split()) for name in ("where", "printed", "read")] for row in rows]
    return list_table(["where", "printed", "read instead"], cells, option="widths: 16 34 50")


def _section(experiment: Experiment, record: Kept | None, misprints: list[dict[str, str]]) -> Iterator[str]:
    yield from (f".. _{experiment.id}:", "")
    yield from _heading(claims.plain(experiment.title), "-")
    if record is None:
        yield from (
            f"{claims.plain(experiment.source)}. Not run yet: ``meanmap reproduce {experiment.id} --scale paper``,",
            f"about {experiment.minutes['paper']:.0f} minutes.",
            "",
        )
        yield from _errata_table(misprints) if misprints else ()
        return
    numbers, scale = _measured(experiment, record), record["scale"]
    found = experiment.said(verdict(experiment.claims, numbers, scale).capitalize())
    yield from (f"{claims.plain(experiment.source)}.", "")
    yield from (f"**{claims.plain(found)}.** {claims.plain(record['answer'])}", "")
    if "afterwards" in record:
        yield from (claims.plain(record["afterwards"]), "")
    for head, *rows in claim_tables(experiment.claims, numbers, scale):
        cells = [list(map(claims.plain, row)) for row in rows]
        for row in cells:
            row[2] = claims.in_lines(row[2].split("; "))  # what was measured
        yield from list_table(list(head), cells, option="class: claims")
    for number, caption in enumerate(record["captions"], 1):
        yield from (
            f".. figure:: {_picture(experiment.id, number).name}",
            f"   :alt: {caption}",
            "",
            f"   {claims.plain(caption)}",
            "",
        )
    if record["table"]:
        head, *rows = ([claims.plain(cell) for cell in row] for row in record["table"])
        table = list_table(head, rows)
        yield from table if len(rows) <= MOST_ROWS else _folded(f"A table of {len(rows)} rows", table)
    claimed = {name for claim in experiment.claims for name in claim.names}
    others = [(name, each) for name, each in numbers.items() if name not in claimed]
    if others:
        rows = [(claims.plain(name.replace("_", " ")), each) for name, each in others]
        yield from _folded("Other numbers", list_table(["number", "measured"], rows))
    notes = [f"* {claims.plain(note)}" for note in (*record["notes"], *record.get("more", ()))]
    yield from _folded("How it was run, and details", [*notes, ""]) if notes else ()
    yield from (
        _folded("Formulas that are used in another form than printed", _errata_table(misprints)) if misprints else ()
    )
    command = f"meanmap reproduce {experiment.id} --scale {scale} --seed {record['seed']}"
    minutes = f"{record['seconds'] / 60:.1f} processor minutes"
    yield f"``{command}``: {minutes} on {record['date']}, with commit {record['commit']}."
    if scale != "paper":
        yield f"The paper's own size takes about {experiment.minutes['paper']:.0f} minutes."
    yield ""


def _folded(title: str, lines: list[str]) -> list[str]:
    """Lines that are shown when their title is clicked."""
    return [f".. admonition:: {title}", "   :collapsible: closed", "", *(f"   {line}".rstrip() for line in lines)]


def known(experiments: dict[str, Experiment], records: dict[str, Kept]) -> claims.Measured:
    """The numbers and the scale of each experiment that was run."""
    return {id: (_measured(experiments[id], record), record["scale"]) for id, record in records.items()}


def _numbers(record: Kept) -> dict[str, Number]:
    """Those of the run, and those that were measured later."""
    return {name: Number(*each) for name, each in (record["numbers"] | record.get("later", {})).items()}


def _measured(experiment: Experiment, record: Kept) -> dict[str, Number]:
    """The numbers of a record; of claims that were added after its run there is none yet."""
    spoken = (name for claim in experiment.claims for name in claim.names)
    return {name: Number(math.nan) for name in spoken} | _numbers(record)


def _picture(id: str, number: int) -> Path:
    return FOLDER / f"{id}-{number}.png"


def _heading(text: str, mark: str) -> tuple[str, str, str]:
    return text, mark * len(text), ""


if __name__ == "__main__":
    for place in (FOLDER, RECORDS):
        place.mkdir(exist_ok=True)
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]), sys.argv[2])
    for path, text in written(kept()).items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
