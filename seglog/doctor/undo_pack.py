"""Undo packs: ``<store>/seglog/undo/NUMBER/``, all that is needed to take one repair back.

``journal`` says what the store was like and holds every byte that the repair writes over; ``kept/`` holds
the files that it takes away; ``after`` says what it left, and is there once it came to its end; ``undoing``
is there while the pack is undone. Each appears whole, by its name, and only when it is on the disk. Without
``journal`` nothing was changed yet, or everything is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.doctor.changes import CHANGED, CREATED, MADE, MOVED, REMOVED, Change
from seglog.doctor.store_state import UNDO, FileState, state_of, walk_store
from seglog.errors import CorruptError, NotFoundError, TruncatedError
from seglog.storage.files import Files, OpenFile, RestoringFiles, Stamp
from seglog.storage.format.names import ABORT_FILE, LOCK_FILE
from seglog.storage.format.undo_journal import (
    MAX_DATA_BYTES,
    UNDO_ENTRY,
    UNDO_VERSION,
    UndoEntry,
    UndoKind,
    decode_undo_entry,
    encode_undo_entry,
    undo_entry_bytes,
)

_JOURNAL: Final = "journal"
_AFTER: Final = "after"
_UNDOING: Final = "undoing"
_KEPT: Final = "kept"
_UNFINISHED: Final = ".tmp"
_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class OldBytes:
    """A stretch of a file as it was; where its entry lies in the journal."""

    position_bytes: int
    size_bytes: int
    entry_at: int


@dataclass(slots=True)
class UndoPack:
    """What a pack says.

    Attributes:
        root: The store directory.
        number: Its name.
        begun_ms: When the repair began.
        before: Every file as it was.
        stamps: Rights and time of each.
        folders: The folders that there were.
        kept: Files that went, and their names in ``kept/``.
        moved: Files that got another name, and which.
        created: Files that came.
        made: Folders that came.
        old: What was written over, by file.
        after: Every file as the repair left it; None if it did not come to its end.
        is_undoing: Whether undoing it was begun.
    """

    root: Path
    number: int
    begun_ms: int = 0
    before: dict[str, FileState] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    kept: dict[str, Path] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    old: dict[str, list[OldBytes]] = field(default_factory=dict)
    after: dict[str, FileState] | None = None
    is_undoing: bool = False

    @property
    def folder(self) -> Path:
        """Where it is."""
        return pack_folder(self.root, self.number)

    def read_old(self, journal: OpenFile, old: OldBytes) -> bytes:
        """Returns a stretch as it was."""
        return _read_entry(journal, old.entry_at).data.ljust(old.size_bytes, b"\0")


def list_packs(files: Files, root: Path) -> list[int]:
    """Returns the numbers of the packs of a store that can be undone, oldest first."""
    return sorted(
        int(entry.name)
        for entry in files.list_dir(root / UNDO)
        if entry.is_dir and entry.name.isdecimal() and files.exists(root / UNDO / entry.name / _JOURNAL)
    )


def pack_folder(root: Path, number: int) -> Path:
    """Returns where a pack is."""
    return root / UNDO / str(number)


def journal_file(pack: UndoPack) -> Path:
    """Returns the journal of a pack."""
    return pack.folder / _JOURNAL


def write_pack(
    files: RestoringFiles, root: Path, changes: Iterable[Change], now_ms: int, *, had_lock: bool
) -> UndoPack:
    """Writes the pack of a repair that is about to be made, durably, and returns it.

    Args:
        files: Where the store is, which nobody else may change meanwhile.
        root: The store directory.
        changes: All that will be done.
        now_ms: When.
        had_lock: Whether there was a ``lock`` file before this process took the lock.
    """
    taken = [int(entry.name) for entry in files.list_dir(root / UNDO) if entry.name.isdecimal()]
    # Looked at before the pack's own folders come.
    before = list(_state_entries(files, root, had_lock=had_lock))
    folder = pack_folder(root, max(taken, default=0) + 1)
    files.make_dirs(folder / _KEPT)
    entries = [*before, *_guard_entries(files, root, changes, had_lock=had_lock)]
    begin = UndoEntry(UndoKind.BEGIN, position_bytes=UNDO_VERSION, size_bytes=now_ms)
    _write_entries(files, folder / _JOURNAL, (begin, *entries), _change_entries(files, root, changes))
    return read_pack(files, root, int(folder.name))


def finish_pack(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    """Writes down what the repair left, durably; it has come to its end then."""
    touched = {*pack.created, *pack.moved.values(), *pack.old}
    entries: list[UndoEntry] = []
    for name, entry in walk_store(files, root):
        if entry.is_dir:
            continue
        known = pack.before.get(name)
        state = state_of(files, root / name) if known is None or name in touched else known
        entries.append(_file_entry(name, state, Stamp(0, 0)))
    _write_entries(files, pack.folder / _AFTER, entries, ())


def mark_undoing(files: Files, pack: UndoPack) -> None:
    """Writes down that undoing a pack was begun."""
    files.write_file(pack.folder / _UNDOING, b"")
    files.sync_dir(pack.folder)


def remove_pack(files: RestoringFiles, root: Path, pack: UndoPack) -> None:
    """Removes a pack that was undone, and the folders that came with it."""
    # In this order a pack that is half removed can be undone again, or counts as none.
    for name in (_AFTER, _UNDOING, _JOURNAL):
        if files.exists(pack.folder / name):
            files.remove(pack.folder / name)
            files.sync_dir(pack.folder)
    remove_leftovers(files, root, pack.folders)


def remove_leftovers(files: RestoringFiles, root: Path, folders: Iterable[str]) -> None:
    """Removes packs without journal, which no store needs, and the folders above them that were not there."""
    packs = root / UNDO
    for entry in files.list_dir(packs):
        folder = packs / entry.name
        if not entry.is_dir or not entry.name.isdecimal() or files.exists(folder / _JOURNAL):
            continue
        for path in (folder / _KEPT, folder):
            for item in files.list_dir(path):
                if not item.is_dir:
                    files.remove(path / item.name)
            if files.exists(path):
                files.remove_dir(path)
    for folder in (packs, packs.parent):
        name = folder.relative_to(root).as_posix()
        if files.exists(folder) and not files.list_dir(folder) and name not in set(folders):
            files.remove_dir(folder)
            files.sync_dir(folder.parent)


def read_pack(files: Files, root: Path, number: int) -> UndoPack:
    """Returns what a pack says.

    Raises:
        NotFoundError: There is no such pack.
        CorruptError: It is damaged.
    """
    pack = UndoPack(root, number)
    if not files.exists(pack.folder / _JOURNAL):
        raise NotFoundError(f"{root} has no undo pack {number}", help="`seglog undo --list STORE` shows them")
    for at, entry in _read_entries(files, root, pack.folder / _JOURNAL):
        _take_up(pack, at, entry)
    pack.is_undoing = files.exists(pack.folder / _UNDOING)
    if files.exists(pack.folder / _AFTER):
        pack.after = {
            entry.path: FileState(entry.size_bytes, entry.content_crc32c)
            for _at, entry in _read_entries(files, root, pack.folder / _AFTER)
            if entry.kind is UndoKind.FILE
        }
    return pack


def _take_up(pack: UndoPack, at: int, entry: UndoEntry) -> None:
    match entry.kind:
        case UndoKind.BEGIN:
            if entry.position_bytes != UNDO_VERSION:
                raise CorruptError("undo-version", expected=UNDO_VERSION, found=entry.position_bytes)
            pack.begun_ms = entry.size_bytes
        case UndoKind.FILE:
            pack.before[entry.path] = FileState(entry.size_bytes, entry.content_crc32c)
            pack.stamps[entry.path] = Stamp(entry.mode, entry.modified_ns)
        case UndoKind.FOLDER:
            pack.folders.add(entry.path)
        case UndoKind.BYTES:
            old = OldBytes(entry.position_bytes, entry.size_bytes, at)
            pack.old.setdefault(entry.path, []).append(old)
        case UndoKind.KEPT:
            pack.kept[entry.path] = pack.folder / _KEPT / str(entry.position_bytes)
        case UndoKind.MOVED:
            pack.moved[entry.path] = entry.data.decode("utf-8", "surrogateescape")
        case UndoKind.CREATED:
            pack.created.append(entry.path)
        case UndoKind.MADE:
            pack.made.append(entry.path)
        case UndoKind.END:
            pass


def _state_entries(files: RestoringFiles, root: Path, *, had_lock: bool) -> Iterator[UndoEntry]:
    for name, entry in walk_store(files, root):
        if entry.is_dir:
            yield UndoEntry(UndoKind.FOLDER, name)
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
    """Yields entries for files that come although no change says so: the lock, and abort while changing."""
    created = {change.path for change in changes if change.kind == CREATED}
    if not had_lock:
        yield UndoEntry(UndoKind.CREATED, LOCK_FILE)
    if not files.exists(root / ABORT_FILE) and root / ABORT_FILE not in created:
        yield UndoEntry(UndoKind.CREATED, ABORT_FILE)


def _change_entries(files: Files, root: Path, changes: Iterable[Change]) -> Iterator[UndoEntry]:
    number = 0
    for change in changes:
        name = change.path.relative_to(root).as_posix()
        match change.kind:
            case kind if kind == CREATED:
                yield UndoEntry(UndoKind.CREATED, name)
            case kind if kind == MADE:
                yield UndoEntry(UndoKind.MADE, name)
            case kind if kind == MOVED and change.target is not None:
                target = change.target.relative_to(root).as_posix()
                yield UndoEntry(UndoKind.MOVED, name, target.encode("utf-8", "surrogateescape"))
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
        stretches = [(0, 0)]  # the length alone changes
    handle = files.open(change.path, writable=False)
    try:
        for start, size in stretches:
            for at in range(start, max(start + size, start + 1), MAX_DATA_BYTES):
                piece = memoryview(bytearray(min(MAX_DATA_BYTES, start + size - at)))
                handle.read_into(piece, at)
                data = bytes(piece).rstrip(b"\0")
                yield UndoEntry(UndoKind.BYTES, name, data, position_bytes=at, size_bytes=len(piece))
    finally:
        handle.close()


def _write_entries(files: Files, path: Path, first: Iterable[UndoEntry], more: Iterable[UndoEntry]) -> None:
    """Writes a file of entries, whole and on the disk before it has its name."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    if files.exists(unfinished):
        files.remove(unfinished)
    handle = files.create(unfinished, 0)
    try:
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
    finally:
        handle.close()
    files.sync_dir(path.parent)
    files.rename(unfinished, path)
    files.sync_dir(path.parent)


def _read_entries(files: Files, root: Path, path: Path) -> Iterator[tuple[int, UndoEntry]]:
    """Yields the entries of a file and where each begins.

    Raises:
        CorruptError: It is not whole.
    """
    handle = files.open(path, writable=False)
    at = count = 0
    try:
        while True:
            entry = _read_entry(handle, at)
            if entry.kind is UndoKind.END:
                break
            yield at, entry
            count += 1
            at += len(encode_undo_entry(entry))
        if entry.position_bytes != count:
            raise CorruptError("undo-count", position_bytes=at, expected=entry.position_bytes, found=count)
    except CorruptError as error:
        raise type(error)(
            error.kind,
            file=path.relative_to(root).as_posix(),
            position_bytes=at,
            expected=error.expected,
            found=error.found,
        ) from error
    finally:
        handle.close()


def _read_entry(handle: OpenFile, at: int) -> UndoEntry:
    head = memoryview(bytearray(UNDO_ENTRY.size_bytes))
    if handle.read_into(head, at) < len(head):
        raise TruncatedError(
            "undo-entry", position_bytes=at, expected="an entry", found="the end of the file"
        )
    whole = memoryview(bytearray(undo_entry_bytes(head)))
    return decode_undo_entry(whole[: handle.read_into(whole, at)])
