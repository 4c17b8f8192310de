"""What the first call in a process costs: python -m benchmarks.first_calls [NAME ...] [--programs N].

Each call of the README runs in a process of its own that has imported NumPy, JAX and the library's front door, at the
size of its example, with no compilation kept from before. Reported are processor and wall seconds, how many programs
were compiled, and how long XLA took over them; `--programs N` names the N programs that took longest.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.table import duration, list_table

__all__ = ["CALLS", "main", "measure", "measured", "page"]

# Settings of tests, and kept programs, would hide what is measured.
HIDING = ("XLA_", "JAX_", "MEANMAP_", "PYTHONDONTWRITEBYTECODE")

Call = Callable[[], Any]


def samples(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) * [2.0, 1.0]


def columns(n: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(n, 3)), rng.normal(size=n)
    return x, np.sin(x[:, 0]) + 0.1 * noise, np.linspace(-2.0, 2.0, 5)


def garden() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    sun, water = rng.normal(size=(2, 300))
    growth = np.tanh(sun) + np.abs(water) + 0.2 * rng.normal(size=300)
    return {"sun": sun, "water": water, "growth": growth, "harvest": growth**2 + 0.4 * rng.normal(size=300)}


def farm() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    water = rng.normal(size=600)
    growth = np.abs(water) + 0.2 * rng.normal(size=600)
    return {"water": water, "growth": growth, "harvest": growth**2 + 0.4 * rng.normal(size=600)}


def bare() -> Call:
    import jax

    return lambda: jax.jit(lambda x: x @ x)(np.ones((300, 300)))


def two_sample() -> Call:
    import meanmap as mm

    before, after = samples(500)
    return lambda: mm.two_sample_test(before, after, rng=0)


def independence() -> Call:
    import meanmap as mm

    x, _, _ = columns()
    return lambda: mm.independence_test(x[:, 0], x[:, 1:], rng=0)


def conditional() -> Call:
    import meanmap as mm

    table = garden()
    return lambda: mm.conditional_independence_test(table["sun"], table["harvest"], table["growth"], rng=0)


def pc() -> Call:
    import meanmap as mm

    table = garden()
    return lambda: mm.pc(table, rng=0)


def graph_fit() -> Call:
    import meanmap as mm

    table = farm()
    return lambda: mm.KernelGraph([("water", "growth"), ("growth", "harvest")]).fit(table)


def graph_query() -> Call:
    model, grid = graph_fit()(), np.linspace(-3.0, 3.0, 200)
    return lambda: model.query({"harvest": 3.0}, targets=["water"])["water"].density(grid)


def grid() -> Call:
    import meanmap as mm

    rng = np.random.default_rng(0)
    down, right = np.mgrid[:30, :30]
    clean = 5.0 * (down + right)
    noisy, seen = clean + 30 * rng.normal(size=(2, 30, 30))
    return lambda: mm.KernelGrid().fit(clean, noisy).restore(seen).mean()


def logistic() -> Call:
    import jax

    from meanmap import ep

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = (x @ [2.0, -1.0] + rng.logistic(size=300) > 0).astype(int)
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    z, p = ep.Variable("z", ep.Normal, plate=300), ep.Variable("p", ep.Beta, plate=300)
    model = ep.FactorGraph(ep.Dot(x, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y))
    return lambda: ep.infer(model)


def density() -> Call:
    import jax.numpy as jnp

    from meanmap import ep

    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    model = ep.FactorGraph(ep.Density(lambda z, y: y * z - jnp.exp(z), z, 4))
    return lambda: ep.infer(model)


def learned_kernel() -> Call:
    import meanmap as mm

    x, _, _ = columns()
    return lambda: mm.learn_kernel(x, rng=0)


def operator() -> Call:
    import meanmap as mm

    x, y, at = columns()
    return lambda: mm.condition(x[:, 0], y)(at).quantile([0.05, 0.95])


CALLS: dict[str, Callable[[], Call]] = {
    "JAX alone": bare,
    "two_sample_test": two_sample,
    "independence_test": independence,
    "conditional_independence_test": conditional,
    "pc": pc,
    "KernelGraph.fit": graph_fit,
    "KernelGraph.query": graph_query,
    "KernelGrid": grid,
    "ep.Density": density,
    "ep.infer": logistic,
    "learn_kernel": learned_kernel,
    "condition": operator,
}


def alone(name: str) -> dict[str, Any]:
    """Seconds of one first call in this process, with its programs."""
    import jax

    programs: list[tuple[str, float]] = []

    def listen(event: str, seconds: float, **details: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            programs.append((str(details.get("fun_name", "?")), seconds))

    call = CALLS[name]()
    jax.monitoring.register_event_duration_secs_listener(listen)
    wall, cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(call())
    seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return {**seconds, "compiling": sum(duration for _, duration in programs), "programs": programs}


def measured(name: str, repeats: int = 1) -> dict[str, Any]:
    """The cheapest of a few first calls, each in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(HIDING)}
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    command = [sys.executable, "-m", "benchmarks.first_calls", name, "--alone"]
    answers = []
    for _ in range(repeats):
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        answers.append(json.loads(done.stdout.splitlines()[-1]))
    return min(answers, key=lambda answer: answer["cpu"])


def measure() -> dict[str, Any]:
    """Processor seconds and compiled programs of every call, for the run of all benchmarks.

    Of two processes, because in a fresh checkout the first of them also turns modules into bytecode.
    """
    found = {}
    for name in CALLS:
        answer = measured(name, repeats=2)
        found[name] = {"seconds": float(f"{answer['cpu']:.2g}"), "programs": len(answer["programs"])}
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def page(found: dict[str, Any]) -> str:
    """The table of the documentation."""
    rows = [
        [f"``{name}``" if name != "JAX alone" else name, duration(of["seconds"]), of["programs"]]
        for name, of in found.items()
    ]
    return "\n".join(list_table(["call", "processor seconds", "compiled programs"], rows))


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each call, then their sum, then the programs if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_calls", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all unless named: {', '.join(CALLS)}")
    parser.add_argument("--programs", type=int, default=0, metavar="N", help="also the N programs that took longest")
    parser.add_argument("--repeats", type=int, default=1, help="processes a call; the cheapest is reported")
    parser.add_argument("--alone", action="store_true", help="one call, measured in this process")
    chosen = parser.parse_args(arguments)
    if chosen.alone:
        print(json.dumps(alone(chosen.names[0])))
        return 0
    parts = ("cpu", "wall", "compiling")
    print(f"{'first call':32}" + "".join(f"{part:>11}" for part in parts) + " programs")
    total, found = dict.fromkeys(parts, 0.0), []
    for name in chosen.names or CALLS:
        answer = measured(name, chosen.repeats)
        total = {part: total[part] + answer[part] for part in parts}
        found += [(seconds, program, name) for program, seconds in answer["programs"]]
        print(f"{name:32}" + "".join(f"{answer[part]:11.2f}" for part in parts) + f"{len(answer['programs']):9}")
    print(f"{'sum':32}" + "".join(f"{total[part]:11.2f}" for part in parts) + f"{len(found):9}")
    for seconds, program, name in sorted(found, reverse=True)[: chosen.programs]:
        print(f"{seconds:8.3f} s  {program}, in {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
