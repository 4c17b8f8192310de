"""Tables of text that show how columns moved."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.language import in_few_words
from meanmap.stats.samples.drift_alike import changes_in, is_known

__all__ = [
    "AGAIN",
    "ALARMS",
    "RARELY",
    "alarms_in_lines",
    "alike_once",
    "change_in",
    "clear_in",
    "ended_in",
    "in_lines",
    "in_one_line",
    "lasts_in",
    "latest_in",
    "rule_of",
    "table_of",
]

# The largest number of batches drawn next to a column, and of characters in a cell.
MOST_DRAWN, MOST_CHARACTERS = 40, 48
BARS = "▁▂▃▄▅▆▇█"
# The header of the list of alarms.
ALARMS = ("alarm", "what changed")
# How lists of batches call an alarm that repeats a known drift.
AGAIN = "alarm, known drift"
# A line about an alarm names at most this many changes, of columns whose p-value is at most this. Where no interval
# excludes zero, it names columns whose p-value is at most the third number.
MOST_CHANGES, LEVEL, RARELY = 3, 0.05, 0.005
NOTHING = "no column clearly by itself"


def rule_of(monitor: Any) -> str:
    """The rule for alarms as a text, with their frequency without drift."""
    single = ", or the evidence of a small lasting change in one column," * (monitor.persistent is not None)
    return (
        f"An alarm is raised if the evidence of drift{single} exceeds {monitor.limit:.2f}, or if a batch has p ≤ "
        f"{monitor.pvalue_limit:.2g}. Without drift, this happens at most once in {monitor.run_length:g} batches on "
        "average."
    )


def table_of(found: Sequence[Mapping[str, Any]], reference: str, span: str) -> list[list[str]]:
    """A header with names for the reference and the batches, and a row for each column."""
    pvalues = ("" if each["pvalue"] is None else f"{each['pvalue']:.3g}" for each in found)
    return [
        ["what", "column's p-value", reference, span, "difference (simultaneous 95%)", "over all batches"],
        *(
            [each["what"], pvalue, *each["cells"], drawn(each["over time"])]
            for each, pvalue in zip(found, pvalues, strict=True)
        ),
    ]


def alike_once(compared: Sequence[tuple[str, Any]]) -> list[tuple[str, Any, str]]:
    """The batches and rows of alarms, where alarms in a row of which the same column changed most, and all that surely
    changed did so as at the first, are one, the first, with a line on the others.

    Examples
    --------
    >>> rows = [{"column": "weight", "what": "mean weight", "pvalue": 0.002, "clear": True}]
    >>> rows = [{**rows[0], "reference": 5.1, "batches": 7.3, "difference": None}]
    >>> [again for _, _, again in alike_once([("batch 7", rows), ("batch 8", rows), ("batch 9", rows)])]
    ['  2 later alarms, the last at batch 9, looked much the same']
    """
    found: list[tuple[str, Any, Any, list[str]]] = []
    for span, rows in compared:
        clear = clear_in(rows)
        most = [each["column"] for each in clear][:1]
        sure = changes_in([each for each in clear if each["column"] in most or each["pvalue"] <= RARELY])
        if found and most and most == found[-1][2] and is_known(sure, changes_in(found[-1][1])):
            found[-1][3].append(span)
        else:
            found.append((span, rows, most, []))
    return [(span, rows, _again(more)) for span, rows, _, more in found]


def _again(spans: Sequence[str]) -> str:
    """A line on later alarms of the same change; empty text if there are none."""
    if not spans:
        return ""
    which = f"{len(spans)} later alarms, the last" if len(spans) > 1 else "1 later alarm,"
    return f"  {which} at {spans[-1]}, looked much the same"


def clear_in(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of columns that have clearly changed by themselves; and of other columns whose own p-value is small, as
    that of a new label that few rows have, the first row. If there is none, those whose interval excludes zero.
    """
    small = [each for each in rows if each["pvalue"] is not None and each["pvalue"] <= LEVEL]
    clear = {each["column"] for each in small if each["clear"]}
    first = {each["column"]: each for each in reversed(small) if each["pvalue"] <= RARELY}
    found = [
        each for each in small if each["clear"] or (each["column"] not in clear and each is first.get(each["column"]))
    ]
    return found or [each for each in rows if each["clear"] and each["pvalue"] is not None]


def in_one_line(found: Sequence[Mapping[str, Any]]) -> str:
    """The clearest changes, with the values in the reference and in the batches.

    Examples
    --------
    >>> row = {"column": "weight", "what": "mean weight", "pvalue": 0.01, "clear": True, "cells": ["5.1", "7.3", ""]}
    >>> in_one_line([row, {**row, "pvalue": 0.4}]), in_one_line([{**row, "clear": False, "pvalue": 0.4}])
    ('mean weight 5.1 → 7.3', 'no column clearly by itself')
    >>> label = {"label": "Ulm", "what": "city = Ulm", "pvalue": 0.002, "clear": False, "cells": ["0%", "3%", ""]}
    >>> in_one_line([{**label, "column": "city"}, {**label, "column": "city", "what": "city = Rom"}])
    'city = Ulm 0% → 3%'
    >>> in_one_line([{**row, "pvalue": 0.002, "clear": False, "label": None}])
    'distribution of weight'
    """
    return in_few_words([change_in(each) for each in clear_in(found)], MOST_CHANGES) or NOTHING


def change_in(row: Mapping[str, Any]) -> str:
    """A change, with the values in the reference and in the batches."""
    if not row["clear"] and row["label"] is None:  # the mean need not be what differs
        return _short(f"distribution of {row['column']}")
    return f"{_short(row['what'])} {' → '.join(filter(None, row['cells'][:2]))}".rstrip()


def lasts_in(monitor: Any, since: str = "", names: Sequence[str] = ()) -> str:
    """What lasts since a batch, and what changed, as a sentence; nothing if no drift does. A later alarm with
    another cause is named by itself.
    """
    lasting = monitor.lasting
    if not lasting:
        return ""
    drifts, repeats = (monitor.record.every, monitor.repeats) if monitor.record else ((), ())
    later = any(each.first > lasting.since and each.last not in repeats for each in drifts)
    drift = drifts[-1] if drifts else None
    if drift is None or not later or lasting.certain or not lasting.latest:
        return lasting.sentence(since, changed_since(monitor, lasting.since, names=names))
    changed = drift.changed if drift.changed != NOTHING else ""
    number = len(lasting.latest)
    compared = "latest batch" if number == 1 else f"latest {number} batches together"
    differs = "still differ" + "s" * (number == 1) if lasting.is_seen else "may be as before"
    return (
        f"There were alarms from {since or f'batch {lasting.since}'} on, the latest at {drift.span(names)}"
        f"{f': {changed}' if changed else ''}. The {compared} {differs} (p = {lasting.pvalue:.2g})."
    )


def changed_since(monitor: Any, since: int, until: float = math.inf, names: Sequence[str] = ()) -> str:
    """What changed at the alarms of some batches, each column as at the latest of them and, if a later drift brought
    it or changed it in another way, with the batch since which it differs; nothing if no column is named.
    """
    drifts = [drift for drift in (monitor.record.every if monitor.record else ()) if since <= drift.last <= until]
    begun: dict[Any, int] = {}
    told: dict[Any, str] = {}
    known: dict[Any, Any] = {}
    for drift in drifts:
        new = drift.surely if begun else drift.named  # others are named by chance now and then
        begun |= dict.fromkeys((key for key in new if key not in begun), drift.first if begun else since)
        told |= {key: said for key, said in drift.told.items() if key in begun}
        for key, clear in drift.clearest.items():
            if key in known and key in drift.surely and not is_known([clear], known[key]):
                begun[key], known[key] = drift.first, drift.moved
            elif key in begun:
                known.setdefault(key, drift.moved)
    parts = []
    for first in sorted(set(begun.values())):
        begin = f"since {names[first - 1] if names else f'batch {first}'} " * (first > since)
        some = [told[key] for key, at in begun.items() if at == first]
        parts.append(f"{begin}{in_few_words(some, MOST_CHANGES)}")
    return "; ".join(parts)


def latest_in(alarms: Sequence[tuple[str, str]]) -> str:
    """What changed at the latest alarm, as a sentence; nothing if no column clearly did.

    Examples
    --------
    >>> latest_in([("batch 7", "mean weight 5.1 → 7.3")]), latest_in([("batch 7", NOTHING)])
    ('At batch 7: mean weight 5.1 → 7.3.', '')
    """
    return "".join(f"At {span}: {changed}." for span, changed in alarms[-1:] if changed != NOTHING)


def ended_in(monitor: Any, alarms: Sequence[tuple[str, str]], names: Sequence[str] = ()) -> str:
    """That the latest drift has ended, and what it was; what changed at the latest alarm if that is not known, as with
    strata or a margin.
    """
    ended = monitor.ended
    return (
        latest_in(alarms)
        if ended is None
        else ended.sentence(changed_since(monitor, ended.since, ended.at, names), names)
    )


def drawn(values: Sequence[float]) -> str:
    """Values as bars from the lowest to the highest.

    Examples
    --------
    >>> drawn([0.0, 1.0, 2.0, 7.0])
    '▁▂▃█'
    """
    numbers = np.array(values[-MOST_DRAWN:])
    if not len(numbers):
        return ""
    low, high = numbers.min(), numbers.max()
    places = (numbers - low) / (high - low if high > low else 1.0) * (len(BARS) - 1)
    return "".join(BARS[round(float(place))] for place in places)


def in_lines(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as aligned lines.

    Examples
    --------
    >>> print(in_lines([["what", "p-value"], ["mean weight", "0.01"]]))
      what         p-value
      mean weight  0.01
    """
    rows = [[_short(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def alarms_in_lines(alarms: Sequence[tuple[str, str]]) -> str:
    """A line for each alarm, whole.

    Examples
    --------
    >>> print(alarms_in_lines([("batch 7", "mean weight 5.1 → 7.3")]))
      alarm    what changed
      batch 7  mean weight 5.1 → 7.3
    """
    width = max(len(span) for span, _ in (ALARMS, *alarms))
    return "\n".join(f"  {span:<{width}}  {changed}" for span, changed in (ALARMS, *alarms))


def _short(cell: str) -> str:
    """A cell shortened to one line."""
    line = " ".join(cell.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
