"""Measures cases: all contestants in turn, again and again, A B C, B C A."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perf.contestants.contestant import Contestant
from perf.figures.results import Round, Run
from perf.figures.sample import Sample, SanityError
from perf.plan.budget import Budget
from perf.plan.cases import Case, Workload
from perf.sampling.flusher import INTERVAL_S, Flusher
from perf.sampling.memory import make_ready

_FLUSHED: Final = frozenset({Workload.PUT, Workload.BATCH, Workload.TOGETHER, Workload.LATENCY})
"""Writers that return before the disk has their messages."""


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
        SanityError: A contestant did not do what was measured.
    """
    budget = Budget(run.size, run.sample_s)
    taking_part = [contestant for contestant in contestants if contestant.knows(case)]
    begun = time.monotonic()
    for number in range(round_count if taking_part else 0):
        load = os.getloadavg()[0]
        samples: dict[str, Sample] = {}
        first = number % len(taking_part)
        for contestant in [*taking_part[first:], *taking_part[:first]]:
            with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=directory) as made:
                contestant.get_ready(case, budget, Path(made))
                make_ready(case, budget)
                samples[contestant.key] = _sample(contestant, case, budget, Path(made))
        samples = {each.key: samples[each.key] for each in taking_part}
        run.rounds.append(Round((load, os.getloadavg()[0]), samples))
        _tell(case, samples, f"{number + 1}/{round_count}")
    run.took_s = time.monotonic() - begun


def _sample(contestant: Contestant, case: Case, budget: Budget, directory: Path) -> Sample:
    """Takes a sample; who does not flush by itself is flushed as often as those who do."""
    is_flushed = case.workload in _FLUSHED and not contestant.flushes_itself
    with Flusher(directory) if is_flushed else contextlib.nullcontext() as flusher:
        sample = contestant.sample(case, budget, directory)
    # One that has written all it may before the second turn is due may have met none.
    is_long = not budget.is_smoke and sample.wall_s > 2 * INTERVAL_S
    if flusher is not None and is_long and not flusher.synced_bytes:
        raise SanityError(f"{contestant.title} left nothing in its directory that could be flushed")
    return sample


def _tell(case: Case, samples: dict[str, Sample], which: str) -> None:
    column = case.columns[0]
    shown = ", ".join(f"{key} {sample.figure(column) or 0:,.4g}" for key, sample in samples.items())
    print(f"{case.name} {which}: {column} {shown}", file=sys.stderr, flush=True)
