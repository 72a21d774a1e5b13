"""Checks whether the journal of an interrupted erase follows from the log that it would be written to.

The journal is in the store and is untrusted. It is valid only if each of its records is the result of an
erase of the record at that place: it is equal to the bytes there; or it is the erased form of a valid record
there; or, if the crash left a record half written, it has the same head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from seglog.doctor.erase.erase_journal import JOURNAL, Rewrite, read_journal
from seglog.doctor.erase.erased_record import erase_record
from seglog.errors import CorruptError
from seglog.storage.directory import list_store
from seglog.storage.files import Files, read_part
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import MIN_RECORD_BYTES, Damage, examine, head_layout

_ERASED_FIELDS: Final = frozenset({"body_crc", "sys_flag", "body_bytes"})
"""Fields of a head that an erase changes."""


def sound_journal(files: Files, root: Path) -> tuple[int, list[Rewrite]] | None:
    """Returns the segment size and records of a valid journal; None if no erase was interrupted.

    Raises:
        CorruptError: The journal cannot be read, or does not follow from the log.
    """
    journal = read_journal(files, root)
    if journal is not None:
        prove_rewrites(files, root, *journal)
    return journal


def prove_rewrites(files: Files, root: Path, segment_bytes: int, rewrites: Sequence[Rewrite]) -> None:
    """Checks that the journal follows from the log of this store.

    Args:
        files: Access to the store.
        root: The store directory.
        segment_bytes: The segment size that the journal states.
        rewrites: The records of the journal.

    Raises:
        CorruptError: It does not follow.
    """
    listing = list_store(files, root)
    wanted = listing.geometry.segment_size_bytes
    if segment_bytes != wanted:
        raise CorruptError("erasing-segment", file=JOURNAL, expected=wanted, found=segment_bytes)
    sizes = {file.first_offset: file.size_bytes for file in listing.log_files}
    end = 0
    for one in sorted(rewrites):
        if one.phy_offset < end:
            raise _wrong("erasing-twice", one, f"records from {end} on", one.phy_offset)
        end = one.phy_offset + len(one.data)
        _prove(files, root, one, segment_bytes, sizes)


def _prove(files: Files, root: Path, one: Rewrite, segment_bytes: int, sizes: Mapping[int, int]) -> None:
    position = one.phy_offset % segment_bytes
    first = one.phy_offset - position
    if position + len(one.data) > sizes.get(first, 0) or len(one.data) < MIN_RECORD_BYTES:
        raise _wrong("erasing-place", one, "a record within a file of the log", len(one.data))
    if erase_record(one.data, one.phy_offset).data != one.data:
        raise _wrong("erasing-record", one, "an erased record", "another one")
    with closing(files.open(root / COMMIT_LOG / segment_file_name(first), writable=False)) as handle:
        there = bytes(read_part(handle, position, len(one.data)))
    if there == one.data:
        return
    if isinstance(examine(memoryview(there), 0, one.phy_offset), Damage):
        if _lasting(there) != _lasting(one.data):
            raise _wrong("erasing-record", one, "the record that is half written", "another one")
    elif erase_record(there, one.phy_offset).data != one.data:
        raise _wrong("erasing-record", one, "the record there, without its body", "another one")


def _lasting(record: bytes) -> dict[str, object]:
    """Returns the fields of a head that an erase does not change."""
    layout = head_layout(record)
    if len(record) < layout.size_bytes:
        return {}
    return {name: value for name, value in layout.decode(record).items() if name not in _ERASED_FIELDS}


def _wrong(kind: str, one: Rewrite, expected: object, found: object) -> CorruptError:
    return CorruptError(kind, file=JOURNAL, expected=f"{expected} at {one.phy_offset}", found=found)
