"""The consume-queue unit: 20 bytes that lead from a queue offset to a record of the commit log.

Truth: none. Units are derived from the commit log and can be rebuilt from it at any time; where the two
disagree, the log is right. Unit k of a queue is at byte 20·k of the endless queue, whose files are
named by the byte they start with.

Source: ``store/.../ConsumeQueue.java CQ_STORE_UNIT_SIZE``. Its comment calls the second field
"Body Size"; what it stores, and what readers need, is the size of the whole record.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import Field, Layout

CQ_UNIT: Final = Layout(
    "ConsumeQueue unit",
    "store/.../ConsumeQueue.java CQ_STORE_UNIT_SIZE",
    (
        Field("phy_offset", "i64", "bytes from log start", "where the record starts in the commit log"),
        Field("size_bytes", "i32", "bytes", "the whole record, its own size field included"),
        Field(
            "tags_code", "i64", "–", "Java hash of the tag; in SCHEDULE_TOPIC_XXXX the delivery time in ms"
        ),
    ),
)

CQ_UNIT_BYTES: Final = CQ_UNIT.size_bytes
DEFAULT_QUEUE_FILE_BYTES: Final = 300_000 * CQ_UNIT_BYTES
PRE_BLANK_BYTES: Final = 0x7FFF_FFFF
"""``size_bytes`` of the units that fill a queue file below the queue's first offset."""

Units = npt.NDArray[np.void]


def in_use(units: Units) -> npt.NDArray[np.bool_]:
    """Returns which units lead somewhere: ``phy_offset >= 0`` and ``size_bytes > 0``; pre-blanks count."""
    used: npt.NDArray[np.bool_] = (units["phy_offset"] >= 0) & (units["size_bytes"] > 0)
    return used


def pre_blanks(count: int) -> Units:
    """Returns ``count`` units of the kind that stands for slots that hold no message."""
    units = np.zeros(count, CQ_UNIT.dtype)
    units["size_bytes"] = PRE_BLANK_BYTES
    return units
