"""The aims of each case, and whether they were reached."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from perf.figures.spread import Samples, Spread, figures, ratios
from perf.plan.columns import COLUMNS


class Measure(enum.Enum):
    """The figure that is compared with the aim."""

    TIMES = "×"
    """At least this many times as good as another contestant."""
    SAME = "equal"
    """The figure of another contestant."""
    AT_LEAST = "≥"
    """The figure itself."""
    AT_MOST = "≤"
    """The figure itself."""


_ALONE: Final = frozenset({Measure.AT_LEAST, Measure.AT_MOST})


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

    @property
    def contestants(self) -> tuple[str, ...]:
        """Keys of the contestants whose figures decide it."""
        return (self.who,) if self.measure in _ALONE else (self.who, self.other)

    def found(self, rounds: Sequence[Samples]) -> Spread | None:
        """Returns the figure that is compared with the aim; None if a contestant took no part."""
        if self.measure in _ALONE:
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
        """Returns the aim in words."""
        column, other = COLUMNS[self.column], titles.get(self.other, self.other)
        match self.measure:
            case Measure.SAME:
                return f"as much as {other}"
            case Measure.TIMES:
                return f"≥ {self.value:g} × {other}"
            case _:
                return f"{self.measure.value} {self.value:,g} {column.unit}"


def _times(case: str, value: float, *others: str, column: str = "per_s", who: str = "native") -> list[Aim]:
    return [Aim(case, column, who, Measure.TIMES, value, other) for other in others or ("rocketmq",)]


def _each(case: str, column: str, measure: Measure, value: float) -> list[Aim]:
    return [Aim(case, column, who, measure, value) for who in ("native", "python")]


def _at_least(case: str, millions_a_second: float) -> Aim:
    return Aim(case, "per_s", "native", Measure.AT_LEAST, 1000 * millions_a_second)


SHOWN: Final = (
    _at_least("put-128", 4),
    *_times("put-128", 4),
    *_times("put-128", 0.5, who="python"),
    *_times("put-128-usual", 2.5),
    *_times("put-128-usual", 0.25, who="python"),
    *_times("put-1024", 2),
    *_times("put-1024", 0.5, who="python"),
    *_times("put-1024-usual", 2),
    *_times("put-1024-usual", 0.25, who="python"),
    *_times("batch-128-256", 2.5),
    *_times("batch-128-256", 1, "lmdb", "kafka"),
    *_times("batch-128-4096", 0.5, "commitlog"),
    *_times("batch-1024-256", 2.5),
    *_times("batch-1024-256", 1, "lmdb", "kafka"),
    *_times("sync-16", 1.15),
    *_times("sync-64", 1.3),
    *_times("flight-512", 2),
    *_times("view-4", 1.6),
    _at_least("loop-128", 4),
    *_times("loop-128", 1),
    _at_least("loop-1024", 4),
    *_times("loop-1024", 1),
    *_times("random-view", 2),
    *_times("random-copy", 1.3),
    _at_least("random-loop", 1.2),
    *_times("reopen", 3, column="open_s"),
)
"""The cases that must be shown: the rows of ``--shown``, with the contestants that they name."""

AIMS: Final = (
    *SHOWN,
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
"""Cases without an aim are shown beside the others."""


def cast(aims: Sequence[Aim]) -> dict[str, frozenset[str]]:
    """Returns the cases of aims, each with the keys of those whom its aims name."""
    found: dict[str, frozenset[str]] = {}
    for aim in aims:
        found[aim.case] = found.get(aim.case, frozenset()).union(aim.contestants)
    return found
