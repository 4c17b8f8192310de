"""What a table cannot tell about a formula, in words."""

import numpy as np

from meanmap.core.numerals import reads_as_number
from meanmap.ep.linear.formula import Formula
from meanmap.ep.linear.predictor import Predictor

__all__ = ["doubts", "numbers_as_text"]

# A column whose share of variance beside those before it is less is a sum of these.
_COLLINEAR = 1e-10
# More labels than this that all read as numbers are likely to be numbers.
_LABELS = 20


def doubts(formula: Formula, predictor: Predictor, noisy: bool) -> list[str]:
    """Columns that add up to one another, factors of one group or of one row a group, numbers that came as text.

    `noisy` is whether the response has noise of its own, a sigma.
    """
    found = []
    if formula.names:
        columns = predictor.blocks[0].design
        gram = columns.T @ columns
        scale = np.sqrt(np.diag(gram))
        for at in range(1, len(gram)):
            before = gram[:at, :at] / np.outer(scale[:at], scale[:at])
            beside = gram[:at, at] / (scale[:at] * scale[at])
            if 1 - beside @ np.linalg.pinv(before, rcond=1e-12, hermitian=True) @ beside < _COLLINEAR:
                found.append(
                    f"{formula.names[at]!r} is a linear combination of columns before it: "
                    "only the prior tells them apart"
                )
    for group in formula.rows.groups:
        if len(group.levels) == 1:
            found.append(f"{group.name!r} has one group, which says nothing about how groups differ")
        elif noisy and len(group.levels) == len(group.index):
            found += [_one_row_each(group.name)] if "Intercept" in group.labels else []
    return found + numbers_as_text(formula)


def _one_row_each(name: str) -> str:
    return (
        f"each group of {name!r} has one row: the data tell sd(Intercept | {name})² + sigma² and no more, only priors "
        "tell the two apart"
    )


def numbers_as_text(formula: Formula) -> list[str]:
    """Columns of labels that all read as numbers, and are too many to be labels."""
    common, found = formula.matrices.common, []
    terms = () if common is None else common.terms.values()
    used = {name for term in terms for name in getattr(term, "var_names", ())}
    for name in sorted(used & set(formula.rows.frame)):
        labels = formula.rows.frame[name]
        if labels.dtype == object:
            distinct = set(labels)
            if len(distinct) > _LABELS and all(isinstance(each, str) and reads_as_number(each) for each in distinct):
                found.append(f"{name!r} holds numbers as text, read as {len(distinct)} labels")
    return found
