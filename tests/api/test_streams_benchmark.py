"""The page of streams: memory that does not grow, and the answer of one run."""

import pytest

from benchmarks import pages, streams

FOUND = pages.stored()["streams"]


def test_a_hundred_thousand_rows_have_the_answer_of_one_run():
    assert FOUND["rows"] == 100_000
    for way in ("quadrature", "learned"):
        assert FOUND[way]["off"] < 0.05
        assert abs(FOUND[way]["wide"] - 1) < 0.01
        assert FOUND[way]["grown"] < 20
    assert max(FOUND["learned"]["asked"]) < 0.02


@pytest.mark.slow
def test_a_short_stream_measured_again_and_its_page():
    found = streams.measure(4000)
    for way in ("quadrature", "learned"):
        assert found[way]["off"] < 0.2
        assert found[way]["rate"] > 0
    assert found["quadrature"]["asked"] == [1.0] * 4
    assert streams.page(found).count("100.0% 100.0% 100.0% 100.0%") == 1
