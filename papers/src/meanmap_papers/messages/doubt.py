"""Doubt against error, and in regions that were never seen (figures 3, 4 and 10 of the draft)."""

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's, of values without ties."""
    return float(np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1])


def run(setting: Setting) -> Outcome:
    """Operators trained on means in one region are asked along a line that leaves it."""
    from matplotlib import pyplot

    from meanmap import ep
    from meanmap.ep.learned import MessageOperator
    from meanmap_papers.rivals import Forest

    size = setting.choose(smoke=256, quick=1000, paper=5000)
    factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
    rng = setting.rng(0)
    came = ep.Normal(rng.uniform(-4, 4, size), np.exp(rng.uniform(np.log(0.05), np.log(3), size)))
    answer = ep.ask(factor, came)
    operators = {
        "kernel": MessageOperator(),
        "extremely randomised": MessageOperator(Forest()),
        "Breiman": MessageOperator(Forest("breiman")),
    }
    operators = {name: operator.learn((came,), answer) for name, operator in operators.items()}

    # Means from the middle of what was seen to far beyond it, at a variance that was seen.
    line = ep.Normal(np.linspace(0, 10, 81), 0.5)
    beyond = np.linspace(0, 10, 81) >= 4
    doubts = {name: np.sqrt(operator.predict((line,)).novelty) for name, operator in operators.items()}
    rises = {}
    for name, doubt in doubts.items():
        rises[name] = rank_correlation(np.asarray(line.mean())[beyond], doubt[beyond]) if np.ptp(doubt[beyond]) else 0.0

    test = ep.Normal(rng.uniform(-7, 7, 1000), np.exp(rng.uniform(np.log(0.05), np.log(3), 1000)))
    exact, said = ep.ask(factor, test), operators["kernel"].predict((test,))
    expected = operators["kernel"].doubt((test,), said)
    beliefs, predicted = test * exact.messages[0], test * said.messages[0]
    proper = np.asarray(predicted.is_proper()) & np.isfinite(expected)
    error = np.sqrt(2 * np.asarray(beliefs[proper].kl(predicted[proper])))
    agreement = rank_correlation(expected[proper], error)

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for name, doubt in doubts.items():
        left.plot(line.mean(), doubt / doubt[line.mean() < 4].max(), label=name)
    left.axvline(4, color="0.7", linestyle=":")
    left.set(
        xlabel="mean of the incoming message (trained up to 4)",
        ylabel="doubt, over its largest where trained",
        yscale="log",
    )
    left.legend(frameon=False)
    right.loglog(expected[proper], np.maximum(error, 1e-8), ".", markersize=3)
    ends = np.array([expected[proper].min(), expected[proper].max()])
    right.plot(ends, ends, color="0.6")
    right.set(xlabel="doubt of the belief (s.d.)", ylabel="error of the belief, √2KL (s.d.)")
    numbers = {
        "rise of the kernel's doubt": Number(rises["kernel"]),
        "rise of the best forest's doubt": Number(max(rises["Breiman"], rises["extremely randomised"])),
        "rank correlation of doubt and error": Number(agreement),
        "errors above twice the doubt": Number(float((error > 2 * expected[proper]).mean())),
    }
    text = (
        "Beyond what it was trained on the kernel's doubt rises by orders of magnitude; all of it falls in one leaf of "
        f"every tree, and the forests' doubt is flat there. Doubt and error rank alike ({agreement:.2f})."
    )
    caption = (
        "Left, doubt along a line that leaves the training region at 4. Right, doubt and error, and where both agree."
    )
    return Outcome(text, numbers, ((figure, caption),))


EXPERIMENT = Experiment(
    "messages-doubt",
    "Doubt against error, and where nothing was seen",
    "Jitkrittum et al. (2015), draft, figures 3, 4 and 10",
    (
        Claim("doubt grows away from the training region (figure 4)", "rise of the kernel's doubt", low=0.9),
        Claim("that of forests does not (figure 4)", "rise of the best forest's doubt", high=0.5),
        Claim("doubt orders errors (figure 3)", "rank correlation of doubt and error", low=0.5),
    ),
    {"smoke": 0.3, "quick": 0.5, "paper": 1},
    run,
)
