"""`meanmap drift`: do batches, one after another, still come from the distribution of a reference?"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from meanmap.cli.bundles import Drawn, Read, with_bundles
from meanmap.cli.options import Seed, in_own_words, names_in, refused, say
from meanmap.core.errors import EmptyError, InputError, KindError
from meanmap.core.values import label_text

if TYPE_CHECKING:
    from meanmap.cli.inputs import Reading
    from meanmap.core.tables.table import Table

__all__ = ["drift"]

# This many batches and columns are listed in a terminal, and this many batches are drawn beside a column.
MOST_BATCHES, MOST_COLUMNS, MOST_DRAWN = 30, 15, 40
MOST_CHARACTERS = 48
# Of a column whose p-value is no larger, and whose mean hardly differs, the spread is shown too.
LEVEL = 0.05
BARS = "▁▂▃▄▅▆▇█"


@with_bundles
def drift(
    reference: Annotated[str, typer.Argument(help="File with rows of the normal state; 40 or more.")],
    batches: Annotated[list[str], typer.Argument(help="Files in order, one a batch: names, a folder or a 'pattern'.")],
    columns: Annotated[
        str | None, typer.Option(help="Columns to watch, a,b,...; all but times and row numbers.")
    ] = None,
    run_length: Annotated[float, typer.Option(help="Mean number of batches between false alarms.")] = 1000,
    margin: Annotated[
        float | None, typer.Option(help="Tolerate a drift up to a shift of this many standard deviations.")
    ] = None,
    within: Annotated[str, typer.Option(help="Columns of strata, a,b,...: compared inside only.")] = "",
    seed: Seed = None,
    *,
    read: Read,
    shown: Drawn,
) -> None:
    """Watch batches for drift away from a reference; an alarm ends in exit code 1."""
    import meanmap as mm

    reading = read.reading()
    paths = _files(batches)
    table, chosen = _reference(reading, reference, names_in(columns), names_in(within))
    monitor = mm.DriftMonitor.of(
        table, run_length=run_length, within=names_in(within) or None, margin=margin, kinds=reading.kinds, rng=seed
    )
    watched = _Watched(Path(reference).name, table, names_in(within))
    reading.notes += monitor.notes
    for path in paths:
        name = Path(path).name
        with _named(name):
            batch = _rows(reading, path, chosen)
            if batch is None:
                watched.notes.setdefault("fewer than 2 rows, so it is skipped.", []).append(name)
                continue
            monitor = monitor.step(batch)
        watched.add(name, batch, monitor)
    if not watched.batches:
        raise refused("no batch has 2 rows or more; expected one file a batch")
    columns_found = watched.columns(reading.kinds, monitor.seed)
    question = f"Do the batches still come from the distribution of {watched.name}?"
    if shown.plot is not None or shown.report is not None:
        _draw(shown, monitor, question, watched, columns_found, reading)
    if shown.json:
        _tell_json(question, monitor, watched, columns_found, reading)
    else:
        _tell(question, monitor, watched, columns_found, reading)
    if monitor.alarms:
        raise typer.Exit(1)


@dataclass
class _Watched:
    """What was seen of each batch, and the rows since drift began."""

    name: str
    reference: "Table"
    within: list[str]
    batches: list[dict[str, Any]] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[str, list[str]] = field(default_factory=dict)
    since: list[tuple[str, "Table"]] = field(default_factory=list)
    drifted: list[tuple[str, "Table"]] = field(default_factory=list)

    def add(self, name: str, batch: "Table", monitor: Any) -> None:
        """One more batch, which the monitor has seen last."""
        self.values.append({column: _typical(batch.columns[column]) for column in self.reference.names})
        pvalue, evidence = float(monitor.pvalues[-1]), float(monitor.evidence[-1])
        about = {"batch": name, "rows": len(batch), "pvalue": pvalue, "evidence": evidence, "alarm": monitor.alarm}
        self.batches.append(about)
        for note in monitor.notes:
            self.notes.setdefault(note, []).append(name)
        # Evidence was zero when drift began, as far as can be told (Page 1954).
        self.since = [*(self.since if evidence > 0 else []), (name, batch)]
        if monitor.alarm:
            self.drifted, self.since = self.since, []

    @property
    def span(self) -> str:
        """Which batches are compared with the reference column by column."""
        names = [name for name, _ in self.drifted or self.since[-1:]]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"

    def columns(self, kinds: dict[str, Any], seed: int) -> list[dict[str, Any]]:
        """Column by column: the reference, the batches that drifted (or the last), the difference, and all batches."""
        import meanmap as mm
        from meanmap.core.tables.table import Table
        from meanmap.stats.samples.by_column import differences

        if self.within:  # rows of all strata together would show how their shares differ
            return []
        parts = [batch for _, batch in self.drifted or self.since[-1:]]
        rows = Table({name: np.concatenate([part.columns[name] for part in parts]) for name in self.reference.names})
        both = [(self.reference.columns[name], rows.columns[name]) for name in self.reference.names]
        if all((one[:1] == part).all() for one, other in both for part in (one, other)):  # nothing varies
            return []
        pvalues = mm.two_sample_test(self.reference, rows, kinds=kinds, rng=seed).column_pvalues(rng=seed)
        found = []
        for each in differences(self.reference, rows):
            what, first, second, by = each.cells()
            seen = [values[each.column] for values in self.values]
            over_time = seen if each.label is None else [shares.get(each.label, 0.0) for shares in seen]
            facts = {"column": each.column, "what": what, "reference": first, "batches": second, "difference": by}
            found.append(facts | {"pvalue": pvalues.get(each.column), "clear": each.clear, "over time": over_time})
            if each.medians is not None and pvalues.get(each.column, 1.0) <= LEVEL and not each.clear:
                sds = (float(np.std(np.asarray(t.columns[each.column], float))) for t in (self.reference, rows))
                first, second = (f"{sd:.4g}" for sd in sds)
                found.append(found[-1] | {"what": f"sd {each.column}", "reference": first, "batches": second})
                found[-1] |= {"difference": "", "over time": []}
        return sorted(found, key=lambda each: 1.0 if each["pvalue"] is None else each["pvalue"])


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say of which file an error is."""
    try:
        yield
    except (InputError, KindError) as problem:
        raise type(problem)(f"{name}: {problem}") if name not in str(problem) else problem from None


def _rows(reading: "Reading", path: str, columns: list[str]) -> "Table | None":
    """The rows of a batch; None where there are fewer than two."""
    try:
        batch = reading.table(path, columns)
    except EmptyError:
        return None
    return batch if len(batch) > 1 else None


def _files(batches: Sequence[str]) -> list[str]:
    """The files of batches in order: names as they came, those of a folder or a pattern by name."""
    from meanmap.core.pieces.files import matching, natural

    found: list[Path] = []
    for each in batches:
        path = Path(each)
        if path.is_dir():
            inside = [file for file in path.iterdir() if not file.is_dir() and not file.name.startswith(".")]
            if not inside:
                raise refused(f"the folder {each} holds no files; expected one file a batch")
            found += sorted(inside, key=natural)
        elif not path.exists() and has_magic(each):
            found += matching(path)
        else:
            found.append(path)
    return list(map(str, found))


def _reference(reading: "Reading", path: str, columns: list[str], within: list[str]) -> tuple["Table", list[str]]:
    """The reference, and the columns that batches are read for; clocks and row numbers are set apart."""
    from meanmap.core.tables.order import gives_place

    table = reading.table(path, [*columns, *(name for name in within if name not in columns)] if columns else None)
    if columns:
        return table, list(table.names)
    apart = [name for name, column in table.columns.items() if name not in within and gives_place(column)]
    kept = [name for name in table.names if name not in apart]
    if not [name for name in kept if name not in within]:
        raise refused(f"{path} holds only times and row numbers; name the columns to watch with --columns")
    if apart:
        reading.notes = [note for note in reading.notes if "counts the rows" not in note]
        reading.notes.append(
            f"{', '.join(apart)}: times or row numbers, which differ in every batch, are not watched; --columns names "
            "columns to watch"
        )
    return table.select(kept), kept


def _answer(question: str, monitor: Any, watched: _Watched) -> str:
    named = [each["batch"] for each in watched.batches if each["alarm"]]
    if named:
        return f"{question} No: alarm at {', '.join(named[:5])}{f' and {len(named) - 5} more' * (len(named) > 5)}."
    return f"{question} No evidence of drift in {len(watched.batches)} batch{'es' * (len(watched.batches) != 1)}."


def _listed(watched: _Watched) -> list[list[str]]:
    """A row for each batch."""
    rows = [
        [each["batch"], str(each["rows"]), f"{each['pvalue']:.3g}", f"{each['evidence']:.2f}", "alarm" * each["alarm"]]
        for each in watched.batches
    ]
    return [["batch", "rows", "p-value", "evidence", ""], *rows]


def _compared(watched: _Watched, found: list[dict[str, Any]]) -> list[list[str]]:
    """A row for each column."""
    header = ["what", watched.name, watched.span, "difference", "p-value", "over all batches"]
    return [
        header,
        *(
            [
                *(each[name] for name in ("what", "reference", "batches", "difference")),
                "" if each["pvalue"] is None else f"{each['pvalue']:.3g}",
                _drawn(each["over time"]),
            ]
            for each in found
        ),
    ]


def _typical(column: np.ndarray) -> Any:
    """The mean of numbers or times (in seconds), or the share of rows that each label has."""
    from meanmap.core.moments import seconds
    from meanmap.core.tables.kinds import family_of

    family = family_of(column)
    if family in ("label", "boolean"):
        labels, counts = np.unique(column, return_counts=True)
        return {label_text(label): count / len(column) for label, count in zip(labels, counts.tolist(), strict=True)}
    return float(np.mean(column if family == "number" else seconds(column, "batch")))


def _drawn(values: Sequence[float]) -> str:
    """Values as bars from the lowest to the highest."""
    numbers = np.array(values[-MOST_DRAWN:])
    if not len(numbers):
        return ""
    low, high = numbers.min(), numbers.max()
    places = (numbers - low) / (high - low if high > low else 1.0) * (len(BARS) - 1)
    return "".join(BARS[round(float(place))] for place in places)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    rows = [[_short(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _short(cell: str) -> str:
    """One line, and not a long one."""
    line = " ".join(cell.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"


def _notes(watched: _Watched, reading: "Reading", seed: int) -> list[str]:
    """What to know of all batches, once each."""
    told = [
        f"{names[0]}{f' and {len(names) - 1} more' * (len(names) > 1)}: {note}" for note, names in watched.notes.items()
    ]
    if watched.within:
        told.append("columns are not compared one by one, as their strata are: compare those of one stratum")
    return [*dict.fromkeys([*reading.notes, *told]), f"seed {seed}"]


def _tell(question: str, monitor: Any, watched: _Watched, found: list[dict[str, Any]], reading: "Reading") -> None:
    say(f"{_answer(question, monitor, watched)}\n")
    header, *rows = _listed(watched)
    shown = [row for k, row in enumerate(rows) if row[-1] or k >= len(rows) - MOST_BATCHES][-2 * MOST_BATCHES :]
    say(_aligned([header, *shown]))
    left = f"; {len(rows) - len(shown)} quiet batches are not shown" * (len(rows) > len(shown))
    say(f"  an alarm is raised above {monitor.limit:.2f}: one false alarm in {monitor.run_length:g} batches{left}\n")
    if found:
        say(_aligned(_compared(watched, found[:MOST_COLUMNS])))
    if len(found) > MOST_COLUMNS:
        say(f"  and {len(found) - MOST_COLUMNS} more: --json and --report show all")
    say("")
    for note in _notes(watched, reading, monitor.seed):
        say(f"  note: {note}")


def _tell_json(question: str, monitor: Any, watched: _Watched, found: list[dict[str, Any]], reading: "Reading") -> None:
    from meanmap import __version__
    from meanmap.cli import outputs

    said = {"question": question, "alarms": [each["batch"] for each in watched.batches if each["alarm"]]}
    said |= {"limit": monitor.limit, "run_length": monitor.run_length, "seed": monitor.seed}
    said |= {"batches": watched.batches, "compared": watched.span, "columns": found}
    notes = in_own_words(_notes(watched, reading, monitor.seed)[:-1])
    outputs.tell_json({**said, "notes": notes, "meanmap": __version__})


def _draw(
    shown: Drawn, monitor: Any, question: str, watched: _Watched, found: list[dict[str, Any]], reading: "Reading"
) -> None:
    from meanmap.cli import outputs, pages

    if shown.plot is not None:
        outputs.draw(monitor, shown.plot)
    if shown.report is not None:
        tables = _listed(watched), _compared(watched, found)
        notes = _notes(watched, reading, monitor.seed)
        pages.write_drift(shown.report, monitor, question, _answer(question, monitor, watched), tables, notes)
