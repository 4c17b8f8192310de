"""`help(...)` of what people use begins with what they type."""

import inspect
import re

import pytest

import meanmap as mm

NAMES = (
    "DriftMonitor",
    "KernelField",
    "KernelGraph",
    "KernelGrid",
    "Schema",
    "stats.TestResult",
    "stats.results.TwoSampleResult",
    "bp.DiscreteGraph",
    "ep.BlackBox",
    "ep.ImportanceSampling",
    "ep.Laplace",
    "ep.Learned",
    "ep.MCMC",
    "ep.Quadrature",
    "ep.Stratified",
    "ep.Variable",
)


@pytest.mark.parametrize("name", NAMES)
def test_help_begins_with_what_a_user_types(name):
    value = mm
    for part in name.split("."):
        value = getattr(value, part)
    _promise, typed, *_rest = (inspect.getdoc(value) or "").split("\n\n")
    calls = re.findall(r"`([^`]+)`", typed)
    assert any(name.split(".")[-1] in call or "result." in call for call in calls), typed
