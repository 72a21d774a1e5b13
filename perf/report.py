"""Samples to figures: medians, spreads, ratios within a round; as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Final

from perf.cases import Case, Sample
from perf.machine import Machine
from seglog.storage.kernels import KERNELS

_NOTES: Final = f"""\
Medians of all rounds (lowest–highest); × is how many times as fast seglog was in the same round. One thread
unless said, one queue, files of RocketMQ's default lengths. A write counts when it can be consumed. Records
carry neither properties nor `__CRC32#` unless said; then both engines write both, and index the key. seglog
runs its {KERNELS} kernels. SQLite commits each call; the plain file is one `write` a call, and has no queue.
"""

Round = dict[str, Sample]
"""One sample of each contestant that takes part, by its name; taken one after the other."""


@dataclass(slots=True)
class Results:
    """Everything that a run found.

    Attributes:
        contestants: Their names, ours first.
        left_out: Why who is missing.
        java: Version of the Java that took part, empty if none did.
        rounds: The rounds of each case.
    """

    command: str
    date: str
    contestants: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    java: str = ""
    machine: Machine | None = None
    rounds: list[tuple[Case, list[Round]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and from where to where the figures went."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Returns the spread of one or more values."""
        return cls(median(values), min(values), max(values))

    def text(self) -> str:
        """``120 (110–130)``, with as many digits as say something."""
        if self.low == self.high:
            return _figure(self.middle)
        return f"{_figure(self.middle)} ({_figure(self.low)}–{_figure(self.high)})"


def rates(rounds: Sequence[Round], name: str, unit: float) -> Spread | None:
    """Returns a contestant's operations a second, in ``unit``; None if it took no part."""
    found = [each[name].per_s / unit for each in rounds if name in each]
    return Spread.of(found) if found else None


def ratios(rounds: Sequence[Round], name: str, other: str) -> Spread | None:
    """Returns how many times as fast ``name`` was as ``other``, round by round."""
    found = [each[name].per_s / each[other].per_s for each in rounds if name in each and other in each]
    return Spread.of(found) if found else None


def cpu_us(rounds: Sequence[Round], name: str, unit: float) -> Spread | None:
    """Returns a contestant's CPU time in µs for ``unit`` operations; None if it took no part."""
    found = [1e6 * unit * each[name].cpu_s / each[name].operations for each in rounds if name in each]
    return Spread.of(found) if found else None


def to_markdown(results: Results) -> str:
    """Returns two tables: rates with ratios, and CPU time."""
    us, *others = results.contestants
    lines = [
        f"`{results.command}`, {results.date}; {results.machine}",
        "",
        *[f"Left out: {name}, because {why}.\n" for name, why in results.left_out.items()],
        _NOTES,
        _row(["case", "per second", us, *[cell for name in others for cell in (name, "×")]]),
        _row(["---"] * (3 + 2 * len(others))),
    ]
    for case, rounds in results.rounds:
        unit = 1e6 if case.is_bytes else 1e3
        cells = [case.title, "MB" if case.is_bytes else "k messages", _text(rates(rounds, us, unit))]
        for name in others:
            cells += [_text(rates(rounds, name, unit)), _text(ratios(rounds, us, name))]
        lines.append(_row(cells))
    lines += [
        "",
        "CPU time of the whole process for one message, in µs (survey: for one KiB).",
        "",
        _row(["case", *results.contestants]),
        _row(["---"] * (1 + len(results.contestants))),
    ]
    for case, rounds in results.rounds:
        unit = 1024 if case.is_bytes else 1
        cells = [_text(cpu_us(rounds, name, unit)) for name in results.contestants]
        lines.append(_row([case.title, *cells]))
    return "\n".join(lines) + "\n"


def to_json(results: Results) -> str:
    """Returns everything, every sample included."""
    shown = {
        "command": results.command,
        "date": results.date,
        "machine": None if results.machine is None else asdict(results.machine),
        "left_out": results.left_out,
        "cases": [
            {
                "name": case.name,
                "title": case.title,
                "counts": "bytes" if case.is_bytes else "messages",
                "rounds": [{name: asdict(sample) for name, sample in each.items()} for each in rounds],
            }
            for case, rounds in results.rounds
        ],
    }
    return json.dumps(shown, indent=1) + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(spread: Spread | None) -> str:
    return "–" if spread is None else spread.text()


def _figure(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}" if value < 0.1 else f"{value:.2f}"
