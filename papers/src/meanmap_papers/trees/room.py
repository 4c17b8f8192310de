"""A camera that rotates at a fixed point of a room: its rotations, and its images.

The room was rendered once by POV-Ray, in all directions, with shadows and light from wall to wall; a camera that does
not move sees a part of that picture, so that frames are looked up in it. `room.pov` is the scene, with the command.
"""

from importlib.resources import files
from typing import Any

import numpy as np

__all__ = ["frames", "panorama", "random_walk"]

# Degrees: the width of the picture, and how far the three angles wander between two turning points.
VIEW = 70.0
YAW, PITCH, ROLL = 60.0, 15.0, 10.0
# Frames between two turning points.
SHORTEST, LONGEST = 20, 40
# Each pixel of a frame is the mean of this many by this many directions.
RAYS = 3


def random_walk(n: int, rng: np.random.Generator) -> np.ndarray:
    """A piecewise smooth walk of n rotations (n, 3, 3); columns are the camera's right, up and forward."""
    from scipy.interpolate import PchipInterpolator
    from scipy.spatial.transform import Rotation

    times = np.concatenate([[0], np.cumsum(rng.integers(SHORTEST, LONGEST + 1, size=n // SHORTEST + 2))])
    angles = rng.normal(size=(len(times), 3)) * [YAW, PITCH, ROLL]
    angles[:, 0] = np.cumsum(angles[:, 0])
    path = PchipInterpolator(times, angles)(np.arange(n))
    return Rotation.from_euler("YXZ", path, degrees=True).as_matrix()


def panorama() -> np.ndarray:
    """The room in all directions, (360, 720, 3), colours between 0 and 1."""
    from matplotlib.image import imread

    with files("meanmap_papers.trees").joinpath("room.png").open("rb") as opened:
        file: Any = opened
        colours: Any = imread(file, format="png")
    return np.asarray(colours[..., :3], float)


def frames(rotations: np.ndarray, height: int, width: int) -> np.ndarray:
    """The camera's image at each rotation, (n, height, width, 3)."""
    from scipy.ndimage import map_coordinates

    room = panorama()
    rows, columns, _ = room.shape
    reach = np.tan(np.radians(VIEW / 2))
    across = reach * (np.arange(width * RAYS) + 0.5 - width * RAYS / 2) / (width * RAYS / 2)
    down = reach * (np.arange(height * RAYS) + 0.5 - height * RAYS / 2) / (width * RAYS / 2)
    rays = np.stack(np.broadcast_arrays(across, -down[:, None], 1.0), axis=-1).reshape(-1, 3)
    seen = []
    for rotation in rotations:
        x, y, z = rotation @ rays.T
        longitude, latitude = np.arctan2(x, z), np.arctan2(y, np.hypot(x, z))
        place = rows * (0.5 - latitude / np.pi) - 0.5, columns * (0.5 + longitude / (2 * np.pi)) - 0.5
        colours = [map_coordinates(room[..., c], place, order=1, mode="grid-wrap") for c in range(3)]
        seen.append(np.stack(colours, axis=-1).reshape(height, RAYS, width, RAYS, 3).mean(axis=(1, 3)))
    return np.array(seen)
