"""Copies messages to a file before retention deletes them: ``<store>/seglog/parked/<first byte>.jsonl``.

Each deleted log file with needed messages has one such file. Each line is a message as ``seglog export``
writes it, with the groups that need it under ``parkedFor``. The file is complete and synced before the log
file is deleted; a crash in between leaves both, and the next pass writes the file again. ``seglog retention
unpark`` brings its messages back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from seglog.broker.retention.retention_impact import Doomed
from seglog.storage.format.names import LMQ_PREFIX, OURS, segment_file_name
from seglog.storage.format.record import Message
from seglog.storage.reads import row_of, to_fields
from seglog.storage.store import MessageStore

PARKED: Final = f"{OURS}/parked"
SUFFIX: Final = ".jsonl"
_UNFINISHED: Final = ".tmp"
_CHUNK_BYTES: Final = 1 << 20
_AT_A_TIME: Final = 256


def parked_file(doomed: Doomed) -> str:
    """Returns the path of the side file for a log file, relative to the store."""
    return f"{PARKED}/{segment_file_name(doomed.segment.first_phy_offset)}{SUFFIX}"


def park_victims(store: MessageStore, doomed: Doomed) -> int:
    """Writes the needed messages of a log file to its side file; returns how many.

    Messages that cannot be read any more are left out.

    Raises:
        FullError: There is no space for them; no file is left.
        StoreFailedError: The disk failed.
    """
    path = store.path / parked_file(doomed)
    unfinished = path.with_name(path.name + _UNFINISHED)
    files = store.files
    files.make_dirs(path.parent)
    if files.exists(unfinished):
        files.remove(unfinished)
    handle = files.create(unfinished, 0)
    is_whole = False
    try:
        count = position = 0
        waiting = bytearray()
        for line in _lines(store, doomed):
            count += 1
            waiting += line
            if len(waiting) >= _CHUNK_BYTES:
                handle.write_at(waiting, position)
                position += len(waiting)
                waiting = bytearray()
        handle.write_at(waiting, position)
        handle.sync()
        is_whole = True
    finally:
        handle.close()
        if not is_whole:
            files.remove(unfinished)
    files.rename(unfinished, path)
    files.sync_dir(path.parent)
    return count


def _lines(store: MessageStore, doomed: Doomed) -> Iterator[bytes]:
    by_queue: dict[tuple[str, int], list[tuple[range, dict[str, str]]]] = {}
    for victim in doomed.victims:
        needed = {"why": victim.why.value, **({"group": victim.group} if victim.group else {})}
        by_queue.setdefault((victim.topic, victim.queue_id), []).append((victim.offsets, needed))
    for (topic, queue_id), needs in by_queue.items():
        first = min(offsets.start for offsets, _needed in needs)
        end = max(offsets.stop for offsets, _needed in needs)
        for queue_offset, message in _messages(store, topic, queue_id, range(first, end)):
            parked_for = [needed for offsets, needed in needs if queue_offset in offsets]
            fields = {**to_fields(row_of(message, queue_offset)), "parkedFor": parked_for}
            yield json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _messages(
    store: MessageStore, topic: str, queue_id: int, offsets: range
) -> Iterator[tuple[int, Message]]:
    """Yields the messages of a range of a queue, as far as they can be read, each with its offset."""
    at = offsets.start
    while at < offsets.stop:
        found = store.get(topic, queue_id, at, min(_AT_A_TIME, offsets.stop - at))
        # A record of several queues states its place in the main one only.
        lost = {place for places in found.stepped_over for place in places}
        there = [place for place in range(at, found.next_offset) if place not in lost]
        is_further = topic.startswith(LMQ_PREFIX)
        for number, message in enumerate(found):
            queue_offset = there[number] if is_further else message.queue_offset
            if queue_offset >= offsets.stop:
                return
            yield queue_offset, message
        if found.next_offset <= at:
            return
        at = found.next_offset
