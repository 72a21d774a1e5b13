"""The rates of all cases as one picture: a line for each contestant of a case, as far as its rounds went."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from perf.figures.results import KEYS, Results, Run
from perf.figures.spread import figures
from perf.plan.cases import CASE

_LOOKS: Final = {
    "native": ("#b2182b", "o"),
    "python": ("#ef8a62", "o"),
    "other": ("#dd3497", "o"),
    "rocketmq": ("#2166ac", "s"),
    "kafka": ("#4393c3", "s"),
    "chronicle": ("#01665e", "s"),
    "commitlog": ("#8c510a", "D"),
    "walrus": ("#bf812d", "D"),
    "fjall": ("#737300", "D"),
    "lmdb": ("#762a83", "^"),
    "sqlite": ("#555555", "^"),
    "honker": ("#9970ab", "^"),
}
"""Colour and mark: ours are round, those in Java square, in Rust turned, from Python triangles."""
_INCHES_A_LINE: Final = 0.09
_LINES_BETWEEN: Final = 1.5


def draw(results: Results, path: Path) -> None:
    """Writes an SVG; the same results always give the same bytes. A case is as high as it has contestants."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = [
        (name, run, _keys(run)) for name, run in results.runs.items() if CASE[name].columns[0] == "per_s"
    ]
    tops = [0.0]
    for _name, _run, keys in shown:
        tops.append(tops[-1] + max(2, len(keys)) + _LINES_BETWEEN)
    with mpl.rc_context({"svg.hashsalt": "seglog", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(10, 1.4 + _INCHES_A_LINE * tops[-1]), layout="constrained")
        axes = figure.add_subplot()
        for key, (colour, mark) in _LOOKS.items():
            points = [
                (
                    tops[at] + _LINES_BETWEEN / 2 + keys.index(key) + 0.5,
                    figures(run.samples, key, "per_s", 1e3),
                )
                for at, (_name, run, keys) in enumerate(shown)
                if key in keys
            ]
            found = [(row, spread) for row, spread in points if spread is not None]
            if found:
                rows = [row for row, _ in found]
                axes.hlines(rows, [s.low for _, s in found], [s.high for _, s in found], colour, lw=1.2)
                middles = [s.middle for _, s in found]
                axes.plot(middles, rows, mark, color=colour, ms=3.5, label=results.titles.get(key, key))
        for at in range(0, len(shown), 2):
            axes.axhspan(tops[at], tops[at + 1], color="#f2f2f2", zorder=0)
        axes.set_xscale("log")
        axes.set_xlabel("thousand messages a second (median, and from lowest to highest)")
        middles = [(top + bottom) / 2 for top, bottom in pairwise(tops)]
        axes.set_yticks(middles, [CASE[name].title for name, _run, _keys in shown])
        axes.set_ylim(tops[-1], 0)
        axes.grid(axis="x", which="major", lw=0.3)
        figure.legend(loc="outside upper center", ncols=6, frameon=False)
        figure.savefig(path, metadata={"Date": None})


def _keys(run: Run) -> Sequence[str]:
    """Returns the contestants of a case, without the machine's limit."""
    seen = {key for each in run.samples for key in each}
    return [key for key in KEYS if key in seen and key in _LOOKS]
