"""How long single puts take, across the ends of log files."""

from __future__ import annotations

import time
from array import array
from typing import Final

from perf.figures.sample import Sample, check
from perf.logs.seglog_log import TOPIC, SeglogLog
from perf.plan.bodies import body_of
from perf.plan.budget import Budget
from perf.plan.cases import Case
from perf.sampling.stopwatch import Stopwatch

SHARES: Final = {"p50_us": 0.5, "p99_us": 0.99, "p999_us": 0.999, "max_us": 1.0}


def time_puts(log: SeglogLog, case: Case, budget: Budget) -> Sample:
    """Times each put; reading the clock twice is part of each figure, 0.1 µs or so."""
    count = budget.latency_bytes // case.body_bytes
    put, body, clock = log.store.put, body_of(case), time.perf_counter_ns
    warm_up = count // 16
    for _ in range(warm_up):
        put(TOPIC, body)
    taken = array("q", bytes(8 * count))
    watch = Stopwatch()
    for number in range(count):
        begun = clock()
        put(TOPIC, body)
        taken[number] = clock() - begun
    sample = watch.sample(count)
    check(warm_up + count, log.count(0), "messages after writing")
    in_order = sorted(taken)
    figures = {key: in_order[min(count - 1, int(count * share))] / 1e3 for key, share in SHARES.items()}
    return Sample(sample.operations, sample.wall_s, sample.cpu_s, figures)
