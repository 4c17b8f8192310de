"""The page of a posterior: every number with its mean and interval."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meanmap.families.pages import moments_of
from meanmap.plots.facts import Page, Section
from meanmap.plots.intervals import intervals_chart

__all__ = ["posterior_page"]


def posterior_page(posterior: Any) -> Page:
    """Means with two standard deviations on either side: numbers of a vector and members of a plate one by one."""
    rows = [row for name, law in posterior.items() for row in moments_of(name, law)]
    names = [name for name, *_ in rows]
    numbers = np.array([row[1:] for row in rows], float).reshape(-1, 2)
    reach = 2 * numbers[:, 1]
    ends = numbers[:, 0], numbers[:, 0] - reach, numbers[:, 0] + reach
    chart = (intervals_chart("Beliefs", names, *ends, "mean ± 2 sd"),) if rows else ()
    table = (("name", "mean", "sd"), *((name, f"{mean:.4g}", f"{sd:.3g}") for name, mean, sd in rows))
    notes = (("note",), *((note,) for note in posterior.report.notes))
    facts: Mapping[str, Any] = {
        "beliefs": {name: {"mean": mean, "sd": sd} for name, mean, sd in rows},
        "log_evidence": float(posterior.log_evidence),
        "report": posterior.report.to_dict(),
    }
    status = posterior.report.status
    said = f"{status[:1].upper()}{status[1:]}; log evidence {posterior.log_evidence:.6g}."
    return Page("Posterior", "", (Section("Beliefs", said, charts=chart, tables=(table, notes)),), facts)
