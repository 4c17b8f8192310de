"""What is recorded: small runs of every part whose results must not move when code does, each a few arrays by name."""

import numpy as np

import meanmap as mm
from meanmap import bp, ep
from meanmap.graphs import Factors, Flooding, Residual, Sequential, Splash
from meanmap_papers import rivals

RING = [(i, (i + 1) % 5) for i in range(5)]
CHAIN = [(0, 1), (1, 2), (2, 3)]
STEPS = np.linspace(-2, 2, 7)


def rng(seed=0):
    return np.random.default_rng(seed)


def pairs(m=16, seed=0):
    draw = rng(seed)
    x = draw.normal(size=m)
    return x, 0.8 * x + 0.6 * draw.normal(size=m)


def table(n=16):
    draw = rng(1)
    a = draw.normal(size=n)
    b = np.sin(2 * a) + 0.1 * draw.normal(size=n)
    c = b**2 + 0.1 * draw.normal(size=n)
    word = np.where(b > 0, "up", "down")
    text = np.array(["rise and shine" if v > 0.5 else "rise" if v > 0 else "fall down" for v in b])
    return {"a": a, "b": b, "c": c, "word": word, "text": text}


def belief(found):
    return [np.atleast_1d(found.mean()), np.atleast_1d(found.var()), found.density(STEPS)]


def report(found):
    return np.array([float(found.converged), float(found.steps)])


def tree_model():
    return mm.KernelGraph([("a", "b"), ("b", "c"), ("b", "word")]).fit({k: table()[k] for k in ("a", "b", "c", "word")})


def tree(model):
    found = model.query({"a": np.array([0.4, -1.0]), "c": lambda x: np.exp(-((x - 0.5) ** 2))}, ["b", "word"])
    hard = model.query({"a": 0.3, "word": "up"}, ["b", "c"])
    each = found["word"].probabilities()
    chosen = [list(values.values()) for values in model.chosen.values()]
    ratio = hard["c"].ratio(np.array([0.1, 0.9]))
    return [
        *belief(found["b"]),
        np.array([each[label] for label in sorted(each)]),
        *belief(hard["b"]),
        *belief(hard["c"]),
        ratio,
        np.array(chosen),
        report(found.report),
        report(hard.report),
    ]


def from_pairs_model():
    draw = rng(2)
    x, y = pairs(12, 3)
    z = draw.normal(size=10)
    return mm.KernelGraph([("x", "y"), ("y", "z")]).fit({("x", "y"): (x, y), ("z", "y"): (z, 0.7 * z + 0.3)})


def from_pairs(model):
    found = model.query({"x": np.array([1.0, -1.0])})
    return [*belief(found["z"]), *belief(found["y"])]


def texts_model():
    data = table()
    kernels = {"text": mm.kernels.Spectrum(2)}
    return mm.KernelGraph([("b", "text")], kernels=kernels).fit({"b": data["b"], "text": data["text"]})


def texts(model):
    found = model.query({"text": ["rise", "fall down"]}, ["b"])
    return [*belief(found["b"])]


def loopy_tree():
    data = table()
    model = mm.KernelGraph([("a", "b"), ("b", "c"), ("a", "c")], schedule=Flooding(10), rank=30, ridge=0.01)
    return belief(model.fit({k: data[k] for k in "abc"}).query({"a": 0.5}, ["c"], damping=0.2)["c"])


def stream_model():
    draw = rng(4)
    level = np.zeros(40)
    for i in range(1, 40):
        level[i] = 0.9 * level[i - 1] + 0.4 * draw.normal()
    seen = level + 0.5 * draw.normal(size=40)
    past, now = level[:14], level[1:15]
    model = mm.KernelGraph([("now", "next"), ("now", "seen")]).fit({"now": past, "next": now, "seen": seen[:14]})
    stream = bp.Stream.of(model, "now", "next", lag=3)
    for i in range(30, 35):
        stream = stream.step({"seen": seen[i]})
    return stream.step({"now": level[35]})


def stream(found):
    later = found.step({"seen": 0.3})
    smooth = [one.mean() for one in later.smooth()]
    return [*belief(later.belief), *belief(later.predict(2)), np.array(smooth), report(later.report)]


def ring_model(update=None):
    draw = rng(5)
    x, y = pairs()
    observed = x, x + 0.4 * draw.normal(size=len(x))
    return mm.KernelField(RING, update=update).fit((x, y), observed=observed)


def ring(model):
    observations = np.array([0.5, np.nan, np.nan, -1.0, np.nan])
    found = model.query({0: 1.0, 2: lambda x: np.exp(-(x**2))}, observed=observations)
    counted = model.query({0: 1.0}, counting=0.7, floor=0.02, dtype=np.float32)
    out = [part for i in (1, 2, 3) for part in belief(found[i])]
    return [*out, np.atleast_1d(counted[2].mean()), np.array(model.learned.ridges), report(found.report)]


def chain_model(update=None):
    draw = rng(6)
    x, y = pairs(14, 7)
    colour = np.where(x + 0.5 * draw.normal(size=len(x)) > 0, "red", "blue")
    field = mm.KernelField(
        CHAIN, relations=["go", "go", "name"], variables=["n", "n", "n", "colour"], update=update, ridge=None
    )
    return field.fit({"go": (x, y), "name": (x, colour)})


def chain(model):
    found = model.query({0: 1.0, 3: "red"})
    free = model.query({0: -1.0}, [3])[3].probabilities()
    out = [part for i in (1, 2) for part in belief(found[i])]
    return [*out, np.array([free["red"], free["blue"]]), report(found.report)]


def schedules():
    model = mm.KernelField(RING, schedule=None, update=bp.Constant(1e-2, rank=8)).fit(pairs())
    out = []
    for schedule in (Flooding(8), Sequential(8), Residual(8), Splash(8)):
        field = mm.KernelField(RING, schedule=schedule, update=bp.Constant(1e-2, rank=8)).fit(pairs())
        out.append(np.atleast_1d(field.query({0: 1.0})[2].mean()))
    return [*out, np.atleast_1d(model.query({0: 1.0})[2].mean())]


def picture():
    down, right = np.mgrid[:5, :5]
    return 10.0 * (down + right) + rng(8).normal(size=down.shape)


def grid_model(**settings):
    clean = picture()
    return mm.KernelGrid(**settings).fit(clean, clean + 20 * rng(9).normal(size=clean.shape), rng=0)


def grid(model):
    noisy = picture()[:4, :5] + 20 * rng(10).normal(size=(4, 5))
    noisy[1:3, 2:4] = np.nan
    found = model.restore(noisy)
    return [found.mean(), found.sd(), found.quantile(0.9), found.mode(), report(found.report)]


def patches_grid():
    clean = picture()
    noisy = clean + 20 * rng(11).normal(size=clean.shape)
    model = mm.KernelGrid(directions=True, update=bp.Constant(1e-2, rank=8)).fit(clean, bp.patches(noisy, 3), rng=0)
    return [model.restore(bp.patches(noisy, 3)).mean()]


def likelihoods():
    draw = rng(12)
    x = draw.normal(size=100)
    patch = x[:, None] + draw.normal(size=(100, 3))
    points = np.linspace(-2, 2, 5)[:, None]
    learned = bp.LearnedLikelihood.fit(x, x + 0.5 * draw.normal(size=100))
    noise = bp.NoiseLikelihood.fit(x, 2 * x + 0.5 * draw.normal(size=100))
    centred = bp.CentredLikelihood.fit(x, patch, groups=np.arange(100) % 4)
    return [learned.at([1.0, 0.0], points), noise.at([1.0, 0.0], points), centred.at(patch[:2], points)]


def approximations():
    model = ring_model(bp.Constant(1e-2, rank=8))
    return [np.array([getattr(each, name) for name in each.__dataclass_fields__]) for each in model.approximation]


def gaussian_graph():
    matrix = np.eye(5) * 2.0
    for a, b in RING:
        matrix[a, b] = matrix[b, a] = -0.6
    return bp.GaussianGraph(matrix, np.arange(5.0))


def gaussian(model):
    found = model.query({0: np.array([1.0, 2.0])})
    return [np.stack([found[i].mean() for i in range(5)]), np.stack([found[i].var() for i in range(5)])]


def gaussian_field():
    return rivals.GaussianField(RING).fit(pairs(), observed=pairs(20, 5))


def bins_field(**settings):
    return rivals.DiscretizedField(RING, **settings).fit(pairs(), observed=pairs(20, 5))


def field(model, **settings):
    found = model.query({0: 1.0, 2: lambda x: np.exp(-(x**2))}, observed=np.array([np.nan] * 4 + [0.3]), **settings)
    out = [part for i in (1, 3) for part in belief(found[i])]
    return [*out, report(found.report)]


def sampled(model):
    found = model.query({0: 1.0}, rng=0)
    return [np.atleast_1d(found[i].mean()) for i in (1, 2)]


def discrete_model():
    draw = rng(13)
    potentials = {edge: draw.random((2, 2)) + 0.1 for edge in RING}
    return bp.DiscreteGraph(RING, potentials)


def discrete(model):
    found = model.query({0: np.array([0, 1]), 2: np.array([0.2, 1.0])})
    best = model.most_probable({0: 1})
    return [np.stack([found[i] for i in range(5)]), found.log_evidence, np.array([best[i] for i in range(5)])]


def clique_model():
    draw = rng(14)
    factors = Factors(
        [2, 3, 2, 2], ((0, 1), (1, 2, 3), (0, 3)), (draw.random((2, 3)), draw.random((3, 2, 2)), draw.random((2, 2)))
    )
    return bp.CliqueTree(factors)


def clique(model):
    found = model.query({0: 1})
    return [np.concatenate([found[i] for i in range(1, 4)]), np.atleast_1d(found.log_evidence)]


def tests():
    draw = rng(15)
    x, y = draw.normal(size=60), draw.normal(size=60) + 0.4
    z = x + 0.5 * draw.normal(size=60)
    w = draw.normal(size=60)
    found = [
        mm.two_sample_test(x, y, rng=0),
        mm.independence_test(x, z, rng=0),
        mm.conditional_independence_test(x, z, w, rng=0),
        mm.k_sample_test([x, y, z], rng=0),
    ]
    return [np.array([[float(each.statistic), float(each.pvalue)] for each in found])]


def causes():
    draw = rng(16)
    a, b = draw.normal(size=(2, 80))
    c = a + b + 0.3 * draw.normal(size=80)
    found = mm.pc({"a": a, "b": b, "c": c}, rng=0)
    tree = mm.chow_liu({"a": a, "b": b, "c": c})
    arrows, lines = (sorted(f"{p} {q}" for p, q in found.named(kind)) for kind in ("directed", "undirected"))
    words = " ".join(arrows) + "|" + " ".join(lines) + "|" + " ".join(f"{p} {q}" for p, q in tree.named_edges)
    return [np.frombuffer(words.encode(), dtype=np.uint8).astype(float)]


def operators():
    x, y = pairs(70, 17)
    found = mm.condition(x, y)([0.0, 0.5])
    return [found.mean(), found.var()]


def exact_propagation():
    x = rng(18).normal(size=(12, 2))
    w = ep.Variable("w", ep.MultivariateNormal.standard(2))
    z = ep.Variable("z", ep.Normal, plate=12)
    found = ep.infer(ep.FactorGraph(ep.Dot(x, w, z), ep.Probit(z, observed=(x[:, 0] > 0).astype(int))))
    return [found["w"].mean(), found["w"].cov()]


def by_quadrature():
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    found = ep.infer(ep.FactorGraph(ep.Density(lambda z, y: y * z - z**2 / 4, z, [0, 1, 4])))
    return [found["z"].mean(), found["z"].var()]


# Models that are kept as files, what is asked of them.
MODELS = {
    "tree": (tree_model, tree),
    "pairs": (from_pairs_model, from_pairs),
    "texts": (texts_model, texts),
    "stream": (stream_model, stream),
    "ring": (ring_model, ring),
    "ring_full": (lambda: ring_model(bp.Full()), ring),
    "ring_linear": (lambda: ring_model(bp.Linear(1e-3)), ring),
    "chain": (chain_model, chain),
    "chain_full": (lambda: chain_model(bp.Full()), chain),
    "chain_linear": (lambda: chain_model(bp.Linear(rank=8)), chain),
    "grid": (grid_model, grid),
    "grid_full": (lambda: grid_model(directions=True, update=bp.Full()), grid),
    "grid_linear": (lambda: grid_model(bands=2, update=bp.Linear(rank=8)), grid),
    "gaussian": (gaussian_graph, gaussian),
    "discrete": (discrete_model, discrete),
    "clique": (clique_model, clique),
}
OUTPUTS = {
    "gaussian_field": lambda: field(gaussian_field()),
    "bins": lambda: field(bins_field(bins=6)),
    "bins_reweighted": lambda: field(bins_field(reweighted=True)),
    "mixtures": lambda: sampled(rivals.MixtureField(CHAIN, components=10, centres=10).fit(pairs())),
    "particles": lambda: sampled(rivals.ParticleField(RING, particles=20, rounds=2, centres=10).fit(pairs())),
    "loopy_tree": loopy_tree,
    "schedules": schedules,
    "patches": patches_grid,
    "likelihoods": likelihoods,
    "approximations": approximations,
    "tests": tests,
    "causes": causes,
    "operators": operators,
    "exact_propagation": exact_propagation,
    "by_quadrature": by_quadrature,
}
