"""The script behind the sizes of installations counts what distributions list, and its page says what was found."""

import sys

from benchmarks import first_calls, installing

FOUND = {
    "3.11.7": {
        "packages": 17,
        "bytes": 671_400_000,
        "blocks": [1.25, 2.0, 3.0, 4.0],
        "first": [{"cpu": 1.52, "wall": 2.0, "load": 0.5}] * 2,
        "first with all": [{"cpu": 1.6, "wall": 2.0, "load": 0.5}] * 2,
        "answers": {
            "JAX alone": {"first": [0.5, 0.4], "again": [0.4, 0.4]},
            "pc": {"first": [1.0, 1.2], "again": [0.8, 1.0]},
        },
        "sets": {"": [17, 671_400_000], "plots": [26, 760_000_000]},
    }
}


def test_sizes_are_of_all_distributions_but_ours():
    found = installing.sizes(sys.executable)
    assert found["jaxlib"] > 100_000_000
    assert found["iniconfig"] < 100_000
    assert not {"meanmap", "pip"} & set(found)


def test_extras_bring_what_they_say_and_what_that_needs():
    found = installing.brought(sys.executable, ["", "plots", "all"])
    assert {"jax", "jaxlib", "scipy", "joblib"} <= set(found[""])
    assert not {"matplotlib", "networkx", "pandas", "meanmap"} & set(found[""])
    assert {"matplotlib", "networkx", "pillow"} <= set(found["plots"]) - set(found[""])
    assert {*found["plots"], "pandas", "typer", "dask"} < set(found["all"])


def test_seconds_are_those_of_the_process_that_is_started():
    found = installing.seconds(sys.executable, "import time\nwhile time.process_time() < 0.3: pass\ntime.sleep(0.3)")
    assert 0.25 < found["cpu"] < found["wall"]


def test_answers_are_whole_processes_without_and_with_kept_programs():
    found = installing.answers(sys.executable, [installing.BARE], readings=1)
    (first,), (again,) = found[installing.BARE]["first"], found[installing.BARE]["again"]
    assert 0.1 < first < 30
    assert 0.1 < again < 30
    assert set(installing.ANSWERS) <= set(first_calls.CALLS)


def test_the_page_shows_what_was_found():
    text = installing.page(FOUND)
    for cell in (
        "``pip install .``",
        '``pip install ".[plots]"``',
        "671 MB",
        "1.5, 1.5",
        "1.2, 2.0, 3.0, 4.0",
        "2.0, 3.0",
        "2.0, 2.5",
    ):
        assert f"- {cell}\n" in text, cell
