"""What a user types first, with an installed wheel, no extras and no sources: python smoke.py FOLDER-OF-THE-SOURCES"""

import sys
from importlib.resources import files
from pathlib import Path

import jax
import numpy as np

import meanmap as mm
from meanmap import ep

sources = Path(sys.argv[1]).resolve()
place = Path(mm.__file__).resolve()
assert sources not in place.parents, f"meanmap comes from its sources, {place}, and not from the wheel"
assert files("meanmap").joinpath("py.typed").is_file(), "the wheel has no py.typed"

rng = np.random.default_rng(0)
before = rng.normal(size=(200, 2))
after = rng.normal(size=(200, 2)) * [2.0, 1.0]
result = mm.two_sample_test(before, after, rng=0)
print(result)
assert result.pvalue < 0.01
told = ""
try:
    result.plot_witness()
except ImportError as error:
    told = str(error)
assert 'pip install "meanmap[plots]"' in told, f"the wheel installed more than the library needs; {told}"

water = rng.normal(size=200)
growth = np.abs(water) + 0.2 * rng.normal(size=200)
table = {"water": water, "growth": growth}
print(mm.pc(table, rng=0))
model = mm.KernelGraph([("water", "growth")]).fit(table)
mm.save(model, "model.meanmap")
belief = mm.load("model.meanmap").query({"growth": 1.0}, targets=["water"])["water"]
assert 0.5 < belief.quantile(0.9) < 1.5

x = rng.normal(size=(100, 2))
y = (x @ [2.0, -1.0] + rng.logistic(size=100) > 0).astype(int)
w = ep.Variable("w", ep.MultivariateNormal.standard(2))
z, p = ep.Variable("z", ep.Normal, plate=100), ep.Variable("p", ep.Beta, plate=100)
post = ep.infer(ep.FactorGraph(ep.Dot(x, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y)))
assert post.report.converged
print(f"meanmap {mm.__version__} works from {place.parent}")
