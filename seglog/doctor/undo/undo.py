"""Undoes a repair: every file of the store becomes what it was before, bit for bit, or nothing is changed.

Before any change, the result for each file is computed and compared with the checksum that the file had
before the repair. An undo can be stopped at any moment and started again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from seglog.doctor.undo.copied_names import is_copied
from seglog.doctor.undo.store_fingerprint import FileState, as_it_is, differences, state_of, walk_store
from seglog.doctor.undo.undo_pack import OldBytes, UndoPack, list_packs
from seglog.doctor.undo.undo_reading import read_old, read_whole
from seglog.doctor.undo.undo_writing import mark_undoing, remove_pack
from seglog.errors import NotFoundError, UndoError
from seglog.storage.files import Files, OpenFile, RestoringFiles, StampingFiles
from seglog.storage.format.names import ABORT_FILE
from seglog.storage.seals import SEALS, list_seals, remove_seal, seal_file
from seglog.storage.small_files import JOURNAL
from seglog.text import shell_text

_MAX_TOLD: Final = 5
_ZEROS_BYTES: Final = 64 << 10


def undo_repair(files: RestoringFiles, root: Path, number: int | None = None) -> UndoPack:
    """Undoes a repair, removes its pack, and returns the pack.

    Args:
        files: Access to the store; this process holds its lock.
        root: The store directory.
        number: Number of the repair; None for the newest.

    Raises:
        NotFoundError: There is no such repair.
        UndoError: The store was changed since; the error names the place, and nothing was changed.
        CorruptError: The pack is damaged, or has contents that no repair writes; nothing was changed.
        UnsafePathError: The pack names something that is no file of the store; nothing was changed.
    """
    files = as_it_is(files)  # a pack names files as their folders have them
    if number is None:
        packs = list_packs(files, root)
        if not packs:
            raise NotFoundError(f"{root} has no repair to take back", help="nothing was changed")
        number = packs[-1]
    pack = read_whole(files, root, number)
    check_undo(files, root, pack)
    _remove_new_seals(files, root, pack)
    mark_undoing(files, pack)
    restore(files, root, pack)
    remove_pack(files, root, pack)
    return pack


def check_undo(files: Files, root: Path, pack: UndoPack) -> None:
    """Checks that undoing a pack results in exactly the files that existed before its repair.

    Seals that were made since are no difference: the undo removes them.

    Raises:
        UndoError: It would not; the error states why.
    """
    told: list[str] = []
    if pack.after is not None and not pack.is_undoing:
        seals = {seal_file(first) for first in _new_seals(files, root, pack)}
        told += islice(
            differences(pack.after, files, root, passing_over=seals, log_folders=pack.log_folders),
            _MAX_TOLD + 1,
        )
    if not told:
        told += islice(_undone_differences(files, root, pack), _MAX_TOLD + 1)
    if told:
        more = " and more" if len(told) > _MAX_TOLD else ""
        discard = f"seglog undo --discard {shell_text(root)} {pack.number}"
        raise UndoError(
            f"the store was changed since repair {pack.number}: {'; '.join(told[:_MAX_TOLD])}{more}",
            help=f"nothing was changed; `{discard}` moves the pack aside",
        )


def _new_seals(files: Files, root: Path, pack: UndoPack) -> list[int]:
    """Returns the first offsets of the segments that were sealed since a finished repair."""
    if pack.after is None or pack.is_undoing or not files.is_dir(root / SEALS):
        return []
    return [first for first in list_seals(files, root) if seal_file(first) not in pack.after]


def _remove_new_seals(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    """Removes seals that were made since the repair: each is computed from the log that the repair left."""
    for first in _new_seals(files, root, pack):
        remove_seal(files, root, first)
    folder = root / SEALS
    if SEALS not in pack.folders and files.is_dir(folder) and not files.list_dir(folder):
        files.remove_dir(folder)


def _undone_differences(files: Files, root: Path, pack: UndoPack) -> Iterator[str]:
    """Yields the differences that prevent an undo of a repaired, half repaired or half undone store."""
    # Files that a finished repair did not change were compared with `after`, which has the same state of
    # them.
    is_finished = pack.after is not None and not pack.is_undoing
    changed = {*pack.kept, *pack.moved, *pack.renamed, *pack.old}
    with closing(files.open(pack.folder / JOURNAL, writable=False)) as journal:
        for name, state in pack.before.items():
            if name not in changed and (is_finished or not is_copied(name, pack.log_folders)):
                continue
            path = _place(files, root, pack, name)
            if not files.exists(path):
                yield f"{name} is gone"
            elif files.is_dir(path):
                yield f"{name} is a folder"
            elif path != root / name and not _may_be_there(pack, name) and files.exists(root / name):
                yield f"{name} is there again"
            elif _undone_state(files, path, pack, name, journal, state) != state:
                yield f"{name} has other content"
    for name in (*pack.kept, *pack.moved, *pack.renamed):
        if not files.is_dir((root / name).parent):
            yield f"the folder of {name} is gone"
    yield from (f"{name} is a folder" for name in pack.created if files.is_dir(root / name))
    if is_finished:
        return
    known = {*pack.before, *pack.created, *pack.moved.values()}
    known |= {one.target for one in pack.renamed.values()}
    for name, entry in walk_store(files, root):
        if not entry.is_dir and name not in known and is_copied(name, pack.log_folders):
            yield f"{name} is new"


def _undone_state(
    files: Files, path: Path, pack: UndoPack, name: str, journal: OpenFile, wanted: FileState
) -> FileState | None:
    """Returns the state of a file after the undo; None if it needed a length that no record supports."""
    old = pack.old.get(name)
    if old is None:
        return state_of(files, path)
    with closing(files.open(path, writable=False)) as handle:
        known_bytes = max(handle.size_bytes, old[-1].end)
    if wanted.size_bytes > known_bytes:
        return None
    return state_of(files, path, wanted.size_bytes, _OldPatch(old, journal))


class _OldPatch:
    """The old bytes of one file, in the order of their positions."""

    def __init__(self, old: list[OldBytes], journal: OpenFile) -> None:
        self._old = old
        self._data_ends = [one.data_end for one in old]
        self._ends = [one.end for one in old]
        self._journal = journal

    def next_at(self, position_bytes: int) -> int | None:
        """Returns the position of the next old byte that the journal holds; zeros after them are skipped."""
        index = bisect_right(self._data_ends, position_bytes)
        while index < len(self._old) and not self._old[index].data_bytes:
            index += 1
        return None if index == len(self._old) else max(position_bytes, self._old[index].position_bytes)

    def lay(self, chunk: memoryview, position_bytes: int) -> None:
        """Writes old bytes over a piece of the file."""
        end = position_bytes + len(chunk)
        for index in range(bisect_right(self._ends, position_bytes), len(self._old)):
            one = self._old[index]
            if one.position_bytes >= end:
                return
            low, high = max(position_bytes, one.position_bytes), min(end, one.end)
            old = bytearray(high - low)
            if low < one.data_end:
                data = read_old(self._journal, one)[low - one.position_bytes : high - one.position_bytes]
                old[: len(data)] = data
            chunk[low - position_bytes : high - position_bytes] = old


def _may_be_there(pack: UndoPack, name: str) -> bool:
    """Returns whether another file may now have the name of a file that was moved."""
    return name == ABORT_FILE or name in {one.target for one in pack.renamed.values()}


def _place(files: Files, root: Path, pack: UndoPack, name: str) -> Path:
    """Returns the present path of a file that existed before the repair."""
    if name in pack.renamed:
        return _place_of_renamed(files, root, pack, name)
    if name in pack.kept and files.exists(pack.kept[name]):
        return pack.kept[name]
    if name in pack.moved and files.exists(root / pack.moved[name]):
        return root / pack.moved[name]
    return root / name


def _place_of_renamed(files: Files, root: Path, pack: UndoPack, name: str) -> Path:
    """Returns the present path of a renamed file; other files may have its names, so its contents decide."""
    one = pack.renamed[name]
    if files.exists(one.through):
        return one.through
    for path in (root / one.target, root / name):
        if files.exists(path) and not files.is_dir(path) and state_of(files, path) == pack.before[name]:
            return path
    return root / name


def restore(files: StampingFiles, root: Path, pack: UndoPack) -> None:
    """Undoes a repair step by step; :func:`check_undo` must have accepted the result.

    Args:
        files: Access to the store, or to a draft of it.
        root: The store directory.
        pack: The pack, read and checked as a whole.
    """
    abort = root / ABORT_FILE
    if not files.exists(abort):
        # As during a repair: a half undone store must not look as if it had been closed.
        files.write_file(abort, b"")
        files.sync_dir(root)
    with closing(files.open(pack.folder / JOURNAL, writable=False)) as journal:
        _restore_names(files, root, pack)
        for name, old in pack.old.items():
            if name != ABORT_FILE:
                _put_back(files, root / name, pack, old, journal)
        # After the last write, which would change the times again.
        for name in (*pack.kept, *pack.moved, *pack.renamed, *pack.old):
            if name != ABORT_FILE:
                files.set_stamp(root / name, pack.stamps[name])
        # Inner folders first; a folder that is not empty has files of another process, and is kept.
        for name in sorted(pack.made, reverse=True):
            if files.exists(root / name) and not files.list_dir(root / name):
                files.remove_dir(root / name)
                files.sync_dir((root / name).parent)
        # Last: while the undo is incomplete `abort` must exist.
        _restore_abort(files, abort, pack, journal)
    files.sync_dir(root)


def _restore_names(files: Files, root: Path, pack: UndoPack) -> None:
    folders: set[Path] = set()
    _restore_renamed(files, root, pack)
    for name in (*pack.kept, *pack.moved):
        place = _place(files, root, pack, name)
        if name != ABORT_FILE and place != root / name:
            files.rename(place, root / name)
            folders |= {place.parent, (root / name).parent}
    for name in pack.created:
        if name != ABORT_FILE and files.exists(root / name):
            files.remove(root / name)
            folders.add((root / name).parent)
    for folder in folders:
        files.sync_dir(folder)


def _restore_renamed(files: Files, root: Path, pack: UndoPack) -> None:
    """Gives files their old names, each by way of the pack's folder, so that none overwrites another."""
    names = [*pack.renamed, *(one.target for one in pack.renamed.values())]
    folders = {(root / name).parent for name in names}
    for name, one in pack.renamed.items():
        place = _place(files, root, pack, name)
        if place not in (one.through, root / name):
            files.rename(place, one.through)
            folders.add(one.through.parent)
    for folder in sorted(folders):
        files.sync_dir(folder)
    # Only now are all old names free; after a crash in between the files are found in the pack's folder.
    for name, one in pack.renamed.items():
        if files.exists(one.through):
            files.rename(one.through, root / name)
    for folder in sorted(folders):
        files.sync_dir(folder)


def _restore_abort(files: StampingFiles, abort: Path, pack: UndoPack, journal: OpenFile) -> None:
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
    with closing(files.open(path, writable=True)) as handle:
        if handle.size_bytes != size_bytes:
            handle.set_size(size_bytes)
        for one in old:
            if one.data_bytes:
                handle.reserve(one.position_bytes, one.data_bytes)
                handle.write_at(read_old(journal, one), one.position_bytes)
            _put_zeros(handle, one.data_end, one.end)
        handle.sync()


def _put_zeros(handle: OpenFile, start: int, end: int) -> None:
    """Writes zeros over the data of a file only, so that the cost of a stretch depends on its data."""
    at = handle.next_data(start)
    while at is not None and at < end:
        # Up to a block boundary: a write makes the whole block count as data.
        size = min(_ZEROS_BYTES - at % _ZEROS_BYTES, end - at)
        handle.write_at(bytes(size), at)
        at = handle.next_data(at + size)
