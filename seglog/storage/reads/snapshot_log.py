"""The log of a store opened for reading, through ``pread``: its owner may cut the files at any moment."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.log_files import LogReader
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.log.commit_log import HoleMap
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.queue_offsets import with_queue_offset


class SnapshotLog:
    """The log at the moment of the last look.

    Attributes:
        holes: Its unreadable stretches.
        mended: The right queue offset by physical offset, for records whose own field has a wrong one.
        withheld: Physical offsets of records that are not served, because a repair would change them.
        min_phy_offset: Physical offset of its first byte, -1 without a file.
        end_phy_offset: Its end at the last look. Queues may have units with places behind it: those of
            messages that were lost with the end of the log.
        last_phy_offset: Physical offset of the last record, -1 before the first.
        maps: None: nothing is mapped.
    """

    maps = None

    def __init__(self, reader: LogReader, found: Survey) -> None:
        self._reader = reader
        self.min_phy_offset = found.min_phy_offset
        self.end_phy_offset = found.max_phy_offset
        self.last_phy_offset = found.scan.last_phy_offset
        self._lock = threading.Lock()
        self.holes = HoleMap(found.holes)
        self.mended: Mapping[int, int] = found.mended
        self.withheld: frozenset[int] = found.withheld

    @property
    def tail(self) -> SnapshotLog:
        """Its end: the object itself, which has the same attributes."""
        return self

    def follow(self, found: Survey) -> None:
        """Moves on to the end of the log that a survey found."""
        self.holes = HoleMap(found.holes)
        self.end_phy_offset = found.max_phy_offset
        self.last_phy_offset = found.scan.last_phy_offset

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of a record's bytes; None if they cannot be read any more."""
        if phy_offset + size_bytes > self.end_phy_offset or self.holes.covers(phy_offset):
            return None
        if phy_offset in self.withheld:
            return None
        with self._lock:
            record = self._reader.read(phy_offset, size_bytes)
        if len(record) != size_bytes:
            return None
        if phy_offset in self.mended and size_bytes >= MIN_RECORD_BYTES:
            return with_queue_offset(record, self.mended[phy_offset])
        return record

    def file_of(self, _phy_offset: int) -> None:
        """Returns None: no file is mapped."""

    def read_run(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of neighbouring records in one piece; None if the caller must read one by one."""
        if phy_offset + size_bytes > self.end_phy_offset or self.holes or self.mended or self.withheld:
            return None
        return self.stretch(phy_offset, size_bytes)

    def recheck(self) -> None:
        """Does nothing: each read is a system call, which sees the file's length."""

    def can_serve(
        self, phy_offsets: npt.NDArray[np.int64], _sizes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Returns which of many records are served; the opening examined all of them."""
        if not self.withheld:
            return np.ones(len(phy_offsets), np.bool_)
        return ~np.isin(phy_offsets, list(self.withheld))

    def stretch(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a copy of any bytes of one file; None if they cannot be read any more."""
        with self._lock:
            found = self._reader.read(phy_offset, size_bytes)
        return found if len(found) == size_bytes else None

    def close(self) -> None:
        """Closes the open file."""
        with self._lock:
            self._reader.close()
