"""Coordinates of standard deviations that share what varies, and posteriors along the whole of a ridge."""

import numpy as np
import pytest
from scipy import stats

from meanmap.ep.linear.components import Components, GammaLog, HalfStudent
from meanmap.ep.linear.coordinates import Coordinates

HALF = HalfStudent(3.0, 2.5)


def of(sets, sizes, parameters=("sigma",)):
    scales = tuple(HALF for each in sets for k in each for _ in range(k))
    return Coordinates.of(Components((), sets, scales, (HALF,) * len(parameters)), sizes, parameters)


def test_slopes_come_first_then_few_groups_then_many_then_noise():
    # φ: block 0 (50 groups) intercept and slope with their correlation, block 1 (7 groups), then nu and sigma.
    found = of(((2,), (1,)), (50, 7), ("sigma", "nu"))
    assert found.places == (3, 1, 0, 4)
    assert found.powers == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("parameters", [(), ("sigma",), ("alpha",), ("sigma", "nu")])
def test_there_and_back_with_slopes_and_a_constant_volume(parameters):
    found = of(((2, 1), (1,)), (50, 7), parameters)
    size = 5 + len(parameters)
    for phi in np.random.default_rng(0).normal(0, 3, size=(5, size)):
        psi = found.split(phi)
        np.testing.assert_allclose(found.joined(psi), phi, atol=1e-12)
        slopes = found.slopes(psi)
        step = 1e-6
        moved = (found.joined(psi + step * np.eye(size)) - found.joined(psi - step * np.eye(size))).T / (2 * step)
        np.testing.assert_allclose(slopes, moved, atol=1e-7)
        np.testing.assert_allclose(np.linalg.slogdet(slopes)[1], found.log_volume, atol=1e-10)
    many = np.random.default_rng(1).normal(0, 30, size=(4, size))
    np.testing.assert_allclose(found.joined(found.split(many)), many, atol=1e-9)


def test_the_whole_is_the_root_of_all_squares():
    found = of(((1,),), (9,), ("alpha",))
    psi = found.split(np.log([0.3, 4.0]))
    np.testing.assert_allclose(psi, [np.log(0.3 * 2), np.log(0.3**2 + 1 / 4) / 2])


def test_nothing_to_split_stays():
    components = Components((), (), (), (GammaLog(2.0, 0.1),))
    phi = np.array([0.7])
    found = Coordinates.of(components, (), ("nu",))
    assert found.split(phi) == found.joined(phi) == phi
    assert found.log_volume == 0


@pytest.mark.parametrize(("rows", "seed"), [(200, 0), (40, 1), (2000, 2)])
def test_one_row_a_group_has_the_shape_of_a_quarter_circle(rows, seed):
    """sd(g)² + sigma² is known and no more: on a grid both end where the whole ends; upper ends were 1.2 times that."""
    pytest.importorskip("formulae")
    from meanmap.ep.linear import fit

    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = 1 + 0.5 * x + 1.5 * rng.normal(size=rows)
    found = fit("y ~ x + (1 | g)", {"x": x, "y": y, "g": np.arange(rows)})
    table = found.to_frame()
    unit, design = y.std(), np.column_stack([np.ones(rows), x - x.mean()])
    wide = np.diag([(2.5 * unit) ** 2, (2.5 * unit / x.std()) ** 2])
    # y − mean(y) is N(0, v I + X wide Xᵀ): its likelihood by v alone, from the part in the span of X and the rest.
    values, vectors = np.linalg.eigh(np.linalg.qr(design)[1] @ wide @ np.linalg.qr(design)[1].T)
    inside = ((y - y.mean()) @ np.linalg.qr(design)[0] @ vectors) ** 2
    left = ((y - y.mean()) ** 2).sum() - inside.sum()
    line = (np.arange(1500) + 0.5) * 3 * unit / 1500
    total = line[:, None] ** 2 + line**2
    height = -(rows - 2) / 2 * np.log(total) - left / total / 2
    for value, square in zip(values, inside, strict=True):
        height -= np.log(total + value) / 2 + square / (total + value) / 2
    prior = stats.t.logpdf(line / (2.5 * unit), 3)
    height += prior[:, None] + prior
    share = np.exp(height - height.max()).sum(1)
    share /= share.sum()
    mean = share @ line
    exact = [mean, np.sqrt(share @ (line - mean) ** 2), *np.interp([0.025, 0.975], np.cumsum(share), line)]
    for name in ("sd(Intercept | g)", "sigma"):
        np.testing.assert_allclose(table.loc[name], exact, atol=0.05 * exact[1])
    (note,) = found.report.notes
    assert note == (
        "each group of 'g' has one row: the data identify only sd(Intercept | g)² + sigma², and the priors decide "
        "how much of it belongs to each"
    )
    drawn = found.draws(20_000, rng=0)
    np.testing.assert_allclose(drawn.quantile(0.975)[["sigma", "sd(Intercept | g)"]], exact[3], rtol=0.02)
