"""One file per subject, each with a tuple CASES. A new file here is found by itself."""

import pkgutil
from importlib import import_module

from benchmarks.harness import Case

__all__ = ["all_cases"]


def all_cases() -> dict[str, Case]:
    """Every case in benchmarks/cases, by name, in the order of files and declarations."""
    found: dict[str, Case] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        for case in import_module(f"benchmarks.cases.{module.name}").CASES:
            if case.name in found:
                raise ValueError(f"two benchmarks are called {case.name!r}: rename the one in cases/{module.name}.py")
            found[case.name] = case
    return found
