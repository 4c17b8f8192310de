"""The methods compared, their tuned settings, and the settings of the paper's appendix."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from meanmap.core.types import GraphLike

__all__ = ["BUDGET", "METHODS", "PRESETS", "Method", "Rival"]

# Every method is tried in this many settings at most.
BUDGET = 4


@dataclass(frozen=True, eq=False)
class Rival:
    """A method in one setting: `build(graph, relations=..., variables=...)` gives a field."""

    label: str
    build: Callable[..., Any]
    draws: bool = False


@dataclass(frozen=True, eq=False)
class Method:
    """A method, and what may be tuned: settings for chains, and for pictures, which have more nodes."""

    name: str
    axis: str
    chains: tuple[Rival, ...]
    pictures: tuple[Rival, ...]


def _kernel(tolerance: float, ridge: float | None = None) -> Rival:
    def build(graph: GraphLike, **options: Any) -> Any:
        from meanmap import bp

        return bp.KernelField(graph, update=bp.Constant(tolerance), ridge=ridge, **options)

    return Rival(f"ε = {tolerance:g}" + ("" if ridge is None else f", λ = {ridge:g}"), build)


def _discretized(bins: int | None, reweighted: bool = False) -> Rival:
    def build(graph: GraphLike, **options: Any) -> Any:
        from meanmap_papers import rivals

        return rivals.DiscretizedField(graph, bins=bins, reweighted=reweighted, **options)

    label = "bins chosen" if bins is None else f"{bins} bins"
    return Rival(label + (", tree-reweighted" if reweighted else ""), build)


def _gaussian(reweighted: bool) -> Rival:
    def build(graph: GraphLike, **options: Any) -> Any:
        from meanmap_papers import rivals

        return rivals.GaussianField(graph, reweighted=reweighted, **options)

    return Rival("tree-reweighted" if reweighted else "plain", build)


def _mixture(components: int, bandwidth: str | None = None) -> Rival:
    def build(graph: GraphLike, **options: Any) -> Any:
        from meanmap_papers import rivals

        return rivals.MixtureField(graph, components=components, bandwidth=bandwidth, **options)

    return Rival(f"{components} components" + ("" if bandwidth is None else ", smoothed draws"), build, draws=True)


def _particle(particles: int, adaptive: bool = False) -> Rival:
    def build(graph: GraphLike, **options: Any) -> Any:
        from meanmap_papers import rivals

        proposal = rivals.Adaptive() if adaptive else rivals.Metropolis(10)
        return rivals.ParticleField(graph, particles=particles, proposal=proposal, **options)

    return Rival(f"{particles} particles" + (", matched proposals" if adaptive else ""), build, draws=True)


KERNEL = (_kernel(1e-2), _kernel(1e-2, 1e-2), _kernel(1e-2, 1e-3), _kernel(1e-1, 1e-3))
DISCRETIZED = (_discretized(16), _discretized(32), _discretized(None), _discretized(None, True))
GAUSSIAN = (_gaussian(False), _gaussian(True))
METHODS = (
    Method("kernel", "ε, λ", KERNEL, KERNEL),
    Method("discretised", "bins", DISCRETIZED, DISCRETIZED),
    Method("Gaussian", "potentials", GAUSSIAN, GAUSSIAN),
    Method(
        "mixture",
        "components",
        (_mixture(20), _mixture(50), _mixture(100), _mixture(100, "thumb")),
        (_mixture(5), _mixture(10), _mixture(20), _mixture(20, "thumb")),
    ),
    Method(
        "particle",
        "particles",
        (_particle(20), _particle(50), _particle(100), _particle(100, True)),
        (_particle(10), _particle(20), _particle(40), _particle(40, True)),
    ),
)


def _splashed(graph: GraphLike, **options: Any) -> Any:
    """Appendix 2.1.1: 30 bins, locally consistent potentials, splashes."""
    from meanmap.graphs import Splash
    from meanmap_papers import rivals

    return rivals.DiscretizedField(graph, bins=30, schedule=Splash(15), **options)


def _walking(particles: int, sweeps: int) -> Callable[..., Any]:
    """100 sweeps in order, resampled every this many by 10 Metropolis steps; weights below 1e-7 are left out."""

    def build(graph: GraphLike, **options: Any) -> Any:
        from meanmap.graphs import Sequential
        from meanmap_papers import rivals

        rounds = -(-100 // sweeps)
        walk, schedule = rivals.Metropolis(10), Sequential(sweeps)
        return rivals.ParticleField(
            graph, particles=particles, rounds=rounds, proposal=walk, skip=1e-7, schedule=schedule, **options
        )

    return build


def _smoothed(graph: GraphLike, **options: Any) -> Any:
    """Appendix 1: products by multiscale trees, a Gaussian on each draw. The number of components is not given."""
    from meanmap_papers import rivals

    return rivals.MixtureField(graph, components=20, sampler=rivals.Multiscale(), bandwidth="thumb", **options)


# The appendix's settings. Bins at the levels of colours are what `DiscretizedField` does by itself.
PRESETS = {
    ("denoising", "discretised"): Rival("appendix 2.2.1", _discretized(None).build),
    ("denoising", "particle"): Rival("appendix 2.2.2", _walking(30, 15), draws=True),
    ("denoising", "mixture"): Rival("appendix 1", _smoothed, draws=True),
    ("depth", "discretised"): Rival("appendix 2.1.1", _splashed),
    ("depth", "particle"): Rival("appendix 2.1.2", _walking(20, 10), draws=True),
}
