"""Whether an index file is of the log that is beside it: its header has the times of the records it names.

An index of another store, or of another life of this one, may lead to the same places, and its keys say
nothing of the records that are there now.
"""

from __future__ import annotations

from seglog.storage.directory.log_files import LogReader
from seglog.storage.format.index.index import IndexHeader
from seglog.storage.format.record import is_tombstone
from seglog.storage.walk.log_records import record_at


def is_of_log(reader: LogReader, header: IndexHeader, log: range) -> bool:
    """Returns whether a file begins with a record of the log, to the millisecond.

    Where the log has that record no more, the last one decides, which may be of a later life.

    Args:
        reader: The log.
        header: Of the file.
        log: Where the log starts and ends.
    """
    for phy_offset, stated_ms in (
        (header.begin_phy_offset, header.begin_timestamp_ms),
        (header.end_phy_offset, header.end_timestamp_ms),
    ):
        found = record_at(reader, phy_offset) if phy_offset in log else None
        if found is not None and not is_tombstone(found[0]):
            return found[1].store_timestamp_ms == stated_ms
    return False


def store_ms_at(reader: LogReader, phy_offset: int) -> int | None:
    """Returns the store time of the record that starts at a place.

    None if none does, or a tombstone: the lost record may have been stored at another time.
    """
    found = record_at(reader, phy_offset)
    return None if found is None or is_tombstone(found[0]) else found[1].store_timestamp_ms
