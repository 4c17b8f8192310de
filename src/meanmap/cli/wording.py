"""Messages of functions in the words of the command line: options instead of Python arguments."""

import ast
import csv
import io
import re
import shlex
from collections.abc import Mapping

__all__ = ["OPTIONS", "in_options"]

# Arguments that messages suggest, and the corresponding options.
OPTIONS = {
    name: name
    for name in (
        *("missing", "kinds", "within", "clusters", "weights", "by", "margin", "null", "method", "kernel"),
        *("decimal", "thousands", "delimiter", "labels", "required", "forbidden"),
    )
} | {"n_permutations": "permutations"}
# Options that name the columns of a variable, which messages call x, y and z too.
COLUMNS = {"x", "y", "z"}
# The value of an argument: a mapping, a list, a text, or one word.
VALUE = r"(?P<value>\{[^{}]*\}|\[[^\[\]]*\]|'[^']*'|\"[^\"]*\"|\w+(?:\.\d+)?(?![\w.(]*\())?"


def in_options(text: str, options: Mapping[str, str]) -> str:
    """A message with arguments replaced by the command's options.

    Examples
    --------
    >>> known = {"missing": "--missing", "kinds": "--kinds", "clusters": "--clusters", "within": "--within"}
    >>> in_options("fill them in, or pass missing='drop'.", known)
    'fill them in, or pass --missing drop.'
    >>> in_options("missing is 'all'; expected one of 'raise', 'drop', 'category'.", known)
    "--missing is 'all'; expected one of 'raise', 'drop', 'category'."
    >>> in_options("say so: kinds={'zip code': 'label'}. Pass clusters=15 for blocks, or within= with more.", known)
    "say so: --kinds 'zip code=label'. Pass --clusters 15 for blocks, or --within with more."
    >>> in_options("required=[('age', 'income')] adds the edge.", {"required": "--required"})
    "--required 'age>income' adds the edge."
    """
    names = [name for name in OPTIONS if OPTIONS[name] in options]
    settings = {name: option for name, option in options.items() if name not in COLUMNS}
    settings |= {name: options[OPTIONS[name]] for name in names}
    if "kernel" in options:
        text = re.sub(r"^(the kernel of \w+|kernel_[xyz])(?= is )", options["kernel"], text)
    if "kinds" in options:
        text = re.sub(r"^a kind(?= is )", f"a kind in {options['kinds']}", text)
    if settings:
        said = "|".join(map(re.escape, settings))
        text = re.sub(rf"^({said})(?= (is|has|names) )", lambda found: settings[found[1]], text)
    if not names:
        return text

    def write(found: re.Match[str]) -> str:
        return _typed(found[1], found["value"], options[OPTIONS[found[1]]])

    return re.sub(rf"(?<![\w-])({'|'.join(names)})={VALUE}", write, text)


def _typed(name: str, value: str | None, option: str) -> str:
    """The option with its value, as typed in a shell."""
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
    said = _listed([">".join(each) if isinstance(each, tuple) else str(each) for each in held]) if marks else str(held)
    # A code that is a word, such as unknown, would be taken for a policy.
    said += "," * (marks and name == "missing" and said.isalpha())
    return f"{option}={shlex.quote(said)}" if said.startswith("-") else f"{option} {shlex.quote(said)}"


def _listed(parts: list[str]) -> str:
    """A list as options expect it: an entry with a comma is quoted."""
    line = io.StringIO()
    csv.writer(line).writerow(parts)
    return line.getvalue().rstrip("\r\n")
