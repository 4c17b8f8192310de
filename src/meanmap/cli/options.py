"""Options that several commands share, and the handling of errors."""

import csv
import os
import re
import traceback
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from meanmap.cli.wording import in_options
from meanmap.core.language import at_command_line
from meanmap.core.meant import no_column

__all__ = [
    "Command",
    "Group",
    "before_errors",
    "in_own_words",
    "kinds_in",
    "names_in",
    "pairs_in",
    "parts_in",
    "refusals",
    "refused",
    "say",
    "to_be_written",
]

KernelName = Annotated[str | None, typer.Option("--kernel", help="median, learned, or nothing for the default.")]
Null = Annotated[str, typer.Option(help="Null distribution: auto, permutation, gamma, spectral, ...")]
Permutations = Annotated[int, typer.Option("--permutations", min=19, help="Draws of the null.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed; the seed used is always printed.")]
Level = Annotated[float, typer.Option(help="Level at which a hypothesis is rejected.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WithDraws = Annotated[bool, typer.Option("--draws", help="With --json: also print all draws of the null, last.")]


def to_be_written(path: Path | None) -> Path | None:
    """Refuse a path that cannot be written, before any work is done."""
    if path is None:
        return None
    from meanmap.core.saved.files import to_write

    with refusals():
        folder = to_write(path).parent
    if not folder.is_dir():
        raise refused(f"the folder {path.parent} does not exist; create it first.")
    if not os.access(folder, os.W_OK):
        raise refused(f"the folder {path.parent} is not writable.")
    return path


# Extensions of pages, and of the pictures that matplotlib can write on every system.
PAGES = (".html", ".htm")
PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".eps", ".ps", ".svgz")


def _page(path: Path | None) -> Path | None:
    return to_be_written(_ending(path, "--report", PAGES))


def _picture(path: Path | None) -> Path | None:
    return to_be_written(_ending(path, "--plot", PICTURES))


def _ending(path: Path | None, option: str, known: Sequence[str]) -> Path | None:
    """Refuse a file whose extension is not one that can be written."""
    if path is not None and path.suffix and path.suffix.lower() not in known:
        raise refused(f"{option} is {path}; expected a name that ends in {' or '.join(known)}.")
    return path


Plot = Annotated[
    Path | None, typer.Option("--plot", callback=_picture, help="Write a plot to this file (.png, .svg, .pdf).")
]
Report = Annotated[
    Path | None,
    typer.Option("--report", callback=_page, help="Write a page with all results to this file (.html)."),
]
FailOnReject = Annotated[bool, typer.Option("--fail-on-reject", help="Exit with 1 if the hypothesis is rejected.")]
Missing = Annotated[
    str,
    typer.Option(
        help="Missing values in used columns: drop the rows, make labels a category, or raise; or codes for missing "
        "values such as ?,-999, whose rows are dropped too."
    ),
]
MissingInPairs = Annotated[
    str,
    typer.Option(
        help="Missing values in used columns: drop the rows, make labels a category, raise, or, in a tree, pairwise: "
        "leave out of each pair of columns only the rows that it lacks; or codes for missing values such as ?,-999."
    ),
]
LabelColumns = Annotated[
    str, typer.Option("--labels", help="Columns, a,b,..., that are labels although they look numeric.")
]
Kinds = Annotated[
    str,
    typer.Option(help="Kinds of columns, name=kind,...: zip=label, when=time, hour=time of day, size=low<middle<high."),
]
Exclude = Annotated[str, typer.Option(help="Columns to leave out, a,b,..., if all others are used.")]
DecimalMark = Annotated[
    str | None, typer.Option("--decimal", help="Decimal mark in text files, . or , if cells do not show it.")
]
Thousands = Annotated[
    str | None, typer.Option(help="Separator of thousands in text files: , . ' or a space; none unless given.")
]
Delimiter = Annotated[str | None, typer.Option(help="Separator of cells, if the file's name does not show it.")]
# Options that accept a space as their value.
SPACES = ("delimiter", "thousands")
# Options whose value may be a list.
LISTS = ("columns", "exclude", "kinds", "labels", "levels", "missing", "target", "within", "x", "y", "z")


def names_in(text: str | None) -> list[str]:
    """Names in a list such as a,b,c; a name with a comma is quoted."""
    names = next(csv.reader([text], skipinitialspace=True), []) if text else []
    return [unicodedata.normalize("NFC", name.strip()) for name in names]


def parts_in(text: str, mark: str) -> list[str]:
    """The parts between separators, ignoring separators inside quoted names.

    Examples
    --------
    >>> parts_in('"sun h/week",age/dose', "/")
    ['"sun h/week",age', 'dose']
    """
    return re.split(rf'{re.escape(mark)}(?=(?:[^"]*"[^"]*")*[^"]*$)', text)


def pairs_in(text: str | None, mark: str, option: str, refusal: str) -> list[tuple[str, str]]:
    """Pairs of names with a separator, as in a-b,b-c; a name with a comma or the separator is quoted."""
    listed = [pair for pair in parts_in(text or "", ",") if pair.strip()]
    pairs = [tuple("".join(names_in(part)) for part in parts_in(pair, mark)) for pair in listed]
    for pair in pairs:
        if len(pair) != 2 or not all(pair):
            raise refused(f"{option} has {mark.join(pair)!r}, which {refusal}")
    return [(first, second) for first, second in pairs]


def kinds_in(text: str) -> dict[str, str | tuple[str, ...]]:
    """Declared kinds of columns, as in zip=label,size=low<middle<high."""
    found: dict[str, str | tuple[str, ...]] = {}
    for part in names_in(text):
        name, mark, kind = (each.strip() for each in part.partition("="))
        if not mark or not name or not kind:
            raise refused(f"--kinds has {part!r}; expected name=kind, such as zip=label or size=low<middle<high")
        levels = tuple(level.strip() for level in kind.split("<"))
        if name in found:
            raise refused(f"--kinds declares {name} twice, in {text!r}; expected one kind for each column")
        found[name] = levels if len(levels) > 1 else kind
    return found


# The rows left out of the files of this command, and its options by name.
_LEFT_OUT: list[str] = []
_OPTIONS: dict[str, str] = {}


def before_errors(note: str) -> None:
    """Remember that rows were left out, so that an error about the remaining rows says so."""
    _LEFT_OUT.append(note)


# The class of errors in options and arguments, from click, which older versions of typer import and newer ones include.
_Mistyped: Any = typer.BadParameter.__base__


class Group(TyperGroup):
    """A group of commands that refuses mistyped names in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse options before the name of a command; without arguments, show the help."""
        if self.no_args_is_help and not args:
            return super().parse_args(ctx, args)
        with _in_one_line(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise refused(str(no_column(f"`{_typed(ctx)}`", args[0], self.list_commands(ctx), "command")))
        with _in_one_line(ctx):
            return super().resolve_command(ctx, args)


def _typed(ctx: Any) -> str:
    """The words of the command, from `meanmap` on."""
    return f"{_typed(ctx.parent)} {ctx.info_name}" if ctx.parent else "meanmap"


@contextmanager
def _in_one_line(ctx: Any) -> Iterator[None]:
    """Refuse wrong options and arguments in one line; for an unknown option, list the known ones."""
    try:
        yield
    except _Mistyped as problem:
        typed = getattr(problem, "option_name", "")
        known = [each for each in ctx.command.get_params(ctx) if each.param_type_name == "option"]
        if typed.startswith("-") and not any(typed in (*each.opts, *each.secondary_opts) for each in known):
            options = [max(each.opts, key=len) for each in known]
            raise refused(str(no_column(f"`{_typed(ctx)}`", typed, options, "option"))) from None
        # Newer versions of typer prefix messages with those of a validation library.
        text = problem.format_message().replace("Value error, ", "").rstrip(".")
        raise refused(f"{text[:1].lower()}{text[1:]}; `{_typed(ctx)} --help` shows what to type") from None


class Command(TyperCommand):
    """The wrapper of every command: errors end in one line, and no input file is overwritten."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options and arguments."""
        with _in_one_line(ctx):
            self._refuse_repeated(ctx, args)
            return super().parse_args(ctx, args)

    def _refuse_repeated(self, ctx: Any, args: list[str]) -> None:
        """Refuse an option with a value that is given twice: the last would replace the first."""
        *_, typed = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in typed:
            once = isinstance(parameter, TyperOption) and not (parameter.is_flag or parameter.multiple)
            if once and typed.count(parameter) > 1:
                name = parameter.opts[0]
                several = f"; pass several values as one list, such as {name}=a,b" if parameter.name in LISTS else ""
                raise refused(f"{name} is given {typed.count(parameter)} times; expected it once{several}")

    def invoke(self, ctx: Any) -> Any:  # a click Context, which newer versions of typer include and older ones import
        """Run the command."""
        _LEFT_OUT.clear()
        _OPTIONS.clear()
        _OPTIONS.update({str(each.name): each.opts[0] for each in self.params if each.param_type_name == "option"})
        with refusals(), at_command_line():
            self._refuse_empty(ctx)
            self._keep_apart(ctx.params)
            if (page := ctx.params.get("report")) is not None:
                from meanmap.plots.page import page_to_write

                page_to_write(page)
            return super().invoke(ctx)

    def _refuse_empty(self, ctx: Any) -> None:
        """Refuse options with an empty value, as when a shell variable is empty."""
        for parameter in self.params:
            value, name = ctx.params.get(str(parameter.name)), str(parameter.name)
            typed = getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"
            empty = isinstance(value, str) and not (value if name in SPACES else value.strip())
            if typed and empty and parameter.param_type_name == "option":
                raise refused(f"{parameter.opts[0]} is empty; expected a value after it, or omit the option")

    def _keep_apart(self, values: Mapping[str, Any]) -> None:
        """Refuse to overwrite an input file, or to write one file twice: arguments are read, options may be written."""
        taken: list[tuple[Path, str]] = []
        for parameter in sorted(self.params, key=lambda each: each.param_type_name):
            value = values.get(str(parameter.name))
            if parameter.param_type_name == "argument":
                paths = [Path(each) for each in (value if isinstance(value, list | tuple) else [value]) if each]
                taken += [(path, "which is read") for path in paths if path.exists()]
            elif isinstance(value, Path):
                for other, why in taken:
                    if _same(value, other):
                        raise refused(f"--{parameter.name} would replace {value}, {why}; name another file")
                taken.append((value, f"which --{parameter.name} writes"))


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def say(text: str) -> None:
    """Print text that came partly from files: control characters are shown as escapes."""
    typer.echo(_shown(in_own_words(text)))


def in_own_words(said: object) -> Any:
    """Messages of functions, with this command's options instead of arguments: text, or texts in lists and mappings."""
    if isinstance(said, str):
        return in_options(said, _OPTIONS)
    if isinstance(said, Mapping):
        return {key: in_own_words(value) for key, value in said.items()}
    return [in_own_words(each) for each in said] if isinstance(said, list | tuple) else said


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def refused(problem: str) -> typer.Exit:
    """One line on standard error, and exit code 2."""
    typer.echo(f"meanmap: {_shown(in_own_words(' '.join(problem.split())))}", err=True)
    return typer.Exit(2)


@contextmanager
def refusals() -> Iterator[None]:
    """Errors end in one line and exit code 2; exit code 1 is an answer, such as "rejected"."""
    from meanmap.core.errors import InputError, KindError, MissingPackageError

    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except (InputError, KindError, MissingPackageError) as problem:
        text = str(problem)
        told = [note for note in _LEFT_OUT if note not in text]
        raise refused(f"{text} ({'; '.join(told)})" if told else text) from None
    except BrokenPipeError:  # a reader such as `head` closed the pipe: not an error
        raise
    except OSError as problem:
        raise refused(f"{problem.filename or ''}: {problem.strerror or problem}") from None
    except Exception as problem:
        if isinstance(problem, MemoryError) or "RESOURCE_EXHAUSTED" in str(problem):
            raise refused(f"there is not enough memory: {str(problem) or 'none is left'}") from None
        place = traceback.extract_tb(problem.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        raise refused(f"a bug in meanmap, please report it: {type(problem).__name__}: {problem} ({where})") from None
