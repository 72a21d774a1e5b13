"""Which units of ConsumeQueueExt are gone, or are not those of the messages whose queue units lead to them.

A unit of it repeats the message's store time and tags code, so a record of the log shows whether it is its
own. The bitmap is repeated nowhere.
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
    """What is wrong with the filter data of a queue's units.

    Attributes:
        addressed: How many of the units lead to filter data.
        lost: Rows of those without any.
        wrong: Rows of those that lead to that of another message.
        lost_file: Where the first lost one should be, relative to the store; empty without one.
        wrong_file: Where the first wrong one is.
    """

    addressed: int
    lost: tuple[int, ...]
    wrong: tuple[int, ...]
    lost_file: str
    wrong_file: str


def ext_faults(
    files: Files, root: Path, queue: tuple[str, int], units: Units, segment_size_bytes: int
) -> ExtFaults:
    """Looks at the filter data of some units.

    Args:
        files: Where the store is.
        root: The store directory.
        queue: Topic and number.
        units: Of the queue; ``(n,)``, in their order.
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
            # A message that cannot be read says nothing about its filter data.
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
