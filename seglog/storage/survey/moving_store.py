"""A store whose owner writes while it is read: files that were listed may not exist when they are opened.

Retention removes files from the front of the log, and the queue and index files of their messages. Such files
are not lost, and a reader that misses one looks again. A file that is missing in the middle of the log is
damage, which is not the subject of this module.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from seglog.storage.directory.log_files import LogFile, list_log_files, log_start, place_log_files
from seglog.storage.files.files import Files
from seglog.storage.findings.code import Severity
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    COMMIT_LOG,
    CONSUME_QUEUE,
    INDEX,
    parse_segment_file_name,
)
from seglog.storage.survey.store_survey import Survey

T = TypeVar("T")

MOST_LOOKS: Final = 32
"""The most looks. Each look lists the store again; no writer removes files faster than this many looks."""


def look_again(look: Callable[[], T]) -> T:
    """Returns the result of ``look``; calls it again while a file that it listed is missing.

    Raises:
        FileNotFoundError: Files were missing each time.
    """
    missed: object = None
    for _ in range(MOST_LOOKS - 1):
        try:
            return look()
        except FileNotFoundError as error:
            # A removed file is not listed any more. A name that is missing twice was not removed by
            # retention.
            if error.filename == missed:
                raise
            missed = error.filename
    return look()


def survey_moving(look: Callable[[], Survey], root: Path, files: Files) -> Survey:
    """Returns a survey during which no file was removed from the front of the log, within a limit of surveys.

    If files were removed before they were read, the log has an unreadable stretch or ends too early, and the
    queues, which are read later, have messages behind its end. A reader leaves out the files that were
    removed since the survey; see :func:`leave_front`.

    Args:
        look: Surveys the store.
        root: The store directory.
        files: The file layer of the store.

    Raises:
        FileNotFoundError: Files were missing each time.
    """
    found = look_again(look)
    for _ in range(MOST_LOOKS - 1):
        if not _was_disturbed(found, _log_now(found, root, files)):
            break
        found = look_again(look)
    return found


def survey_written(look: Callable[[], Survey], root: Path, files: Files) -> Survey:
    """Returns a survey of a store that a process is writing, with the findings that a second survey confirms.

    The queues are read after the log, so the queues of one survey may be ahead of its log, and the writer may
    be between a record and its unit. Such a finding is at another place in the next survey; damage is not.

    Args:
        look: Surveys the store.
        root: The store directory.
        files: The file layer of the store.

    Raises:
        FileNotFoundError: Files were missing each time.
    """
    first = survey_moving(look, root, files)
    doubtful = {finding.place for finding in first.findings if finding.severity is not Severity.NOTE}
    if not doubtful:
        return first
    found = survey_moving(look, root, files)
    found.findings = [
        finding
        for finding in found.findings
        if finding.severity is Severity.NOTE or finding.place in doubtful
    ]
    return found


def start_now(found: Survey, root: Path, files: Files) -> int:
    """Returns the start of a surveyed log by the files that still exist.

    If no file exists any more, it was not retention, which keeps the last one: the start stays.
    """
    placed = _log_now(found, root, files)
    if not placed:
        return found.min_phy_offset
    return max(found.min_phy_offset, log_start(placed, found.max_phy_offset))


def leave_front(found: Survey, start: int) -> None:
    """Removes files, unreadable stretches and findings before a place from a survey.

    The reader raises the minimums of its queues.
    """
    if start <= found.min_phy_offset:
        return
    if start >= found.max_phy_offset:
        _leave_all(found)
    found.log_files = [file for file in found.log_files if file.first_offset >= start]
    found.scan.holes[:] = [hole for hole in found.scan.holes if hole.end > start]
    found.findings = [finding for finding in found.findings if not _is_before(finding, start)]


def _leave_all(found: Survey) -> None:
    """Removes what a survey concluded from a log of which no file exists any more.

    A fast writer may remove all files that a look has listed. A unit past the end that was read leads to a
    record that was written later, and may be removed already: it proves no loss.
    """
    found.lost_tail = []
    found.replaced.closing.clear()
    for state in found.all_queues.values():
        state.units = state.units[state.units["phy_offset"] < found.max_phy_offset]
    compared = (COMMIT_LOG, CONSUME_QUEUE, BATCH_CONSUME_QUEUE, INDEX)
    found.findings = [one for one in found.findings if one.file.partition("/")[0] not in compared]


def _log_now(found: Survey, root: Path, files: Files) -> list[LogFile]:
    log_files, _strays = list_log_files(files, root)
    return place_log_files(log_files, found.geometry.segment_size_bytes)[0]


def _was_disturbed(found: Survey, now: list[LogFile]) -> bool:
    """Returns whether files were removed during a survey before it read them, by the files that exist now."""
    if not now or (found.log_files and now[0].first_offset <= found.log_files[0].first_offset):
        return False
    start = now[0].first_offset
    return start >= found.max_phy_offset or any(hole.phy_offset < start for hole in found.holes)


def _is_before(finding: Finding, start: int) -> bool:
    folder, _, name = finding.file.partition("/")
    first = parse_segment_file_name(name) if folder == COMMIT_LOG else None
    return first is not None and first < start
