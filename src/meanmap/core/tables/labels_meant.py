"""Labels that may be unintended: words for missing values, and labels that differ only in spaces."""

from collections.abc import Collection

from meanmap.core.language import in_python

__all__ = ["odd_labels"]

# Others, such as "none", are labels of their own.
WORDS = ("nan", "NaN", "None", "<NA>", "NaT", "NA", "N/A", "n/a", "null", "NULL")
SHOWN = 3


def odd_labels(labels: Collection[str], where: str) -> tuple[str, ...]:
    """Notes on the distinct labels of a column.

    Examples
    --------
    >>> odd_labels(["north", "south", "none"], "x")
    ()
    >>> print(*odd_labels(["north", "nan", "north "], "x"), sep="\\n")
    x has the label 'nan', treated like any other: if it stands for a missing value, pass missing=['nan'].
    x has the labels 'north ' and 'north', which differ only in spaces and count as two: remove the spaces, as \
.str.strip() does, if they are one.
    """
    notes = []
    absent = [label for label in sorted(labels) if not label.strip() or label.strip() in WORDS]
    if absent:
        many, stand = ("s", "they stand") if len(absent) > 1 else ("", "it stands")
        shown = " and ".join(map(repr, absent))
        notes.append(
            f"{where} has the label{many} {shown}, treated like any other: if {stand} for a missing value, pass "
            f"missing={sorted({label.strip() for label in absent})}."
        )
    blank = [label for label in sorted(labels) if label.strip() != label and label.strip() in labels and label.strip()]
    if blank:
        more = f" (and {len(blank) - 1} more)" if len(blank) > 1 else ""
        notes.append(
            f"{where} has the labels {blank[0]!r} and {blank[0].strip()!r}{more}, which differ only in spaces and "
            f"count as two: remove the spaces{in_python(', as .str.strip() does,')} if they are one."
        )
    return tuple(notes)
