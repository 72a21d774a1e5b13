"""Units of ConsumeQueueExt, and the tags codes of queues whose own units hold addresses of such units.

The files are read with ``pread`` when a filter or a reader needs them; they belong to RocketMQ and are never
written here. If a unit cannot be read, or an address is outside of all files, the filter takes the tags code
from the record, which is always right.

Source: ``ConsumeQueue.java getExt``, ``ConsumeQueueExt.java get``.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.directory import infer_file_size, numbered_files, queue_directory
from seglog.storage.files.files import Files
from seglog.storage.format.names import CONSUME_QUEUE_EXT, segment_file_name
from seglog.storage.format.queue.consume_queue import PRE_BLANK_BYTES, Units
from seglog.storage.format.queue.consume_queue_ext import (
    DEFAULT_EXT_FILE_BYTES,
    MAX_EXT_ADDRESS,
    MAX_EXT_UNIT_BYTES,
    ExtUnit,
    decode_ext_unit,
    ext_position,
)
from seglog.storage.format.record.record import Damage, examine
from seglog.storage.reads.get import RecordSource


@dataclass(frozen=True, slots=True)
class FoundExt:
    """The ext unit at an address.

    Attributes:
        position_bytes: Position in the sequence of the queue's ext files.
        file: The file of that position, relative to the store; it may be missing.
        unit: The unit; None if it cannot be read.
    """

    position_bytes: int
    file: str
    unit: ExtUnit | None


class ExtFiles:
    """The ext files of one queue, listed at construction.

    Args:
        files: The file layer of the store.
        root: The store directory.
        topic: The queue's topic.
        queue_id: Its number.
    """

    def __init__(self, files: Files, root: Path, topic: str, queue_id: int) -> None:
        self._files = files
        self._root = root
        self._directory = queue_directory(topic, queue_id, CONSUME_QUEUE_EXT)
        sizes = numbered_files(files, root / self._directory)
        self._file_size_bytes = infer_file_size(sizes.items(), DEFAULT_EXT_FILE_BYTES)

    def find(self, address: int) -> FoundExt:
        """Returns the unit at an address, a tags code up to :data:`MAX_EXT_ADDRESS`."""
        position = ext_position(address)
        in_file = position % self._file_size_bytes
        name = f"{self._directory}/{segment_file_name(position - in_file)}"
        buffer = memoryview(bytearray(MAX_EXT_UNIT_BYTES))
        try:
            with closing(self._files.open(self._root / name, writable=False)) as handle:
                count = handle.read_into(buffer, in_file)
            return FoundExt(position, name, decode_ext_unit(buffer[:count]))
        except (CorruptError, OSError):
            return FoundExt(position, name, None)


class ExtCodes:
    """Resolves addresses to tags codes.

    Args:
        files: Where the store is.
        root: The store directory.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._root = root

    def resolve(self, topic: str, queue_id: int, units: Units, log: RecordSource) -> npt.NDArray[np.int64]:
        """Returns the tags codes of units of a queue, ``(n,)`` for ``(n,)``."""
        codes = units["tags_code"].astype(np.int64)
        addressed = np.flatnonzero((codes <= MAX_EXT_ADDRESS) & (units["size_bytes"] > 0))
        if not len(addressed):
            return codes
        ext = ExtFiles(self._files, self._root, topic, queue_id)
        for index in addressed.tolist():
            unit = ext.find(int(codes[index])).unit
            codes[index] = _record_code(units[index], log) if unit is None else unit.tags_code
        return codes


def _record_code(unit: np.void, log: RecordSource) -> int:
    phy_offset, size = int(unit["phy_offset"]), int(unit["size_bytes"])
    record = log.read(phy_offset, size) if phy_offset >= 0 and size < PRE_BLANK_BYTES else None
    row = None if record is None else examine(record, 0, phy_offset, verify=False)
    return 0 if row is None or isinstance(row, Damage) else row.tags_code
