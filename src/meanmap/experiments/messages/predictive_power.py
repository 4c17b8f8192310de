"""How well messages are predicted: divergences of beliefs by operators from those by quadrature (figure 2, draft)."""

from typing import Any

import numpy as np

from meanmap.experiments.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT", "log_range", "training_messages"]


def training_messages(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Messages into the logistic factor: N(m, v) with m ~ N(0, 4), v log-uniform on (.02, 3), and a label's Beta."""
    from meanmap import ep

    labels = rng.integers(0, 2, n)
    variance = np.exp(rng.uniform(np.log(0.02), np.log(3), n))
    return ep.Normal(2 * rng.normal(size=n), variance), ep.Beta(1.0 + labels, 2.0 - labels)


def log_range(values: np.ndarray) -> np.ndarray:
    """Logarithms to base 10, nothing below −15."""
    return np.log10(np.maximum(values, 1e-15))


def run(setting: Setting) -> Outcome:
    """All operators and kernels learn the same messages and predict the same others."""
    import jax
    from matplotlib import pyplot

    from meanmap import ep
    from meanmap.ep.learned import KERNELS, Forest, KernelRegression, MessageOperator, Network
    from meanmap.experiments.messages.jointly import Jointly

    size, tests = setting.choose(smoke=(128, 128), quick=(1000, 2000), paper=(5000, 10_000))
    factor = ep.BlackBox(jax.nn.sigmoid, ep.Variable("z", ep.Normal), ep.Variable("p", ep.Beta))
    came, new = training_messages(size, setting.rng(0)), training_messages(tests, setting.rng(1))
    answer, exact = ep.ask(factor, *came), ep.ask(factor, *new)
    rivals = {f"kernel: {name}": MessageOperator(KernelRegression(name)) for name in KERNELS}
    rivals["kernel: embedding, tilted moments"] = MessageOperator(KernelRegression(), "tilted moments")
    rivals["kernel: embedding, outputs jointly"] = MessageOperator(Jointly())
    rivals["kernel: embedding, marginal likelihood"] = MessageOperator(KernelRegression(tune="marginal likelihood"))
    rivals["extremely randomised forest"] = MessageOperator(Forest())
    rivals["Breiman's forest"] = MessageOperator(Forest("breiman"))
    rivals["neural network"] = MessageOperator(Network())
    truth, found, table = new[0] * exact.messages[0], {}, [("operator", "median log₁₀ KL", "99%", "improper")]
    for name, operator in rivals.items():
        said = new[0] * operator.learn(came, answer).predict(new).messages[0]
        proper = np.asarray(said.is_proper())
        found[name] = log_range(np.asarray(truth[proper].kl(said[proper])))
        low, high = np.quantile(found[name], [0.5, 0.99])
        table.append((name, f"{low:.1f}", f"{high:.1f}", f"{(~proper).sum()}"))
    figure, axes = pyplot.subplots(figsize=(7, 3.5), constrained_layout=True)
    for name in (
        "kernel: embedding",
        "kernel: embedding, tilted moments",
        "extremely randomised forest",
        "neural network",
    ):
        axes.hist(found[name], bins=list(np.linspace(-12, 2, 57)), histtype="step", label=name)
    axes.set_xlabel("log₁₀ KL(quadrature ‖ operator) of the belief about z")
    axes.legend(frameon=False, fontsize=8)
    ours = found["kernel: embedding"]
    best = min(np.median(found[name]) for name in rivals if not name.startswith("kernel"))
    numbers = {
        "median": Number(float(np.median(ours))),
        "high": Number(float(np.quantile(ours, 0.99))),
        "lead over rivals": Number(float(best - np.median(ours))),
        "gain of joint outputs": Number(
            float(np.median(ours) - np.median(found["kernel: embedding, outputs jointly"]))
        ),
        "gain of derivatives": Number(float(np.median(found["kernel: embedding, tilted moments"]) - np.median(ours))),
    }
    text = (
        f"Derivatives of log Z by the kernel: half the beliefs within "
        f"10^{numbers['median'].value:.1f} nats; {numbers['gain of derivatives'].value:.1f} decades below tilted ones."
    )
    return Outcome(
        text, numbers, ((figure, "Divergences of beliefs by operator; farther left is better."),), tuple(table)
    )


EXPERIMENT = Experiment(
    "messages-predictive-power",
    "Predicted messages of the logistic factor: kernels, forests, a network",
    "Jitkrittum et al. (2015), draft, figure 2 and the table of kernels it promised",
    (
        Claim("most beliefs are closer than 10⁻³ (the mode of figure 2)", "median", high=-3.0),
        Claim("the kernel operator is better than forests and network", "lead over rivals", low=0.0),
        Claim("outputs regressed jointly are not predicted better (ours)", "gain of joint outputs", high=0.1),
        Claim("derivatives of log Z are learned better than tilted moments (ours)", "gain of derivatives", low=1.0),
    ),
    {"smoke": 0.5, "quick": 1, "paper": 4},
    run,
)
