"""What compaction distinguishes messages by, for a stretch of the log at a time: KEYS, hashed to 128 bits.

The whole value of KEYS counts, spaces included, as in RocketMQ's own compaction. Two sums of mixed words,
each with constants of its own that are drawn for every run: two keys meet by chance only, once in about
10^18 pairs of a store with 10^10 keys. No step of Python for each record.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import U32, U32_ITEMS
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Bytes, Ints, Mask, copy_ranges, overlapping

_NAME: Final = U32.unpack(props.KEYS.encode())[0]
_NAME_BYTES: Final = len(props.KEYS)
_WORD_BYTES: Final = 8
_BLANKS: Final = b" \t\n\r\x0b\x0c"
_MIX_1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_STEP: Final = 0x9E3779B97F4A7C15
_SHIFT: Final = np.uint64(33)
_U64: Final = 0xFFFF_FFFF_FFFF_FFFF
Words = npt.NDArray[np.uint64]


class KeyHashes(NamedTuple):
    """The keys of some records.

    Attributes:
        has_key: ``(n,)``, whether a record has KEYS that are not blank.
        high: ``(n,)``, half of its hash; 0 without a key.
        low: ``(n,)``, the other half.
    """

    has_key: Mask
    high: Ints
    low: Ints


def hash_keys(buffer: Bytes, starts: Ints, lengths: Ints, salt: int) -> KeyHashes:
    """Returns the keys of records.

    Args:
        buffer: ``(m,) u8``, a stretch of the log.
        starts: ``(n,)``, where in it the properties start.
        lengths: ``(n,)``, how long they are.
        salt: Drawn once for all parts of a run.
    """
    text, rows = _entries(buffer, starts, lengths)
    owners, value_starts, value_lengths = _values(text, rows)
    has_key = np.zeros(len(starts), np.bool_)
    high, low = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    has_key[owners] = True
    high[owners] = _hash(text, value_starts, value_lengths, salt)
    low[owners] = _hash(text, value_starts, value_lengths, salt ^ _STEP)
    return KeyHashes(has_key, high, low)


def _entries(buffer: Bytes, starts: Ints, lengths: Ints) -> tuple[Bytes, Ints]:
    """Returns the properties one after the other, 0x02 before each and at the end, and where each begins."""
    rows = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths + 1, out=rows[1:])
    text = np.full(int(rows[-1]) + 2 * _WORD_BYTES, props.ENTRY_END, np.uint8)
    copy_ranges(buffer, starts, lengths, text, rows[:-1] + 1)
    return text, rows[:-1]


def _values(text: Bytes, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Returns which records have a key, and where its text starts and how long it is."""
    named = np.flatnonzero(overlapping(text, U32_ITEMS) == _NAME)
    named = named[named > 0]
    is_entry = (text[named - 1] == props.ENTRY_END) & (text[named + _NAME_BYTES] == props.NAME_END)
    begin = named[is_entry] + _NAME_BYTES + 1
    ends = np.flatnonzero(text == props.ENTRY_END)
    length = ends[np.searchsorted(ends, begin)] - begin
    begin, length = begin[length > 0], length[length > 0]
    owner = np.searchsorted(rows, begin, "right") - 1
    # Of two entries the later counts.
    is_last = np.append(owner[1:] != owner[:-1], np.ones(min(1, len(owner)), np.bool_))
    owner, begin, length = owner[is_last], begin[is_last], length[is_last]
    suspects = np.flatnonzero(np.isin(text[begin], np.frombuffer(_BLANKS, np.uint8)))
    blank = [at for at in suspects.tolist() if not bytes(text[begin[at] : begin[at] + length[at]]).strip()]
    return np.delete(owner, blank), np.delete(begin, blank), np.delete(length, blank)


def _hash(text: Bytes, starts: Ints, lengths: Ints, salt: int) -> Ints:
    words = overlapping(text, np.dtype("<u8"))
    total = _mixed(lengths.astype(np.uint64) ^ np.uint64(salt & _U64))
    rows = np.arange(len(starts))
    number = 0
    while len(rows):
        number += 1
        at = (number - 1) * _WORD_BYTES
        rest = np.minimum(_WORD_BYTES, lengths[rows] - at)
        unused = ((_WORD_BYTES - rest) * 8).astype(np.uint64)
        word = (words[starts[rows] + at].astype(np.uint64) << unused) >> unused
        total[rows] += _mixed(word ^ np.uint64((salt + number * _STEP) & _U64))
        rows = rows[lengths[rows] > at + _WORD_BYTES]
    return _mixed(total).view(np.int64)


def _mixed(value: Words) -> Words:
    """Returns each word with every bit of it in every bit of the result (MurmurHash3's finalizer)."""
    value = (value ^ (value >> _SHIFT)) * _MIX_1
    value = (value ^ (value >> _SHIFT)) * _MIX_2
    return value ^ (value >> _SHIFT)
