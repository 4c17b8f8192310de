"""Pages of `--report`: the question, the result, its uncertainty, and the command that repeats it."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from meanmap.cli.options import in_own_words
from meanmap.cli.outputs import answer, figure_of
from meanmap.core.notes import in_few, note_table
from meanmap.core.points import in_columns
from meanmap.plots.facts import Page, Section
from meanmap.plots.page import made_by
from meanmap.plots.page import write_page as write_page_of
from meanmap.plots.paged import Paged
from meanmap.stats import TestResult
from meanmap.stats.results import TwoSampleResult
from meanmap.stats.samples.drift_page import ABOUT, monitor_page
from meanmap.stats.samples.drift_words import ALARMS, rule_of
from meanmap.stats.samples.k_sample_result import ColumnsResult

__all__ = ["rows", "write_drift", "write_page", "write_test"]

# The largest number of rows shown in a table.
MOST_COLUMNS = 30


def write_page(
    path: Path, title: str, found: Any, rows: Sequence[Sequence[str]], notes: Sequence[str], seed: int | None
) -> None:
    """A page with the charts of a result, a table whose first row is its header, and the notes."""
    tables = (tuple(map(tuple, rows)), _noted(notes))
    if isinstance(found, Paged):
        page = found._as_page()
        charts = tuple(chart for section in page.sections for chart in section.charts)
        shown, facts = Section("Result", "", page.sections[0].text, charts=charts, tables=tables), page.facts
    else:
        shown, facts = Section("Result", "", figures=((figure_of(found.plot), title),), tables=tables), {}
    _write(path, title, [shown], seed, facts)


def write_drift(
    path: Path,
    monitor: Any,
    question: str,
    answer: str,
    batches: Sequence[Sequence[str]],
    alarms: Sequence[tuple[str, ...]],
    compared: Sequence[Sequence[Sequence[str]]],
    notes: Sequence[str],
) -> None:
    """A page about batches over time, and how the columns of those that drifted differ from the reference."""
    text = rule_of(monitor)
    page = monitor_page(monitor, False, [row[0] for row in batches[1:]])
    sections = [Section("The answer", answer, text, charts=page.sections[0].charts)]
    if alarms:
        sections.append(Section("All alarms", "", tables=((ALARMS, *alarms),)))
    for head, *rows in compared:
        title = "Which columns differ" if len(compared) == 1 else f"Which columns differ: {head[3]}"
        table = tuple(map(tuple, (head, *rows)))
        sections.append(Section(title, f"{head[3]} compared with {head[2]}.", ABOUT, tables=(table,)))
    sections += [
        Section("All batches", "", tables=(tuple(map(tuple, batches)),)),
        Section("Notes", "", tables=(_noted(notes),)),
    ]
    _write(path, question, sections, monitor.seed, page.facts)


def write_test(
    path: Path,
    result: TestResult,
    question: str,
    notes: Sequence[str],
    level: float,
    samples: Mapping[str, Any],
    effect: Any = None,
) -> None:
    """A page about a test; `samples` are the compared samples, by displayed name."""
    first, *others = result._as_page().sections
    said, *tables = first.tables
    settings = (*in_own_words(said), *(("note", note) for note in in_few(in_own_words(notes))))
    text = f"{result.method[:1].upper()}{result.method[1:]}. {first.text}"
    shown = answer(result, question, level)
    if isinstance(result, ColumnsResult):
        shown = " ".join((shown, *result.differences.sentences()))
    where: list[Section] = []
    if isinstance(result, TwoSampleResult) and getattr(result.witness, "points", None) is not None:
        where = _differences(result, level, samples)
        tables = result.differences.tables() if where else tables  # p-values of columns have their own section
    sections = [Section("The answer", shown, text, charts=first.charts, tables=(settings, *tables))]
    if effect is not None:
        warnings = (("warning", text) for text in in_own_words(effect.warnings))
        large = f"{effect.method[:1].upper()}{effect.method[1:]}, with {100 * effect.confidence:g}% intervals."
        columns = () if getattr(result, "differences", ()) else effect.differences.tables()
        sections.append(
            Section("Effect size", large, tables=((("what", "value"), *effect.together(), *warnings), *columns))
        )
    _write(path, question, [*sections, *where, *others], result.seed, result.to_dict())


def rows(said: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Facts about several items as a table: a column for each fact, empty where an item lacks it."""
    names = list(dict.fromkeys(name for each in said for name in each))
    return [names, *([_cell(each.get(name, "")) for name in names] for each in said)]


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _noted(notes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return note_table(in_own_words(notes))


def _write(
    path: Path, title: str, sections: Sequence[Section], seed: int | None, facts: Mapping[str, Any] | None = None
) -> None:
    arguments = sys.argv[1:]
    repeated = arguments if "--seed" in arguments or seed is None else [*arguments, "--seed", str(seed)]
    command = shlex.join(["meanmap", *repeated])
    sections = [*sections, Section("To repeat it", "The same command, with the seed used.", code=command)]
    write_page_of(path, Page(title, "Made with meanmap.", tuple(sections), facts or {}), made_by())


def _differences(result: TwoSampleResult, level: float, samples: Mapping[str, Any]) -> list[Section]:
    """Where two samples differ; shown only if the test rejects."""
    if not result.reject(level) or len(result.columns) > MOST_COLUMNS:
        return []
    sections = []
    first, second = samples
    drawn = 1 <= len(result.columns) <= 2 and not result.widths and in_columns(result.witness.points)
    if drawn and find_spec("matplotlib"):
        text = f"Above zero {first} is denser, below zero {second} is."
        picture = (figure_of(lambda: result.plot_witness(names=(first, second))), "The witness function.")
        sections.append(
            Section("Where they differ", "The witness function of the two samples.", text, figures=(picture,))
        )
    pvalues = result.column_pvalues(rng=result.seed)
    if len(pvalues) > 1:
        sections.append(_by_column(result, pvalues, level))
    return sections


def _by_column(result: TwoSampleResult, pvalues: Mapping[str, float], level: float) -> Section:
    """The p-value of each column, and its share of the difference, which is known for independent rows alone."""
    shares = result.driving_columns(rng=result.seed) if result.design is None else {}
    text, by = "", "ranks" if result.design is not None else "ranks and relations to other columns"
    if any(shares.values()):
        text = (
            "The share of the difference that is lost when the values of a column are shuffled over both samples. "
            "A column with a share near zero does not contribute. "
        )
        names = sorted(shares, key=lambda name: (pvalues[name], -shares[name]))
        rows = (("column", "share", "p-value"), *((n, f"{shares[n]:.2f}", f"{pvalues[n]:.3g}") for n in names))
    else:
        names = sorted(pvalues, key=lambda name: pvalues[name])
        rows = (("column", "p-value"), *((name, f"{pvalues[name]:.3g}") for name in names))
    text += (
        f"The p-values are for single columns, by {by}, corrected for multiple testing; the intervals above are "
        "of means and shares. If only one of the two shows a difference in a column, the evidence is weak."
    )
    said = f"{names[0]} most of all." if pvalues[names[0]] <= level else "No single column differs clearly."
    return Section("Which columns differ", said, text, tables=(rows,))
