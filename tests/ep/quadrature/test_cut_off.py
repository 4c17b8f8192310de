"""What a grid over two numbers may miss beside the edge of a region where a density is zero is stated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from meanmap.ep.quadrature.mesh import Weighed
from meanmap.ep.quadrature.plane import Box, Search, _grid, _overlooked

COUNT = 49


def stated_and_mean(cut):
    """For two standard normals of which the first is below `cut`."""
    free = np.array([True, True])
    ends = jnp.full(2, 9.0)
    with jax.enable_x64(True):
        grid, axes = _grid(Box(-ends, ends, 0 * ends, 1e3 * ends, jnp.zeros(()), jnp.zeros(())), free, COUNT)
        a, b = grid.points
        height = jnp.where(a < cut, -(a**2 + b**2) / 2, -jnp.inf)
        found = Weighed(height, height, [a, b], {})
        stated = _overlooked(axes, found, grid, Search(free, COUNT, 37.0, None))
        weights = jax.nn.softmax(height + grid.log_weights[0])
        return float(stated), float(weights @ a)


def test_half_of_the_mass_beside_a_cut_counts():
    for cut in np.linspace(-1, 1.5, 11) + 0.0123:
        stated, mean = stated_and_mean(cut)
        exact = -np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi) / ndtr(cut)
        sd = np.sqrt(1 + cut * exact - exact**2)
        assert abs(mean - exact) / sd < stated
        assert stated < 1 or cut < 0.5  # a peak at the edge itself may rise between the nodes


def test_nothing_is_cut_off_a_smooth_density():
    stated, mean = stated_and_mean(np.inf)
    assert stated < 1e-9
    assert mean == pytest.approx(0, abs=1e-12)
