"""Dots of pictures with a logarithmic axis."""

import numpy as np
from matplotlib.figure import Figure

from meanmap_papers.dots import dots


def test_each_number_is_a_dot_in_the_column_of_its_name_and_a_zero_is_left_out():
    axes = Figure().subplots()
    dots(axes, ["one", "two"], {"a": [1.0, 10.0], "b": [0.0, 5.0]}, {"a": [0.1, 0.2], "b": [0.1, 0.1]})
    assert not axes.patches
    first, second = (each.lines[0] for each in axes.containers)
    np.testing.assert_array_equal(np.round(first.get_xdata()), [0, 1])
    np.testing.assert_array_equal(first.get_ydata(), [1, 10])
    np.testing.assert_array_equal(second.get_ydata(), [np.nan, 5])
    assert [each.get_text() for each in axes.get_xticklabels()] == ["one", "two"]
    assert axes.get_yscale() == "log"
