"""Puts from one thread, then from two at once."""

from __future__ import annotations

from dataclasses import replace

from perf.figures.sample import Sample
from perf.logs.log import Log
from perf.plan.budget import Budget
from perf.plan.cases import Case
from perf.workloads.writes import write


def put_together(alone: Log, both: Log, case: Case, budget: Budget) -> Sample:
    """Measures one thread over one log and two over another; the sample is that of the two."""
    one = write(alone, case, budget)
    return over_one(one, write(both, replace(case, threads=2), budget))


def over_one(one: Sample, two: Sample) -> Sample:
    """Returns the sample of two threads, with how many times as fast they were as one."""
    ratio = (two.operations / two.wall_s) / (one.operations / one.wall_s)
    return replace(two, figures={"over_one": ratio})
