"""What is asked of a fitted formula: effects of groups, draws, new responses, rows left out."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.stats

pytest.importorskip("formulae")

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError
from meanmap.ep.linear import fit
from tests.ep.linear.test_fit import DATA, GROUPS


@pytest.fixture(scope="module")
def slopes():
    return fit("y ~ x + (1 + x | g)", DATA)


def test_effects_of_groups_against_dense_algebra(slopes):
    """Given each node, effects are a dense Normal; nodes are mixed by their probabilities."""
    unit, x = slopes.scaled.unit, DATA.x.to_numpy()
    design = np.column_stack([np.ones(72), (x - x.mean()) / x.std()])
    turn = slopes.scaled.groups[0].turn
    Z = np.zeros((72, 24))
    for column, values in enumerate((np.ones(72), x)):
        Z[np.arange(72), 2 * GROUPS + column] = values
    y = (DATA.y - DATA.y.mean()).to_numpy() / unit
    first, second = np.zeros(24), np.zeros(24)
    for node in slopes.model.nodes:
        law = np.kron(np.eye(12), turn @ slopes.model.components.covariances(node.phi)[0] @ turn.T)
        V = 6.25 * design @ design.T + Z @ law @ Z.T + np.exp(2 * node.phi[-1]) * np.eye(72)
        mean = law @ Z.T @ np.linalg.solve(V, y)
        variance = np.diag(law - law @ Z.T @ np.linalg.solve(V, Z @ law))
        first += node.probability * mean
        second += node.probability * (variance + mean**2)
    found = slopes.group_effects()
    assert list(found.columns) == ["estimate", "sd", "low", "high"]
    assert found.index.names == ["factor", "group", "effect"]
    assert found.index.get_level_values("effect").tolist()[:3] == ["Intercept", "x", "Intercept"]
    assert found.index.get_level_values("group").tolist() == np.repeat(np.arange(12), 2).tolist()
    np.testing.assert_allclose(found.estimate, first * unit, atol=1e-6)
    np.testing.assert_allclose(found.sd, np.sqrt(second - first**2) * unit, rtol=1e-5)
    assert ((found.low < found.estimate) & (found.estimate < found.high)).all()
    nested = fit("y ~ x + (1 | g/h)", DATA).group_effects()
    assert nested.loc["g:h"].index[0] == ("0:0", "Intercept")


def test_estimates_of_groups_are_printed_however_long_names_are(slopes):
    """In the middle of seven columns they were behind dots."""
    long = {"g": "school and year", "x": "hours of study (centred)"}
    formula = "y ~ `hours of study (centred)` + (1 + `hours of study (centred)` | `school and year`)"
    shown = str(fit(formula, DATA.rename(columns=long)).group_effects())
    assert "estimate" in shown
    assert all(f"{each:.4f}"[:5] in shown for each in slopes.group_effects().estimate[:4])
    with pytest.raises(ParameterError, match="has no effects of groups"):
        fit("y ~ x", DATA).group_effects()


def test_draws_have_the_moments_of_the_table(slopes):
    table, drawn = slopes.to_frame(), slopes.draws(20_000, rng=0)
    assert list(drawn.columns) == list(table.index)
    fixed = ["Intercept", "x"]
    error = table.loc[fixed, "sd"] / np.sqrt(20_000)
    assert (abs(drawn[fixed].mean() - table.loc[fixed, "estimate"]) < 4 * error).all()
    np.testing.assert_allclose(drawn[fixed].corr().iloc[0, 1], slopes_correlation(slopes), atol=0.03)
    for name in table.index[2:]:
        np.testing.assert_allclose(drawn[name].mean(), table.estimate[name], atol=0.03 * table.sd[name])
        np.testing.assert_allclose(drawn[name].std(), table.sd[name], rtol=0.04)
    assert drawn["sigma"].nunique() == 20_000
    pd.testing.assert_frame_equal(slopes.draws(5, rng=1), slopes.draws(5, rng=1))
    arviz = mm.io.posterior_draws(slopes, draws=7, rng=0)["posterior"]
    assert arviz["sigma"].shape == (1, 7)


def slopes_correlation(found):
    return found.covariance[0, 1] / np.sqrt(found.covariance[0, 0] * found.covariance[1, 1])


def test_new_responses_have_the_mean_of_predictions_and_noise():
    found = fit("y ~ x + (1 | g)", DATA)
    drawn = found.simulate(draws=4000, rng=0)
    assert drawn.shape == (4000, 72)
    shown, noise = found.predict(DATA), found.to_frame().loc["sigma", "estimate"]
    spread = np.sqrt(shown.sd**2 + noise**2)
    assert (abs(drawn.mean(0) - shown.estimate) < 4.5 * spread / np.sqrt(4000)).all()
    np.testing.assert_allclose(drawn.std(0), spread, rtol=0.08)
    # Rows of one new group share its effect, those of two do not.
    new = found.simulate(pd.DataFrame({"x": [3.0, 3.0, 3.0], "g": [100, 100, 101]}), draws=8000, rng=1)
    group = found.to_frame().loc["sd(Intercept | g)", "estimate"]
    seen = np.corrcoef(new.T)
    assert seen[0, 1] > group**2 / (group**2 + noise**2) - 0.05
    assert seen[0, 2] < seen[0, 1] - 0.2
    shares = fit("p(s, t) ~ x + (1 | g)", DATA.assign(s=DATA.b * 3, t=4), "binomial")
    assert shares.simulate(draws=3, rng=0).max() <= 4
    assert shares.simulate(pd.DataFrame({"x": [30.0], "g": [0], "t": [50]}), draws=50, rng=0).max() > 4
    with pytest.raises(ParameterError, match="has no column 't', the number of trials"):
        shares.simulate(pd.DataFrame({"x": [3.0], "g": [0]}))
    with pytest.raises(ParameterError, match="draws is 0; expected a whole number"):
        shares.simulate(draws=0)


def test_rows_left_out_against_fits_without_them():
    """The evidence of all rows over that of all others; priors of labels do not depend on the data."""
    found = fit("b ~ 1 + (1 | g)", DATA, "bernoulli")
    out = found.leave_one_out()
    for row in (0, 5, 30):
        without = fit("b ~ 1 + (1 | g)", DATA.drop(index=row), "bernoulli")
        # Cavities are those of expectation propagation: .04 here, where groups have six labels and wide effects.
        np.testing.assert_allclose(out[row], found.log_evidence - without.log_evidence, atol=0.05)


def test_rows_left_out_of_a_normal_model_in_units_of_the_response():
    """Without groups, a t law by least squares, as priors are weak."""
    found = fit("y ~ x", DATA)
    for row in (0, 5, 30):
        rest = DATA.drop(index=row)
        X = np.column_stack([np.ones(71), rest.x])
        estimate, left, *_ = np.linalg.lstsq(X, rest.y, rcond=None)
        here = np.array([1.0, DATA.x[row]])
        scale = np.sqrt(left[0] / 69 * (1 + here @ np.linalg.solve(X.T @ X, here)))
        exact = scipy.stats.t(69, here @ estimate, scale).logpdf(DATA.y[row])
        np.testing.assert_allclose(found.leave_one_out()[row], exact, atol=0.03)


def test_rows_are_called_as_in_the_data():
    """Row numbers would be joined to other rows in silence."""
    named = DATA.set_index(pd.Index([f"r{i}" for i in range(len(DATA))])).iloc[::-1]
    holey = named.assign(x=named.x.where(named.index != "r3"))
    found = fit("y ~ x", holey, missing="drop")
    expected = [name for name in named.index if name != "r3"]
    assert (list(found.leave_one_out().index), list(found.predict().index)) == (expected, expected)
    np.testing.assert_allclose(found.predict(), found.predict(named.loc[expected]), rtol=1e-9)
    found = fit("y ~ x", {name: holey[name].to_numpy() for name in holey}, missing="drop")
    assert list(found.predict().index) == [i for i in range(len(DATA)) if i != len(DATA) - 4]


def test_order_of_rows_moves_rows_and_nothing_else(slopes):
    order = np.random.default_rng(4).permutation(len(DATA))
    moved = fit("y ~ x + (1 + x | g)", DATA.iloc[order])
    np.testing.assert_allclose(moved.leave_one_out(), slopes.leave_one_out()[order], rtol=1e-5)
    np.testing.assert_allclose(moved.predict(), slopes.predict().iloc[order], rtol=1e-5)
    numbers = ["estimate", "sd", "low", "high"]
    np.testing.assert_allclose(moved.group_effects()[numbers], slopes.group_effects()[numbers], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(moved.draws(9, rng=0), slopes.draws(9, rng=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(moved.contrasts("g"), slopes.contrasts("g"), rtol=1e-4, atol=1e-6)


def test_units_of_the_response_move_what_is_asked_afterwards(slopes):
    moved = fit("y ~ x + (1 + x | g)", DATA.assign(y=1000 * DATA.y - 7, x=DATA.x / 10))
    np.testing.assert_allclose(moved.leave_one_out(), slopes.leave_one_out() - np.log(1000), rtol=1e-5)
    np.testing.assert_allclose(moved.predict().estimate, 1000 * slopes.predict().estimate - 7, rtol=1e-6)
    np.testing.assert_allclose(moved.contrasts("g"), 1000 * slopes.contrasts("g"), rtol=1e-4, atol=1e-3)
    plain, factor = slopes.group_effects(), np.tile([1000.0, 10_000.0], 12)
    np.testing.assert_allclose(moved.group_effects().sd, plain.sd * factor, rtol=1e-5)
    simulated = 1000 * slopes.simulate(draws=3, rng=0) - 7
    np.testing.assert_allclose(moved.simulate(draws=3, rng=0), simulated, rtol=1e-5)


def test_a_fit_says_why_it_is_not_saved_and_what_to_keep(tmp_path):
    fit = mm.fit("y ~ x", {"y": [1.0, 2.0, 4.0, 3.0, 6.0], "x": [0.0, 1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(KindError, match=r"a Fitted cannot be saved: it holds the formula .* call mm\.fit again"):
        mm.save(fit, tmp_path / "fit.meanmap")
    assert not list(tmp_path.iterdir())
    for kept in (pickle.dumps, copy.deepcopy):
        with pytest.raises(KindError, match=r"a Fitted cannot be pickled or copied: .* call mm\.fit again"):
            kept(fit)
