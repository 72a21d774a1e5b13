"""Writes index files: the bytes that RocketMQ would write for the same keys in the same order.

Keys are put in batches. Within a batch the entry before each one in its slot is found by a stable sort on
the slot, so a batch costs a sort and a few passes over arrays; the result does not depend on where the
batches are cut.

A file that follows a full one starts with that one's end as its begin and end. The first entry's time
difference counts from there although the begin is then replaced; RocketMQ does so, and so do we.

Source: ``store/.../index/IndexFile.java putKey``, ``IndexService.java getAndCreateLastIndexFile``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.index.index import (
    INDEX_ENTRY,
    INDEX_HEADER,
    MAX_INT,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
    encode_index_header,
)
from seglog.storage.format.index.index_view import Entries
from seglog.storage.format.layout import I32_ITEMS

KEY_ROW: Final = np.dtype([("key_hash", "i4"), ("phy_offset", "i8"), ("store_timestamp_ms", "i8")])
"""One key of one record, in native byte order."""

KeyRows = npt.NDArray[np.void]
_Ints = npt.NDArray[np.int64]


def begin_index_file(buffer: bytearray | memoryview, previous: IndexHeader | None = None) -> None:
    """Writes the header of a new file.

    Args:
        buffer: The file, zeros.
        previous: Header of the full file before, None for the first.
    """
    header = IndexHeader()
    if previous is not None:
        header = IndexHeader(
            max(0, previous.end_timestamp_ms),
            max(0, previous.end_timestamp_ms),
            max(0, previous.end_phy_offset),
            max(0, previous.end_phy_offset),
        )
    buffer[: INDEX_HEADER.size_bytes] = encode_index_header(header)


def put_keys(buffer: bytearray | memoryview, geometry: IndexGeometry, rows: KeyRows) -> int:
    """Puts keys into a file, as many as fit, and returns how many.

    Entries are written before the slots that lead to them, and the header last: a reader beside the
    writer sees whole chains.

    Args:
        buffer: The whole file, with a header.
        geometry: Its division.
        rows: ``(n,) KEY_ROW``, in log order.
    """
    header = decode_index_header(buffer)
    taken = min(len(rows), geometry.entry_count - header.index_count)
    if taken <= 0:
        return 0
    rows = rows[:taken]
    own = np.arange(header.index_count, header.index_count + taken, dtype=np.int64)
    slots = np.frombuffer(buffer, I32_ITEMS, geometry.slot_count, INDEX_HEADER.size_bytes)
    entries: Entries = np.frombuffer(buffer, INDEX_ENTRY.dtype, geometry.entry_count, geometry.entries_at)
    touched, newest, previous = _chain_up(slots, rows["key_hash"].astype(np.int64) % geometry.slot_count, own)
    put = entries[header.index_count : header.index_count + taken]
    put["key_hash"] = rows["key_hash"]
    put["phy_offset"] = rows["phy_offset"]
    put["time_diff_s"] = _time_differences(header, rows["store_timestamp_ms"])
    put["previous_entry"] = previous
    slots[touched] = newest
    is_first = header.index_count <= 1
    after = IndexHeader(
        int(rows["store_timestamp_ms"][0]) if is_first else header.begin_timestamp_ms,
        int(rows["store_timestamp_ms"][-1]),
        int(rows["phy_offset"][0]) if is_first else header.begin_phy_offset,
        int(rows["phy_offset"][-1]),
        header.hash_slot_count + taken - int(np.count_nonzero(previous)),
        header.index_count + taken,
    )
    buffer[: INDEX_HEADER.size_bytes] = encode_index_header(after)
    return taken


def _chain_up(slots: npt.NDArray[np.int32], slot_of: _Ints, own: _Ints) -> tuple[_Ints, _Ints, _Ints]:
    """Returns the slots touched, the new head of each, and the entry before each new one.

    Args:
        slots: The heads before; what does not name an older entry counts as none.
        slot_of: ``(n,)`` slot of each new entry.
        own: ``(n,)`` numbers of the new entries.
    """
    order = np.argsort(slot_of, kind="stable")
    by_slot, numbers = slot_of[order], own[order]
    starts = np.empty(len(order), np.bool_)
    starts[0] = True
    np.not_equal(by_slot[1:], by_slot[:-1], out=starts[1:])
    before = np.empty_like(numbers)
    before[1:] = numbers[:-1]
    heads = slots[by_slot[starts]].astype(np.int64)
    before[starts] = np.where((heads > 0) & (heads <= numbers[starts]), heads, 0)
    previous = np.empty_like(before)
    previous[order] = before
    return by_slot[starts], numbers[np.append(starts[1:], True)], previous


def _time_differences(header: IndexHeader, store_timestamps_ms: _Ints) -> _Ints:
    """Returns the seconds since the file's begin, 0 where there is none yet."""
    begins = np.full(len(store_timestamps_ms), header.begin_timestamp_ms, np.int64)
    if header.index_count <= 1:
        begins[1:] = store_timestamps_ms[0]
    differences = np.clip((store_timestamps_ms - begins) // 1000, 0, MAX_INT)
    return np.where(begins > 0, differences, 0)
