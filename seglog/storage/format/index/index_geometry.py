"""Finds out how an index file is divided, and whether its chains are whole.

A file's length is 40 + 4·S + 20·N bytes, which leaves both unknown. RocketMQ's default, and nearly every
store, has N = 4·S; where the file's first entry is not where that would put it, S is looked for: the
first entry is of the record that the header begins with, the last of the one it ends with, and the slots
must be exactly what the entries make them.

Source: none; RocketMQ takes both numbers from its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from seglog.errors import CorruptError
from seglog.storage.format.index.index import (
    INDEX_ENTRY,
    INDEX_HEADER,
    INDEX_SLOT,
    IndexGeometry,
    decode_index_header,
)
from seglog.storage.format.index.index_view import IndexView
from seglog.storage.format.layout import I32_ITEMS, Buffer
from seglog.storage.format.record.record import Damage

_DEFAULT_RATIO: Final = 4
"""Entries for each slot by default."""

_MOST_CANDIDATES: Final = 8
"""Real files have one; more come from damage, and each costs a sort."""


def infer_index_geometry(buffer: Buffer, likely: IndexGeometry | None = None) -> IndexGeometry:
    """Returns how a file is divided.

    Args:
        buffer: The whole file.
        likely: Division of another file of the same store, tried first.

    Raises:
        CorruptError: No division explains the file; a file without entries needs ``likely`` or N = 4·S.
    """
    header = decode_index_header(buffer)
    for geometry in likely_geometries(len(buffer), likely):
        view = IndexView(buffer, geometry)
        if header.index_count <= 1 or _ends_fit(view):
            return geometry
    if header.index_count > 1:
        for geometry in _candidates(buffer):
            view = IndexView(buffer, geometry)
            if index_damage(view) is None:
                return geometry
    raise CorruptError(
        "index-geometry", expected="numbers of slots and entries that explain the file", found=len(buffer)
    )


def index_damage(view: IndexView) -> Damage | None:
    """Returns what is wrong with a file, None if header, slots and chains are whole.

    Times and places are not compared with the log; see ``index_build`` for that.
    """
    header = view.header
    if not 1 <= header.index_count <= view.geometry.entry_count:
        return Damage("index-count", f"1..{view.geometry.entry_count}", header.index_count)
    entries = view.entries_in_use
    hashes = entries["key_hash"].astype(np.int64)
    if len(hashes) and hashes.min() < 0:
        return Damage("index-hash", "hashes from 0", int(hashes.min()))
    slot_of = hashes % view.geometry.slot_count
    order = np.argsort(slot_of, kind="stable")
    same_slot = np.zeros(len(order), np.bool_)
    np.equal(slot_of[order][1:], slot_of[order][:-1], out=same_slot[1:])
    previous = np.zeros(len(order), np.int64)
    previous[order[1:]] = np.where(same_slot[1:], order[:-1] + 1, 0)
    wrong = np.flatnonzero(previous != entries["previous_entry"])
    if len(wrong):
        at = int(wrong[0])
        return Damage(
            "index-chain",
            f"entry {at + 1} behind {previous[at]}",
            int(entries["previous_entry"][at]),
        )
    heads = np.zeros(view.geometry.slot_count, np.int32)
    heads[slot_of] = np.arange(1, len(slot_of) + 1)
    wrong = np.flatnonzero(heads != view.slots)
    if len(wrong):
        at = int(wrong[0])
        return Damage("index-slot", f"slot {at} leads to {heads[at]}", int(view.slots[at]))
    used = int(np.count_nonzero(heads))
    if used != header.hash_slot_count:
        return Damage("index-slot-count", used, header.hash_slot_count)
    return None


def likely_geometries(file_size_bytes: int, likely: IndexGeometry | None) -> Iterator[IndexGeometry]:
    """Yields the divisions that files of a length most often have: that of another file, then the default.

    Args:
        file_size_bytes: The length.
        likely: Division of another file of the same store.
    """
    if likely is not None and likely.file_size_bytes == file_size_bytes:
        yield likely
    slots, rest = divmod(
        file_size_bytes - INDEX_HEADER.size_bytes,
        INDEX_SLOT.size_bytes + _DEFAULT_RATIO * INDEX_ENTRY.size_bytes,
    )
    if rest == 0 and slots > 0:
        yield IndexGeometry(slots, _DEFAULT_RATIO * slots)


def _ends_fit(view: IndexView) -> bool:
    """Returns whether the first and last entry are of the records that the header names."""
    header = view.header
    last = header.index_count - 1
    if last >= view.geometry.entry_count:
        return False
    first, newest = view.entries[1], view.entries[last]
    return bool(
        first["phy_offset"] == header.begin_phy_offset
        and newest["phy_offset"] == header.end_phy_offset
        and newest["key_hash"] >= 0
        and view.slots[newest["key_hash"] % view.geometry.slot_count] == last
    )


def _candidates(buffer: Buffer) -> Iterator[IndexGeometry]:
    """Yields the divisions that put the header's records at both ends of the entries.

    With N whole, S is known modulo 5, so the possible first entries are 20 bytes apart and all are tried
    at once.
    """
    header = decode_index_header(buffer)
    room, odd = divmod(len(buffer) - INDEX_HEADER.size_bytes, INDEX_SLOT.size_bytes)
    last = header.index_count - 1
    step = INDEX_ENTRY.size_bytes // INDEX_SLOT.size_bytes
    least = room % step
    tries = room // step - last  # entry 0 is before the first one, the last one within the file
    if odd or tries <= 0:
        return
    at = INDEX_HEADER.size_bytes + least * INDEX_SLOT.size_bytes
    entries = np.frombuffer(buffer, INDEX_ENTRY.dtype, room // step, at)
    slots = np.frombuffer(buffer, I32_ITEMS, room, INDEX_HEADER.size_bytes)
    begins = entries["phy_offset"][1 : 1 + tries] == header.begin_phy_offset
    ends = entries["phy_offset"][last : last + tries] == header.end_phy_offset
    skipped = np.flatnonzero(begins & ends)
    slot_counts = least + step * skipped
    newest_hash = entries["key_hash"][skipped + last].astype(np.int64)
    fits = (slot_counts > 0) & (newest_hash >= 0)
    skipped, slot_counts, newest_hash = skipped[fits], slot_counts[fits], newest_hash[fits]
    leads = slots[newest_hash % slot_counts] == last
    for before, slot_count in list(zip(skipped[leads], slot_counts[leads], strict=True))[:_MOST_CANDIDATES]:
        yield IndexGeometry(int(slot_count), room // step - int(before))
