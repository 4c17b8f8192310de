"""Which cases of costly tests stay in `make test`."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from tests import costs, mutants


def test_as_many_cases_stay_as_can_be_afforded():
    assert costs.afforded(8, 2.0, most=0.5) == [0, 4]
    assert costs.afforded(3, 0.4, most=0.5) == [0, 1, 2]
    assert costs.afforded(1, 0.6, most=0.5) == []
    assert costs.afforded(7, 2.0, most=1.0) == [0, 2, 4]


def test_costs_are_measured_and_the_costly_wait(pytester, monkeypatch):
    monkeypatch.setattr(costs, "FILE", pytester.path / "costs.json")
    costs.FILE.write_text('{"test_it.py::test_gone": [1, 9.0]}')
    monkeypatch.setattr(costs, "MOST_SECONDS", 0.05)
    pytester.makepyfile(
        test_it="""
        import time
        import pytest

        def busy(seconds):
            end = time.process_time() + seconds
            while time.process_time() < end:
                pass

        def test_cheap(): pass
        def test_costly(): busy(0.1)
        @pytest.mark.always
        def test_costly_and_always(): busy(0.1)
        @pytest.mark.parametrize("case", range(4))
        def test_in_cases(case): busy(0.02)
        """
    )
    pytester.makeini("[pytest]\nmarkers =\n  thorough\n  always\n")
    assert pytester.inline_run("--costs", plugins=[costs]).countoutcomes() == [7, 0, 0]
    found = json.loads(costs.FILE.read_text())
    assert set(found) == {
        f"test_it.py::{name}" for name in ("test_gone", "test_costly", "test_costly_and_always", "test_in_cases")
    }
    costs.FILE.write_text(json.dumps({name: [cases, round(seconds, 1)] for name, (cases, seconds) in found.items()}))
    run = pytester.inline_run("-m", "not thorough", plugins=[costs])
    passed = [report.nodeid for report in run.getreports("pytest_runtest_logreport") if report.when == "call"]
    assert passed[:2] == ["test_it.py::test_cheap", "test_it.py::test_costly_and_always"]
    assert passed[2] == "test_it.py::test_in_cases[0]"
    assert len(passed) < 6


def test_what_workers_measured_is_added_up_by_their_parent(monkeypatch, tmp_path):
    monkeypatch.setattr(costs, "FILE", tmp_path / "costs.json")
    costs.FILE.write_text("{}")
    worker = SimpleNamespace(workeroutput={})
    measured = costs.Measurement(worker)
    measured.cases["a"], measured.seconds["a"] = 2, 3.0
    measured.pytest_sessionfinish()
    assert costs.FILE.read_text() == "{}"
    parent = costs.Measurement(SimpleNamespace())
    parent.pytest_testnodedown(worker)
    parent.pytest_testnodedown(worker)
    parent.pytest_sessionfinish()
    assert json.loads(costs.FILE.read_text()) == {"a": [4, 6.0]}


def test_what_is_known_of_all_cases_stays_where_some_were_run(monkeypatch, tmp_path):
    monkeypatch.setattr(costs, "FILE", tmp_path / "costs.json")
    costs.FILE.write_text('{"a": [20, 9.0], "b": [2, 1.0]}')
    measured = costs.Measurement(SimpleNamespace())
    measured.cases.update(a=2, b=2)
    measured.seconds.update(a=0.3, b=0.3)
    measured.pytest_sessionfinish()
    assert json.loads(costs.FILE.read_text()) == {"a": [20, 9.0]}


def test_processes_that_a_test_starts_count():
    before = costs.used()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert costs.used() - before > 0.25


def test_files_that_are_named_exist():
    named = [name.split("::")[0] for name in json.loads(costs.FILE.read_text())]
    for target, tests in mutants.TARGETS.items():
        named += [f"src/meanmap/{target}", *tests.split()]
    root = Path(__file__).parents[1]
    assert [name for name in named if not (root / name).exists()] == []
