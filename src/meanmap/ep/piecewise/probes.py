"""Where to evaluate a function, so that no stretch of a belief relies on polynomials alone."""

import numpy as np

__all__ = ["OF_BELIEF", "OF_INCOMING", "apart", "cells"]

# How many cells of equal mass there are, each with a point at which the function was called, and to which power the
# density is taken. Of the root of a Normal belief they are .22 standard deviations wide at the centre, and the outer
# ones begin 2.2 from it. What comes in is wider: its cells, .03 wide at the centre and .05 one deviation from it, find
# another peak of the belief, and cost too much where each row has a function of its own.
OF_BELIEF, OF_INCOMING = (16, 0.5), (80, 1.0)

# A density is not known where its points end less than this below its peak.
_DEPTH_OF_ENDS = 8.0

# One point alone that has more of the mass does not tell where it lies.
_ALONE = 0.5


def cells(z: np.ndarray, height: np.ndarray, count: int, power: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of equal mass under densities given at points.

    Parameters
    ----------
    z, height : arrays (rows, points)
        Points and the log of the density; NaN in rows to skip.
    count : int
        Number of cells per row.
    power : number
        Power of the density whose mass is divided.

    Returns
    -------
    rows : array (cells,)
        The row of each cell.
    ends, middle : arrays (2, cells) and (cells,)
        Its ends, and its median.
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


def apart(line: np.ndarray, ends: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Which of these cells to probe, so that each contains a probed point: few where cells of many rows overlap."""
    order = np.lexsort((ends[1], line))
    chosen, last = [], (-1, 0.0)
    for at, one, low, place in zip(order, line[order], ends[0, order], middle[order], strict=True):
        if one != last[0] or last[1] < low:
            chosen.append(at)
            last = one, place
    return np.array(chosen, int)
