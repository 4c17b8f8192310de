"""Grids learned from images: missing pixels, batches, directions, bands, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

import meanmap as mm
from meanmap import bp
from meanmap.bp.engine import settled
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError, ShapeError
from meanmap.graphs import grid

DOWN, RIGHT = np.mgrid[:12, :15]
CLEAN = 10.0 * np.minimum(DOWN, RIGHT)
FAST = bp.Constant(rank=12, atoms=12)


def noisy(seed, image=CLEAN, noise=10.0):
    return image + noise * np.random.default_rng(seed).normal(size=image.shape)


def error(restored, image=CLEAN):
    return np.sqrt(np.mean((restored - image) ** 2))


@pytest.fixture(scope="module")
def model():
    kernel = mm.kernels.RBF(8.0)
    return mm.KernelGrid(kernel=kernel, ridge=1e-3, update=FAST).fit(CLEAN, noisy(0))


def test_noise_is_taken_away(model):
    restored = model.restore(noisy(1))
    assert error(restored.mean()) < 0.6 * 10
    assert error(restored.mode()) < 0.7 * 10
    assert (restored.quantile(0.1) <= restored.quantile(0.9)).all()
    inside = np.abs(restored.mean() - CLEAN) <= 3 * restored.sd() + 1e-9
    assert inside.mean() > 0.9
    belief = restored[3, 4]
    assert abs(float(belief.mean()) - restored.mean()[3, 4]) < 1e-9


def test_beliefs_of_negative_mass_are_refused_without_a_floor(model):
    """Values far from all that was learned: means were outside of all training values, or missing."""
    wild = 1e3 * np.random.default_rng(0).normal(size=(12, 12))
    with pytest.raises(ParameterError, match="with floor=None negative values of messages leave a belief"):
        model.restore(wild, floor=None)
    assert np.isfinite(model.restore(wild).mean()).all()
    with pytest.raises(ParameterError, match=r"with floor=0\.0 messages contradict each other"):
        model.restore(wild, floor=0.0)
    likely = model.restore(noisy(1), floor=None)
    assert error(likely.mean()) < 0.6 * 10
    assert "negative values in messages" in likely.report.notes[0]


def test_missing_pixels_are_filled_from_their_neighbours(model):
    seen = noisy(1)
    seen[5:7, 5:9] = np.nan
    restored = model.restore(seen)
    assert error(restored.mean()[5:7, 5:9], CLEAN[5:7, 5:9]) < 12
    assert restored.sd()[5:7, 5:9].mean() > 1.2 * restored.sd()[8:, 10:].mean()


def test_batches_are_the_single_images(model):
    images = np.stack([noisy(1), noisy(2)])
    together = model.restore(images)
    assert together.mean().shape == (2, 12, 15)
    for image, mean in zip(images, together.mean(), strict=True):
        np.testing.assert_allclose(model.restore(image).mean(), mean, atol=1e-8)
    assert model.restore(images[1][:6, :7]).mean().shape == (6, 7)
    assert "2 of 12 x 15 pixels" in repr(together)


def test_the_answer_is_that_of_the_field_on_the_same_graph(model):
    seen = noisy(3)
    field = model.on(*CLEAN.shape)
    field.likelihoods["x"] = model.likelihood
    beliefs = field.query(observed=seen.ravel())
    np.testing.assert_allclose(beliefs[50].mean(), model.restore(seen).mean().ravel()[50], rtol=1e-9)


def test_single_precision(model):
    seen = noisy(4)
    single = model.restore(seen, dtype=np.float32).mean()
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, model.restore(seen).mean(), atol=0.05)


def test_moments_of_large_values_in_single_precision_lose_no_digits():
    atoms = 1e5 + np.arange(5.0)
    weights = np.array([0.1, 0.2, 0.4, 0.2, 0.1], np.float32)
    variable = SimpleNamespace(atoms=atoms[:, None])
    restored = bp.results.Restored(variable, np.tile(weights, (6, 1, 1)), (2, 3), False, None)
    np.testing.assert_allclose(restored.mean(), 1e5 + 2, rtol=1e-7)
    np.testing.assert_allclose(restored.sd(), np.sqrt(1.2), rtol=1e-6)


def test_a_likelihood_of_the_users_takes_the_place_of_the_learned_one(model):
    restored = model.restore(noisy(5), likelihood=lambda y, x: np.exp(-((y[:, None] - x) ** 2) / 200))
    assert error(restored.mean()) < 6


@pytest.mark.parametrize("neighbours", [4, 8])
def test_the_grid_graph_is_what_networkx_makes(neighbours):
    import networkx

    graph, direction = grid(4, 5, neighbours)
    expected = networkx.grid_2d_graph(4, 5)
    if neighbours == 8:
        expected.add_edges_from(((i, j), (i + 1, j + 1)) for i in range(3) for j in range(4))
        expected.add_edges_from(((i, j + 1), (i + 1, j)) for i in range(3) for j in range(4))
    edges = {frozenset(divmod(int(n), 5) for n in edge) for edge in graph.edges}
    assert edges == {frozenset(edge) for edge in expected.edges}
    steps = [tuple(np.subtract(divmod(int(b), 5), divmod(int(a), 5))) for a, b in graph.edges]
    assert steps == [list(mm.graphs.DIRECTIONS.values())[d] for d in direction]


def test_pairs_of_neighbours_by_band_and_patches():
    image = np.arange(12.0).reshape(4, 3)
    image[0, 0] = np.nan
    pairs = bp.neighbour_pairs([image], 8, bands=2)
    assert pairs["right", 0][0].tolist() == [1, 3, 4]
    assert pairs["down", 1][1].tolist() == [9, 10, 11]
    assert pairs["down left", 0][0].tolist() == [1, 2, 4, 5]
    patch = bp.patches(np.arange(12.0).reshape(4, 3), 3)
    assert patch[1, 1].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert patch[0, 0].tolist() == [0, 0, 1, 0, 0, 1, 3, 3, 4]


@pytest.mark.slow
def test_directions_bands_and_patches_restore_too():
    slope = 4.0 * DOWN + 1.0 * RIGHT
    for options in ({"directions": True}, {"bands": 3}):
        fitted = mm.KernelGrid(**options, update=FAST).fit([slope, slope], [noisy(6, slope), noisy(7, slope)], rng=0)
        assert error(fitted.restore(noisy(8, slope)).mean(), slope) < 6
    expected = 4 if options.get("bands", 1) == 1 else 12
    assert len(fitted.field.learned.directions) == expected
    seen = [bp.patches(noisy(seed, slope), 3) for seed in (6, 7)]
    by_patch = mm.KernelGrid(update=FAST).fit([slope, slope], seen, rng=0)
    assert error(by_patch.restore(bp.patches(noisy(8, slope), 3)).mean(), slope) < 6


def test_images_may_be_nested_lists():
    fit = lambda *images: mm.KernelGrid(update=FAST).fit(*images, rng=0).restore(images[1]).mean()  # noqa: E731
    np.testing.assert_array_equal(fit(CLEAN.tolist(), noisy(0).tolist()), fit(CLEAN, noisy(0)))


@pytest.mark.slow
def test_four_and_eight_neighbours_restore():
    slope = 4.0 * DOWN + 1.0 * RIGHT
    for neighbours in (4, 8):
        model = mm.KernelGrid(neighbours=neighbours, update=FAST)
        fitted = model.fit([slope, slope], [noisy(6, slope), noisy(7, slope)], rng=0)
        assert error(fitted.restore(noisy(8, slope)).mean(), slope) < 4.5  # noise 10; measured 3.4 and 2.7


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda _: mm.KernelGrid(neighbours=6), ParameterError, "expected 4 or 8"),
        (lambda _: mm.KernelGrid(bands=0), ParameterError, "bands is 0"),
        (lambda _: mm.KernelGrid().fit(np.zeros(5)), ShapeError, "expected an image"),
        (lambda _: mm.KernelGrid().fit(np.full((4, 4), np.inf)), InputError, "holds infinity"),
        (lambda _: mm.KernelGrid().fit([]), ShapeError, "expected an image"),
        (lambda _: mm.KernelGrid().fit(np.stack([CLEAN] * 3, -1)), ShapeError, "a colour image"),
        (lambda m: m.restore([CLEAN, CLEAN[:5]]), ShapeError, "different sizes"),
        (lambda m: m.model.fit(CLEAN, CLEAN[:5]), ShapeError, r"observed\[0\] has shape \(5, 15\)"),
        (lambda m: m.model.fit([CLEAN, CLEAN[:5]], [CLEAN]), ShapeError, "observed has 1 images, and images 2"),
        (lambda m: m.model.fit([CLEAN, CLEAN[:5]], [CLEAN[:5], CLEAN]), ShapeError, r"observed\[0\]"),
        (lambda m: m.model.fit(CLEAN, likelihood=bp.NoiseLikelihood), EmptyError, "pass observed="),
        (lambda m: m.model.fit(CLEAN, CLEAN, likelihood="noise"), KindError, "NoiseLikelihood"),
        (lambda m: m.model.fit(CLEAN).restore(CLEAN), EmptyError, "nothing is known about observations"),
        (lambda m: m.restore(CLEAN[0]), ShapeError, r"expected \(H, W\) or"),
        (lambda m: m.restore(np.full((4, 4), np.inf)), InputError, "holds infinity"),
        (lambda m: m.restore(CLEAN, likelihood=lambda y, x: 0 * y[:, None] * x), InputError, "zero at every point"),
        (lambda m: m.restore(CLEAN, likelihood=lambda y, x: y), ShapeError, "the likelihood gave shape"),
        (
            lambda m: m.restore(CLEAN, likelihood=lambda y, x: np.full((len(y), len(x)), np.nan)),
            InputError,
            "likelihood",
        ),
        (lambda _: grid(0, 3), ParameterError, "height is 0"),
        (lambda _: bp.patches(CLEAN, 4), ParameterError, "odd number"),
    ],
)
def test_bad_input_is_refused_in_words(model, call, kind, words):
    with pytest.raises(kind, match=words):
        call(model)


@pytest.mark.slow
def test_beliefs_cover_with_diagonals_and_messages_that_count_half():
    """Intervals of 90%, beside a hole and within it, and errors of means."""
    from meanmap_papers.loopy.denoising import noisy as with_noise
    from meanmap_papers.loopy.denoising import rings

    picture = rings(50)
    hole = np.zeros(picture.shape, dtype=bool)
    hole[18:28, 30:42] = True
    found = {(4, None, 1e-3): [], (8, 0.5, 0.03): []}
    for seed in range(41, 47):
        example, seen = (with_noise(picture, np.random.default_rng([seed, i])) for i in (1, 0))
        for (neighbours, counting, floor), each in found.items():
            model = mm.KernelGrid(neighbours=neighbours).fit(picture, example, pairs=2000, rng=seed)
            restored = model.restore(np.where(hole, np.nan, seen), counting=counting, floor=floor)
            inside = (restored.quantile(0.05) <= picture) & (picture <= restored.quantile(0.95))
            missed = restored.mean() - picture
            each.append(
                [inside[~hole].mean(), inside[hole].mean(), *(np.sqrt(np.mean(missed[w] ** 2)) for w in (~hole, hole))]
            )
    plain, half = (np.mean(each, axis=0) for each in found.values())
    assert 0.85 < plain[0] < 0.95
    assert 0.85 < half[0] < 0.97
    assert half[1] > plain[1] + 0.05
    assert half[2] < 1.05 * plain[2]
    assert half[3] < plain[3]


# The notes' targets: root mean square errors with learned likelihoods on noise that nothing was chosen on, six seeds.
@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "most"), [(500, 6.0), (2400, 4.9)])
def test_denoising_with_learned_likelihoods(pairs, most):
    from meanmap_papers.loopy.denoising import compare

    errors = compare(50, pairs, range(11, 17))
    assert errors["noise likelihood"].mean() < most


@pytest.mark.slow
@pytest.mark.parametrize(("colours", "pairs"), [(256, 500), (100, 200), (50, 100)])
def test_scarce_pairs_are_what_kernels_are_for(colours, pairs):
    from meanmap_papers.loopy.denoising import compare

    errors = compare(colours, pairs, range(11, 17))
    for kind in ("true", "noise"):
        best = np.minimum(*(errors[f"discrete, {smoothing:g} added, {kind} likelihood"] for smoothing in (1e-3, 1e-1)))
        assert (errors[f"{kind} likelihood"] < best).sum() >= 5


def test_low_values_are_counted_on_some_of_many_messages(monkeypatch):
    picture = 10.0 * (np.add.outer(np.arange(24), np.arange(24)) % 20)
    model = mm.KernelGrid(kernel=mm.kernels.RBF(8.0), ridge=1e-4).fit(picture, noisy(0, picture, 30.0), rng=0)
    seen = noisy(1, picture, 30.0)
    shares = []
    # How many are counted is settled when a program is compiled: it is compiled anew for two images.
    for counted, images in ((10**6, seen), (4 * 24**2 // 3, np.stack([seen, seen]))):
        monkeypatch.setattr(settled, "ROWS_COUNTED", counted)
        note = next(note for note in model.restore(images).report.notes if "floor" in note)
        shares.append(float(note.split()[-1].rstrip("%.")) / 100)
    assert shares[0] > 0.01
    # Values of a message are alike: a third of the nodes counts.
    assert abs(shares[1] - shares[0]) < 4 * np.sqrt(shares[0] / (24**2 / 3))


def test_reports_say_why_messages_stopped(model):
    """By default after 15 sweeps, with no advice to send more."""
    report = model.restore(noisy(1)).report
    assert not report.converged
    assert "because more made restorations worse" in report.status
    assert not any("more sweeps may help" in note for note in report.notes)
