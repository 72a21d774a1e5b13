"""Reads and verifies a whole store, as ``seglog verify`` and an open after a crash do."""

from __future__ import annotations

from pathlib import Path

from perf.budget import Budget
from perf.cases import Case
from perf.logs.seglog_log import SeglogLog
from perf.sample import Sample, check
from perf.stopwatch import Stopwatch
from perf.workloads.writes import fill
from seglog.storage.files.files import RealFiles
from seglog.storage.survey.survey import survey


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
