"""Pictures appear where people look: in a notebook and with `plt.show()`, or on the axes that were given."""

import numpy as np
import pytest
from matplotlib import pyplot

import meanmap as mm
from meanmap.core.pictures import new_axes

rng = np.random.default_rng(0)
x, y = rng.normal(size=(40, 2)), rng.normal(0.5, 1.0, size=(30, 2))
result = mm.two_sample_test(x, y, "median", n_permutations=99, rng=0)
tree = mm.graphs.PDAG.of([("a", "b"), ("b", "c")])
drawn = {
    "null": result.plot,
    "witness": result.plot_witness,
    "graph": tree.plot,
    "monitor": lambda ax=None: mm.DriftMonitor.of(x, rng=0).plot(ax=ax),
    "posterior witness": lambda ax=None: mm.embeddings.posterior_witness(x, y, mm.kernels.RBF(1.0)).plot(ax=ax),
}


@pytest.mark.parametrize("name", drawn)
def test_pictures_belong_to_pyplot(name):
    axes = drawn[name]()
    assert pyplot.figure(pyplot.get_fignums()[-1]) is axes.figure
    assert len(pyplot.get_fignums()) == 1


@pytest.mark.parametrize("name", drawn)
def test_pictures_are_drawn_where_they_are_wanted(name):
    axes = pyplot.subplots()[1]
    assert drawn[name](ax=axes) is axes
    assert len(pyplot.get_fignums()) == 1


def test_words_are_drawn_as_they_are(tmp_path):
    """A column may be called $x^$, which matplotlib would take for a formula that it cannot read."""
    table = {"$x^$": x[:, 0], "$y": x[:, 1]}
    axes = mm.graphs.PDAG.of([("$x^$", "$_{")]).plot()
    axes.figure.savefig(tmp_path / "a.png")
    found = mm.DriftMonitor.of(table, rng=0).step(table).plot()
    found.set_title("$x^$")
    np.ravel(found)[0].figure.savefig(tmp_path / "b.png", bbox_inches="tight")
    pyplot.close("all")


def test_powers_of_ten_are_formulas_beside_names_that_are_none():
    """They were drawn as they are typed, over each other."""
    ax = new_axes(5, 3)
    ax.plot([0.01, 1.0, 100.0], [1.0, 2.0, 3.0])
    ax.set(xscale="log", xlabel="$x^$", title="$y^$")
    ax.figure.canvas.draw()
    shown = [label for label in ax.get_xticklabels() if label.get_text()]
    assert shown
    assert all(label.get_parse_math() for label in shown)
    assert not ax.xaxis.label.get_parse_math()
    assert not ax.title.get_parse_math()
    pyplot.close("all")
