"""The picture of the README and of the first page, from their own four snippets: python docs/pictures.py."""

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

FOLDER = Path(__file__).parent
README = FOLDER.parent / "README.md"
TARGET = FOLDER / "_static" / "four.png"


def snippets() -> list[str]:
    """The four snippets of the README that are drawn."""
    section = README.read_text(encoding="utf-8").split("## Four things")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def main() -> None:
    """Run each snippet, and draw what it left."""
    found: dict = {}
    for code in snippets():
        exec(compile(code, "README.md", "exec"), found)
    figure, grid_of_axes = plt.subplots(2, 2, figsize=(7.2, 5.8), layout="constrained")
    axes = grid_of_axes.ravel()
    found["result"].plot_witness(axes[0], names=("before", "after"))
    axes[0].set_title("1  where two samples differ", fontsize="medium")
    places = {"sun": (0, 1), "water": (0, 0), "growth": (1, 0.5), "harvest": (2, 0.5)}
    found["causes"].plot(axes[1], positions=places)
    axes[1].set_title("2  what causes what", fontsize="medium")
    grid = found["grid"]
    axes[2].plot(grid, found["density"], color="C0")
    axes[2].fill_between(grid, found["density"], color="C0", alpha=0.2)
    axes[2].set_title("3  water, after a rich harvest", fontsize="medium")
    axes[2].set(xlabel="water", ylabel="density")
    w = found["post"]["w"]
    centre, spread = np.asarray(w.mean()), np.linalg.cholesky(np.asarray(w.cov()))
    circle = np.array([np.cos(t := np.linspace(0, 2 * np.pi, 200)), np.sin(t)])
    for share, style in ((0.5, "-"), (0.9, "--")):
        radius = np.sqrt(-2 * np.log(1 - share))  # of the circle that holds this share of a standard normal
        outline = centre[:, None] + radius * spread @ circle
        axes[3].plot(*outline, color="C0", lw=1, ls=style, label=f"{share:.0%} of belief")
    axes[3].plot(*found["truth"], "x", color="C3", label="truth")
    axes[3].set_title("4  weights behind a black box", fontsize="medium")
    axes[3].set(xlabel="first weight", ylabel="second weight")
    axes[3].legend(fontsize="small")
    figure.savefig(TARGET, dpi=100)
    print(TARGET)


if __name__ == "__main__":
    main()
