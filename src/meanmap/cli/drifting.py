"""`meanmap drift`: do batches, one after another, still come from the distribution of a reference?"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meanmap.cli.bundles import Drawn, Read, with_bundles
from meanmap.cli.drift_state import Kept
from meanmap.cli.drift_watched import Watched, complete
from meanmap.cli.options import Seed, in_own_words, names_in, refused, say, to_be_written
from meanmap.core.errors import EmptyError, InputError, KindError
from meanmap.core.language import in_few_words
from meanmap.core.notes import note_lines
from meanmap.stats.samples.drift_words import (
    AGAIN,
    alarms_in_lines,
    alike_once,
    in_lines,
    latest_in,
    rule_of,
    table_of,
)

if TYPE_CHECKING:
    from meanmap.cli.inputs import Reading

__all__ = ["drift"]

# This many batches and columns (for several alarms fewer) are listed in a terminal.
MOST_BATCHES, MOST_COLUMNS, FEWER_COLUMNS = 30, 15, 5
# Evidence below the limit is reported if the smallest p-value, corrected for the number of batches, is at most this.
LEVEL = 0.05
# Evidence of a batch other than that of all values, and the heading of its column.
OTHERS = {"missing evidence": "missing values", "column evidence": "single columns"}
# Batches by name, and a row for each of their columns.
Compared = list[tuple[str, list[dict[str, Any]]]]


@with_bundles
def drift(
    reference: Annotated[str, typer.Argument(help="File with at least 40 rows of the normal state.")],
    batches: Annotated[list[str], typer.Argument(help="Files in order, one per batch: names, folder or 'pattern'.")],
    columns: Annotated[
        str | None, typer.Option(help="Columns to watch, a,b,...; all but times and row numbers.")
    ] = None,
    run_length: Annotated[float, typer.Option(help="Mean number of batches between false alarms.")] = 1000,
    margin: Annotated[
        float | None, typer.Option(help="Tolerate a drift up to a shift of this many standard deviations.")
    ] = None,
    within: Annotated[str, typer.Option(help="Columns of strata, a,b,...: rows are compared only within them.")] = "",
    state: Annotated[
        Path | None,
        typer.Option(
            callback=to_be_written, help="Continue from this file and update it; created if it does not exist."
        ),
    ] = None,
    seed: Seed = None,
    *,
    read: Read,
    shown: Drawn,
) -> None:
    """Watch batches for drift away from a reference; an alarm ends in exit code 1."""
    import meanmap as mm
    from meanmap.core.tables.apart import columns_named

    reading = read.reading()
    paths = _files(batches)
    data, chosen, known = _reference(reading, reference, names_in(columns), names_in(within))
    watched = Watched(Path(reference).name, names_in(within))
    _of_files(reading, watched, reference, 0)
    policy = "drop" if reading.policy == "drop" else "raise"
    asked = {"within": names_in(within), "run_length": run_length, "margin": margin, "columns": chosen}
    asked |= {"missing": reading.missing, "kinds": str(reading.kinds)}
    before = None if state is None else Kept.of(state, reference, asked)
    copied: dict[str, str] = {}
    if state is None or before is None:
        settings = {"run_length": run_length, "within": names_in(within) or None, "margin": margin, "missing": policy}
        with columns_named(chosen):
            monitor = mm.DriftMonitor.of(data, kinds=reading.kinds, rng=seed, **settings)
        reading.notes += monitor.notes
    else:
        from meanmap.core.tables.schema import admitted

        monitor = before.monitor
        reading.notes += (*admitted((data,), ("reference",), policy, told=reading.kinds)[1], *monitor.standing)
        paths, copied = before.unseen(state, paths, reading.notes)
    watched.begin(before)
    unread: dict[str, Exception] = {}
    judged = [""] * watched.known  # the files of this run by batch
    for path in paths:
        name, told = Path(path).name, len(reading.notes)
        try:
            with _named(name):
                batch, added = _rows(reading, path, chosen, known)
                _of_files(reading, watched, path, told)
                after = monitor.step(batch)
        except (
            InputError,
            KindError,
        ) as problem:  # of this batch only: the others are judged, and the exit code is not 0
            del reading.notes[told:]
            unread[path] = problem
            watched.unread[name] = str(problem)
            continue
        if same := _copied(after, path, judged, watched.names, copied.get(path, ""), batch):
            # Copies point to an error of the program that writes the files.
            watched.unread[name] = f"{same}: a copy has no new rows."
            continue
        judged.append(path)
        monitor = after
        watched.add(name, batch, monitor)
        for note in added:
            watched.note(note, name)
    if unread and not watched.batches:
        raise next(iter(unread.values()))
    columns_found = watched.compared(monitor)
    question = f"Do the batches still come from the distribution of {watched.name}?"
    if shown.plot is not None or shown.report is not None:
        _draw(shown, monitor, question, watched, columns_found, reading)
    if shown.json:
        _tell_json(question, monitor, watched, columns_found, reading)
    else:
        _tell(question, monitor, watched, columns_found, reading)
    if state is not None:  # last: an alarm that no output reported is reported by the next run
        settled = [path for path in paths if path not in unread]
        Kept(monitor, watched.batches, asked).write(state, reference, before, settled)
    if any(each["alarm"] for each in watched.new) or (monitor.lasting and monitor.lasting.is_seen):
        raise typer.Exit(1)
    if watched.unread:
        raise typer.Exit(2)


def _copied(
    monitor: Any, path: str, paths: Sequence[str], names: Sequence[str], same: str, batch: dict[str, Any]
) -> str:
    """The note on a file with all rows of an earlier one of this run, or with the content of `same`."""
    from meanmap.stats.samples.drift_copies import LEAST_ROWS

    copy = None if monitor.record is None else monitor.record.copy
    earlier = same if len(complete(batch)) >= LEAST_ROWS else ""
    if not earlier and copy is not None and copy.whole:
        at = int(copy.source) - 1
        earlier = paths[at] or names[at]
    if not earlier:
        return ""
    alike = Path(path).name == Path(earlier).name
    name, other = (path, earlier) if alike else (Path(path).name, Path(earlier).name)
    return f"{name} holds the same rows as {other}"


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add the name of the file to an error."""
    try:
        yield
    except (InputError, KindError) as problem:
        raise type(problem)(f"{name}: {problem}") if name not in str(problem) else problem from None


def _of_files(reading: "Reading", watched: Watched, path: str, told: int) -> None:
    """Notes about a file, from index `told` on, as notes on a batch; notes shared by many files are combined."""
    for note in reading.notes[told:]:
        said = note if path == "-" else re.sub(rf"(?<!\w){re.escape(path)}(?!\w)", "the file", note)
        if said != note:
            watched.note(said, Path(path).name)
            reading.notes.remove(note)


def _rows(
    reading: "Reading", path: str, columns: list[str], known: Collection[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The rows of a batch, at least two, and a note on columns that are not among the known."""
    from meanmap.stats.samples.drift_notes import added_columns

    batch = reading.with_gaps(path, columns)
    if len(next(iter(batch.values()))) < 2:
        raise EmptyError("the file has 1 row; expected at least 2.")
    return batch, added_columns(reading.header, known)


def _files(batches: Sequence[str]) -> list[str]:
    """The files of batches in order: as given, or sorted by name for a folder or a pattern."""
    from meanmap.core.pieces.files import matching, natural

    found: list[Path] = []
    for each in batches:
        path = Path(each)
        if path.is_dir():
            inside = [file for file in path.iterdir() if not file.is_dir() and not file.name.startswith(".")]
            if not inside:
                raise refused(f"the folder {each} holds no files; expected one file per batch")
            found += sorted(inside, key=natural)
        elif not path.exists() and has_magic(each):
            found += matching(path)
        else:
            found.append(path)
    return list(map(str, found))


def _reference(
    reading: "Reading", path: str, columns: list[str], within: list[str]
) -> tuple[dict[str, Any], list[str], list[str]]:
    """The reference, the columns to watch, and all that its file has; clocks, row numbers and ids are left out."""
    from meanmap.cli.inputs import observed
    from meanmap.core.tables.apart import left_out_of_table, not_watched
    from meanmap.core.tables.missing import gaps_in
    from meanmap.stats.samples.drift_gaps import most_missing

    asked = [*columns, *(name for name in within if name not in columns)] if columns else None
    found, there = reading.with_gaps(path, asked), reading.header
    apart = {} if columns else not_watched(observed(found), [*within, *reading.kinds])
    kept = [name for name in found if name not in apart]
    if not len(complete(watched := {name: found[name] for name in kept})):
        lack = most_missing(gaps_in(watched, path, "drop"))
        raise refused(
            f"{path} has no row without a missing value: leave columns out with --exclude. {lack} lack values"
        )
    if not [name for name in kept if name not in within]:
        raise refused(f"{path} holds only times, row numbers and ids; name the columns to watch with --columns")
    reading.notes += [left_out_of_table(name, *why) for name, why in apart.items()]
    return {name: found[name] for name in kept}, kept, there


def _answer(question: str, monitor: Any, watched: Watched) -> str:
    """The answer in a sentence, and another one on batches that could not be read."""
    found = _judged(question, monitor, watched)
    if not watched.unread:
        return found
    names = list(watched.unread)
    return f"{found} Not judged: {in_few_words(names, 5)}, see below."


def _judged(question: str, monitor: Any, watched: Watched) -> str:
    from meanmap.stats.samples.drift_page import with_repeats

    named = [each["batch"] for each in watched.new if each["alarm"]]
    evident = [each for each in watched.new if not each["alarm"] and len(watched.new) * _pvalue(each) <= LEVEL]
    lasts, ended = watched.lasts(monitor), watched.ended(monitor)
    if not watched.new:
        return f"{question} There is no new batch after {watched.batches[-1]['batch']}.{lasts}"
    if named:
        found = in_few_words([f"{each['batch']} (p = {_pvalue(each):.2g})" for each in evident], 5)
        besides = f" Small p-values, but no alarm, at {found}." if evident else ""
        alarms = watched.each_alarm(monitor)
        if not (monitor.lasting or ended) or (monitor.lasting and not monitor.lasting.count):
            lasts = f" {latest_in(alarms)}".rstrip()
        return f"{question} No: alarm at {with_repeats(named, watched.repeats(monitor))}.{besides}{ended}{lasts}"
    seen = f"{len(watched.new)} batch{'es' * (len(watched.new) != 1)}"
    if monitor.lasting or ended:
        return f"{question} No alarm in {seen}.{ended}{lasts}"
    most = max(watched.new, key=_evidence)
    if _evidence(most) > monitor.limit / 2 or evident:
        found = f"{_evidence(most):.2f}, of {monitor.limit:.2f} for an alarm (p = {_pvalue(most):.3g})"
        return f"{question} No alarm in {seen} (exit code 0). Closest to one is {most['batch']}, with evidence {found}."
    return f"{question} No alarm in {seen}."


def _evidence(batch: dict[str, Any]) -> float:
    """The evidence after a batch, of values, single columns or missing values."""
    return max(batch["evidence"], *(batch.get(of, 0.0) for of in OTHERS))


def _pvalue(batch: dict[str, Any]) -> float:
    """The p-value of a batch, of values or of missing values."""
    return min(batch["pvalue"], batch.get("missing pvalue", 1.0))


def _listed(watched: Watched, monitor: Any) -> list[list[str]]:
    """A row for each batch, with the evidence of missing values and of single columns and the rows that were left out,
    if any.
    """
    others = {of: said for of, said in OTHERS.items() if any(each.get(of) for each in watched.batches)}
    left = any(each["left out"] for each in watched.batches)
    again = {at - 1 for at in monitor.repeats}
    rows = [
        [
            *(each["batch"], str(each["rows"])),
            *([str(each["left out"])] if left else []),
            *(f"{each['pvalue']:.3g}", f"{each['evidence']:.2f}"),
            *(f"{each.get(of, 0.0):.2f}" for of in others),
            AGAIN if at in again else "alarm" * each["alarm"],
        ]
        for at, each in enumerate(watched.batches)
    ]
    counts = ["rows", *(["left out"] if left else [])]
    return [["batch", *counts, "p-value", "evidence", *others.values(), ""], *rows]


def _notes(watched: Watched, reading: "Reading", monitor: Any) -> list[str]:
    """The notes on all batches, without repetition."""
    from meanmap.stats.samples.drift_record import MOST_EXPLAINED, MOST_ROWS

    told = [
        f"{in_few_words(names, 1)}{', with other numbers' * differ}: {note}"
        for note, names, differ in watched.notes.values()
    ]
    if watched.within:
        told.append("with strata, columns are not compared one by one: compare the rows of one stratum")
    elif monitor.record is not None and len(monitor.record.reference) >= MOST_ROWS:
        told.append(
            f"tables compare {MOST_ROWS} rows of the reference and of a batch, drawn at random; bars over all batches, "
            "and counts of single columns, which may raise an alarm by themselves, are of all rows"
        )
    alarms = sum(each["alarm"] for each in watched.new)
    if watched.lacks_tables(monitor):
        earlier = any(each["alarm"] for each in watched.batches[: watched.known])
        first = "" if earlier else "the first and "
        other = "for another one run meanmap test two-sample with the reference and its file"
        told.append(
            f"tables of all columns are kept for {first}the last {MOST_EXPLAINED - 1} of {alarms} alarms; {other}"
        )
    told += [f"{problem} This batch was not judged" for problem in watched.unread.values()]
    told += [watched.left_out] if watched.left_out else []
    return [*dict.fromkeys([*reading.notes, *told]), f"seed {monitor.seed}"]


def _tell(question: str, monitor: Any, watched: Watched, compared: Compared, reading: "Reading") -> None:
    say(f"{_answer(question, monitor, watched)}\n")
    header, *rows = _listed(watched, monitor)
    shown = [row for k, row in enumerate(rows) if row[-1] or k >= len(rows) - MOST_BATCHES][-2 * MOST_BATCHES :]
    say(in_lines([header, *shown]))
    left = f" {len(rows) - len(shown)} batches without an alarm are not shown." * (len(rows) > len(shown))
    say(f"  {rule_of(monitor)}{left}\n")
    if watched.lacks_tables(monitor):
        say(f"{alarms_in_lines(watched.each_alarm(monitor))}\n")
    most = MOST_COLUMNS if len(compared) == 1 else FEWER_COLUMNS
    for span, found, again in alike_once(compared):
        if found:
            say(in_lines(table_of(found[:most], watched.name, span)))
        if len(found) > most:
            say(f"  and {len(found) - most} more: --json and --report show all")
        if again:
            say(again)
        say("")
    *notes, seed = _notes(watched, reading, monitor)
    for line in (*note_lines(notes), f"  {seed}"):
        say(line)


def _tell_json(question: str, monitor: Any, watched: Watched, compared: Compared, reading: "Reading") -> None:
    from meanmap import __version__
    from meanmap.cli import outputs
    from meanmap.stats.samples.drift_page import alarms_in_facts, facts_of, plain_rows

    # The dictionary of the monitor, with batches by name.
    said = {"question": question, **facts_of(monitor), "answer": _answer("", monitor, watched).strip()}
    said |= {"alarms": [each["batch"] for each in watched.new if each["alarm"]], "repeats": watched.repeats(monitor)}
    if monitor.lasting:
        said["lasting"] |= {"since": watched.names[monitor.lasting.since - 1]}
    spans = [{"batches": span, "columns": plain_rows(found)} for span, found in compared]
    said |= {"batches": watched.batches, "compared": spans, "not judged": watched.unread}
    said |= {"each alarm": alarms_in_facts(watched.each_alarm(monitor))}
    notes = in_own_words(_notes(watched, reading, monitor)[:-1])
    outputs.tell_json({**said, "notes": notes, "meanmap": __version__})


def _draw(shown: Drawn, monitor: Any, question: str, watched: Watched, compared: Compared, reading: "Reading") -> None:
    from meanmap.cli import outputs, pages

    if shown.plot is not None:
        outputs.draw(monitor, shown.plot)
    if shown.report is not None:
        columns = [table_of(found, watched.name, span) for span, found in compared if found]
        told, notes = _answer(question, monitor, watched), _notes(watched, reading, monitor)
        alarms = watched.each_alarm(monitor)
        pages.write_drift(shown.report, monitor, question, told, _listed(watched, monitor), alarms, columns, notes)
