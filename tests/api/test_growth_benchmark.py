"""Time against rows: the page and the picture show what is stored, and what the text says of it is so."""

import pytest

from benchmarks import growth, pages
from benchmarks.table import duration

STORED = pages.stored()["growth"]


@pytest.mark.parametrize("name", growth.CALLS)
def test_every_function_is_stored_and_can_be_called(name):
    assert list(STORED[name]) == [str(n) for n in growth.SIZES][: len(STORED[name])]
    growth.CALLS[name](growth.table(40))


def falls(name):
    """How many times as long as more rows some number of rows takes."""
    seconds = list(STORED[name].values())
    return max(taken / min(seconds[i:]) for i, taken in enumerate(seconds))


@pytest.mark.parametrize("name", growth.CALLS)
def test_fewer_rows_take_at_most_three_times_as_long(name):
    assert falls(name) < (3 if name == "k_sample_test" else 2.5)


@pytest.mark.parametrize("name", ["independence_test", "joint_independence_test", "independence_effect"])
def test_what_changed_fell_by_more_before(name):
    assert falls(f"before {name}") > 2.5 > falls(name)


def test_the_picture_and_the_table_show_what_is_stored():
    lines = growth.draw(STORED).axes[3].lines
    assert [list(line.get_ydata()) for line in lines] == [
        list(STORED[key].values()) for key in ("before joint_independence_test", "joint_independence_test")
    ]
    assert growth.PICTURE.exists()
    text = growth.page(STORED)
    assert all(f"- {duration(s)}\n" in text for seconds in STORED.values() for s in seconds.values())
