"""The process that takes one sample: ``python -m perf.sampling.child REQUEST``; request and answer are JSON.

It decides which checkout of seglog is measured before anything of seglog is imported; which kernels run was
decided by who started it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from perf.figures.sample import Sample
from perf.logs.log import Log
from perf.plan.budget import SAMPLE_S, Budget
from perf.plan.cases import CASE, LATENCY_FILE_BYTES, READS, WRITES, Case, Workload

NOTHING: Final = Sample(0, 0.0, 0.0)
"""What a step answers that only makes ready."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to measure.

    Attributes:
        contestant: ``seglog``, ``sqlite``, ``lmdb``, ``honker`` or ``limit``.
        checkout: Where seglog is imported from, empty for the path as it is.
        directory: An empty directory for the log's files, or what an earlier step left.
        sample_s: Seconds of a sample, as :class:`perf.plan.budget.Budget` takes it.
        step: Which part of the workload, where it has several: ``fill`` and ``quick`` of a reopen.
    """

    contestant: str
    case: str
    size: float
    directory: str
    sample_s: float = SAMPLE_S
    checkout: str = ""
    step: str = ""


def main(text: str) -> None:
    """Takes the sample and prints it."""
    request = Request(**json.loads(text))
    if request.checkout:
        sys.path.insert(0, request.checkout)
    case, budget, directory = (
        CASE[request.case],
        Budget(request.size, request.sample_s),
        Path(request.directory),
    )
    if request.contestant == "limit":
        from perf.workloads.limit import write_to_the_limit

        sample = write_to_the_limit(directory, budget)
    elif case.workload in WRITES - {Workload.FLIGHT} | READS | {Workload.TOGETHER}:
        sample = _work(request.contestant, directory, case, budget)
    else:
        sample = _OURS[case.workload](directory, case, budget, request.step)
    print(json.dumps(asdict(sample)))


def _work(contestant: str, directory: Path, case: Case, budget: Budget) -> Sample:
    """Does what any log can be used for."""
    log = _open(contestant, directory / "one", case)
    try:
        if case.workload is Workload.TOGETHER:
            from perf.workloads.together import put_together

            return put_together(log, _open(contestant, directory / "two", case), case, budget)
        if case.workload in READS:
            from perf.workloads.reads import read

            return read(log, case, budget)
        from perf.workloads.writes import write

        return write(log, case, budget)
    finally:
        log.close()


def _open(contestant: str, directory: Path, case: Case) -> Log:
    sync = case.workload is Workload.SYNC
    directory.mkdir()
    if contestant == "sqlite":
        from perf.logs.sqlite_log import SqliteLog

        return SqliteLog(directory, case, sync=sync)
    if contestant == "lmdb":
        from perf.logs.lmdb_log import LmdbLog

        return LmdbLog(directory, case, sync=sync)
    if contestant == "honker":
        from perf.logs.honker_log import HonkerLog

        return HonkerLog(directory, case)
    from perf.logs.seglog_log import SeglogLog

    return SeglogLog(directory, case, sync=sync)


def _latency(directory: Path, case: Case, budget: Budget, _step: str) -> Sample:
    from perf.logs.seglog_log import SeglogLog
    from perf.workloads.latency import time_puts

    log = SeglogLog(directory, case, segment_size_bytes=LATENCY_FILE_BYTES)
    try:
        return time_puts(log, case, budget)
    finally:
        log.close()


def _flight(directory: Path, case: Case, budget: Budget, _step: str) -> Sample:
    from perf.logs.seglog_log import SeglogLog
    from perf.workloads.flight import put_in_flight

    log = SeglogLog(directory, case, sync=True)
    try:
        return put_in_flight(log, case, budget)
    finally:
        log.close()


def _reopen(directory: Path, case: Case, budget: Budget, step: str) -> Sample:
    from perf.workloads.reopen import fill_and_die, reopen

    if step == "fill":
        fill_and_die(directory, case, budget)
    return reopen(directory, case, budget, is_quick=step == "quick")


def _survey(directory: Path, case: Case, budget: Budget, _step: str) -> Sample:
    from perf.workloads.survey import survey_store

    return survey_store(directory, case, budget)


def _size(directory: Path, case: Case, budget: Budget, _step: str) -> Sample:
    from perf.workloads.size import write_some

    write_some(directory, case, budget)
    return NOTHING


def _memory(directory: Path, case: Case, budget: Budget, _step: str) -> Sample:
    from perf.logs.seglog_log import SeglogLog
    from perf.workloads.memory import write_and_read

    log = SeglogLog(directory, case)
    try:
        return write_and_read(log, case, budget)
    finally:
        log.close()


def _start(_directory: Path, _case: Case, budget: Budget, _step: str) -> Sample:
    from perf.workloads.start import time_starts

    return time_starts(budget)


_OURS: Final[dict[Workload, Callable[[Path, Case, Budget, str], Sample]]] = {
    Workload.LATENCY: _latency,
    Workload.FLIGHT: _flight,
    Workload.REOPEN: _reopen,
    Workload.SURVEY: _survey,
    Workload.SIZE: _size,
    Workload.MEMORY: _memory,
    Workload.START: _start,
}


if __name__ == "__main__":
    main(sys.argv[1])
