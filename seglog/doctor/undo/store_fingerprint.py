"""Length and checksum of every file of a store, to compare two states of the store."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

from seglog.doctor.undo.copied_names import is_copied
from seglog.storage.files import Entry, Files, OpenFile, StoreRoot
from seglog.storage.format.names import BRANCHES
from seglog.storage.format.ours import checksum, crc_of_zeros
from seglog.storage.small_files import UNDO

_CHUNK_BYTES: Final = 4 << 20
F = TypeVar("F", bound=Files)


class Patch(Protocol):
    """Other bytes for stretches of a file, in the order of their positions."""

    def next_at(self, position_bytes: int) -> int | None:
        """Returns the position of the next byte, at or after a position, that the patch covers."""

    def lay(self, chunk: memoryview, position_bytes: int) -> None:
        """Writes the patch's bytes over a piece of the file that starts at a position."""


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of one file."""

    size_bytes: int
    content_crc32c: int


def as_it_is(files: F) -> F | StoreRoot:
    """Returns the files of a store with each in the folder where it is, for who keeps names of them."""
    return files.as_it_is if isinstance(files, StoreRoot) else files


def walk_store(files: Files, root: Path) -> Iterator[tuple[str, Entry]]:
    """Yields every file and folder of a store, each folder before its contents.

    Undo packs are left out, and so are branches, which are stores of their own.

    The names are relative to the store, with ``/`` between parts.
    """
    for name, entry in _walk(files, root, ""):
        if name != BRANCHES:
            yield name, entry


def state_of(
    files: Files, path: Path, size_bytes: int | None = None, patch: Patch | None = None
) -> FileState:
    """Returns length and checksum of a file; holes of the file are not read.

    Args:
        files: Access to the store.
        path: The file.
        size_bytes: The length to assume: a longer file is cut, a shorter one extended by zeros.
        patch: Changes the bytes that are summed.
    """
    with closing(files.open(path, writable=False)) as handle:
        size = handle.size_bytes if size_bytes is None else size_bytes
        return FileState(size, _checksum(handle, size, patch))


def differences(
    wanted: dict[str, FileState],
    files: Files,
    root: Path,
    *,
    passing_over: Collection[str] = (),
    log_folders: Collection[str] = (),
) -> Iterator[str]:
    """Yields a sentence for each file of a store that differs from the wanted state, is missing or is new.

    Files that copies of a store lack are not compared: the store may be one.

    Args:
        wanted: The wanted state, by file name relative to the store.
        files: Access to the store.
        root: The store directory.
        passing_over: Names of files that are not compared.
        log_folders: Folders of the log beside ``commitlog``.
    """
    # Packs of earlier versions list the files of branches, which no copy has.
    left = {name: state for name, state in wanted.items() if is_copied(name, log_folders)}
    for name, entry in walk_store(files, root):
        if entry.is_dir or name in passing_over or not is_copied(name, log_folders):
            continue
        state = left.pop(name, None)
        if state is None:
            yield f"{name} is new"
        elif entry.size_bytes != state.size_bytes:
            yield f"{name} has {entry.size_bytes} bytes, not {state.size_bytes}"
        elif state_of(files, root / name) != state:
            yield f"{name} has other content"
    for name in sorted(left):
        yield f"{name} is gone"


def _walk(files: Files, folder: Path, prefix: str) -> Iterator[tuple[str, Entry]]:
    for entry in files.list_dir(folder):
        name = prefix + entry.name
        yield name, entry
        if entry.is_dir and name not in {UNDO, BRANCHES}:
            yield from _walk(files, folder / entry.name, f"{name}/")


def _checksum(handle: OpenFile, size_bytes: int, patch: Patch | None) -> int:
    crc = at = 0
    held = min(size_bytes, handle.size_bytes)
    while at < size_bytes:
        data_at = _next_data(handle, patch, at, held)
        if data_at is None or data_at >= size_bytes:
            return crc_of_zeros(size_bytes - at, crc)
        # At most one block of zeros is summed as bytes: a pack may claim any length, and a hole makes that
        # free.
        if data_at - at >= _CHUNK_BYTES:
            crc = crc_of_zeros(data_at - at, crc)
            at = data_at
        count = min(_CHUNK_BYTES, size_bytes - at)
        chunk = memoryview(bytearray(count))
        if at < held:
            handle.read_into(chunk[: held - at], at)
        if patch is not None:
            patch.lay(chunk, at)
        crc = checksum(chunk, crc)
        at += count
    return crc


def _next_data(handle: OpenFile, patch: Patch | None, at: int, held: int) -> int | None:
    """Returns the next position at or after ``at`` where the file, up to ``held``, or the patch has data."""
    in_file = handle.next_data(at) if at < held else None
    if in_file is not None and in_file >= held:
        in_file = None
    in_patch = None if patch is None else patch.next_at(at)
    places = [place for place in (in_file, in_patch) if place is not None]
    return min(places, default=None)
