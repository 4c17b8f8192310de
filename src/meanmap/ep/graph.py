"""A model: factors joined by the variables that they share."""

from collections import Counter
from typing import Any

import numpy as np

from meanmap.core.errors import InputError, KindError
from meanmap.core.language import a_type
from meanmap.core.pictures import new_axes
from meanmap.core.types import Axes
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.variables import Variable

__all__ = ["FactorGraph"]


class FactorGraph:
    """A model as a graph of factors and variables; shapes were checked when the factors were made.

    Parameters
    ----------
    *factors : Factor
        In any order; variables are found in them. Factors with the same name are numbered.

    Attributes
    ----------
    factors : tuple of Factor
    variables : dict
        By name, in the order in which factors mention them.

    Examples
    --------
    >>> from meanmap import ep
    >>> w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    >>> z = ep.Variable("z", ep.Normal, plate=3)
    >>> print(ep.FactorGraph(ep.Dot([[1, 0], [1, 1], [1, 2]], w, z), ep.Probit(z, observed=[0, 1, 1])))
    FactorGraph of 2 factors and 2 variables
      w: MultivariateNormal(mean=[0, 0], sd=[1, 1])
      z: Normal, plate of 3
      Dot(w, z): X[3, 2], w, z
      Probit(z), plate of 3: z, low[3], high[3]
    """

    def __init__(self, *factors: Factor):
        if not factors:
            raise InputError("the graph has no factors; expected at least one, such as FactorGraph(Probit(z, ...)).")
        variables: dict[str, Variable] = {}
        for at, factor in enumerate(factors):
            if not isinstance(factor, Factor):
                listed = isinstance(factor, list | tuple)
                instead = "ep.FactorGraph(*factors)" if listed else "a factor, such as ep.Dot(X, w, z)"
                raise KindError(f"factor {at} is {a_type(factor)}; {'type' if listed else 'expected'} {instead}.")
            for argument in factor.arguments:
                if argument.known:
                    continue
                variable = argument.variable
                if variables.setdefault(variable.name, variable) is not variable:
                    raise InputError(
                        f"two variables are called {variable.name!r}, the second in {factor.name}; "
                        "give every variable its own name, or pass the same object."
                    )
            _check_once(factor)
        self.variables = variables
        self.factors = _numbered(factors)

    def __repr__(self) -> str:
        return f"FactorGraph({', '.join(factor.name for factor in self.factors)})"

    def __str__(self) -> str:
        lines = [f"FactorGraph of {_count(self.factors, 'factor')} and {_count(self.variables, 'variable')}"]
        for variable in self.variables.values():
            plate = f", plate of {variable.plate}" if variable.plate is not None else ""
            lines.append(f"  {variable.name}: {variable.described()}{plate}")
        for factor in self.factors:
            plate = f", plate of {factor.plate}" if factor.plate is not None and not factor.whole else ""
            arguments = [a.name if isinstance(a, Variable) else repr(a) for a in factor.arguments]
            lines.append(f"  {factor.name}{plate}: {', '.join(arguments)}")
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw variables as circles and factors as squares, with given values in grey; returns the Axes.

        A double edge leads to a variable that all members of a factor's plate share.
        """
        rows = max(len(self.factors), len(self.variables))
        ax = new_axes(7, 0.6 + 0.7 * rows) if ax is None else ax
        places = {name: (0.0, y) for name, y in zip(self.variables, _spread(len(self.variables), rows), strict=True)}
        for factor, middle in zip(self.factors, _spread(len(self.factors), rows), strict=True):
            for at, argument in enumerate(factor.arguments):
                if argument.known:
                    continue
                x, y = places[argument.name]
                shared = factor.plate is not None and (argument.plate is None or at in factor.whole)
                for gap in (-0.03, 0.03) if shared else (0.0,):
                    ax.plot([x, 1.0], [y + gap, middle + gap], color="0.6", lw=1, zorder=1)
            ax.plot(1.0, middle, "s", ms=12, color="tab:orange")
            label = factor.name if factor.plate is None else f"{factor.name} × {factor.plate}"
            ax.annotate(label, (1.0, middle), (12, 0), textcoords="offset points", va="center")
            given = ", ".join(repr(a) for a in factor.arguments if a.known)
            if given:
                below = {"xytext": (12, -12), "textcoords": "offset points"}
                ax.annotate(given, (1.0, middle), **below, va="center", color="0.5", size="small")
        for name, (x, y) in places.items():
            plate = self.variables[name].plate
            ax.plot(x, y, "o", ms=16, color="tab:blue")
            label = name if plate is None else f"{name} × {plate}"
            ax.annotate(label, (x, y), (-12, 0), textcoords="offset points", va="center", ha="right")
        ax.set(xlim=(-0.6, 2.2), ylim=(-rows + 0.4, 0.6))
        ax.set_axis_off()
        return ax


def _check_once(factor: Factor) -> None:
    """Refuse a factor that meets the same unknown twice: it would count as two independent ones."""
    seen: dict[str, list[Any]] = {}
    for argument in factor.arguments:
        if argument.known:
            continue
        for other in seen.setdefault(argument.name, []):
            same = np.atleast_1d(argument.index == other.index)
            if same.any():
                one = f"member {int(np.argmax(same))} of " if factor.plate is not None else ""
                raise InputError(
                    f"{one}{factor.name} has {argument.name!r} twice, and would treat it as two independent unknowns. "
                    f"Name it once: ep.Sum(a, weights=[2], ...) for a + a, ep.BlackBox(lambda a: a * a, a, out) for a "
                    "function, ep.Dot for a linear map."
                )
        seen[argument.name].append(argument)


def _spread(count: int, rows: int) -> list[float]:
    """Heights of some things down a picture of this many rows."""
    return [-(at + 0.5) * rows / count + 0.5 for at in range(count)]


def _numbered(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    total, seen, named = Counter(factor.name for factor in factors), Counter(), []
    for factor in factors:
        if total[factor.name] > 1:
            seen[factor.name] += 1
            name = f"{factor.name} #{seen[factor.name]}"
            factor = replaced(factor, name=name)
        named.append(factor)
    return tuple(named)


def _count(things: Any, word: str) -> str:
    return f"{len(things)} {word}{'s' if len(things) != 1 else ''}"
