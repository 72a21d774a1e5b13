"""Opens a store whose writer was killed in full work."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

from typing_extensions import override

from perf.figures.sample import Sample, check
from perf.logs.seglog_log import TOPIC, SeglogLog
from perf.plan.budget import Budget
from perf.plan.cases import Case
from perf.sampling.stopwatch import Stopwatch
from perf.workloads.writes import fill
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.store import DEFAULT_RECOVERY_STEP_BYTES


class SyncTime:
    """How long the thread that made it waited for syncs; those of others cost it nothing."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread = threading.get_ident()

    def add(self, begun_s: float) -> None:
        """Counts a sync that began then and ends now."""
        if threading.get_ident() == self._thread:
            self.seconds += time.perf_counter() - begun_s


class _TimedFile(RealFile):
    __slots__ = ("_time",)

    def __init__(self, path: Path, flags: int, sync_time: SyncTime) -> None:
        super().__init__(path, flags)
        self._time = sync_time

    @override
    def sync(self) -> None:
        begun_s = time.perf_counter()
        super().sync()
        self._time.add(begun_s)


class TimedFiles(RealFiles):
    """The operating system's files, with the time that syncs of file contents take."""

    def __init__(self) -> None:
        self.sync_time = SyncTime()

    @override
    def open(self, path: Path, *, writable: bool) -> RealFile:
        return _TimedFile(path, os.O_RDWR if writable else os.O_RDONLY, self.sync_time)


def fill_and_die(directory: Path, case: Case, budget: Budget) -> None:
    """Fills a store and ends by SIGKILL; nothing of it needs to be on the disk."""
    fill(SeglogLog(directory, case), case, budget.reopen_bytes // case.body_bytes)
    os.kill(os.getpid(), signal.SIGKILL)


def reopen(directory: Path, case: Case, budget: Budget, *, is_quick: bool) -> Sample:
    """Opens, reads the last message and puts one.

    Args:
        directory: What :func:`fill_and_die` left.
        case: What is in it.
        budget: How much is in it.
        is_quick: Whether to open as by default; otherwise the whole log is walked and verified.
    """
    files = TimedFiles()
    watch = Stopwatch()
    step_bytes = DEFAULT_RECOVERY_STEP_BYTES if is_quick else 0
    log = SeglogLog(directory, case, recovery_step_bytes=step_bytes, files=files)
    held = log.count(0)
    check(1, log.copy_some([(0, held - 1)], 1), "messages at the end of the queue")
    log.put_some(1)
    sample = watch.sample(held)
    sync_s = files.sync_time.seconds
    check("abnormal", log.store.recovery.mode, "mode of recovery")
    check(True, is_quick or log.store.recovery.walked_from == 0, "the walk began at the log's start")
    check(True, held >= budget.reopen_bytes // case.body_bytes, "all messages were found")
    check(held, log.store.get(TOPIC, 0, held, 1).next_offset - 1, "queue offset of the new message")
    log.close()
    figures = {"quick_s" if is_quick else "open_s": sample.wall_s - sync_s}
    return Sample(
        sample.operations, sample.wall_s, sample.cpu_s, figures if is_quick else figures | {"sync_s": sync_s}
    )
