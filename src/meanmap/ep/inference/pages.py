"""The page of a posterior: every number with its mean and interval."""

from dataclasses import replace
from typing import Any

from meanmap.core.notes import note_table
from meanmap.families.pages import moments_section
from meanmap.plots.facts import Page

__all__ = ["posterior_page"]


def posterior_page(posterior: Any) -> Page:
    """Means with two standard deviations on either side, and what the run says of itself."""
    status = posterior.report.status
    said = f"{status[:1].upper()}{status[1:]}; {posterior._evidence_in_words(6)}."
    section, facts = moments_section("Beliefs", said, dict(posterior.items()))
    notes = note_table(posterior.report.notes)
    facts |= {"log_evidence": float(posterior.log_evidence), "report": posterior.report.to_dict()}
    return Page("Posterior", "", (replace(section, tables=(*section.tables, notes)),), facts)
