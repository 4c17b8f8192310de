"""The report of a reproduction: each figure of the papers beside its claims."""

from collections.abc import Sequence
from pathlib import Path

from meanmap.core.saved.files import write_whole
from meanmap.experiments.experiment import Claim, Experiment, Number, how_many_hold
from meanmap.experiments.record import Record
from meanmap.experiments.reproduce import Failure
from meanmap.plots.page import Section, render

__all__ = ["claim_row", "report", "write_report"]


def report(experiments: Sequence[Experiment], records: Sequence[Record | Failure]) -> str:
    """One HTML page: an overview, and a section for each experiment with its claims, numbers and pictures."""
    pairs = list(zip(experiments, records, strict=True))
    ran = [record for record in records if isinstance(record, Record)]
    counts = {
        word: sum(record.verdict == word for record in ran) for word in ("reproduced", "partly", "not reproduced")
    }
    silent = len(ran) - sum(counts.values())
    answer = ", ".join(f"{count} {word}" for word, count in counts.items())
    answer += f", {silent} not shown at this scale" if silent else ""
    answer += f", {len(records) - len(ran)} not run" if len(ran) < len(records) else ""
    header = ("experiment", "verdict", "claims that hold", "processor seconds", "where")
    overview = Section("Overview", answer + ".", tables=((header, *map(_row, pairs)),))
    lead = "Each figure of the papers beside what it claims. A claim holds if its number lies in the band, "
    lead += "give or take two standard errors."
    return render("meanmap: the papers, reproduced", lead, [overview, *map(_section, pairs)], _footer(ran))


def write_report(folder: Path, experiments: Sequence[Experiment], records: Sequence[Record | Failure]) -> Path:
    """Write the page into the folder of the records; returns where it is."""
    return write_whole(folder / "report.html", report(experiments, records))


def _row(pair: tuple[Experiment, Record | Failure]) -> tuple[str, ...]:
    experiment, record = pair
    if isinstance(record, Failure):
        return (experiment.id, "not run", "", "", experiment.source)
    held, shown = how_many_hold(experiment.claims, record.numbers, record.setting.scale)
    return (experiment.id, record.verdict, f"{held} of {shown}", f"{record.seconds:.0f}", experiment.source)


def _section(pair: tuple[Experiment, Record | Failure]) -> Section:
    experiment, record = pair
    title = f"{experiment.title} ({experiment.id})"
    if isinstance(record, Failure):
        return Section(title, f"Not run. {record.reason}", experiment.source)
    scale = record.setting.scale
    claims = tuple(claim_row(claim, record.numbers[claim.number], scale in claim.scales) for claim in experiment.claims)
    table = (("the paper's claim", "band", "measured", "holds"), *claims)
    claimed = {claim.number for claim in experiment.claims}
    others = [(name.replace("_", " "), str(n)) for name, n in record.numbers.items() if name not in claimed]
    return Section(
        title,
        f"{record.verdict.capitalize()}. {record.answer}",
        " ".join((f"{experiment.source}.", *record.notes)),
        f"meanmap reproduce {record.id} --scale {scale} --seed {record.setting.seed}",
        record.figures,
        tables=(table, record.table, (("other numbers", "measured"), *others)),
    )


def claim_row(claim: Claim, number: Number, shown: bool) -> tuple[str, ...]:
    """A claim in words, its band, what was measured, and whether it holds at a scale that can show it."""
    inside = claim.low <= number.value <= claim.high
    holds = "yes" if inside else "yes, within two standard errors" if claim.holds(number) else "no"
    return (claim.says, _band(claim), str(number), holds if shown else "not shown at this scale")


def _band(claim: Claim) -> str:
    if claim.low == float("-inf"):
        return f"at most {claim.high:.3g}"
    if claim.high == float("inf"):
        return f"at least {claim.low:.3g}"
    return f"{claim.low:.3g} to {claim.high:.3g}"


def _footer(records: Sequence[Record]) -> str:
    if not records:
        return ""
    versions = ", ".join(f"{name} {version}" for name, version in records[0].versions.items())
    return f"{versions}; scale {records[0].setting.scale}, seed {records[0].setting.seed}."
