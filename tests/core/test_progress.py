"""Progress bars: silence anywhere but on a terminal, and no trace after the loop there."""

import io
import sys
import threading
import time

import pytest

from meanmap.core import progress
from meanmap.core.progress import beside, track, waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_silent_where_standard_error_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    assert list(track(range(3), "counting")) == [0, 1, 2]
    with waiting("counting"):
        time.sleep(0.02)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_silent_without_a_console(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert list(track(range(3), "counting")) == [0, 1, 2]


def terminal(monkeypatch, patience=0.02):
    """Standard error as a terminal; set inside the test, because pytest puts its own stream in place before."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", patience)
    return screen


def slowly(items):
    for item in items:
        time.sleep(0.02)
        yield item


def assert_drawn_and_removed(screen):
    text = screen.getvalue()
    assert "counting" in text
    assert text.rindex("\x1b[2K") > text.rindex("counting")  # the line is wiped
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # and the cursor back


def test_bar_is_drawn_on_a_terminal_and_cleaned_up(monkeypatch):
    screen = terminal(monkeypatch)
    assert list(track(slowly(range(6)), "counting", total=6)) == list(range(6))
    assert_drawn_and_removed(screen)


def test_nothing_is_drawn_for_a_short_loop(monkeypatch):
    screen = terminal(monkeypatch, patience=60.0)
    assert list(track(range(6), "counting")) == list(range(6))
    assert screen.getvalue() == ""


def test_bar_goes_where_the_loop_is_left_early(monkeypatch):
    screen = terminal(monkeypatch)
    for item in track(slowly(range(100)), "counting"):
        if item == 5:
            break
    assert_drawn_and_removed(screen)


def test_bar_goes_where_the_loop_fails(monkeypatch):
    screen = terminal(monkeypatch)

    def fail():
        yield from slowly(range(5))
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        list(track(fail(), "counting"))
    assert_drawn_and_removed(screen)


def test_a_loop_inside_a_loop_draws_nothing(monkeypatch):
    screen = terminal(monkeypatch)
    for _ in track(slowly(range(6)), "counting", total=6):
        assert list(track(slowly(range(3)), "inside")) == [0, 1, 2]
    assert_drawn_and_removed(screen)
    assert "inside" not in screen.getvalue()
    assert not progress._drawn


def test_work_that_cannot_say_how_far_it_is(monkeypatch):
    screen = terminal(monkeypatch)
    with waiting("counting"):
        time.sleep(0.2)
        assert list(track(slowly(range(3)), "inside")) == [0, 1, 2]
    assert_drawn_and_removed(screen)
    assert "inside" not in screen.getvalue()
    assert not progress._drawn


def test_a_loop_whose_first_step_is_the_long_one(monkeypatch):
    """Compiling, say: nothing was drawn before the second step."""
    screen = terminal(monkeypatch)
    for item in track(range(2), "counting"):
        if item == 0:
            time.sleep(0.3)
            assert "counting" in screen.getvalue()
    assert_drawn_and_removed(screen)


def test_a_loop_inside_work_without_a_measure_is_drawn_beside_it(monkeypatch):
    screen = terminal(monkeypatch)
    with waiting("counting"):
        time.sleep(0.1)
        for _ in track(slowly(range(15)), "inside", total=15):
            pass
        assert "inside" in screen.getvalue()
    assert_drawn_and_removed(screen)
    assert not progress._drawn
    assert not progress._screen


def test_words_beside_a_bar_stay_until_its_next_step(monkeypatch):
    screen = terminal(monkeypatch)
    for item in track(range(3), "counting", total=3):
        if item == 1:
            time.sleep(0.2)
            beside("60 calls")
            time.sleep(0.2)
            assert "counting: 60 calls" in screen.getvalue()
            shown = len(screen.getvalue())
        elif item == 2:
            time.sleep(0.2)
            assert "counting" in screen.getvalue()[shown:]
            last = screen.getvalue().rindex("counting")
            assert not screen.getvalue()[last:].startswith("counting: 60")
    assert_drawn_and_removed(screen)
    beside("nowhere")
    assert "nowhere" not in screen.getvalue()


def test_prints_meanwhile_go_where_they_always_went(monkeypatch, capsys):
    screen = terminal(monkeypatch)
    with waiting("counting"):
        time.sleep(0.2)
        print("an answer")
    assert "an answer" not in screen.getvalue()
    assert capsys.readouterr().out == "an answer\n"


def test_work_that_is_soon_done_or_fails(monkeypatch):
    screen, before = terminal(monkeypatch, patience=60.0), set(threading.enumerate())
    with waiting("counting"):
        pass
    with pytest.raises(RuntimeError, match="half way"), waiting("counting"):
        raise RuntimeError("half way")
    assert screen.getvalue() == ""
    assert set(threading.enumerate()) <= before  # a thread of an earlier test may have ended meanwhile


def test_items_may_come_from_anywhere(monkeypatch):
    terminal(monkeypatch)
    assert list(track(iter("ab"), "counting")) == ["a", "b"]
    assert list(track([], "counting")) == []
