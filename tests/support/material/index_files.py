"""Whole index files made of keys, and asked for keys over several files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seglog.storage.format.index.index import IndexGeometry, IndexHeader, decode_index_header, key_hash
from seglog.storage.format.index.index_build import KeyRows, begin_index_file, put_keys
from seglog.storage.format.index.index_keys import IndexedRecord, tag_key, telling_tag
from seglog.storage.format.index.index_view import DEFAULT_QUERY_LIMIT, MAX_TIMESTAMP_MS, IndexView


def build_index_files(
    rows: KeyRows, geometry: IndexGeometry, previous: IndexHeader | None = None
) -> Iterator[bytearray]:
    """Yields the files that hold the keys, in order, each as the whole bytes of a file.

    Args:
        rows: ``(n,) KEY_ROW``, in log order.
        geometry: Division of the files; at least two entries.
        previous: Header of a full file before the first key, None if the first key starts the index.
    """
    at = 0
    while at < len(rows):
        buffer = bytearray(geometry.file_size_bytes)
        begin_index_file(buffer, previous)
        at += put_keys(buffer, geometry, rows[at:])
        previous = decode_index_header(buffer)
        yield buffer


def select_from_files(
    newest_first: Iterable[IndexView],
    hashed: int,
    *,
    begin_ms: int = 0,
    end_ms: int = MAX_TIMESTAMP_MS,
    limit: int = DEFAULT_QUERY_LIMIT,
) -> list[int]:
    """Returns where the records of one hash are, over all files.

    RocketMQ misses records within the second of ``begin_ms``; they are found here.

    Args:
        newest_first: The files; those older than the answer needs are not looked at.
        hashed: See :func:`key_hash`.
        begin_ms: Earliest store time.
        end_ms: Latest store time.
        limit: At most this many, the newest.

    Returns:
        Physical offsets, sorted.
    """
    found: list[int] = []
    for view in newest_first:
        header = view.header
        if header.overlaps(begin_ms, end_ms):
            found += view.select(hashed, begin_ms=begin_ms, end_ms=end_ms, limit=limit - len(found))
        if header.begin_timestamp_ms < begin_ms or len(found) >= limit:
            break
    return sorted(found)


def indexes_tags(view: IndexView, records: Iterable[IndexedRecord]) -> bool | None:
    """Returns whether a file has entries for tags (5.4.0 and later), None if these records cannot tell.

    Args:
        view: The file.
        records: Some of the records between its begin and end; the first one with a tag decides.
    """
    header = view.header
    for record in records:
        # The keys of the last record may go on in the next file.
        is_inside = header.begin_phy_offset <= record.phy_offset < header.end_phy_offset or (
            record.phy_offset == header.end_phy_offset and not view.is_full
        )
        tag = telling_tag(record)
        if tag is None or not is_inside:
            continue
        return record.phy_offset in view.select(key_hash(tag_key(record.topic, tag)))
    return None
