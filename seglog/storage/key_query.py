"""Finds messages by key: what the index offers, checked against the messages themselves.

The index holds hashes, so every hit is compared with the message's own keys; and it trails the log, so what
lies behind its end is looked through record by record. Newest messages are found first.

Source: ``DefaultMessageStore.java queryMessage``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from seglog.storage.files import Files
from seglog.storage.format.index import key_hash
from seglog.storage.format.index_keys import record_keys
from seglog.storage.format.message import Message
from seglog.storage.index_files import iter_places, list_index_files
from seglog.storage.log_files import LogReader
from seglog.storage.log_records import iter_records
from seglog.storage.log_scan import Hole


class KeyQuery:
    """Looks messages up by key in one store.

    Args:
        files: Where the store is.
        root: The store directory.
        segment_size_bytes: Length of the log's files.
        message_at: Returns the message of a record, None if it cannot be served.
        holes: The log's unreadable stretches.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        segment_size_bytes: int,
        message_at: Callable[[int], Message | None],
        holes: Sequence[Hole] = (),
    ) -> None:
        self._files = files
        self._root = root
        self._segment_size_bytes = segment_size_bytes
        self._message_at = message_at
        self._holes = holes

    def find(
        self,
        topic: str,
        key: str,
        max_count: int,
        times_ms: tuple[int, int],
        log: tuple[int, int],
    ) -> list[Message]:
        """Returns messages of a topic that have a key (or unique key), in log order.

        Args:
            topic: The topic.
            key: The key.
            max_count: At most this many, the newest.
            times_ms: Earliest and latest store time.
            log: Where the log starts and ends.
        """
        begin_ms, end_ms = times_ms
        wanted = f"{topic}#{key}"
        found: dict[int, Message] = {}
        for phy_offset in self._places(wanted, times_ms, log):
            if phy_offset in found:
                continue
            message = self._message_at(phy_offset)
            if message is None or not begin_ms <= message.store_timestamp_ms <= end_ms:
                continue
            if wanted in record_keys(message.topic, message.properties_raw, message.sys_flag, tags=False):
                found[phy_offset] = message
                if len(found) >= max_count:
                    break
        return [found[phy_offset] for phy_offset in sorted(found)]

    def _places(self, wanted: str, times_ms: tuple[int, int], log: tuple[int, int]) -> Iterator[int]:
        """Yields where records of the key may be, newest first."""
        begin_ms, end_ms = times_ms
        start, end = log
        hashed = key_hash(wanted)
        index, _damaged = list_index_files(self._files, self._root)
        used = [file for file in index if file.header.index_count > 1]
        ends = [file.header.end_phy_offset for file in used]
        yield from self._in_log(wanted, max([start, *(place for place in ends if place < end)]), end)
        for file in reversed(used):
            if file.header.overlaps(begin_ms, end_ms):
                try:
                    for phy_offset, _time_ms in iter_places(self._files, file, hashed, begin_ms, end_ms):
                        if start <= phy_offset < end:
                            yield phy_offset
                except FileNotFoundError:
                    return  # retention took it, and all before
            if file.header.begin_timestamp_ms < begin_ms:
                return

    def _in_log(self, wanted: str, start: int, end: int) -> list[int]:
        reader = LogReader(self._files, self._root, self._segment_size_bytes)
        try:
            records = iter_records(reader, self._segment_size_bytes, start, end, self._holes)
            places = [
                record.phy_offset
                for record, _end in records
                if wanted in record_keys(record.topic, record.properties, record.sys_flag, tags=False)
            ]
        finally:
            reader.close()
        return places[::-1]
