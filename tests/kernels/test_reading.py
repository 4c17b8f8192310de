"""Reading points for a kernel."""

import numpy as np
import pytest
import scipy.sparse

from meanmap.core import ColumnError, Door, KindError, ShapeError
from meanmap.kernels import RBF, Delta, OnColumns
from meanmap.kernels.reading import check_alike, read_pair, read_points

pytestmark = pytest.mark.oldest


def test_hyperparameters_take_the_precision_of_the_door():
    import jax.numpy as jnp

    x = jnp.ones((2, 1), jnp.float32)
    with Door(x) as door:
        kernel, first, second = read_pair(RBF(1.0), x, None, door)
    assert kernel.lengthscale.dtype == np.float32
    assert first.dtype == np.float32
    assert second is None


@pytest.mark.parametrize("kernel", ["rbf", None, 1.0, np.eye(2)])
def test_what_is_no_kernel_is_refused(kernel):
    with (
        Door() as door,
        pytest.raises(KindError, match=r"(?s)kernel is .*; expected a kernel such as mm.kernels.RBF\(1.0\)"),
    ):
        read_points(kernel, [1.0], "x", door)


def test_points_that_differ_are_refused():
    check_alike(np.ones((2, 3)), scipy.sparse.csr_array((5, 3)), "x", "y")
    with pytest.raises(ShapeError, match=r"x and the landmarks differ in their columns: shapes \(2, 3\) and \(2, 2\)"):
        check_alike(np.ones((2, 3)), np.ones((2, 2)), "x", "the landmarks")
    with pytest.raises(ShapeError, match="differ in their columns"):
        check_alike((np.ones((2, 3)), np.ones(2)), (np.ones((1, 3)), np.ones((1, 1))), "x", "y")


def test_tables_are_matched_by_name_where_columns_are_named():
    x, y = {"a": [1.0], "b": ["u"]}, {"c": [0], "a": [2.0], "b": ["u"]}
    mixed = OnColumns(RBF(1.0), "a") * OnColumns(Delta(), "b")
    assert mixed(x, y)[0, 0] == pytest.approx(np.exp(-0.5))
    with pytest.raises(ColumnError, match="Give both the same columns in the same order"):
        (OnColumns(RBF(1.0), 0) * OnColumns(Delta(), "b"))(x, y)
