"""Pages of `--report`: what was asked, what was found, how sure it is, and the command that repeats it."""

import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meanmap import __version__
from meanmap.cli.options import in_own_words
from meanmap.cli.outputs import answer, figure_of
from meanmap.core.pictures import figure_kind
from meanmap.core.points import in_columns
from meanmap.core.saved.files import write_whole
from meanmap.core.tables.table import Table
from meanmap.plots.page import Section, render
from meanmap.stats import TestResult
from meanmap.stats.results import TwoSampleResult

__all__ = ["rows", "write_drift", "write_page", "write_test"]

# A table of more columns is no longer read, and pictures are drawn of the columns that differ most.
MOST_COLUMNS, MOST_PICTURES = 30, 3
BINS, MOST_BARS = 30, 12


def write_page(
    path: Path, title: str, found: Any, rows: Sequence[Sequence[str]], notes: Sequence[str], seed: int | None
) -> None:
    """A page with the picture of what was found, a table whose first row is its header, and the notes."""
    said = (("note",), *((note,) for note in in_own_words(notes)))
    tables = (tuple(map(tuple, rows)), said)
    section = Section("What was found", "", figures=((figure_of(found.plot), title),), tables=tables)
    _write(path, title, [section], seed)


def write_drift(
    path: Path,
    monitor: Any,
    question: str,
    answer: str,
    tables: Sequence[Sequence[Sequence[str]]],
    notes: Sequence[str],
) -> None:
    """A page about batches over time, and how the columns of those that drifted differ from the reference."""
    batches, columns = (tuple(map(tuple, table)) for table in tables)
    said = (("note",), *((note,) for note in in_own_words(notes)))
    text = (
        f"An alarm is raised where the evidence exceeds {monitor.limit:.2f}. Without drift there is one false alarm in "
        f"{monitor.run_length:g} batches on average."
    )
    picture = (figure_of(monitor.plot), "The evidence of drift after each batch, with the alarms.")
    sections = [
        Section("The answer", answer, text, figures=(picture,), tables=(said,)),
        *(
            []
            if len(columns) < 2
            else [
                Section(
                    "Which columns differ",
                    f"{columns[0][2]} compared with {columns[0][1]}.",
                    "Means and shares of rows, the smallest p-value first. The intervals of 95 % hold together, "
                    "p-values are for whole columns, corrected for their number. Bars show all batches in order.",
                    tables=(columns,),
                )
            ]
        ),
        Section("All batches", "", tables=(batches,)),
    ]
    _write(path, question, sections, monitor.seed)


def write_test(
    path: Path,
    result: TestResult,
    question: str,
    notes: Sequence[str],
    level: float,
    samples: Mapping[str, Any],
    effect: Any = None,
) -> None:
    """A page about a test; `samples` are those compared, by the names under which they are shown."""
    settings = (("what", "value"), *in_own_words(result.lines()), *(("note", note) for note in in_own_words(notes)))
    picture = (figure_of(result.plot), "The statistic, and its distribution under the null hypothesis.")
    method = f"{result.method[:1].upper()}{result.method[1:]}."
    sections = [Section("The answer", answer(result, question, level), method, figures=(picture,), tables=(settings,))]
    if effect is not None:
        said = (("what", "value"), *effect.lines(), *(("warning", text) for text in in_own_words(effect.warnings)))
        large = f"{effect.method[:1].upper()}{effect.method[1:]}, with intervals of {100 * effect.level:g} %."
        sections.append(Section("Effect size", large, tables=(said,)))
    if isinstance(result, TwoSampleResult) and getattr(result.witness, "points", None) is not None:
        sections += _differences(result, level, samples)
    _write(path, question, sections, result.seed)


def rows(said: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Facts about several things as a table: a column for each fact, empty where one does not have it."""
    names = list(dict.fromkeys(name for each in said for name in each))
    return [names, *([_cell(each.get(name, "")) for name in names] for each in said)]


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _write(path: Path, title: str, sections: list[Section], seed: int | None) -> None:
    arguments = sys.argv[1:]
    repeated = arguments if "--seed" in arguments or seed is None else [*arguments, "--seed", str(seed)]
    command = shlex.join(["meanmap", *repeated])
    sections = [*sections, Section("To repeat it", "The same command, with the seed used.", code=command)]
    footer = f"meanmap {__version__}, Python {platform.python_version()}"
    write_whole(path, render(title, "Made with meanmap.", sections, footer))


def _differences(result: TwoSampleResult, level: float, samples: Mapping[str, Any]) -> list[Section]:
    """Where two samples differ, shown only where the test says that they do."""
    if not result.reject(level) or len(result.columns) > MOST_COLUMNS:
        return []
    sections = []
    first, second = samples
    if 1 <= len(result.columns) <= 2 and not result.widths and in_columns(result.witness.points):
        text = f"Above zero {first} is denser, below zero {second} is."
        picture = (figure_of(lambda: result.plot_witness(names=(first, second))), "The witness function.")
        sections.append(
            Section("Where they differ", "The witness function of the two samples.", text, figures=(picture,))
        )
    shares = list(result.driving_columns(rng=result.seed).items())
    if len(shares) > 1:
        text = (
            "The share of the difference that is lost when the values of a column are shuffled over both samples. "
            "A column with a share near zero does not contribute."
        )
        rows = (("column", "share"), *((name, f"{share:.2f}") for name, share in shares))
        if result.null.kind != "exchanges":
            pvalues = result.column_pvalues(rng=result.seed)
            rows = (("column", "share", "p-value"), *((*row, f"{pvalues[row[0]]:.3g}") for row in rows[1:]))
            text += " The p-values are for single columns, corrected for multiple testing."
        sections.append(Section("Which columns differ", f"{shares[0][0]} most of all.", text, tables=(rows,)))
    pictures = [
        (_column(name, samples), f"{name} in both samples.")
        for name, share in shares[:MOST_PICTURES]
        if share > 0 and name not in result.widths and all(name in table.names for table in samples.values())
    ]
    return [*sections, Section("The columns that differ most", "", figures=tuple(pictures))] if pictures else sections


def _column(name: str, samples: Mapping[str, Table]) -> Any:
    """One column of each sample: histograms of numbers, bars of labels."""
    figure = figure_kind()(figsize=(5.5, 3), layout="constrained")
    ax = figure.subplots()
    columns = {sample: np.asarray(table.columns[name]) for sample, table in samples.items()}
    if all(table.is_real(name) for table in samples.values()):
        edges = np.histogram_bin_edges(np.concatenate([*map(np.ravel, columns.values())]), BINS)
        for sample, values in columns.items():
            ax.hist(np.ravel(values), edges.tolist(), density=True, alpha=0.5, label=sample)
        ax.set_ylabel("density")
    else:
        labels, counts = np.unique(np.concatenate([*columns.values()]), return_counts=True)
        shown = np.sort(labels[np.argsort(-counts, kind="stable")[:MOST_BARS]])
        width = 0.8 / len(columns)
        for i, (sample, values) in enumerate(columns.items()):
            shares = [np.mean(values == label) for label in shown]
            ax.bar(np.arange(len(shown)) + i * width, shares, width, align="edge", label=sample)
        ax.set_xticks(np.arange(len(shown)) + 0.4, [str(label) for label in shown])
        ax.set_ylabel("share of rows")
    ax.set_xlabel(name)
    ax.legend(fontsize="small")
    return figure
