"""Writes undo packs, records the progress of a repair or an undo, and removes packs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from seglog.doctor.draft.changes import CHANGED, CREATED, MADE, MOVED, REMOVED, RENAMED, Change
from seglog.doctor.undo.store_fingerprint import FileState, state_of, walk_store
from seglog.doctor.undo.undo_pack import (
    KEPT,
    MAX_NUMBER,
    UndoPack,
    next_number,
    pack_folder,
)
from seglog.doctor.undo.undo_reading import read_whole
from seglog.errors import NotFoundError, SeglogError, UndoError
from seglog.storage.files import Files, OpenFile, RestoringFiles, Stamp
from seglog.storage.format.names import ABORT_FILE, LOCK_FILE, OURS
from seglog.storage.format.ours import MAX_DATA_BYTES, UNDO_VERSION, UndoEntry, UndoKind, encode_undo_entry
from seglog.storage.small_files import AFTER, JOURNAL, UNDO, UNDOING, pack_numbers
from seglog.text import shell_text

DISCARDED: Final = f"{OURS}/stray/undo"
"""Folder for packs that were moved aside."""
_UNFINISHED: Final = ".tmp"
_BUFFER_BYTES: Final = 1 << 20


def write_pack(
    files: RestoringFiles,
    root: Path,
    changes: Iterable[Change],
    now_ms: int,
    *,
    had_lock: bool,
    log_folders: Collection[str] = (),
) -> UndoPack:
    """Writes the pack of a repair before the repair, durably, and returns it.

    If it cannot be completed, nothing of it is left.

    Args:
        files: Access to the store; no other process may change it meanwhile.
        root: The store directory.
        changes: All changes of the repair.
        now_ms: Time of the repair, ms since 1970 UTC.
        had_lock: Whether the ``lock`` file existed before this process took the lock.
        log_folders: Folders of the log beside ``commitlog``, old and new.
    """
    number = next_number(files, root)
    if number > MAX_NUMBER:
        raise UndoError(
            f"there is no number left for an undo pack behind {number - 1}",
            help=f"`seglog undo --discard {shell_text(root)} {number - 1}` moves that pack aside",
        )
    # The state is read before the pack's own folders are created.
    before = list(_state_entries(files, root, log_folders, had_lock=had_lock))
    folder = pack_folder(root, number)
    try:
        files.make_dirs(folder / KEPT)
        entries = [*before, *_guard_entries(files, root, changes, had_lock=had_lock)]
        begin = UndoEntry(UndoKind.BEGIN, position_bytes=UNDO_VERSION, size_bytes=now_ms)
        write_entries(
            files, folder / JOURNAL, (begin, *entries), _change_entries(files, root, changes, log_folders)
        )
        return read_whole(files, root, number)
    except BaseException:
        with suppress(SeglogError, OSError):  # the next repair removes what is left
            _remove_unused(files, root, folder, {one.path for one in before if one.kind is UndoKind.FOLDER})
        raise


def _remove_unused(files: RestoringFiles, root: Path, folder: Path, folders: Iterable[str]) -> None:
    """Removes a pack of which the repair changed nothing yet, with its folders that did not exist before."""
    if files.exists(folder / JOURNAL):
        files.remove(folder / JOURNAL)
    remove_leftovers(files, root, folders)


def finish_pack(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    """Records the state of the store after the repair, durably; this completes the repair."""
    targets = {one.target for one in pack.renamed.values()}
    touched = {*pack.created, *pack.moved.values(), *pack.old, *targets}
    entries: list[UndoEntry] = []
    for name, entry in walk_store(files, root):
        if entry.is_dir:
            continue
        known = pack.before.get(name)
        state = state_of(files, root / name) if known is None or name in touched else known
        entries.append(_file_entry(name, state, Stamp(0, 0)))
    write_entries(files, pack.folder / AFTER, entries, ())


def mark_undoing(files: Files, pack: UndoPack) -> None:
    """Records that undoing a pack was begun."""
    files.write_file(pack.folder / UNDOING, b"")
    files.sync_dir(pack.folder)


def remove_pack(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    """Removes a pack that was undone, and the folders that were created for it."""
    # In this order a half removed pack can be undone again, or counts as no pack.
    for name in (AFTER, UNDOING, JOURNAL):
        if files.exists(pack.folder / name):
            files.remove(pack.folder / name)
            files.sync_dir(pack.folder)
    remove_leftovers(files, root, pack.folders)


def has_leftovers(files: Files, root: Path) -> bool:
    """Returns whether there are packs without a journal, which can be removed."""
    return any(not files.exists(pack_folder(root, number) / JOURNAL) for number in pack_numbers(files, root))


def remove_leftovers(files: Files, root: Path, folders: Iterable[str]) -> None:
    """Removes packs without a journal, and the folders above them that did not exist before."""
    packs = root / UNDO
    for number in pack_numbers(files, root):
        folder = pack_folder(root, number)
        if files.exists(folder / JOURNAL):
            continue
        for path in (folder / KEPT, folder):
            for item in files.list_dir(path):
                if not item.is_dir:
                    files.remove(path / item.name)
            if files.is_dir(path) and not files.list_dir(path):
                files.remove_dir(path)
    for folder in (packs, packs.parent):
        name = folder.relative_to(root).as_posix()
        if files.exists(folder) and not files.list_dir(folder) and name not in set(folders):
            files.remove_dir(folder)
            files.sync_dir(folder.parent)


def discard_pack(files: Files, root: Path, number: int) -> Path:
    """Moves a pack aside durably, without reading it, and returns its new path.

    Nothing else in the store changes: the changes of a repair are kept, and a repair that was stopped
    half-way stays unfinished.

    Raises:
        NotFoundError: There is no such pack.
    """
    source = pack_folder(root, number)
    if number not in pack_numbers(files, root):
        raise NotFoundError(f"{root} has no undo pack {number}", help="`seglog undo --list STORE` shows them")
    folder = root / DISCARDED
    files.make_dirs(folder)
    target = folder / str(number)
    again = 1
    while files.exists(target):
        again += 1
        target = folder / f"{number}.{again}"
    files.rename(source, target)
    files.sync_dir(folder)
    files.sync_dir(source.parent)
    return target


def _state_entries(
    files: RestoringFiles, root: Path, log_folders: Collection[str], *, had_lock: bool
) -> Iterator[UndoEntry]:
    for name, entry in walk_store(files, root):
        if entry.is_dir:
            yield UndoEntry(UndoKind.FOLDER, name, position_bytes=int(name in log_folders))
        elif had_lock or name != LOCK_FILE:
            yield _file_entry(name, state_of(files, root / name), files.stamp(root / name))


def _file_entry(name: str, state: FileState, stamp: Stamp) -> UndoEntry:
    return UndoEntry(
        UndoKind.FILE,
        name,
        size_bytes=state.size_bytes,
        mode=stamp.mode,
        modified_ns=stamp.modified_ns,
        content_crc32c=state.content_crc32c,
    )


def _guard_entries(
    files: Files, root: Path, changes: Iterable[Change], *, had_lock: bool
) -> Iterator[UndoEntry]:
    """Yields entries for files that are created without an entry in the changes: the lock, and ``abort``."""
    created = {change.path for change in changes if change.kind == CREATED}
    if not had_lock:
        yield UndoEntry(UndoKind.CREATED, LOCK_FILE)
    if not files.exists(root / ABORT_FILE) and root / ABORT_FILE not in created:
        yield UndoEntry(UndoKind.CREATED, ABORT_FILE)


def _change_entries(
    files: Files, root: Path, changes: Iterable[Change], log_folders: Collection[str]
) -> Iterator[UndoEntry]:
    number = 0
    for change in changes:
        name = change.path.relative_to(root).as_posix()
        target = "" if change.target is None else change.target.relative_to(root).as_posix()
        data = target.encode("utf-8", "surrogateescape")
        match change.kind:
            case kind if kind == CREATED:
                yield UndoEntry(UndoKind.CREATED, name)
            case kind if kind == MADE:
                yield UndoEntry(UndoKind.MADE, name, position_bytes=int(name in log_folders))
            case kind if kind == MOVED and data:
                yield UndoEntry(UndoKind.MOVED, name, data)
            case kind if kind == RENAMED and data:
                number += 1
                yield UndoEntry(UndoKind.RENAMED, name, data, position_bytes=number)
            case kind if kind == REMOVED:
                number += 1
                yield UndoEntry(UndoKind.KEPT, name, position_bytes=number)
            case kind if kind == CHANGED:
                yield from _bytes_entries(files, change, name)


def _bytes_entries(files: Files, change: Change, name: str) -> Iterator[UndoEntry]:
    old_bytes = change.old_bytes
    stretches = [(at, min(size, old_bytes - at)) for at, size in change.stretches if at < old_bytes]
    if change.new_bytes < old_bytes:
        stretches.append((change.new_bytes, old_bytes - change.new_bytes))
    if not stretches:
        stretches = [(0, 0)]  # only the length changes
    with closing(files.open(change.path, writable=False)) as handle:
        for start, size in stretches:
            yield from (
                UndoEntry(UndoKind.BYTES, name, data, position_bytes=at, size_bytes=length)
                for at, length, data in _pieces(handle, start, start + size)
            )


def _pieces(handle: OpenFile, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
    """Yields position, length and bytes of parts of a stretch, without zeros at their ends; a hole is one."""
    at, first = start, True
    while first or at < end:
        data_at = handle.next_data(at)
        data_at = end if data_at is None else min(data_at, end)
        is_hole = data_at == end or data_at - at >= MAX_DATA_BYTES
        size = data_at - at if is_hole else min(MAX_DATA_BYTES, end - at)
        piece = memoryview(bytearray(0 if is_hole else size))
        handle.read_into(piece, at)
        yield at, size, bytes(piece).rstrip(b"\0")
        at, first = at + size, False


def write_entries(files: Files, path: Path, first: Iterable[UndoEntry], more: Iterable[UndoEntry]) -> None:
    """Writes a file of entries; it gets its name when it is complete and on the disk."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    if files.exists(unfinished):
        files.remove(unfinished)
    with closing(files.create(unfinished, 0)) as handle:
        at = count = 0
        buffer = bytearray()
        for entries in (first, more):
            for entry in entries:
                buffer += encode_undo_entry(entry)
                count += 1
                if len(buffer) >= _BUFFER_BYTES:
                    handle.write_at(buffer, at)
                    at += len(buffer)
                    buffer = bytearray()
        buffer += encode_undo_entry(UndoEntry(UndoKind.END, position_bytes=count))
        handle.write_at(buffer, at)
        handle.sync()
    files.sync_dir(path.parent)
    files.rename(unfinished, path)
    files.sync_dir(path.parent)
