"""The pieces of the conditional test against dense formulas and refits."""

import numpy as np
import pytest
import scipy.stats

from meanmap.stats.conditional import statistics
from meanmap.stats.conditional.landmarks import (
    additive_landmarks,
    joint_landmarks,
    median_distance,
    rbf,
    rbf_landmarks,
)
from meanmap.stats.conditional.regression import (
    Basis,
    Fit,
    Linear,
    _gradients,
    along_metric,
    best_fit,
    candidates,
    learned_metric,
    variance_parts,
    variance_ratios,
)
from meanmap.stats.conditional.statistics import LOCAL, Local, Products, linear_share, permuted
from meanmap.stats.conditional.straight import Line, Straight, correlated, together
from meanmap.stats.conditional.streams import Functions, Overlap, Regressions, StreamedFit


def made(n=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    linear = Linear.of(z)
    basis = Basis.of(joint_landmarks(z, 1.0), z, linear)
    targets = np.c_[np.sin(2 * z[:, 0]), z[:, -1] ** 2] + 0.2 * rng.normal(size=(n, 2))
    return z, linear, basis, targets, rng


def hat(fit):
    """H, from its action on the identity."""
    n = len(fit.linear.vectors)
    return np.eye(n) - fit.in_sample(np.eye(n))


def test_landmarks_represent_their_kernel():
    z = np.random.default_rng(0).normal(size=(60, 2))
    landmarks = rbf_landmarks(z, np.eye(2) / 2.5, tolerance=1e-9)
    features = landmarks(z)
    np.testing.assert_allclose(features @ features.T, rbf(z / 2.5, z / 2.5), atol=1e-6)
    expected = np.exp(-0.5 * np.sum((z[:, None] - z) ** 2, axis=2) / 2.5**2)
    np.testing.assert_allclose(rbf(z / 2.5, z / 2.5), expected, atol=1e-12)


def test_additive_functions_leave_out_columns_of_two_values():
    z = np.c_[np.linspace(0, 1, 30), np.arange(30) % 2]
    assert len(additive_landmarks(z)) == 1


def test_the_median_looks_past_ties_and_at_the_whole_range():
    assert median_distance(np.r_[np.zeros(90), np.full(3, 2.0)][:, None]) == 2.0
    ordered = np.linspace(0, 1, 3000)[:, None]
    assert median_distance(ordered) == pytest.approx(1 - np.sqrt(0.5), rel=0.02)


def test_a_fit_is_the_penalised_regression():
    z, linear, basis, targets, _ = made()
    fit = best_fit(linear, [basis], targets)
    shift = (basis.values / fit.shrinkage - basis.values)[0]
    smooth = basis.vectors * np.sqrt(basis.values)
    design = np.c_[np.ones(len(z)), z, smooth]
    penalty = np.diag(np.r_[np.zeros(3), np.full(smooth.shape[1], shift)])
    expected = targets - design @ np.linalg.solve(design.T @ design + penalty, design.T @ targets)
    np.testing.assert_allclose(fit.in_sample(targets), expected, atol=1e-8)


def test_standardised_residuals_have_the_variance_of_the_noise():
    _, linear, basis, _, rng = made(n=25)
    free = Fit(linear, basis, (np.arange(len(basis.values)) < 4).astype(float), 0.0)
    residuals = free.standardised(rng.normal(size=(25, 4000)))
    # The variance of 4000 squares is within five standard errors of itself.
    np.testing.assert_allclose(residuals.var(axis=1), 1, atol=5 * np.sqrt(2 / 4000))


def test_the_score_is_generalised_cross_validation():
    _, linear, basis, targets, _ = made()
    fit = best_fit(linear, [basis], targets)
    smoother = hat(fit)
    n = len(smoother)
    np.testing.assert_allclose(fit.leverages, np.diag(smoother), atol=1e-10)
    assert fit.freedom == pytest.approx(np.trace(smoother))
    residuals = targets - smoother @ targets
    assert fit.score == pytest.approx(np.sum(residuals**2) / n / (1 - np.trace(smoother) / n) ** 2)
    shifts = np.geomspace(2e-6, 20, 29) * basis.values.sum()
    for shift in shifts:
        other = Fit(linear, basis, basis.values / (basis.values + shift), 0.0)
        if other.freedom < 0.7 * n:
            rest = other.in_sample(targets)
            assert fit.score <= np.sum(rest**2) / n / (1 - other.freedom / n) ** 2 + 1e-12


def test_undersmoothing_takes_more_degrees_of_freedom():
    _, linear, basis, targets, _ = made()
    assert best_fit(linear, [basis], targets, 0.3).freedom > best_fit(linear, [basis], targets).freedom


def test_columns_that_repeat_others_count_once():
    z = np.random.default_rng(1).normal(size=(20, 2))
    assert Linear.of(np.c_[z, z[:, 0] - z[:, 1], np.ones(20)]).vectors.shape[1] == 3


def test_given_labels_residuals_are_those_of_group_means():
    rng = np.random.default_rng(6)
    group = rng.integers(0, 3, size=30)
    z = np.eye(3)[group] - np.eye(3)[group].mean(axis=0)
    linear, targets = Linear.of(z), rng.normal(size=(30, 1))
    means = np.array([targets[group == g].mean() for g in range(3)])[group][:, None]
    bases = candidates(z, z, linear)
    assert all(len(basis.values) == 0 for basis in bases)
    np.testing.assert_allclose(best_fit(linear, bases, targets).in_sample(targets), targets - means, atol=1e-12)
    streamed = by_sums(bases[0], z, targets)
    np.testing.assert_allclose(streamed.basis(streamed.functions(z)) @ streamed.weights, means, atol=1e-7)


def test_gradients_are_those_of_finite_differences():
    z, linear, _, targets, _ = made(n=60)
    landmarks = rbf_landmarks(z, np.array([[0.6, 0.1], [0.2, 0.4]]))
    basis = Basis.of((landmarks,), z, linear)
    fit = best_fit(linear, [basis], targets)
    # The fitted function elsewhere: coefficients on landmarks' features and on 1, z.
    energy = fit.shrinkage[:, None] * (basis.vectors.T @ linear.residuals(targets))
    smooth = basis.coordinates @ energy
    straight = np.linalg.lstsq(np.c_[np.ones(60), z], targets - landmarks(z) @ smooth, rcond=None)[0]

    def f(points):
        return landmarks(points) @ smooth + np.c_[np.ones(len(points)), points] @ straight

    for k, gradient in enumerate(_gradients(fit, z, targets)):
        for j in range(2):
            step = np.zeros(2)
            step[j] = 1e-5
            np.testing.assert_allclose(gradient[:, j], (f(z + step) - f(z - step))[:, k] / 2e-5, atol=1e-5)


def test_the_learned_metric_finds_the_direction_that_matters():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(300, 5))
    direction = np.array([1, 1, 0, 0, 1]) / np.sqrt(3)
    targets = (np.sin(2 * z @ direction) + 0.3 * rng.normal(size=300))[:, None]
    linear = Linear.of(z)
    found = learned_metric(z, targets, linear, along_metric(z, np.eye(z.shape[1]), linear))
    (landmarks,) = found.landmarks
    values, vectors = np.linalg.eigh(landmarks.metric @ landmarks.metric.T)
    assert abs(vectors[:, -1] @ direction) > 0.98
    assert values[-1] > 10 * values[-2]
    learned = best_fit(linear, [Basis.of((landmarks,), z, linear)], targets)
    before = best_fit(linear, candidates(z, z, linear), targets)
    assert learned.score < 0.7 * before.score
    assert learned.freedom < before.freedom


@pytest.mark.parametrize("rows", [8, 128])  # four blocks, the last one smaller, and one
def test_the_forms_are_the_definition(rows, monkeypatch):
    monkeypatch.setattr(statistics, "BLOCK", rows)
    rng = np.random.default_rng(3)
    left, right, z = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    local = 1 - LOCAL + LOCAL * rbf(z / median_distance(z), z / median_distance(z))
    whole = (left @ left.T) * (right @ right.T) * local
    signs = np.sign(rng.normal(size=(30, 6))).astype(np.float32)
    expected = [s @ whole @ s / 30 for s in signs.astype(float).T]
    products = Products([(left, right)], [1.0], Local(z))
    np.testing.assert_allclose(products.forms(signs), [expected], rtol=1e-5)
    ratios = rng.uniform(0.5, 2.5, size=30)
    scaled = np.sqrt(ratios[:, None] * ratios) * whole
    value, null = products.bootstrap(ratios, 4000, np.random.default_rng(0))
    assert value == pytest.approx(whole.sum() / 30, rel=1e-5)
    # E εᵀKε = tr K and Var = 2 Σ_{i≠j} K²: 4000 draws, five standard errors of the mean.
    spread = np.sqrt(2 * (np.sum(scaled**2) - np.sum(np.diag(scaled) ** 2))) / 30
    assert abs(null.draws.mean() - np.trace(scaled) / 30) < 5 * spread / np.sqrt(4000)
    assert null.draws.std() == pytest.approx(spread, rel=0.15)
    for kind in ("gamma", "spectral"):
        limit_value, limit = products.limit(kind, ratios, 20_000, np.random.default_rng(1))
        assert limit_value == pytest.approx(value, rel=1e-5)
        assert limit.draws.mean() == pytest.approx(np.trace(scaled) / 30, rel=0.03)
        assert limit.draws.std() == pytest.approx(np.sqrt(2 * np.sum(scaled**2)) / 30, rel=0.06)


@pytest.mark.parametrize("kind", ["gamma", "spectral"])
def test_the_limit_is_the_same_in_blocks_of_any_size(kind, monkeypatch):
    rng = np.random.default_rng(5)
    left, right, z = (rng.normal(size=(40, columns)) for columns in (4, 2, 3))
    straight, found = Straight(left[:, :2] * right, rng.uniform(0.5, 2.5, size=40), 1.0), []
    products = Products([(left, right), (left[:, :1], right)], [0.6, 0.4], Local(z))
    for rows in (9, 40):
        monkeypatch.setattr(statistics, "BLOCK", rows)
        value, law = products.limit(kind, np.linspace(0.5, 2.5, 40), 500, np.random.default_rng(1), straight)
        found.append((value, law.draws.mean(), law.draws.std()))
    np.testing.assert_allclose(*found, rtol=1e-3)


def test_what_is_linear_is_judged_beside_the_kernels():
    """Forms, their limit, and both statistics as one: the harmonic mean of p-values of gamma laws."""
    rng = np.random.default_rng(8)
    left, right = rng.normal(size=(2, 40, 2))
    ratios = rng.uniform(0.5, 2.0, size=40)
    straight = Straight((left[:, :, None] * right[:, None, :]).reshape(40, 4), ratios, 1.0)
    signs = np.sign(rng.normal(size=(40, 5)))
    whole = (left @ left.T) * (right @ right.T)
    scaled = np.c_[np.ones(40), np.sqrt(ratios)[:, None] * signs[:, 1:]]
    expected = [s @ whole @ s / 40 for s in scaled.T]
    np.testing.assert_allclose(straight.forms(np.c_[np.ones(40), signs[:, 1:]]), [expected])
    limit = straight.limit(20_000, np.random.default_rng(0))
    assert limit[0] == pytest.approx(expected[0])
    assert limit[1:].mean() == pytest.approx(ratios @ np.diag(whole) / 40, rel=0.05)

    first, second = rng.gamma(2.0, size=2000), rng.gamma(0.5, size=2000)
    shapes = [(v[1:].mean() ** 2 / v[1:].var(), v[1:].var() / v[1:].mean()) for v in (first, second)]
    one, other = (scipy.stats.gamma.sf(v, a, scale=b) for v, (a, b) in zip((first, second), shapes, strict=True))
    np.testing.assert_allclose(together(first, second), -np.log(1 / (0.3 / one + 0.7 / other)))
    assert np.isfinite(together(np.r_[1e9, first], np.r_[1e9, second])).all()
    np.testing.assert_allclose(together(first, np.zeros(2000)), np.log(0.3 / one + 0.7))


def lines(strength, seed, n=300):
    """Both sides of data whose noise grows with z on both, with `strength` of u in v."""
    z, linear, basis, _, rng = made(n, 1, seed)
    u, v = np.exp(0.4 * z) * rng.normal(size=(2, n, 1))
    fits = [best_fit(linear, [basis], part, charge=1.4) for part in (u, v + strength * u)]
    return [
        Line.of(fit.standardised(part), fit, [basis]) for fit, part in zip(fits, (u, v + strength * u), strict=True)
    ]


def test_the_variance_of_covariances_is_that_of_independent_residuals():
    """Noise that grows on both sides makes it larger than a product of variances, and dependence nothing."""
    found = {0.0: [], 1.0: []}
    for strength, factors in found.items():
        for seed in range(20):
            left, right = lines(strength, seed)
            together, apart = Straight.of(left, right, apart=False), Straight.of(left, right)
            np.testing.assert_allclose(together.products[:, 0], left.columns[:, 0] * right.columns[:, 0])
            np.testing.assert_array_equal(together.ratios, variance_ratios(*_shrunken(left), *_shrunken(right)))
            u, v = left.columns[:, 0] ** 2, right.columns[:, 0] ** 2
            factor = max(left.sizes @ v, u @ right.sizes) / (u @ v)
            np.testing.assert_allclose(apart.ratios, factor * together.ratios)
            factors.append((factor, factor * np.mean(u * v) / (u.mean() * v.mean())))
    # With noise alone the variance is right, and exp(0.64) times a product of two in theory; of v = u + noise half of
    # the squares is dependence.
    factor, product = np.mean(found[0.0], axis=0)
    assert 0.9 < factor < 1.15
    assert product > 1.4
    assert np.mean(found[1.0], axis=0)[0] < 0.75 * factor
    rng = np.random.default_rng(0)
    wide = [Line(rng.normal(size=(300, columns)), left.fit, left.sizes) for columns in (16, 17)]
    assert Straight.of(*wide) is None


def _shrunken(line):
    return line.fit, 1 - line.fit.shrinkage


def test_a_charge_takes_fewer_degrees_of_freedom():
    _, linear, basis, targets, _ = made()
    free, charged = (best_fit(linear, [basis], targets, charge=charge) for charge in (1.0, 1.4))
    assert charged.freedom < free.freedom
    n, rest = 40, charged.in_sample(targets)
    assert charged.score == pytest.approx(np.sum(rest**2) / n / (1 - 1.4 * charged.freedom / n) ** 2)


def test_draws_of_the_limit_of_both_parts_go_together():
    """Draws of the first part are what they are by themselves, and have the covariance of the quadratic forms."""
    rng = np.random.default_rng(9)
    left, right, z = rng.normal(size=(60, 1)), rng.normal(size=(60, 1)), rng.normal(size=(60, 1))
    draws, normal = rng.chisquare(3, size=4000), rng.normal(size=4000) ** 2
    found = correlated(draws, normal, 0.6 * np.sqrt(draws.var() * normal.var()), np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(found), np.sort(draws))
    assert scipy.stats.spearmanr(found, normal)[0] == pytest.approx(0.58, abs=0.06)
    products, straight = Products([(left, right)], [1.0], Local(z)), Straight(left * right, np.ones(60), 1.0)
    # Of one pair both parts are nearly one, so that together they order draws as each alone does.
    value, law = products.limit("gamma", np.ones(60), 4000, np.random.default_rng(2), straight)
    boot, null = products.bootstrap(np.ones(60), 4000, np.random.default_rng(3), straight=straight)
    assert abs(law.pvalue(value) - null.pvalue(boot)) < 0.06


def test_further_pairs_are_added_in_their_share_of_the_size():
    rng = np.random.default_rng(5)
    z = rng.normal(size=(25, 2))
    local = 1 - LOCAL + LOCAL * rbf(z / median_distance(z), z / median_distance(z))
    pairs = [(rng.normal(size=(25, 3)), rng.normal(size=(25, 2))), (rng.normal(size=(25, 2)), rng.normal(size=(25, 4)))]
    first, second = ((left @ left.T) * (right @ right.T) * local for left, right in pairs)
    whole = first + 0.4 * np.linalg.norm(first) / np.linalg.norm(second) * second
    assert np.linalg.norm(whole - first) == pytest.approx(0.4 * np.linalg.norm(first))
    np.testing.assert_allclose(Products(pairs, [1.0, 0.4], Local(z)).block(slice(None)), whole, rtol=1e-5, atol=1e-5)


def test_permuted_products_are_hsic():
    rng = np.random.default_rng(4)
    left, right = (f - f.mean(axis=0) for f in (rng.normal(size=(20, 3)), rng.normal(size=(20, 2))))
    values = permuted(left, right, 5, np.random.default_rng(0))
    assert values[0] == pytest.approx(np.trace(left @ left.T @ right @ right.T) / 20)
    order = np.random.default_rng(0).permutation(20)
    assert values[1] == pytest.approx(np.trace(left @ left.T @ right[order] @ right[order].T) / 20)


def test_the_variance_ratio_is_that_of_dense_matrices():
    z, linear, basis, targets, rng = made()
    other = Basis.of(joint_landmarks(z, 0.5), z, linear)
    first, second = best_fit(linear, [basis], targets), best_fit(linear, [other], targets[:, :1])
    a, b = (np.eye(len(z)) - hat(fit) for fit in (first, second))
    parts = variance_parts(first, 1 - first.shrinkage, second, 1 - second.shrinkage)
    np.testing.assert_allclose(parts[0], np.diag(a @ a.T @ b @ b.T), atol=1e-10)
    np.testing.assert_allclose(parts[1], np.diag(a @ a.T) * np.diag(b @ b.T), atol=1e-10)
    expected = np.sum((a.T @ b) ** 2) / np.sum(parts[1])
    assert parts[0].sum() / parts[1].sum() == pytest.approx(expected)
    # And that is what it says: the variance of Σ (Au)ᵢ(Bv)ᵢ over that with random signs, for noise u and v.
    u, v = rng.normal(size=(2, len(z), 20_000))
    products = (a @ u) * (b @ v)
    truth, flipped = products.sum(axis=0).var(), np.sum(products**2, axis=0).mean()
    assert truth / flipped == pytest.approx(expected, rel=0.06)


def test_the_variance_ratios_of_a_projection():
    _, linear, basis, _, _ = made()
    free = Fit(linear, basis, np.ones(len(basis.values)), 0.0)
    none = np.zeros(len(basis.values))
    # Rows of which the regression leaves a hundredth at most are left as they are.
    wanted = np.where(free.leverages < 0.99, 1 / (1 - free.leverages), 1)
    np.testing.assert_allclose(variance_ratios(free, none, free, none), wanted)


def test_two_rows_that_alone_have_a_label_count_as_one():
    group = np.r_[np.zeros(2), np.ones(18), 2]  # and a row that is alone, of which nothing is left
    z = np.eye(3)[group.astype(int)]
    linear = Linear.of(z)
    basis = candidates(z, z, linear)[0]
    fit = best_fit(linear, [basis], np.random.default_rng(0).normal(size=(21, 1)))
    none = np.zeros(len(basis.values))
    np.testing.assert_allclose(variance_ratios(fit, none, fit, none), [2, 2, *[18 / 17] * 18, 1])


def test_the_linear_share():
    x = np.random.default_rng(5).normal(size=(50, 2))
    x -= x.mean(axis=0)
    assert linear_share(x @ [[1.0, 2.0], [0.0, 1.0]], x) == pytest.approx(1)
    assert linear_share(x, np.zeros((50, 0))) == 0


def by_sums(basis, z, targets, undersmooth=1.0):
    """A regression from sums of products alone."""
    functions = Functions.of(basis, z)
    beside = np.concatenate([functions(z), targets], axis=1)
    products, k = beside.T @ beside, functions.grid.size
    return StreamedFit.of(
        functions, products[:k, :k], products[:k, k:], np.trace(products[k:, k:]), len(z), undersmooth
    )


def test_a_streamed_fit_is_the_fit():
    z, linear, basis, targets, _ = made(n=90)
    fit = best_fit(linear, [basis], targets, 0.5)
    streamed = by_sums(basis, z, targets, 0.5)
    functions = streamed.basis(streamed.functions(z))
    np.testing.assert_allclose(functions.T @ functions, np.eye(functions.shape[1]), atol=1e-6)
    # Functions of z are rounded to 2⁻¹⁶ of their reach.
    np.testing.assert_allclose(streamed.in_sample(functions, targets), fit.in_sample(targets), atol=1e-3)
    np.testing.assert_allclose(streamed.standardised(functions, targets), fit.standardised(targets), atol=1e-3)
    lost = 1 - (1 - streamed.shrinkage) ** 2
    overlap = Overlap(functions.T @ functions, (lost, lost))
    truth, signed = variance_parts(fit, 1 - fit.shrinkage, fit, 1 - fit.shrinkage)
    found = overlap.ratio(float(overlap.kept(functions, functions).sum()), 90)
    assert found == pytest.approx(truth.sum() / signed.sum(), rel=1e-3)


def test_both_sides_are_regressed_from_one_sum():
    z, linear, basis, targets, _ = made(n=90)
    other = Basis.of(joint_landmarks(z, 0.5), z, linear)
    for bases in ((basis, other), (basis, basis), (None, basis)):
        both = Regressions.of(bases, z, {})
        beside = np.concatenate([*(each(z) for each in both.functions), targets], axis=1)
        fits, overlap = both.fits(beside.T @ beside, (1, targets.shape[1] - 1), 90, 0.5)
        parts = targets[:, :1], targets[:, 1:]
        for fit, own, part in zip(fits, bases, parts, strict=True):
            assert (fit is None) == (own is None)
            if fit is not None:
                np.testing.assert_allclose(fit.weights, by_sums(own, z, part, 0.5).weights, atol=1e-6)
        assert (overlap is None) == (None in bases)
        if overlap is not None:
            np.testing.assert_allclose(
                overlap.shared, fits[0].basis(fits[0].functions(z)).T @ fits[1].basis(fits[1].functions(z)), atol=1e-8
            )


def test_squares_of_large_products_do_not_overflow():
    rng = np.random.default_rng(3)
    left, right, z = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    one, large = (
        Products([(size * left, right)], [1.0], Local(z))
        .limit("gamma", np.ones(30), 50, np.random.default_rng(1))[1]
        .draws
        for size in (1.0, 1e12)
    )
    np.testing.assert_allclose(large, 1e24 * one, rtol=1e-4)
