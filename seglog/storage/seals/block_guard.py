"""Checks the part of the log that an open did not walk, block by block, before it is served.

An open that starts at a recovery point has not read the log below it. Every block of 64 KiB there has a
checksum, in the seal of its segment or in the point. The block is compared with it when one of its records is
first read: 10 µs once for some sixty messages, and nothing when they are read again. Blocks are read with
``pread``, never through a map: a sector that cannot be read then raises an error here, instead of ending the
process.

A block with another checksum is not believed, but its records may still be whole: each is checked by itself
when it is read, and must be the record that its queue leads to. A record that fails is treated like a hole.
The next open for writing walks the whole log and reports the damage.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.ours.recovery_point import RecoveryPoint
from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES, block_count, checksum
from seglog.storage.format.record.record import FILLER, MIN_RECORD_BYTES, Damage, RecordRow, examine
from seglog.storage.seals.seal_check import segment_path
from seglog.storage.seals.seal_files import read_seal

_UNKNOWN: Final = 0
_GOOD: Final = 1
_BAD: Final = 2

Ints = npt.NDArray[np.int64]
Crcs = npt.NDArray[np.uint32]


class BlockSums:
    """The checksums of all blocks below a recovery point.

    Args:
        files: Where the store is.
        root: The store directory.
        point: The point.
    """

    def __init__(self, files: Files, root: Path, point: RecoveryPoint) -> None:
        self._files = files
        self._root = root
        self._point = point

    def of_segment(self, first_phy_offset: int) -> Crcs:
        """Returns the CRC-32C of each block of a segment; the last segment ends at the point.

        Raises:
            CorruptError: Its seal cannot be read, or is that of another segment.
            FileNotFoundError: It has no seal.
        """
        point = self._point
        if first_phy_offset >= point.blocks_from:
            count = block_count(point.segment_bytes)
            at = (first_phy_offset - point.blocks_from) // point.segment_bytes * count
            return point.block_crcs[at : at + count]
        seal = read_seal(self._files, self._root, first_phy_offset)
        if seal.segment_bytes != point.segment_bytes:
            raise CorruptError("seal-lengths", expected=point.segment_bytes, found=seal.segment_bytes)
        return seal.blocks["crc32c"].astype(np.uint32)


class BlockGuard:
    """Decides which records of the log below a recovery point can be served.

    Attributes:
        end_phy_offset: The point; the log behind it was walked.
        sound_segments: First offsets of segments whose blocks are all checked.

    Thread rule: any thread.
    """

    def __init__(self, files: Files, root: Path, point: RecoveryPoint) -> None:
        self.end_phy_offset = point.end_phy_offset
        self.sound_segments: set[int] = set()
        self._segment_bytes = point.segment_bytes
        self._sums = BlockSums(files, root, point)
        self._reader = LogReader(files, root, point.segment_bytes)
        self._lock = threading.Lock()
        self._states: dict[int, tuple[bytearray, Crcs]] = {}
        self._findings: list[Finding] = []
        self._min_phy_offset = 0
        self._is_placed: Callable[[RecordRow, int], bool] = lambda _record, _phy_offset: True
        self._on_damage: Callable[[], None] = lambda: None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The blocks with a wrong checksum."""
        return tuple(self._findings)

    def serve(self, is_placed: Callable[[RecordRow, int], bool], on_damage: Callable[[], None]) -> None:
        """Sets the functions that check queues and that are called for damage.

        Args:
            is_placed: Returns whether the queue that a record names leads to the record.
            on_damage: Called at the first block with a wrong checksum.
        """
        self._is_placed, self._on_damage = is_placed, on_damage

    def expire(self, phy_offset: int) -> None:
        """Notes that the log begins at a segment now: missing bytes below are no damage."""
        self._min_phy_offset = phy_offset

    def is_sound(self, start: int, end: int) -> bool:
        """Returns whether the bytes of ``[start, end)``, a stretch of one segment, are undamaged."""
        end = min(end, self.end_phy_offset)
        if start >= end:
            return True
        first = start - start % self._segment_bytes
        low, high = (start - first) // SEAL_BLOCK_BYTES, -(-(end - first) // SEAL_BLOCK_BYTES)
        states = self._states_of(first)
        if states.find(_UNKNOWN, low, high) >= 0:
            self._verify(first, low, high)
        return states.find(_BAD, low, high) < 0

    def sound_stretch(self, phy_offset: int) -> tuple[int, int]:
        """Returns the stretch around a checked place whose blocks are all checked, within its segment."""
        first = phy_offset - phy_offset % self._segment_bytes
        segment_end = first + self._segment_bytes
        if first >= self.end_phy_offset:
            self.sound_segments.add(first)
            return first, segment_end
        states = self._states_of(first)
        if states.count(_GOOD) == len(states):
            self.sound_segments.add(first)
            return first, segment_end
        if phy_offset >= self.end_phy_offset:
            return self.end_phy_offset, segment_end
        at = (phy_offset - first) // SEAL_BLOCK_BYTES
        low = max(states.rfind(_UNKNOWN, 0, at), states.rfind(_BAD, 0, at)) + 1
        ends = [found for found in (states.find(_UNKNOWN, at), states.find(_BAD, at)) if found >= 0]
        return first + low * SEAL_BLOCK_BYTES, first + min(ends) * SEAL_BLOCK_BYTES if ends else segment_end

    def states(self, first_offset: int) -> bytearray:
        """Returns the state of each block of a segment that begins below the point; reads change it."""
        return self._states_of(first_offset)

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of a record that proves itself; None if no such record starts there.

        For records of blocks with a wrong checksum.
        """
        try:
            with self._lock:
                head = self._reader.read(phy_offset, FILLER.size_bytes)
                size = FILLER.struct.unpack(head)[0] if len(head) == FILLER.size_bytes else 0
                # A damaged size may be any number, and must not cause a read of a gigabyte.
                data = self._reader.read(phy_offset, size) if size >= MIN_RECORD_BYTES else head
        except OSError:
            return None
        record = examine(data, 0, phy_offset)
        if isinstance(record, Damage) or record.size_bytes < size_bytes:
            return None
        return data[:size_bytes].toreadonly() if self._is_placed(record, phy_offset) else None

    def can_serve(self, phy_offsets: Ints, sizes: Ints) -> npt.NDArray[np.bool_]:
        """Returns which of many records can be served; ``(n,)`` for ``(n,)``."""
        served = np.ones(len(phy_offsets), np.bool_)
        below = np.flatnonzero(phy_offsets < self.end_phy_offset)
        if not len(below):
            return served
        starts, ends = phy_offsets[below], phy_offsets[below] + sizes[below]
        numbers = starts // self._segment_bytes
        for number in np.unique(numbers).tolist():
            here = numbers == number
            if self.is_sound(int(starts[here].min()), int(ends[here].max())):
                continue
            for at in below[here].tolist():
                start, size = int(phy_offsets[at]), int(sizes[at])
                served[at] = self.is_sound(start, start + size) or self.read(start, size) is not None
        return served

    def damaged_segments(self, start: int, end: int) -> list[int]:
        """Returns the first offsets of the segments between ``start`` and ``end`` that are damaged."""
        found: list[int] = []
        end = min(end, self.end_phy_offset)
        while start < end:
            first = start - start % self._segment_bytes
            following = min(end, first + self._segment_bytes)
            if not self.is_sound(start, following):
                found.append(first)
            start = following
        return found

    def close(self) -> None:
        """Closes the open file."""
        with self._lock:
            self._reader.close()

    def _states_of(self, first: int) -> bytearray:
        known = self._states.get(first)
        if known is not None:
            return known[0]
        with self._lock:
            if first not in self._states:
                count = block_count(min(self._segment_bytes, self.end_phy_offset - first))
                try:
                    crcs = self._sums.of_segment(first)
                    if len(crcs) < count:  # a forged point, whose own checksum is right
                        raise CorruptError("block-sums", expected=count, found=len(crcs))
                    states = bytearray(count)
                except (CorruptError, OSError):
                    crcs = np.zeros(0, np.uint32)
                    states = bytearray([_BAD]) * count
                    self._note(first, 0, count, "no checksums: the seal cannot be read")
                self._states[first] = states, crcs
        return self._states[first][0]

    def _verify(self, first: int, low: int, high: int) -> None:
        with self._lock:
            states, crcs = self._states[first]
            for block in range(low, high):
                if states[block] != _UNKNOWN:
                    continue
                start = first + block * SEAL_BLOCK_BYTES
                end = min(start + SEAL_BLOCK_BYTES, first + self._segment_bytes, self.end_phy_offset)
                try:
                    found = checksum(self._reader.read(start, end - start))
                except OSError:
                    found = -1
                if found == int(crcs[block]):
                    states[block] = _GOOD
                else:
                    states[block] = _BAD
                    said = "a read error" if found < 0 else f"crc32c {found:#010x}"
                    self._note(first, block, 1, said, f"crc32c {int(crcs[block]):#010x}")

    def _note(self, first: int, block: int, count: int, found: str, expected: str = "") -> None:
        if first < self._min_phy_offset:
            return  # retention removed the segment during the read
        position = block * SEAL_BLOCK_BYTES
        size = min(count * SEAL_BLOCK_BYTES, self._segment_bytes - position)
        self._findings.append(
            Finding("log-block-changed", segment_path(first), position, size, expected, found)
        )
        if len(self._findings) == 1:
            self._on_damage()
