"""
Who is best, and how sure are we?
=================================

Skills with intervals, estimated from the results of games, and the probability of the next result.
"""

import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep

rng = np.random.default_rng(0)

# %%
# Eight players of known skill play seventy games; a close one is a draw. Cleo joined late and has played three.

names = np.array(["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"])
skill = dict(zip(names, [1.4, 0.2, 1.0, -0.4, 0.8, -1.2, -0.1, 0.5], strict=True))
others = names[names != "Cleo"]
pairs = [rng.choice(others, 2, replace=False) for _ in range(67)] + [("Cleo", rival) for rival in ("Ada", "Ben", "Gus")]
gaps = np.array([skill[a] - skill[b] + np.sqrt(0.5) * rng.normal() for a, b in pairs])
winners = [a if gap > 0 else b for (a, b), gap in zip(pairs, gaps, strict=True)]
losers = [b if gap > 0 else a for (a, b), gap in zip(pairs, gaps, strict=True)]
table = ep.models.ranking(winners, losers, draws=np.abs(gaps) < 0.2)
print(table)

# %%
# Cleo's interval is the widest: three games contain little information.

figure, axes = plt.subplots(layout="constrained")
table.plot(axes)
axes.plot([skill[player] for player in table.players], range(len(names)), "x", color="tab:orange", label="true skill")
axes.legend()

# %%
# The next game.

print({result: round(chance, 2) for result, chance in table.probability("Ada", "Cleo").items()})
plt.show()
