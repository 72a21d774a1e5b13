"""Makes the changes of a draft for good, once the undo pack has everything that they write over.

The ``abort`` file is there from the first change to the last, so that whoever opens the store after a crash
in here walks all of its log. What such a crash leaves is half changed; the pack has what it was before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from seglog.doctor.draft.changes import CHANGED, CREATED, MADE, MOVED, REMOVED, Change, opened
from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.undo.undo_pack import UndoPack
from seglog.doctor.undo.undo_writing import finish_pack, write_pack
from seglog.storage.files import OpenFile, RestoringFiles
from seglog.storage.format.names import ABORT_FILE

_CHUNK_BYTES: Final = 1 << 20


def apply_changes(
    draft: DraftFiles,
    files: RestoringFiles,
    root: Path,
    changes: Sequence[Change],
    now_ms: int,
    *,
    had_lock: bool,
) -> UndoPack:
    """Makes a store what a draft of it is, durably, and returns the pack that undoes it.

    Args:
        draft: The draft.
        files: Where the store is, of which this process holds the lock.
        root: The store directory.
        changes: What the draft holds other than the store.
        now_ms: Goes into the pack.
        had_lock: Whether there was a ``lock`` file before this process took the lock.

    Raises:
        FullError: No space; the store is as it was, or half changed, and the pack undoes that.
    """
    pack = write_pack(files, root, changes, now_ms, had_lock=had_lock)
    abort = root / ABORT_FILE
    stays = draft.exists(abort)
    if not files.exists(abort):
        files.write_file(abort, b"")
        files.sync_dir(root)
    _rename(files, root, pack)
    for change in changes:
        if change.path != abort:
            _apply(draft, files, root, change, pack)
    _sync_folders(files, changes)
    for change in changes:
        if change.path == abort and change.kind != CREATED:
            _apply(draft, files, root, change, pack)
    if files.exists(abort) and not stays:
        files.remove(abort)
    files.sync_dir(root)
    finish_pack(files, root, pack)
    return pack


def _apply(draft: DraftFiles, files: RestoringFiles, root: Path, change: Change, pack: UndoPack) -> None:
    path = change.path
    match change.kind:
        case kind if kind == MADE:
            files.make_dirs(path)
        case kind if kind == MOVED and change.target is not None:
            files.rename(path, change.target)
        case kind if kind == REMOVED:
            files.rename(path, pack.kept[path.relative_to(root).as_posix()])
        case kind if kind in {CREATED, CHANGED}:
            if change.kind == CREATED:
                files.create(path, change.new_bytes).close()
            with closing(files.open(path, writable=True)) as handle:
                if handle.size_bytes != change.new_bytes:
                    handle.set_size(change.new_bytes)
                with opened(draft, path) as new:
                    _copy(new, handle, change)
                handle.sync()


def _rename(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    """Gives files their names, each by way of the pack, so that none takes another's place."""
    names = [(root / name, root / one.target, one.through) for name, one in pack.renamed.items()]
    folders = {path.parent for paths in names for path in paths}
    for source, _target, through in names:
        files.rename(source, through)
    for folder in sorted(folders):
        files.sync_dir(folder)
    for _source, target, through in names:
        files.rename(through, target)
    for folder in sorted(folders):
        files.sync_dir(folder)


def _copy(new: OpenFile, handle: OpenFile, change: Change) -> None:
    for start, size in change.stretches:
        handle.reserve(start, size)
        for at in range(start, start + size, _CHUNK_BYTES):
            piece = memoryview(bytearray(min(_CHUNK_BYTES, start + size - at)))
            new.read_into(piece, at)
            handle.write_at(piece, at)


def _sync_folders(files: RestoringFiles, changes: Iterable[Change]) -> None:
    folders = {change.path.parent for change in changes}
    folders |= {change.target.parent for change in changes if change.target is not None}
    for folder in sorted(folders):
        files.sync_dir(folder)
