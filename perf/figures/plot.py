"""The rates of all cases as one picture: a point for each contestant, and a line as far as it went."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from perf.figures.results import Results
from perf.figures.spread import figures
from perf.plan.cases import CASE

_COLOURS: Final = {
    "native": "#b2182b",
    "python": "#ef8a62",
    "other": "#fddbc7",
    "rocketmq": "#2166ac",
    "chronicle": "#4d9221",
    "lmdb": "#762a83",
    "sqlite": "#808080",
}
_INCHES_A_CASE: Final = 0.28


def draw(results: Results, path: Path) -> None:
    """Writes an SVG; the same results always give the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = [(name, run) for name, run in results.runs.items() if CASE[name].columns[0] == "per_s"]
    with mpl.rc_context({"svg.hashsalt": "seglog", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(10, 1.2 + _INCHES_A_CASE * max(1, len(shown))), layout="constrained")
        axes = figure.add_subplot()
        for key, title in results.titles.items():
            if key not in _COLOURS:
                continue
            points = [
                (row, spread)
                for row, (_name, run) in enumerate(shown)
                if (spread := figures(run.samples, key, "per_s", 1e3)) is not None
            ]
            rows = [row for row, _spread in points]
            axes.hlines(rows, [s.low for _, s in points], [s.high for _, s in points], _COLOURS[key], lw=1)
            axes.plot([s.middle for _, s in points], rows, "o", color=_COLOURS[key], ms=4, label=title)
        axes.set_xscale("log")
        axes.set_xlabel("thousand messages a second (median, and from lowest to highest)")
        axes.set_yticks(range(len(shown)), [CASE[name].title for name, _run in shown])
        axes.invert_yaxis()
        axes.grid(axis="x", which="both", lw=0.3)
        figure.legend(loc="outside upper center", ncols=4, frameon=False)
        figure.savefig(path, metadata={"Date": None})
