"""Writes from one thread or many; also what fills a log for something else."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from perf.figures.sample import Sample, check
from perf.logs.log import Log
from perf.plan.budget import Budget
from perf.plan.cases import FILL_BATCH, Case, Workload
from perf.sampling.stopwatch import Stopwatch

_PUTS_BETWEEN_LOOKS = 64
"""How many puts go by before the time is looked at."""


def write(log: Log, case: Case, budget: Budget) -> Sample:
    """Puts to an empty log, and checks that it holds what was put.

    Raises:
        SanityError: It does not.
    """
    max_bytes = budget.max_write_bytes(case.body_bytes)
    written = write_for(log, case, budget.warm_up_seconds, max_bytes // 4)
    log.settle()
    stored_bytes = log.stored_bytes()
    watch = Stopwatch()
    measured = write_for(log, case, budget.seconds, max_bytes)
    log.settle()
    sample = watch.sample(measured)
    check(written + measured, total(log, case), "messages after writing")
    if stored_bytes:
        stored_bytes = log.stored_bytes() - stored_bytes
        return replace(sample, figures={"bytes_per_s": stored_bytes / sample.wall_s})
    return sample


def write_for(log: Log, case: Case, seconds: float, max_bytes: int) -> int:
    """Puts until the time is over or the bytes are written; returns how many messages."""
    end = time.perf_counter() + seconds
    turns = 1 if case.workload is Workload.SYNC else _PUTS_BETWEEN_LOOKS

    def work() -> int:
        written = 0
        # Once at least: a busy machine may start a thread after a short sample is over.
        while not written or (time.perf_counter() < end and written * case.body_bytes < max_bytes):
            if case.batch_size == 1:
                log.put_some(turns)
                written += turns
            else:
                log.put_batch(case.batch_size)
                written += case.batch_size
        return written

    if case.threads == 1:
        return work()
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(work())) for _ in range(case.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(case.threads, len(counts), "threads that came to their end")
    return sum(counts)


def fill(log: Log, case: Case, at_least: int) -> int:
    """Puts messages, in batches where there is one queue; returns how many."""
    if case.queues > 1:
        log.put_some(at_least)
        count = at_least
    else:
        count = -(-at_least // FILL_BATCH) * FILL_BATCH
        for _ in range(count // FILL_BATCH):
            log.put_batch(FILL_BATCH)
    check(count, total(log, case), "messages after filling")
    return count


def total(log: Log, case: Case) -> int:
    """Returns how many messages all queues have."""
    return sum(log.count(queue_id) for queue_id in range(case.queues))
