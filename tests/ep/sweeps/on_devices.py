"""A program of several devices, run by tests in a process of its own: the number of devices is set before JAX starts.

`python -m tests.ep.sweeps.on_devices` prints, for every model, how far beliefs on all devices are from those on one,
what devices tell each other in a compiled sweep, and where beliefs lie.
"""

import json
import re
import sys

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh

from meanmap import ep
from meanmap.ep.factor import replaced
from meanmap.ep.inference.infer import _ready
from meanmap.ep.sweeps.layout import Layout
from meanmap.ep.sweeps.plan import prepare, start
from meanmap.ep.sweeps.sweep import Settings, sweep

ROWS, COLUMNS, GROUPS = 400, 3, 10
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, COLUMNS))
Y = (X[:, 0] + RNG.normal(size=ROWS) > 0).astype(int)


def probit(rows=ROWS):
    w = ep.Variable("w", ep.MultivariateNormal.standard(COLUMNS))
    z = ep.Variable("z", ep.Normal, plate=rows)
    return ep.FactorGraph(ep.Dot(X[:rows], w, z), ep.Probit(z, observed=Y[:rows]))


def uneven():
    """No device count divides the plate: the last device has fewer real members."""
    return probit(ROWS - 1)


def black_box():
    w = ep.Variable("w", ep.MultivariateNormal.standard(COLUMNS))
    z, p = ep.Variable("z", ep.Normal, plate=ROWS), ep.Variable("p", ep.Beta, plate=ROWS)
    sigmoid = ep.BlackBox(lambda u: 1 / (1 + jax.numpy.exp(-u)), z, p)
    return ep.FactorGraph(ep.Dot(X, w, z), sigmoid, ep.Bernoulli(p, observed=Y))


def hierarchy():
    """Members of a group are any rows: the groups are on every device."""
    centre = ep.Variable("centre", ep.Normal(0.0, 10.0))
    group = ep.Variable("group", ep.Normal, plate=GROUPS)
    of = RNG.integers(GROUPS, size=ROWS)
    seen = ep.Gaussian(group[of], Y + 0.1 * RNG.normal(size=ROWS), precision=4.0)
    return ep.FactorGraph(ep.Gaussian(centre, group, precision=2.0), seen)


class FewAtOnce(ep.Quadrature):
    """Members are asked a few at a time, as those of long plates are; by the first rule alone, which is cheap."""

    block = 16


def blocks():
    w = ep.Variable("w", ep.MultivariateNormal.standard(COLUMNS))
    z = ep.Variable("z", ep.Normal, plate=ROWS)
    seen = ep.Density(lambda z, y: y * z - jax.numpy.logaddexp(0.0, z), z, Y, oracle=replaced(FewAtOnce(), level=0))
    return ep.FactorGraph(ep.Dot(X, w, z), seen)


MODELS = {"probit": probit, "uneven": uneven, "blocks": blocks, "black box": black_box, "hierarchy": hierarchy}


def program(model, mesh):
    """The compiled program of one sweep."""
    with jax.enable_x64(True):
        factors, *_ = _ready(model, None, 1.0)
        layout = Layout(mesh, model.variables, factors)
        plan = jax.tree.map(np.asarray, prepare(model.variables, layout.asked(factors), layout.length))
        placed = layout.plan(plan), layout.state(plan, start(plan))
        traced, static = eqx.partition(placed, eqx.is_array)

        def whole(traced):
            found = sweep(*eqx.combine(traced, static), jax.random.key(0), Settings(1.0, 1.0, 1.0), "allow")
            return eqx.filter(found, eqx.is_array)

        return jax.jit(whole).lower(traced).compile()


def collectives(text):
    """The operations by which devices talk, with the numbers that each carries."""
    found = {}
    for shape, name in re.findall(r"= (.+?) (all-gather|all-reduce|all-to-all|collective-permute)(?:-start)?\(", text):
        sizes = [int(np.prod([int(n) for n in dims.split(",") if n])) for dims in re.findall(r"\[([\d,]*)\]", shape)]
        found[name] = found.get(name, 0) + sum(sizes)
    return found


def compared(model, mesh):
    # So many sweeps, because how far beliefs moved is rounding near the tolerance, which may stop one sweep earlier.
    alone, spread = (ep.infer(model, sweeps=10, mesh=each) for each in (None, mesh))
    gaps = [
        float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(a)).max())
        for name in alone
        for a, b in zip(alone[name].natural, spread[name].natural, strict=True)
    ]
    first = {name: belief.natural[0] for name, belief in spread.items()}
    lie = {name: len(leaf.sharding.device_set) for name, leaf in first.items() if isinstance(leaf, jax.Array)}
    return {
        "gap": max(gaps),
        "evidence": abs(alone.log_evidence - spread.log_evidence) / abs(alone.log_evidence),
        "sweeps": [alone.report.steps, spread.report.steps],
        "devices": lie,
    }


def held(devices):
    """Bytes on each of so many devices, where messages come from quadrature: nothing is run."""
    rng, rows = np.random.default_rng(0), 40_000
    x = rng.normal(size=(rows, 5))
    w, z = ep.Variable("w", ep.MultivariateNormal.standard(5)), ep.Variable("z", ep.Normal, plate=rows)
    model = ep.FactorGraph(ep.Dot(x, w, z), ep.Logistic(z, observed=(x[:, 0] > 0).astype(int)))
    memory = program(model, Mesh(np.array(jax.devices()[:devices]), ("rows",))).memory_analysis()
    return memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes


if __name__ == "__main__":
    mesh = jax.make_mesh((len(jax.devices()),), ("rows",))
    if sys.argv[1:] == ["held"]:
        print(json.dumps([held(devices) for devices in (1, mesh.size)]))
        sys.exit()
    for name in sys.argv[1:] or MODELS:
        model = MODELS[name]()
        told = collectives(program(model, mesh).as_text())
        print(json.dumps({"model": name, **compared(model, mesh), "collectives": told}), flush=True)
