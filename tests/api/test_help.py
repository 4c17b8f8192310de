"""`help(...)` of what people use begins with what they type."""

import inspect
import pydoc
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


# Roles, links and directives of documentation, which a terminal shows as they are.
MARKUP = re.compile(r":[a-z]+:`|`\]\[|^ *\.\. \w+::|``[^`]+``", re.MULTILINE)


def public() -> dict[str, object]:
    """Functions and classes by name; of estimators most help is scikit-learn's."""
    folders = [
        mm,
        *(getattr(mm, name) for name in mm.__all__ if name != "estimators" and inspect.ismodule(getattr(mm, name))),
    ]
    folders += [mm.bp.results, mm.bp.engine, mm.ep.models, mm.ep.learned, mm.ep.extending, mm.stats.results]
    found = {f"{folder.__name__}.{name}": getattr(folder, name) for folder in folders for name in folder.__all__}
    return {name: value for name, value in found.items() if callable(value)}


def test_help_is_plain_text():
    shown = {name: pydoc.render_doc(value, renderer=pydoc.plaintext) for name, value in public().items()}
    assert len(shown) > 250
    found = {name: hit.group() for name, text in shown.items() if (hit := MARKUP.search(text))}
    assert not found


def test_help_on_missing_values_says_where_codes_for_them_are_taken():
    """`mm.pc(table, missing=[-999])` works, and its help had three words only. `mm.fit` takes no codes."""
    shown = {name: pydoc.render_doc(value, renderer=pydoc.plaintext) for name, value in public().items()}
    lines = re.compile(r"^[ |]*missing : (.*)$", re.MULTILINE)
    said = {name: line for name, text in shown.items() for line in lines.findall(text) if "drop" in line}
    assert len(said) >= 12
    assert [name for name, line in said.items() if "or list of codes" not in line] == ["meanmap.fit"]
