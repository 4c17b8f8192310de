"""Where to evaluate a function, so that no part of a belief relies on interpolation alone."""

import numpy as np

__all__ = ["OF_BELIEF", "OF_INCOMING", "apart", "cells", "cells_of_two"]

# The number of cells of equal mass, in each of which the function is called at least once, and the power to which the
# density is raised. For the square root of a Normal belief, cells are .22 standard deviations wide at the centre, and
# the outermost begin 2.2 standard deviations from it. The incoming message is wider: its cells, .03 standard deviations
# wide at the centre and .05 one standard deviation from it, detect further peaks of the belief, but cost too much if
# each row has a function of its own.
OF_BELIEF, OF_INCOMING = (16, 0.5), (80, 1.0)

# For two numbers: the number of cells along each axis, and the power of the density, for incoming messages and beliefs.
_ALONG, _POWER = 8, 0.5

# Points whose density is below e⁻¹⁴ times that of the peak are left out.
_DEPTH = 14.0

# A density is not resolved if its log at the outermost points is less than this below its peak.
_DEPTH_OF_ENDS = 8.0

# If a single point has more than this share of the mass, the density is not resolved.
_ALONE = 0.5


def cells(z: np.ndarray, height: np.ndarray, count: int, power: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide densities given at points into cells of equal mass.

    Parameters
    ----------
    z, height : arrays (rows, points)
        Points and the log of the density; NaN in rows to skip.
    count : int
        Number of cells per row.
    power : number
        Power to which the density is raised before its mass is divided.

    Returns
    -------
    rows : array (cells,)
        The row of each cell.
    ends, middle : arrays (2, cells) and (cells,)
        The ends of each cell, and its median.
    """
    told = np.flatnonzero(np.isfinite(height).any(1) & ~np.isnan(height).any(1) & (height < np.inf).all(1))
    order = np.argsort(z[told], axis=1)
    z, height = (np.take_along_axis(each[told], order, 1) for each in (z, height))
    width, height = np.diff(z), height - height.max(1, keepdims=True, initial=-1e300)
    share = np.exp(height) * (np.pad(width, ((0, 0), (1, 0))) + np.pad(width, ((0, 0), (0, 1))))
    clear = (share.max(1) < _ALONE * share.sum(1)) & (height[:, [0, -1]] < -_DEPTH_OF_ENDS).all(1)
    told, z, width, density = told[clear], z[clear], width[clear], np.exp(power * height[clear])
    mass = np.cumsum(np.pad(width * (density[:, 1:] + density[:, :-1]) / 2, ((0, 0), (1, 0))), axis=1)
    level = np.arange(2 * count + 1) / (2 * count)
    found = [np.interp(level * each[-1], each, places) for each, places in zip(mass, z, strict=True)]
    places = np.array(found).reshape(len(told), 2 * count + 1)
    ends = np.stack([places[:, :-2:2].ravel(), places[:, 2::2].ravel()])
    return np.repeat(told, count), ends, places[:, 1::2].ravel()


def cells_of_two(z: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide the square root of a density, given at points (n, 2) of a grid, into rectangles of equal mass.

    Rectangles extend half a grid step beyond their points, so that neighbours meet, and points that were evaluated stay
    inside some rectangle when the grid moves a little.

    Returns
    -------
    low, high, middle : arrays (cells, 2)
        Corners, and a point near the centre of mass; empty if the density is not resolved.
    """
    nothing = np.zeros((0, 2))
    if np.isnan(height).any() or not np.isfinite(height).any() or (height == np.inf).any():
        return nothing, nothing, nothing
    kept = height - height.max() > -_DEPTH
    half = np.abs([z[round(len(z) ** 0.5), 0] - z[0, 0], z[1, 1] - z[0, 1]]) / 2
    z, mass = z[kept], np.exp(_POWER * (height[kept] - height.max()))
    if mass.max() > mass.sum() / _ALONG**2:
        return nothing, nothing, nothing
    first = _groups(z[:, 0], mass, np.zeros(len(z), int))
    cell = _ALONG * first + _groups(z[:, 1], mass, first)
    _, cell = np.unique(cell, return_inverse=True)
    count = cell.max() + 1
    low, high = np.full((count, 2), np.inf), np.full((count, 2), -np.inf)
    np.minimum.at(low, cell, z)
    np.maximum.at(high, cell, z)
    centre = np.stack([np.bincount(cell, mass * each) for each in z.T], 1) / np.bincount(cell, mass)[:, None]
    return low - half, high + half, centre


def _groups(z: np.ndarray, mass: np.ndarray, within: np.ndarray) -> np.ndarray:
    """Which share of the mass of its group each point belongs to, where groups are cut into equal shares along z."""
    order = np.lexsort((z, within))
    sums = np.cumsum(mass[order]) - mass[order] / 2
    total = np.bincount(within, mass)
    before = np.append(0.0, np.cumsum(total)[:-1])
    share = np.zeros(len(z), int)
    share[order] = ((sums - before[within[order]]) / total[within[order]] * _ALONG).astype(int)
    return np.clip(share, 0, _ALONG - 1)


def apart(line: np.ndarray, ends: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Select cells to probe so that every cell contains a probed point: only a few where cells of many rows overlap."""
    order = np.lexsort((ends[1], line))
    chosen, last = [], (-1, 0.0)
    for at, one, low, place in zip(order, line[order], ends[0, order], middle[order], strict=True):
        if one != last[0] or last[1] < low:
            chosen.append(at)
            last = one, place
    return np.array(chosen, int)
