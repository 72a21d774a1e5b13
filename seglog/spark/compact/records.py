"""Facts that a compaction needs of the records of a part of the log: read once and written to files.

The task that verifies a split writes the facts of its records beside the new store, 52 bytes for each record,
in a file named by the place where the records begin. The tasks that decide and write read the facts there. If
there is no such file (a plan writes none; or the split's first record was guessed wrong), they read the
records.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from seglog.spark.compact.placeholders import MARK
from seglog.spark.making.spills import ATTEMPT, Key
from seglog.storage.directory import MOST_RECORD_BYTES, LogReader, StoreGeometry
from seglog.storage.files import Files, RestoringFiles
from seglog.storage.format.layout import I64
from seglog.storage.format.record import FILLER_TOPIC, Damage, examine
from seglog.storage.format.record import properties as props
from seglog.storage.kernels import walk_into
from seglog.storage.kernels.gather import Mask
from seglog.storage.kernels.record_facts import (
    ASKS_FILLER,
    ASKS_KEYS,
    FACT,
    Bit,
    Facts,
    record_facts,
)
from seglog.storage.kernels.walk import ROW, QueueTable, Rows, Stop, walk

FACTS: Final = ".facts"
"""A folder in the new store, which is removed before the store is complete."""
_WINDOW_BYTES: Final = 16 << 20
_ROOM: Final = 1 << 15
"""Number of records that are walked at a time: their heads are still in the processor's caches when read."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The settings that the facts of a store depend on; known before anything of the store is read.

    Attributes:
        root: The store directory.
        geometry: Lengths of its files.
        compacted: Topics whose keys are compared.
        erased: Keys that must be erased, by topic.
        salt: Salt of the hashes of keys.
    """

    root: Path
    geometry: StoreGeometry
    compacted: frozenset[str]
    erased: Mapping[str, frozenset[bytes]]
    salt: int

    def facts(self, window: memoryview, phy_offset: int, rows: Rows, queues: Sequence[Key]) -> Facts:
        """Returns the facts of records in a stretch of a segment.

        Args:
            window: The bytes.
            phy_offset: Physical offset of the first byte.
            rows: ``(n,) ROW``.
            queues: Topic and queue id by the rows' ``queue``.
        """
        asks = bytes(
            ASKS_KEYS * (topic in self.compacted) | ASKS_FILLER * (topic == FILLER_TOPIC)
            for topic, _queue_id in queues
        )
        facts = record_facts(window, phy_offset, rows, asks, self.salt, MARK)
        if self.erased:
            self._mark_erased(facts, window, phy_offset, queues)
        return facts

    def _mark_erased(self, facts: Facts, window: memoryview, phy_offset: int, queues: Sequence[Key]) -> None:
        """Marks records with a key to be erased; Python reads only records that contain the key's text."""
        if not len(facts):
            return
        begin = int(facts["phy_offset"][0])
        data = bytes(
            window[begin - phy_offset : int(facts["phy_offset"][-1]) - phy_offset + MOST_RECORD_BYTES]
        )
        at = facts["phy_offset"] - begin
        single = are(facts, Bit.IS_SINGLE)
        for key in frozenset[bytes]().union(*self.erased.values()):
            place = data.find(key)
            while place >= 0:
                row = int(np.searchsorted(at, place, "right")) - 1
                topic = queues[int(facts["queue"][row])][0]
                if single[row] and key in self.erased.get(topic, ()):
                    start = int(at[row])
                    record = data[start : start + int(facts["size_bytes"][row])]
                    if key in _keys_of(record, int(facts["phy_offset"][row])):
                        facts["bits"][row] |= Bit.IS_ERASED
                place = data.find(key, place + 1)


@dataclass(slots=True)
class FactTaker:
    """Takes the facts of records while a scan verifies them; a taker of :class:`SplitScan`.

    Attributes:
        asked: The settings of the facts.
    """

    asked: Asked
    _parts: list[Facts] = field(default_factory=list)
    _names: Sequence[Key] = ()

    def take(self, memory: memoryview, phy_offset: int, rows: Rows, queues: Sequence[Key]) -> None:
        """Takes the next records."""
        if len(rows):
            self._parts.append(self.asked.facts(memory, phy_offset, rows, queues))
            self._names = queues

    def facts(self) -> tuple[Facts, Sequence[Key]]:
        """Returns the facts of the records since the last call, and the queues of these records."""
        found = np.concatenate([np.zeros(0, FACT), *self._parts])
        self._parts.clear()
        return found, self._names


def are(facts: Facts, bit: Bit) -> Mask:
    """Returns which records have a bit set."""
    found: Mask = facts["bits"] & bit != 0
    return found


def facts_between(files: Files, asked: Asked, start: int, end: int) -> tuple[Facts, list[Key]]:
    """Returns the facts of the records that begin in a stretch of one segment, and their queues.

    Neither checksums nor queues are read, which makes it fast.

    Args:
        files: Access to the store.
        asked: The settings of the facts.
        start: Where the first record begins, from an audit.
        end: Where the records end.
    """
    queues = QueueTable()
    with closing(LogReader(files, asked.root, asked.geometry.segment_size_bytes)) as reader:
        parts = [
            asked.facts(window, phy_offset, rows, queues.names)
            for window, phy_offset, rows in _walk(reader, asked, start, end, queues)
        ]
    return np.concatenate([np.zeros(0, FACT), *parts]), queues.names


def save_facts(files: RestoringFiles, staged: Path, start: int, facts: Facts, names: Sequence[Key]) -> None:
    """Writes the facts of the records from a place on; if several tasks write them, any one may win."""
    head = json.dumps(names).encode()
    path = _path(staged, start)
    attempt = path.with_name(f"{path.name}{ATTEMPT}-{uuid.uuid4().hex}")
    with closing(files.create(attempt, 0)) as file:
        file.write_at(I64.pack(len(head)) + head, 0)
        file.write_at(facts.data.cast("B"), I64.size + len(head))
    files.rename(attempt, path)


def load_facts(files: Files, staged: Path, start: int) -> tuple[Facts, list[Key]] | None:
    """Returns the facts that :func:`save_facts` wrote; None if it wrote none."""
    path = _path(staged, start)
    if not files.exists(path):
        return None
    with closing(files.open(path, writable=False)) as file:
        data = np.empty(file.size_bytes, np.uint8).data
        file.read_into(data, 0)
    (head_bytes,) = I64.unpack_from(data)
    head_end = I64.size + head_bytes
    names = [(topic, queue_id) for topic, queue_id in json.loads(bytes(data[I64.size : head_end]))]
    return np.frombuffer(data, FACT, offset=head_end), names


def _walk(
    reader: LogReader, asked: Asked, start: int, end: int, queues: QueueTable
) -> Iterator[tuple[memoryview, int, Rows]]:
    """Yields records, each time with the stretch of the segment that holds them, and its start."""
    # Keys to be erased are searched in Python; a map would kill the process if another one cut the file.
    memory = None if walk_into.native_into is None or asked.erased else reader.map(start)
    segment = start - start % asked.geometry.segment_size_bytes
    position = start
    if memory is not None:
        room: Rows = np.empty(_ROOM, ROW)
        while position < end:
            walked = walk_into.walk_into(
                memory,
                segment,
                position - segment,
                end - segment,
                queues,
                room,
                None,
                verify=False,
                tags=False,
            )
            if not walked.row_count:
                return
            yield memory, segment, room[: walked.row_count]
            reader.let_go(position, segment + walked.position)
            position = segment + walked.position
    segment_end = segment + asked.geometry.segment_size_bytes
    while position < end:
        size = min(max(end - position, 0) + MOST_RECORD_BYTES, _WINDOW_BYTES, segment_end - position)
        window = reader.read(position, size)
        result = walk(window, position, segment_end, queues, verify=False)
        owned = int(np.searchsorted(result.rows["phy_offset"], end))
        if owned:
            yield window, position, result.rows[:owned]
        if not result.position or result.stop is not Stop.MORE:
            return
        position += result.position


def _keys_of(record: bytes, phy_offset: int) -> set[bytes]:
    """Returns the keys of a record: the whole of KEYS, and its words between spaces."""
    row = examine(memoryview(record), 0, phy_offset, verify=False)
    if isinstance(row, Damage):
        return set()
    keys = props.find_property(record[row.properties_at :], props.KEYS.encode()) or b""
    return {keys, *keys.split(b" ")}


def _path(staged: Path, start: int) -> Path:
    return staged / FACTS / str(start)
