"""Conditional densities: the closed form against quadrature, real data, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp

from meanmap.core.errors import ColumnError, EmptyError, NonFiniteError, ParameterError, ShapeError
from meanmap_papers import rivals
from meanmap_papers.rivals import conditional_density as file
from meanmap_papers.rivals.conditional_density import least_squares_density, nadaraya_watson_density
from meanmap_papers.rivals.conditional_mixture import ConditionalMixture

SERIES = pd.Series(np.arange(9.0))


def forked(n=300, seed=0):
    """v is near u or near −u."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-2, 2, n)
    return u, np.where(rng.random(n) < 0.5, u, -u) + 0.2 * rng.normal(size=n)


def test_coefficients_solve_the_least_squares_of_the_paper(monkeypatch):
    """H by quadrature of the squared kernels, J minimised: without negative parts the solution is (H + λI)⁻¹ h."""
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 8))
    monkeypatch.setattr(file, "U_WIDTHS", (0.5,))
    monkeypatch.setattr(file, "V_WIDTHS", (0.4,))
    monkeypatch.setattr(file, "RIDGES", np.array([0.3]))
    found = least_squares_density(u, v)
    s_u, s_v = found.u_width[0], found.v_width[0]
    np.testing.assert_allclose([s_u, s_v], [0.5 * np.sqrt(2) * u.std(), 0.4 * v.std()])
    kernel = lambda k, x, y: np.exp(-((x - u[k]) ** 2) / (2 * s_u**2) - (y - v[k]) ** 2 / (2 * s_v**2))  # noqa: E731
    h_matrix = np.array(
        [
            [np.mean([quad(lambda y, x=x, k=k, j=j: kernel(k, x, y) * kernel(j, x, y), -9, 9)[0] for x in u])
             for j in range(8)] for k in range(8)
        ]
    )  # fmt: skip
    h = np.array([np.mean(kernel(k, u, v)) for k in range(8)])
    # In units of √π σ_v, the factor that the closed form leaves out.
    h_matrix /= np.sqrt(np.pi) * s_v
    ridge = 0.3 * np.trace(h_matrix) / 8
    alpha = np.maximum(np.linalg.solve(h_matrix + ridge * np.eye(8), h), 0)
    kept = alpha > 0
    np.testing.assert_allclose(np.exp(found.log_coefficients), alpha[kept], rtol=1e-6)
    np.testing.assert_array_equal(found.v_centres[:, 0], v[kept])


@pytest.mark.parametrize("learn", [least_squares_density, nadaraya_watson_density])
def test_the_density_integrates_to_one_anywhere_and_is_the_sum_of_its_components(learn):
    u, v = forked(120)
    found = learn(u, v)
    for at in (-1.5, 2.7, 1e4):  # the last one is far from all data
        mass = quad(lambda y, at=at: np.exp(found.log_density([at], [y])[0]), -30, 30, limit=200, points=(-1.5, 0, 1.5))
        assert abs(mass[0] - 1) < 1e-6
    weights = np.exp(found.log_coefficients) * np.exp(-((0.7 - found.u_centres[:, 0]) ** 2) / 2 / found.u_width**2)
    normal = np.exp(-((1.1 - found.v_centres[:, 0]) ** 2) / 2 / found.v_width**2) / np.sqrt(2 * np.pi) / found.v_width
    assert abs(found.log_density([0.7], [1.1])[0] - np.log(weights @ normal / weights.sum())) < 1e-10
    draws = found.sample(np.full(4000, 1.5), rng=0)
    assert abs(draws.mean() - found.mean([1.5])[0]) < 4 * draws.std() / np.sqrt(4000)
    assert 0.4 < np.mean(draws > 0) < 0.6


def test_held_out_scores_are_those_of_a_slow_loop():
    u, v = forked(40)
    unit = np.array([u.std() * np.sqrt(2)]), np.array([v.std()])
    scores = file._scores(u[:, None], v[:, None], *unit, None, lambda a, b, c: np.ones((a.shape[1], 1)))
    slow = 0.0
    for i in range(file.FOLDS):
        test = np.arange(40) % file.FOLDS == i
        mixture = ConditionalMixture(
            np.zeros((~test).sum()), u[~test, None], v[~test, None], 0.25 * unit[0], 0.4 * unit[1]
        )
        slow += mixture.log_density(u[test], v[test]).sum()
    assert abs(scores[3, 3, 0] - slow) < 1e-9


def test_many_columns_are_measured_as_few_are():
    rng = np.random.default_rng(0)
    x, c, w = rng.normal(size=(7, 5)), rng.normal(size=(4, 5)), rng.uniform(0.5, 2, 5)
    direct = (((x[:, None] - c) / w) ** 2).sum(axis=-1)
    np.testing.assert_allclose(file.scaled_squares(x, c, w), direct, rtol=1e-10)
    u, v = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    found = least_squares_density(u, u + 0.3 * v)
    assert found.sample(u, rng=0).shape == found.mean(u).shape == (60, 2)
    assert found.log_density(u, u).mean() > found.log_density(u, -u).mean() + 1
    logs = found.log_weights(u)
    np.testing.assert_allclose(logsumexp(logs, axis=1), 0, atol=1e-12)


def held_out_gain(u, v, splits=3):
    """Mean held-out log density of least squares less that of Nadaraya-Watson, for each split."""
    gains = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(u))
        test, train = order[: len(u) // 3], order[len(u) // 3 :]
        scores = [
            learn(u[train], v[train]).log_density(u[test], v[test]).mean()
            for learn in (least_squares_density, nadaraya_watson_density)
        ]
        gains.append(scores[0] - scores[1])
    return np.array(gains)


@pytest.mark.slow
def test_real_data_are_more_probable_than_under_nadaraya_watson():
    """Three responses to single measurements; each gain is the mean of ten splits, about two standard errors."""
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    for column, name in ((2, "body mass"), (3, "blood pressure"), (8, "triglycerides")):
        assert held_out_gain(x[:, column], y, 10).mean() > 0, name


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: least_squares_density(np.ones(9), np.ones(8)), ShapeError, "9 points and v has 8"),
        (lambda: least_squares_density(np.arange(3.0), np.arange(3.0)), EmptyError, "there are 3 pairs"),
        (lambda: least_squares_density(np.arange(9.0), np.ones(9)), ColumnError, "column 0 of v is constant"),
        (lambda: least_squares_density(np.arange(9.0), np.r_[np.nan, np.ones(8)]), NonFiniteError, "v"),
        (lambda: least_squares_density(np.arange(9.0), np.arange(9.0), centres=0), ParameterError, "centres is 0"),
        (lambda: nadaraya_watson_density(np.zeros((9, 0)), np.ones(9)), ShapeError, r"u has shape \(9, 0\)"),
        (
            lambda: least_squares_density(SERIES, SERIES.iloc[::-1]),
            ColumnError,
            "in another order",
        ),
        (lambda: least_squares_density(*forked(50)).mean(np.ones((3, 2))), ShapeError, "u has 2 columns; the density"),
        (lambda: least_squares_density(*forked(50)).log_density([1.0], [1.0, 2.0]), ShapeError, "1 points and v has 2"),
    ],
)
def test_bad_input_is_refused_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_one_centre_and_a_constant_column_are_fine():
    u, v = forked(60)
    assert least_squares_density(u, v, centres=1).u_centres.shape == (1, 1)
    both = np.stack([u, np.ones(60)], axis=1)
    assert np.isfinite(least_squares_density(both, v).log_density(both, v)).all()
    assert rivals.least_squares_density is least_squares_density
