"""Groups of options that several commands share: how a file is read, and how the answer is printed."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from meanmap.cli.options import (
    AsJson,
    DecimalMark,
    Delimiter,
    Exclude,
    FailOnReject,
    Kinds,
    LabelColumns,
    Level,
    Missing,
    MissingInPairs,
    Plot,
    Report,
    Thousands,
    WithDraws,
    kinds_in,
    names_in,
)

if TYPE_CHECKING:
    from meanmap.cli.inputs import Reading
    from meanmap.stats.result import TestResult

__all__ = ["Answer", "Cells", "Drawn", "InPairs", "Read", "with_bundles"]


def with_bundles(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose arguments may be groups of options: each field of a group becomes an option."""
    hints = get_type_hints(command, include_extras=True)
    plain, bundles = {}, {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if is_dataclass(kind):
            bundles[name] = [each.name for each in fields(kind)]
            told = get_type_hints(kind, include_extras=True)
            plain |= {each.name: (told[each.name], each.default) for each in fields(kind)}
        else:
            plain[name] = (kind, parameter.default)

    @functools.wraps(command)
    def call(**values: object) -> None:
        made = {name: hints[name](**{each: values.pop(each) for each in own}) for name, own in bundles.items()}
        command(**values, **made)

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in plain.items()
    ]
    call.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    call.__annotations__ = {name: kind for name, (kind, _) in plain.items()}
    return call


@dataclass(frozen=True)
class Cells:
    """Declarations about the columns and cells of a file."""

    labels: LabelColumns = ""
    kinds: Kinds = ""
    delimiter: Delimiter = None
    decimal: DecimalMark = None
    thousands: Thousands = None
    exclude: Exclude = ""

    def begun(self, missing: str, *, by_pairs: bool = False) -> "Reading":
        """The reader with these settings."""
        from meanmap.cli.inputs import Reading

        labels, kinds, exclude = names_in(self.labels), kinds_in(self.kinds), names_in(self.exclude)
        marks: dict[str, Any] = {"decimal": self.decimal, "thousands": self.thousands}
        return Reading(self.delimiter, labels, missing, kinds, by_pairs=by_pairs, exclude=exclude, **marks)


@dataclass(frozen=True)
class Read(Cells):
    """How a file is read when whole rows are used."""

    missing: Missing = "drop"

    def reading(self) -> "Reading":
        """The reader with these settings."""
        return self.begun(self.missing)


@dataclass(frozen=True)
class InPairs(Cells):
    """How a file is read when each pair of columns may use its own rows."""

    missing: MissingInPairs = "drop"

    def reading(self, *, by_pairs: bool = True) -> "Reading":
        """The reader with these settings."""
        return self.begun(self.missing, by_pairs=by_pairs)


@dataclass(frozen=True)
class Drawn:
    """How a result is shown."""

    json: AsJson = False
    plot: Plot = None
    report: Report = None


@dataclass(frozen=True)
class Answer(Drawn):
    """How the answer of a test is printed."""

    level: Level = 0.05
    draws: WithDraws = False
    fail_on_reject: FailOnReject = False

    def give(
        self,
        result: "TestResult",
        question: str,
        reading: "Reading",
        samples: Mapping[str, Any] | None = None,
        effect: object = None,
    ) -> None:
        """Print it, draw it, write a page, and set the exit code."""
        from meanmap.cli import outputs

        rejected = result.reject(self.level)
        if self.plot is not None:
            outputs.draw(result, self.plot)
        if self.report is not None:
            from meanmap.cli import pages

            pages.write_test(self.report, result, question, reading.notes, self.level, samples or {}, effect)
        outputs.tell(result, question, reading.notes, self.level, self.json, self.draws, effect)
        if self.fail_on_reject and rejected:
            raise typer.Exit(1)
