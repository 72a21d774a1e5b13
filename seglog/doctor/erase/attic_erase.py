"""Erases records in the attic, so that they cannot be restored: their bytes there become zeros."""

from __future__ import annotations

from pathlib import Path

from seglog.doctor.erase.erased_bytes import ErasedRecords
from seglog.storage.certain_mends import log_place
from seglog.storage.files import Files, write_over
from seglog.storage.format.ours import ATTIC_HEAD_BYTES, encode_entry
from seglog.storage.small_files import ATTIC, iter_kept, note_erased


def erase_in_attic(files: Files, root: Path, records: ErasedRecords) -> None:
    """Zeroes the bytes of erased records in the attic of a store, durably.

    Args:
        files: Access to the store; the caller holds its lock.
        root: The store directory.
        records: The erased records.
    """
    read: set[str] = set()
    for kept in iter_kept(files, root):
        read.add(kept.attic_file)
        data = records.zeroed(kept.data, log_place(kept.name, kept.position_bytes))
        if data == kept.data:
            continue
        note_erased(files, root, records.places)
        at, entry = kept.data_at, data
        if kept.name is not None:
            name = kept.name.encode("utf-8", "surrogateescape")
            at -= ATTIC_HEAD_BYTES + len(name)
            entry = encode_entry(name, kept.position_bytes, data)
        write_over(files, root / kept.attic_file, at, entry)
    for item in files.list_dir(root / ATTIC):
        if not item.is_dir and f"{ATTIC}/{item.name}" not in read:
            records.zero_in_file(files, root / ATTIC / item.name)
