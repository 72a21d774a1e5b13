"""Tags codes of queues whose units hold addresses in ConsumeQueueExt instead.

Read when a filter asks for them, with ``pread``: the files belong to RocketMQ and are never written here.
A unit that cannot be read, or an address outside of all files, costs a look at the record, which is right.

Source: ``ConsumeQueue.java getExt``, ``ConsumeQueueExt.java get``.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.files import Files
from seglog.storage.format.consume_queue import PRE_BLANK_BYTES, Units
from seglog.storage.format.consume_queue_ext import (
    DEFAULT_EXT_FILE_BYTES,
    EXT_HEAD_BYTES,
    MAX_EXT_ADDRESS,
    MAX_EXT_UNIT_BYTES,
    decode_ext_unit,
    ext_position,
)
from seglog.storage.format.names import CONSUME_QUEUE_EXT, parse_segment_file_name, segment_file_name
from seglog.storage.format.record import Damage, examine
from seglog.storage.geometry import infer_file_size
from seglog.storage.get import Log


class ExtCodes:
    """Resolves addresses to tags codes.

    Args:
        files: Where the store is.
        root: The store directory.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._root = root

    def resolve(self, topic: str, queue_id: int, units: Units, log: Log) -> npt.NDArray[np.int64]:
        """Returns the tags codes of units of a queue, ``(n,)`` for ``(n,)``."""
        codes = units["tags_code"].astype(np.int64)
        addressed = np.flatnonzero((codes <= MAX_EXT_ADDRESS) & (units["size_bytes"] > 0))
        if not len(addressed):
            return codes
        directory = self._root / CONSUME_QUEUE_EXT / topic / str(queue_id)
        sizes = [
            (first, entry.size_bytes)
            for entry in self._files.list_dir(directory)
            if not entry.is_dir and (first := parse_segment_file_name(entry.name)) is not None
        ]
        size = infer_file_size(sizes, DEFAULT_EXT_FILE_BYTES)
        for index in addressed.tolist():
            code = self._stored_code(directory, size, int(codes[index]))
            codes[index] = _record_code(units[index], log) if code is None else code
        return codes

    def _stored_code(self, directory: Path, file_size_bytes: int, address: int) -> int | None:
        first, position = divmod(ext_position(address), file_size_bytes)
        path = directory / segment_file_name(first * file_size_bytes)
        buffer = memoryview(bytearray(MAX_EXT_UNIT_BYTES))
        try:
            with closing(self._files.open(path, writable=False)) as handle:
                count = handle.read_into(buffer[:EXT_HEAD_BYTES], position)
                count += handle.read_into(buffer[EXT_HEAD_BYTES:], position + EXT_HEAD_BYTES)
            return decode_ext_unit(buffer[:count]).tags_code
        except (CorruptError, OSError):
            return None


def _record_code(unit: np.void, log: Log) -> int:
    phy_offset, size = int(unit["phy_offset"]), int(unit["size_bytes"])
    record = log.read(phy_offset, size) if phy_offset >= 0 and size < PRE_BLANK_BYTES else None
    row = None if record is None else examine(record, 0, phy_offset, verify=False)
    return 0 if row is None or isinstance(row, Damage) else row.tags_code
