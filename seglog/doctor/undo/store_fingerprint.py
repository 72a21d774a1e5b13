"""Every file of a store with length and checksum, to hold two moments of a store against each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from seglog.storage.files import Entry, Files, OpenFile
from seglog.storage.format.names import BRANCHES
from seglog.storage.format.ours import checksum, crc_of_zeros
from seglog.storage.small_files import UNDO

_CHUNK_BYTES: Final = 4 << 20


class Patch(Protocol):
    """Other bytes for stretches of a file, in the order of their places."""

    def next_at(self, position_bytes: int) -> int | None:
        """Returns where the next byte is, at or behind a position, that it says something of."""

    def lay(self, chunk: memoryview, position_bytes: int) -> None:
        """Lays what it has over a piece of the file that starts at a position."""


@dataclass(frozen=True, slots=True)
class FileState:
    """One file at a moment."""

    size_bytes: int
    content_crc32c: int


def walk_store(files: Files, root: Path) -> Iterator[tuple[str, Entry]]:
    """Yields every file and folder of a store, folders before what is in them.

    Those of undo packs are left out, and branches, which are stores of their own.

    The names are relative to the store, with ``/`` between parts.
    """
    for name, entry in _walk(files, root, ""):
        if name != BRANCHES:
            yield name, entry


def state_of(
    files: Files, path: Path, size_bytes: int | None = None, patch: Patch | None = None
) -> FileState:
    """Returns length and checksum of a file; its holes are not read.

    Args:
        files: Where it is.
        path: The file.
        size_bytes: A length to take it for: cut, or with zeros behind it.
        patch: Changes what is summed.
    """
    with closing(files.open(path, writable=False)) as handle:
        size = handle.size_bytes if size_bytes is None else size_bytes
        return FileState(size, _checksum(handle, size, patch))


def differences(wanted: dict[str, FileState], files: Files, root: Path) -> Iterator[str]:
    """Yields a sentence for each file of a store that is not as it should be, is missing or is new."""
    # Packs of earlier versions have the files of branches.
    left = {name: state for name, state in wanted.items() if not name.startswith(f"{BRANCHES}/")}
    for name, entry in walk_store(files, root):
        if entry.is_dir:
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
        # At most one block of zeros is summed as bytes: sizes are claims, and holes cost nothing to claim.
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
    """Returns where the file, up to ``held``, or the patch has something at or behind a place."""
    in_file = handle.next_data(at) if at < held else None
    if in_file is not None and in_file >= held:
        in_file = None
    in_patch = None if patch is None else patch.next_at(at)
    places = [place for place in (in_file, in_patch) if place is not None]
    return min(places, default=None)
