"""The report of a reproduction: each figure of the papers with its claims."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from meanmap.core.saved.files import write_whole
from meanmap.plots.page import Section, render
from meanmap_papers.experiment import Claim, Experiment, Number, Reading, Scale, Verdict, how_judged
from meanmap_papers.number import written
from meanmap_papers.record import Record
from meanmap_papers.reproduce import Failure

__all__ = ["claim_tables", "counted", "measured", "report", "write_report"]

NOT_SHOWN = "not shown at this scale"
# With fewer runs Student's t, which judges, and two standard errors differ by a tenth or more.
FEW_RUNS = 16
Table = tuple[tuple[str, ...], ...]


def report(experiments: Sequence[Experiment], records: Sequence[Record | Failure]) -> str:
    """One HTML page: an overview, and a section for each experiment with its claims, numbers and pictures."""
    pairs = list(zip(experiments, records, strict=True))
    ran = [record for record in records if isinstance(record, Record)]
    words: tuple[Verdict, ...] = get_args(Verdict)
    counts = {word: sum(record.verdict == word for record in ran) for word in words}
    answer = ", ".join(f"{count} {word}" for word, count in counts.items() if count or word in words[:3])
    answer += f", {len(records) - len(ran)} not run" if len(ran) < len(records) else ""
    header = ("experiment", "verdict", "claims of the paper", "processor seconds", "where")
    answer += f"; judged at scale {ran[0].setting.scale}" if ran else ""
    overview = Section("Overview", answer + ".", tables=((header, *map(_row, pairs)),))
    lead = (
        "Each figure of the papers, compared with what the paper claims. A claim holds (yes) if the whole interval "
        "about what was measured lies in its band, is refuted (no) if none of it does, and is not settled otherwise. "
        "The interval is two standard errors either side. With few runs it is wider, by Student's t: "
        f"{_reaches(3)} standard errors for 3 runs, {_reaches(5)} for 5 and {_reaches(10)} for 10, so that 4.6% stay "
        "outside. Claims of ours do not enter a verdict."
    )
    return render("meanmap: the papers, reproduced", lead, [overview, *map(_section, pairs)], _footer(ran))


def _reaches(runs: int) -> str:
    return f"{Number(0.0, 1.0, runs).reach:.1f}"


def write_report(folder: Path, experiments: Sequence[Experiment], records: Sequence[Record | Failure]) -> Path:
    """Write the page into the folder of the records; returns where it is."""
    return write_whole(folder / "report.html", report(experiments, records))


def _row(pair: tuple[Experiment, Record | Failure]) -> tuple[str, ...]:
    experiment, record = pair
    if isinstance(record, Failure):
        return (experiment.id, "not run", "", "", experiment.source)
    words = how_judged(experiment.claims, record.numbers, record.setting.scale)
    return (experiment.id, experiment.said(record.verdict), counted(words), f"{record.seconds:.0f}", experiment.source)


def _section(pair: tuple[Experiment, Record | Failure]) -> Section:
    experiment, record = pair
    title = f"{experiment.title} ({experiment.id})"
    if isinstance(record, Failure):
        return Section(title, f"Not run. {record.reason}", experiment.source)
    scale = record.setting.scale
    claimed = {name for claim in experiment.claims for name in claim.names}
    others = [(name.replace("_", " "), str(n)) for name, n in record.numbers.items() if name not in claimed]
    return Section(
        title,
        f"{experiment.said(record.verdict.capitalize())} (scale {scale}). {record.answer}",
        " ".join((f"{experiment.source}.", *record.notes)),
        f"meanmap reproduce {record.id} --scale {scale} --seed {record.setting.seed}",
        record.figures,
        tables=(
            *claim_tables(experiment.claims, record.numbers, scale),
            record.table,
            (("other numbers", "measured"), *others),
        ),
    )


def claim_tables(claims: Sequence[Claim], numbers: Mapping[str, Number], scale: Scale) -> list[Table]:
    """The claims of the paper, and apart from them those of ours, each with its band, number and judgement."""
    found: list[Table] = []
    for title, ours in (("the paper's claim", False), ("our claim, which does not enter the verdict", True)):
        rows = [_claim_row(claim, numbers, scale) for claim in claims if claim.ours == ours]
        found += [((title, "band", "measured", "holds"), *rows)] if rows else []
    return found


def _claim_row(claim: Claim, numbers: Mapping[str, Number], scale: Scale) -> tuple[str, ...]:
    """A claim in words, its band, what was measured, and whether it holds at a scale that can show it."""
    found = claim.of(numbers)
    word = claim.judged(*found) if scale in claim.scales else NOT_SHOWN
    return (claim.says, _band(claim), "; ".join(measured(claim, found)), word)


def measured(claim: Claim, found: Sequence[Number], *, named: bool = False) -> list[str]:
    """The numbers of a claim, with their names where there are several or where these are asked for. What is said of
    the runs of several numbers is said of the last alone where it is the same, and a number of several parts once.
    """
    once = dict(zip(claim.names, found, strict=True))
    found = list(once.values())
    each = [_with_runs(number, claim.over) for number in found]
    if len(each) == 1 and not named:
        return each
    runs = {number.runs for number in found}
    alike = len(each) > 1 and len(runs) == 1 and claim.over == "runs" and each[0] != str(found[0])
    numbers = list(map(str, found)) if alike else each
    said = [f"{number} ({name.replace('_', ' ')})" for name, number in zip(once, numbers, strict=True)]
    return [*said[:-1], f"{said[-1]}, each from {runs.pop()} runs"] if alike else said


def _with_runs(number: Number, over: str = "runs") -> str:
    """A number, and of how many runs its standard error is where these are few.

    Examples
    --------
    >>> _with_runs(Number(7.2, 0.78, 5)), _with_runs(Number(7.2, 0.78, 100))
    ('7.20 ± 0.78 from 5 runs', '7.20 ± 0.78')
    >>> _with_runs(Number(2.4, 0.85, 8), "problems of one run")
    '2.4 from 8 problems of one run, whose spread over √8 is 0.85'
    >>> _with_runs(Number(0.0, 0.85), "problems of one run")  # the error of a share of rows is none over runs
    '0 over problems of one run'
    """
    if over != "runs" and number.runs is None:
        return f"{written(number.value)} over {over}"
    if over != "runs" and number.error is not None and number.runs is not None:
        spread = f"whose spread over √{number.runs} is {written(number.error, 2)}"
        return f"{written(number.value)} from {number.runs} {over}, {spread}"
    return f"{number} from {number.runs} runs" if number.runs is not None and number.runs < FEW_RUNS else str(number)


def counted(words: Counter[str]) -> str:
    """The number of claims judged in each way, such as "2 yes, 1 not settled"."""
    return ", ".join(f"{words[word]} {word}" for word in ("yes", "no", "not settled") if words[word])


def _band(claim: Claim) -> str:
    """The band of a claim, or those of its readings."""
    readings = [reading for part in claim.parts for reading in part]
    bands = {_ends(reading): reading.name for reading in readings}
    if len(bands) == 1:
        return next(iter(bands))
    if len({reading.name for reading in readings}) < len(readings):  # one number, of which more or less is asked
        return ", or ".join(bands)
    return "; ".join(f"{_ends(reading)} ({reading.name.replace('_', ' ')})" for reading in readings)


def _ends(reading: Reading) -> str:
    if reading.low == float("-inf"):
        return f"at most {written(reading.high)}"
    if reading.high == float("inf"):
        return f"at least {written(reading.low)}"
    return f"{written(reading.low)} to {written(reading.high)}"


def _footer(records: Sequence[Record]) -> str:
    if not records:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in records[0].versions.items())
    return f"{versions}; scale {records[0].setting.scale}, seed {records[0].setting.seed}."
