"""Permutation tests of joint independence at landmarks: as exact as with full Gram matrices, and linear in the rows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from meanmap.core.arrays import out_of_range
from meanmap.core.door import Door
from meanmap.core.points import count, rows
from meanmap.core.progress import track
from meanmap.core.types import Points
from meanmap.features.base import transformed
from meanmap.kernels.base import Kernel
from meanmap.stats.independence.joint_plan import landmarks_of, whitening
from meanmap.stats.independence.shifts import Shifts
from meanmap.stats.independence.variables import constant
from meanmap.stats.permutations import Permuted

__all__ = ["permuted_at_landmarks"]

# The least and the largest number of landmarks; between these, the largest number of kernel values for each variable.
# With six variables and 500 rows, tests with 256 landmarks rejected .52 of data sets and those with full Gram matrices
# .60.
LANDMARKS, VALUES = (256, 512), 1_280_000
# The number of products that are held together, so that they stay in cache.
TOGETHER = 2**17
# The rounding error of a mean in single precision, relative to the largest of the means.
SINGLE = float(np.finfo(np.float32).eps)


def permuted_at_landmarks(
    kernels: Sequence[Kernel],
    points: Sequence[Points],
    names: Sequence[str],
    shifts: Shifts,
    generator: np.random.Generator,
    door: Door,
) -> tuple[Permuted, int]:
    """dHSIC projected on the span of m landmarks, for the data and each permutation; and m.

    Landmarks are rows whose variables were shuffled separately. They depend on each variable alone, so permutations
    keep the level exactly. Each permutation costs O(m d n), on slices, without gathering entries.
    """
    n = count(points[0])
    members = landmarks_of(kernels, points, min(n, max(LANDMARKS[0], min(LANDMARKS[1], VALUES // n))), generator)
    values, units = [], []
    for member, part, name in zip(members, points, names, strict=True):
        found = np.ascontiguousarray(transformed(member, rows(part, shifts.base)).T)
        largest = float(np.abs(found).max())
        if not np.isfinite(largest):
            raise out_of_range(f"a kernel value is {largest}")
        if np.ptp(found, axis=1).max() <= 1e-6 * largest:
            raise constant(name)
        values.append((found / largest).astype(np.float32))
        units.append(largest)
    means = np.prod([each.mean(axis=1, dtype=float) for each in values], axis=0)
    cosets = [[np.arange(n)] * len(values)]
    for order in shifts.orders[1:]:
        cosets.append([cosets[0][0], order, *(generator.permutation(len(order)) for _ in values[2:])])
    pairs = zip(cosets, shifts.chosen, strict=True)
    products = [_means(values, orders, shifts.step, chosen) for orders, chosen in pairs]
    whitened = whitening(members, units).T
    difference = whitened @ (np.concatenate(products, axis=1) - means[:, None])
    found = np.sum(difference**2, axis=0)
    error = SINGLE * float(np.abs(means).max()) * np.linalg.norm(whitened) * float(np.sqrt(found.max()))
    return Permuted(np.prod(units) * found, float(np.prod(units) * error)), len(means)


def _means(values: Sequence[np.ndarray], orders: Sequence[np.ndarray], step: int, chosen: np.ndarray) -> np.ndarray:
    """Means of products of all variables, the k-th in its order and shifted by k s steps, for each chosen s, (m,
    shifts).

    With two variables shifted values are copied, and all shifts are one product of matrices. With more, consecutive
    shifts are slices of one array.
    """
    (m, n), d = values[0].shape, len(values)
    whole, size = n // step * step, n // step
    copied, most = d == 2, max(1, min(TOGETHER // n, size // (d - 1)))
    runs = [0, *([] if copied else (np.flatnonzero(np.diff(chosen) != 1) + 1).tolist()), len(chosen)]
    parts = [slice(a, min(a + most, stop)) for start, stop in pairwise(runs) for a in range(start, stop, most)]
    found = np.empty((m, len(chosen)))
    for landmark, out in enumerate(track(found, "landmarks")):
        first, *others = (each[landmark][order] for each, order in zip(values, orders, strict=True))
        windows = [sliding_window_view(np.concatenate([other[:whole]] * 3), whole) for other in others]
        for part in parts:
            product = None
            for k, window in enumerate(windows, 1):
                at, by = k * step * chosen[part] % whole, k * step
                shifted = window[at] if copied else window[at[0] : at[0] + by * len(at) : by]
                product = shifted if product is None else product * shifted
            out[part] = product @ first[:whole]
        out += np.prod([first, *others], axis=0)[whole:].sum(dtype=float)
    return found / n
