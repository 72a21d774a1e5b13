"""Applies the changes of a draft to the store, after an undo pack holds all bytes that they overwrite.

``seglog/holes`` is written before the tombstones that it describes. A tombstone that it does not list counts
as a message; it would stay one forever if the repair were stopped in between and its pack then moved aside.
The ``abort`` file exists from the first change to the last, so that the next open after a crash of the repair
walks the whole log. Such a crash leaves the store half changed; the pack holds its former state.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from seglog.doctor.draft.changes import CHANGED, CREATED, MADE, MOVED, REMOVED, Change
from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.draft.real_places import log_folders_after, real_changes
from seglog.doctor.undo.store_fingerprint import as_it_is
from seglog.doctor.undo.undo_pack import UndoPack
from seglog.doctor.undo.undo_writing import finish_pack, write_pack
from seglog.errors import FullError
from seglog.storage.files import OpenFile, RestoringFiles, explain_os_error
from seglog.storage.format.names import ABORT_FILE, OURS
from seglog.storage.scan import HOLES_FILE, load_holes
from seglog.text import shell_text

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
    """Makes a store equal to its draft, durably, and returns the pack that undoes the change.

    Args:
        draft: The draft.
        files: Access to the store; this process holds its lock.
        root: The store directory.
        changes: The differences between draft and store.
        now_ms: Time of the repair, for the pack.
        had_lock: Whether the ``lock`` file existed before this process took the lock.

    Raises:
        FullError: No space; the store is unchanged, or half changed, which the pack undoes.
    """
    placed = real_changes(files, root, changes)
    log_folders = log_folders_after(files, root, placed)
    files = as_it_is(files)  # the pack, and every step, names a file as its folder has it
    with _names_way_back(root, has_pack=False):
        real = [change for change, _shown in placed]
        pack = write_pack(files, root, real, now_ms, had_lock=had_lock, log_folders=log_folders)
    with _names_way_back(root):
        abort = root / ABORT_FILE
        stays = draft.exists(abort)
        if not files.exists(abort):
            # Before the first change: after a crash in the repair the next opening walks the whole log.
            files.write_file(abort, b"")
            files.sync_dir(root)
        _rename(files, root, pack)
        holes = root / OURS / HOLES_FILE
        described = {hole.phy_offset for hole in load_holes(files, root)}
        is_first = any(hole.phy_offset not in described for hole in load_holes(draft, root))
        ordered = sorted(placed, key=lambda one: one[1] != holes) if is_first else placed
        for change, shown in ordered:
            if shown != abort:
                _apply(draft, files, root, change, pack, shown)
            if shown == holes and is_first:
                # On the disk before any tombstone, which would count as a message without it.
                files.sync_dir(holes.parent)
        _sync_folders(files, (change for change, _shown in placed))
        # `abort` is changed last: it may be removed only when all other changes are on the disk.
        for change, shown in placed:
            if shown == abort and change.kind != CREATED:
                _apply(draft, files, root, change, pack, shown)
        if files.exists(abort) and not stays:
            files.remove(abort)
        files.sync_dir(root)
        # Until the pack is finished the repair counts as stopped half-way, and the next repair undoes it.
        finish_pack(files, root, pack)
        return pack


@contextmanager
def _names_way_back(root: Path, *, has_pack: bool = True) -> Iterator[None]:
    """Makes errors name the next command; without a pack there is nothing to take back."""
    try:
        yield
    except (FullError, OSError) as error:
        typed = shell_text(root)
        again = f"run `seglog repair --apply {typed}` again"
        if isinstance(error, OSError) and error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            told = explain_os_error(error)
            way_back = f"`seglog undo {typed}` takes back what was done of the repair"
            nothing = f"nothing of the repair was done; put this right, then {again}"
            told.help = "; ".join(filter(None, (told.help, way_back if has_pack else nothing)))
            raise told from error
        nothing = f"nothing of the repair was done; free space, then {again}"
        way_back = f"free space, then {again}, or take back what was done: `seglog undo {typed}`"
        raise FullError(str(error), help=way_back if has_pack else nothing) from error


def _apply(
    draft: DraftFiles, files: RestoringFiles, root: Path, change: Change, pack: UndoPack, shown: Path
) -> None:
    path = change.path
    match change.kind:
        case kind if kind == MADE:
            files.make_dirs(path)
        case kind if kind == MOVED and change.target is not None:
            files.rename(path, change.target)
        case kind if kind == REMOVED:
            # Moved into the pack and not deleted, so that an undo can move it back.
            files.rename(path, pack.kept[path.relative_to(root).as_posix()])
        case kind if kind in {CREATED, CHANGED}:
            if change.kind == CREATED:
                files.create(path, change.new_bytes).close()
            with closing(files.open(path, writable=True)) as handle:
                if handle.size_bytes != change.new_bytes:
                    handle.set_size(change.new_bytes)
                with closing(draft.open(shown, writable=False)) as new:
                    _copy(new, handle, change)
                handle.sync()


def _rename(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    """Renames files, each by way of the pack's folder, so that no file overwrites another one."""
    names = [(root / name, root / one.target, one.through) for name, one in pack.renamed.items()]
    folders = {path.parent for paths in names for path in paths}
    for source, _target, through in names:
        files.rename(source, through)
    for folder in sorted(folders):
        files.sync_dir(folder)
    # Only now are all new names free: one file's new name may be another one's old name.
    for _source, target, through in names:
        files.rename(through, target)
    for folder in sorted(folders):
        files.sync_dir(folder)


def _copy(new: OpenFile, handle: OpenFile, change: Change) -> None:
    for start, size in change.stretches:
        # Space is reserved first: a full disk is noticed before any byte of the stretch is overwritten.
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
