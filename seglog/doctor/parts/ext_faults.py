"""Finds units of ConsumeQueueExt that are missing, or that belong to other messages than their queue units.

A unit of it repeats the message's store time and tags code, so the record in the log shows whether the unit
belongs to it. The bitmap is not repeated anywhere.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seglog.storage.directory import LogReader
from seglog.storage.files import Files
from seglog.storage.format.queue import MAX_EXT_ADDRESS, Units
from seglog.storage.format.record import Damage, examine
from seglog.storage.overlay import is_message
from seglog.storage.reads import ExtFiles


class ExtFaults(NamedTuple):
    """Faults of the filter data of a queue's units.

    Attributes:
        addressed: Number of units that lead to filter data.
        lost: Indices of units whose filter data is missing.
        wrong: Indices of units that lead to filter data of another message.
        lost_file: File of the first missing one, relative to the store; empty without one.
        wrong_file: File of the first wrong one.
    """

    addressed: int
    lost: tuple[int, ...]
    wrong: tuple[int, ...]
    lost_file: str
    wrong_file: str


def ext_faults(
    files: Files, root: Path, queue: tuple[str, int], units: Units, segment_size_bytes: int
) -> ExtFaults:
    """Checks the filter data of some units.

    Args:
        files: Access to the store.
        root: The store directory.
        queue: Topic and queue id.
        units: Units of the queue; ``(n,)``, in their order.
        segment_size_bytes: Length of the log's files.
    """
    addressed = np.flatnonzero(is_message(units) & (units["tags_code"] <= MAX_EXT_ADDRESS)).tolist()
    if not addressed:
        return ExtFaults(0, (), (), "", "")
    ext = ExtFiles(files, root, *queue)
    lost: dict[int, str] = {}
    wrong: dict[int, str] = {}
    with closing(LogReader(files, root, segment_size_bytes)) as reader:
        for row in addressed:
            unit = units[row]
            found = ext.find(int(unit["tags_code"]))
            if found.unit is None:
                lost[row] = found.file
                continue
            phy_offset, size_bytes = int(unit["phy_offset"]), int(unit["size_bytes"])
            if phy_offset < 0 or size_bytes <= 0:
                continue
            record = examine(reader.read(phy_offset, size_bytes), 0, phy_offset, verify=False)
            # A message that cannot be read is no evidence about its filter data.
            if not isinstance(record, Damage) and (found.unit.store_timestamp_ms, found.unit.tags_code) != (
                record.store_timestamp_ms,
                record.tags_code,
            ):
                wrong[row] = found.file
    return ExtFaults(
        len(addressed),
        tuple(lost),
        tuple(wrong),
        next(iter(lost.values()), ""),
        next(iter(wrong.values()), ""),
    )
