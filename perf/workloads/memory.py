"""Writes a lot and reads all of it; who started this process watches its anonymous memory."""

from __future__ import annotations

from perf.figures.sample import Sample, check
from perf.logs.seglog_log import SeglogLog
from perf.plan.budget import Budget
from perf.plan.cases import PULL_COUNT, Case
from perf.sampling.stopwatch import Stopwatch
from perf.workloads.writes import fill

_PULLS_AT_ONCE = 256


def write_and_read(log: SeglogLog, case: Case, budget: Budget) -> Sample:
    """Puts in batches, then pulls from start to end."""
    watch = Stopwatch()
    count = fill(log, case, budget.memory_bytes // case.body_bytes)
    step = PULL_COUNT * _PULLS_AT_ONCE
    found = 0
    for start in range(0, count, step):
        places = [(0, first) for first in range(start, min(start + step, count), PULL_COUNT)]
        found += log.copy_some(places, PULL_COUNT)
    sample = watch.sample(count + found)
    check(count, found, "messages read")
    return sample
