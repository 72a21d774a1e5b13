"""A store whose log is gone as a whole, while its queues are there.

Opening it would number messages from 0 again, on top of offsets that were given. Most often a disk is just
not mounted.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from seglog.errors import FileKindError, LogMissingError
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, COMMIT_LOG, CONSUME_QUEUE, segment_file_name
from seglog.storage.log_files import list_log_files
from seglog.storage.queue_files import QueueFiles, data_end, list_queues
from seglog.storage.reading_root import ReadingRoot


def log_gone(files: Files, queues: Iterable[QueueFiles]) -> list[Finding]:
    """Returns what is wrong with a store without any log file; nothing where its queues have no units either.

    Args:
        files: Where it is.
        queues: Its queues, batch queues too.
    """
    count = sum(1 for queue in queues if _has_units(files, queue))
    expected = "commit-log files"
    return [Finding("log-empty", COMMIT_LOG, 0, 0, expected, f"none, but {count} queues")] if count else []


def demand_log(files: Files, root: Path) -> None:
    """Refuses a store whose log is gone as a whole.

    Raises:
        LogMissingError: It is one.
        FileKindError: The log is a link that the caller did not name, or no folder.
    """
    if list_log_files(files, root)[0]:
        return
    gone = log_gone(
        files, [*list_queues(files, root, CONSUME_QUEUE), *list_queues(files, root, BATCH_CONSUME_QUEUE)]
    )
    if not gone:
        return
    for finding in files.findings if isinstance(files, ReadingRoot) else ():
        if (finding.code, finding.file) == ("file-kind", COMMIT_LOG):
            raise FileKindError(
                f"{root / COMMIT_LOG} is {finding.found}, where {finding.expected} belongs",
                file=COMMIT_LOG,
                found=finding.found,
                help=f"a link is followed where you name it: --follow {COMMIT_LOG}",
            )
    raise LogMissingError(f"{root}: {gone[0].expected} expected, found {gone[0].found}")


def _has_units(files: Files, queue: QueueFiles) -> bool:
    """Returns whether any file of a queue holds more than zeros, which a crash at its making leaves."""
    for first, size_bytes in queue.sizes.items():
        if size_bytes:
            with suppress(FileNotFoundError):
                handle = files.open(queue.directory / segment_file_name(first), writable=False)
                try:
                    if data_end(handle, 1):
                        return True
                finally:
                    handle.close()
    return False
