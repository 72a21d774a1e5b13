"""A store whose owner writes while it is read: files that were listed may be gone when they are opened.

Retention removes files from the front of the log, and what leads to them. Nothing of that is lost, and a
reader that meets such a file looks again. A file that is gone from the middle of the log is damage, and no
matter of this module.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from seglog.storage.directory.log_files import LogFile, list_log_files, log_start, place_log_files
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import COMMIT_LOG, parse_segment_file_name
from seglog.storage.survey.store_survey import Survey

T = TypeVar("T")

MOST_LOOKS: Final = 32
"""Each look is at a store as it is then; a writer that removes files quicker than this many looks is none."""


def look_again(look: Callable[[], T]) -> T:
    """Returns what a look at the files finds; looks anew while a file that it listed is gone.

    Raises:
        FileNotFoundError: Files were gone each time.
    """
    missed: object = None
    for _ in range(MOST_LOOKS - 1):
        try:
            return look()
        except FileNotFoundError as error:
            # What is gone is not listed any more: a name that is missed twice is another matter.
            if error.filename == missed:
                raise
            missed = error.filename
    return look()


def survey_moving(look: Callable[[], Survey], root: Path, files: Files) -> Survey:
    """Returns a survey during which no file was removed from the log's front, if one of a few was such.

    Where files were gone before they were read, the log has an unreadable stretch, or ends too early: then
    queues, which are read later, know of messages behind its end. A reader leaves out what was removed
    since; see :func:`leave_front`.

    Args:
        look: Makes a survey.
        root: The store directory.
        files: Where it is.

    Raises:
        FileNotFoundError: Files were gone each time.
    """
    found = look_again(look)
    for _ in range(MOST_LOOKS - 1):
        if not _was_disturbed(found, _log_now(found, root, files)):
            break
        found = look_again(look)
    return found


def start_now(found: Survey, root: Path, files: Files) -> int:
    """Returns where the log of a survey starts by the files that are left of it.

    Where no file is left at all it was not retention, which leaves the last one.
    """
    placed = _log_now(found, root, files)
    if not placed:
        return found.min_phy_offset
    return max(found.min_phy_offset, log_start(placed, found.max_phy_offset))


def leave_front(found: Survey, start: int) -> None:
    """Takes files, unreadable stretches and findings out of a survey that are before a place.

    The minimums of its queues are the reader's to raise.
    """
    if start <= found.min_phy_offset:
        return
    found.log_files = [file for file in found.log_files if file.first_offset >= start]
    found.scan.holes[:] = [hole for hole in found.scan.holes if hole.end > start]
    found.findings = [finding for finding in found.findings if not _is_before(finding, start)]


def _log_now(found: Survey, root: Path, files: Files) -> list[LogFile]:
    log_files, _strays = list_log_files(files, root)
    return place_log_files(log_files, found.geometry.segment_size_bytes)[0]


def _was_disturbed(found: Survey, now: list[LogFile]) -> bool:
    """Returns whether files went during a survey before it read them, by the files that there are now."""
    if not now or (found.log_files and now[0].first_offset <= found.log_files[0].first_offset):
        return False
    start = now[0].first_offset
    return start >= found.max_phy_offset or any(hole.phy_offset < start for hole in found.holes)


def _is_before(finding: Finding, start: int) -> bool:
    folder, _, name = finding.file.partition("/")
    first = parse_segment_file_name(name) if folder == COMMIT_LOG else None
    return first is not None and first < start
