"""Reads an undo pack and checks all of it before any undo step.

A pack is in the store, and so is untrusted. :func:`read_whole` guarantees: the pack names nothing outside of
the store, no lock and no pack; each file and folder occurs once and in one role; folders occur only for the
files in them; stretches are inside their files, in order; rights are valid for files. Whether the pack fits
the present store is checked by :func:`~seglog.doctor.undo.undo.check_undo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Final

from seglog.doctor.undo.store_fingerprint import FileState
from seglog.doctor.undo.undo_pack import KEPT, OldBytes, Renamed, UndoPack
from seglog.errors import CorruptError, NotFoundError, TruncatedError, UnsafePathError
from seglog.storage.files import FILE, FOLDER, Files, OpenFile, Stamp, kind_error, parts_of, untrusted
from seglog.storage.format.names import LOCK_FILE
from seglog.storage.format.ours import (
    UNDO_ENTRY,
    UNDO_VERSION,
    UndoEntry,
    UndoKind,
    decode_undo_entry,
    undo_entry_bytes,
)
from seglog.storage.small_files import AFTER, JOURNAL, UNDO, UNDOING
from seglog.text import shell_text

_MAX_FILE_BYTES: Final = (1 << 63) - 1
_RIGHTS: Final = 0o777
"""Set-id bits in a journal are ignored."""


def read_whole(files: Files, root: Path, number: int) -> UndoPack:
    """Returns the contents of a pack, after all of it was read and checked.

    Raises:
        NotFoundError: There is no such pack.
        CorruptError: The pack is damaged, or has contents that no repair writes.
        UnsafePathError: The pack names something that is no file of the store.
        FileKindError: Its journal is a folder.
    """
    pack = UndoPack(root, number)
    journal = pack.folder / JOURNAL
    if not files.exists(journal):
        raise NotFoundError(f"{root} has no undo pack {number}", help="`seglog undo --list STORE` shows them")
    name = journal.relative_to(root).as_posix()
    if files.is_dir(journal):
        raise kind_error(name, FOLDER, FILE)
    at = 0
    try:
        for index, (at, entry) in enumerate(read_entries(files, journal)):
            if (entry.kind is UndoKind.BEGIN) != (index == 0):
                raise CorruptError("undo-order", expected="BEGIN first", found=entry.kind.name)
            _take_up(pack, at, entry)
        _check_together(pack)
    except UnsafePathError as error:
        error.help = _help(pack)
        raise
    except CorruptError as error:
        raise _placed(error, name, at, _help(pack)) from error
    pack.is_undoing = files.exists(pack.folder / UNDOING)
    if files.exists(pack.folder / AFTER):
        pack.after = _read_after(files, pack)
    return pack


def read_old(journal: OpenFile, old: OldBytes) -> bytes:
    """Returns the journal's bytes of a stretch of a file, without the zeros that follow them.

    Args:
        journal: The journal of a pack that :func:`read_whole` accepted.
        old: The stretch.
    """
    return _read_sized(journal, old.entry_at)[0].data[: old.data_bytes]


def _take_up(pack: UndoPack, at: int, entry: UndoEntry) -> None:
    """Adds an entry to a pack, after the checks that need no other entry."""
    match entry.kind:
        case UndoKind.BEGIN:
            if entry.position_bytes != UNDO_VERSION:
                raise CorruptError("undo-version", expected=UNDO_VERSION, found=entry.position_bytes)
            pack.begun_ms = entry.size_bytes
        case UndoKind.FILE:
            _check_new(entry.path, pack.before)
            pack.before[entry.path] = _state(pack.root, entry)
            pack.stamps[entry.path] = Stamp(entry.mode & _RIGHTS, entry.modified_ns)
        case UndoKind.FOLDER:
            _check_plain(pack.root, entry.path)
            pack.folders.add(entry.path)
            _note_log_folder(pack, entry)
        case UndoKind.END:
            raise CorruptError("undo-order", expected="END last", found="END")
        case _:
            _take_up_change(pack, at, entry)


def _take_up_change(pack: UndoPack, at: int, entry: UndoEntry) -> None:
    """Adds an entry about one change of a file or folder."""
    name = entry.path
    if not (entry.kind is UndoKind.CREATED and name == LOCK_FILE):
        untrusted(pack.root, name)  # the first writer creates the lock; undoing its repair removes the lock
    match entry.kind:
        case UndoKind.BYTES:
            pack.old.setdefault(name, []).append(_stretch(pack, at, entry))
        case UndoKind.KEPT:
            _check_new(name, pack.kept)
            pack.kept[name] = _kept_path(pack, entry)
        case UndoKind.MOVED:
            _check_new(name, pack.moved)
            pack.moved[name] = _target(pack, entry)
        case UndoKind.RENAMED:
            _check_new(name, pack.renamed)
            pack.renamed[name] = Renamed(_target(pack, entry), _kept_path(pack, entry))
        case UndoKind.CREATED:
            pack.created.append(name)
        case _:
            pack.made.append(name)
            _note_log_folder(pack, entry)


def _note_log_folder(pack: UndoPack, entry: UndoEntry) -> None:
    if entry.position_bytes:
        pack.log_folders.add(entry.path)


def _kept_path(pack: UndoPack, entry: UndoEntry) -> Path:
    if entry.position_bytes < 1:
        raise CorruptError("undo-kept", expected="a number", found=entry.position_bytes)
    return pack.folder / KEPT / str(entry.position_bytes)


def _target(pack: UndoPack, entry: UndoEntry) -> str:
    target = entry.data.decode("utf-8", "surrogateescape")
    untrusted(pack.root, target)
    return target


def _check_together(pack: UndoPack) -> None:
    """Compares the entries of a pack with each other.

    Raises:
        CorruptError: They contradict each other.
    """
    targets = list(pack.moved.values())
    in_pack = [*pack.kept.values(), *(one.through for one in pack.renamed.values())]
    if len(set(in_pack)) < len(in_pack):
        raise CorruptError("undo-kept", expected="a number of its own for each file", found="one twice")
    new_names = [one.target for one in pack.renamed.values()]
    come = [*targets, *(name for name in new_names if name not in pack.renamed)]
    _check_once(new_names)
    _check_once(pack.kept, pack.moved, pack.renamed, pack.old, pack.created, come)
    _check_once(pack.before, pack.folders, pack.made)
    _check_once(pack.before, pack.created, come)
    _check_once(pack.folders, pack.made, pack.created, come)
    for name in (*pack.kept, *pack.moved, *pack.renamed, *pack.old):
        if name not in pack.before:
            raise CorruptError("undo-unknown", expected="a file that was there", found=repr(name))
    there = {"", *pack.folders}
    for name in (*pack.before, *pack.folders):
        _check_folder(name, there)
    there.update(pack.made)
    for name in (*pack.made, *pack.created, *come):
        _check_folder(name, there)


def _read_after(files: Files, pack: UndoPack) -> dict[str, FileState]:
    """Returns the state of the files after a repair.

    Raises:
        CorruptError: The file is damaged, or describes a state that the repair of the journal cannot produce.
    """
    path = pack.folder / AFTER
    name = path.relative_to(pack.root).as_posix()
    found: dict[str, FileState] = {}
    at = 0
    try:
        for at, entry in read_entries(files, path):  # noqa: B007 - for the error below
            if entry.kind is not UndoKind.FILE:
                raise CorruptError("undo-order", expected="files only", found=entry.kind.name)
            _check_new(entry.path, found)
            found[entry.path] = _state(pack.root, entry)
        _check_after(pack, found)
    except CorruptError as error:
        raise _placed(error, name, at, _help(pack)) from error
    return found


def _check_after(pack: UndoPack, found: dict[str, FileState]) -> None:
    renamed = {one.target: name for name, one in pack.renamed.items()}
    come = {*pack.created, *pack.moved.values(), *renamed}
    gone = {*pack.kept, *pack.moved, *pack.renamed}
    for name, state in found.items():
        is_kept = name in pack.before and name not in gone
        if not is_kept and name not in come:
            raise CorruptError("undo-after", expected="a file of the journal", found=repr(name))
        was = pack.before.get(renamed.get(name, name))
        if (is_kept or name in renamed) and name not in pack.old and state != was:
            raise CorruptError("undo-after", expected=f"{name!r} as it was", found="other content")
    stays = [*(name for name in pack.before if name not in gone), *renamed]
    missing = next((name for name in stays if name not in found), None)
    if missing is not None:
        raise CorruptError("undo-after", expected=repr(missing), found="none")


def _state(root: Path, entry: UndoEntry) -> FileState:
    _check_plain(root, entry.path)
    if not 0 <= entry.size_bytes <= _MAX_FILE_BYTES:
        raise CorruptError("undo-size", expected="the length of a file", found=entry.size_bytes)
    return FileState(entry.size_bytes, entry.content_crc32c)


def _stretch(pack: UndoPack, at: int, entry: UndoEntry) -> OldBytes:
    """Returns a stretch that is inside its file, after the previous ones, and not shorter than its bytes."""
    state = pack.before.get(entry.path)
    before = pack.old.get(entry.path)
    begin = before[-1].end if before else 0
    end = 0 if state is None else state.size_bytes
    start, size = entry.position_bytes, entry.size_bytes
    if not (begin <= start <= start + size <= end and len(entry.data) <= size):
        raise CorruptError("undo-stretch", expected=f"bytes {begin} to {end}", found=f"{size} at {start}")
    return OldBytes(start, size, len(entry.data), at)


def _check_plain(root: Path, name: str) -> None:
    """Checks a name under which no step changes anything: every file name that a store may have is valid."""
    if root / name == root or not parts_of(root, root / name) or PurePosixPath(name).as_posix() != name:
        raise CorruptError("undo-name", expected="a plain path below the store", found=repr(name))
    if name.startswith(f"{UNDO}/"):
        raise CorruptError("undo-name", expected="none of the undo packs", found=repr(name))


def _check_new(name: str, known: Iterable[str]) -> None:
    if name in known:
        raise CorruptError("undo-twice", expected="each name once", found=repr(name))


def _check_once(*groups: Iterable[str]) -> None:
    seen: set[str] = set()
    for group in groups:
        for name in group:
            _check_new(name, seen)
            seen.add(name)


def _check_folder(name: str, there: set[str]) -> None:
    folder = name.rpartition("/")[0]
    if folder not in there:
        raise CorruptError("undo-folder", expected=f"folder {folder!r}", found="none")


def _placed(error: CorruptError, name: str, at: int, advice: str) -> CorruptError:
    placed = type(error)(error.kind, file=name, position_bytes=at, expected=error.expected, found=error.found)
    placed.help = advice
    return placed


def _help(pack: UndoPack) -> str:
    discard = f"seglog undo --discard {shell_text(pack.root)} {pack.number}"
    return f"nothing was changed; `{discard}` moves the pack aside"


def read_entries(files: Files, path: Path) -> Iterator[tuple[int, UndoEntry]]:
    """Yields the entries of a file, without the end entry, each with its position.

    Raises:
        CorruptError: The file is incomplete, or has bytes after its end entry.
    """
    at = count = 0
    with closing(files.open(path, writable=False)) as handle:
        while True:
            entry, size_bytes = _read_sized(handle, at)
            if entry.kind is UndoKind.END:
                break
            yield at, entry
            count += 1
            at += size_bytes
        if entry.position_bytes != count:
            raise CorruptError("undo-count", expected=entry.position_bytes, found=count)
        if handle.size_bytes != at + size_bytes:
            raise CorruptError("undo-end", expected=at + size_bytes, found=handle.size_bytes)


def _read_sized(handle: OpenFile, at: int) -> tuple[UndoEntry, int]:
    """Returns an entry and its length in bytes; a head's length is accepted only up to the format's limit."""
    head = memoryview(bytearray(UNDO_ENTRY.size_bytes))
    if handle.read_into(head, at) < len(head):
        raise TruncatedError("undo-entry", expected="an entry", found="the end of the file")
    whole = memoryview(bytearray(undo_entry_bytes(head)))
    return decode_undo_entry(whole[: handle.read_into(whole, at)]), len(whole)
