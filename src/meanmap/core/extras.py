"""Optional packages: an error about a missing one says what to type."""

from collections.abc import Iterator
from contextlib import contextmanager

from meanmap.core.errors import MissingPackageError

__all__ = ["EXTRAS", "optional"]

# The extra that installs each package, as pyproject.toml declares it.
EXTRAS = {
    "arviz": "arviz",
    "formulae": "formulas",
    "matplotlib": "plots",
    "networkx": "graphs",
    "numpyro": "sampling",
    "pandas": "tables",
    "polars": "tables",
    "pooch": "data",
    "rich": "cli",
    "typer": "cli",
}
# Other libraries that work with this one, by the names under which they are imported and installed.
OTHERS = {"causallearn": "causal-learn", "pgmpy": "pgmpy", "tigramite": "tigramite"}


@contextmanager
def optional(what: str) -> Iterator[None]:
    """Around the import of a package that may be missing; `what` is what needs it, in the singular.

    Raises
    ------
    MissingPackageError
        In place of the error about a module that is not found.

    Examples
    --------
    >>> with optional("drawing"):
    ...     from matplotlib import pyplot
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package in EXTRAS:
            named = f'"meanmap[{EXTRAS[package]}]"'
        elif package in OTHERS:
            named = OTHERS[package]
        else:  # something that the package itself needs
            raise
        raise MissingPackageError(
            f"{what} needs {OTHERS.get(package, package)}, which is not installed here: type pip install {named}."
        ) from error
