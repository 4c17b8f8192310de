"""The public names and what they take, as plain values: python -m tests.api.interface > tests/api/released.json

Run at a release; tests/api/test_released.py then holds later versions to it.
"""

import inspect
import json
import sys
from types import ModuleType
from typing import Any

import meanmap as mm

__all__ = ["interface"]

Interface = dict[str, Any]


def interface() -> Interface:
    """Every public name by its path: what it takes and, for classes, the members; a name lent to others once."""
    packages = {"meanmap.errors": mm.errors}
    packages |= {f"meanmap.{name}": getattr(mm, name) for name in mm.__all__}
    packages |= {f"meanmap.{name}": getattr(mm, name) for name in ("core", "features", "graphs", "linalg")}
    packages |= {"meanmap.bp.engine": mm.bp.engine, "meanmap.bp.results": mm.bp.results}
    packages |= {"meanmap.stats.results": mm.stats.results}
    packages |= {f"meanmap.ep.{name}": getattr(mm.ep, name) for name in ("extending", "learned", "models")}
    packages |= {"meanmap.kernels.distributions": mm.kernels.distributions, "meanmap": mm}
    found: Interface = {}
    homes: dict[int, str] = {}
    for path, package in packages.items():
        for name in package.__all__ if isinstance(package, ModuleType) else ():
            value, here = getattr(package, name), f"{path}.{name}"
            home = homes.setdefault(id(value), here)
            found[here] = home if home != here else _described(value)
    return dict(sorted(found.items()))


def _described(value: Any) -> Any:
    if not inspect.isclass(value):
        return {"takes": _taken(value)} if callable(value) else {}
    members = {name: getattr(value, name) for name in dir(value) if not name.startswith("_") and _is_ours(value, name)}
    fields = {name: None for name in getattr(value, "__dataclass_fields__", ()) if not name.startswith("_")}
    described = {name: _taken(member) if callable(member) else None for name, member in members.items()}
    # Results are made by the library: only a class that says what it takes is called by people.
    called = {"takes": _taken(value)} if "Parameters\n" in (value.__doc__ or "") else {}
    return {**called, "members": dict(sorted((fields | described).items()))}


def _is_ours(kind: type, name: str) -> bool:
    """Whether a member was written here and not in a base class of another library."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), kind)
    return owner.__module__.startswith("meanmap")


def _taken(value: Any) -> list[str] | None:
    """Arguments as they are typed: `x`, `rng=` where it may be left out, `*` before those that need their name."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    words, star = [], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            words, star = [*words, "*"], True
        star = star or p.kind is p.VAR_POSITIONAL
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        words.append(f"{prefix}{p.name}{'=' if p.default is not p.empty else ''}")
    return words


if __name__ == "__main__":
    entries = [f"{json.dumps(name)}: {json.dumps(of_name)}" for name, of_name in interface().items()]
    sys.stdout.write("{\n" + ",\n".join(entries) + "\n}\n")
