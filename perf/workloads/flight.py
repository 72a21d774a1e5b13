"""Many puts at once on their way to the disk, from one event loop."""

from __future__ import annotations

import asyncio
import time

from perf.figures.sample import Sample, check
from perf.logs.seglog_log import TOPIC, SeglogLog
from perf.plan.bodies import body_of
from perf.plan.budget import Budget
from perf.plan.cases import Case
from perf.sampling.stopwatch import Stopwatch


def put_in_flight(log: SeglogLog, case: Case, budget: Budget) -> Sample:
    """Keeps ``case.threads`` puts in flight; a put counts when it is on the disk."""
    return asyncio.run(_put(log, case, budget))


async def _put(log: SeglogLog, case: Case, budget: Budget) -> Sample:
    before = await _put_for(log, case, budget.warm_up_seconds)
    watch = Stopwatch()
    done = await _put_for(log, case, budget.seconds)
    sample = watch.sample(done)
    check(before + done, log.count(0), "messages after writing")
    return sample


async def _put_for(log: SeglogLog, case: Case, seconds: float) -> int:
    put, body = log.store.put_async, body_of(case)
    end = time.perf_counter() + seconds
    counts = [0] * case.threads

    async def work(number: int) -> None:
        while not counts[number] or time.perf_counter() < end:  # one at least, also where a machine stalls
            await put(TOPIC, body)
            counts[number] += 1

    await asyncio.gather(*(work(number) for number in range(case.threads)))
    return sum(counts)
