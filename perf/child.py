"""The process that takes one sample: ``python -m perf.child REQUEST``; request and answer are JSON.

It decides which checkout of seglog is measured before anything of seglog is imported.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from perf.cases import CASES, Budget, Case, Sample, Workload, check
from perf.logs import FileLog, Log, SqliteLog
from perf.workloads import Stopwatch, fill, run


@dataclass(frozen=True, slots=True)
class Request:
    """What to measure.

    Attributes:
        contestant: ``seglog``, ``sqlite`` or ``file``.
        checkout: Where seglog is imported from, empty for the path as it is.
        directory: An empty directory for the log's files; for REOPEN after ``fill`` the filled one.
        is_fill: REOPEN: fill the store and die by SIGKILL.
    """

    contestant: str
    case: str
    size: float
    directory: str
    checkout: str = ""
    is_fill: bool = False


def main(text: str) -> None:
    """Takes the sample and prints it."""
    request = Request(**json.loads(text))
    if request.checkout:
        sys.path.insert(0, request.checkout)
    case = next(case for case in CASES if case.name == request.case)
    print(json.dumps(asdict(_measure(request, case, Budget(request.size)))))


def _measure(request: Request, case: Case, budget: Budget) -> Sample:
    directory = Path(request.directory)
    if case.workload is Workload.REOPEN:
        return _reopen(directory, case, budget, is_fill=request.is_fill)
    if case.workload is Workload.SURVEY:
        return _survey(directory, case, budget)
    log = _open(request.contestant, directory, case)
    try:
        return run(log, case, budget)
    finally:
        log.close()


def _open(contestant: str, directory: Path, case: Case) -> Log:
    sync = case.workload is Workload.SYNC
    if contestant == "sqlite":
        return SqliteLog(directory, case, sync=sync)
    if contestant == "file":
        return FileLog(directory, case, sync=sync)
    from perf.seglog_log import SeglogLog

    return SeglogLog(directory, case, sync=sync)


def _reopen(directory: Path, case: Case, budget: Budget, *, is_fill: bool) -> Sample:
    from perf.seglog_log import TOPIC, SeglogLog

    wanted = budget.reopen_bytes // case.body_bytes
    if is_fill:
        log = SeglogLog(directory, case, sync=False)
        fill(log, wanted)
        # Recovery waits for the disk before it serves; that is not what is measured here.
        log.store.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    watch = Stopwatch()
    log = SeglogLog(directory, case, sync=False)
    held = log.count()
    check(1, log.read(held - 1, 1), "messages at the end of the queue")
    log.put()
    sample = watch.sample(held)
    check("abnormal", log.store.recovery.mode, "mode of recovery")
    check(True, held >= wanted, f"at least {wanted} messages, there are {held}")
    check(held, log.store.get(TOPIC, 0, held, 1).next_offset - 1, "queue offset of the new message")
    log.close()
    return sample


def _survey(directory: Path, case: Case, budget: Budget) -> Sample:
    from perf.seglog_log import SeglogLog
    from seglog.storage.files import RealFiles
    from seglog.storage.survey import survey

    log = SeglogLog(directory, case, sync=False)
    count = fill(log, budget.store_bytes // case.body_bytes)
    log.close()
    watch = Stopwatch()
    found = survey(directory, RealFiles())
    sample = watch.sample(found.max_phy_offset)
    check((count, []), (len(found.rows), found.findings), "records and findings of the survey")
    return sample


if __name__ == "__main__":
    main(sys.argv[1])
