"""The keys of many records at once, as rows for the index.

Works on the properties of a whole batch: one search finds the values that count, and the rest are passes
over arrays of places, so that a record costs microseconds.

Source: ``store/.../index/IndexService.java buildIndex``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.index.index import MAX_INT
from seglog.storage.format.index.index_build import KEY_ROW, KeyRows
from seglog.storage.format.index.index_keys import (
    KEYS_NAME,
    TAGS_NAME,
    UNIQ_KEY_NAME,
    IndexedRecord,
    key_text,
    tag_key,
)
from seglog.storage.format.index.string_hash import powers_of_31, slice_hashes
from seglog.storage.format.record.sys_flag import TRANSACTION_MASK, TRANSACTION_ROLLBACK
from seglog.storage.format.record.tags import java_string_hash

_VALUE: Final = re.compile(rb"\x02(?:%b|%b|%b)\x01[^\x02]+" % (UNIQ_KEY_NAME, KEYS_NAME, TAGS_NAME))
_U32: Final = 0xFFFF_FFFF
_BLOCK_RECORDS: Final = 4096
"""Records worked on at once: few enough that the arrays stay in the processor's caches."""

_Ints = npt.NDArray[np.int64]


def key_rows(records: Sequence[IndexedRecord], *, tags: bool) -> KeyRows:
    """Returns the rows that ``index_build`` puts for these records, the keys of :func:`record_keys`.

    Works on all properties at once: a search finds the values, arrays do the rest.

    Args:
        records: In log order.
        tags: Whether the index has entries for tags.

    Returns:
        ``(n,) KEY_ROW``, n the number of all keys.
    """
    blocks = [
        _block_rows(records[at : at + _BLOCK_RECORDS], tags) for at in range(0, len(records), _BLOCK_RECORDS)
    ]
    return np.concatenate([np.empty(0, KEY_ROW), *blocks])


def _block_rows(records: Sequence[IndexedRecord], tags: bool) -> KeyRows:
    phy_offsets, timestamps, sys_flags, topics, properties = zip(*records, strict=True)
    joined = b"\x02" + b"\x02".join(properties)
    record, kind, starts, ends = _values(joined, properties)
    wanted = np.array(sys_flags)[record] & TRANSACTION_MASK != TRANSACTION_ROLLBACK
    if not tags:
        wanted &= kind != TAGS_NAME[0]
    record, kind, starts, ends = record[wanted], kind[wanted], starts[wanted], ends[wanted]
    value, starts, ends = _split_keys(joined, kind == KEYS_NAME[0], starts, ends)
    record, is_tag = record[value], kind[value] == TAGS_NAME[0]
    rows = np.empty(len(record), KEY_ROW)
    rows["key_hash"] = _hashes(joined, starts, ends, _prefix_hashes(topics, record, is_tag))
    rows["phy_offset"] = np.array(phy_offsets, np.int64)[record]
    rows["store_timestamp_ms"] = np.array(timestamps, np.int64)[record]
    return rows


def _values(joined: bytes, properties: Sequence[bytes]) -> tuple[_Ints, _Ints, _Ints, _Ints]:
    """Returns record, kind, start and end of the values that count, in the order of the keys."""
    spans = np.array([match.span() for match in _VALUE.finditer(joined)], np.int64).reshape(-1, 2)
    at, ends = spans.T
    kind = np.frombuffer(joined, np.uint8)[at + 1].astype(np.int64)
    name_bytes = np.where(kind == UNIQ_KEY_NAME[0], len(UNIQ_KEY_NAME), len(KEYS_NAME))
    sizes = np.fromiter(map(len, properties), np.int64, len(properties)) + 1
    record = np.searchsorted(np.cumsum(sizes), at, side="right")
    rank = np.select([kind == UNIQ_KEY_NAME[0], kind == KEYS_NAME[0]], [0, 1], 2)
    order = np.lexsort((at, rank, record))
    # The last of several values of one name is the one that counts.
    key = (3 * record + rank)[order]
    is_last = np.ones(len(order), np.bool_)
    np.not_equal(key[1:], key[:-1], out=is_last[:-1])
    order = order[is_last]
    return record[order], kind[order], (at + 2 + name_bytes)[order], ends[order]


def _split_keys(
    joined: bytes, is_keys: npt.NDArray[np.bool_], starts: _Ints, ends: _Ints
) -> tuple[_Ints, _Ints, _Ints]:
    """Splits the values of KEYS at spaces; returns value, start and end of each non-empty piece."""
    spaces = np.flatnonzero(np.frombuffer(joined, np.uint8) == ord(" "))
    by_place = np.argsort(starts, kind="stable")
    holder = np.searchsorted(starts[by_place], spaces, side="right") - 1
    holder_value = by_place[np.maximum(holder, 0)] if len(by_place) else np.zeros(len(spaces), np.int64)
    inside = holder >= 0
    inside[inside] = is_keys[holder_value[inside]] & (spaces[inside] < ends[holder_value[inside]])
    spaces, holder_value = spaces[inside], holder_value[inside]
    value = np.concatenate((np.arange(len(starts)), holder_value))
    piece_starts = np.concatenate((starts, spaces + 1))
    piece_ends = np.concatenate((spaces, ends))
    # Within a value the pieces' starts and ends pair up in order.
    by_start = np.lexsort((piece_starts, value))
    by_end = np.lexsort((piece_ends, np.concatenate((holder_value, np.arange(len(ends))))))
    value, piece_starts, piece_ends = value[by_start], piece_starts[by_start], piece_ends[by_end]
    is_piece = piece_ends > piece_starts
    return value[is_piece], piece_starts[is_piece], piece_ends[is_piece]


def _prefix_hashes(
    topics: Sequence[str], record: _Ints, is_tag: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint32]:
    """Returns the hash of what stands before each key: the topic and ``#``, or ``#T#``."""
    plain = {topic: java_string_hash(f"{topic}#") & _U32 for topic in set(topics)}
    tagged = {topic: java_string_hash(tag_key(topic, "")) & _U32 for topic in plain}
    before_key = np.array([plain[topic] for topic in topics], np.uint32)[record]
    before_tag = np.array([tagged[topic] for topic in topics], np.uint32)[record]
    return np.where(is_tag, before_tag, before_key)


def _hashes(
    joined: bytes, starts: _Ints, ends: _Ints, prefixes: npt.NDArray[np.uint32]
) -> npt.NDArray[np.int64]:
    """Returns the index's hash of prefix and slice together."""
    hashes = slice_hashes(joined, starts, ends)
    lengths = ends - starts
    if not joined.isascii():
        for at in _not_ascii(joined, starts, ends):
            text = key_text(joined[starts[at] : ends[at]])
            hashes[at] = java_string_hash(text) & _U32
            lengths[at] = len(text.encode("utf-16-be")) // 2
    longest = int(lengths.max(initial=0))
    whole = (prefixes * powers_of_31(longest + 1)[lengths] + hashes).view(np.int32)
    magnitudes = np.abs(whole.astype(np.int64))
    return np.where(magnitudes <= MAX_INT, magnitudes, 0)


def _not_ascii(joined: bytes, starts: _Ints, ends: _Ints) -> list[int]:
    high = np.zeros(len(joined) + 1, np.int64)
    np.cumsum(np.frombuffer(joined, np.uint8) >= 0x80, out=high[1:])
    return [int(at) for at in np.flatnonzero(high[ends] > high[starts])]
