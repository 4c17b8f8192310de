"""What intervals of differences are corrected for: constants say nothing, and copies nothing new."""

import numpy as np
import pytest

from meanmap.stats.samples.comparing import differences

RNG = np.random.default_rng(5)
FIRST = {"age": RNG.normal(size=60), "site": RNG.choice(["a", "b", "c"], 60)}
SECOND = {"age": RNG.normal(0.5, size=50), "site": RNG.choice(["a", "b", "c"], 50)}


@pytest.mark.parametrize("value", [7.0, 3, "EUR", True])
def test_a_constant_is_no_comparison(value):
    more = [{**table, "constant": np.full(len(table["age"]), value)} for table in (FIRST, SECOND)]
    assert differences(*more).to_frame().equals(differences(FIRST, SECOND).to_frame())


def test_a_constant_with_another_value_in_the_second_sample_is_one():
    found = differences({**FIRST, "unit": np.full(60, 1.0)}, {**SECOND, "unit": np.full(50, 2.0)})
    assert "unit" in [each.column for each in found]


def test_a_copy_has_its_own_lines_and_widens_nothing():
    alone = differences(FIRST, SECOND)
    found = differences(*({**table, "copy": table["age"], "also": table["site"]} for table in (FIRST, SECOND)))
    assert (len(found), found.comparisons) == (2 * len(alone), alone.comparisons)
    low = {each.column: each.difference.low for each in found if each.label is None}
    assert low["copy"] == low["age"] == next(each.difference.low for each in alone if each.label is None)
