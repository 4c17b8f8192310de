"""Images as data: read in batches, cut into pairs of neighbours, described by the patch around each pixel."""

import numpy as np

from meanmap.core.arrays import as_array, parameter
from meanmap.core.errors import EmptyError, InputError, ParameterError, ShapeError
from meanmap.core.rng import Rng
from meanmap.core.types import Data, Seed
from meanmap.graphs import DIRECTIONS
from meanmap.graphs.grids import beside

__all__ = ["neighbour_pairs", "patches", "read_images"]


def read_images(data: Data, argument: str) -> list[np.ndarray]:
    """Read one image (H, W), several (B, H, W), or a list of images of any sizes; missing pixels are NaN."""
    if isinstance(data, list | tuple) and len(data) and np.ndim(data[0]) == 2:
        images = [as_array(image, f"{argument}[{i}]") for i, image in enumerate(data)]
    else:
        array = as_array(data, argument)
        if array.ndim not in (2, 3):
            raise ShapeError(
                f"{argument} has shape {array.shape}; expected an image (H, W), (B, H, W), or a list of images."
            )
        if array.ndim == 3 and array.shape[2] in (3, 4) and min(array.shape[:2]) > 4:
            raise ShapeError(
                f"{argument} has shape {array.shape}, a colour image: restore each colour, image[..., 0] and so on. "
                f"Images that are only {array.shape[2]} pixels wide can be given as a list."
            )
        images = [array] if array.ndim == 2 else list(array)
    if not images:
        raise EmptyError(f"{argument} holds no image.")
    for i, image in enumerate(images):
        if image.ndim != 2 or min(image.shape) < 1 or image.size < 2:
            raise ShapeError(f"{argument}[{i}] has shape {image.shape}; expected (H, W) with at least two pixels.")
        if np.isinf(image.astype(float)).any():
            raise InputError(f"{argument}[{i}] holds infinity; expected numbers, and NaN for missing pixels.")
    return [image.astype(np.float64) for image in images]


def neighbour_pairs(
    images: list[np.ndarray], neighbours: int = 4, most: int | None = None, rng: Seed = None, bands: int = 1
) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]:
    """Values of neighbouring pixels, for each direction and horizontal band: both ends of each edge.

    With `most`, this many pairs at random of each. Pairs with a missing pixel are left out.

    Examples
    --------
    >>> pairs = neighbour_pairs([np.arange(6.0).reshape(2, 3)])
    >>> pairs["down", 0]
    (array([0., 1., 2.]), array([3., 4., 5.]))
    """
    generator = Rng.of(rng).generator
    found: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}
    for name, (down, right) in list(DIRECTIONS.items())[: neighbours // 2]:
        parts: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(bands)]
        for image in images:
            first, second = beside(image, down, right)
            band = band_of(len(image), bands)[: len(first)]
            for b in range(bands):
                parts[b].append((first[band == b].ravel(), second[band == b].ravel()))
        for b, part in enumerate(parts):
            ends = [np.concatenate(side) for side in zip(*part, strict=True)]
            there = np.flatnonzero(~np.isnan(ends[0]) & ~np.isnan(ends[1]))
            if most is not None and most < len(there):
                there = generator.choice(there, most, replace=False)
            found[name, b] = ends[0][there], ends[1][there]
    return found


def band_of(height: int, bands: int) -> np.ndarray:
    """The horizontal band of each row of an image, from the top."""
    return np.arange(height) * bands // height


def patches(image: object, size: int = 5) -> np.ndarray:
    """The size × size patch around each pixel as its features, (H, W, size²); images are mirrored beyond their edges.

    Examples
    --------
    >>> patches(np.arange(6.0).reshape(2, 3), 3).shape
    (2, 3, 9)
    """
    array = as_array(image, "image")
    if array.ndim != 2:
        raise ShapeError(f"image has shape {array.shape}; expected (H, W).")
    size = int(parameter(size, "size", axes=0, integer=True))
    if size % 2 == 0:
        raise ParameterError(f"size is {size}; expected an odd number, so that a pixel is in the middle of its patch.")
    around = np.pad(array, size // 2, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(around, (size, size))
    return windows.reshape(*array.shape, size * size)
