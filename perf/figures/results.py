"""Everything that runs found, as a file that later runs add to, case by case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from perf.figures.machine import Machine
from perf.figures.sample import Sample
from perf.plan.cases import CASE, CASES

KEYS: Final = (
    *("native", "python", "other"),
    *("rocketmq", "kafka", "chronicle"),
    *("commitlog", "walrus", "fjall"),
    *("lmdb", "sqlite", "honker"),
    "limit",
)
"""All contestants, in the order of the tables."""


@dataclass(frozen=True, slots=True)
class Round:
    """One sample of each, one after the other.

    Attributes:
        load: Of the last minute, before the round and after it.
        samples: By the contestants' keys.
    """

    load: tuple[float, float]
    samples: Mapping[str, Sample]


@dataclass(slots=True)
class Run:
    """The results of one command for a case.

    Attributes:
        size: Work a sample.
        commit: Of the checkout, empty where that is not known; with a ``+`` where the code had been changed.
        sample_s: Seconds of a sample, 0 of what an earlier harness measured.
        took_s: How long it took, with everything around the samples.
    """

    command: str
    date: str
    size: float
    machine: Machine
    commit: str = ""
    sample_s: float = 0.0
    took_s: float = 0.0
    rounds: list[Round] = field(default_factory=list)

    @property
    def whence(self) -> str:
        """Of which code it is, and of which day."""
        return ", ".join(part for part in (self.commit, self.date) if part)

    @property
    def samples(self) -> list[Mapping[str, Sample]]:
        """Those of each round."""
        return [each.samples for each in self.rounds]


@dataclass(slots=True)
class Results:
    """The file.

    Attributes:
        titles: What contestants are called, by their keys, ours first.
        left_out: Why a contestant is missing.
        runs: By the names of cases, those of the table only, in its order.
    """

    titles: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)

    def name(self, titles: dict[str, str]) -> None:
        """Adds the names of contestants."""
        known = self.titles | titles
        self.titles = {key: known[key] for key in KEYS if key in known}

    def put(self, name: str, run: Run) -> None:
        """Takes the run of a case in place of an earlier one."""
        self.runs[name] = run
        self.runs = {case.name: self.runs[case.name] for case in CASES if case.name in self.runs}


def save(results: Results, path: Path) -> None:
    """Writes the file, in one piece or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(results), indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def load(path: Path) -> Results:
    """Returns the content of the file, empty if it does not exist."""
    if not path.exists():
        return Results()
    found = json.loads(path.read_text(encoding="utf-8"))
    runs = {name: _run(run) for name, run in found["runs"].items() if name in CASE}
    return Results(found["titles"], found["left_out"], runs)


def _run(found: dict[str, Any]) -> Run:
    machine = Machine(**found.pop("machine"))
    rounds = [
        Round(
            (each["load"][0], each["load"][1]),
            {key: Sample(**sample) for key, sample in each["samples"].items()},
        )
        for each in found.pop("rounds")
    ]
    return Run(machine=machine, rounds=rounds, **found)
