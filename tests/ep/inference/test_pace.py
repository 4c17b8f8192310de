"""How much of each step is taken, told by made-up steps."""

import numpy as np
import pytest

from meanmap.ep.inference.pace import _FIRST, _GROWTH, _LEAST, _LOOK, _MORE_CAREFUL, _PATIENCE, Pace


def never():
    raise AssertionError("two steps together are asked for only where sweeps may go in circles")


def test_shares_grow_while_steps_get_shorter_and_are_halved_after_a_longer_one():
    pace = Pace(careful=True)
    shares = [pace.share]
    for moved in (8.0, 7.0, 9.0, 6.0, 1.5):  # 9 is more than 1.2 times 7
        assert pace.after(moved, never, b"")
        shares.append(pace.share)
    grown = _FIRST * _GROWTH**2
    assert shares == pytest.approx(
        [_FIRST, _FIRST * _GROWTH, grown, grown / 2, grown / 2 * _GROWTH, grown / 2 * _GROWTH**2]
    )
    pace.after(0.5, never, b"")
    assert pace.share == 1.0  # within a standard deviation whole steps are taken


def test_sweeps_in_circles_take_half_steps_from_then_on():
    pace = Pace(careful=False)
    for _ in range(_LOOK):
        assert pace.after(2.0, never, b"")
    # A longer way together is no circle.
    assert pace.after(2.0, lambda: 3.1, b"")
    assert pace.most == 1.0
    assert pace.after(2.0, lambda: 2.9, b"")
    assert pace.most == 0.5
    assert pace.share == 0.5
    # What shrinks is left alone, and so is what is not finite.
    for moved in [*0.7 ** np.arange(_LOOK + 2), np.inf]:
        assert pace.after(float(moved), never, b"")
    assert pace.most == 0.5


def test_the_same_messages_left_out_again_and_again_end_a_run():
    pace = Pace(careful=False)
    found = [pace.after(float(0.5**k), never, b"a") for k in range(_PATIENCE)]
    assert found == [True] * (_PATIENCE - 1) + [False]
    assert pace.after(1e-9, never, b"")


def test_new_starts_are_more_careful_and_few():
    pace = Pace(careful=True)
    assert pace.may_start_anew(_PATIENCE + 1)
    assert not pace.may_start_anew(_PATIENCE)
    pace.start_anew()
    assert pace.share == _FIRST * _MORE_CAREFUL
    assert not pace.may_start_anew(100)


def test_circles_at_the_least_share_lead_nowhere():
    pace = Pace(careful=False)
    pace.most = _LEAST
    found = [pace.after(1.0, lambda: 0.1, b"") for _ in range(_LOOK + 1)]
    assert found == [True] * _LOOK + [False]


def test_the_second_step_may_be_too_long_already():
    pace = Pace(careful=True)
    for moved in (5.0, 9.0):
        pace.after(moved, never, b"")
    assert pace.share == pytest.approx(_FIRST * _GROWTH / 2)


@pytest.mark.parametrize("steps", [[10.0, *[1.0] * _LOOK], [2.0, *[1.0] * (_LOOK - 1), 3.0]])
def test_the_shortest_of_the_last_few_is_compared_with_those_before(steps):
    pace = Pace(careful=False)
    for moved in steps:
        assert pace.after(moved, never, b"")


def test_from_the_mode_the_first_step_is_a_whole_one():
    assert Pace(careful=True, near=True).share == 1.0
    assert Pace(careful=True).share < 0.1
