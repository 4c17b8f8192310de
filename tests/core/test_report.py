"""Reports, for a person and for a program."""

import json

import numpy as np
import pytest

from meanmap.core import Report


def test_report_says_how_it_ended():
    report = Report("stopped", False, 1, [0.5], {"floored": 2}, ("mind the floor",), {"rank": 2.345678})
    assert str(report).splitlines() == [
        "stopped after 1 step, last residual 0.5",
        "  floored: 2",
        "  rank: 2.35",
        "  note: mind the floor",
    ]
    assert str(Report("converged", True, 0)) == "converged after 0 steps"


def test_report_goes_to_json_and_back():
    report = Report("converged", np.bool_(True), np.int64(2), np.array([1, 2]), {"skipped": np.int64(3)}, ("a",))
    read = json.loads(json.dumps(report.to_dict()))
    assert read == {
        "status": "converged",
        "converged": True,
        "steps": 2,
        "residuals": [1.0, 2.0],
        "counts": {"skipped": 3},
        "notes": ["a"],
        "measures": {},
        "choices": {},
    }


def test_reports_are_immutable_and_share_nothing():
    first, second = Report("a", True, 1), Report("b", True, 1)
    assert first.counts is not second.counts
    with pytest.raises(AttributeError):
        first.status = "changed"
