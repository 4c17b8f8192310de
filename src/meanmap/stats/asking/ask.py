"""`mm.test("harvest ~ sun | water", frame)`: chooses the test for a question, and says why."""

# ruff: noqa: PT028  # `test` is not a pytest test

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.arrays import refuse_name
from meanmap.core.containers import refuse_unread
from meanmap.core.errors import KindError
from meanmap.core.meant import no_column
from meanmap.core.pieces.sources import elsewhere
from meanmap.core.synonyms import own_words
from meanmap.core.tables.apart import apart_in, columns_named, left_out_of_table
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.codes import ROWS_A_STRATUM
from meanmap.core.tables.missing import incomplete, present, settle, take
from meanmap.core.tables.picked import kinds_of_picked, names_of
from meanmap.core.tables.schema import Schema
from meanmap.core.tables.selection import notes_on_gaps
from meanmap.core.tables.table import Table, named_columns, raw_columns
from meanmap.core.texts import as_labels
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.learning.default import is_default
from meanmap.stats.asking.grammar import Question
from meanmap.stats.conditional.conditional import conditional_independence_test
from meanmap.stats.conditional.variables import MOST_VALUES
from meanmap.stats.designs.groups import MOST_GROUPS
from meanmap.stats.independence.independence import independence_test
from meanmap.stats.result import TestResult
from meanmap.stats.samples.k_sample import k_sample_test
from meanmap.stats.samples.two_sample import two_sample_test
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["Plan", "plan_for", "test"]

LABELS = ("label", "ordered label", "boolean", "text")


@dataclass(frozen=True)
class Plan:
    """The chosen test: its question in words, why it was chosen, what it assumes, how to run it, and notes."""

    question: str
    why: tuple[str, ...]
    run: Callable[..., TestResult]
    told: tuple[str, ...] = ()


@own_words
def test(
    question: str,
    data: Data,
    *,
    within: str | Sequence[str] | None = None,
    clusters: object = None,
    kernel: KernelLike = None,
    n_permutations: int = 1000,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> TestResult:
    """Answer a question about a table with a suitable test; the result says which one, why, and what it assumes.

    Parameters
    ----------
    question : str
        "a ~ b": are a and b dependent? With labels, or two numbers such as 0 and 1, on one side: do the groups differ?
        "a + b ~ c" has several columns on one side, "a ~ b | c, d" asks about a and b given c and d, and a dot stands
        for all other columns but those that `two_sample_test` leaves out, such as ids: ". ~ group". Put names with
        spaces or operators into backticks.
    data : table
        A DataFrame, or a mapping of columns. From Parquet files, lazy frames and Dask frames, the columns that the
        question names are read into memory.
    within, clusters : column names, or a whole number of rows for `clusters`
        Strata and clusters of rows, as in `two_sample_test`.
    kernel, n_permutations, missing, kinds, rng : as in `two_sample_test`
        `kinds={"zip": "label"}` treats numbers as groups.

    Returns
    -------
    TestResult
        `result.why` holds the reasons, and `print(result)` shows them.

    Notes
    -----
    If one side is one column of 2 to 100 labels, or of two numbers, with at least 5 rows each, `two_sample_test` or
    `k_sample_test` compares the other side between them; otherwise `independence_test` is used. Columns after | with 6
    or more rows per distinct value, on average, form strata, within which these tests are exact (they detect effects
    that have the same direction in most strata). Otherwise `conditional_independence_test` is used, which relies on
    regressions; numbers with repeated values enter these both as numbers and as labels.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> field = np.repeat(["north", "south"], 60)
    >>> farm = {"field": field, "sun": rng.normal(size=120), "harvest": rng.normal(size=120) + (field == "south")}
    >>> result = test("harvest ~ field", farm, rng=0)
    >>> result.reject(), result.why[0]
    (True, "two_sample_test, because 'field' holds 2 labels: do their rows differ in 'harvest'?")
    """
    strata = names_of(within)
    if not strata and within is not None and not (isinstance(within, list | tuple) and not within):
        raise KindError(f"within is {within!r}; expected the name of a column of the table, or a list of names.")
    plan = plan_for(question, data, strata, clusters, kinds, missing, kernel)
    options = {"kernel": kernel, "n_permutations": n_permutations, "rng": rng}
    found = plan.run(missing=missing, **options)
    return replace(found, why=plan.why, warnings=(*plan.told, *found.warnings))


test.__test__ = False  # pyright: ignore[reportFunctionMemberAccess]  # not one of pytest's, whatever its name


def plan_for(
    line: str,
    data: Data,
    within: Sequence[str] = (),
    clusters: object = None,
    kinds: Mapping[str, Any] | None = None,
    missing: object = "drop",
    kernel: KernelLike = None,
) -> Plan:
    """The test that fits a question about a table; with the default kernels a dot does not include ids."""
    source = elsewhere(data)
    if source is None:
        _check_named(line, data)
    columns = raw_columns(data, "the table") if source is None else {}
    known = list(columns if source is None else source.names)
    apart = [*within, *names_of(clusters)]
    for argument, names in (("within", within), ("clusters", names_of(clusters))):
        for name in (name for name in names if name not in known):
            raise no_column(f"{argument} names {name!r}, and the table", name, known)
    asked = Question.read(line, known, apart)
    if source is not None:
        used = [name for name in known if name in asked.names or name in apart]
        columns = raw_columns(source_of(source.select(used)).whole(), "the table")
    notes: tuple[str, ...] = ()
    if asked.dotted and is_default(kernel):
        ids = apart_in([{name: columns[name] for name in asked.dotted}], list(map(str, kinds or ())))
        asked = asked.without(ids)
        notes = tuple(f"{left_out_of_table(name, *why)}." for name, why in ids.items() if name not in asked.names)
    named = asked.names
    told = kinds_of_picked(kinds, dict.fromkeys(known), list(named))
    schema = Schema.of({name: columns[name] for name in named}, kinds=told, names=("the table",))
    gaps = [column for column in schema.columns if column.missing]
    if missing == "raise" and gaps:
        listed = ", ".join(f"{each.name!r} ({each.missing})" for each in gaps)
        raise incomplete("the table", listed)
    plan = _plan(asked, columns, schema, within, clusters, told)

    def run(**options: Any) -> TestResult:
        with columns_named(asked.names, asked.typed):
            return plan.run(**options)

    return replace(plan, run=run, told=notes)


def _plan(
    asked: Question,
    columns: Mapping[str, Any],
    schema: Schema,
    within: Sequence[str],
    clusters: object,
    told: Mapping[str, Any],
) -> Plan:
    """The test that fits the columns of a question."""
    is_label = {str(column.name): column.kind in LABELS for column in schema.columns}
    apart = [*within, *names_of(clusters)]
    strata, why = list(within), []
    given = list(asked.given)
    # Rows with the same numbers are as exchangeable as rows with the same labels.
    if given and _are_strata([columns[name] for name in given]):
        strata, given = [*strata, *given], []
    if given:
        return _conditional(asked, columns, strata, clusters, told, is_label)
    # Two numbers, such as 0 and 1, say which group a row belongs to, unless they are declared numbers.
    two = {str(each.name): each.distinct == 2 and str(each.name) not in told for each in schema.columns}
    groups = {name: is_label[name] or two[name] for name in is_label}
    for one, other in ((asked.right, asked.left), (asked.left, asked.right)):
        number = _groups(columns[one[0]]) if len(one) == 1 and groups[one[0]] else 0
        if number and not (one == asked.left and all(groups[name] for name in asked.right)):
            used = {each: columns[each] for each in (*other, one[0], *apart, *asked.given)}
            what = "labels" if is_label[one[0]] else "numbers"
            return _compared(used, one[0], other, number, strata, clusters, told, what)
    numbers = [column for column in schema.columns if column.kind == "count" and column.distinct <= 10]
    why.append(f"independence_test, because neither side is one column of groups: are {_listed(asked.left)} and "
               f"{_listed(asked.right)} dependent?")  # fmt: skip
    why += [
        f"{each.name!r} holds {each.distinct} numbers: kinds={{{str(each.name)!r}: 'label'}} makes them groups."
        for each in numbers
    ]
    why.append(_assumption(strata, clusters, "the values of one side"))
    return Plan(
        f"Are {', '.join(asked.left)} and {', '.join(asked.right)} independent{_once(asked)}?",
        tuple(why),
        lambda missing, **options: _independence(asked, columns, strata, clusters, missing, told, options),
    )


def _check_named(line: object, data: object) -> None:
    """Refuse a malformed question, or one about data whose columns have no names."""
    if isinstance(data, str) and not isinstance(line, str):
        raise KindError(f"the question {data!r} comes second; expected the question first, then the table.")
    refuse_name(data, "the table")
    refuse_unread(data, "the table")
    if not Table.has_names(data):
        remedy = "pass a DataFrame."
        if isinstance(data, list | tuple) and data and isinstance(data[0], Mapping):
            remedy = "make a table of these mappings, as pandas.DataFrame does."
        elif named_columns(data, "data"):
            remedy = "name the columns of the DataFrame with text, such as frame.columns = ['a', 'b']."
        raise KindError(f"a question names columns, and the data have no names: {remedy}")


def _compared(
    columns: Mapping[str, Any],
    by: str,
    others: Sequence[str],
    number: int,
    strata: Sequence[str],
    clusters: object,
    kinds: Mapping[str, Any],
    what: str,
) -> Plan:
    """A test of the groups of one column, of labels or of two numbers."""
    name, compare = ("two_sample_test", two_sample_test) if number == 2 else ("k_sample_test", k_sample_test)
    why = f"{name}, because {by!r} holds {number} {what}: do their rows differ in {_listed(others)}?"
    fixed: dict[str, Any] = {"by": by, "kinds": kinds or None, "within": list(strata) or None, "clusters": clusters}
    return Plan(
        f"Do the rows of each {by} come from the same distribution of {', '.join(others)}?",
        (why, _assumption(strata, clusters, "the labels of rows")),
        lambda **options: compare(columns, **fixed, **options),
    )


def _independence(
    asked: Question,
    columns: Mapping[str, Any],
    strata: Sequence[str],
    clusters: object,
    missing: str,
    kinds: Mapping[str, Any],
    options: Mapping[str, Any],
) -> TestResult:
    by_column = names_of(clusters)
    used = [*asked.left, *asked.right, *strata, *by_column]
    came = {name: columns[name] for name in used}
    (part,), told = settle((came,), ("the table",), missing, least=LEAST_POINTS)
    told += notes_on_gaps((came,), ("the table",), missing, kinds, paired=True) if told else ()
    fixed: dict[str, Any] = {"data": part, "within": list(strata) or None, "clusters": by_column or clusters}
    result = independence_test(asked.left, asked.right, kinds=kinds or None, **fixed, **options)
    return replace(result, warnings=(*told, *result.warnings))


def _conditional(
    asked: Question,
    columns: Mapping[str, Any],
    strata: Sequence[str],
    clusters: object,
    kinds: Mapping[str, Any],
    is_label: Mapping[str, bool],
) -> Plan:
    rests = "that regressions capture how both sides depend on the columns after |"
    rows = "rows" if clusters is None else "blocks of rows" if isinstance(clusters, int) else "clusters"
    repeated = [name for name in asked.given if not is_label[name] and _are_strata([columns[name]])]
    why = (
        f"conditional_independence_test, because {_no_strata(asked.given, is_label)}.",
        *filter(None, (_values(name, columns[name]) for name in repeated)),
        f"It assumes that {rows} are independent, and {rests}.",
    )
    fixed: dict[str, Any] = {"data": columns, "within": list(strata) or None, "clusters": clusters}
    question = f"Are {', '.join(asked.left)} and {', '.join(asked.right)} independent{_once(asked)}?"
    sides = asked.left, asked.right, asked.given
    return Plan(
        question,
        why,
        lambda **options: conditional_independence_test(*sides, kinds=kinds or None, **fixed, **options),
    )


def _no_strata(given: Sequence[str], is_label: Mapping[str, bool]) -> str:
    """Why the columns after | form no strata."""
    numbers = [name for name in given if not is_label[name]]
    if numbers:
        return f"{_listed(numbers)} after | {'holds' if len(numbers) == 1 else 'hold'} numbers, too many for strata"
    make = "makes" if len(given) == 1 else "make"
    return f"{_listed(given)} after | {make} strata of fewer than {ROWS_A_STRATUM} rows on average"


def _values(name: str, column: object) -> str:
    """How numbers with repeated values are treated beside other columns."""
    distinct = len(np.unique(np.asarray(column)[present(column)].astype(str)))
    if not 2 < distinct <= MOST_VALUES:
        return ""
    return f"The effect of {name!r} as a number, and of each of its {distinct} values separately, is removed."


def _once(asked: Question) -> str:
    return f", given {', '.join(asked.given)}" if asked.given else ""


def _groups(column: object) -> int:
    """The number of groups that the labels of a column form, 0 if there are too many or one has too few rows."""
    held = as_labels(np.asarray(take(column, np.flatnonzero(present(column)))))
    counts = np.unique(held, return_counts=True)[1]
    return len(counts) if 2 <= len(counts) <= MOST_GROUPS and counts.min() >= LEAST_POINTS else 0


def _are_strata(columns: Sequence[Any]) -> bool:
    there = np.all([present(column) for column in columns], axis=0)
    held = np.stack([as_labels(np.asarray(take(column, np.flatnonzero(there)))) for column in columns])
    return held.shape[1] >= ROWS_A_STRATUM * len(np.unique(held, axis=1).T)


def _assumption(strata: Sequence[str], clusters: object, what: str) -> str:
    """The assumption of the permutations."""
    where = f" within each {_listed(strata)}" if strata else ""
    if clusters is None:
        return f"It assumes that {what} are exchangeable{where} under the null, as they are for independent rows."
    whole = f"blocks of {clusters} rows" if isinstance(clusters, int) else f"whole clusters of {clusters!r}"
    return f"It assumes that {whole} are exchangeable{where} under the null; rows within them may be dependent."


def _listed(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))
