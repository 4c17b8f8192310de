"""Numbers that many rows share, as zero costs, against laws in which everything is known."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import meanmap as mm
from meanmap.bp.conditionals.at_points import AtPoints
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.core.errors import InputError

ARROWS = [("z", "t"), ("z", "y"), ("t", "y")]


def costs(seed, n):
    """Half of the rows cost nothing, with t fewer; the others have a skew law."""
    rng = np.random.default_rng(seed)
    z, noise = rng.normal(size=(2, n))
    t = rng.random(n) < expit(z)
    nothing = rng.random(n) < expit(0.5 * z - 1.2 * t)
    y = np.where(nothing, 0.0, np.exp(1 + 0.5 * z + 0.4 * t + 0.5 * noise))
    return {"z": z, "t": np.where(t, "yes", "no"), "y": y}


def censored(z, e, f, t=None):
    """A number that is seen from zero on: it increases with its noise, so that what would have been is known."""
    t = 0.7 * z + 0.7 * e if t is None else t
    return {"z": z, "t": t, "y": np.maximum(0.3 + z + t + f, 0)}


@pytest.fixture(scope="module")
def model():
    return mm.bp.BayesianNetwork(ARROWS).fit(costs(1, 1500))


@pytest.fixture(scope="module")
def from_zero():
    return mm.bp.BayesianNetwork(ARROWS).fit(censored(*np.random.default_rng(3).normal(size=(3, 1500))))


def two_values(seed, n):
    """Treated or not, ill or not, in zeros and ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    m, b = ((rng.random(n) < expit(scores)).astype(int) for scores in (2 * x - 1, 3 * x - 3))
    return {"x": x, "m": m, "b": b, "y": 2 * m + rng.normal(size=n)}


def test_zeros_and_ones_are_as_probable_as_they_are():
    """A straight line gave .32 for .5 at x = 1, a mean of x of 1.95 for 1.27 given b = 1, and draws between."""
    rows = two_values(9, 1500)
    model = mm.bp.BayesianNetwork([("x", "m"), ("x", "b"), ("m", "y")]).fit(rows)
    for x in (-1.0, 0.0, 1.0, 2.0):
        found = model.do({"x": x}, ["m", "b"], rng=0)
        assert abs(found["b"].mean() - expit(3 * x - 3)) < 0.08
        assert abs(found["m"].mean() - expit(2 * x - 1)) < 0.08
    assert abs(model.query({"b": 1}, ["x"], rng=0)["x"].mean() - rows["x"][rows["b"] == 1].mean()) < 0.12
    assert set(model.sample(500, values={"x": 0.0}, rng=0)["m"]) == {0, 1}
    odd = {name: values[:3].astype(float) for name, values in rows.items()} | {"b": np.array([0.5, 1.0, 40.0])}
    assert np.isfinite(model.score(odd)).all()
    assert model.counterfactual({"x": 0.0, "m": 0, "y": 0.0}, {"x": -1.0}, ["m"]) == {"m": 0}
    with pytest.raises(InputError, match="it may become any number from 0 to 1"):
        model.counterfactual({"x": 0.0, "m": 0, "y": 0.0}, {"x": 1.0}, ["m"])
    with pytest.raises(InputError, match="it may become any number from 0 to 1"):
        model.counterfactual({"x": 0.0, "m": 0, "y": 0.0}, {"x": 1.0}, ["y"])


@pytest.mark.parametrize(("t", "d"), [("no", 0.0), ("yes", 1.2)])
def test_under_an_intervention_as_many_rows_have_the_point_as_truly_do(model, t, d):
    """A regression of the number itself draws .28 and .09 zeros for .50 and .25."""
    drawn = model.sample(4000, values={"t": t}, rng=0)["y"]
    z = np.random.default_rng(2).normal(size=100_000)
    share = expit(0.5 * z - d).mean()
    # Of 1500 rows about half have each t: four standard errors.
    assert abs(np.mean(drawn == 0) - share) < 4 * np.sqrt(share * (1 - share) / 600)
    assert drawn.min() == 0
    positive = np.exp(1 + 0.5 * z + 0.4 * (t == "yes") + 0.125) * (1 - expit(0.5 * z - d))
    assert abs(drawn.mean() / positive.mean() - 1) < 0.15


def test_a_point_that_was_seen_says_as_much_as_it_does(model):
    """Given z = 0 both values of t are as probable, and p(0) is .5 without it, .23 with it."""
    found = model.query({"y": 0.0, "z": 0.0}, ["t"], rng=0)["t"].probabilities()["no"]
    assert abs(found - 0.5 / (0.5 + expit(-1.2))) < 0.08


def test_the_law_is_one_and_does_not_depend_on_the_unit():
    rows, grid = costs(4, 600), np.linspace(-3, 40, 20_001)
    found = []
    for unit in (1.0, 1000.0):
        column = CodedColumn.of("y", unit * rows["y"])
        values = column.read(unit * rows["y"], "data")
        law = AtPoints.fit([rows["z"][:, None]], values, column)
        assert law.points == pytest.approx(column.read([0.0], "data")[0])
        at = np.zeros((len(grid), 1))
        density = np.exp(law.log_chance(at, column.read(unit * grid, "data")))
        spread = np.exp(law.log_chance(at[:1], law.points[:, None])) / column.scale
        inside = np.isin(column.read(unit * grid, "data")[:, 0], law.points)
        found.append([spread[0], np.trapezoid(np.where(inside, 0, density), grid * unit / column.scale)])
        assert sum(found[-1]) == pytest.approx(1, abs=0.02)
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize("shift", [0.1, 7.3, 1234.56])
def test_frequent_values_come_back_as_they_are(shift):
    """Off by a rounding error, no draw is equal to the cap at which numbers were cut."""
    values = costs(4, 600)["y"] + shift
    column = CodedColumn.of("y", values)
    assert np.mean(column.in_unit(column.read(values, "data")[:, 0]) == shift) == np.mean(values == shift) > 0.3
    rare = CodedColumn.of("y", np.linspace(0, 1, 300))
    assert not len(rare.frequent)
    assert rare.in_unit(np.zeros(1)) == pytest.approx(0.5)


def test_columns_without_such_values_have_none():
    rng = np.random.default_rng(5)
    for values in (rng.normal(size=300), rng.integers(4, size=300).astype(float)):
        column = CodedColumn.of("y", values)
        assert AtPoints.fit([], column.read(values, "data"), column) is None


def test_what_would_have_been_from_zero_on(from_zero):
    """Numbers above zero move as they truly would, onto zero too, and zero stays where it becomes less."""
    was = censored(*np.random.default_rng(6).normal(size=(3, 60)))
    above = np.flatnonzero(was["y"] > 0.2)[:20]
    errors = []
    for i in above:
        other = was["t"][i] + 0.8
        found = from_zero.counterfactual({name: column[i] for name, column in was.items()}, {"t": other})["y"]
        errors.append(found - (was["y"][i] + 0.8))
    assert np.sqrt(np.mean(np.square(errors))) < 0.15
    assert from_zero.counterfactual({"z": 0.0, "t": 1.0, "y": 0.4}, {"t": -1.0})["y"] == 0
    assert from_zero.counterfactual({"z": 0.0, "t": 0.5, "y": 0.0}, {"t": -1.0})["y"] == 0


def test_what_a_point_would_have_become_is_refused_with_its_ends(from_zero):
    with pytest.raises(InputError, match=r"many rows have 0, .* it may become any number from 0 to 1\.\d") as refusal:
        from_zero.counterfactual({"z": 0.0, "t": -1.0, "y": 0.0}, {"t": 0.5})
    assert "do() gives the distribution" in str(refusal.value)


def test_predictions_are_as_probable_as_they_claim(model):
    """The share of zeros among new rows with gaps, among draws of these and below zero."""
    new = costs(7, 400)
    belief = model.predict({**new, "y": np.full(400, np.nan)}, ["y"])["y"]
    for claimed in (belief.cdf(np.zeros(1)), belief.sample(50, rng=0) == 0):
        assert abs(np.mean(claimed) - np.mean(new["y"] == 0)) < 4 * np.sqrt(0.24 / 400)
    assert belief.cdf([-1e-9]).max() < 1e-6
    assert np.isfinite(belief.mode()).all()


def test_saved_models_answer_the_same(model, tmp_path):
    mm.save(model, tmp_path / "model.mm")
    new = costs(8, 50)
    np.testing.assert_array_equal(mm.load(tmp_path / "model.mm").score(new), model.score(new))


def test_the_shares_of_a_normal_law_seen_from_zero_on(from_zero):
    """p(0 | z, t) = Φ(−.3 − z − t) is not logistic, but close."""
    z, t = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5))
    zero = {"z": z.ravel(), "t": t.ravel(), "y": np.full(25, np.nan)}
    found = np.array([np.mean(each == 0) for each in from_zero.sample(400, zero, rng=0)["y"]])
    assert np.max(np.abs(found - norm.cdf(-0.3 - z - t).ravel())) < 0.17


@pytest.mark.parametrize("step", [0.1, 10.0])
@pytest.mark.parametrize("parents", [("label",), ("x",), ("label", "x")])
def test_rounded_numbers_with_zeros_have_probabilities_that_add_up_to_one(step, parents):
    """What the smooth part rounded to zero was lost, up to a twentieth; zeros were not over the step as others were."""
    rng = np.random.default_rng(77)
    label, x = rng.choice(list("ab"), 500), rng.normal(size=500)
    cost = np.where(rng.random(500) < 0.35, 0, step * np.round((4 if step > 1 else 12) * rng.normal(size=500)))
    model = mm.BayesianNetwork([(name, "cost") for name in parents]).fit({"label": label, "x": x, "cost": cost})
    values = step * np.arange(-400, 401)
    known = {"label": np.full(801, "a"), "x": np.full(801, 0.3)}
    known = {name: known[name] for name in parents}
    shares = step * np.exp(model.score(known | {"cost": values}) - model.score(known))
    assert shares.sum() == pytest.approx(1, abs=2e-3)
    assert shares[400] == pytest.approx(np.mean(cost == 0), abs=0.08)
