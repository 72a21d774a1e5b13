"""Takes a repair back: every file of the store becomes what it was before, bit for bit, or nothing is done.

Before anything is changed it is worked out what each file would be, and held against the checksum that it
had. It can be stopped at any moment and begun again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from seglog.doctor.store_state import FileState, differences, state_of, walk_store
from seglog.doctor.undo_pack import (
    OldBytes,
    UndoPack,
    journal_file,
    list_packs,
    mark_undoing,
    read_pack,
    remove_leftovers,
    remove_pack,
)
from seglog.errors import NotFoundError, UndoError
from seglog.storage.files import Files, OpenFile, RestoringFiles
from seglog.storage.format.names import ABORT_FILE

_MAX_TOLD: Final = 5
_T = TypeVar("_T")


def undo_repair(files: RestoringFiles, root: Path, number: int | None = None) -> UndoPack:
    """Takes a repair back and removes its pack, which is returned.

    Args:
        files: Where the store is, of which this process holds the lock.
        root: The store directory.
        number: Which repair; the newest if None.

    Raises:
        NotFoundError: There is no such repair.
        UndoError: The store was changed since; it says where, and nothing was done.
        CorruptError: The pack is damaged; nothing was done.
    """
    if number is None:
        packs = list_packs(files, root)
        if not packs:
            raise NotFoundError(f"{root} has no repair to take back", help="nothing was changed")
        number = packs[-1]
    pack = read_pack(files, root, number)
    check_undo(files, root, pack)
    mark_undoing(files, pack)
    _restore(files, root, pack)
    remove_pack(files, root, pack)
    return pack


def check_undo(files: Files, root: Path, pack: UndoPack) -> None:
    """Does nothing if undoing a pack gives exactly the files that were there before its repair.

    Raises:
        UndoError: It would not; it says why.
    """
    if pack.after is not None and not pack.is_undoing:
        found = differences(pack.after, files, root)
    else:
        found = _half_done_differences(files, root, pack)
    told = list(islice(found, _MAX_TOLD + 1))
    if told:
        more = " and more" if len(told) > _MAX_TOLD else ""
        raise UndoError(
            f"the store was changed since repair {pack.number}: {'; '.join(told[:_MAX_TOLD])}{more}"
        )


def unfinished_pack(files: RestoringFiles, root: Path) -> UndoPack | None:
    """Returns the pack of a repair that was stopped half-way, or is half undone; None without one.

    Packs that were never finished themselves are removed: nothing was changed under them.
    """
    remove_leftovers(files, root, ())
    return half_done_pack(files, root)


def half_done_pack(files: Files, root: Path) -> UndoPack | None:
    """Returns what :func:`unfinished_pack` does, and leaves everything as it is."""
    for number in reversed(list_packs(files, root)):
        pack = read_pack(files, root, number)
        if pack.after is None or pack.is_undoing:
            return pack
    return None


def _half_done_differences(files: Files, root: Path, pack: UndoPack) -> Iterator[str]:
    """Yields what keeps a store that is half repaired, or half undone, from becoming what it was."""
    journal = files.open(journal_file(pack), writable=False)
    try:
        for name, state in pack.before.items():
            path = _place(files, root, pack, name)
            if not files.exists(path):
                yield f"{name} is gone"
            elif _undone_state(files, path, pack, name, journal, state) != state:
                yield f"{name} has other content"
    finally:
        journal.close()
    known = {*pack.before, *pack.created, *pack.moved.values()}
    for name, entry in walk_store(files, root):
        if not entry.is_dir and name not in known:
            yield f"{name} is new"


def _undone_state(
    files: Files, path: Path, pack: UndoPack, name: str, journal: OpenFile, wanted: FileState
) -> FileState:
    old = pack.old.get(name)
    if old is None:
        return state_of(files, path)
    return state_of(files, path, wanted.size_bytes, partial(_lay_old, pack, old, journal))


def _lay_old(pack: UndoPack, old: list[OldBytes], journal: OpenFile, chunk: memoryview, at: int) -> None:
    for one in old:
        low, high = max(at, one.position_bytes), min(at + len(chunk), one.position_bytes + one.size_bytes)
        if low < high:
            data = pack.read_old(journal, one)
            chunk[low - at : high - at] = data[low - one.position_bytes : high - one.position_bytes]


def _place(files: Files, root: Path, pack: UndoPack, name: str) -> Path:
    """Returns where a file lies now that was there before the repair."""
    if name in pack.kept and files.exists(pack.kept[name]):
        return pack.kept[name]
    if name in pack.moved and files.exists(root / pack.moved[name]):
        return root / pack.moved[name]
    return root / name


def _restore(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    abort = root / ABORT_FILE
    if not files.exists(abort):
        # As while repairing: a store that is half undone must not look as if it had been closed.
        files.write_file(abort, b"")
        files.sync_dir(root)
    journal = files.open(journal_file(pack), writable=False)
    try:
        _restore_names(files, root, pack)
        for name, old in _but_abort(pack.old.items()):
            _put_back(files, root / name, pack, old, journal)
        for name, _value in _but_abort((*pack.kept.items(), *pack.moved.items(), *pack.old.items())):
            files.set_stamp(root / name, pack.stamps[name])
        for name in sorted(pack.made, reverse=True):
            if files.exists(root / name) and not files.list_dir(root / name):
                files.remove_dir(root / name)
                files.sync_dir((root / name).parent)
        _restore_abort(files, abort, pack, journal)
    finally:
        journal.close()
    files.sync_dir(root)


def _but_abort(named: Iterable[tuple[str, _T]]) -> list[tuple[str, _T]]:
    return [(name, value) for name, value in named if name != ABORT_FILE]


def _restore_names(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    folders: set[Path] = set()
    for name, _place_now in _but_abort((*pack.kept.items(), *pack.moved.items())):
        place = _place(files, root, pack, name)
        if place != root / name:
            files.rename(place, root / name)
            folders |= {place.parent, (root / name).parent}
    for name in pack.created:
        if name != ABORT_FILE and files.exists(root / name):
            files.remove(root / name)
            folders.add((root / name).parent)
    for folder in folders:
        files.sync_dir(folder)


def _restore_abort(files: RestoringFiles, abort: Path, pack: UndoPack, journal: OpenFile) -> None:
    if ABORT_FILE not in pack.before:
        files.remove(abort)
        return
    if ABORT_FILE in pack.kept and files.exists(pack.kept[ABORT_FILE]):
        files.rename(pack.kept[ABORT_FILE], abort)
    if ABORT_FILE in pack.old:
        _put_back(files, abort, pack, pack.old[ABORT_FILE], journal)
    files.set_stamp(abort, pack.stamps[ABORT_FILE])


def _put_back(files: Files, path: Path, pack: UndoPack, old: list[OldBytes], journal: OpenFile) -> None:
    size_bytes = pack.before[path.relative_to(pack.root).as_posix()].size_bytes
    handle = files.open(path, writable=True)
    try:
        if handle.size_bytes != size_bytes:
            handle.set_size(size_bytes)
        for one in old:
            if one.size_bytes:
                handle.reserve(one.position_bytes, one.size_bytes)
                handle.write_at(pack.read_old(journal, one), one.position_bytes)
        handle.sync()
    finally:
        handle.close()
