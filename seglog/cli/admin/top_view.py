"""The view of one broker in ``seglog top``: its facts, and lines that fit into a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from seglog.text import printable, size_text

WIDTH: Final = 80
MOST_ROWS: Final = 12
"""Most rows of a table; rows without activity are dropped first."""
OTHER_LINES: Final = 8
"""Number of lines of a view in addition to the rows of its tables, with the empty line after it."""
_LEAST_NAME: Final = 8
_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_OURS: Final = ("lag", "locks", "parkedPulls", "slowRequests", "connections")
_SHOWN: Final = ("committed lag", "locks", "parked pulls", "slow requests", "connections")


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic, and its rate of puts."""

    topic: str
    put_per_s: float
    put_in_day: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in a topic, with its rate of pulls and its lag."""

    group: str
    topic: str
    lag: int
    in_flight: int
    pulled_per_s: float


@dataclass(frozen=True, slots=True)
class View:
    """The state of a broker at one time.

    Attributes:
        broker: Its name.
        address: Its address.
        facts: Its statistics, as ``brokerStatus`` shows them.
        topics: Its topics.
        groups: Its groups, by topic.
    """

    broker: str
    address: str
    facts: Mapping[str, str]
    topics: Sequence[TopicRow]
    groups: Sequence[GroupRow]

    def as_json(self) -> dict[str, object]:
        """Returns the fields for programs."""
        return {
            "kind": "top",
            "broker": self.broker,
            "address": self.address,
            "facts": dict(self.facts),
            "topics": [
                {"topic": row.topic, "putPerS": round(row.put_per_s, 2), "putInDay": row.put_in_day}
                for row in self.topics
            ],
            "groups": [
                {
                    "group": row.group,
                    "topic": row.topic,
                    "lag": row.lag,
                    "inFlight": row.in_flight,
                    "pulledPerS": round(row.pulled_per_s, 2),
                }
                for row in self.groups
            ],
        }

    def lines(self, width: int = WIDTH, most_rows: int = MOST_ROWS) -> list[str]:
        """Returns lines for a terminal.

        Args:
            width: Most characters of a line.
            most_rows: Most rows of each table.
        """
        facts = self.facts
        first = f"{self.broker} at {self.address}, {facts.get('brokerVersionDesc', 'of no version')}"
        log_bytes = _number(facts, "commitLogMaxOffset") - _number(facts, "commitLogMinOffset")
        disk = 100 * _real(facts.get("commitLogDiskRatio", ""))
        ours = [
            f"{shown} {facts[f'seglog.{name}']}"
            for name, shown in zip(_OURS, _SHOWN, strict=True)
            if f"seglog.{name}" in facts
        ]
        second = (
            f"put {_rate(facts, 'putTps')}/s, pulled {_rate(facts, 'getTransferredTps')}/s;"
            f" today {_today(facts, 'Put'):,} put, {_today(facts, 'Get'):,} pulled"
        )
        lines = [
            f"{first}, log {size_text(log_bytes)}, disk {disk:.0f} %",
            second,
            *(["  ".join(ours)] if ours else []),
            "",
            *self._topic_lines(width, most_rows),
            "",
            *self._group_lines(width, most_rows),
        ]
        return [_fitted(line, width) for line in lines]

    def _topic_lines(self, width: int, most_rows: int) -> list[str]:
        name = max(width - 30, _LEAST_NAME)
        return [
            f"{'TOPIC':<{name}}{'PUT/S':>13}{'IN 24 HOURS':>17}",
            *(
                f"{_cut(row.topic, name)}{row.put_per_s:>13,.1f}{row.put_in_day:>17,}"
                for row in sorted(self.topics, key=_busy_topic)[:most_rows]
            ),
        ]

    def _group_lines(self, width: int, most_rows: int) -> list[str]:
        name = max((width - 32) // 2, _LEAST_NAME)
        return [
            f"{'GROUP':<{name}}{'TOPIC':<{name}}{'LAG':>12}{'IN FLIGHT':>10}{'PULLED/S':>10}",
            *(
                f"{_cut(row.group, name)}{_cut(row.topic, name)}{row.lag:>12,}{row.in_flight:>10,}"
                f"{row.pulled_per_s:>10,.1f}"
                for row in sorted(self.groups, key=_busy_group)[:most_rows]
            ),
        ]


def _busy_topic(row: TopicRow) -> tuple[float, int, str]:
    return -row.put_per_s, -row.put_in_day, row.topic


def _busy_group(row: GroupRow) -> tuple[int, float, str, str]:
    return -row.lag, -row.pulled_per_s, row.group, row.topic


def _number(facts: Mapping[str, str], name: str) -> int:
    """Returns a whole number; 0 if the broker sent none, or a text that is no number."""
    text = facts.get(name, "")
    return int(text) if _WHOLE.fullmatch(text) else 0


def _real(text: str) -> float:
    """Returns a number; 0 for a text that is no number, or a number that cannot be displayed."""
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if math.isfinite(found) and abs(found) < 1e15 else 0.0


def _today(facts: Mapping[str, str], what: str) -> int:
    return _number(facts, f"msg{what}TotalTodayNow") - _number(facts, f"msg{what}TotalTodayMorning")


def _rate(facts: Mapping[str, str], name: str) -> str:
    """Returns the first of several rates: the rate of the last seconds."""
    first = next(iter(facts.get(name, "").split()), "")
    return f"{_real(first):,.1f}"


def _cut(text: str, width: int) -> str:
    shown = printable(text)
    return f"{shown:<{width}}" if len(shown) < width else f"{shown[: width - 2]}\N{HORIZONTAL ELLIPSIS} "


def _fitted(line: str, width: int) -> str:
    shown = printable(line).rstrip()
    return shown if len(shown) <= width else f"{shown[: width - 1]}\N{HORIZONTAL ELLIPSIS}"
