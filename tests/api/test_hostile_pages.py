"""Names that look like HTML, scripts or worse stay text on the page of every kind of result, and in notebooks."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap import bp, ep
from meanmap.bp.beliefs.label_belief import LabelBelief
from tests.plots.test_facts import NAMES, facts_of
from tests.plots.test_page import Page as Reader

HOSTILE = [*NAMES[:-1], "x" * 5000]
HARMLESS = [f"name {i}" for i in range(len(HOSTILE))]
RNG = np.random.default_rng(0)
COLUMNS = RNG.normal(size=(len(HOSTILE), 60)) + RNG.normal(size=60)
QUICK = {"rng": 0, "n_permutations": 19}


def table(names):
    return dict(zip(names, COLUMNS, strict=False))


def chain(names):
    return list(pairwise(names))


def labels(names):
    return {"a": COLUMNS[0], "b": np.repeat(np.array(names[:3], dtype=object), 20)}


def states(names):
    return bp.DiscreteGraph(chain(names), {pair: np.array([[0.9, 0.1], [0.2, 0.8]]) for pair in chain(names)})


def effect(names):
    model = mm.BayesianNetwork([(names[0], names[1])])
    return model.effect(table(names[:2]), of=names[0], on=names[1], from_=0.0, to=0.5, rng=0)


def posterior(names):
    first, second = (ep.Variable(name, ep.Normal(0.0, 1.0)) for name in names[:2])
    return ep.infer(ep.FactorGraph(ep.Gaussian(first, observed=2.0), ep.Gaussian(second, observed=1.0)), rng=0)


def alarms(names):
    """A monitor with more alarms than tables."""
    monitor = mm.DriftMonitor.of(table(names[:3]), n_permutations=99, rng=0)
    for t in range(6):
        monitor = monitor.step({name: column + 20 + t for name, column in table(names[:3]).items()})
    return monitor


def lost(names):
    """Samples of which one has lost the correlation of two columns."""
    first, second = COLUMNS[0], COLUMNS[0] + 0.1 * COLUMNS[1]
    samples = (dict(zip(names, (first, each), strict=False)) for each in (second, second[::-1]))
    return mm.two_sample_test(*samples, **QUICK)


def mixed(names):
    """A regression on such labels."""
    pytest.importorskip("formulae")
    labels = pd.Categorical(np.resize(np.array(names[:6], dtype=object), 60), [*names[1:6], names[0]])
    return mm.fit("y ~ kind + (1 | group)", {"y": COLUMNS[0], "kind": labels, "group": np.arange(60) % 7})


KINDS = {
    "alarms": alarms,
    "lost correlation": lost,
    "effect of samples": lambda names: mm.two_sample_effect(table(names[:3]), table(names[:3]), rng=0),
    "formula": mixed,
    "two samples": lambda names: mm.two_sample_test(table(names), table(names), **QUICK),
    "labels of two samples": lambda names: mm.two_sample_test(labels(names), labels(names), **QUICK),
    "several samples": lambda names: mm.k_sample_test(table(names[:5]), **QUICK),
    "independence": lambda names: mm.independence_test(table(names[:2]), table(names[2:4]), **QUICK),
    "graph": lambda names: mm.graphs.Graph.of(chain(names)),
    "arrows": lambda names: mm.BayesianNetwork(chain(names)),
    "Gaussian graph": lambda names: bp.GaussianGraph(np.eye(len(names)) + 0.01, nodes=names),
    "states": states,
    "beliefs": lambda names: states(names).query(),
    "scores of arrows": lambda names: mm.BayesianNetwork(chain(names[:3])).judge(table(names[:3])),
    "causal effect": effect,
    "belief about a label": lambda names: LabelBelief(
        mm.kernels.Delta(), np.arange(len(names)), np.full(len(names), 1 / len(names)), tuple(names)
    ),
    "embedding": lambda names: mm.embed(table(names), mm.kernels.RBF(1.0)),
    "adjusted": lambda names: mm.stats.adjusted(dict.fromkeys(names, 0.01)),
    "posterior": posterior,
    "causes": lambda names: mm.pc(table(names[:3]), rng=0),
    "tree": lambda names: mm.chow_liu(table(names[:3]), rng=0),
}


def elements(text):
    """Every tag with the names of its attributes, and how often it stands there."""
    return Counter((tag, *sorted(attributes)) for tag, attributes in Reader(text).met)


@pytest.mark.parametrize("kind", KINDS)
def test_names_add_no_element_and_no_attribute(kind, tmp_path):
    hostile, harmless = (KINDS[kind](names) for names in (HOSTILE, HARMLESS))
    page = hostile.page(tmp_path / "a.html")
    found = elements(page.read_text("utf-8"))
    assert found == elements(harmless.page(tmp_path / "b.html").read_text("utf-8"))
    assert not [each for each in found if any(name.startswith("on") for name in each[1:])]
    assert facts_of(page)["charts"]
    assert HOSTILE[0] in str(facts_of(page))
    shown = elements(hostile._repr_html_())
    assert shown == elements(harmless._repr_html_())
