"""What one command measures: which cases, with whom, and how long it takes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from perf.contestants.contestant import Contestant
from perf.contestants.line_up import LineUp, line_up
from perf.figures import machine
from perf.figures.aims import SHOWN, cast
from perf.figures.results import Results, Run, save
from perf.figures.sample import SanityError
from perf.plan.budget import FIGURES_SIZE, Budget
from perf.plan.cases import CASES, SMOKE, Case
from perf.plan.pace import Cost, cost, fitting
from perf.sampling.rounds import measure

_FOR_EVER_S: Final = 1e9


class NoCaseError(Exception):
    """No case is called as was asked for; the message names those there are."""


class Program:
    """What one command measures.

    Args:
        options: As ``python -m perf`` takes them.
        command: As it was called.
        checkout: Whose commit is noted with each case.

    Raises:
        NoCaseError: No case has this name.
    """

    def __init__(self, options: argparse.Namespace, command: str, checkout: Path) -> None:
        self._options = options
        self._command = command
        self._checkout = checkout
        self._cast: Mapping[str, frozenset[str]] | None = cast(SHOWN) if options.shown else None
        standing = CASES if options.cases or options.size >= FIGURES_SIZE else SMOKE
        if self._cast is not None:
            standing = tuple(case for case in CASES if case.name in self._cast)
        self._cases = [case for case in standing if _is_chosen(case, options.cases)]
        if not self._cases:
            raise NoCaseError(f"no case is called so; there are {', '.join(case.name for case in CASES)}")

    def run(self, results: Results) -> list[str]:
        """Measures case by case, going on after one that could not be.

        Returns:
            Why each of those could not.
        """
        options = self._options
        left = [case for case in self._cases if not self._has_enough(results, case)]
        taking_part = line_up(self._wanted(), options.against, is_smoke=options.size < FIGURES_SIZE)
        results.name({each.key: each.title for each in taking_part.contestants})
        results.left_out = taking_part.left_out
        failures: list[str] = []
        end = time.monotonic() + (_FOR_EVER_S if options.minutes is None else 60 * options.minutes)
        self._announce(left, taking_part, end)
        run = Run(
            self._command,
            datetime.now(UTC).date().isoformat(),
            options.size,
            machine.describe(taking_part.java),
            machine.commit_of(self._checkout),
        )
        try:
            for at, case in enumerate(left):
                sample_s = self._sample_s(left[at:], taking_part, end)
                this = replace(run, sample_s=sample_s, rounds=[])
                try:
                    measure(
                        this,
                        case,
                        self._of(case, taking_part),
                        round_count=options.rounds,
                        directory=options.dir,
                    )
                except SanityError as error:
                    failures.append(f"no figures of {case.name}: {error}")
                    print(failures[-1], file=sys.stderr, flush=True)
                    continue
                results.put(case.name, this)
                if options.json is not None:
                    save(results, options.json)
        finally:
            taking_part.close()
        return failures

    def _wanted(self) -> list[str]:
        """Returns the keys of those who take part in some case; none for all."""
        if self._cast is None:
            return list(self._options.only)
        named = frozenset[str]().union(*(self._cast[case.name] for case in self._cases))
        return sorted(named.intersection(self._options.only or named))

    def _has_enough(self, results: Results, case: Case) -> bool:
        known = results.runs.get(case.name)
        return self._options.missing and known is not None and len(known.rounds) >= self._options.rounds

    def _of(self, case: Case, taking_part: LineUp) -> list[Contestant]:
        """Returns who takes part in a case: where aims are to be shown, those whom they name."""
        return [
            each
            for each in taking_part.contestants
            if each.knows(case) and (self._cast is None or each.key in self._cast[case.name] | {"other"})
        ]

    def _costs(self, cases: Sequence[Case], taking_part: LineUp) -> list[Cost]:
        budget = Budget(self._options.size, self._options.sample_s)
        keys = ([each.key for each in self._of(case, taking_part)] for case in cases)
        return [cost(case, who, self._options.rounds, budget) for case, who in zip(cases, keys, strict=True)]

    def _sample_s(self, cases: Sequence[Case], taking_part: LineUp, end: float) -> float:
        """Returns how long samples may be, for the rest to be done in time."""
        costs = self._costs(cases, taking_part)
        return round(fitting(costs, end - time.monotonic(), self._options.sample_s), 1)

    def _announce(self, cases: Sequence[Case], taking_part: LineUp, end: float) -> None:
        if self._options.size < FIGURES_SIZE:
            return
        sample_s = self._sample_s(cases, taking_part, end)
        minutes = sum(self._costs(cases, taking_part), Cost()).seconds(sample_s) / 60
        print(
            f"{len(cases)} cases, {self._options.rounds} rounds, samples of {sample_s:g} s: "
            f"this takes about {minutes:.0f} minutes",
            file=sys.stderr,
            flush=True,
        )


def _is_chosen(case: Case, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(case.name, pattern) for pattern in patterns)
