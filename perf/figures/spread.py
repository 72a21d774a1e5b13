"""Medians and how far the figures went, of one contestant or of one beside another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perf.figures.sample import Sample
from perf.plan.columns import COLUMNS

Samples = Mapping[str, Sample]
"""One sample of each contestant that took part in a round, by its key; taken one after the other."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and from where to where the figures went."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Returns the spread of values, None if there are none."""
        return cls(median(values), min(values), max(values)) if values else None

    def text(self) -> str:
        """``120 (110–130)``, with as many digits as say something."""
        middle, low, high = (figure_text(value) for value in (self.middle, self.low, self.high))
        return middle if low == high else f"{middle} ({low}–{high})"


def spread_text(values: Sequence[float | None]) -> str:
    """Returns a cell of a table: the spread of the values that were taken, a dash if there are none."""
    spread = Spread.of([value for value in values if value is not None])
    return "–" if spread is None else spread.text()


def figures(rounds: Sequence[Samples], key: str, column: str, scale: float = 1) -> Spread | None:
    """Returns a contestant's figure of all rounds; None if it took no part."""
    taken = [each[key].figure(column) for each in rounds if key in each]
    return Spread.of([value / scale for value in taken if value is not None])


def ratios(rounds: Sequence[Samples], key: str, other: str, column: str) -> Spread | None:
    """Returns how many times as good ``key`` was as ``other``, round by round.

    For figures that are better when they are small, such as seconds, it is how many times as small.
    """
    found: list[float] = []
    for each in rounds:
        if key in each and other in each:
            ours, theirs = each[key].figure(column), each[other].figure(column)
            if ours is not None and theirs is not None:
                found.append(_ratio(ours, theirs, is_less_better=COLUMNS[column].is_less_better))
    return Spread.of(found)


def _ratio(ours: float, theirs: float, *, is_less_better: bool) -> float:
    if ours == theirs:
        return 1.0
    above, below = (theirs, ours) if is_less_better else (ours, theirs)
    return above / below if below else float("inf")


def figure_text(value: float) -> str:
    """Returns three digits or so."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}" if 0 < value < 0.1 else f"{value:.2f}"
