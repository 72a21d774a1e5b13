"""The keys of a record, in the order in which RocketMQ indexes them.

``topic#UNIQ_KEY`` first, then ``topic#key`` for each non-empty piece of KEYS between single spaces, and
since 5.4.0 ``topic#T#tag``. An index keeps its manner: a store whose files have no entries for tags gets
none, so that a rebuild equals what was there.

ROLLBACK records are not indexed, PREPARED ones are. RocketMQ leaves out records before the end of the
newest file and takes the one at the end again.

Source: ``store/.../index/IndexService.java buildIndex``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from seglog.storage.format import properties as props
from seglog.storage.format.index import MAX_INT, key_hash
from seglog.storage.format.index_build import KEY_ROW, KeyRows
from seglog.storage.format.index_view import IndexView
from seglog.storage.format.string_hash import java_string_hashes
from seglog.storage.format.sys_flag import TRANSACTION_MASK, TRANSACTION_ROLLBACK

_UNIQ_KEY: Final = props.UNIQ_KEY.encode()
_KEYS: Final = props.KEYS.encode()
_TAGS: Final = props.TAGS.encode()


class IndexedRecord(NamedTuple):
    """What the index needs of a record; ``properties`` as stored."""

    phy_offset: int
    store_timestamp_ms: int
    sys_flag: int
    topic: str
    properties: bytes


def tag_key(topic: str, tag: str) -> str:
    """Returns the key under which messages of a tag are found."""
    return f"{topic}#T#{tag}"


def record_keys(topic: str, properties: bytes, sys_flag: int, *, tags: bool) -> list[str]:
    """Returns the keys of a record, in order; one may occur twice.

    Args:
        topic: Of the record.
        properties: As stored.
        sys_flag: Of the record.
        tags: Whether the index has entries for tags.
    """
    if sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
        return []
    keys = []
    unique = props.find_property(properties, _UNIQ_KEY)
    if unique is not None:
        keys.append(f"{topic}#{_text(unique)}")
    joined = props.find_property(properties, _KEYS)
    if joined is not None:
        keys += [f"{topic}#{key}" for key in _text(joined).split(" ") if key]
    tag = props.find_property(properties, _TAGS) if tags else None
    if tag is not None:
        keys.append(tag_key(topic, _text(tag)))
    return keys


def key_rows(records: Iterable[IndexedRecord], *, tags: bool) -> KeyRows:
    """Returns the rows that ``index_build`` puts for these records.

    Args:
        records: In log order.
        tags: Whether the index has entries for tags.

    Returns:
        ``(n,) KEY_ROW``, n the number of all keys.
    """
    keys: list[str] = []
    counts: list[int] = []
    places: list[tuple[int, int]] = []
    for record in records:
        found = record_keys(record.topic, record.properties, record.sys_flag, tags=tags)
        keys += found
        counts.append(len(found))
        places.append((record.phy_offset, record.store_timestamp_ms))
    rows = np.empty(len(keys), KEY_ROW)
    if not keys:
        return rows
    magnitudes = np.abs(java_string_hashes(keys).astype(np.int64))
    rows["key_hash"] = np.where(magnitudes <= MAX_INT, magnitudes, 0)
    phy_offsets, timestamps = np.array(places, np.int64).T
    rows["phy_offset"] = np.repeat(phy_offsets, counts)
    rows["store_timestamp_ms"] = np.repeat(timestamps, counts)
    return rows


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
        tag = props.find_property(record.properties, _TAGS)
        if tag is None or not is_inside or record.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
            continue
        return view.holds(key_hash(tag_key(record.topic, _text(tag))), record.phy_offset)
    return None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
