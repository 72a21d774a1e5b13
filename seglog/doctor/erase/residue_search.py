"""Searches all files of a store for bytes of erased bodies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.storage.files import Files, read_part

MIN_BODY_BYTES: Final = 16
"""Shorter bodies are not searched for, because they occur by chance."""
MAX_NEEDLE_BYTES: Final = 256
_WINDOW_BYTES: Final = 8 << 20
_MAX_HITS: Final = 100


@dataclass(frozen=True, slots=True)
class Leftover:
    """A place that has such bytes."""

    file: str
    position_bytes: int


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The result of a search.

    Attributes:
        searched_bytes: Number of bytes that were read, without holes.
        bodies: Number of different bodies that were searched for.
        too_short: Number of bodies that were too short to be searched for.
        found: Their places, at most 100.
    """

    searched_bytes: int
    bodies: int
    too_short: int
    found: tuple[Leftover, ...]


def find_leftovers(files: Files, root: Path, bodies: Sequence[bytes]) -> Leftovers:
    """Searches every file below a directory for bodies, by their first 256 bytes.

    Args:
        files: Access to the store.
        root: The store directory.
        bodies: The bodies as they were stored.
    """
    needles = {body[:MAX_NEEDLE_BYTES] for body in bodies if len(body) >= MIN_BODY_BYTES and any(body)}
    too_short = {body for body in bodies if 0 < len(body) < MIN_BODY_BYTES}
    found: list[Leftover] = []
    searched = 0
    for path in iter_files(files, root) if needles else ():
        for at, window, fresh in _windows(files, path):
            searched += fresh
            for needle in needles:
                position = window.find(needle)
                # A match that begins in the overlap is found in the next window, with all its bytes.
                while 0 <= position < fresh and len(found) < _MAX_HITS:
                    found.append(Leftover(path.relative_to(root).as_posix(), at + position))
                    position = window.find(needle, position + 1)
    return Leftovers(searched, len(needles), len(too_short), tuple(found))


def iter_files(files: Files, folder: Path, left_out: Path | None = None) -> Iterator[Path]:
    """Yields every file below a folder, without the files below ``left_out``."""
    for entry in files.list_dir(folder):
        path = folder / entry.name
        if not entry.is_dir:
            yield path
        elif path != left_out:
            yield from iter_files(files, path, left_out)


def _windows(files: Files, path: Path) -> Iterator[tuple[int, bytes, int]]:
    """Yields the written stretches of a file: position, bytes, and number of bytes not in the next one."""
    with closing(files.open(path, writable=False)) as handle:
        at = handle.next_data(0)
        while at is not None:
            window = bytes(read_part(handle, at, _WINDOW_BYTES + MAX_NEEDLE_BYTES))
            if not window:
                return
            fresh = min(len(window), _WINDOW_BYTES)
            yield at, window, fresh
            at = handle.next_data(at + fresh)
