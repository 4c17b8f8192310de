"""Forests on surroundings: first guesses by their formulas, leaves of scikit-learn, beliefs beside the truth."""

import numpy as np
import pytest
from scipy.fft import dctn, idctn
from scipy.ndimage import median_filter
from sklearn.ensemble import ExtraTreesRegressor

import meanmap as mm
from meanmap.bp import ForestGrid
from meanmap.bp.conditionals.trees import Trees
from meanmap.bp.surroundings import forest_grid, reader
from meanmap.bp.surroundings.estimates import filled, like_patches, noise_scale, shrunken
from meanmap.bp.surroundings.features import surroundings
from meanmap.core.errors import EmptyError, ShapeError

DOWN, RIGHT = np.mgrid[:40, :48]
CLEAN = 200.0 * ((DOWN // 9 + RIGHT // 9) % 2) + RIGHT


def noisy(seed):
    return CLEAN + 30 * np.random.default_rng(seed).standard_t(3, size=CLEAN.shape)


@pytest.fixture(scope="module")
def model():
    return ForestGrid().fit([CLEAN, CLEAN.T], [noisy(0), noisy(1).T], rng=0)


def test_heavy_noise_is_taken_away_and_intervals_hold_what_they_say(model):
    """Less than a third of the noise is left, and missing pixels are less certain."""
    images = [noisy(seed) for seed in (2, 3)]
    images[1][10:20, 15:25] = np.nan
    restored = model.restore(np.stack(images))
    assert np.sqrt(np.mean((restored.mean()[0] - CLEAN) ** 2)) < 12 < np.std(images[0] - CLEAN) / 3
    inside = (restored.quantile(0.05) <= CLEAN) & (restored.quantile(0.95) >= CLEAN)
    assert 0.8 < inside.mean() < 0.98
    assert restored.sd()[1, 10:20, 15:25].mean() > 2 * restored.sd()[1, 22:].mean()
    assert float(restored[1, 3, 4].mean()) == pytest.approx(float(restored.mean()[1, 3, 4]), rel=1e-5)


def test_reports_say_how_often_intervals_held_what_was_left_out(model):
    """Each image corrected by the others: by hand, and where one image is foretold too surely."""
    notes = model.restore(noisy(3)).report.notes
    assert [note.split(" covered ")[0] for note in notes] == ["90% intervals"] * 2
    assert "of observed pixels" in notes[0]
    assert "of missing pixels" in notes[1]
    assert 0.7 < float(notes[0].split(" covered ")[1].split()[0]) < 0.99
    rng = np.random.default_rng(7)
    fold, levels = np.repeat([0, 1, 2], 20_000), rng.random(60_000)
    levels[fold == 2] = rng.beta(0.5, 0.5, 20_000)
    shares = reader._held(levels, fold)
    # A beta law puts .713 between .05 and .95: 20,000 pixels and as uncertain ends, four deviations.
    assert shares[2] == pytest.approx(0.713, abs=0.02)
    assert min(shares[:2]) > 0.93
    assert len(reader._held(levels, 0 * fold)) == 0


def test_corrections_allow_for_images_that_differ():
    """Each is foretold too surely or not surely enough: quantiles of all pixels hold a new image too seldom."""
    rng = np.random.default_rng(8)

    def levels(number):
        spread = rng.choice([0.4, 2.5], size=number)
        return rng.beta(spread, spread, (4000, number)).T

    wanted, plain, ours = np.array([0.05, 0.95]), [], []
    for _ in range(60):
        *known, new = levels(4)
        fold = np.repeat([0, 1, 2], 4000)
        for found, ends in (
            (plain, np.quantile(known, wanted)),
            (ours, reader._correction(np.concatenate(known), fold, wanted)),
        ):
            found.append(np.mean((ends[0] <= new) & (new <= ends[1])))
    assert np.mean(plain) < np.mean(ours) < 0.95
    # A mean of sixty shares that differ by .1: three standard errors are .04.
    assert abs(np.mean(ours) - 0.9) < 0.04
    one = reader._correction(known[0], np.zeros(4000), wanted)
    np.testing.assert_allclose(one, np.quantile(known[0], wanted))
    alike = rng.random(12_000)
    np.testing.assert_allclose(reader._correction(alike, fold, wanted), wanted, atol=0.02)


def test_images_darker_and_brighter_than_all_that_were_learned_from_are_restored_alike(model):
    """No number that trees see grows with the image: beliefs move with it, up to their atoms."""
    image = noisy(6)[:20, :25]
    image[3:9, 4:12] = np.nan
    found = model.restore(image)
    for by in (-300.0, 400.0):
        moved = model.restore(image + by)
        apart = np.diff(found.atoms)[0] + np.diff(moved.atoms)[0]
        for share in (0.05, 0.5, 0.95):
            there = np.clip(moved.quantile(share) - by, found.atoms[0], found.atoms[-1])
            np.testing.assert_allclose(there, found.quantile(share), atol=apart)


def test_a_batch_is_its_images_and_a_saved_model_restores_the_same(model, tmp_path):
    image = noisy(4)[:20, :25]
    found = model.restore(image).mean()
    assert found.shape == (20, 25)
    # Atoms reach as far as the widest image of a batch needs.
    np.testing.assert_allclose(model.restore(np.stack([noisy(5)[:20, :25], image])).mean()[1], found, atol=0.5)
    mm.save(model, tmp_path / "forest.meanmap")
    np.testing.assert_array_equal(mm.load(tmp_path / "forest.meanmap").restore(image).mean(), found)


def test_leaves_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(300, 4)), rng.normal(size=300)
    trees, leaves = Trees.fit(rows, targets, 3, 5, 7)
    np.testing.assert_array_equal(trees.leaves(rows), leaves)
    forest = ExtraTreesRegressor(3, min_samples_leaf=5, max_features=0.6, random_state=7).fit(rows, targets)
    np.testing.assert_array_equal(trees.leaves(rows) - trees.roots, forest.apply(rows))
    few, leaves = Trees.fit(rows, targets, 3, 5, 7, most=100)
    np.testing.assert_array_equal(few.leaves(rows), leaves)
    assert few.nodes < trees.nodes / 2


def test_levels_grow_with_the_image_and_others_do_not():
    """Adding a constant, with pixels missing."""
    image = noisy(5)[:20, :24]
    image[3:9, 4:12] = np.nan
    for first, second, step in zip(surroundings(image), surroundings(image + 50.0), (50.0, 0.0), strict=True):
        assert np.isfinite(first).all()
        np.testing.assert_allclose(second, first + step, atol=1e-6)


def test_cosines_and_patches_are_averaged_as_the_formulas_say():
    """One window and one pixel by hand; noise alone is measured and goes."""
    rng = np.random.default_rng(6)
    noise = 3 * rng.normal(size=(60, 60))
    assert noise_scale(noise) == pytest.approx(3, rel=0.1)
    assert shrunken(noise + 100, 3.0).std() < 0.8
    image = rng.normal(size=(24, 24)).cumsum(axis=0)
    padded = np.pad(image, 7, mode="symmetric")
    total, weight = 0.0, 0.0
    for i in range(8):  # all windows that hold pixel (12, 12), first pass only
        for j in range(8):
            cosines = dctn(padded[12 + i : 20 + i, 12 + j : 20 + j], norm="ortho")
            kept = np.abs(cosines) > 2.7 * 1e-9
            kept[0, 0] = True
            total += idctn(np.where(kept, cosines, 0), norm="ortho")[7 - i, 7 - j] / kept.sum()
            weight += 1 / kept.sum()
    assert shrunken(image, 1e-9)[12, 12] == pytest.approx(total / weight)
    wide, found = np.pad(image, 10, mode="symmetric"), like_patches(image, 2.0, 1.0)
    for row, column in [(12, 12), (0, 0), (23, 5), (3, 23)]:
        values, alike = [], []
        for i in range(row - 8, row + 9):
            for j in range(column - 8, column + 9):
                patch, other = wide[8 + i : 13 + i, 8 + j : 13 + j], wide[8 + row : 13 + row, 8 + column : 13 + column]
                apart = np.mean((patch - other) ** 2)
                alike.append(np.exp(-max(apart - 2 * 4.0, 0) / 4.0))
                values.append(wide[10 + i, 10 + j])
        assert found[row, column] == pytest.approx(np.average(values, weights=alike))


def test_missing_pixels_are_filled_by_what_is_near():
    image = np.where(RIGHT < 24, 1.0, 5.0)
    holed = image.copy()
    holed[10:14, 4:8] = np.nan
    whole, averages = filled(holed, (8, 4, 2))
    np.testing.assert_allclose(whole[10:14, 4:8], 1.0, atol=1e-6)
    np.testing.assert_array_equal(whole[~np.isnan(holed)], image[~np.isnan(holed)])
    assert len(averages) == 3


def test_the_first_guess_is_a_weighted_sum_of_levels_that_moves_with_the_image():
    """Of two noisy levels, by their precisions; equal levels and few pixels leave the best single one."""
    rng = np.random.default_rng(13)
    truth = rng.normal(size=50_000)
    levels = np.stack([truth + rng.normal(size=len(truth)), truth + 2 * rng.normal(size=len(truth))], axis=1)
    np.testing.assert_allclose(reader._weights(levels, truth), [0.8, 0.2], atol=0.02)
    np.testing.assert_allclose(reader._weights(levels[:3], truth[:3]).sum(), 1)
    assert reader._weights(levels[:3], truth[:3]).max() > 0.95
    np.testing.assert_allclose(reader._weights(np.ones((5, 3)), np.zeros(5)), [1, 0, 0])


def test_levels_of_beliefs_and_atoms_are_exact():
    """Quantiles invert the shares below edges; what is put on atoms keeps its mean."""
    edges, below = np.array([0.0, 1.0, 3.0]), np.array([[0.0, 0.5, 1.0], [0.0, 0.25, 1.0]])
    found = reader._inverse(below, edges, np.array([[0.25, 0.75], [0.25, 0.5]]))
    np.testing.assert_allclose(found, [[0.5, 2.0], [1.0, 1 + 2 / 3]])
    np.testing.assert_allclose(reader._at(below, edges, np.array([0.5, 3.0])), [0.25, 1.0])
    weights = forest_grid._on_atoms(found, np.linspace(0, 4, 9))
    np.testing.assert_allclose(weights @ np.linspace(0, 4, 9), found.mean(axis=1))
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_what_cannot_be_is_refused_in_words(model):
    with pytest.raises(ShapeError, match="expected one of the same shape for each"):
        ForestGrid().fit(CLEAN, CLEAN[:-1])
    with pytest.raises(EmptyError, match="every pixel is NaN"):
        model.restore(np.full((5, 5), np.nan))
    with pytest.raises(EmptyError, match="nothing can be learned"):
        ForestGrid().fit(np.full((5, 5), np.nan), np.ones((5, 5)))
    with pytest.raises(ShapeError, match="of different sizes"):
        model.restore([CLEAN, CLEAN[:-1]])


def test_beliefs_about_missing_pixels_are_as_sure_as_the_image_allows(model, monkeypatch):
    """A plain image, by a model of checkers: intervals in holes are narrower by a sixth, and hold (.70 measured)."""
    calm = 100.0 + RIGHT
    image = calm + 30 * np.random.default_rng(9).standard_t(3, size=calm.shape)
    image[5:13, 6:14] = image[25:33, 30:38] = np.nan
    hole = np.isnan(image)

    def ends():
        found = model.restore(image)
        return found.quantile(0.05)[hole], found.quantile(0.95)[hole]

    low, high = ends()
    assert ((low <= calm[hole]) & (calm[hole] <= high)).mean() > 0.9
    monkeypatch.setattr(forest_grid, "MOVES", 0)
    plain_low, plain_high = ends()
    assert (high - low).mean() < 0.85 * (plain_high - plain_low).mean()


def test_pixels_of_the_image_count_beside_those_learned_from(model):
    """As many as 500: half of the weight; none: what was learned."""
    reader_ = model.unseen
    np.testing.assert_allclose(reader_.corrected_by(np.empty(0)), reader_.corrected, atol=1e-12)
    own = np.full(500, 2.0)
    found = reader_.corrected_by(own)
    wanted = (np.arange(len(found)) + 0.5) / len(found)
    np.testing.assert_allclose(found[wanted > 0.52], 2.0)
    learned = wanted < 0.48
    np.testing.assert_allclose(found[learned], np.interp(2 * wanted[learned], wanted, reader_.corrected), atol=1e-9)


def test_wild_pixels_like_those_learned_from_are_no_other_noise():
    """What is said of noise is measured as in the images learned from: pixels put to black and white seem to be none,
    or far more, as smooth or rough as the image is.
    """
    rng = np.random.default_rng(11)
    down, right = np.mgrid[:32, :32]
    for smooth in (0.0, 0.01):
        clean = [np.sin(down / (5 + i)) + np.cos(right / 6) + smooth * rng.normal(size=(32, 32)) for i in range(3)]
        salted = [np.where((u := rng.random(each.shape)) < 0.1, -2, np.where(u > 0.9, 2, each)) for each in clean]
        model = ForestGrid().fit(clean[:2], salted[:2], rng=0)
        assert not any("noise" in note for note in model.restore(salted[2]).report.notes)


def test_salt_and_pepper_is_taken_off():
    """On plain parts the median around is exact, so that most errors are the same, 0; the others are large."""
    rng = np.random.default_rng(12)
    down, right = np.mgrid[:48, :48]
    clean = np.array([80.0 * ((down // 12 + right // (9 + i)) % 2) + 60 for i in range(4)])
    chance = rng.random(clean.shape)
    noisy = np.where(chance < 0.1, 0.0, np.where(chance > 0.9, 255.0, clean))
    restored = ForestGrid().fit(clean[:3], noisy[:3], rng=0).restore(noisy[3])
    filtered = [median_filter(noisy[3], size) for size in (3, 5)]
    least = min(np.sqrt(np.mean((each - clean[3]) ** 2)) for each in filtered)
    assert np.sqrt(np.mean((restored.mean() - clean[3]) ** 2)) < 0.8 * least
    low, high = restored.quantile(0.05), restored.quantile(0.95)
    assert ((low - 1 <= clean[3]) & (clean[3] <= high + 1)).mean() > 0.85


def test_salt_may_be_darker_than_a_few_pixels():
    """One pixel lighter than salt, and all salt stayed: errors were 8 grey levels, and of boosted patches 1.6."""
    rng = np.random.default_rng(13)
    down, right = np.mgrid[:48, :48]
    clean = np.array([40 + 10 * np.sin(down / 7) * np.cos(right / (9 + i)) for i in range(4)])
    clean[3, 20:22, 30:32] = 61.0
    chance = rng.random(clean.shape)
    noisy = np.where(chance < 0.1, 0.0, np.where(chance > 0.9, 60.0, clean))
    noisy[3, 20, 30] = 61.0
    restored = ForestGrid().fit(clean[:3], noisy[:3], rng=0).restore(noisy[3])
    away = np.abs(restored.mean() - clean[3])
    away[18:24, 28:34] = 0
    assert np.sqrt(np.mean(away**2)) < 0.5


def test_an_error_that_many_pixels_have_is_a_bin_of_its_own():
    errors = np.concatenate([np.zeros(950), np.linspace(-200.0, 200.0, 50)])
    edges = reader._edges(errors, 1e-4)
    right = int(np.searchsorted(edges, 0.0))
    np.testing.assert_allclose(edges[right - 1 : right + 1], [-1e-4, 1e-4])
    assert len(edges) > 30
    # Half of the weight goes with the size: below e > 0 lies a half and (e + e²) / 4.
    found, spread = reader._edges(np.linspace(-1.0, 1.0, 1001), 1e-4), np.linspace(0, 1, reader.EDGES)
    np.testing.assert_allclose(0.5 + np.sign(found) * (np.abs(found) + found**2) / 4, spread, atol=2e-3)
    np.testing.assert_allclose(reader._edges(np.full(10, 3.0), 1e-4), [3 - 1e-4, 3 + 1e-4])


def test_reports_name_images_whose_noise_is_not_that_learned_from(model):
    draws = 30 * np.random.default_rng(4).standard_t(3, size=CLEAN.shape)
    images = np.stack([CLEAN + factor * draws for factor in (1.0, 0.2, 4.0)])
    images[:, 3:20, 5:40] = np.nan
    notes = [note for note in model.restore(images).report.notes if "noise" in note]
    assert [note.split(" seems")[0] for note in notes] == ["image 1", "image 2"]
    assert 0.1 < float(notes[0].split("have ")[1].split()[0]) < 0.3
