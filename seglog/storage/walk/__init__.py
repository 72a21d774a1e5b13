"""The walk over the commit log: records, holes, and where the log ends.

Holds the one walk, the rows that it yields (numpy, no object per record), the queues that a row belongs to,
and readers that follow the log from a place.

Called by surveys, audits, recovery, seals and the key index.
Truth: bytes that prove themselves: length, place, magic and checksums of a record.
"""

from __future__ import annotations

from seglog.storage.walk.growable_rows import place_of
from seglog.storage.walk.log_scan import MISSING, SHORT, ZERO, Hole, LogScan, Progress

__all__ = [
    "MISSING",
    "SHORT",
    "ZERO",
    "Hole",
    "LogScan",
    "Progress",
    "place_of",
]
