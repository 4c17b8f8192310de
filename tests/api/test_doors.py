"""What functions cannot read is refused in the same words at every door, and sparse formats are read alike."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import meanmap as mm
from meanmap.core.errors import KindError

rng = np.random.default_rng(0)
FRAME = pl.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60), "g": ["u", "v"] * 30})
IN_MEMORY = {
    "by": lambda data: mm.two_sample_test(data, by="g"),
    "effect by": lambda data: mm.two_sample_effect(data, by="g"),
    "groups by": lambda data: mm.k_sample_test(data, by="g"),
    "pc": lambda data: mm.pc(data),
    "tree": lambda data: mm.chow_liu(data),
    "impute": lambda data: mm.KernelGraph([("x", "y")]).fit(FRAME).impute(data),
    "schema": lambda data: mm.Schema.of(data),
    "table": lambda data: mm.Table.of(data),
    "regression": lambda data: mm.fit("y ~ x", data),
    "drift": lambda data: mm.DriftMonitor.of(data),
}
ALSO_ELSEWHERE = {
    "test": lambda data: mm.test("x ~ g", data),
    "graph": lambda data: mm.KernelGraph([("x", "y")]).fit(data),
    "network": lambda data: mm.BayesianNetwork([("x", "y")]).fit(data),
}
EVERY = {**IN_MEMORY, **ALSO_ELSEWHERE}


@pytest.mark.parametrize("ask", IN_MEMORY.values(), ids=IN_MEMORY)
def test_a_lazy_frame_is_refused_without_another_warning(ask):
    """Polars warns, which is an error here, where the names of the columns of a lazy frame are looked at."""
    with pytest.raises(KindError, match=r"is a lazy frame, .*: pass .*collect\(\)"):
        ask(FRAME.lazy())


@pytest.mark.parametrize("ask", EVERY.values(), ids=EVERY)
def test_a_dataset_of_arrow_is_refused(ask):
    dataset = pytest.importorskip("pyarrow.dataset")
    with pytest.raises(KindError, match=r"is a dataset of Arrow, whose rows are not in memory: pass .*to_table\(\)"):
        ask(dataset.dataset(FRAME.to_arrow()))


@pytest.mark.parametrize("column", [FRAME.lazy().select("x"), iter([])], ids=["lazy", "iterator"])
def test_columns_that_are_not_in_memory_are_refused(column):
    with pytest.raises(KindError, match=r"table\['x'\] is"):
        mm.Table.of({"x": column, "y": FRAME["y"]})


@pytest.mark.parametrize("ask", EVERY.values(), ids=EVERY)
def test_the_name_of_a_file_is_refused_with_how_to_read_it(ask):
    with pytest.raises(KindError, match=r"'farm.csv'.* read it first, for example with pandas.read_csv"):
        ask("farm.csv")


@pytest.mark.parametrize("ask", IN_MEMORY.values(), ids=IN_MEMORY)
def test_so_is_its_path(ask):
    with pytest.raises(KindError, match=r"'farm.csv'.* read it first, for example with pandas.read_csv"):
        ask(Path("farm.csv"))


X, Y = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
V = rng.normal(size=40)
FORMATS = ["bsr", "coo", "csc", "dia", "dok", "lil"]
OF_SPARSE = {
    "samples": lambda made: mm.two_sample_test(made(X), made(Y), n_permutations=99, rng=0).pvalue,
    "drift": lambda made: mm.DriftMonitor.of(made(X), n_permutations=99, rng=0).step(made(Y)).pvalues[0],
    "pairs": lambda made: mm.independence_test(made(X), V, n_permutations=99, rng=0).pvalue,
    "kernel": lambda made: mm.kernels.RBF(1.0)(made(X)).tolist(),
    "embedding": lambda made: mm.embed(made(X), mm.kernels.RBF(1.0)).norm(),
    "bet": lambda made: mm.stats.TwoSampleBet.of(made(X), made(Y), rng=0).evalue,
}
NOT_OF_SPARSE = {
    "conditions": lambda made: mm.conditional_independence_test(V, X, made(Y)),
    "pc": lambda made: mm.pc(made(X)),
    "schema": lambda made: mm.Schema.of(made(X)),
    "learned": lambda made: mm.learn_kernel(made(X)),
    "scikit-learn": lambda made: mm.estimators.FourierFeatures().fit(made(X)),
}


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("made", FORMATS)
@pytest.mark.parametrize("ask", OF_SPARSE.values(), ids=OF_SPARSE)
def test_every_sparse_format_is_read_as_csr(ask, made, kind):
    """A dok_array is a dictionary, whose values are no columns; rows of a dia_array cannot be taken."""
    assert ask(getattr(scipy.sparse, f"{made}_{kind}")) == ask(scipy.sparse.csr_array)


@pytest.mark.parametrize("made", FORMATS)
@pytest.mark.parametrize("ask", NOT_OF_SPARSE.values(), ids=NOT_OF_SPARSE)
def test_every_sparse_format_is_refused_as_csr(ask, made):
    with pytest.raises((KindError, TypeError)) as wanted:
        ask(scipy.sparse.csr_array)
    with pytest.raises(wanted.type) as found:
        ask(getattr(scipy.sparse, f"{made}_array"))
    assert "parse" in str(found.value)
    assert str(found.value) == str(wanted.value)
