"""What tests cost, and which of them wait for the day: a plugin of pytest that conftest.py loads.

`make test` answers while one waits, so in it each test function may take `MOST_SECONDS` of processor time. Functions
that take more are listed in costs.json, with the number of their cases and the seconds of all together. As many of
their cases as can be afforded stay, spread evenly; the others, often all, get the marker `thorough` and run in
`make test-day`. `make costs` measures again. The marker `always` keeps a test in `make test` whatever it costs.
"""

import json
import os
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["MOST_SECONDS", "afforded"]

MOST_SECONDS = 0.3
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
        config.pluginmanager.register(Measurement(config))


class Measurement:
    """Processor seconds of each test function, its set-up and the processes that it starts included.

    They are written at the end, beside what is known of others: by pytest itself, or for its workers by their parent.
    """

    def __init__(self, config: pytest.Config):
        self.sent: dict[str, list[tuple[str, int, float]]] | None = getattr(config, "workeroutput", None)
        self.cases: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        started = used()
        answer = yield
        self.cases[function(item)] += 1
        self.seconds[function(item)] += used() - started
        return answer

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker has measured."""
        for name, cases, seconds in getattr(node, "workeroutput", {}).get("costs", ()):
            self.cases[name] += cases
            self.seconds[name] += seconds

    def pytest_sessionfinish(self) -> None:
        if self.sent is not None:
            self.sent["costs"] = [(name, self.cases[name], seconds) for name, seconds in self.seconds.items()]
            return
        costs = json.loads(FILE.read_text(encoding="utf-8"))
        for name, seconds in self.seconds.items():
            if name in costs and self.cases[name] < costs[name][0]:
                continue  # the other cases were not run: what is known of all stays
            costs.pop(name, None)
            if seconds > MOST_SECONDS:
                costs[name] = self.cases[name], round(seconds, 1)
        lines = [f"  {json.dumps(name)}: {json.dumps(cost)}" for name, cost in sorted(costs.items())]
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def used() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])
