"""
Regressions with a table of coefficients
========================================

A data frame goes in; a table of coefficients with means, standard deviations and intervals comes out, and predictions
come with their uncertainty.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from meanmap import ep

rng = np.random.default_rng(0)

# %%
# A simulated trial: 300 patients, a dose, an age, an irrelevant weight, and whether they recovered.

n = 300
trial = pd.DataFrame({"dose": rng.gamma(2.0, 1.0, n), "age": rng.normal(55, 12, n), "weight": rng.normal(75, 10, n)})
chance = 1 / (1 + np.exp(-(1.1 * trial.dose - 0.06 * (trial.age - 55) - 1.5)))
recovered = np.where(rng.uniform(size=n) < chance, "yes", "no")
fit = ep.models.logistic_regression(trial, recovered)
print(fit)
figure, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
fit.plot(axes)

# %%
# In the table coefficients are in the units of their columns; in the figure they are per standard deviation. The prior
# is N(0, 2.5²) for the latter; with 300 rows it hardly matters. The evidence compares models: dropping the weight makes
# the outcomes more probable, dropping the dose does not.

for columns in (["dose", "age", "weight"], ["dose", "age"], ["age", "weight"]):
    smaller = ep.models.logistic_regression(trial[columns], recovered)
    print(f"{', '.join(columns):20}  log evidence {smaller.log_evidence:.2f}")

# %%
# A prediction averages over the posterior of the coefficients; the band is a 95% interval of the probability itself.

doses = np.linspace(0, 8, 60)
figure, axes = plt.subplots()
for age in (40, 70):
    new = pd.DataFrame({"dose": doses, "age": age, "weight": 75.0})
    axes.plot(doses, fit.predict_proba(new)[:, 1], label=f"age {age}")
    axes.fill_between(doses, *fit.probability_interval(new), alpha=0.25)
axes.set(xlabel="dose", ylabel="probability of recovery")
axes.legend()

# %%
# A robust regression resists outliers: a tenth of these outcomes was recorded in the wrong unit.

blood = 90 + 0.6 * trial.age + 2.0 * trial.dose + 3 * rng.normal(size=n)
blood[:30] *= 10
robust = ep.models.robust_regression(trial, blood)
print(robust)
print("outcomes to look at again:", int((robust.outlying > 20).sum()))
plt.show()
