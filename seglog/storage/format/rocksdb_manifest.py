"""The manifest of a RocksDB: which table files it consists of.

A manifest is a row of records in blocks of 32 KiB; a record that does not fit into a block is several
fragments. Each record is an edit: files that come and go. ``CURRENT`` names the manifest that counts.

Source: RocksDB's ``db/log_format.h``, ``db/log_reader.cc``, ``db/version_edit.cc`` and ``file/filename.cc``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final

import crc32c

from seglog.errors import CorruptError
from seglog.storage.format.layout import Buffer

CURRENT_TEXT: Final = re.compile(rb"(MANIFEST-\d+)\n")
_BLOCK_BYTES: Final = 32 << 10

_FRAGMENT: Final = Struct("<IHB")
"""Masked CRC-32C of kind and data, length of the data, kind; RocksDB's numbers are little-endian."""
_FRAGMENT_BYTES: Final = _FRAGMENT.size

_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
"""Kinds of fragments: a whole record, or a part of one."""
_WITH_NUMBER: Final = 4
"""So much more is the kind of a fragment whose data begins with the number of its log."""
_NUMBER_BYTES: Final = 4
_MASK_DELTA: Final = 0xA282EAD8

_VARINTS: Final = {2: 1, 3: 1, 4: 1, 9: 1, 10: 1, 200: 1, 202: 0, 203: 1, 300: 1}
"""Tags of an edit that are followed by numbers: how many."""
_TEXTS: Final = frozenset({1, 201})
"""Tags that are followed by a text."""
_CURSOR, _DELETED, _NEW, _NEW_2, _NEW_3, _NEW_4 = 5, 6, 7, 100, 102, 103
_END_OF_FIELDS: Final = 1
_MAY_IGNORE: Final = 1 << 13
"""Tags from here on have a text that a reader may pass over."""
_MOST_VARINT_BYTES: Final = 10


def live_tables(manifest: Buffer) -> dict[int, int]:
    """Returns the length in bytes of each table file of a RocksDB, by its number.

    Args:
        manifest: All bytes of the manifest.

    Raises:
        CorruptError: It is not whole, or has an edit of a kind that is not known here.
    """
    live: dict[tuple[int, int, int], int] = {}
    count = 0
    for at, edit in _edits(memoryview(manifest).cast("B")):
        try:
            _apply(_Reader(edit), live)
        except (IndexError, ValueError) as error:
            raise CorruptError(
                "rocksdb-edit", position_bytes=at, expected="an edit", found=str(error)
            ) from error
        count += 1
    if not count:
        raise CorruptError("rocksdb-manifest", expected="an edit", found="none")
    return {number: size for (_family, _level, number), size in live.items()}


def _edits(manifest: memoryview) -> Iterator[tuple[int, bytes]]:
    """Yields position and bytes of each record."""
    at = start = 0
    parts: list[bytes] = []
    is_open = False
    while at < len(manifest):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _FRAGMENT_BYTES:
            at += left
            continue
        if len(manifest) - at < _FRAGMENT_BYTES:
            raise CorruptError("rocksdb-fragment", position_bytes=at, expected="a fragment", found="the end")
        stored, size, kind = _FRAGMENT.unpack_from(manifest, at)
        if stored == size == kind == 0:
            break  # the file was made longer ahead of its records
        data = manifest[at + _FRAGMENT_BYTES : at + _FRAGMENT_BYTES + size]
        wanted = crc32c.crc32c(bytes([kind, *data]))
        wanted = ((wanted >> 15 | wanted << 17) + _MASK_DELTA) & 0xFFFF_FFFF
        if len(data) < size or stored != wanted:
            raise CorruptError(
                "rocksdb-fragment", position_bytes=at, expected=f"{wanted:#010x}", found=f"{stored:#010x}"
            )
        if _FULL + _WITH_NUMBER <= kind <= _LAST + _WITH_NUMBER:
            data, kind = data[_NUMBER_BYTES:], kind - _WITH_NUMBER
        if kind not in (_FULL, _FIRST, _MIDDLE, _LAST) or is_open != (kind in (_MIDDLE, _LAST)):
            raise CorruptError("rocksdb-fragment", position_bytes=at, expected="the next part", found=kind)
        if not is_open:
            start = at
        parts.append(bytes(data))
        is_open = kind in (_FIRST, _MIDDLE)
        if not is_open:
            yield start, b"".join(parts)
            parts = []
        at += _FRAGMENT_BYTES + size
    if is_open:
        raise CorruptError(
            "rocksdb-fragment", position_bytes=start, expected="a whole record", found="the end"
        )


class _Reader:
    """The numbers and texts of one edit, in order."""

    def __init__(self, edit: bytes) -> None:
        self._edit = edit
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._at == len(self._edit)

    def number(self) -> int:
        value = 0
        for place in range(_MOST_VARINT_BYTES):
            byte = self._edit[self._at]
            self._at += 1
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise ValueError("a number without end")

    def text(self) -> None:
        size = self.number()
        if size > len(self._edit) - self._at:
            raise ValueError("a text that is longer than the edit")
        self._at += size


def _apply(edit: _Reader, live: dict[tuple[int, int, int], int]) -> None:
    """Applies an edit; an edit is about one column family, which it may name behind its files."""
    new: dict[tuple[int, int], int] = {}
    gone: list[tuple[int, int]] = []
    family = 0
    is_drop = False
    while not edit.is_done:
        tag = edit.number()
        if tag == 200:
            family = edit.number()
        elif tag in _VARINTS:
            is_drop = is_drop or tag == 202
            for _number in range(_VARINTS[tag]):
                edit.number()
        elif tag in _TEXTS or tag >= _MAY_IGNORE:
            edit.text()
        elif tag == _CURSOR:
            edit.number()
            edit.text()
        elif tag == _DELETED:
            gone.append((edit.number(), edit.number()))
        elif tag in (_NEW, _NEW_2, _NEW_3, _NEW_4):
            place, size = _new_table(edit, tag)
            new[place] = size
        else:
            raise ValueError(f"tag {tag}, which is not known here")
    for level, number in gone:
        live.pop((family, level, number), None)
    live.update({(family, level, number): size for (level, number), size in new.items()})
    if is_drop:
        for key in [key for key in live if key[0] == family]:
            del live[key]


def _new_table(edit: _Reader, tag: int) -> tuple[tuple[int, int], int]:
    """Returns level and number of a table that comes, and its length in bytes."""
    level, number = edit.number(), edit.number()
    if tag == _NEW_3:
        edit.number()  # of its folder
    size = edit.number()
    edit.text()
    edit.text()
    if tag != _NEW:
        edit.number()
        edit.number()
    while tag == _NEW_4 and edit.number() != _END_OF_FIELDS:
        edit.text()
    return (level, number), size
