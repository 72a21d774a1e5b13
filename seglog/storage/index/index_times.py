"""Whether an index file belongs to the log beside it: its header must have the times of the log's records.

The entries of an index of another store, or of an earlier log of this store, may lead to the same places, but
its keys are not those of the records there now.
"""

from __future__ import annotations

from seglog.storage.directory.log_files import LogReader
from seglog.storage.format.index.index import IndexHeader
from seglog.storage.format.record import is_tombstone
from seglog.storage.walk.log_records import record_at


def is_of_log(reader: LogReader, header: IndexHeader, log: range) -> bool:
    """Returns whether the time of a file's first record is that of the record in the log, to the millisecond.

    If the log does not have that record any more, the last record decides.

    Args:
        reader: The log.
        header: Header of the file.
        log: Start and end of the log.
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
    """Returns the store time of the record that starts at ``phy_offset``.

    None for no record, and for a tombstone: the lost record may have been stored at another time.
    """
    found = record_at(reader, phy_offset)
    return None if found is None or is_tombstone(found[0]) else found[1].store_timestamp_ms
