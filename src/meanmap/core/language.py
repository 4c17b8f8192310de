"""Words of messages: types with their article, and advice in Python or for the command line."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["a_type", "at_command_line", "in_python", "with_article"]

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
