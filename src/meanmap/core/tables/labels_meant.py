"""Notes on labels that may be unintended: words such as "NA", and labels that differ only in spaces or capitals."""

from collections.abc import Collection

from meanmap.core.language import in_python

__all__ = ["odd_labels", "words_for_missing", "written_in_two_ways"]

# Others, such as "none", are labels of their own.
WORDS = ("nan", "NaN", "None", "<NA>", "NaT", "NA", "N/A", "n/a", "null", "NULL")
SHOWN = 3
# Shorter labels may differ in a capital on purpose, as genotypes do, but not several codes of two letters.
LEAST_LETTERS, CODE, SEVERAL = 3, 2, 4


def odd_labels(labels: Collection[str], where: str, then: str = "") -> tuple[str, ...]:
    """Notes on the distinct labels of a column, with advice on words for missing values (`then`), by default to declare
    these.

    Examples
    --------
    >>> odd_labels(["north", "south", "none"], "x")
    ()
    >>> print(*odd_labels(["north", "nan", "north "], "x"), sep="\\n")
    x has the label 'nan', treated like any other: if it stands for a missing value, pass missing=['nan'].
    x has the labels 'north ' and 'north', which differ only in spaces and count as two: write them alike, as \
.str.strip() does, if they are one.
    """
    return (*words_for_missing(labels, where, then), *written_in_two_ways(labels, where))


def words_for_missing(labels: Collection[str], where: str, then: str = "") -> tuple[str, ...]:
    """A note on the distinct labels of a column that are words for missing values.

    Examples
    --------
    >>> words_for_missing(["north", "none"], "x")
    ()
    """
    absent = [label for label in sorted(labels) if not label.strip() or label.strip() in WORDS]
    if not absent:
        return ()
    many, stand = ("s", "they stand") if len(absent) > 1 else ("", "it stands")
    shown = " and ".join(map(repr, absent))
    advice = then or f"pass missing={sorted({label.strip() for label in absent})}"
    files = "" if all(label.strip() for label in absent) else ", while commands read an empty cell as missing"
    note = (
        f"{where} has the label{many} {shown}, treated like any other{files}: if {stand} for a missing value, {advice}."
    )
    return (note,)


def written_in_two_ways(labels: Collection[str], where: str, least: int = LEAST_LETTERS) -> tuple[str, ...]:
    """A note on the distinct labels of a column that differ only in spaces or capitals, these with `least` letters, or
    with two if codes are written in small letters and in capitals.

    Examples
    --------
    >>> written_in_two_ways(["north", "south"], "x")
    ()
    """
    alike: dict[str, list[str]] = {}
    least = min(least, CODE) if _has_codes(labels) else least
    for label in sorted(labels, key=lambda label: (label == " ".join(label.lower().split()), label)):
        bare = " ".join(label.split())
        alike.setdefault(bare.casefold() if len(bare) >= least else bare, []).append(label)
    pairs = [found for bare, found in alike.items() if bare and len(found) > 1]
    if not pairs:
        return ()
    more = f" (and {len(pairs) - 1} more)" if len(pairs) > 1 else ""
    spaces = any(label != " ".join(label.split()) for found in pairs for label in found)
    capitals = any(len({" ".join(label.split()) for label in found}) > 1 for found in pairs)
    what = " or ".join(["spaces"] * spaces + ["capitals"] * capitals)
    how = in_python(f", as {'.str.strip()' * spaces}{'.str.lower()' * capitals} does,")
    shown = " and ".join(map(repr, pairs[0][:SHOWN]))
    note = (
        f"{where} has the labels {shown}{more}, which differ only in {what} and "
        f"count as {'two' if len(pairs[0]) == 2 else len(pairs[0])}: write them alike{how} if they are one."
    )
    return (note,)


def _has_codes(labels: Collection[str]) -> bool:
    """Whether several codes of two letters, as of countries, are written in small letters and in capitals, or one of
    several.
    """
    codes = {bare for label in labels if len(bare := " ".join(label.split())) == CODE and bare.isalpha()}
    small = [code for code in codes if code.islower() and code.upper() in codes]
    return bool(small) and len(codes) >= SEVERAL and not codes & {code.title() for code in small}
