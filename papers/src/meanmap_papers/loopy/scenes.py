"""Scenes with known depth, divided into cells: rendered rooms with one view, real scenes with two."""

from importlib.resources import files
from typing import Any

import numpy as np

__all__ = ["rooms", "stereo_scenes"]

# Rooms in a row of the sheet; pixels of a picture, of which four are a cell; metres at full white.
ACROSS = 12
HEIGHT, WIDTH = 48, 64
FARTHEST = 12.0
# Windows around a cell, in pixels: what they hold on average, and how rough it is.
COLOURS = (2, 9, 27)
EDGES = (5, 15)
# Stereo: pixels of a side of a cell, the largest disparity, and windows over which two views are compared.
CELL = 10
DISPARITIES = np.arange(8, 86)
WINDOWS = (5, 11, 21)


def rooms() -> tuple[np.ndarray, np.ndarray]:
    """Features (n, 24, 32, d) of the cells of rendered rooms, and the logarithm of their distance (n, 24, 32).

    `rooms.pov` is the scene, rendered by POV-Ray as its first lines say; pictures stand twelve in a row on one sheet.
    """
    pictures = _cut(_read("rooms.png")[..., :3], HEIGHT, WIDTH)
    distances = _cut(_read("rooms_distance.png"), HEIGHT // 2, WIDTH // 2)
    return np.stack([_room_features(picture) for picture in pictures]), np.log(FARTHEST * distances)


def _read(name: str) -> np.ndarray:
    from matplotlib.image import imread

    with files("meanmap_papers.loopy").joinpath(name).open("rb") as opened:
        file: Any = opened
        return np.asarray(imread(file, format="png"), float)


def _cut(sheet: np.ndarray, height: int, width: int) -> np.ndarray:
    """The pictures of a sheet, row by row."""
    parts = sheet.reshape(len(sheet) // height, height, ACROSS, width, *sheet.shape[2:])
    return parts.swapaxes(1, 2).reshape(-1, height, width, *sheet.shape[2:])


def _room_features(picture: np.ndarray) -> np.ndarray:
    """Position of a cell, colours and edges around it at several scales, edges above and below it."""
    from scipy.ndimage import uniform_filter

    down, right = np.mgrid[: HEIGHT // 2, : WIDTH // 2]
    slopes = [np.abs(slope) for slope in np.gradient(picture @ [0.299, 0.587, 0.114])]
    found = [down[..., None], right[..., None]]
    found += [_cells(uniform_filter(picture, size, axes=(0, 1)), 2) for size in COLOURS]
    found += [_cells(uniform_filter(slope, size), 2)[..., None] for size in EDGES for slope in slopes]
    level = _cells(slopes[0], 2)
    for turned in (level, level[::-1]):
        along = np.stack([np.maximum.accumulate(turned, axis=0), np.cumsum(turned, axis=0)], axis=-1)
        found.append(along if turned is level else along[::-1])
    return np.concatenate(found, axis=-1)


def _cells(image: np.ndarray, side: int) -> np.ndarray:
    """Means over cells of side × side pixels, those that are known; what is left over at the far ends is dropped."""
    height, width = image.shape[0] // side, image.shape[1] // side
    blocks = image[: height * side, : width * side].reshape(height, side, width, side, *image.shape[2:])
    known = ~np.isnan(blocks)
    count = known.sum(axis=(1, 3))
    # A cell is unknown if less than half of it is known.
    mean = np.where(known, blocks, 0).sum(axis=(1, 3)) / np.maximum(count, 1)
    return np.where(2 * count >= side**2, mean, np.nan)


def stereo_scenes() -> tuple[np.ndarray, np.ndarray]:
    """Costs (n, h, w, K, W) of the cells of the Middlebury scenes, and the logarithm of the disparity (n, h, w).

    The difference of both views at each of K disparities, over windows of W sizes. The logarithm is that of the inverse
    depth, but for an offset of the scene; NaN where it is not known. Scenes are cut to the width of the narrowest.
    """
    from meanmap.datasets import STEREO_SCENES, stereo

    scenes = [stereo(name) for name in STEREO_SCENES]
    width = min(scene.left.shape[1] for scene in scenes) // CELL
    costs = [_costs(scene.left, scene.right)[:, :width] for scene in scenes]
    return np.stack(costs), np.stack([np.log(_cells(scene.disparity, CELL))[:, :width] for scene in scenes])


def _costs(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The difference of both views at each disparity, over several windows, (h, w, K, W)."""
    from scipy.ndimage import uniform_filter

    width = left.shape[1]
    unlike = np.ones((*left.shape[:2], len(DISPARITIES)))
    for i, shift in enumerate(DISPARITIES):
        unlike[:, shift:, i] = np.abs(left[:, shift:] - right[:, : width - shift]).mean(axis=-1)
    return np.stack([_cells(uniform_filter(unlike, size, axes=(0, 1)), CELL) for size in WINDOWS], axis=-1)
