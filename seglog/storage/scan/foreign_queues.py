"""Queues of another store, and what but queue units shows that a log was longer than it is.

Units that lead past the end of a log are believed as a trace of a lost end
(:mod:`seglog.storage.overlay.lost_tail`). So are those of a queue folder that was copied from another
store, unless something distinguishes the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.directory import known_topics
from seglog.storage.directory.index_files import list_index_files
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.record.record import Damage
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.queue_overlays import Key, Overlays
from seglog.storage.small_files import read_recovery_point

CODE: Final = "queue-stray"
_EXPLAINED: Final = frozenset({"queue-unit-stray", "queue-beyond-log", "queue-file-empty"})
"""Codes of units of such a queue."""


def unknown_queues(store: ListedStore, queues: Overlays, files: Files) -> frozenset[Key]:
    """Returns the queues of topics that neither the log nor ``topics.json`` has; none without that file.

    Args:
        store: The listing of the store.
        queues: Its queues.
        files: The file layer of the store.
    """
    states: list[QueueState | BatchQueueState] = [*queues.plain.values(), *queues.batch.values()]
    known = known_topics(files, store.root) if any(len(state.behind) for state in states) else None
    if known is None:
        return frozenset()
    in_log = {state.topic for state in states if state.min_offset < state.max_offset or state.gaps}
    return frozenset(
        (state.topic, state.queue_id)
        for state in states
        if state.topic not in known and state.topic not in in_log and not state.topic.startswith(LMQ_PREFIX)
    )


def stray_queues(store: ListedStore, queues: Overlays, files: Files) -> list[Finding]:
    """Returns a finding for each queue of an unknown topic whose units lead into the log or behind it.

    Units of a queue that lead before the log are those of messages that have expired.

    Args:
        store: The listing of the store.
        queues: Its queues, with what is lost at the end of the log.
        files: The file layer of the store.
    """
    if not store.log_files:
        return []
    findings: list[Finding] = []
    for key in sorted(unknown_queues(store, queues, files)):
        state = queues.plain.get(key) or queues.batch.get(key)
        queue = store.queue_files.get(key) or store.batch_files.get(key)
        if state is not None and queue is not None and len(state.behind) and not len(state.units):
            expected = "a topic that the log or topics.json has"
            findings.append(Finding(CODE, queue.name, expected=expected, found=f"{state.topic}"))
    return findings


def with_strays(findings: Sequence[Finding], strays: Sequence[Finding]) -> list[Finding]:
    """Returns findings with those of stray queues, which explain what their units show."""
    folders = {one.file for one in strays}
    return [
        *(
            one
            for one in findings
            if one.code not in _EXPLAINED or one.file.rpartition("/")[0] not in folders
        ),
        *strays,
    ]


def was_longer(
    store: ListedStore, tail: Damage | None, newest_ms: int | None, end_phy_offset: int, files: Files
) -> bool:
    """Returns whether anything but queue units allows for a log that was longer.

    Args:
        store: The listing of the store.
        tail: The damage at the end of its log.
        newest_ms: Latest store time of all records, None without any.
        end_phy_offset: End of its log.
        files: The file layer of the store.
    """
    if store.mode != "normal" or tail is not None or newest_ms is None:
        return True  # after a crash the log may have lost what was not synced, and nothing may show it
    if any(file.size_bytes < store.geometry.segment_size_bytes for file in store.log_files):
        return True
    checkpoint = store.checkpoint
    times = checkpoint.physic_timestamp_ms, checkpoint.logics_timestamp_ms, checkpoint.index_timestamp_ms
    if max(times) > newest_ms or checkpoint.confirm_phy_offset > end_phy_offset:
        return True
    return any(place >= end_phy_offset for place in _known_places(store, files))


def _known_places(store: ListedStore, files: Files) -> Iterator[int]:
    """Yields places of records that other files of the store know."""
    with suppress(CorruptError):
        point = read_recovery_point(files, store.root)
        if point is not None:
            yield point.end_phy_offset - 1
    for file in list_index_files(files, store.root)[0]:
        yield file.header.end_phy_offset
