"""Writes tombstones for the lost records behind the end of a log, so that the log itself records the loss.

Fillers take the space between tombstones, and a BLANK the end of a segment. The log then has no gap, RocketMQ
accepts it, and it ends where the last lost record ended. A crash between the writes leaves some tombstones,
and the queue units of the other lost records: the next recovery continues with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import groupby

from seglog.storage.directory.log_files import list_log_files, place_log_files
from seglog.storage.files.files import Files
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record.record import FILLER, MAGIC_BLANK
from seglog.storage.format.record.tombstone import encode_fillers, encode_tombstone
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.growable_rows import spliced


def write_tombstones(found: Survey, files: Files) -> None:
    """Writes the tombstones behind the end of the log, where all bytes are zero, and adds them to the survey.

    Args:
        found: A survey of the store; its log was zeroed behind the end.
        files: The file layer of the store.

    Raises:
        FullError: No space; the next recovery continues.
    """
    if not (found.lost_tail or found.replaced.closing):
        return
    segment = found.geometry.segment_size_bytes
    directory = found.root / COMMIT_LOG
    for first, pieces in groupby(_pieces(found), lambda piece: piece[0] - piece[0] % segment):
        path = directory / segment_file_name(first)
        if not files.exists(path):
            files.create(path, segment).close()
        with closing(files.open(path, writable=True)) as handle:
            for phy_offset, data in pieces:
                handle.reserve(phy_offset - first, len(data))
                handle.write_at(data, phy_offset - first)
            handle.sync()
    files.sync_dir(directory)
    listed, _strays = list_log_files(files, found.root)
    found.log_files, _misplaced = place_log_files(listed, segment)
    found.scan.extend(found.log_files)
    with closing(found.scan):
        found.rows = spliced(found.rows, len(found.rows), found.scan.run())
    found.scan.inner.take_further()


def _pieces(found: Survey) -> Iterator[tuple[int, bytes]]:
    """Yields the records to write, with their places, in log order."""
    segment = found.geometry.segment_size_bytes
    store_ms, record_crc = found.tombstone_timestamp_ms, found.record_crc
    at = found.max_phy_offset
    for lost in [*found.lost_tail, *found.replaced.closing]:
        start = lost.phy_offset - lost.phy_offset % segment
        if at < start:
            yield from _blank(at, segment)
            at = start
        for filler in encode_fillers(at, lost.phy_offset - at, store_ms, record_crc=record_crc):
            yield at, filler
            at += len(filler)
        yield at, encode_tombstone(lost, store_ms, record_crc=record_crc)
        at = lost.end


def _blank(phy_offset: int, segment_size_bytes: int) -> Iterator[tuple[int, bytes]]:
    rest = -phy_offset % segment_size_bytes
    if rest >= FILLER.size_bytes:
        yield phy_offset, FILLER.struct.pack(rest, MAGIC_BLANK)
