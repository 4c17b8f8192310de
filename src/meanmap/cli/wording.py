"""Messages of functions in the words of the command line: options, where they name arguments of Python's."""

import ast
import csv
import io
import re
import shlex
from collections.abc import Mapping

__all__ = ["OPTIONS", "in_options"]

# Arguments that messages advise, and the options that stand for them.
OPTIONS = {
    name: name
    for name in ("missing", "kinds", "within", "clusters", "weights", "by", "margin", "null", "method", "kernel")
} | {"n_permutations": "permutations"}
# A value behind an argument: a mapping, a list, a text, or one word.
VALUE = r"(?P<value>\{[^{}]*\}|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|\w+(?:\.\d+)?(?![\w.(]*\())?"
# What is advised in both languages, and what only Python can do.
ALREADY = (
    (r"\b(\w+)=(?:\{[^{}]*\}|\[[^\[\]]*\]|'[^']*'),? or (--\1 )", r"\2"),
    (r"decimal=',' \((--decimal ,)\)", r"\1"),
    (r", or read it with pandas\.read_csv and its thousands=','", ""),
    (r"take the blanks out, as \.str\.strip\(\) does,", "take the blanks out"),
    (r", for example with (?:pandas|\.str|\.astype)[^,:;]*?(?:, which [^:;]*?)?(?=[,:;]|\. |\.?$)", ""),
    (r"make categories of (?:it|them), or say so with ", "say so with "),
    (r", for example with time\.replace\(tzinfo=datetime\.UTC\), or as in", ", as in"),
    (
        r", for example (?:with|as) .+?\.tz_localize\(.+?\), or take the zone of (.+?) away with \S+(?=\.)",
        r" there, as in 2026-01-31T12:30Z, or take the zone out of \1",
    ),
    (r"make categories of them", "name them with --labels"),
    (
        r"ask independence_test\(x, y, within=z\)",
        "ask meanmap test independence with the columns of --z behind --within",
    ),
)


def in_options(text: str, options: Mapping[str, str]) -> str:
    """A message in which arguments are options, of those that a command has.

    Examples
    --------
    >>> known = {"missing": "--missing", "kinds": "--kinds", "clusters": "--clusters", "within": "--within"}
    >>> in_options("fill them in, or pass missing='drop'.", known)
    'fill them in, or pass --missing drop.'
    >>> in_options("say so: kinds={'zip code': 'label'}. Pass clusters=15 for blocks, or within= with more.", known)
    "say so: --kinds 'zip code=label'. Pass --clusters 15 for blocks, or --within with more."
    """
    for python, said in ALREADY:
        text = re.sub(python, said, text)
    names = [name for name in OPTIONS if OPTIONS[name] in options]
    if not names:
        return text

    def write(found: re.Match[str]) -> str:
        return _typed(found[1], found["value"], options[OPTIONS[found[1]]])

    return re.sub(rf"(?<![\w-])({'|'.join(names)})={VALUE}", write, text)


def _typed(name: str, value: str | None, option: str) -> str:
    """The option with its value, as a shell takes it."""
    if value is None:
        return option
    try:
        held = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        held = value
    if isinstance(held, dict):
        pairs = [f"{column}={'<'.join(kind) if isinstance(kind, tuple) else kind}" for column, kind in held.items()]
        return f"{option} {shlex.quote(_listed(pairs))}"
    marks = isinstance(held, list)
    said = _listed([str(each) for each in held]) if marks else str(held)
    # A mark that is a word, such as unknown, would be taken for a policy.
    said += "," * (marks and name == "missing" and said.isalpha())
    return f"{option}={shlex.quote(said)}" if said.startswith("-") else f"{option} {shlex.quote(said)}"


def _listed(parts: list[str]) -> str:
    """A list as options take it: what holds a comma stands in quotes."""
    line = io.StringIO()
    csv.writer(line).writerow(parts)
    return line.getvalue().rstrip("\r\n")
