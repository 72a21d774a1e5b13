"""Finds messages by key: candidates from the index, compared with the messages themselves.

The index holds hashes, so every candidate is compared with the message's own keys. The index is behind the
log, so records behind its end are examined one by one. The newest messages are found first.

Source: ``DefaultMessageStore.java queryMessage``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from seglog.storage.directory import IndexFile, LogReader, list_index_files
from seglog.storage.files.files import Files
from seglog.storage.format.index import key_hash, record_keys
from seglog.storage.format.index.index_build import KEY_ROW
from seglog.storage.format.index.index_keys import tag_key
from seglog.storage.format.record.message import Message
from seglog.storage.index.colliding_keys import KeySorting, iter_holding
from seglog.storage.index.index_cover import uncovered, usable
from seglog.storage.index.index_lookup import PlaceRun, iter_place_runs
from seglog.storage.index.key_memory import MOST_KEYS, KeyMemory
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.log_records import LogWindows, iter_key_rows

_MANY_MISSED: Final = 4
"""After this many messages with other keys of the hash, the log is searched for the key's bytes first."""
_LONG_RUN: Final = 64
"""From this many places at a time on, the log is searched for the key's bytes too."""
_REPLACED: Final = "\ufffd"
"""The character that replaces bytes of a key that are not valid text."""


class KeyQuery:
    """Looks messages up by key in one store.

    Args:
        files: Where the store is.
        root: The store directory.
        segment_size_bytes: Length of the log's files.
        message_at: Returns the message of a record, None if it cannot be served.
        holes: The log's unreadable stretches.
        indexed: The place below which all keys are indexed, and the last record of the newest index file (-1
            without a file), for a store whose index is open; None if unknown.
        memory: The cache of earlier queries.
        is_whole: Returns whether an index file is undamaged: asked before a message is denied. By default all
            are taken for it.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        segment_size_bytes: int,
        message_at: Callable[[int], Message | None],
        holes: Sequence[Hole] = (),
        indexed: tuple[int, int] | None = None,
        memory: KeyMemory | None = None,
        is_whole: Callable[[IndexFile], bool] = lambda _file: True,
    ) -> None:
        self._files = files
        self._root = root
        self._segment_size_bytes = segment_size_bytes
        self._message_at = message_at
        self._holes = holes
        self._indexed = indexed
        self._memory = memory or KeyMemory()
        self._is_whole = is_whole

    def find(
        self,
        topic: str,
        key: str,
        max_count: int,
        times_ms: tuple[int, int],
        log: tuple[int, int],
        *,
        by_tag: bool = False,
    ) -> list[Message]:
        """Returns messages of a topic that have a key (or unique key), in log order.

        Args:
            topic: The topic.
            key: The key.
            max_count: At most this many, the newest.
            times_ms: Earliest and latest store time.
            log: Start and end of the log.
            by_tag: Whether ``key`` is a tag; an index without tags has no candidates.
        """
        found: dict[int, Message] = {}
        for is_doubted in (False, True):
            for phy_offset, message in self._iter_matching(
                topic, key, times_ms, log, by_tag=by_tag, is_doubted=is_doubted
            ):
                found[phy_offset] = message
                if len(found) >= max_count:
                    break
            if found:
                break  # else what damaged index files answered for is read from the log
        return [found[phy_offset] for phy_offset in sorted(found)]

    def _iter_matching(
        self,
        topic: str,
        key: str,
        times_ms: tuple[int, int],
        log: tuple[int, int],
        *,
        by_tag: bool,
        is_doubted: bool,
    ) -> Iterator[tuple[int, Message]]:
        """Yields messages that have the key, newest first, with their places; a message may come twice."""
        begin_ms, end_ms = times_ms
        wanted, missed = tag_key(topic, key) if by_tag else f"{topic}#{key}", 0
        size = self._segment_size_bytes
        sorting = KeySorting(self._reader(), size, log, self._memory.collisions)
        if is_doubted:
            runs = self._doubted_runs(wanted, log, by_tag=by_tag)
        else:
            runs = self._place_runs(wanted, times_ms, log, sorting, by_tag=by_tag)
        is_sorted_out = by_tag or _REPLACED in wanted
        while (run := next(runs, None)) is not None:
            if not is_sorted_out and (missed >= _MANY_MISSED or len(run) >= _LONG_RUN):
                raw = key.encode("utf-8", "surrogatepass")
                sorting.begin(topic.encode("utf-8", "surrogatepass"), raw)
                runs = iter_holding(self._reader(), chain((run,), runs), raw, size)
                is_sorted_out = True
                continue
            for phy_offset in run.tolist() if isinstance(run, np.ndarray) else run:
                message = self._message_at(phy_offset)
                if message is None or wanted not in record_keys(
                    message.topic, message.properties_raw, message.sys_flag, tags=by_tag
                ):
                    missed += 1
                elif begin_ms <= message.store_timestamp_ms <= end_ms:
                    yield phy_offset, message

    def _place_runs(
        self,
        wanted: str,
        times_ms: tuple[int, int],
        log: tuple[int, int],
        sorting: KeySorting,
        *,
        by_tag: bool,
    ) -> Iterator[PlaceRun]:
        """Yields the places of candidates, newest first."""
        begin_ms, end_ms = times_ms
        start, end = log
        hashed = key_hash(wanted)
        used = self._index()
        gaps = {stop: (begin, stop) for begin, stop in uncovered(used, start, end)}
        ends = [file.header.end_phy_offset for file in used]
        behind = max([start, *(place for place in ends if place < end)])
        if self._indexed is not None and self._indexed[1] == max(ends, default=-1):
            behind = max(behind, self._indexed[0])  # the listing has all files of the open index
        if behind < end:
            yield from self._in_log(hashed, behind, end, by_tag=by_tag)
        for file in reversed(used):
            if file.header.overlaps(begin_ms, end_ms):
                try:
                    for run in iter_place_runs(self._files, file, hashed, begin_ms, end_ms, sorting.rest_of):
                        if isinstance(run, np.ndarray):
                            yield run[(start <= run) & (run < end)]
                        elif start <= run[0] < end:
                            yield run
                except FileNotFoundError:
                    return  # retention removed this file, and all files before it
            if file.header.begin_timestamp_ms < begin_ms:
                return
            if gap := gaps.get(file.header.begin_phy_offset):
                yield from self._in_log(hashed, *gap, by_tag=by_tag)

    def _doubted_runs(self, wanted: str, log: tuple[int, int], *, by_tag: bool) -> Iterator[PlaceRun]:
        """Yields the places of candidates in the stretches of damaged index files, newest first."""
        used = self._index()
        whole = [file for file in used if self._is_undamaged(file)]
        if len(whole) < len(used):
            for stretch in reversed(uncovered(whole, *log)):
                yield from self._in_log(key_hash(wanted), *stretch, by_tag=by_tag)

    def _index(self) -> list[IndexFile]:
        index, _damaged = list_index_files(self._files, self._root, self._memory.geometry)
        if index:
            self._memory.geometry = index[-1].geometry
        return usable(index)

    def _is_undamaged(self, file: IndexFile) -> bool:
        """Returns whether a file is whole; each is looked at once, and again when it is full."""
        name, known = file.path.name, self._memory.whole.get(file.path.name)
        if known is None or (file.is_full and known[0] != file.header):
            known = self._memory.whole[name] = file.header, self._is_whole(file)
        return known[1]

    def _in_log(self, hashed: int, start: int, end: int, *, by_tag: bool) -> Iterator[PlaceRun]:
        """Yields the places of records in a stretch of the log that may have a key, newest first."""
        for place in self._places_in(hashed, start, end, by_tag=by_tag):
            yield (place,)

    def _places_in(self, hashed: int, start: int, end: int, *, by_tag: bool) -> list[int]:
        # The cache has only the keys of a stretch, not its tags.
        known = None if by_tag else self._memory.places_in((start, end), hashed)
        if known is not None:
            return known[::-1]
        reader, places, kept = self._reader(), list[int](), np.empty(0, KEY_ROW)
        windows = LogWindows(reader, self._segment_size_bytes, start, end, self._holes)
        try:
            for rows, _end in iter_key_rows(windows, tags=by_tag):
                places += rows["phy_offset"][rows["key_hash"] == hashed].tolist()
                if not by_tag and len(kept) <= MOST_KEYS:
                    kept = np.concatenate([kept, rows[: MOST_KEYS + 1]])
        finally:
            reader.close()
        if not by_tag:
            self._memory.keep((start, end), kept)
        return places[::-1]

    def _reader(self) -> LogReader:
        return LogReader(self._files, self._root, self._segment_size_bytes)
