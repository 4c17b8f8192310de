"""The page of a learned kernel: the objective over lengthscales, with its modes."""

from typing import Any

import numpy as np

from meanmap.core.notes import note_table
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section

__all__ = ["learned_page"]


def learned_page(fit: Any) -> Page:
    """The profile of the objective, each draw of landmarks and their mean, and all modes."""
    unit = float(np.exp(np.mean(np.log(fit.units))))
    scales, mean = fit.profile.multiples * unit, fit.profile.mean
    finite = mean[np.isfinite(mean)]
    top, middle = float(finite.max()), float(np.median(finite))
    low, high = top - 1.2 * (top - middle) - 1, top + 0.1 * (top - middle) + 1
    shown = {"x": scales, "y": np.where(mean >= low, mean, np.nan)}
    draws = [Mark("line", {"x": scales, "y": np.where((each >= low) & (each <= high), each, np.nan)}, "", colour=6)
             for each in np.atleast_2d(fit.profile.values)]  # fmt: skip
    single = fit.modes if np.size(fit.modes[0].vector) == 1 else ()
    rules = [
        Mark("rules", {"x": [float(np.exp(mode.vector[0]))]}, f"mode at {np.exp(mode.vector[0]):.3g}", colour=1 + i)
        for i, mode in enumerate(single[:4])
    ]
    marks = (*draws, Mark("line", shown, "mean over draws of landmarks"), *rules)
    chart = Chart(
        "Objective", (Panel(Axis("lengthscale", log=True), Axis("objective", limits=(low, high)), tuple(marks)),)
    )
    rows = [(str(mode.kernel), f"{mode.objective:.1f}", f"{mode.share:.0%}") for mode in fit.modes]
    tables = (
        (("kernel", "objective", "highest in draws"), *rows),
        note_table(fit.report.notes),
    )
    section = Section("The kernel", f"The learned kernel is {fit.kernel}.", charts=(chart,), tables=tables)
    modes = [{"kernel": str(mode.kernel), "objective": mode.objective, "share": mode.share} for mode in fit.modes]
    facts = {"kernel": str(fit.kernel), "objective": fit.objective, "modes": modes, "seed": fit.seed}
    return Page("A learned kernel", "", (section,), facts)
