"""What compaction needs to know of the records of a part of the log: facts, read once and spilled.

The task that verifies a split writes the facts of its records beside the store that is being made, 52 bytes
for each, under the place where the records begin. Who decides and who writes reads them there. Where there
is no such file (a plan writes nothing; a guess of where a record begins was wrong), they are read anew.
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
"""A folder in a store that is being made; it is gone before it is one."""
_WINDOW_BYTES: Final = 16 << 20
_ROOM: Final = 1 << 15
"""Records that are walked at a time: their heads are still in the processor's caches when they are read."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the facts of a store depend on; known before anything of it is read.

    Attributes:
        root: The store directory.
        geometry: Lengths of its files.
        compacted: Topics whose keys are compared.
        erased: Keys that are to be erased, by topic.
        salt: Of the hashes of keys.
    """

    root: Path
    geometry: StoreGeometry
    compacted: frozenset[str]
    erased: Mapping[str, frozenset[bytes]]
    salt: int

    def facts(self, window: memoryview, phy_offset: int, rows: Rows, queues: Sequence[Key]) -> Facts:
        """Returns the facts of records that a stretch of a segment holds.

        Args:
            window: The bytes.
            phy_offset: Where they begin.
            rows: ``(n,) ROW``.
            queues: Topic and number by the rows' ``queue``.
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
        """Marks what has a key to be erased; a step of Python for those records only that hold its text."""
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
        asked: What is asked of the store.
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
        """Returns the facts of the records since the last call, and the queues that they name."""
        found = np.concatenate([np.zeros(0, FACT), *self._parts])
        self._parts.clear()
        return found, self._names


def are(facts: Facts, bit: Bit) -> Mask:
    """Returns of which records something is so."""
    found: Mask = facts["bits"] & bit != 0
    return found


def facts_between(files: Files, asked: Asked, start: int, end: int) -> tuple[Facts, list[Key]]:
    """Returns the facts of the records that begin in a stretch of one segment, and the queues that they name.

    Neither checksums nor queues are looked at; that is what makes it quick.

    Args:
        files: Where the store is.
        asked: What is asked of it.
        start: Where the first record begins, as an audit found it.
        end: Where they end.
    """
    queues = QueueTable()
    with closing(LogReader(files, asked.root, asked.geometry.segment_size_bytes)) as reader:
        parts = [
            asked.facts(window, phy_offset, rows, queues.names)
            for window, phy_offset, rows in _walk(reader, asked, start, end, queues)
        ]
    return np.concatenate([np.zeros(0, FACT), *parts]), queues.names


def save_facts(files: RestoringFiles, staged: Path, start: int, facts: Facts, names: Sequence[Key]) -> None:
    """Writes the facts of the records from a place on; one of several attempts wins, all write the same."""
    head = json.dumps(names).encode()
    path = _path(staged, start)
    attempt = path.with_name(f"{path.name}{ATTEMPT}-{uuid.uuid4().hex}")
    with closing(files.create(attempt, 0)) as file:
        file.write_at(I64.pack(len(head)) + head, 0)
        file.write_at(facts.data.cast("B"), I64.size + len(head))
    files.rename(attempt, path)


def load_facts(files: Files, staged: Path, start: int) -> tuple[Facts, list[Key]] | None:
    """Returns what :func:`save_facts` wrote; None if nothing was."""
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
    """Yields records, each time with a stretch of the segment that holds them, and where that begins."""
    # Keys to be erased are looked for in Python, which a map would end if another process cut its file.
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
    """Returns the keys of a record: all of KEYS, and what is between its spaces."""
    row = examine(memoryview(record), 0, phy_offset, verify=False)
    if isinstance(row, Damage):
        return set()
    keys = props.find_property(record[row.properties_at :], props.KEYS.encode()) or b""
    return {keys, *keys.split(b" ")}


def _path(staged: Path, start: int) -> Path:
    return staged / FACTS / str(start)
