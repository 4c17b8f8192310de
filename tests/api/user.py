"""A user's script, sixty lines that call what people call most: type checkers read it, with an installed wheel."""

import jax
import numpy as np

import meanmap as mm
from meanmap import ep

rng = np.random.default_rng(0)
before = rng.normal(size=(300, 2))
after = rng.normal(size=(300, 2)) * [2.0, 1.0]

result = mm.two_sample_test(before, after, rng=0)
level: float = 0.05
if result.reject(level):
    shares = result.driving_columns(rng=0)
    for column, pvalue in result.column_pvalues(rng=0).items():
        print(f"{column}: {shares[column]:.2f}, p = {pvalue:.3f}")
axes = result.plot_witness()
axes.figure.savefig("difference.png")

table = {"water": before[:, 0], "growth": np.abs(before[:, 0]), "harvest": after[:, 0]}
related = mm.independence_test(table["water"], table["growth"], rng=0)
given = mm.conditional_independence_test(table["water"], table["harvest"], table["growth"], rng=0)
print(related.pvalue, given.pvalue, related.seed)

causes = mm.pc(table, rng=0)
print(causes, causes.report.notes)
print(mm.chow_liu(table, rng=0))

model = mm.KernelGraph([("water", "growth"), ("growth", "harvest")]).fit(table)
beliefs = model.query({"harvest": 3.0}, targets=["water"])
belief = beliefs["water"]
print(belief.mean(), belief.quantile([0.05, 0.95]), beliefs.report.converged)

learned = mm.learn_kernel(before, rng=0)
embedded = mm.embed(before, learned.kernel)
print(embedded.norm(), embedded(after[:5]))

operator = mm.condition(before[:, 0], after[:, 0])
print(operator([0.0, 1.0]).mean())

monitor = mm.DriftMonitor.of(before, run_length=500, rng=0)
for batch in np.split(after, 3):
    monitor = monitor.step(batch)
print(monitor.alarms, monitor.pvalues)

labels = (before @ [2.0, -1.0] > 0).astype(int)
w = ep.Variable("w", ep.MultivariateNormal.standard(2))
z, p = ep.Variable("z", ep.Normal, plate=300), ep.Variable("p", ep.Beta, plate=300)
link = ep.BlackBox(jax.nn.sigmoid, z, p)
posterior = ep.infer(ep.FactorGraph(ep.Dot(before, w, z), link, ep.Bernoulli(p, observed=labels)))
print(posterior["w"].mean(), posterior.report.steps)

fit = ep.models.logistic_regression(before, labels)
print(fit.summary(), fit.predict_proba(after)[:, 1])
mm.save(model, "model.meanmap")
