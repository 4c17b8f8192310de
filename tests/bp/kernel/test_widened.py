"""Beliefs about pixels are as wide as images that were left out say."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.bp.kernel.widened import Judged, Widening

ATOMS = np.linspace(0.0, 100.0, 51)


def judged(rng, n, sure, atoms=ATOMS):
    """Beliefs that put all on one atom, or on two: off by 3 where they are sure, and by 12 where they are not."""
    off = np.where(sure, 3.0, 12.0)
    guess = rng.integers(15, 35, n)
    weights = np.zeros((n, len(atoms)))
    weights[np.arange(n), guess] = 1.0
    unsure = np.flatnonzero(~sure)
    weights[unsure, guess[unsure]], weights[unsure, guess[unsure] + 1] = 0.5, 0.5
    truth = np.sum(weights * atoms, axis=1) + off * rng.normal(size=n)
    return Judged(atoms, weights, truth, np.zeros(n, bool))


def interval(widening, part, shares=(0.05, 0.95)):
    found = widening(part.weights[:, None], part.atoms, part.missing[:, None])[:, 0]
    rising, points = np.cumsum(found, axis=1), widening.points(part.atoms)
    return found, points, [points[np.argmax(rising >= q, axis=1)] for q in shares]


def test_beliefs_that_are_too_sure_are_widened_by_what_was_left_out():
    rng = np.random.default_rng(0)
    parts = [judged(rng, 1500, np.arange(1500) % 2 == 0) for _ in range(4)]
    widening = Widening.fit(parts, (0.0, 100.0))
    new = judged(rng, 2000, np.arange(2000) % 2 == 0)
    found, points, (low, high) = interval(widening, new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(found @ points, new.weights @ new.atoms, atol=0.3)
    for some, deviation in ((slice(0, None, 2), 3.0), (slice(1, None, 2), 12.0)):
        inside = np.mean((low <= new.truth)[some] & (new.truth <= high)[some])
        assert 0.86 < inside < 0.94
        assert abs(np.mean(high - low, where=np.arange(2000) % 2 == some.start) / (3.29 * deviation) - 1) < 0.12
    assert 0.86 < widening.seen.held.min() <= widening.seen.held.max() < 0.94
    assert widening.notes[0].startswith("90% intervals covered 0.9")


def test_beliefs_that_are_right_stay_as_they_are():
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.full(51, 0.1), 3000)
    truth = np.array([rng.choice(ATOMS, p=row) for row in weights])
    part = Judged(ATOMS, weights, truth, np.zeros(3000, bool))
    widening = Widening.fit([part], (0.0, 100.0))
    found, points, _ = interval(widening, part)
    kept = found[:, np.searchsorted(points, ATOMS)]
    assert np.abs(kept - weights).sum(axis=1).mean() < 0.05
    assert widening.notes == ()


def test_missing_pixels_are_judged_apart_and_units_do_not_matter():
    rng = np.random.default_rng(2)
    seen, unseen = (judged(rng, 800, np.full(800, sure)) for sure in (True, False))
    parts = [
        Judged(
            ATOMS,
            *map(
                np.concatenate,
                zip(*((p.weights, p.truth, np.full(800, m)) for p, m in ((seen, False), (unseen, True))), strict=True),
            ),
        )
    ]
    widths = []
    for unit in (1.0, 1e-6):
        scaled = [Judged(unit * p.atoms, p.weights, unit * p.truth, p.missing) for p in parts]
        widening = Widening.fit(scaled, (0.0, 100.0 * unit))
        _, _, (low, high) = interval(widening, scaled[0])
        widths.append((high - low) / unit)
    np.testing.assert_allclose(*widths, rtol=1e-6)
    assert widths[0][800:].mean() > 2.5 * widths[0][:800].mean()


def flat(rng, side=36):
    """A plain picture of strips."""
    image = np.full((side, side), rng.uniform(20, 60))
    for _ in range(6):
        start, width = rng.integers(0, side - 4), rng.integers(2, 8)
        image[:, start : start + width] = rng.uniform(60, 240)
    return image


def test_a_grid_is_corrected_where_there_are_images_to_leave_out():
    rng = np.random.default_rng(3)
    clean = [flat(rng) for _ in range(4)]
    noisy = [image + 30 * rng.normal(size=image.shape) for image in clean]
    options = {"kernel": mm.kernels.RBF(20.0), "ridge": 1e-3, "update": mm.bp.Constant(rank=12, atoms=40)}
    model = mm.KernelGrid(**options).fit(clean[:3], noisy[:3], rng=0)
    found = model.restore(noisy[3])
    assert any(note.startswith("90% intervals covered") and "observed" in note for note in found.report.notes)
    inside = (found.quantile(0.05) <= clean[3]) & (clean[3] <= found.quantile(0.95))
    raw = model.restore(noisy[3], floor=0.01)
    assert any("intervals are not calibrated" in note for note in raw.report.notes)
    before = (raw.quantile(0.05) <= clean[3]) & (clean[3] <= raw.quantile(0.95))
    assert inside.mean() > max(before.mean() + 0.2, 0.75)
    single = mm.KernelGrid(**options).fit(clean[0], noisy[0], rng=0)
    assert single.widening is not None
    assert len(single.widening.seen.held) == 4
    assert mm.KernelGrid(**options).fit(clean[:3], noisy[:3], rng=0, correct=False).widening is None


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "texture"), [("strokes", 0.0), ("strokes", 25.0), ("blobs", 0.0)])
def test_intervals_hold_in_new_images(kind, texture, tmp_path):
    from scipy.ndimage import gaussian_filter

    from benchmarks.images import KINDS

    draw, most = KINDS[kind]
    shares = []
    for seed in range(5):
        rng = np.random.default_rng([21, seed])
        clean = np.stack([draw(rng) for _ in range(7)])[:, :64, :64]
        grain = gaussian_filter(rng.normal(size=clean.shape), (0, 1, 1))
        clean = clean + texture * grain / grain.std()
        noisy = clean + 0.12 * most * rng.normal(size=clean.shape)
        model = mm.KernelGrid().fit(clean[:4], noisy[:4], rng=0)
        found = mm.load(mm.save(model, tmp_path / str(seed))).restore(noisy[4:])
        inside = (found.quantile(0.05) <= clean[4:]) & (clean[4:] <= found.quantile(0.95))
        shares.append(inside.mean())
    assert 0.9 - 0.1 - 2 * np.std(shares) < np.mean(shares) < 0.97
