"""Time and memory against n, drawn for the documentation."""

from pathlib import Path

from benchmarks.harness import Case, Row

__all__ = ["draw"]


def draw(case: Case, rows: list[Row], memory: dict[tuple[str, int], float | None], path: Path) -> None:
    """Write an SVG with both against n on logarithmic axes; the file changes only where the numbers do."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": case.name, "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 2.8), layout="constrained")
        times, peaks = figure.subplots(1, 2)
        for name in ("ours", *case.peers):
            times.loglog([row.n for row in rows], [row.sides[name].median for row in rows], "o-", label=name)
            known = [(row.n, memory[name, row.n]) for row in rows if memory.get((name, row.n))]
            if known:
                peaks.loglog(*zip(*known, strict=True), "o-", label=name)
        for axes in (times, peaks):
            axes.set_xticks([row.n for row in rows], [f"{row.n:,}" for row in rows])
            axes.minorticks_off()
        times.set(xlabel="n", ylabel="seconds a call")
        peaks.set(xlabel="n", ylabel="peak memory, MiB")
        times.legend(fontsize="small")
        figure.savefig(path, metadata={"Date": None})
