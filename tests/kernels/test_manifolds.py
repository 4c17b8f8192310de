"""Kernels on angles and rotations."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation as ScipyRotation

from meanmap.core import InputError, ParameterError, ShapeError
from meanmap.kernels import RBF, Rotation, Torus


@pytest.mark.oldest
def test_angles_have_no_seam():
    x = np.random.default_rng(0).uniform(-np.pi, np.pi, size=(6, 2))
    np.testing.assert_allclose(Torus(0.7)(x, x + 2 * np.pi * np.array([1, -3])), Torus(0.7)(x), atol=1e-13)


def test_close_angles_are_seen_as_rbf_sees_them():
    x = 1e-3 * np.random.default_rng(0).normal(size=(6, 2))
    np.testing.assert_allclose(Torus([1e-3, 2e-3])(x), RBF([1e-3, 2e-3])(x), atol=1e-5)


@pytest.mark.oldest
def test_rotations_are_compared_by_their_angle():
    """Turning all rotations together changes nothing, and 40 degrees are about a lengthscale of 1."""
    rotations = ScipyRotation.random(5, random_state=0)
    turned = ScipyRotation.random(random_state=1) * rotations
    np.testing.assert_allclose(Rotation(0.8)(turned), Rotation(0.8)(rotations), atol=1e-13)
    pair = ScipyRotation.from_rotvec([[0, 0, 0], [0, 0, 41.4]], degrees=True)
    assert Rotation(1.0)(pair)[0, 1] == pytest.approx(np.exp(-0.5), abs=1e-3)


def test_matrices_that_are_no_rotations_are_refused():
    good = ScipyRotation.random(3, random_state=0).as_matrix()
    mirrored = good * np.array([[[1.0, 1, -1]]])
    for x in (mirrored, 1.001 * good, good + 0.01):
        with pytest.raises(InputError, match=r"x\[0\] is not a rotation matrix"):
            Rotation(1.0)(x)
    with pytest.raises(InputError, match=r"y\[2\] is not a rotation matrix: its determinant is -1"):
        Rotation(1.0)(good, np.concatenate([good[:2], mirrored[:1]]))
    with pytest.raises(InputError, match=r"x\[0\] is not a rotation matrix"):
        Rotation(1.0)(jnp.asarray(mirrored))
    assert Rotation(1.0)(jnp.asarray(good)).dtype == jnp.float32  # float32 rounding is no fault


def test_rotation_has_one_lengthscale():
    with pytest.raises(ShapeError, match=r"lengthscale has shape \(2,\); expected one number"):
        Rotation([1.0, 2.0])
    with pytest.raises(ParameterError, match="expected values above 0"):
        Rotation(0.0)
