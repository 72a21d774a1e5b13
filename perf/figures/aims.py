"""What is wanted of us, case by case, and whether it was reached."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from perf.figures.spread import Samples, Spread, figures, ratios
from perf.plan.columns import COLUMNS


class Measure(enum.Enum):
    """What is compared with the aim."""

    TIMES = "×"
    """How many times as good as somebody else: at least."""
    SAME = "equal"
    """The same figure as somebody else."""
    SHARE = "share"
    """A share of somebody else's figure: at least."""
    AT_LEAST = "≥"
    """The figure itself."""
    AT_MOST = "≤"
    """The figure itself."""


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim.

    Attributes:
        who: Key of ours.
        value: What is wanted, in the column's unit where it is a figure.
        other: Key of the contestant that it is compared with.
    """

    case: str
    column: str
    who: str
    measure: Measure
    value: float
    other: str = "rocketmq"

    def found(self, rounds: Sequence[Samples]) -> Spread | None:
        """Returns what is compared with the aim; None if somebody took no part."""
        if self.measure in {Measure.AT_LEAST, Measure.AT_MOST}:
            return figures(rounds, self.who, self.column, COLUMNS[self.column].scale)
        return ratios(rounds, self.who, self.other, self.column)

    def is_met(self, found: Spread) -> bool:
        """Returns whether the median does; of what is to be the same, every round."""
        match self.measure:
            case Measure.SAME:
                return found.low == found.high == 1
            case Measure.AT_MOST:
                return found.middle <= self.value
            case _:
                return found.middle >= self.value

    def text(self, titles: dict[str, str]) -> str:
        """Returns what is wanted, in words."""
        column, other = COLUMNS[self.column], titles.get(self.other, self.other)
        match self.measure:
            case Measure.SAME:
                return f"as much as {other}"
            case Measure.SHARE:
                return f"≥ {self.value:.0%} of the {other}"
            case Measure.TIMES:
                return f"≥ {self.value:g} × {other}"
            case _:
                return f"{self.measure.value} {self.value:g} {column.unit}"


def _both(case: str, column: str, native: float, python: float) -> list[Aim]:
    return [
        Aim(case, column, "native", Measure.TIMES, native),
        Aim(case, column, "python", Measure.TIMES, python),
    ]


def _each(case: str, column: str, measure: Measure, value: float) -> list[Aim]:
    return [Aim(case, column, who, measure, value) for who in ("native", "python")]


AIMS: Final = (
    *_both("put-128", "per_s", 6, 1.5),
    Aim("put-128", "per_s", "native", Measure.TIMES, 1, "chronicle"),
    *_both("put-128-usual", "per_s", 4, 0.8),
    *_both("put-1024", "per_s", 5, 1.5),
    Aim("put-1024", "per_s", "native", Measure.TIMES, 1, "chronicle"),
    *_both("put-1024-usual", "per_s", 4, 0.8),
    *_each("together", "over_one", Measure.AT_LEAST, 1),
    *_both("batch-128-256", "per_s", 4, 0.8),
    Aim("batch-128-256", "bytes_per_s", "native", Measure.SHARE, 0.8, "limit"),
    *_both("batch-1024-256", "per_s", 3, 0.8),
    Aim("batch-1024-256", "bytes_per_s", "native", Measure.SHARE, 0.8, "limit"),
    Aim("batch-ragged-256", "per_s", "python", Measure.TIMES, 0.5),
    *_both("sync-1", "per_s", 1.2, 1.2),
    *_both("sync-16", "per_s", 1.1, 1.1),
    *_both("flight-512", "per_s", 2, 2),
    *_both("view-1", "per_s", 4, 2),
    *_both("view-4", "per_s", 4, 2),
    *(Aim(f"loop-{size}", "per_s", "native", Measure.TIMES, 1) for size in (128, 1024)),
    Aim("random-loop", "per_s", "native", Measure.TIMES, 1),
    *_both("random-view", "per_s", 3, 0.5),
    *_both("random-copy", "per_s", 3, 0.5),
    *_both("reopen", "open_s", 8, 1.5),
    *(
        aim
        for case in ("size-bare", "size-usual")
        for column in ("log_bytes", "queue_bytes", "index_bytes")
        for aim in _each(case, column, Measure.SAME, 1)
    ),
    *_each("memory", "anonymous_mb", Measure.AT_MOST, 150),
    Aim("start", "import_ms", "native", Measure.AT_MOST, 60),
    Aim("start", "help_ms", "native", Measure.AT_MOST, 200),
)
"""Puts of a p99 and a maximum are shown beside RocketMQ's, and pulls copied beside views, without an aim."""
