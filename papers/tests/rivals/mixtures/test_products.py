"""Draws from products of mixtures against all components written out, and what is refused."""

import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare

from meanmap.core.errors import InputError, NonFiniteError, ParameterError, ShapeError
from meanmap_papers.rivals.mixtures import Gibbs, Mixtures, Multiscale, product, sample_product
from meanmap_papers.rivals.mixtures import multiscale as multiscale_file
from meanmap_papers.rivals.mixtures.reduction import likelihood_bandwidth, reduced, thumb_bandwidth


def factors(count, components, d=1, products=3, seed=0, width=0.6):
    rng = np.random.default_rng(seed)
    shape = products, count, components
    return Mixtures.of(rng.random(shape), rng.normal(size=(*shape, d)), width**2 * rng.uniform(0.5, 1, (*shape[:2], d)))


def test_the_product_written_out_is_the_product_of_densities():
    few = factors(3, 4, products=2)
    x = np.linspace(-3, 3, 41)[:, None]
    at = lambda y: np.exp(few.log_density(np.asarray(y).reshape(-1, 1)).sum(axis=1))  # noqa: E731
    for e in range(2):
        mass = quad(lambda y, e=e: at([y])[e, 0], -9, 9)[0]
        np.testing.assert_allclose(np.exp(product(few).log_density(x))[e], at(x)[e] / mass, rtol=1e-6)


@pytest.mark.parametrize(("count", "components", "d"), [(2, 6, 1), (3, 5, 2), (4, 4, 1)])
@pytest.mark.parametrize("sampler", [Multiscale(), Gibbs(40), Multiscale(0.01)])
def test_labels_have_the_distribution_of_enumeration(count, components, d, sampler):
    """Chi-square tests, three products each: of 27 p-values the least is below 1e-5 once in 3700 times."""
    # Chains do not find their way between narrow components: Gibbs is asked where they overlap.
    several = factors(count, components, d, width=1.2 if isinstance(sampler, Gibbs) else 0.6)
    size = 8000 if isinstance(sampler, Multiscale) else 3000
    draws = sample_product(several, size, sampler, rng=1)
    code = draws.labels @ components ** np.arange(count)[::-1]
    exact = product(several)
    for e in range(3):
        expected, seen = exact.weights[e] * size, np.bincount(code[e], minlength=components**count)
        often = expected >= 5
        table = np.append(seen[often], seen[~often].sum()), np.append(expected[often], expected[~often].sum())
        assert chisquare(*(column + 1e-9 for column in table)).pvalue > 1e-5
    # The points themselves: means and variances within five standard errors.
    centred = draws.points - exact.mean()[:, None]
    error = centred.mean(axis=1) / np.sqrt(exact.var() / size)
    assert np.abs(error).max() < 5
    assert np.abs((centred**2).mean(axis=1) / exact.var() - 1).max() < 5 * np.sqrt(3 / size)


def test_the_wrong_distribution_fails_the_chi_square():
    """The coarse draws of the paper's rule at ε = .5: the test above can fail."""
    several = factors(2, 6)
    draws = sample_product(several, 8000, Multiscale(0.5), rng=1)
    code = draws.labels @ np.array([6, 1])
    worst = min(
        chisquare(np.bincount(code[e], minlength=36), product(several).weights[e] * 8000).pvalue for e in range(3)
    )
    assert worst < 1e-5


@pytest.mark.parametrize("accuracy", [0.5, 0.1])
def test_the_accuracy_bounds_the_total_variation(accuracy):
    several = factors(2, 16, width=0.3)
    blocks = multiscale_file._blocks(several, accuracy)
    trees, exact = blocks.trees, product(several).weights
    leaves = trees.order.shape[1]
    found = np.zeros((3, 16, 16))
    mass = np.exp(blocks.log_weight + blocks.middle)
    for which, nodes, m in zip(blocks.product, blocks.nodes, mass, strict=True):
        parts = []
        for j, node in enumerate(nodes):
            level = int(np.log2(node + 1))
            width = leaves >> level
            place = slice((node + 1 - 2**level) * width, (node + 2 - 2**level) * width)
            inside = np.zeros(16)
            inside[trees.order[2 * which + j, place]] = trees.weight[2 * which + j, leaves - 1 :][place]
            parts.append(inside / inside.sum())
        found[which] += m * np.outer(*parts)
    found = found.reshape(3, -1) / found.sum(axis=(1, 2))[:, None]
    distance = np.abs(found - exact).sum(axis=1) / 2
    assert (distance <= blocks.error).all() and (blocks.error <= accuracy).all()  # noqa: PT018
    assert distance.max() > 0
    assert len(blocks.product) < 3 * 256


def test_far_apart_factors_with_zero_weights_flat_ones_and_single_components():
    means = np.array([[[0.0], [1.0], [50.0]], [[60.0], [61.0], [0.0]], [[5.0], [5.0], [5.0]]])[None]
    weights = np.array([[[0.5, 0.5, 0], [0.2, 0.8, 0], [1, 0, 0]]])
    several = Mixtures.of(weights, means, np.array([[[0.01], [0.01], [np.inf]]]))
    exact = product(several)
    for sampler in (Multiscale(), Gibbs(20), Multiscale(0.1)):
        draws = sample_product(several, 500, sampler, rng=0)
        assert (draws.labels[0, :, :2] == [1, 0]).all()  # exp(−86000) is no number, but 59 is less than 61
        assert abs(draws.points.mean() - exact.mean()[0, 0]) < 0.02
    one = sample_product(several[:, :1], 400, Multiscale(), rng=0)
    assert 0.35 < one.labels.mean() < 0.65


def test_fewer_blocks_than_needed_are_still_exact_or_say_so(monkeypatch):
    several = factors(2, 32, products=1, width=0.05)
    exact = product(several)
    monkeypatch.setattr(multiscale_file, "MOST_BLOCKS", 20)
    draws = sample_product(several, 4000, Multiscale(), rng=0)
    assert draws.accuracy[0] == 0
    assert abs(draws.points.mean() - exact.mean()[0, 0]) < 5 * np.sqrt(exact.var()[0, 0] / 4000)
    assert 0.1 < sample_product(several, 10, Multiscale(0.1), rng=0).accuracy[0] <= 1
    monkeypatch.setattr(multiscale_file, "MOST_ROUNDS", 1)
    assert 0 < sample_product(several, 4000, Multiscale(), rng=0).accuracy[0] < 1


def test_a_product_with_a_gaussian():
    several = factors(1, 5, products=2)[:, 0]
    linear, precision = np.array([[0.7], [-0.4]]), np.array([[2.0], [-0.5]])
    x = np.linspace(-2, 2, 9)[:, None]
    ratio = several.times(linear, precision).log_density(x) - several.log_density(x)
    expected = linear * x[:, 0] - precision * x[:, 0] ** 2 / 2
    np.testing.assert_allclose(ratio - ratio[:, :1], expected - expected[:, :1], atol=1e-10)
    with pytest.raises(ParameterError, match="narrower"):
        several.times(linear, np.full((2, 1), -99.0))


def test_reductions_keep_moments_and_get_better():
    rng = np.random.default_rng(0)
    many = Mixtures.of(rng.random((2, 200)), rng.normal(size=(2, 200, 2)), np.full((2, 2), 0.01))
    x = rng.normal(size=(500, 2))
    gaps = []
    for size in (8, 32, 128):
        few = reduced(many, size)
        assert few.weights.shape == (2, size)
        np.testing.assert_allclose(few.mean(), many.mean(), atol=1e-12)
        np.testing.assert_allclose(few.var(), many.var(), rtol=1e-10)
        gaps.append(np.abs(np.exp(few.log_density(x)) - np.exp(many.log_density(x))).mean())
    assert gaps[0] > gaps[1] > 1.3 * gaps[2]
    assert reduced(many, 200) is many


def test_bandwidth_rules():
    rng = np.random.default_rng(0)
    points = np.stack(
        [rng.normal(size=(300, 1)), np.sign(rng.normal(size=(300, 1))) * 4 + 0.3 * rng.normal(size=(300, 1))]
    )
    equal = np.full((2, 300), 1 / 300)
    thumb, likely = thumb_bandwidth(points, equal), likelihood_bandwidth(points, equal)
    np.testing.assert_allclose(thumb[0], points[0].std() * (4 / 900) ** 0.2)
    assert 0.5 < likely[0, 0] / thumb[0, 0] < 1.6
    assert likely[1, 0] < 0.2 * thumb[1, 0]  # two narrow modes
    half = np.concatenate([np.full((2, 150), 1 / 150), np.zeros((2, 150))], axis=1)
    np.testing.assert_allclose(thumb_bandwidth(points, half), thumb_bandwidth(points[:, :150], equal[:, :150] * 2))
    assert (thumb_bandwidth(np.ones((1, 5, 1)), np.ones((1, 5))) > 0).all()  # collapsed particles
    # The likelihood is that of leaving each point out.
    x, w = points[0, :20], np.full(20, 1 / 20)
    width = likelihood_bandwidth(x[None], w[None])[0]
    score = lambda h: np.mean([Mixtures.of(np.ones(19), np.delete(x, i, 0), h**2).log_density(x[i : i + 1])[0]  # noqa: E731
                               for i in range(20)])  # fmt: skip
    grid = thumb_bandwidth(x[None], w[None])[0] * np.geomspace(0.1, 1.5, 10)[:, None]
    assert max(grid, key=score) == pytest.approx(width)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: Mixtures.of([0.0, 0.0], [[1.0], [2.0]], [1.0]), InputError, "all weights of a mixture are zero"),
        (lambda: Mixtures.of([1.0, -1.0], [[1.0], [2.0]], [1.0]), InputError, "negative weight -1"),
        (lambda: Mixtures.of([1.0, np.nan], [[1.0], [2.0]], [1.0]), NonFiniteError, "not finite"),
        (lambda: Mixtures.of([1.0], [[np.inf]], [1.0]), NonFiniteError, "not finite"),
        (lambda: Mixtures.of([1.0], [[1.0]], [0.0]), ParameterError, "variance 0"),
        (lambda: Mixtures.of([1.0], [1.0], [1.0]), ShapeError, r"shapes \(1,\), \(1,\)"),
        (lambda: Gibbs(0), ParameterError, "iterations is 0"),
        (lambda: Multiscale(1.5), ParameterError, "accuracy is 1.5"),
        (lambda: reduced(factors(1, 3), 0), ParameterError, "size is 0"),
        (lambda: product(factors(9, 6)), InputError, "has 10077696 components"),
        (lambda: sample_product(factors(1, 3)[0], 5, Gibbs()), ShapeError, r"expected \(E, F\)"),
        (
            lambda: sample_product(Mixtures.of([[[1.0]]], [[[[0.0]]]], [[[np.inf]]]), 5, Gibbs()),
            InputError,
            "say nothing",
        ),
        (lambda: thumb_bandwidth(np.ones((3, 1)), np.zeros(3)), InputError, "all zero"),
        (lambda: thumb_bandwidth(np.full((3, 1), np.nan), np.ones(3)), InputError, "not all finite"),
    ],
)
def test_bad_input_is_refused_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_draws_from_many_components_take_no_memory_for_each_draw():
    """They are those of one categorical draw after another."""
    many = factors(1, 20_000, products=2)
    tracemalloc.start()
    draws = many.sample(2000, rng=0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 16 * many.means.nbytes
    generator = np.random.default_rng(0)
    row = np.broadcast_to(many.weights[:, :, None], (2, 1, 2000, 20_000))[:, :, :20]
    levels = generator.random((2, 1, 2000, 1))[:, :, :20] * np.cumsum(row, axis=-1)[..., -1:]
    chosen = np.sum(np.cumsum(row, axis=-1) <= levels, axis=-1)
    expected = np.take_along_axis(many.means, chosen[..., None], axis=-2)
    noise = generator.normal(size=(2, 1, 2000, 1))[:, :, :20] * np.sqrt(many.variance)[..., None, :]
    np.testing.assert_array_equal(draws[:, :, :20], expected + noise)
