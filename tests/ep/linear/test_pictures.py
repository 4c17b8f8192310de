"""Pictures of fitted formulas, read back from what was drawn."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("formulae")
pytest.importorskip("matplotlib")

from meanmap.core.errors import ParameterError
from meanmap.core.pictures import new_axes
from meanmap.ep.linear import fit
from meanmap.ep.linear.pictures import Check
from tests.ep.linear.test_fit import DATA


@pytest.fixture(scope="module")
def found():
    return fit("y ~ x + (1 + x | g)", DATA)


def ends(ax):
    """Of the lines drawn as intervals."""
    return np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])


def test_estimates_are_those_of_the_table(found):
    effects, components, correlations = found.plot(confidence=0.9)
    table = found.to_frame(0.9)
    parts = (["x"], ["sd(Intercept | g)", "sd(x | g)", "sigma"], ["cor(Intercept, x | g)"])
    for ax, names in zip((effects, components, correlations), parts, strict=True):
        assert [label.get_text() for label in ax.get_yticklabels()] == names
        part = table.loc[names]
        np.testing.assert_allclose(ends(ax), part[["low", "high"]])
        np.testing.assert_allclose(ax.lines[-1].get_xdata(), part["estimate"])
        assert ax.get_xlabel() == "estimate and 90% interval"
    (alone,) = fit("c ~ 1", DATA, "poisson").plot()
    assert [label.get_text() for label in alone.get_yticklabels()] == ["Intercept"]
    plain = fit("c ~ x", DATA, "poisson")
    (one,) = plain.plot()
    assert plain.plot(one)[0] is one
    with pytest.raises(ParameterError, match="ax has 1 entries; expected one for each of 3 pictures"):
        found.plot(new_axes(3, 3))


def test_groups_from_the_largest_down(found):
    first, second = found.plot_groups()
    table = found.group_effects().reset_index()
    assert first.get_title() == "Intercept | g"
    for ax, name in ((first, "Intercept"), (second, "x")):
        part = table[table.effect == name].sort_values("estimate", ascending=False)
        assert [label.get_text() for label in ax.get_yticklabels()] == list(map(str, part["group"]))
        np.testing.assert_allclose(ends(ax), part[["low", "high"]])
    rows = DATA.assign(row=np.arange(len(DATA)))
    many = fit("c ~ 1 + (1 | row)", rows, "poisson").plot_groups()[0]
    assert len(ends(many)) == 72
    assert not many.get_yticklabels()


def test_responses_beside_simulated_ones(found):
    ax = found.plot_check(draws=400, rng=0)
    assert ax.get_xlabel() == "y"
    x, share = ax.lines[0].get_data()
    np.testing.assert_allclose(share, [(DATA.y <= value + 1e-9).mean() for value in x])
    drawn = found.simulate(draws=400, rng=0)
    middle = float(x[30])
    low, high = np.quantile((drawn <= middle).mean(1), [0.025, 0.975])
    band = ax.collections[0].get_paths()[0].vertices
    np.testing.assert_allclose(sorted({y for place, y in band if place == middle}), [low, high])


def test_shares_of_labels_and_weights_of_rows():
    table = DATA.assign(level=pd.Categorical(DATA.k, ["lo", "mid", "hi"], ordered=True))
    ax = fit("level ~ x", table, "cumulative").plot_check(rng=0)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["lo", "mid", "hi"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [(DATA.k == each).mean() for each in ("lo", "mid", "hi")])
    check = Check.of("y", np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([3.0, 1.0]), ())
    np.testing.assert_allclose(check.observed, [0.75, 0.25])
    np.testing.assert_allclose((check.low[0], check.high[0]), (0.25 + 0.025 * 0.75, 1 - 0.025 * 0.75))


def test_the_page_has_all_pictures(found):
    sections = found._as_page().sections
    assert [each.title for each in sections] == ["Effects and components of variance", "Effects of groups", "Responses"]
    titles = [chart.title for each in sections for chart in each.charts]
    assert titles == [
        "y against g and x, a dot for each row",
        "Effects",
        "Components",
        "Correlations",
        "Intercept | g",
        "x | g",
        "Observed and simulated responses",
    ]
    assert len(found._as_page(brief=True).sections) == 1
    shown = fit("b ~ x", DATA, "bernoulli")._as_page().sections[-1].charts[0].panels[0]
    assert [name for _, name in shown.y.ticks] == ["0", "1"]
