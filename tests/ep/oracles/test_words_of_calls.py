"""Words about the arguments of a call."""

import numpy as np

from meanmap.ep.calls import in_words


def test_arguments_stand_on_one_line():
    for few in (np.full(3, -4.907708e-04), np.full(5000, -4.907708e-04)):
        assert "\n" not in in_words((few, 1.5))
    assert in_words((np.array(0.25), np.array([1.0, 2.0]))) == "0.25, [1. 2.]"
