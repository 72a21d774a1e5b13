"""Single slots of a queue: the unit in the queue's file, beside the unit that the log gives.

Reads only the requested slots of the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from seglog.cli.ui import options, render
from seglog.storage.directory import queue_directory
from seglog.storage.format.names import SCHEDULE_TOPIC, segment_file_name
from seglog.storage.format.queue import CQ_UNIT, CQ_UNIT_BYTES, PRE_BLANK_BYTES, is_ext_address
from seglog.storage.reads import ExtFiles, FoundExt
from seglog.storage.survey import Survey

_ZEROS: Final = bytes(CQ_UNIT_BYTES)


@dataclass(frozen=True, slots=True)
class Unit:
    """The three values of a unit."""

    phy_offset: int
    size_bytes: int
    tags_code: int


@dataclass(frozen=True, slots=True)
class Slot:
    """One queue offset.

    Attributes:
        file: The file of the slot, relative to the store.
        stored: The unit in the file; None if there is no file, or zeros.
        in_log: The unit that the log gives; None for a slot without message.
        state: ``same``, ``differs``, ``only-file``, ``only-log`` or ``empty``.
    """

    queue_offset: int
    file: str
    position_bytes: int
    stored: Unit | None
    in_log: Unit | None
    state: str
    ext: FoundExt | None
    note: str


class QueueSlots:
    """The slots of one plain queue.

    Args:
        found: The store.
        topic: The queue's topic.
        queue_id: Queue id; the survey has the queue.
    """

    def __init__(self, found: Survey, topic: str, queue_id: int) -> None:
        self._found = found
        self._state = found.queues[topic, queue_id]
        self._directory = queue_directory(topic, queue_id)
        files = found.queue_files.get((topic, queue_id))
        self._sizes = files.sizes if files is not None else {}
        self._file_bytes = found.geometry.queue_file_size_bytes
        self._files = options.reading(found.root)
        self._is_delay = topic == SCHEDULE_TOPIC
        self._ext = ExtFiles(self._files, found.root, topic, queue_id)

    @property
    def range(self) -> tuple[int, int]:
        """The first and the next queue offset, over the log's units and all files."""
        per_file = self._file_bytes // CQ_UNIT_BYTES
        firsts = [first // CQ_UNIT_BYTES for first in self._sizes]
        ends = [first + per_file for first in firsts]
        return min([self._state.first_slot, *firsts]), max([self._state.max_offset, *ends])

    def iter_slots(self, start: int, count: int) -> Iterator[Slot]:
        """Yields slots in order."""
        for queue_offset in range(start, start + count):
            yield self._slot(queue_offset)

    def _slot(self, queue_offset: int) -> Slot:
        position = queue_offset * CQ_UNIT_BYTES
        first = position - position % self._file_bytes
        stored = self._stored(first, position - first)
        in_log = self._in_log(queue_offset)
        shown = stored or in_log
        ext = (
            self._ext.find(shown.tags_code) if shown is not None and is_ext_address(shown.tags_code) else None
        )
        return Slot(
            queue_offset,
            f"{self._directory}/{segment_file_name(first)}",
            position - first,
            stored,
            in_log,
            _state(stored, in_log),
            ext,
            "" if shown is None else self._note(shown, ext),
        )

    def _stored(self, first: int, position: int) -> Unit | None:
        if first not in self._sizes:
            return None
        buffer = bytearray(CQ_UNIT_BYTES)
        try:
            handle = self._files.open(
                self._found.root / self._directory / segment_file_name(first), writable=False
            )
        except FileNotFoundError:  # its owner removed it since
            return None
        try:
            handle.read_into(memoryview(buffer), position)
        finally:
            handle.close()
        return None if buffer == _ZEROS else Unit(*CQ_UNIT.struct.unpack(buffer))

    def _in_log(self, queue_offset: int) -> Unit | None:
        state = self._state
        if not state.first_slot <= queue_offset < state.max_offset:
            return None
        unit = state.units[queue_offset - state.first_slot]
        values = Unit(int(unit["phy_offset"]), int(unit["size_bytes"]), int(unit["tags_code"]))
        return None if values == Unit(0, 0, 0) else values

    def _note(self, unit: Unit, ext: FoundExt | None) -> str:
        if unit.size_bytes == PRE_BLANK_BYTES:
            return "pre-blank: stands for slots before the queue's first"
        notes = []
        end = unit.phy_offset + unit.size_bytes
        if unit.phy_offset < 0 or unit.size_bytes <= 0:
            notes.append("leads nowhere")
        elif end <= self._found.min_phy_offset:
            notes.append("expired: its record was before the log's start")
        elif unit.phy_offset >= self._found.max_phy_offset:
            notes.append("behind the log's end")
        elif any(hole.phy_offset <= unit.phy_offset < hole.end for hole in self._found.holes):
            notes.append("its record cannot be read: a hole of the log")
        if ext is not None:
            notes.append(_ext_text(ext))
        elif self._is_delay and unit.tags_code > 0:
            notes.append(f"due {render.time_text(unit.tags_code)}")
        return "; ".join(notes)


def _state(stored: Unit | None, in_log: Unit | None) -> str:
    if stored == in_log:
        return "empty" if stored is None else "same"
    if stored is None:
        return "only-log"
    return "only-file" if in_log is None else "differs"


def _ext_text(ext: FoundExt) -> str:
    place = f"ext unit at {ext.position_bytes}"
    if ext.unit is None:
        return f"{place} cannot be read"
    stored = render.time_text(ext.unit.store_timestamp_ms)
    bitmap = f", bitmap {ext.unit.bitmap.hex()}" if ext.unit.bitmap else ""
    return f"{place}: tags code {ext.unit.tags_code}, stored {stored}{bitmap}"
