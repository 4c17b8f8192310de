"""Five questions asked of meanmap and of the packages people would take: python -m benchmarks.tasks PYTHON [--keep]

PYTHON is an interpreter with statsmodels, DoWhy, causal-learn, Bambi and Evidently. Each answer comes from a process of
its own; counted are its lines after the table is read, and processor seconds with imports and compilation. The trial
has 3000 rows: an id, gaps in 3% of the ages, one score of 99999, and an arm that depends on age and site and raises
the score by 3. The schools are 30 groups of 20 rows. The batches are 400 rows of reference and eight batches of 100; in
the last three the weight is half a standard deviation larger.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import pages
from benchmarks.table import list_table

__all__ = ["TASKS", "main", "page"]

HERE = "meanmap"
READ = "import pandas as pd\nd = pd.read_csv('{}.csv')\n"
TASKS = {
    "do the arms differ, in which columns, by how much?": (
        "trial",
        {
            "SciPy, statsmodels": """
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW
new, old = d[d.arm == 'new'], d[d.arm == 'old']
ps, said = [stats.chi2_contingency(pd.crosstab(d.arm, d.site)).pvalue], ['site']
for c in ('age', 'dose', 'score'):
    x, y = new[c].dropna(), old[c].dropna()
    ps.append(stats.ttest_ind(x, y, equal_var=False).pvalue)
    said.append((c, CompareMeans(DescrStatsW(x), DescrStatsW(y)).tconfint_diff(usevar='unequal')))
print(list(zip(said, multipletests(ps, method='holm')[1])))
print(pd.crosstab(d.arm, d.site, normalize='index'))
""",
            HERE: """
import meanmap as mm
print(mm.two_sample_test(d, by='arm', missing='drop', rng=0))
""",
        },
    ),
    "what does the new arm change in the score?": (
        "trial",
        {
            "DoWhy": """
import networkx as nx
from dowhy import CausalModel
d = d.dropna(); d = d[d.score < 1000]; d['new'] = (d.arm == 'new').astype(int)
d = pd.get_dummies(d, columns=['site'], dtype=float)
causes = ['age', *(c for c in d if c.startswith('site_'))]
graph = nx.DiGraph([(c, t) for c in causes for t in ('new', 'score')] + [('new', 'score')])
model = CausalModel(d, treatment='new', outcome='score', graph=graph)
found = model.estimate_effect(
    model.identify_effect(), method_name='backdoor.linear_regression', confidence_intervals=True)
print(found.value, found.get_confidence_intervals(confidence_level=0.9))
""",
            HERE: """
import meanmap as mm
edges = [('age', 'arm'), ('site', 'arm'), ('age', 'score'), ('site', 'score'), ('arm', 'score')]
print(mm.BayesianNetwork(edges).effect(d, 'score', of='arm', from_='old', to='new', rng=0))
""",
        },
    ),
    "which graph has the trial (620 rows)?": (
        "trial",
        {
            "causal-learn": """
from causallearn.search.ConstraintBased.PC import pc
d = d.head(620).dropna().drop(columns='id'); d = d[d.score < 1000]
d['arm'], d['site'] = (d.arm == 'new').astype(int), d.site.astype('category').cat.codes
print(pc(d.to_numpy(float), 0.05, 'kci', node_names=list(d), show_progress=False).G)
""",
            HERE: """
import meanmap as mm
print(mm.pc(d.head(620), missing='drop', rng=0))
""",
        },
    ),
    "a mixed model of the schools": (
        "schools",
        {
            "Bambi": """
import arviz, bambi
model = bambi.Model('y ~ x + (1 | g)', d)
draws = model.fit(random_seed=0, progressbar=False)
print(arviz.summary(draws, var_names=['Intercept', 'x', 'sigma', '1|g_sigma']).to_string())
""",
            HERE: """
import meanmap as mm
print(mm.fit('y ~ x + (1 | g)', d))
""",
        },
    ),
    "which of eight batches differ from the reference?": (
        "batches",
        {
            "Evidently": """
from evidently import Report
from evidently.presets import DataDriftPreset
reference, *batches = (b.drop(columns='batch') for _, b in d.groupby('batch'))
for k, b in enumerate(batches, 1):
    found = Report([DataDriftPreset()]).run(b, reference).dict()['metrics'][1:]
    print(k, [m['config']['column'] for m in found if m['value'] < 0.05])
""",
            HERE: """
import meanmap as mm
reference, *batches = (b.drop(columns='batch') for _, b in d.groupby('batch'))
monitor = mm.DriftMonitor.of(reference, rng=0)
for b in batches:
    monitor = monitor.step(b)
print(monitor)
""",
        },
    ),
}
# What an answer says in numbers, found in what is printed: its name, where it stands, and how it is written.
NUMBER = r"(-?[\d.e+-]*\d)"
SAID = {
    "do the arms differ, in which columns, by how much?": (
        rf"(?s)'score', .*np\.float64\({NUMBER}\)|p-values .*score {NUMBER}",
        "score: p = {:.3f}",
    ),
    "what does the new arm change in the score?": (
        rf"{NUMBER} \[\[{NUMBER} {NUMBER}|mean: {NUMBER} \({NUMBER} to {NUMBER}",
        "{:.2f} ({:.2f} to {:.2f})",
    ),
    "which graph has the trial (620 rows)?": (r"(?s)(\d)\. \w+ --> \w+\s*$|(\d) arrows", "{:.0f} arrows"),
    "a mixed model of the schools": (rf"x +{NUMBER} +{NUMBER}", "x: {:.3f}, sd {:.3f}"),
}
Found = dict[str, Any]


def write(folder: Path) -> None:
    """The two tables."""
    import pandas as pd

    rng, n = np.random.default_rng(20261128), 3000
    site, age = rng.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2]), rng.normal(45, 12, n).round(1)
    lean = (age - 45) / 12 + 1.0 * (site == "south") - 1.0 * (site == "east")
    arm = np.where(rng.random(n) < 1 / (1 + np.exp(-lean)), "new", "old")
    dose = rng.gamma(2, 2, n).round(2)
    score = 50 + 3.0 * (arm == "new") + 0.4 * (age - 45) + 4 * (site == "south") - 2 * (site == "east")
    score = (score + rng.normal(0, 5, n)).round(2)
    age[rng.random(n) < 0.03], score[17] = np.nan, 99999.0
    columns = {"id": np.arange(1, n + 1), "site": site, "age": age, "arm": arm, "dose": dose, "score": score}
    pd.DataFrame(columns).to_csv(folder / "trial.csv", index=False)
    shift, x = rng.normal(0, 1.5, 30).repeat(20), rng.normal(size=600)
    y = 1 + 0.7 * x + shift + rng.normal(0, 1, 600)
    groups = np.repeat([f"s{i}" for i in range(30)], 20)
    pd.DataFrame({"g": groups, "x": x.round(3), "y": y.round(3)}).to_csv(folder / "schools.csv", index=False)
    batch = np.repeat(range(9), [400] + [100] * 8)
    columns = {"batch": batch, "weight": rng.normal(70 + 4 * (batch > 5), 8).round(1)}
    columns |= {"height": rng.normal(170, 9, len(batch)).round(), "site": rng.choice(["north", "south"], len(batch))}
    pd.DataFrame(columns).to_csv(folder / "batches.csv", index=False)


def measure(python: str) -> Found:
    """Lines, processor seconds, and what is printed."""
    found: Found = {}
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        for question, (table, ways) in TASKS.items():
            for package, code in ways.items():
                before, start = os.times(), time.perf_counter()
                done = subprocess.run(
                    [sys.executable if package == HERE else python, "-W", "ignore", "-c", READ.format(table) + code],
                    capture_output=True, text=True, check=True, cwd=folder,
                )  # fmt: skip
                after, wall = os.times(), time.perf_counter() - start
                used = after.children_user + after.children_system - before.children_user - before.children_system
                found[f"{question} {package}"] = {
                    "question": question,
                    "package": package,
                    "lines": len(code.strip().splitlines()),
                    "seconds": round(used, 1),
                    "wall": round(wall, 1),
                    "printed": done.stdout,
                }
    return found


def page(found: Found) -> str:
    """The table."""
    rows = [
        [
            each["question"] if each["package"] != HERE else "",
            each["package"],
            each["lines"],
            f"{each['seconds']:.0f} s",
            _said(each),
        ]
        for each in found.values()
    ]
    return "\n".join(list_table(["question", "with", "lines", "processor", "answer"], rows))


def _said(each: Found) -> str:
    if each["question"] == "which of eight batches differ from the reference?":
        return _batches(each["printed"])
    pattern, form = SAID[each["question"]]
    found = re.search(pattern, each["printed"])
    assert found is not None, f"no answer in {each['printed']}"
    return form.format(*(float(text) for text in found.groups() if text))


def _batches(printed: str) -> str:
    """The batches of alarms, or those with a column that differs."""
    alarms = re.search(r"alarms at: ([\d, and]+)", printed)
    found = re.findall(r"(?m)^(\d) \[.", printed) if alarms is None else re.findall(r"\d+", alarms[1])
    named = re.findall(r"(?m)^(\d) \[(.+)\]$", printed)
    return "; ".join(f"{k}: {columns}" for k, columns in named).replace("'", "") or ", ".join(found)


def main() -> None:
    """Measure, and print or keep what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=__doc__)
    parser.add_argument("python", help="an interpreter with the other packages")
    parser.add_argument("--keep", action="store_true", help="store what was found")
    chosen = parser.parse_args()
    found = measure(chosen.python)
    for each in found.values():
        print(f"== {each['question']} {each['package']}: {each['lines']} lines, {each['seconds']} s\n{each['printed']}")
    if chosen.keep:
        pages.store({**pages.stored(), "tasks": found})


if __name__ == "__main__":
    main()
