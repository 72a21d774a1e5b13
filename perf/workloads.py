"""The workloads, over any log; what a store's whole directory is needed for is in :mod:`perf.child`."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from perf.cases import PULL_COUNT, Budget, Case, Sample, SanityError, Workload, check
from perf.logs import Log

FILL_BATCH = 256
_PUTS_BETWEEN_LOOKS = 32
"""How many puts go by before the time is looked at."""


class Stopwatch:
    """Wall and CPU time since it was made."""

    def __init__(self) -> None:
        self._cpu_s = time.process_time()
        self._wall_s = time.perf_counter()

    def sample(self, operations: int) -> Sample:
        """Returns what was done until now."""
        return Sample(operations, time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s)


def run(log: Log, case: Case, budget: Budget) -> Sample:
    """Runs a workload that writes to an empty log or reads from one, and checks the outcome.

    Raises:
        SanityError: The log does not hold what was written, or not give what was asked for.
    """
    if case.workload in (Workload.PUT, Workload.BATCH, Workload.SYNC):
        return _write(log, case, budget)
    fill(log, budget.read_bytes // case.body_bytes)
    return _read(log, case, budget)


def fill(log: Log, at_least: int) -> int:
    """Writes messages in batches; returns how many."""
    count = -(-at_least // FILL_BATCH) * FILL_BATCH
    for _ in range(count // FILL_BATCH):
        log.put_batch(FILL_BATCH)
    check(count, log.count(), "messages after filling")
    return count


def _write(log: Log, case: Case, budget: Budget) -> Sample:
    written = _write_for(log, case, budget.warm_up_seconds, budget.max_write_bytes // 4)
    watch = Stopwatch()
    measured = _write_for(log, case, budget.seconds, budget.max_write_bytes)
    sample = watch.sample(measured)
    check(written + measured, log.count(), "messages after writing")
    return sample


def _write_for(log: Log, case: Case, seconds: float, max_bytes: int) -> int:
    """Writes until the time is over or the bytes are written; returns how many messages."""
    step = case.batch_size
    turn: Callable[[], None] = log.put if step == 1 else lambda: log.put_batch(step)
    turns = _PUTS_BETWEEN_LOOKS if case.workload is Workload.PUT else 1
    end = time.perf_counter() + seconds

    def write() -> int:
        written = 0
        while time.perf_counter() < end and written * case.body_bytes < max_bytes:
            for _ in range(turns):
                turn()
            written += turns * step
        return written

    if case.threads == 1:
        return write()
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(write())) for _ in range(case.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(case.threads, len(counts), "threads that came to their end")
    return sum(counts)


def _read(log: Log, case: Case, budget: Budget) -> Sample:
    _read_for(log, case, budget.warm_up_seconds)
    watch = Stopwatch()
    return watch.sample(_read_for(log, case, budget.seconds))


def _read_for(log: Log, case: Case, seconds: float) -> int:
    """Reads until the time is over, from start to end again and again; returns how many messages."""
    read = log.view if case.workload is Workload.VIEW else log.read
    wanted = 1 if case.workload is Workload.RANDOM else PULL_COUNT
    total = log.count()
    anywhere = random.Random(1).random
    done = at = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        if case.workload is Workload.RANDOM:
            at = int(anywhere() * total)
        elif at >= total:
            at = 0
        found = read(at, wanted)
        if found != min(wanted, total - at):
            raise SanityError(f"read of {wanted} at {at} of {total} gave {found}")
        at += found
        done += found
    return done
