"""Panels that do not get everything they want state the error that is left, and are in doubt where it is large."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.ep.quadrature.mesh import Weighed
from meanmap.ep.quadrature.panels import adapted


def oscillating(z):
    """An observation of z + .2 sin(20 z) under a standard normal prior: four peaks and more."""
    image = z + 0.2 * jnp.sin(20 * z)
    own = -((1.5 - image) ** 2) / 2 / 0.05**2
    return Weighed(own - z**2 / 2, own, [z, image], {})


def without_pattern(z):
    """Jumps between neighbouring points."""
    own = jnp.floor(z * 1e7) % 2
    return Weighed(own - z**2 / 2, own, [z], {})


def panels(weigh):
    with jax.enable_x64(True):
        grid, error = jax.jit(lambda: adapted(weigh, (-9.5, 9.5), 64))()
        weights = jnp.exp(weigh(grid.points).height + grid.log_weights[0])
    return np.asarray(grid.points), np.asarray(weights), float(error)


def test_a_little_error_that_is_left_where_no_more_panels_fit_in_is_stated():
    points, weights, error = panels(oscillating)
    assert 1e-8 < error < 1e-6
    z = np.linspace(-1, 4, 200_001)
    density = np.exp(-((1.5 - z - 0.2 * np.sin(20 * z)) ** 2) / 2 / 0.05**2 - z**2 / 2)
    assert weights.sum() == pytest.approx(density.sum() * (z[1] - z[0]), rel=error)
    assert weights @ points / weights.sum() == pytest.approx(density @ z / density.sum(), abs=error)


def test_what_no_panels_show_is_left_with_a_large_error():
    assert panels(without_pattern)[2] > 1e-2
