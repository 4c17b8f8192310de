"""Errors of the parser of formulas, stated in terms of the formula, with what to type."""

import re

from meanmap.core.errors import ColumnError, InputError

__all__ = ["hint", "told"]

# What to type in place of functions of R and Bambi.
_TYPED = {
    "factor": "Type C(x) for labels.",
    "as": "Type C(x) for labels.",
    "ns": "Splines are bs(x, df=5).",
    "s": "Splines are bs(x, df=5).",
    "cens": "Censored responses are censored(y, status).",
    "trunc": "Truncated responses are truncated(y, lb=0, ub=10).",
    "Surv": "Censored responses are censored(time, status), with status 'none' or 'right'.",
}


def hint(text: str, error: str) -> str:
    """Messages of the parser, with advice on what to type."""
    if error.startswith("The response term must"):
        return "its response is several terms; expected a column, a function of columns, or p(successes, trials)."
    if "'Term' and 'Intercept'" in error or "'Intercept' and" in error:
        if "|" not in text:
            return "1 is subtracted from the response; type I(y - 1)."
        return "1 is subtracted in brackets; type (0 + x | group) for slopes without intercepts."
    if error.startswith("Don't know how to parse '.'"):
        return "'.' for all other columns is not supported; name them."
    if error == "Don't know how to parse ''":
        return "a term is missing at its end."
    if error == "Don't know how to parse '~'":
        return "it has no response; expected one, such as 'y ~ x + (1 | group)'."
    if re.search(r"\d[eE][+-]?\d", text) and error.startswith("Expect ')'"):
        return "numbers such as 1e3 are written out: 1000."
    if error.startswith("Expect ')'"):
        return "a closing bracket is missing."
    if error.endswith("character: ^"):
        return f"{error}; powers are I(x ** 2), or poly(x, 2)."
    return error


class told:
    """Errors of the parser, stated in terms of the formula."""

    def __init__(self, text: str):
        self.text = text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, KeyError):
            name = str(error).strip("'")
            known = _TYPED.get(name, "Functions of NumPy are np.log(x), and so on; numbers of successes are "
                                     "p(successes, trials).")  # fmt: skip
            raise ColumnError(f"formula {self.text!r} has {error}, which is not a known function. {known}") from error
        if isinstance(error, Exception) and not isinstance(error, InputError):
            raise ColumnError(f"formula {self.text!r} does not fit the data: {error}") from error
