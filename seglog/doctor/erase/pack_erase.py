"""Erases records in undo packs and in files that were moved aside: their bytes there become zeros.

The journal of a pack is written again, complete and on the disk before it replaces the old one. After an
erase a pack can no longer undo its repair, because the log differs from the repaired one. The rest of the
pack is kept for manual use.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from seglog.doctor.erase.erased_bytes import ErasedRecords, changed_bytes
from seglog.doctor.erase.residue_search import iter_files
from seglog.doctor.undo.undo_pack import KEPT, pack_folder
from seglog.doctor.undo.undo_reading import read_entries
from seglog.doctor.undo.undo_writing import DISCARDED, remove_leftovers, write_entries
from seglog.errors import CorruptError, FileKindError, UnsafePathError
from seglog.storage.certain_mends import log_place
from seglog.storage.files import Files
from seglog.storage.format.names import STRAY
from seglog.storage.format.ours import UndoEntry, UndoKind
from seglog.storage.small_files import JOURNAL, note_erased, pack_numbers


@dataclass(slots=True)
class ErasedPacks:
    """The effect of an erase on the undo packs of a store.

    Attributes:
        zeroed: Number of bytes of erased records in each pack, by its name relative to the store.
        unread: Packs that cannot be read, and the reasons.
    """

    zeroed: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


def erase_in_packs(files: Files, root: Path, records: ErasedRecords, done: ErasedPacks) -> None:
    """Zeroes the bytes of erased records in undo packs and files in ``seglog/stray``, durably.

    Args:
        files: Access to the store; the caller holds its lock.
        root: The store directory.
        records: The erased records.
        done: Gets the result for each pack.
    """
    remove_leftovers(files, root, ())
    for folder in pack_folders(files, root):
        name = folder.relative_to(root).as_posix()
        try:
            count = _erase_in_pack(files, root, folder, records)
        except (CorruptError, UnsafePathError, FileKindError) as error:
            done.unread[name] = str(error)
            continue
        if count:
            done.zeroed[name] = done.zeroed.get(name, 0) + count
    for path in iter_files(files, root / STRAY, root / DISCARDED):
        records.zero_in_file(files, path)
    note_erased(files, root, records.places)


def pack_folders(files: Files, root: Path) -> list[Path]:
    """Returns the folders of the undo packs that have a journal, also of those that were moved aside."""
    found = [pack_folder(root, number) for number in pack_numbers(files, root)]
    found += [root / DISCARDED / one.name for one in files.list_dir(root / DISCARDED) if one.is_dir]
    return [folder for folder in found if files.exists(folder / JOURNAL)]


def _erase_in_pack(files: Files, root: Path, folder: Path, records: ErasedRecords) -> int:
    journal = folder / JOURNAL
    count = 0
    kept: dict[str, str] = {}
    for _at, entry in read_entries(files, journal):
        if entry.kind is UndoKind.BYTES:
            count += changed_bytes(entry.data, _zeroed(entry, records).data)
        elif entry.kind is UndoKind.KEPT:
            kept[str(entry.position_bytes)] = entry.path
    if count:
        note_erased(files, root, records.places)
        entries = (_zeroed(entry, records) for _at, entry in read_entries(files, journal))
        write_entries(files, journal, entries, ())
    for item in files.list_dir(folder / KEPT):
        if not item.is_dir:
            place = log_place(kept.get(item.name, ""), 0)
            count += records.zero_in_file(files, folder / KEPT / item.name, place)
    return count


def _zeroed(entry: UndoEntry, records: ErasedRecords) -> UndoEntry:
    if entry.kind is not UndoKind.BYTES:
        return entry
    return replace(entry, data=records.zeroed(entry.data, log_place(entry.path, entry.position_bytes)))
