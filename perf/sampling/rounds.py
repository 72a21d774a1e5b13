"""Measures cases: all contestants in turn, again and again, A B C, A B C."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from perf.contestants.contestant import Contestant
from perf.figures.results import Round, Run
from perf.figures.sample import Sample
from perf.plan.budget import Budget
from perf.plan.cases import Case
from perf.sampling.memory import make_ready


def measure(
    run: Run,
    case: Case,
    contestants: Sequence[Contestant],
    *,
    round_count: int,
    directory: Path | None,
) -> None:
    """Measures a case.

    Args:
        run: Where it is noted.
        case: What is measured.
        contestants: Who may take part.
        round_count: How often.
        directory: Where stores are made; None for the system's place.

    Raises:
        SanityError: Somebody did not do what was measured.
    """
    budget = Budget(run.size)
    taking_part = [contestant for contestant in contestants if contestant.knows(case)]
    begun = time.monotonic()
    for number in range(round_count if taking_part else 0):
        load = os.getloadavg()[0]
        samples: dict[str, Sample] = {}
        for contestant in taking_part:
            make_ready(case, budget)
            with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=directory) as made:
                samples[contestant.key] = contestant.sample(case, budget, Path(made))
        run.rounds.append(Round((load, os.getloadavg()[0]), samples))
        _tell(case, samples, f"{number + 1}/{round_count}")
    run.took_s = time.monotonic() - begun


def _tell(case: Case, samples: dict[str, Sample], which: str) -> None:
    column = case.columns[0]
    shown = ", ".join(f"{key} {sample.figure(column) or 0:,.4g}" for key, sample in samples.items())
    print(f"{case.name} {which}: {column} {shown}", file=sys.stderr, flush=True)
