"""The page of a monitor: its evidence after each batch, and all batches."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.language import in_few_words
from meanmap.core.notes import note_lines, note_table
from meanmap.core.values import plain
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section
from meanmap.stats.samples.drift_picture import others_of
from meanmap.stats.samples.drift_record import MOST_EXPLAINED
from meanmap.stats.samples.drift_words import (
    AGAIN,
    ALARMS,
    alarms_in_lines,
    alike_once,
    ended_in,
    in_lines,
    lasts_in,
    table_of,
)

__all__ = [
    "ABOUT",
    "MOST_COLUMNS",
    "alarms_in_facts",
    "facts_of",
    "in_words",
    "monitor_page",
    "plain_rows",
    "with_repeats",
]

# At most this many columns are printed for an alarm.
MOST_COLUMNS = 5
ABOUT = (
    "Means and shares of rows, the smallest p-value first. P-values are for whole columns, corrected for multiple "
    "testing. Bars show all batches in order."
)


def in_words(monitor: Any) -> str:
    """A monitor as text: a line, a table of the columns that moved for each alarm, and notes."""
    tables = [alarms_in_lines(alarms)] if (alarms := _each_alarm(monitor)) else []
    for span, rows, again in alike_once(_compared(monitor, last=False)):
        more = f"\n  and {len(rows) - MOST_COLUMNS} more: to_dict() and page(path) have all" * (
            len(rows) > MOST_COLUMNS
        )
        tables += [f"{in_lines(table_of(rows[:MOST_COLUMNS], 'reference', span))}{more}", *([again] if again else [])]
    return "\n".join([_line(monitor), *tables, *note_lines(_notes(monitor))])


def _line(monitor: Any) -> str:
    latest = f", the latest p-value {monitor.pvalues[-1]:.3g}" if len(monitor.pvalues) else ""
    batches = f"{len(monitor.pvalues)} batch{'es' * (len(monitor.pvalues) != 1)}"
    seen = monitor.lasting and monitor.lasting.is_seen
    lasts = f"; {monitor.lasting.said().partition(' (')[0]}" if seen else ""
    return f"DriftMonitor after {batches}{latest}; alarms at: {_alarms(monitor)}{lasts}"


def _answer(monitor: Any) -> str:
    """The answer in a sentence."""
    number = len(monitor.pvalues)
    if not number:
        return "There is no batch yet."
    seen = f"{number} batch{'es' * (number > 1)}; the latest p-value is {monitor.pvalues[-1]:.3g}."
    if not len(monitor.alarms):
        return f"No alarm in {seen}"
    told = f"Alarm at batch {_alarms(monitor)}, of {seen} "
    if monitor.lasting or monitor.record is None:
        return f"{told}{lasts_in(monitor)}".rstrip()
    return f"{told}{ended_in(monitor, monitor.record.each_alarm())}".rstrip()


def _alarms(monitor: Any) -> str:
    return with_repeats([*map(str, monitor.alarms)], [*map(str, monitor.repeats)]) or "none"


def with_repeats(alarms: Sequence[str], repeats: Sequence[str]) -> str:
    """The new alarms, and how many repeat a known drift.

    Examples
    --------
    >>> with_repeats(["7", "9", "12"], ["9", "12"]), with_repeats(["9"], ["9"])
    ('7, and 2 more of a known drift, the last at 12', '9 (a known drift)')
    """
    new = in_few_words([each for each in alarms if each not in repeats], 5)
    some = [each for each in alarms if each in repeats]
    if some and not new:
        return f"{in_few_words(some, 5)} (a known drift)"
    last = "the last at " * (len(some) > 1)
    again = f"{len(some)} more of a known drift, {last or 'at '}{some[-1]}" if some else ""
    return ", and ".join(filter(None, (new, again)))


def _compared(monitor: Any, last: bool) -> list[tuple[str, list[dict[str, Any]]]]:
    """The compared columns of the batches of each alarm, or of the last batch; only of those that have any."""
    if monitor.record is None:
        return []
    return [(drift.span(), rows) for drift, rows in monitor.record.compared(last) if rows]


def plain_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The differences of columns, ready for JSON."""
    return [{key: row[key] for key in row if key not in ("cells", "of", "label")} for row in rows]


def facts_of(monitor: Any) -> dict[str, Any]:
    """A monitor as plain values."""
    facts: dict[str, Any] = {"answer": _answer(monitor)}
    facts |= plain(monitor, "run_length", "limit", "pvalue_limit", "seed", "pvalues", "evidence", "alarms", "repeats")
    facts["notes"] = list(dict.fromkeys((*monitor.standing, *monitor.notes)))
    spans = [{"batches": span, "columns": plain_rows(rows)} for span, rows in _compared(monitor, last=False)]
    lasting = None
    if monitor.lasting:
        pvalue = monitor.lasting.pvalue if monitor.lasting.count else None
        lasting = {"since": monitor.lasting.since, "pvalue": pvalue, "seen": monitor.lasting.is_seen}
    alarms = [] if monitor.record is None else monitor.record.each_alarm()
    return facts | {"lasting": lasting, "compared": spans, "each alarm": alarms_in_facts(alarms)}


def alarms_in_facts(alarms: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """The batches of each alarm, and what changed, ready for JSON."""
    return [dict(zip(("batches", "changed"), each, strict=True)) for each in alarms]


def _notes(monitor: Any) -> list[str]:
    """Notes on columns that are not watched, on rows that are alike, and on the latest batch, each once."""
    lasts = [monitor.lasting.note()] if monitor.lasting else []
    told = list(dict.fromkeys((*monitor.left_out.values(), *lasts, *monitor.standing, *monitor.notes)))
    if not _each_alarm(monitor):
        return told
    which = f"the first and the last {MOST_EXPLAINED - 1} of {len(monitor.alarms)} alarms"
    other = "for another one pass the reference and its batch to mm.two_sample_test"
    return [*told, f"tables of all columns are kept for {which}; {other}."]


def _each_alarm(monitor: Any) -> list[tuple[str, str]]:
    """The batches of each alarm, and what changed, if not all tables are kept."""
    return monitor.record.each_alarm() if monitor.record is not None and monitor.record.lacks_tables() else []


def monitor_page(monitor: Any, brief: bool, names: Sequence[str] = ()) -> Page:
    """The page of a monitor with its evidence, that of missing values if there is any, and alarms; a brief page omits
    the list of batches. Batches without names are numbered.
    """
    evidence, pvalues, others = monitor.evidence, monitor.pvalues, others_of(monitor)
    batches, at = np.arange(1, len(evidence) + 1), np.array(monitor.alarms, int)
    again = np.isin(at, monitor.repeats)
    highest = np.max([evidence, *others.values()], axis=0)
    said = [f"evidence {e:.3g}, p = {p:.3g}" for e, p in zip(evidence, pvalues, strict=True)]
    drawn = "line" if len(evidence) > 1 else "dots"
    marks = [Mark(drawn, {"x": batches, "y": evidence}, "evidence since the last alarm", said)]
    for colour, (of, other) in enumerate(others.items(), start=2):
        told = [f"{of}: evidence {e:.3g}" for e in other]
        marks.append(Mark(drawn, {"x": batches, "y": other}, f"evidence of {of}", told, colour=colour))
    called = list(names) or [f"batch {k}" for k in batches]
    one_ending = len({Path(name).suffix for name in names}) == 1
    ticks = [Path(name).stem if one_ending else name for name in names] or ["1"] * (len(batches) == 1)
    for of, some, colour in (("alarms", ~again, 1), ("alarms that repeat a known drift", again, 4)):
        if some.any():
            named = [called[k - 1] for k in at[some]]
            marks.append(Mark("dots", {"x": at[some], "y": highest[at[some] - 1]}, of, named, colour=colour))
    marks += [
        Mark("rules", {"y": [monitor.limit]}, "limit of the evidence", (), 6, dashed=True),
    ]
    across = Axis("batch", tuple(zip(map(float, batches), ticks, strict=True)) if ticks else ())
    chart = Chart("Evidence of drift after each batch", (Panel(across, Axis("evidence"), tuple(marks)),))
    said_of = dict.fromkeys(monitor.alarms, "alarm") | dict.fromkeys(monitor.repeats, AGAIN)
    rows = [
        (str(k), f"{p:.3g}", f"{e:.3g}", *(f"{other[k - 1]:.3g}" for other in others.values()), said_of.get(k, ""))
        for k, p, e in zip(batches.tolist(), pvalues, evidence, strict=True)
    ]
    notes = note_table(_notes(monitor))
    section = Section("The answer", _answer(monitor), charts=(chart,) if rows else (), tables=(notes,))
    alarms = _each_alarm(monitor)
    moved = [Section("All alarms", "", tables=((ALARMS, *alarms),))] if alarms else []
    moved += [
        Section(
            f"Which columns differ: {span}",
            f"{span[:1].upper()}{span[1:]} compared with the reference{again and f';{again[1:]}'}.",
            ABOUT,
            tables=(table,),
        )
        for span, found, again in alike_once(_compared(monitor, not brief))
        if (table := tuple(map(tuple, table_of(found, "reference", span))))
    ]
    listed = Section(
        "All batches",
        "",
        tables=((("batch", "p-value", "evidence", *others, "alarm"), *rows),),
    )
    more = [] if brief or not rows else [listed]
    return Page(
        "Do new batches still come from the reference distribution?", "", (section, *moved, *more), facts_of(monitor)
    )
