"""Figure 4: what causes ozone, from 330 days of weather."""

from itertools import combinations
from time import perf_counter
from typing import Any

from meanmap.experiments.experiment import Claim, Experiment, Number, Outcome, Setting

LENGTHSCALES = (0.25, 0.5, 1.0, 2.0)
MEDIAN = 0.95  # the median distance between draws of a normal with standard deviation 1


def run(setting: Setting) -> Outcome:
    """Pre-whiten, search with the paper's test and with ours, and ask the one edge at several lengthscales."""
    import networkx
    from matplotlib.figure import Figure

    from meanmap.datasets import ozone
    from meanmap.structure import pc, prewhiten

    table = ozone()
    white = prewhiten(table, "doy")
    most = setting.choose(smoke=1, quick=None, paper=None)
    halves = setting.choose(smoke=0, quick=10, paper=50)
    start = perf_counter()
    papers = pc(white, test="residuals", most_given=most, rng=setting.seed)
    seconds = perf_counter() - start
    ours = pc(white, most_given=most, half_samples=halves, rng=setting.seed)
    raw = pc(table.select(list(white.names)), most_given=most, rng=setting.seed)
    scanned = {factor: _largest_pvalue(white, factor, setting) for factor in LENGTHSCALES}
    graphs = {"Gaussian process residuals and HSIC": papers, "our default test": ours, "without pre-whitening": raw}

    figure = Figure(figsize=(16, 5.5), layout="constrained")
    circle = networkx.circular_layout(papers.to_networkx())
    for axes, (name, graph) in zip(figure.subplots(1, 3), graphs.items(), strict=True):
        graph.plot(axes, positions=circle)
        axes.set_title(name)
    marks = {name: graph.mark("temp", "O3") or "nothing" for name, graph in graphs.items()}
    numbers = {
        "edge": Number(float(papers.mark("temp", "O3") is not None)),
        "arrow": Number(float(papers.mark("temp", "O3") == "→")),
        "edge at the median": Number(float(scanned[1.0] <= 0.05)),
        "edge with our test": Number(float(ours.mark("temp", "O3") is not None)),
        "edge without pre-whitening": Number(float(raw.mark("temp", "O3") is not None)),
        "seconds of the search": Number(seconds),
        **{f"largest p at {factor:g} medians": Number(p) for factor, p in scanned.items()},
    }
    if halves:
        numbers["support of the edge"] = Number(ours.support.get(("temp", "O3"), 0.0))
        numbers["support of the arrow"] = Number(ours.arrows.get(("temp", "O3"), 0.0))
    shown = [marks[name] for name in graphs]
    answer = (
        f"Between temperature and ozone the search draws {shown[0]} with the paper's test, {shown[1]} with ours and "
        f"{shown[2]} without pre-whitening; the edge is there at {sum(p <= 0.05 for p in scanned.values())} of "
        f"{len(scanned)} lengthscales."
    )
    if halves:
        answer += f" In random halves of the days it is found in {ours.support.get(('temp', 'O3'), 0.0):.0%}."
    caption = (
        "Causal graphs of the ozone data: arrows are directions that all graphs of the class share, grey lines can "
        "point either way; shares are of half-samples."
    )
    return Outcome(answer, numbers, ((figure, caption),), _table(graphs), (*NOTES, *papers.report.notes))


def _largest_pvalue(white: Any, factor: float, setting: Setting) -> float:
    """Of temperature and ozone given every small set of others: what the search compares with its level."""
    from meanmap import conditional_independence_test, independence_test
    from meanmap.kernels import RBF

    kernel = RBF(MEDIAN * factor)
    settings: dict[str, Any] = {"rng": setting.seed, "n_permutations": 500}
    x, y = white["temp"], white["O3"]
    others = [name for name in white.names if name not in ("temp", "O3")]
    largest = independence_test(x, y, kernel, **settings).pvalue
    for size in range(1, setting.choose(smoke=1, quick=2, paper=3) + 1):
        for given in combinations(others, size):
            z = {name: white[name] for name in given}
            result = conditional_independence_test(x, y, z, method="residuals", kernel=kernel, **settings)
            largest = max(largest, result.pvalue)
    return largest


def _table(graphs: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Every pair that some graph joins, and how."""
    first = next(iter(graphs.values()))
    rows = [
        (f"{a} and {b}", *(graph.mark(a, b) or "" for graph in graphs.values()))
        for a, b in combinations(first.names, 2)
        if any(graph.mark(a, b) for graph in graphs.values())
    ]
    return (("pair", *graphs), *rows)


NOTES = (
    (
        "The paper states neither its level, nor how many variables were given at most, nor the model of its "
        "pre-whitening; here these are .05, no bound (one at the smallest scale), and the innovations of a Gaussian "
        "process over the day of the year. The day itself is no variable of the graph, as in the paper."
    ),
    (
        "The paper sets each lengthscale by Bayesian kernel learning and compares with an earlier graph at the median, "
        "from which the edge was missing. Here the edge is asked at a quarter to twice the median instead."
    ),
    (
        "Directions assume that no unmeasured variable causes two others, which the season and the sea make doubtful "
        "for weather; where colliders contradict each other, the search says so."
    ),
)

EXPERIMENT = Experiment(
    "kernel-learning-figure-4",
    "What causes ozone: the PC algorithm on 330 days",
    "Flaxman, Sejdinovic, Cunningham & Filippi (2016), figure 4",
    (
        Claim("temperature and ozone are joined (figure 4)", "edge", low=1.0),
        Claim("the edge points from temperature to ozone (figure 4)", "arrow", low=1.0, scales=("quick", "paper")),
        Claim("at the median lengthscale the edge is missing (text to figure 4)", "edge at the median", high=0.0),
    ),
    {"smoke": 0.3, "quick": 2.0, "paper": 6.0},
    run,
    ("ozone",),
)
