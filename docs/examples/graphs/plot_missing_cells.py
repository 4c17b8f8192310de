"""
Filling in a table
==================

Each row of a table has different gaps. A tree learned from other rows fills them in with their uncertainty, and finds
the rows that do not fit.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# Plants in pots: light determines their height, and height determines the number of leaves and the time of flowering.


def pots(n):
    light = rng.uniform(1, 9, n)
    height = 30 * light / (light + 2) + rng.normal(0, 1.5, n)
    return {
        "light": light,
        "height": height,
        "leaves": 5 + 0.03 * height**2 + rng.normal(0, 2, n),
        "flowers": np.where(height + rng.normal(0, 2, n) > 20, "yes", "no"),
    }


learned, truth = pots(400), pots(300)
model = mm.KernelGraph(mm.chow_liu(learned)).fit(learned)
gone = {name: rng.random(300) < 0.25 for name in truth}
gaps = {
    name: np.where(
        gone[name], None if name == "flowers" else np.nan, column.astype(object if name == "flowers" else float)
    )
    for name, column in truth.items()
}

# %%
# ``impute`` fills all rows at once, whatever is missing in each.

whole = model.impute(gaps)
for name in ("light", "height", "leaves"):
    error = np.sqrt(np.mean((whole[name] - truth[name])[gone[name]] ** 2)) / truth[name].std()
    print(f"{name}: error {error:.2f} standard deviations")
right = np.mean(whole["flowers"][gone["flowers"]] == truth["flowers"][gone["flowers"]])
print(f"flowers: {right:.0%} right")

# %%
# ``predict`` gives a belief for each row. Height is well determined where light or leaves were observed, and less so
# elsewhere.

belief = model.predict(gaps, targets=["height"])["height"]
low, middle, high = belief.quantile([0.05, 0.5, 0.95]).T
inside = (low <= truth["height"]) & (truth["height"] <= high)
print(f"90% intervals hold {inside.mean():.0%} of the heights")

# %%
# ``score`` is the log density of each row. A pot whose plant is tall in the dark stands out.

odd = {"light": [8.0, 1.2], "height": [24.0, 26.0], "leaves": [22.0, 25.0], "flowers": ["yes", "yes"]}
print("usual", model.score(odd)[0].round(1), "odd", model.score(odd)[1].round(1))

# %%
# ``sample`` draws whole rows, given the evidence.

drawn = model.sample(300, {"flowers": "no"}, rng=0)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
order = np.argsort(middle)
axes[0].fill_between(np.arange(300), low[order], high[order], alpha=0.3, label="90%")
axes[0].plot(truth["height"][order], ".", ms=3, label="height")
axes[0].set(xlabel="pot, by predicted height", ylabel="height")
axes[0].legend()
axes[1].plot(learned["light"], learned["height"], ".", ms=3, label="all pots")
axes[1].plot(drawn["light"], drawn["height"], ".", ms=4, label="drawn, without flowers")
axes[1].set(xlabel="light", ylabel="height")
axes[1].legend()
