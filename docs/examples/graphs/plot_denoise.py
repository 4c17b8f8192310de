"""
Denoising an image
==================

A noisy image with a broken part is restored in two lines. Every pixel is a variable, neighbours are related, and the
relation is learned from another image: kernel belief propagation on a graph with cycles.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# The clean image is a sunrise, rings around a point at the left edge. The camera adds noise, and part of its sensor is
# broken.

down, right = np.mgrid[:50, :50]
distance = np.hypot(down - 24.5, right)
clean = np.floor(distance / distance.max() * 49.999) * 255 / 49
example, noisy = (clean + 30 * rng.normal(size=clean.shape) for _ in range(2))
noisy[18:26, 30:42] = np.nan

# %%
# The relation between neighbours is learned from neighbouring pixels of a clean image; the likelihood of a noisy pixel
# given the clean one is learned from the clean and the noisy example. Lengthscales and ridges are cross-validated.

model = mm.KernelGrid().fit(clean, example, rng=0)
restored = model.restore(noisy)

# %%
# Each pixel has a belief. Its mean restores the image. Its standard deviation is the remaining uncertainty; on a graph
# with cycles it is too small where nothing was observed, because evidence that travels around a cycle is counted
# repeatedly. With diagonal neighbours as well, and messages to the power .4 (Wainwright, Jaakkola & Willsky 2003),
# beliefs about the broken part, and wherever grey levels are ambiguous, are wider; the error elsewhere is larger.
# Fractional counting divides by messages: a higher floor keeps this stable.

careful = mm.KernelGrid(neighbours=8).fit(clean, example, rng=0).restore(noisy, counting=0.4, floor=0.03)
pictures = {"clean": clean, "noisy": noisy, "mean": restored.mean()}
pictures |= {"standard deviation": restored.sd(), "8 neighbours, .4": careful.sd()}
most = np.quantile(careful.sd(), 0.99)
figure, axes = plt.subplots(1, 5, figsize=(14, 3.2), layout="constrained")
for axis, (title, image) in zip(axes, pictures.items(), strict=True):
    deviation = title in ("standard deviation", "8 neighbours, .4")
    shown = axis.imshow(
        image, cmap="magma" if deviation else "gray", **({"vmin": 0, "vmax": most} if deviation else {})
    )
    axis.set(title=title, xticks=[], yticks=[])
figure.colorbar(shown, ax=axes[-1], shrink=0.7)
for name, beliefs in {"4 neighbours, whole messages": restored, "8 neighbours, .4": careful}.items():
    inside = (beliefs.quantile(0.05) <= clean) & (clean <= beliefs.quantile(0.95))
    squares = (beliefs.mean() - clean) ** 2
    print(f"{name}: 90% intervals hold {inside.mean():.2f} of all pixels, {inside[np.isnan(noisy)].mean():.2f} of")
    print(f"  broken ones; root mean square error {squares.mean() ** 0.5:.1f}, of broken ones", end=" ")
    print(f"{squares[np.isnan(noisy)].mean() ** 0.5:.1f}, of the noise 30")
print(f"messages of {model.field.learned.length} values")

# %%
# The belief about a single pixel is an embedding like any other, here next to the broken part and inside it.

grid = np.linspace(0, 255, 300)
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for place in ((22, 28), (22, 36)):
    axes.plot(grid, restored[place].density(grid, bandwidth=4.0), label=f"pixel {place}")
    axes.axvline(clean[place], color="gray", linestyle=":")
axes.set(xlabel="grey level", ylabel="density of the belief")
_ = axes.legend()

# %%
# A message has one value per landmark, however many pairs of pixels it was learned from. Fewer landmarks are faster;
# the part of the operator that they lose is measured. The bound of the paper holds, but is very loose.

rough = mm.KernelGrid(update=mm.bp.Constant(tolerance=0.3)).fit(clean, example, rng=0)
for fitted in (model, rough):
    left = fitted.field.approximation[0]
    error = np.sqrt(np.mean((fitted.restore(noisy).mean() - clean) ** 2))
    print(
        f"{left.landmarks} landmarks: left out {left.operator_error:.2g} of {left.operator_norm:.2g} "
        f"(bound {left.bound:.2g}), error {error:.1f}"
    )
print(restored.report)
plt.show()
