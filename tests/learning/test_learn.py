import re
from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import meanmap as mm
from meanmap.core.errors import (
    ColumnError,
    EmptyError,
    InputError,
    KindError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from meanmap.core.language import at_command_line
from meanmap.kernels import RBF, Laplace, Matern, OnColumns
from meanmap.kernels.terms import terms_of
from meanmap.learning import log_pseudolikelihood
from meanmap.learning.doubts import data_doubts, mode_doubts, unseen_columns
from meanmap.learning.held_out import held_out
from meanmap.learning.hyperparameters import Hyperparameters
from meanmap.learning.learn import MOST_POINTS

X = np.random.default_rng(0).normal(size=(120, 2))


def grid_of_normals(rng, n, ratio, spacing=10.0):
    """Nine normals on a grid, their covariance with eigenvalues (1, ratio) turned by 45 degrees."""
    centres = spacing * np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(-1, 2)
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    return centres[rng.integers(9, size=n)] + (rng.normal(size=(n, 2)) * np.sqrt([1, ratio])) @ turn.T


@pytest.mark.slow
def test_with_little_noise_the_learned_lengthscale_resolves_nothing():
    """As the help says: on the paper's grids .86 with noise 1, .54 with .1, and 54 with .05."""
    rng = np.random.default_rng(9204)
    x = np.concatenate([grid_of_normals(rng, 900, ratio) for ratio in (1.0, 2.0)])
    found = [float(mm.learn_kernel(x, landmarks=90, noise=noise, rng=0).kernel.lengthscale) for noise in (1, 0.1, 0.05)]
    np.testing.assert_allclose(found, [0.86, 0.54, 54], rtol=0.1)


def test_the_grid_of_normals_has_two_modes_with_the_median_between():
    """Figure 2D of Flaxman et al. (2016): about .85 within the clusters, and a second mode beyond the median."""
    rng = np.random.default_rng(1)
    x = np.concatenate([grid_of_normals(rng, 900, 1.0), grid_of_normals(rng, 900, 4.0)])
    fit = mm.learn_kernel(x, rng=0)
    scales = [float(mode.kernel.lengthscale) for mode in fit.modes]
    assert 0.75 < scales[0] < 1.05
    assert scales[0] < mm.median_heuristic(x, rng=0) < scales[1]
    assert fit.modes[0].share == 1.0
    assert fit.modes[0].spread[0] < 0.1
    assert fit.report.converged
    assert fit.kernel is fit.modes[0].kernel
    assert "2%" in str(fit) or "1%" in str(fit) or "3%" in str(fit)


def test_modes_are_local_maxima_of_the_pseudolikelihood():
    x, z = X[:100], X[100:]
    unit = np.sqrt(x.var(axis=0).mean())
    fit = mm.learn_kernel(x, landmarks=z, noise=0.7)
    for mode in fit.modes:
        scale = mode.kernel.lengthscale / unit
        top = log_pseudolikelihood(RBF(scale), x / unit, z / unit, noise=0.7)
        assert mode.objective == pytest.approx(top, abs=1e-6)
        for factor in (0.98, 1.02):
            assert log_pseudolikelihood(RBF(factor * scale), x / unit, z / unit, noise=0.7) < top


def test_the_order_of_the_points_does_not_matter():
    x, z = X[:100], X[100:]
    first = mm.learn_kernel(x, landmarks=z)
    second = mm.learn_kernel(x[::-1], landmarks=z)
    assert first.kernel.lengthscale == pytest.approx(second.kernel.lengthscale, rel=1e-3)


def test_a_seed_repeats_the_fit():
    first = mm.learn_kernel(X)
    again = mm.learn_kernel(X, rng=first.seed)
    assert first.kernel.lengthscale == again.kernel.lengthscale


@pytest.mark.parametrize(
    "settings",
    [{}, {"score": "held-out"}, {"width": 1.5}, {"kernel": Matern(smoothness=1.5)}],
    ids=["", "held out", "width", "matern"],
)
def test_units_do_not_matter(settings):
    fit = mm.learn_kernel(X, landmarks=20, draws=1, rng=0, **settings)
    for unit in (1e-6, 1e6):
        if "width" in settings:
            settings = {"width": 1.5 * unit}
        scaled = mm.learn_kernel(X * unit, landmarks=20, draws=1, rng=0, **settings)
        assert scaled.kernel.lengthscale == pytest.approx(unit * fit.kernel.lengthscale, rel=1e-6)
        assert scaled.objective == pytest.approx(fit.objective, rel=1e-9)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_modes_of_a_matern_kernel_are_local_maxima_of_the_pseudolikelihood(smoothness):
    x, z = X[:100], X[100:]
    unit = np.sqrt(x.var(axis=0).mean())
    fit = mm.learn_kernel(x, Matern(7.0, smoothness), landmarks=z)
    assert isinstance(fit.kernel, Matern)
    assert fit.kernel.smoothness == smoothness
    assert not fit.modes[0].at_bound
    for mode in fit.modes:
        at = [f * mode.kernel.lengthscale / unit for f in (0.98, 1.0, 1.02)]
        below, top, above = (log_pseudolikelihood(Matern(s, smoothness), x / unit, z / unit) for s in at)
        assert mode.objective == pytest.approx(top, abs=1e-6)
        assert top > max(below, above)


@pytest.mark.slow
def test_lengthscales_of_a_matern_kernel_are_learned_by_column():
    factors = np.array([1.0, 1e3])
    fits = [mm.learn_kernel(X * f, Matern(np.ones(2)), landmarks=20, draws=1, rng=0) for f in (1.0, factors)]
    np.testing.assert_allclose(fits[1].kernel.lengthscale, factors * fits[0].kernel.lengthscale, rtol=1e-4)
    one = mm.learn_kernel(X, Matern(), landmarks=20, draws=1, rng=0)
    assert np.ndim(one.kernel.lengthscale) == 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"width": "learn"}], ids=["", "width"])
def test_one_lengthscale_per_column_follows_their_units(settings):
    factors = np.array([1.0, 1e6])
    settings = {"landmarks": 20, "draws": 1, "rng": 0, **settings}
    fits = [mm.learn_kernel(X * f, RBF(np.ones(2)), **settings) for f in (1.0, factors)]
    np.testing.assert_allclose(fits[1].kernel.lengthscale, factors * fits[0].kernel.lengthscale, rtol=1e-4)
    if settings.get("width"):
        np.testing.assert_allclose(fits[1].modes[0].width, factors * fits[0].modes[0].width, rtol=1e-4)


@pytest.mark.slow
def test_a_learned_width_follows_the_unit():
    fits = [mm.learn_kernel(X * unit, landmarks=20, draws=1, rng=0, width="learn") for unit in (1.0, 1e6)]
    assert fits[1].modes[0].width == pytest.approx(1e6 * fits[0].modes[0].width, rel=1e-3)
    assert fits[1].kernel.lengthscale == pytest.approx(1e6 * fits[0].kernel.lengthscale, rel=1e-3)


@pytest.mark.slow
def test_a_sum_is_at_least_as_probable_as_one_kernel():
    x, z = X[:100], X[100:]
    one = mm.learn_kernel(x, landmarks=z)
    fit = mm.learn_kernel(x, RBF() + RBF(), landmarks=z)
    terms = [(float(term.weight), term.factors[0].kernel) for term in terms_of(fit.kernel)]
    assert sum(weight for weight, _ in terms) == pytest.approx(2.0)
    assert fit.kernel.diag(X[:1])[0] == pytest.approx(2.0)
    unit = np.sqrt(x.var(axis=0).mean())
    members = [weight * RBF(one.lengthscale / unit) for weight, one in terms]
    measured = log_pseudolikelihood(members[0] + members[1], x / unit, z / unit)
    assert fit.objective == pytest.approx(measured, abs=1e-3)
    # One kernel is the sum with both lengthscales equal, of twice the amplitude.
    single = RBF(one.kernel.lengthscale / unit)
    assert fit.objective >= log_pseudolikelihood(single + single, x / unit, z / unit) - 1e-6


KINDS = {
    "sum": RBF() + Matern(),
    "by column": RBF(np.ones(2)) + Matern(np.ones(2), 1.5),
    "two": Matern(smoothness=1.5) + Matern(),
    "product": RBF() * Matern(),
    "columns": OnColumns(RBF(), [1]) * OnColumns(Matern(), [0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", KINDS)
def test_the_mode_of_sums_and_products_is_a_maximum(form):
    """In the scaled sample: no lengthscale 5% shorter or longer is better, but at the bounds."""
    x, z = X[:100], X[100:]
    fit = mm.learn_kernel(x, KINDS[form], landmarks=z, rng=0)
    d, own = 2, form in ("by column", "columns")
    what = Hyperparameters.of(KINDS[form], d, False)
    units = x.std(axis=0) if own else np.full(d, np.sqrt(x.var(axis=0).mean()))
    on = [1, 0] if form == "columns" else [0, 1]
    vector = what.rescaled(fit.modes[0].vector, 1 / units[on])

    def value(vector):
        return log_pseudolikelihood(what.kernel(vector), x / units, z / units)

    assert value(vector) == pytest.approx(fit.objective, abs=1e-6)
    for step in np.eye(len(vector)) * 0.05:
        for moved in (vector + step, vector - step):
            assert value(moved) < fit.objective + 1e-6 or fit.modes[0].at_bound


@pytest.mark.slow
def test_a_sum_with_a_matern_kernel_beats_its_parts_on_new_samples():
    """Dense clusters within a wide cloud need two lengthscales: by two standard errors over fresh samples."""
    rng = np.random.default_rng(11)

    def sample(n):
        wide, centres = rng.normal(size=(n, 1)) * 10, rng.integers(-1, 2, (n, 1)) * 8.0
        return np.where(rng.random((n, 1)) < 0.5, wide, centres + 0.2 * rng.normal(size=(n, 1)))

    x = sample(400)
    forms = {"sum": 0.5 * RBF() + 0.5 * Matern(), "RBF": RBF(), "Matern": Matern()}
    kernels = {name: mm.learn_kernel(x, form, landmarks=40, rng=0).kernel for name, form in forms.items()}
    fresh = [(sample(200), sample(40)) for _ in range(20)]
    scores = {
        name: np.array([log_pseudolikelihood(kernel, *pair) for pair in fresh]) for name, kernel in kernels.items()
    }
    for name in ("RBF", "Matern"):
        gains = scores["sum"] - scores[name]
        assert gains.mean() > 2 * gains.std(ddof=1) / np.sqrt(len(gains))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["by column", "columns"])
def test_kernels_with_matern_factors_follow_the_units_of_columns(form):
    factors = np.array([1.0, 1e3])
    fits = [mm.learn_kernel(X * f, KINDS[form], landmarks=20, draws=1, rng=0) for f in (1.0, factors)]
    z = X[:5]
    np.testing.assert_allclose(fits[1].kernel(z * factors), fits[0].kernel(z), rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sum", "product"])
def test_functions_that_take_a_learned_kernel_take_sums_and_products(form):
    y = np.column_stack([np.sin(2 * X[:, 0]), X[::-1, 1]])
    kernel = mm.learn_kernel(X, KINDS[form], landmarks=20, draws=1, rng=0).kernel
    assert mm.two_sample_test(X, 2 * X, kernel, rng=0).pvalue < 0.05
    assert mm.independence_test(X, y, kernel=kernel, rng=0).pvalue < 0.05
    assert "x0 — x1" in str(mm.pc(np.column_stack([X[:, 0], y[:, 0]]), kernel=kernel, rng=0))
    features = mm.estimators.LearnedFeatures(KINDS[form], random_state=0).fit(X)
    np.testing.assert_allclose(features.transform(X) @ features.transform(X).T, features.kernel_(X), atol=1e-2)


def test_named_columns_of_a_table_are_learned():
    table = {"age": X[:, 0], "height": X[:, 1]}
    settings = {"landmarks": 20, "draws": 1, "rng": 0}
    fit = mm.learn_kernel(table, OnColumns(RBF(), "height") * OnColumns(RBF(), "age"), **settings)
    one = mm.learn_kernel(X, RBF(np.ones(2)), **settings)
    scales = [float(member.kernel.lengthscale) for member in fit.kernel.members]
    np.testing.assert_allclose(scales[::-1], one.kernel.lengthscale, rtol=1e-3)
    np.testing.assert_allclose(fit.kernel(table), one.kernel(X), rtol=1e-3)
    assert mm.two_sample_test(table, table, fit.kernel, rng=0).pvalue > 0.5
    embedding = mm.embeddings.posterior_embedding(table, fit.kernel)
    np.testing.assert_allclose(embedding.mean(table), fit.kernel.mean(table), atol=0.05)


@pytest.mark.slow
def test_the_width_of_the_base_measure_is_learned():
    x, z = X[:100] - X[:100].mean(axis=0), X[100:]
    unit = np.sqrt(x.var(axis=0).mean())
    fit = mm.learn_kernel(x, landmarks=z, width="learn")
    width, kernel = fit.modes[0].width, RBF(fit.kernel.lengthscale / unit)
    best = log_pseudolikelihood(kernel, x / unit, z / unit, width=width / unit)
    assert fit.objective == pytest.approx(best, abs=1e-6)
    for factor in (0.7, 1.4):
        assert log_pseudolikelihood(kernel, x / unit, z / unit, width=factor * width / unit) < best
    fixed = mm.learn_kernel(x, landmarks=z, width=width)
    assert fixed.kernel.lengthscale == pytest.approx(fit.kernel.lengthscale, rel=0.01)


def test_held_out_points_are_predicted_as_by_a_density_estimate():
    x = np.random.default_rng(2).normal(size=(15, 2))
    for kernel in (RBF([0.5, 1.0]), 0.3 * RBF(0.4) + 2.0 * RBF(1.0)):
        scales = [(term.weight, np.ones(2) * term.factors[0].kernel.lengthscale) for term in terms_of(kernel)]
        mass = sum(weight * 2 * np.pi * scale.prod() for weight, scale in scales)
        expected = sum(np.log(kernel(x[[i]], np.delete(x, i, axis=0)).mean() / mass) for i in range(15))
        padded = np.concatenate([x, np.zeros((3, 2))])
        with jax.enable_x64(True):
            found = float(held_out(kernel, padded, np.arange(18) < 15))
        assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
def test_held_out_points_under_a_matern_kernel_are_those_of_a_density(smoothness):
    x = np.random.default_rng(2).normal(size=(15, 2))
    kernel = Matern([0.5, 1.0], smoothness)
    polar = scipy.integrate.quad(lambda r: 2 * np.pi * r * Matern(1.0, smoothness)([[0.0]], [[r]])[0, 0], 0, 40)[0]
    expected = sum(np.log(kernel(x[[i]], np.delete(x, i, axis=0)).mean() / (0.5 * polar)) for i in range(15))
    with jax.enable_x64(True):
        found = float(held_out(kernel, np.concatenate([x, np.zeros((3, 2))]), np.arange(18) < 15))
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", [RBF([0.5, 1.0]) * Matern(0.8, 1.5), 0.3 * RBF(0.4) + Matern(1.0, 0.5)])
def test_held_out_points_under_sums_and_products_are_those_of_a_density(kernel):
    x = np.random.default_rng(2).normal(size=(15, 2))
    axis = np.arange(-30.0, 30.0, 0.05) + 0.02
    mass = sum(kernel([[0.0, 0.0]], np.column_stack([np.full_like(axis, a), axis])).sum() for a in axis) * 0.05**2
    expected = sum(np.log(kernel(x[[i]], np.delete(x, i, axis=0)).mean() / mass) for i in range(15))
    with jax.enable_x64(True):
        found = float(held_out(kernel, np.concatenate([x, np.zeros((3, 2))]), np.arange(18) < 15))
    assert found == pytest.approx(expected, rel=1e-4)


def test_held_out_lengthscales_are_those_of_density_estimates():
    """For a normal sample the best density estimate has lengthscale (4/3n)^{1/5} (Silverman 1986)."""
    x = np.random.default_rng(3).normal(size=1000)
    fit = mm.learn_kernel(x, score="held-out")
    assert fit.kernel.lengthscale == pytest.approx((4 / 3000) ** 0.2, rel=0.3)
    assert fit.objective / 1000 == pytest.approx(-scipy.stats.norm.entropy(), abs=0.06)


def test_many_rows_are_subsampled():
    x = np.random.default_rng(4).normal(size=50_000)
    fit = mm.learn_kernel(x, rng=0, draws=1)
    assert fit.report.counts == {"points": 2000, "landmarks": 200, "draws of landmarks": 1}
    pieces = (x[i : i + 500] for i in range(0, 5000, 500))
    assert mm.learn_kernel(pieces, rng=0, draws=1, landmarks=200).report.counts["points"] == 2000


def test_doubts_are_said_in_words():
    rng = np.random.default_rng(5)
    assert any(
        "discrete" in note for note in mm.learn_kernel(rng.poisson(3.0, 200).astype(float), draws=1, rng=0).report.notes
    )
    far = np.r_[rng.normal(size=200), 100.0]
    assert any("outliers" in note for note in mm.learn_kernel(far, draws=1, rng=0).report.notes)
    wide = rng.normal(size=(200, 6))
    assert any("times the median distance" in note for note in mm.learn_kernel(wide, draws=1, rng=0).report.notes)
    assert not mm.learn_kernel(X, draws=1, rng=0).report.notes
    # With little noise the longest lengthscale wins, whatever the data.
    bounded = mm.learn_kernel(X, noise=1e-6, draws=1, rng=0)
    assert bounded.modes[0].at_bound
    assert not bounded.report.converged
    assert any("end of the search range" in note for note in bounded.report.notes)


@pytest.mark.parametrize("form", [RBF(), 0.5 * RBF() + 0.5 * Matern()], ids=["one kernel", "a sum"])
def test_a_column_that_the_common_lengthscale_cannot_see_is_named(form):
    table = {"share": X[:, 0] / X[:, 0].std(), "income": 1e4 * X[:, 1]}
    (note,) = mm.learn_kernel(table, form, draws=1, rng=0).report.notes
    assert "standard deviation of share is less than a fifth" in note
    assert note.endswith("the kernel hardly depends on it: give it one per column, such as mm.kernels.RBF(np.ones(2)).")
    with at_command_line():
        assert unseen_columns(RBF(6.0), X[:, :1] * [1.0, 9.0], ("a", "b"))[0].endswith("on it: add --each.")
    assert not unseen_columns(RBF(1e3), X, ("a", "b"))  # of all columns nothing is seen, which another note says
    assert not mm.learn_kernel(table, RBF(np.ones(2)), draws=1, rng=0).report.notes


def test_how_far_draws_agree_about_a_mode_is_said_in_words():
    fit = mm.learn_kernel(X, rng=0)
    assert re.search(r"objective -[\d.]+, lengthscale ±\d+% between draws, the highest mode in \d+% of draws", str(fit))
    assert "draws" not in str(mm.learn_kernel(X, rng=0, draws=1)).split("\n")[1]


def test_a_second_group_of_rows_is_not_called_outliers():
    """Advice to trim is for isolated values: a second mode is part of the density."""
    rng = np.random.default_rng(7)
    main = rng.normal(size=475)

    def said(*far: np.ndarray | float, of: np.ndarray = main) -> list[str]:
        return data_doubts(np.hstack([of, *map(np.atleast_1d, far)])[:, None], ("x",))

    (group,) = said(30 + rng.normal(size=25))
    assert group.startswith("25 values of x (5% of the rows) lie close together near 2")
    assert "Trim" not in group
    assert "lengthscales learned from each group alone" in group
    both = said(30 + rng.normal(size=25), -400.0, 900.0)
    assert [("group of rows" in each, "Trim" in each) for each in both] == [(True, False), (False, True)]
    assert both[1].startswith("2 values of x lie more than 10 robust standard deviations away")
    assert len(said(30 + rng.normal(size=10), -60 + rng.normal(size=10))) == 2
    assert ["Trim" in each for each in said(30 + 0.1 * rng.normal(size=3))] == [True]  # .6% of the rows
    tails = [rng.standard_cauchy(1000) for _ in range(100)] + [rng.lognormal(sigma=2, size=1000) for _ in range(100)]
    assert sum("group of rows" in each for tail in tails for each in said(of=tail)) <= 6


def test_a_table_is_told_by_its_columns():
    table = {"age": np.arange(20) % 3.0, "height": np.random.default_rng(6).normal(size=20)}
    assert any(note.startswith("age takes 3 values") for note in mm.learn_kernel(table, draws=1, rng=0).report.notes)
    with pytest.raises(ColumnError, match="age of x is constant"):
        mm.learn_kernel({**table, "age": np.ones(20)})


def test_the_profile_is_drawn():
    axes = mm.learn_kernel(X, draws=2, rng=0).plot()
    assert axes.get_xlabel() == "lengthscale"
    assert len(axes.lines) >= 4


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((X, Laplace(1.0)), {}, KindError, "expected RBF, Matern, products of RBF with one Matern"),
        ((X, RBF() * RBF()), {}, KindError, "one RBF kernel for them"),
        ((X, Matern() * Matern()), {}, KindError, "at most one Matern factor"),
        ((X, RBF() * (RBF() + Matern())), {}, KindError, "a sum of products"),
        ((X, OnColumns(RBF(), [0]) + OnColumns(Matern(), [1])), {}, KindError, "fall off along every column"),
        ((X, OnColumns(RBF(), [0]) * Matern()), {}, KindError, "OnColumns for each kernel, or for none"),
        ((X, OnColumns(RBF(), ["age"])), {}, ColumnError, "x has no column 'age'"),
        ((X, RBF(np.ones(3))), {}, ShapeError, "3 lengthscales for 2 columns"),
        ((X,), {"landmarks": 1}, ShapeError, "1 landmarks for 2 columns"),
        ((X,), {"landmarks": 1.5}, ParameterError, "a share between 0 and 1"),
        ((X,), {"landmarks": 500}, ParameterError, "at most 120, the number of points"),
        ((X,), {"landmarks": np.ones((5, 3))}, ShapeError, "3 columns and x has 2"),
        ((X,), {"noise": -1.0}, ParameterError, "above 0"),
        ((X,), {"width": "wide"}, ParameterError, "'learn'"),
        ((X,), {"width": 0.0}, ParameterError, "above 0"),
        ((X,), {"width": 1.0, "score": "held-out"}, ParameterError, "leave it out"),
        ((X,), {"draws": 0}, ParameterError, "at least 1"),
        ((X,), {"score": "likelihood"}, ParameterError, "held-out"),
        ((X[:5],), {}, EmptyError, "at least 10"),
        ((np.full((20, 1), 3.0),), {}, ColumnError, "constant"),
        ((np.c_[X, X.sum(axis=1)],), {}, ColumnError, "linear combination"),
        ((np.array(["a", "b"] * 10),), {}, KindError, "expected numbers"),
        ((X * np.nan,), {}, InputError, "no observed values"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        mm.learn_kernel(*arguments, **settings)


def test_rows_that_were_not_looked_at_are_told(monkeypatch):
    monkeypatch.setitem(MOST_POINTS, "pseudolikelihood", 60)
    x = np.random.default_rng(0).normal(size=(100, 1))
    for data, said in ((x, "60 of 100 rows, drawn at random."), (iter([x]), "the first 60 rows of the iterator.")):
        assert f"the kernel was learned from {said}" in mm.learn_kernel(data, draws=2, rng=0).report.notes
    assert not any("was learned from" in note for note in mm.learn_kernel(x[:60], draws=2, rng=0).report.notes)


@pytest.mark.parametrize("factor", [1e-200, 1e-310])
def test_columns_whose_squares_vanish_are_refused(factor):
    with pytest.raises(NonFiniteError, match=r"a column of x varies by .* only: .* divide each column"):
        mm.learn_kernel(X * factor)


def test_columns_of_arrays_have_one_name():
    x = np.c_[X[:, 0], np.arange(len(X)) % 3.0]
    fit = mm.learn_kernel(x, OnColumns(RBF(), "x0") * OnColumns(RBF(), "x1"), draws=1, rng=0)
    assert fit.kernel(x).shape == (len(x), len(x))
    assert any(note.startswith("x1 takes 3 values") for note in fit.report.notes)
    with pytest.raises(ColumnError, match=r"x has no column 'column 0'; it has 'x0', 'x1'"):
        mm.learn_kernel(x, OnColumns(RBF(), "column 0"))
    with pytest.raises(ColumnError, match="x has no column 5; it has 2, from 0"):
        mm.learn_kernel(x, OnColumns(RBF(), 5))


def test_columns_that_a_kernel_leaves_out_are_noted():
    table = {"height": X[:, 0], "age": X[:, 1]}
    (note,) = mm.learn_kernel(table, OnColumns(RBF(), "height"), draws=1, rng=0).report.notes
    assert note == "the kernel is on height alone: age is left out."


def test_terms_with_equal_lengthscales_are_noted():
    fit = mm.learn_kernel(X, RBF() + RBF(), draws=1, rng=0)
    twice = replace(fit.modes[0], kernel=0.5 * RBF(2.0) + 1.5 * RBF(2.01))
    assert any("are one kernel" in note for note in mode_doubts([twice], X, "held-out", 0))
    other = replace(fit.modes[0], kernel=0.5 * RBF(2.0) + 1.5 * Matern(2.0))
    assert not any("are one kernel" in note for note in mode_doubts([other], X, "held-out", 0))
