"""What importing costs and leaves behind, each seen from a fresh process."""

import importlib
import inspect
import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.oldest

# Folders of which each name loads by itself; scikit-learn comes with the first estimator.
LAZY = (
    *("bp", "embeddings", "ep", "families", "features", "graphs"),
    *("kernels", "learning", "linalg", "stats"),
)
TOUCH_ALL = (
    "import meanmap; touched = [getattr(meanmap, name) for name in meanmap.__all__]; "
    f"folders = [getattr(meanmap, name) for name in {LAZY}]; "
    "touched += [getattr(folder, name) for folder in folders for name in folder.__all__]"
)

# What others change on import is theirs: an old SciPy adds a warning filter, so it goes first.
OTHERS = "import jax, equinox, scipy.linalg, scipy.sparse, scipy.special, scipy.stats"


def run(code, *options):
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def seconds(statement):
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return float(run(code).stdout)


def test_import_costs_little_next_to_jax():
    ours, theirs = [], []
    for _ in range(3):
        ours.append(seconds("import meanmap"))
        theirs.append(seconds("import jax"))
    assert statistics.median(ours) <= 1.3 * statistics.median(theirs)


def test_first_use_of_every_name_loads_nothing_that_few_calls_need():
    heavy = [
        "IPython",
        "matplotlib.pyplot",
        "pandas",
        "polars",
        "networkx",
        "numpyro",
        "scipy.ndimage",
        "scipy.optimize",
        "scipy.spatial",
        "scipy.stats",
        "sklearn",
    ]
    code = f"import sys; {TOUCH_ALL}; print([name for name in {heavy} if name in sys.modules])"
    assert run(code).stdout.strip() == "[]"


def test_a_first_test_loads_no_family_of_distributions_and_no_operator():
    code = """
import sys
import meanmap as mm
mm.two_sample_test([0.0, 1.0, 2.0, 0.5, 0.7, 1.5], [0.3, 1.2, 2.1, 0.9, 0.1, 1.9], n_permutations=19, rng=0)
loaded = ("scipy.spatial", "meanmap.families.normal", "meanmap.embeddings.operators", "meanmap.bp")
print([name for name in loaded if name in sys.modules])
"""
    assert run(code).stdout.strip() == "[]"


def test_a_first_test_needs_no_distances_or_factorisations_of_scipy():
    code = """
import sys
import scipy.sparse, scipy.special  # which load scipy.linalg in old versions of SciPy
theirs = set(sys.modules)
import meanmap as mm
rows = [[i % 7 - 3.0, i % 5 + 0.1 * i] for i in range(40)]
mm.two_sample_test(rows[:20], rows[20:], n_permutations=19, rng=0)
ours = {*sys.modules} - theirs
print([name for name in ("scipy.linalg", "scipy.optimize", "scipy.spatial", "scipy.stats") if name in ours])
"""
    assert run(code).stdout.strip() == "[]"


# Modules and programs of a whole process with one first call, where half of the time of the shorter ones goes, and what
# is not loaded.
FIRST = {
    "two_sample_test": (157, 1, "scipy.linalg scipy.optimize scipy.spatial scipy.stats meanmap.bp meanmap.ep"),
    "KernelGraph.query": (169, 2, "scipy.special scipy.optimize scipy.fft meanmap.bp.conditionals meanmap.ep"),
    "ep.Density": (183, 4, "scipy.special scipy.linalg scipy.sparse.csgraph meanmap.ep.linear meanmap.ep.learned"),
    "ep.infer": (183, 7, "scipy.special scipy.sparse.csgraph meanmap.ep.linear meanmap.ep.learned meanmap.stats"),
    "learn_kernel": (92, 1, "scipy.special meanmap.embeddings meanmap.features meanmap.stats"),
    "pc": (174, 0, "meanmap.bp meanmap.ep"),
}


@pytest.mark.parametrize("call", FIRST)
def test_first_calls_load_few_modules_and_compile_few_programs(call):
    modules, programs, absent = FIRST[call]
    code = f"""
import json, sys
import jax, equinox, {"scipy.sparse.csgraph" if call == "KernelGraph.query" else "scipy.sparse"}
theirs = set(sys.modules)  # old versions of SciPy load more
from benchmarks.first_calls import alone
programs = alone({call!r})["programs"]
ours = [name for name in sys.modules if name.split(".")[0] == "meanmap"]
absent = [name for name in {absent.split()} if name in sys.modules and name not in theirs]
print(json.dumps([len(ours), len(programs), absent]))
"""
    found = json.loads(run(code).stdout)
    assert found[0] <= modules
    assert found[1] <= programs
    assert found[2] == []


def test_garbage_is_not_collected_while_names_load():
    """It would traverse all objects of JAX, many times, for a tenth of the time of a first call."""
    code = """
import gc, jax, meanmap
found = []
gc.callbacks.append(lambda phase, info: found.append(phase))
meanmap.two_sample_test, meanmap.pc
print(found.count("start"))
"""
    assert int(run(code).stdout) <= 2  # one after each name


@pytest.mark.parametrize("folder", [*LAZY, "estimators"])
def test_no_name_of_a_folder_is_hidden_by_a_file(folder):
    """Importing a file of a folder sets its name there, which a name that loads later would not replace."""
    package = importlib.import_module(f"meanmap.{folder}")
    home = Path(str(package.__file__)).parent
    files = {path.stem for path in home.iterdir() if path.name != "__pycache__"}
    assert all(inspect.ismodule(getattr(package, name)) for name in package.__all__ if name in files)


@pytest.mark.parametrize("statement", ["import meanmap", TOUCH_ALL], ids=["import", "every name"])
def test_nothing_is_printed_or_warned(statement):
    done = run(statement, "-W", "error")
    assert (done.stdout, done.stderr) == ("", "")


def test_settings_of_others_stay_as_they_were():
    code = f"""
import gc, json, warnings
{OTHERS}
settings, filters = dict(jax.config.values), list(warnings.filters)
{TOUCH_ALL}
after = dict(jax.config.values)
print(json.dumps([[key for key in after if key not in settings or after[key] != settings[key]],
                  len(warnings.filters) - len(filters), warnings.filters == filters, gc.isenabled()]))
"""
    assert json.loads(run(code).stdout) == [[], 0, True, True]
    assert json.loads(run(f"import gc; gc.disable()\n{code}").stdout) == [[], 0, True, False]


def test_no_backend_is_started():
    """JAX lets its number of CPU devices be chosen only while no backend is running."""
    code = f"""
{TOUCH_ALL}
import jax
jax.config.update("jax_num_cpu_devices", 3)
print(len(jax.devices("cpu")))
try:
    jax.config.update("jax_num_cpu_devices", 2)
except RuntimeError:
    print("too late once it runs")
"""
    assert run(code).stdout.split("\n")[:2] == ["3", "too late once it runs"]


def test_computing_leaves_the_precision_of_others_alone():
    code = """
import jax, jax.numpy as jnp, numpy as np
import meanmap
inside = meanmap.kernels.RBF(1.0)(np.array([0.0, 1.0]))
print(inside.dtype, jnp.ones(2).dtype, jax.config.jax_enable_x64)
"""
    assert run(code).stdout.split() == ["float64", "float32", "False"]
