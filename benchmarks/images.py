"""Images restored by ForestGrid and by others, and how often intervals hold: python -m benchmarks.images.

Three kinds of images and four of noise, 96 × 96 pixels, three images to learn from and four to restore. Each rival's
strength is the one of least error on the images to learn from. The whole takes part in `python -m benchmarks`, which
stores the results and writes docs/benchmarks/images.rst.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers import DENOISERS
from benchmarks.table import list_table
from meanmap.bp import ForestGrid

__all__ = ["KINDS", "NOISES", "measure", "page", "restored"]

SIDE, LEARNED, SHOWN, SEED = 96, 3, 4, 14
# The standard deviation of noise, as a share of the range of an image; the brightest pixel has this many photons.
SHARE, PHOTONS = 0.12, 30
Found = dict[str, Any]
Generator = np.random.Generator


def strokes(rng: Generator) -> np.ndarray:
    """Fourteen straight strokes of one brightness each, on a plain ground."""
    image = np.full((SIDE, SIDE), rng.uniform(20, 60))
    down, right = np.mgrid[:SIDE, :SIDE]
    for _ in range(14):
        start, end, width, brightness = *rng.uniform(0, SIDE, (2, 2)), rng.uniform(1.5, 6), rng.uniform(60, 240)
        along = end - start
        share = np.clip(((down - start[0]) * along[0] + (right - start[1]) * along[1]) / (along @ along), 0, 1)
        image[np.hypot(down - start[0] - share * along[0], right - start[1] - share * along[1]) < width] = brightness
    return image


def blobs(rng: Generator) -> np.ndarray:
    """Twelve smooth bumps."""
    image = np.full((SIDE, SIDE), 4.0)
    down, right = np.mgrid[:SIDE, :SIDE]
    for _ in range(12):
        centre, width = rng.uniform(0, SIDE, 2), rng.uniform(4, 14)
        away = (down - centre[0]) ** 2 + (right - centre[1]) ** 2
        image += rng.uniform(5, 30) * np.exp(-away / (2 * width**2))
    return image


def gaussian(image: np.ndarray, most: float, rng: Generator) -> np.ndarray:
    """Gaussian noise of 12% of the range."""
    return image + SHARE * most * rng.normal(size=image.shape)


def heavy_tailed(image: np.ndarray, most: float, rng: Generator) -> np.ndarray:
    """Student's t with three degrees of freedom, of the same scale."""
    return image + SHARE * most * rng.standard_t(3, size=image.shape)


def photons(image: np.ndarray, most: float, rng: Generator) -> np.ndarray:
    """Poisson noise, thirty photons where the image is brightest."""
    return rng.poisson(image * PHOTONS / most) * most / PHOTONS


def salted(image: np.ndarray, most: float, rng: Generator) -> np.ndarray:
    """One pixel of ten black, and one of ten white."""
    chance = rng.random(image.shape)
    return np.where(chance < 0.1, 0.0, np.where(chance > 0.9, most, image))


KINDS: dict[str, tuple[Callable[[Generator], np.ndarray] | None, float]] = {
    "strokes": (strokes, 255.0),
    "blobs": (blobs, 60.0),
    "photographs": (None, 255.0),
}
NOISES = {"Gaussian": gaussian, "heavy-tailed": heavy_tailed, "Poisson": photons, "salt and pepper": salted}
RIVALS = ("median filter", "total variation", "non-local means", "BM3D", "boosted 5 × 5", "boosted 9 × 9")


def with_holes(image: np.ndarray, rng: Generator) -> np.ndarray:
    """Three rectangles of 6 to 19 pixels each side missing."""
    cut = image.copy()
    for _ in range(3):
        sides = rng.integers(6, 20, 2)
        down, right = rng.integers(SIDE - sides[0]), rng.integers(SIDE - sides[1])
        cut[down : down + sides[0], right : right + sides[1]] = np.nan
    return cut


def restored(clean: np.ndarray, noisy: np.ndarray, rng: Generator) -> Found:
    """Errors of the last images by a model of the first, and shares of pixels that 90% intervals hold."""
    started = time.process_time()
    model = ForestGrid().fit(list(clean[:LEARNED]), list(noisy[:LEARNED]), rng=0)
    truth, seen = clean[LEARNED:], noisy[LEARNED:]
    found = model.restore(seen)
    seconds = time.process_time() - started
    cut = np.stack([with_holes(image, rng) for image in seen])
    filled, missing = model.restore(cut), np.isnan(cut)
    inside = [(each.quantile(0.05) <= truth) & (truth <= each.quantile(0.95)) for each in (found, filled)]
    return {
        "error": root_mean_square(found.mean() - truth),
        "held": [float(each.mean()) for each in inside[0]],
        "held in holes": [float(each[hole].mean()) for each, hole in zip(inside[1], missing, strict=True)],
        "seconds": seconds,
    }


def mean_share(shares: list[float]) -> str:
    """Of several images, with its standard error."""
    return f"{np.mean(shares):.2f} ± {np.std(shares, ddof=1) / np.sqrt(len(shares)):.2f}"


def root_mean_square(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def measure() -> Found:
    """All kinds and noises, on one draw each."""
    found: Found = {"seed": SEED}
    for kind in KINDS:
        for noise in NOISES:
            found[f"{kind}, {noise}"] = row = compared(kind, noise)
            print(f"{kind}, {noise}", row, file=sys.stderr, flush=True)
    return found


def compared(kind: str, noise: str) -> Found:
    """Ours and others on one kind of images with one noise."""
    draw, most = KINDS[kind]
    rng = np.random.default_rng(SEED)
    if draw is None:
        with DENOISERS.start(side=np.array(SIDE)) as peer:
            clean = peer.ask(count=LEARNED + SHOWN, seed=SEED)
    else:
        clean = np.stack([draw(rng) for _ in range(LEARNED + SHOWN)])
    noisy = np.stack([NOISES[noise](image, most, rng) for image in clean])
    row: Found = {"ours": restored(clean, noisy, rng), "noisy": root_mean_square((noisy - clean)[LEARNED:])}
    photons_seen = PHOTONS if noise == "Poisson" else 0
    model = {"clean": clean[:LEARNED], "noisy": noisy, "most": np.array(most), "photons": np.array(photons_seen)}
    with DENOISERS.start(**model) as peer:
        return row | {rival: root_mean_square(peer.ask(method=rival) - clean[LEARNED:]) for rival in RIVALS}


def page(found: Found) -> str:
    """Errors, and shares of pixels that intervals hold."""
    rows = []
    for name, row in found.items():
        if name == "seed":
            continue
        ours, rivals = row["ours"], [row[rival] for rival in RIVALS]
        least = min(ours["error"], *rivals)
        errors = [f"**{error:.2f}**" if error == least else f"{error:.2f}" for error in (ours["error"], *rivals)]
        shares = [mean_share(ours[which]) for which in ("held", "held in holes")]
        rows.append([name, f"{row['noisy']:.2f}", *errors, *shares, f"{ours['seconds']:.0f} s"])
    head = ["images, noise", "noisy", "ForestGrid", *RIVALS, "coverage", "coverage in holes", "ForestGrid, time"]
    return "\n".join(list_table(head, rows))


if __name__ == "__main__":
    print(page(measure()))
