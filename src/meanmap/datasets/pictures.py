"""Images with known depth: stereo scenes of Middlebury 2006."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.extras import optional
from meanmap.core.settings import one_of
from meanmap.core.values import Value
from meanmap.datasets.files import fetched, own

__all__ = ["STEREO_SCENES", "Stereo", "stereo"]

STEREO_SIBLINGS = {"Baby": 3, "Bowling": 2, "Cloth": 4, "Lampshade": 2, "Midd": 2, "Rocks": 2, "Wood": 2}
STEREO_SCENES = tuple(f"{name}{number}" for name, count in STEREO_SIBLINGS.items() for number in range(1, count + 1))


@dataclass(frozen=True, eq=False, repr=False)
class Stereo(Value):
    """One scene from two viewpoints.

    Attributes
    ----------
    left, right : (height, width, 3) arrays of float
        The images, with colours between 0 and 1.
    disparity : (height, width) array of float
        The shift in pixels of each point of the left image; NaN where it is unknown. Depth is proportional to its
        inverse, up to an offset of the scene.
    """

    left: Any
    right: Any
    disparity: Any


def stereo(scene: str) -> Stereo:
    """One of the 17 scenes in `STEREO_SCENES`, about 370 rows by 440 columns (Scharstein & Pal 2007).

    Examples
    --------
    >>> scene = stereo("Baby1")  # doctest: +SKIP
    >>> scene.left.shape, scene.disparity.shape  # doctest: +SKIP
    ((370, 413, 3), (370, 413))
    """
    one_of(scene, "scene", STEREO_SCENES)
    with optional("reading a picture"):
        from matplotlib.image import imread

    left, right, disparity = (
        imread(own(name) or fetched(name))
        for name in (f"stereo_depth/{scene}_{view}.png" for view in ("view1", "view5", "disp1"))
    )
    grey = disparity if disparity.ndim == 2 else disparity[..., 0]
    pixels = (
        np.rint(np.asarray(grey, float) * 255.0) / 3.0
    )  # at a third of the full size, disparities are stored times 3
    return Stereo(
        np.asarray(left[..., :3], float), np.asarray(right[..., :3], float), np.where(pixels > 0, pixels, np.nan)
    )
