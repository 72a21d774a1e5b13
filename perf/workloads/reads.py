"""Pulls from start to end again and again, and reads anywhere."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import cycle, islice

from perf.figures.sample import Sample, SanityError
from perf.logs.log import Log
from perf.plan.budget import Budget
from perf.plan.cases import PULL_COUNT, Case, Workload
from perf.sampling.stopwatch import Stopwatch
from perf.workloads.writes import fill

_READS_BETWEEN_LOOKS = 128
"""How many reads go by before the time is looked at."""
RANDOM_PLACES = 1 << 14


def read(log: Log, case: Case, budget: Budget) -> Sample:
    """Fills a log and reads it.

    Raises:
        SanityError: It did not give what it was asked for.
    """
    fill(log, case, budget.read_bytes // case.body_bytes)
    log.settle()
    read_for(log, case, budget.warm_up_seconds)
    watch = Stopwatch()
    return watch.sample(read_for(log, case, budget.seconds))


def read_for(log: Log, case: Case, seconds: float) -> int:
    """Reads until the time is over; returns how many messages."""
    copying = log.loop_some if case.is_loop else log.copy_some
    some = log.view_some if case.is_view else copying
    count = 1 if case.workload is Workload.RANDOM else PULL_COUNT
    places = cycle(_random_places(log) if case.workload is Workload.RANDOM else _places_in_turn(log, case))
    turns = [list(islice(places, _READS_BETWEEN_LOOKS)) for _ in range(RANDOM_PLACES // _READS_BETWEEN_LOOKS)]
    wanted = count * _READS_BETWEEN_LOOKS
    done = 0
    end = time.perf_counter() + seconds
    for turn in cycle(turns):
        found = some(turn, count)
        if found != wanted:
            raise SanityError(f"reads of {count} at {turn[0]} and on gave {found} messages, not {wanted}")
        done += found
        if time.perf_counter() >= end:
            return done
    raise SanityError("there was nothing to read")


def _random_places(log: Log) -> Iterator[tuple[int, int]]:
    anywhere, total = random.Random(1).random, log.count(0)
    return ((0, int(anywhere() * total)) for _ in range(RANDOM_PLACES))


def _places_in_turn(log: Log, case: Case) -> Iterator[tuple[int, int]]:
    """Yields the places of whole pulls, of one queue after the other at each offset."""
    each = min(log.count(queue_id) for queue_id in range(case.queues)) // PULL_COUNT
    for pull in range(each):
        for queue_id in range(case.queues):
            yield queue_id, pull * PULL_COUNT
