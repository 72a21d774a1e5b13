"""A store whose log is gone as a whole, while other files of it know that there was one.

Opening it would number messages from 0 again, on top of offsets that were given. Most often a disk is just
not mounted. A broker writes its checkpoint and its tables before the first message: only a time, an entry or
an offset in them proves that there was a log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from seglog.errors import ConfigError, FileKindError, LogMissingError
from seglog.storage.directory.log_files import list_log_files
from seglog.storage.directory.queue_files import QueueFiles, data_end, list_queues
from seglog.storage.directory.reading_root import ReadingRoot
from seglog.storage.files.files import Files, read_start
from seglog.storage.findings.findings import Finding
from seglog.storage.format.config.config_value import ConfigValue
from seglog.storage.format.index.index import INDEX_HEADER, decode_index_header, is_index_file_name
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    CHECKPOINT_FILE,
    COMMIT_LOG,
    CONFIG,
    CONSUME_QUEUE,
    INDEX,
    segment_file_name,
)
from seglog.storage.small_files import RECOVERY_POINT_FILE_NAME, ConfigFile
from seglog.storage.small_files.checkpoint_file import read_checkpoint
from seglog.text import count_text

_OFFSETS: Final = f"{CONFIG}/consumerOffset.json"
_TIMES_MS: Final = range(1_325_376_000_000, 1 << 42)
"""From 2012, the year of the first RocketMQ, to 2109."""
_LEAST_BITS: Final = 4
"""A time has about 20 bits that are set. A 0 of which one byte or three bits are damaged has fewer, or is not
within those years: that is no proof of a log."""


def log_gone(files: Files, root: Path, queues: Iterable[QueueFiles]) -> list[Finding]:
    """Returns what is wrong with a store without any log file; nothing where no other file knows of a log.

    Args:
        files: Where it is.
        root: The store directory.
        queues: Its queues, batch queues too.
    """
    known = _known_by(files, root, queues)
    told = ", ".join(f"{what} in {name}" for name, what in known.items())
    return [Finding("log-empty", COMMIT_LOG, 0, 0, "commit-log files", f"none, but {told}")] if known else []


def demand_log(files: Files, root: Path) -> None:
    """Refuses a store whose log is gone as a whole.

    Raises:
        LogMissingError: It is one.
        FileKindError: The log is a link that the caller did not name, or no folder.
    """
    if list_log_files(files, root)[0]:
        return
    queues = [*list_queues(files, root, CONSUME_QUEUE), *list_queues(files, root, BATCH_CONSUME_QUEUE)]
    gone = log_gone(files, root, queues)
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


def _known_by(files: Files, root: Path, queues: Iterable[QueueFiles]) -> dict[str, str]:
    """Returns the files and folders that know of a log, each with what of it does."""
    folders = Counter(queue.name.partition("/")[0] for queue in queues if _has_units(files, queue))
    known = {folder: count_text(count, "queue") for folder, count in folders.items()}
    checkpoint = read_checkpoint(files, root)
    times = checkpoint.physic_timestamp_ms, checkpoint.logics_timestamp_ms, checkpoint.index_timestamp_ms
    is_flushed = any(_is_time(time_ms) for time_ms in times)
    if is_flushed:
        known[CHECKPOINT_FILE] = "times"
    if count := sum(_entries(files, root)):
        known[INDEX] = count_text(count, "entry", "entries")
    if files.exists(root / RECOVERY_POINT_FILE_NAME):
        known[RECOVERY_POINT_FILE_NAME] = "a place"
    # Clients may store any offset: a checkpoint that says of no flush knows better.
    if (is_flushed or not files.exists(root / CHECKPOINT_FILE)) and _has_offsets(files, root):
        known[_OFFSETS] = "offsets"
    return known


def _is_time(time_ms: int) -> bool:
    """Returns whether a number is a time at which a broker wrote, and no damaged 0."""
    return time_ms in _TIMES_MS and time_ms.bit_count() >= _LEAST_BITS


def _entries(files: Files, root: Path) -> Iterator[int]:
    """Yields how many entries each index file says it has."""
    for entry in files.list_dir(root / INDEX):
        if is_index_file_name(entry.name) and entry.size_bytes >= INDEX_HEADER.size_bytes:
            head = read_start(files, root / INDEX / entry.name, INDEX_HEADER.size_bytes)
            yield decode_index_header(head).index_count - 1


def _has_offsets(files: Files, root: Path) -> bool:
    """Returns whether a consumer group has an offset above 0."""
    with suppress(ConfigError):
        return bool(ConfigFile(files, root / _OFFSETS).load(_any_offset))
    return False


def _any_offset(value: ConfigValue) -> bool:
    table = value.get("offsetTable") if isinstance(value, Mapping) else None
    return isinstance(table, Mapping) and any(
        isinstance(offset, int) and offset > 0
        for queues in table.values()
        if isinstance(queues, Mapping)
        for offset in queues.values()
    )


def _has_units(files: Files, queue: QueueFiles) -> bool:
    """Returns whether any file of a queue holds more than zeros, which a crash at its making leaves."""
    for first, size_bytes in queue.sizes.items():
        if size_bytes:
            path = queue.directory / segment_file_name(first)
            with suppress(FileNotFoundError), closing(files.open(path, writable=False)) as handle:
                if data_end(handle, 1):
                    return True
    return False
