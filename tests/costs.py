"""What tests cost, and which of them wait for the day: a plugin of pytest that conftest.py loads.

`make test` answers while one waits, so in it each test function may take `MOST_SECONDS` of processor time. Functions
that take more are listed in costs.json, with the number of their cases and the seconds of all together. As many of
their cases as can be afforded stay, spread evenly; the others, often all, get the marker `thorough` and run in
`make test-day`. `make costs` measures again. The marker `always` keeps a test in `make test` whatever it costs.
"""

import json
import time
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

__all__ = ["MOST_SECONDS", "afforded"]

MOST_SECONDS = 0.5
FILE = Path(__file__).with_name("costs.json")


def afforded(cases: int, seconds: float, most: float) -> list[int]:
    """Which of so many cases, that take `seconds` together, can be had for `most` seconds."""
    number = min(cases, int(cases * most / seconds))
    return [place * cases // number for place in range(number)]


def function(item: pytest.Item) -> str:
    """The test function of a case."""
    return item.nodeid.split("[")[0]


@pytest.hookimpl(tryfirst=True)  # before pytest looks at markers
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the cases that `make test` cannot afford."""
    costs: dict[str, tuple[int, float]] = json.loads(FILE.read_text(encoding="utf-8"))
    seen: Counter[str] = Counter()
    for item in items:
        name = function(item)
        place, seen[name] = seen[name], seen[name] + 1
        if (
            name in costs
            and place not in afforded(*costs[name], MOST_SECONDS)
            and not item.get_closest_marker("always")
        ):
            item.add_marker("thorough")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make costs` measure."""
    parser.addoption("--costs", action="store_true", help="measure what tests cost, and write tests/costs.json")


def pytest_configure(config: pytest.Config) -> None:
    """Measure where that was asked for."""
    if config.getoption("--costs"):
        config.pluginmanager.register(Measurement())


class Measurement:
    """Processor seconds of each test function, set-up included; written at the end, beside what is known of others."""

    def __init__(self):
        self.cases: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        started = time.process_time()
        answer = yield
        self.cases[function(item)] += 1
        self.seconds[function(item)] += time.process_time() - started
        return answer

    def pytest_sessionfinish(self) -> None:
        costs = json.loads(FILE.read_text(encoding="utf-8"))
        for name, seconds in self.seconds.items():
            costs.pop(name, None)
            if seconds > MOST_SECONDS:
                costs[name] = self.cases[name], round(seconds, 1)
        lines = [f"  {json.dumps(name)}: {json.dumps(cost)}" for name, cost in sorted(costs.items())]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
