"""Words of messages: types with their article, lists, and advice in Python or for the command line."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

__all__ = [
    "a_type",
    "at_command_line",
    "counted",
    "in_digits",
    "in_few_words",
    "in_percent",
    "in_python",
    "in_short",
    "with_and",
    "with_article",
]

# Numbers from here on have an exponent also in sentences.
ENORMOUS = 1e9
# Digits behind the point before a share gets an exponent, or 100.
_MOST_DIGITS = 7

_typed_in_a_shell = False


@contextmanager
def at_command_line() -> Iterator[None]:
    """A scope in which messages are for the command line, in all threads."""
    global _typed_in_a_shell
    before, _typed_in_a_shell = _typed_in_a_shell, True
    try:
        yield
    finally:
        _typed_in_a_shell = before


def in_python(said: str, otherwise: str = "") -> str:
    """The advice for Python, or `otherwise` at the command line, where the only remedy is to change a file.

    Arguments, such as missing='drop', need no translation: commands have options of the same names.

    Examples
    --------
    >>> f"convert it{in_python(', for example with .astype(float)')}."
    'convert it, for example with .astype(float).'
    >>> with at_command_line():
    ...     f"convert it{in_python(', for example with .astype(float)')}."
    'convert it.'
    """
    return otherwise if _typed_in_a_shell else said


def a_type(value: object) -> str:
    """The type of a value, with its article.

    Examples
    --------
    >>> a_type([]), a_type({}), a_type(3)
    ('a list', 'a dict', 'an int')
    """
    return with_article(type(value).__name__)


def with_article(word: str) -> str:
    """A word with "a" or "an" before it.

    Examples
    --------
    >>> with_article("Array"), with_article("Uniform"), with_article("OnceOnly"), with_article("ndarray")
    ('an Array', 'a Uniform', 'a OnceOnly', 'an ndarray')
    """
    begins_with_vowel = word[0] in "aeioAEIO" and not word.startswith(("One", "Once"))
    return f"{'an' if begins_with_vowel or word == 'ndarray' else 'a'} {word}"


def in_short(value: object, most: int = 60) -> str:
    """A value as Python writes it, on one line; of a long one the beginning and the end.

    Examples
    --------
    >>> in_short([1, 2]), in_short(list(range(100)), 20)
    ('[1, 2]', '[0, 1, ... 98, 99]')
    """
    said = " ".join(repr(value).split())
    if len(said) <= most:
        return said
    first, last = said[: most // 2].rpartition(" ")[0] or said[: most // 2], said[-most // 2 :]
    return f"{first} ... {last.partition(' ')[2] or last}"


def in_digits(number: float, digits: int = 2) -> str:
    """A number for a sentence, rounded to this many digits, without an exponent unless it is enormous or tiny.

    Examples
    --------
    >>> in_digits(1234.5), in_digits(11.7, 1), in_digits(0.04321), in_digits(3.0), in_digits(2e12)
    ('1200', '10', '0.043', '3', '2e+12')
    """
    rounded = f"{number:.{digits}g}"
    return f"{float(rounded):.0f}" if 1 <= abs(number) < ENORMOUS and "e" in rounded else rounded


def in_percent(share: float) -> str:
    """A share as a number of percent, with as many digits as it takes to be neither 0 nor 100 unless it is just that.

    Examples
    --------
    >>> in_percent(0.031), in_percent(0.0004), in_percent(0.9996), in_percent(1.0)
    ('3', '0.04', '99.96', '100')
    """
    for digits in range(_MOST_DIGITS):
        said = f"{100 * share:.{digits}f}"
        if float(said) not in (0, 100) or share in (0, 1):
            return said
    return f"{100 * share:.2g}"


def counted(number: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "missing value"), counted(2, "missing value")
    ('1 missing value', '2 missing values')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def in_few_words(parts: Collection[str], most: int = 20) -> str:
    """The first parts of a list, and how many more there are.

    Examples
    --------
    >>> in_few_words(["a", "b"], 3), in_few_words(["a", "b", "c", "d", "e"], 3)
    ('a, b', 'a, b, c and 2 more')
    """
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(islice(parts, most)) + more


def with_and(names: Sequence[str]) -> str:
    """All names, the last after "and".

    Examples
    --------
    >>> with_and(["a"]), with_and(["a", "b"]), with_and(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
