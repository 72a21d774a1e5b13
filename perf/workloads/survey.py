"""Reads and verifies a whole store, as ``seglog verify`` and an open after a crash do."""

from __future__ import annotations

from pathlib import Path

from perf.figures.sample import Sample, check
from perf.logs.seglog_log import SeglogLog
from perf.plan.budget import Budget
from perf.plan.cases import Case
from perf.sampling.stopwatch import Stopwatch
from perf.workloads.writes import fill
from seglog.storage.files.files import RealFiles
from seglog.storage.survey.store_survey import survey


def survey_store(directory: Path, case: Case, budget: Budget) -> Sample:
    """Fills a store, closes it and surveys it."""
    log = SeglogLog(directory, case)
    count = fill(log, case, budget.store_bytes // case.body_bytes)
    log.close()
    watch = Stopwatch()
    found = survey(directory, RealFiles())
    sample = watch.sample(found.max_phy_offset)
    check((count, []), (len(found.rows), found.findings), "records and findings of the survey")
    rate = {"bytes_per_s": sample.operations / sample.wall_s}
    return Sample(sample.operations, sample.wall_s, sample.cpu_s, rate)
