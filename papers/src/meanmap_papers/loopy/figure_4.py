"""Topics of papers from their words and from the papers they cite or are cited by."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

PROJECTED = 10  # d: the paper projects 367 categories to 100 numbers; here are 5 topics
SWEEPS, MORE = 5, 10
GROUPS = 20  # of papers, left out one at a time for the standard error of how often alike papers cite each other
ALWAYS_KNOWN = 10  # papers with more links are always in the training set
AT = 1, 2, 3, 4  # k; at 5, the number of topics, every method finds all
# The methods compared, by position in the list of names.
COMPARED = {
    "over regression": (0, 1),
    "over direct regression": (0, 2),
    "regression over frequent": (1, 3),
    "over label propagation": (0, 4),
}
NAMES = (
    "kernel belief propagation",
    "regression of projected topics",
    "regression of each topic",
    "most frequent",
    "label propagation",
)
STAND_IN = "9360 papers and 5 topics in place of 143,086 and 367, against rivals that ignore the links"
ROUNDS = 30  # of label propagation
ALIKE = "log of how much more often papers that share a topic cite each other"
CAPTION = "Recall at k by method; bars are standard deviations over splits."
DECODING = (
    "Known papers are evidence through the likelihood operator. The label vector is decoded from the mean of the "
    "projected label under the belief, instead of its unit maximiser."
)
WORDS = (
    "In the paper the words of a paper are joined to its categories by an edge. Here ridge regression predicts the "
    "projected label from TF-IDF of the words of its title, with logarithms of counts, and the likelihood is that of "
    "their errors on training papers that were left out. Ridges are chosen from the training papers. Columns of the "
    "projection have length one. Messages are damped by 0.3, of which the paper says nothing."
)
PROPAGATION = (
    "Both rivals of the paper ignore the links. Label propagation is the baseline that a practitioner would take, and "
    f"uses nothing else: in {ROUNDS} rounds each unknown paper takes the mean of the topics of the papers that it is "
    "linked to, beginning with the shares of the topics among the known ones."
)


def run(setting: Setting) -> Outcome:
    """Recall at k of kernel belief propagation, of independent regressions and of the most frequent topics."""
    from meanmap.datasets import citation

    recalls, longer = recalls_of(PROJECTED, setting), recalls_of(PROJECTED, setting, MORE)[0]
    numbers = {ALIKE: alike(citation(), setting.rng(1000))}
    numbers |= {f"recall gained by more sweeps, k = {k}": Number.mean((longer - recalls[0])[:, k - 1]) for k in AT}
    for what, (upper, lower) in COMPARED.items():
        for k in AT:
            gain = recalls[upper, :, k - 1] - recalls[lower, :, k - 1]
            numbers[f"{what}, k = {k}"] = Number.mean(gain)
    return Outcome(
        f"Recall at 1, 2 and 3 is {_three(recalls[0])} with kernel belief propagation; {_three(recalls[1])} with "
        f"independent regression of projected topics; {_three(recalls[2])} with that of each topic; "
        f"{_three(recalls[3])} with the most frequent topics; and {_three(recalls[4])} with label propagation, which "
        "uses only the links.",
        numbers,
        ((drawn(recalls), CAPTION),),
        table_of(recalls),
        notes=(
            (
                "The paper's 143,086 papers with 367 categories are not available. These are 9360 papers with 5 topics "
                "(the network ACMv9 of AMiner's citation data, `meanmap.datasets.citation`). A link is a citation "
                "in either direction, and words are those of titles. At k = 5 every method finds all topics, and "
                "projecting them to 10 numbers saves nothing."
            ),
            (
                f"As in the paper a third of the papers is for training, those with more than {ALWAYS_KNOWN} links "
                "always, and recall is that of the others."
            ),
            WORDS,
            DECODING,
            PROPAGATION,
            (
                "How often papers cite each other is the share of pairs with a link. It is compared, on a log scale, "
                "between pairs that share a topic and pairs that share none; its standard error is that of a "
                f"jackknife, which leaves out a twentieth of the papers at a time. That more than {SWEEPS} sweeps do "
                f"not help is judged with {MORE}, on the same splits, and holds if they add at most 0.01 of recall at "
                "every k."
            ),
        ),
    )


def alike(data: Any, rng: np.random.Generator) -> Number:
    """Log of how much more often papers link if they share a topic, with the standard error of a jackknife."""
    codes = data.topics @ 2 ** np.arange(data.topics.shape[1])
    first, second = data.links.nonzero()
    first, second = first[first < second], second[first < second]
    group = rng.integers(GROUPS, size=len(codes))

    def ratio(kept: np.ndarray) -> float:
        patterns, counts = np.unique(codes[kept], return_counts=True)
        share = (patterns[:, None] & patterns) > 0
        pairs = np.outer(counts, counts) - np.diag(counts)  # each pair twice
        linked = kept[first] & kept[second]
        links = (codes[first[linked]] & codes[second[linked]]) > 0
        return float(np.log(links.sum() / pairs[share].sum()) - np.log((~links).sum() / pairs[~share].sum()))

    without = [ratio(group != at) for at in range(GROUPS)]
    error = np.sqrt((GROUPS - 1) * np.var(without))
    return Number(ratio(np.full(len(codes), True)), float(error), GROUPS)


def recalls_of(projected: int, setting: Setting, sweeps: int = SWEEPS) -> np.ndarray:
    """Recall by method, split and k, with topics projected to this many numbers."""
    from meanmap.datasets import citation

    data = citation()
    splits = range(setting.choose(smoke=1, quick=3, paper=10))

    def measured(split: int) -> list[list[float]]:
        """Recall on one split by method and k."""
        guesses, held = _one_split(data, projected, sweeps, setting.rng(split))
        truth = data.topics[held]
        found = [np.cumsum(np.take_along_axis(truth, ranked, axis=1), axis=1) for ranked in guesses]
        return [np.mean(each / truth.sum(axis=1, keepdims=True), axis=0).tolist() for each in found]

    found = [setting.part(f"{sweeps} sweeps, split {split}", partial(measured, split)) for split in splits]
    return np.array(found).swapaxes(0, 1)


def drawn(recalls: np.ndarray) -> Any:
    """Recall against k, a line for each method."""
    from matplotlib import pyplot

    tops, splits = range(1, recalls.shape[2] + 1), recalls.shape[1]
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name, values in zip(NAMES, recalls, strict=True):
        spread = values.std(axis=0, ddof=1) if splits > 1 else np.zeros(len(tops))
        axes.errorbar(tops, values.mean(axis=0), spread, marker="o", capsize=3, label=name)
    axes.set(xlabel="k", ylabel="recall at k", xticks=list(tops))
    axes.legend()
    return figure


def table_of(recalls: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """Mean recall at k, a row for each method."""
    head = ("method", *(f"recall at {k}" for k in range(1, recalls.shape[2] + 1)))
    rows = zip(NAMES, recalls, strict=True)
    return (head, *((name, *(f"{v:.3f}" for v in values.mean(axis=0))) for name, values in rows))


def _three(values: np.ndarray) -> str:
    return ", ".join(f"{v:.3f}" for v in values.mean(axis=0)[:3])


def _one_split(
    data: Any, dimensions: int, sweeps: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], np.ndarray]:
    """Topics in the order in which each method names them, for the held-out papers."""
    import meanmap as mm
    from meanmap import bp

    number, topics = data.topics.shape
    projection: Any = rng.normal(size=(dimensions, topics)) / np.sqrt(dimensions)
    projection /= np.linalg.norm(projection, axis=0)  # as orthogonal matching pursuit needs
    projected = data.topics @ projection.T
    degree = np.diff(data.links.indptr)
    known = degree > ALWAYS_KNOWN
    rest = rng.permutation(np.flatnonzero(~known))
    known[rest[: max(number // 3 - int(known.sum()), 0)]] = True
    seen, held = np.flatnonzero(known), np.flatnonzero(~known)

    guess, left_out = regression(data.words, projected, seen)
    direct = regression(data.words, data.topics.astype(float), seen)[0]
    edges = np.stack(data.links.nonzero(), axis=1)
    edges = edges[edges[:, 0] < edges[:, 1]]
    inside = edges[known[edges].all(axis=1)]
    field = mm.KernelField(
        mm.Graph.of(edges, nodes=range(number)),
        kernels=mm.kernels.Linear(),
        schedule=mm.graphs.Flooding(sweeps),
    ).fit(
        (projected[inside[:, 0]], projected[inside[:, 1]]),
        observed=(projected[seen], left_out),
        likelihood=bp.NoiseLikelihood,
    )
    observations = np.where(known[:, None], np.nan, guess)
    beliefs = field.query({int(node): projected[node] for node in seen}, targets=held.tolist(), observed=observations)
    means = np.stack([beliefs[int(node)].mean() for node in held])
    order = np.argsort(-data.topics[seen].mean(axis=0))
    frequent = np.tile(order, (len(held), 1))
    ranked = np.argsort(-direct[held], axis=1)
    spread = np.argsort(-propagated(data, known)[held], axis=1, kind="stable")
    return [decoded(projection, means), decoded(projection, guess[held]), ranked, frequent, spread], held


def propagated(data: Any, known: np.ndarray) -> np.ndarray:
    """Topics of all papers by label propagation, which looks at links alone."""
    topics, links = data.topics.astype(float), data.links.tocsr().astype(float)
    shares, degree = topics[known].mean(axis=0), np.asarray(links.sum(axis=1)).reshape(-1, 1)
    spread = np.where(known[:, None], topics, shares)
    for _ in range(ROUNDS):
        means = np.where(degree > 0, np.asarray(links @ spread) / np.maximum(degree, 1), shares)
        spread = np.where(known[:, None], topics, means)
    return spread


def regression(words: Any, targets: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel ridge regression with a linear kernel on tf-idf vectors (Hsu, Kakade, Langford & Zhang 2009).

    Predictions for all papers, and leave-one-out predictions for training papers.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    from meanmap.linalg import choose_ridge

    features: Any = TfidfTransformer(sublinear_tf=True).fit(words[seen]).transform(words)
    mean = targets[seen].mean(axis=0)
    gram = np.asarray((features[seen] @ features[seen].T).todense())
    ridge = float(choose_ridge(gram, targets[seen] - mean).best)
    inverse = np.linalg.inv(gram + ridge * len(seen) * np.eye(len(seen)))
    weights = inverse @ (targets[seen] - mean)
    left_out = targets[seen] - weights / inverse.diagonal()[:, None]
    return np.asarray(features @ (features[seen].T @ weights)) + mean, left_out


def decoded(projection: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Topics in the order chosen by orthogonal matching pursuit."""
    import warnings

    from sklearn.linear_model import orthogonal_mp

    topics = projection.shape[1]
    orders = np.zeros((len(vectors), topics), dtype=np.int64)
    taken = np.zeros((len(vectors), topics), dtype=bool)
    columns: Any = vectors.T
    for k in range(1, topics + 1):
        with warnings.catch_warnings():
            # A certain belief equals a column, with no residual for a second one.
            warnings.filterwarnings("ignore", "Orthogonal matching pursuit ended prematurely", RuntimeWarning)
            coefficients: Any = orthogonal_mp(projection, columns, n_nonzero_coefs=k)
            found = np.reshape(coefficients, (topics, -1)).T != 0
        new: Any = np.argmax(found & ~taken, axis=1)
        none = ~(found & ~taken).any(axis=1)  # a coefficient of exactly zero: any topic that is left
        new[none] = np.argmin(taken[none], axis=1)
        orders[:, k - 1] = new
        taken[np.arange(len(vectors)), new] = True
    return orders


def claims_at(at: Sequence[int], *compared: tuple[str, str, bool]) -> tuple[Claim, ...]:
    """Claims that one method is better than another at each k: what is compared, in words, and whether it is ours."""
    return tuple(Claim(words, tuple(f"{name}, k = {k}" for k in at), 0.0, ours=ours) for name, words, ours in compared)


EXPERIMENT = Experiment(
    "loopy-figure-4",
    "Topics of papers on a citation network",
    "Song et al. (2011), appendix, figure 4",
    (
        Claim("papers that share categories cite each other more often (appendix 4)", ALIKE, 0.0),
        Claim(
            f"more than {SWEEPS} iterations do not improve it (appendix 4): {MORE} add at most 0.01 of recall",
            tuple(f"recall gained by more sweeps, k = {k}" for k in AT),
            high=0.01,
        ),
        *claims_at(
            AT,
            (
                "over regression",
                "kernel belief propagation is better than independent regression over a range of k (appendix 4)",
                False,
            ),
            ("regression over frequent", "independent regression is better than the most frequent categories", True),
            (
                "over direct regression",
                "kernel belief propagation is better than regression of each topic without a projection",
                True,
            ),
            (
                "over label propagation",
                "kernel belief propagation is better than label propagation, which does not read the papers",
                True,
            ),
        ),
    ),
    {"smoke": 0.5, "quick": 1.5, "paper": 5},
    run,
    data=("citation",),
    stand_in=STAND_IN,
)
