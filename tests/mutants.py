"""Which small changes of the code does no test notice? python -m tests.mutants [FILE ...] [--sample N] [--seed S].

A mutant is a file with one change: a comparison, an operator, a number or a condition is another one. Its tests run
until one fails, which kills it; a change that no test notices survives, and says what is not tested, or not needed.

Mutants of a file share a process: the changed function is put where the old one was, and what was compiled or
remembered is forgotten. The cheapest tests run first, as many as take ten seconds. A mutant that runs away ends the
process at a limit of processor time, and counts as killed.
"""

import argparse
import ast
import contextlib
import copy
import functools
import gc
import io
import itertools
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import jax
import pytest

__all__ = ["TARGETS", "main", "mutants"]

SOURCES = Path(__file__).parents[1] / "src" / "meanmap"

# What is changed, and by which tests that should be noticed.
TARGETS = {
    "stats/independence/moments.py": (
        "tests/stats/independence/test_moments.py tests/stats/independence/test_independence.py"
    ),
    "stats/multiple.py": "tests/stats/test_multiple.py",
    "stats/result.py": "tests/stats/test_result.py",
    "stats/independence/pairwise.py": "tests/stats/independence/test_pairwise.py",
    "stats/samples/blocks.py": "tests/stats/samples/test_blocks.py",
    "stats/independence/shifts.py": "tests/stats/independence/test_shifts.py",
    "stats/samples/drift.py": "tests/stats/samples/test_drift.py",
    "stats/samples/k_sample.py": "tests/stats/samples/test_k_sample.py",
    "stats/samples/feature_statistics.py": "tests/stats/samples/test_feature_statistics.py",
    "stats/samples/two_sample.py": "tests/stats/samples/test_two_sample.py tests/stats/samples/test_two_sample_plan.py",
    "stats/samples/two_sample_result.py": "tests/stats/samples/test_two_sample_result.py",
    "stats/independence/independence.py": "tests/stats/independence/test_independence.py",
    "stats/independence/joint_independence.py": "tests/stats/independence/test_joint_independence.py",
    "stats/conditional/variables.py": "tests/stats/conditional/test_conditional.py",
    "stats/simulation.py": "tests/stats/test_simulation.py",
    "linalg/pivoted.py": "tests/linalg/test_pivoted.py",
    "linalg/pivoted_fixed.py": "tests/linalg/test_pivoted_fixed.py",
    "linalg/ridge.py": "tests/linalg/test_ridge.py",
    "linalg/ridge_path.py": "tests/linalg/test_ridge_path.py",
    "linalg/online.py": "tests/linalg/test_online.py",
    "bp/engine/products.py": "tests/bp/engine/test_products.py",
    "bp/engine/algebra.py": "tests/bp/engine tests/bp/normal",
    "bp/engine/propagate.py": "tests/bp/engine tests/bp/tables",
    "bp/engine/layout.py": "tests/bp/engine tests/bp/tables",
    "ep/sweeps/sweep.py": ("tests/ep/sweeps tests/ep/inference/test_infer.py tests/ep/factors/test_exact.py"),
    "ep/inference/pace.py": (
        "tests/ep/inference/test_pace.py tests/ep/sweeps/test_schedules.py tests/ep/inference/test_infer.py"
    ),
    "ep/inference/order.py": "tests/ep/sweeps/test_schedules.py tests/ep/inference/test_infer.py",
    "ep/factors/gaussian.py": "tests/ep/factors/test_exact.py tests/ep/inference/test_infer.py",
}
MOST_SECONDS = 10.0  # of processor time for the tests of a mutant
RUNAWAY = 60  # and beyond them for what it does itself

OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.And: ast.Or, ast.Or: ast.And, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one change, if it is of a kind that is changed."""
    new: Any = copy.deepcopy(node)
    match new:
        case ast.BinOp() | ast.BoolOp() if type(new.op) in OPERATORS:
            new.op = OPERATORS[type(new.op)]()
        case ast.Compare() if type(new.ops[0]) in OPERATORS:
            new.ops[0] = OPERATORS[type(new.ops[0])]()
        case ast.UnaryOp(op=ast.USub() | ast.Not()) if not isinstance(new.operand, ast.Constant):
            return new.operand
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value) | float(value)):
            new.value = value + 1
        case ast.If() | ast.IfExp() | ast.While():
            new.test = ast.copy_location(ast.UnaryOp(ast.Not(), new.test), new.test)
        case _:
            return None
    return new


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Functions and methods; what is defined inside of one comes with it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node)


def mutants(source: str) -> Iterator[tuple[int, str, str, ast.Module]]:
    """Line, old and new text, and tree of each mutant: what functions do, but not what errors say."""
    tree = ast.parse(source)
    for function in functions(tree):
        said = {child for node in ast.walk(function) if isinstance(node, ast.Raise) for child in ast.walk(node)}
        for node in (node for statement in function.body for node in ast.walk(statement)):
            new = None if node in said else changed(node)
            if new is not None:
                texts = [ast.unparse(ast.fix_missing_locations(each)).splitlines()[0] for each in (node, new)]
                whole, place = copy.deepcopy((tree, node))  # in one copy, so that the place is found in the whole
                yield node.lineno, *texts, ast.fix_missing_locations(_Replace(place, new).visit(whole))


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def put(tree: ast.Module, file: Path) -> None:
    """Give the functions of a file that are there the code of another version of it."""
    new = {(code.co_qualname, code.co_firstlineno): code for code in codes(compile(tree, str(file), "exec"))}
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__.co_filename == str(file):
            code = new.get((found.__code__.co_qualname, found.__code__.co_firstlineno))
            if code is not None and code.co_freevars == found.__code__.co_freevars:
                found.__code__ = code
        elif isinstance(found, functools._lru_cache_wrapper) and str(found.__module__).startswith("meanmap"):
            found.cache_clear()
    jax.clear_caches()


class Loop:
    """Runs the tests of one file on its mutants, instead of once."""

    def __init__(self, file: Path, numbers: list[int]):
        self.file, self.numbers, self.failed = file, numbers, False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A failure in any phase counts."""
        self.failed |= report.failed

    def fails(self, items: list[pytest.Item]) -> bool:
        """Whether one of the tests fails; those after it are not run. Each makes its fixtures anew."""
        self.failed = False
        for item in items:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                return True
        return False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """For each mutant a line before, and one after, so that it is seen which one ended the process."""
        source = self.file.read_text(encoding="utf-8")
        put(ast.parse(source), self.file)  # tests that notice even this are not asked
        seconds = {}
        for item in session.items:
            started = time.process_time()
            if not self.fails([item]):
                seconds[item] = time.process_time() - started
        ordered = sorted(seconds, key=seconds.__getitem__)
        together = itertools.accumulate(map(seconds.__getitem__, ordered))
        if not ordered:
            raise RuntimeError(f"no test of {self.file} passes before anything is changed")
        items = [item for item, sum_so_far in zip(ordered, together, strict=True) if sum_so_far < MOST_SECONDS]
        every = list(mutants(source))
        for number in self.numbers:
            used = resource.getrusage(resource.RUSAGE_SELF)
            most = int(used.ru_utime + used.ru_stime + sum(map(seconds.__getitem__, items))) + RUNAWAY
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
            say("begun", number)
            put(every[number][3], self.file)
            killed = self.fails(items)
            put(ast.parse(source), self.file)
            say("killed" if killed else "survived", number, len(items))
        return True


def say(*words: object) -> None:
    """A line for the process that waits, past what pytest catches."""
    print(json.dumps(words), file=sys.__stderr__, flush=True)


def alone(target: str, numbers: list[int]) -> None:
    """The mutants of one file, in this process."""
    options = ["-q", "-p", "no:cacheprovider", "--assert=plain", "-m", "not slow"]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*options, *TARGETS[target].split()], plugins=[Loop(SOURCES / target, numbers)])


def tried(target: str, numbers: list[int]) -> dict[int, str]:
    """What became of mutants of a file, in processes of their own."""
    became: dict[int, str] = {}
    while left := [number for number in numbers if number not in became]:
        command = [sys.executable, "-m", "tests.mutants", target, "--alone", *map(str, left)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        begun = None
        for line in done.stderr.splitlines():
            with contextlib.suppress(ValueError):
                word, number, *_ = json.loads(line)
                begun = number if word == "begun" else None
                became |= {} if word == "begun" else {number: word}
        if begun is not None:
            became[begun] = "killed"
        elif not any(number in became for number in left):
            raise RuntimeError(f"the tests of {target} did not start:\n{done.stderr}")
    return became


def main(arguments: list[str] | None = None) -> int:
    """Print the mutants that survive, and the share that was killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"all unless named: {', '.join(TARGETS)}")
    parser.add_argument("--sample", type=int, default=25, help="mutants of each file, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--alone", type=int, nargs="+", help="mutants of one file, tried in this process")
    chosen = parser.parse_args(arguments)
    if chosen.alone is not None:
        alone(chosen.files[0], chosen.alone)
        return 0
    killed = total = 0
    for target in chosen.files or TARGETS:
        every = list(mutants((SOURCES / target).read_text(encoding="utf-8")))
        drawn = sorted(random.Random(chosen.seed).sample(range(len(every)), min(chosen.sample, len(every))))
        became = tried(target, drawn)
        killed, total = killed + sum(word == "killed" for word in became.values()), total + len(became)
        for number in (number for number, word in sorted(became.items()) if word == "survived"):
            line, old, new, _ = every[number]
            print(f"{target}:{line}: {old}  ->  {new}", flush=True)
        print(f"{target}: {sum(word == 'killed' for word in became.values())} of {len(became)} killed", flush=True)
    print(f"{killed} of {total} killed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
