"""``seglog/attic/``: bytes that openings and repairs overwrote or removed; each run has its own generation.

Bytes of log, queues and checkpoint are entries (:mod:`seglog.storage.format.ours.attic_entry`) of the file
``GENERATION.kept``; files that were removed whole are beside it as ``GENERATION-NAME``. Everything is on the
disk before the store is changed. Only queue units that differ from the log are kept.

Earlier versions without generations wrote files with names ``MS-commitlog-PLACE``, each with the bytes of one
stretch; these are read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from typing_extensions import override

from seglog.closing import Closing
from seglog.errors import CorruptError
from seglog.storage.files.files import Files, OpenFile, read_part
from seglog.storage.format.names import COMMIT_LOG, OURS
from seglog.storage.format.ours.attic_entry import (
    ATTIC_HEAD_BYTES,
    MAX_KEPT_BYTES,
    decode_head,
    decode_rest,
    encode_entry,
    entry_bytes,
)

ATTIC: Final = f"{OURS}/attic"
KEPT_SUFFIX: Final = ".kept"
_GENERATION: Final = re.compile(r"(\d{10})(?:\.kept|-.+)")
_OLDER: Final = re.compile(rf"\d{{1,19}}-{COMMIT_LOG}-(\d{{20}})")


@dataclass(frozen=True, slots=True)
class Kept:
    """A stretch of bytes that was overwritten.

    Attributes:
        attic_file: The file of the attic that has it, relative to the store.
        data_at: Position of its bytes in the file of the attic.
        name: Its former file, relative to the store; None for a stretch of an earlier version, whose
            ``position_bytes`` is its physical offset.
        position_bytes: Position in the former file.
        data: The bytes.
    """

    attic_file: str
    data_at: int
    name: str | None
    position_bytes: int
    data: bytes


class Attic(Closing):
    """The bytes that one opening or one round of a repair keeps; writes nothing before the first byte.

    Args:
        files: The file layer of the store; the caller may write there.
        root: The store directory.
    """

    def __init__(self, files: Files, root: Path) -> None:
        self._files = files
        self._root = root
        self._generation: int | None = None
        self._handle: OpenFile | None = None
        self._end = 0
        self._is_synced = True

    def keep(self, name: str, position_bytes: int, data: bytes | memoryview) -> None:
        """Keeps bytes of a file; they are on the disk after :meth:`sync`.

        Args:
            name: The file, relative to the store.
            position_bytes: Position of the bytes in it.
            data: The bytes.
        """
        encoded = name.encode("utf-8", "surrogateescape")
        for at in range(0, len(data), MAX_KEPT_BYTES):
            entry = encode_entry(encoded, position_bytes + at, data[at : at + MAX_KEPT_BYTES])
            handle = self._open()
            handle.reserve(self._end, len(entry))
            handle.write_at(entry, self._end)
            self._end += len(entry)
            self._is_synced = False

    def keep_units(self, name: str, held: bytes, wanted: bytes, unit_bytes: int) -> None:
        """Keeps the units of a queue file that will change, and syncs; skips empty units.

        Args:
            name: The file, relative to the store.
            held: Its bytes now.
            wanted: Its new first bytes; zeros follow.
            unit_bytes: Length of a unit.
        """
        count = len(held) // unit_bytes
        before = np.frombuffer(held, np.uint8, count * unit_bytes).reshape(count, unit_bytes)
        padded = wanted[: before.size].ljust(before.size, b"\0")
        after = np.frombuffer(padded, np.uint8).reshape(count, unit_bytes)
        changing = np.flatnonzero((before != after).any(axis=1) & before.any(axis=1))
        if not len(changing):
            return
        for run in np.split(changing, np.flatnonzero(np.diff(changing) > 1) + 1):
            start, end = int(run[0]) * unit_bytes, (int(run[-1]) + 1) * unit_bytes
            step = MAX_KEPT_BYTES // unit_bytes * unit_bytes  # no unit is cut
            for at in range(start, end, step):
                self.keep(name, at, held[at : min(at + step, end)])
        self.sync()

    def keep_file(self, path: Path) -> None:
        """Moves a whole file of the store to the attic, durably; the caller syncs its former folder."""
        with closing(self._files.open(path, writable=False)) as handle:
            handle.sync()  # its writer may not have synced it
        name = path.relative_to(self._root).as_posix().replace("/", "-")
        folder = self._folder()
        self._files.rename(path, folder / f"{self._number(folder):010d}-{name}")
        self._files.sync_dir(folder)

    def sync(self) -> None:
        """Returns once everything kept so far is on the disk."""
        if self._handle is not None and not self._is_synced:
            self._handle.sync()
            self._files.sync_dir(self._root / ATTIC)
            self._is_synced = True

    @override
    def close(self) -> None:
        """Closes the file."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _folder(self) -> Path:
        folder = self._root / ATTIC
        self._files.make_dirs(folder)
        return folder

    def _number(self, folder: Path) -> int:
        if self._generation is None:
            known = (_GENERATION.fullmatch(entry.name) for entry in self._files.list_dir(folder))
            self._generation = 1 + max((int(match[1]) for match in known if match), default=0)
        return self._generation

    def _open(self) -> OpenFile:
        if self._handle is None:
            folder = self._folder()
            self._handle = self._files.create(folder / f"{self._number(folder):010d}{KEPT_SUFFIX}", 0)
        return self._handle


def iter_kept(files: Files, root: Path) -> Iterator[Kept]:
    """Yields the kept bytes of log, queues and checkpoint in the attic of a store, newest generation first.

    Args:
        files: The file layer of the store.
        root: The store directory.
    """
    entries = [entry for entry in files.list_dir(root / ATTIC) if not entry.is_dir]
    for entry in sorted(entries, key=lambda one: one.name, reverse=True):
        name = f"{ATTIC}/{entry.name}"
        if entry.name.endswith(KEPT_SUFFIX) and _GENERATION.fullmatch(entry.name):
            yield from _entries(files, root, name)
    for entry in sorted(entries, key=lambda one: one.name, reverse=True):
        older = _OLDER.fullmatch(entry.name)
        if older:
            yield from _stretches(files, root, f"{ATTIC}/{entry.name}", int(older[1]))


def whole_files(files: Files, root: Path, folder: str) -> list[str]:
    """Returns the files that were moved to the attic from a folder of the store, relative to the store."""
    prefix = re.compile(rf"\d{{10}}-{re.escape(folder)}-.+")
    entries = files.list_dir(root / ATTIC)
    return [f"{ATTIC}/{one.name}" for one in entries if not one.is_dir and prefix.fullmatch(one.name)]


def _entries(files: Files, root: Path, name: str) -> Iterator[Kept]:
    """Yields the entries of a file; skips damaged ones."""
    with closing(files.open(root / name, writable=False)) as handle:
        at, is_chained = 0, False  # is_chained: whether entries follow without a gap from here to the end
        while at < handle.size_bytes:
            head = read_part(handle, at, ATTIC_HEAD_BYTES)
            end = at + entry_bytes(head)
            try:
                known = decode_head(head)
                file, data = decode_rest(known, read_part(handle, at + ATTIC_HEAD_BYTES, known.rest_bytes))
            except CorruptError:
                # Kept bytes may be a message that looks like entries: only the lengths show the end of an
                # entry.
                is_chained = is_chained or _leads_to_end(handle, end)
                if not is_chained:
                    return
            else:
                data_at = at + ATTIC_HEAD_BYTES + known.name_bytes
                yield Kept(name, data_at, file, known.position_bytes, data)
            at = end


def _leads_to_end(handle: OpenFile, at: int) -> bool:
    """Returns whether entries follow each other without a gap from a position to the end of the file."""
    while at < handle.size_bytes:
        size_bytes = entry_bytes(read_part(handle, at, ATTIC_HEAD_BYTES))
        if not size_bytes:
            return False
        at += size_bytes
    return at == handle.size_bytes


def _stretches(files: Files, root: Path, name: str, phy_offset: int) -> Iterator[Kept]:
    with closing(files.open(root / name, writable=False)) as handle:
        for at in range(0, handle.size_bytes, MAX_KEPT_BYTES):
            yield Kept(name, at, None, phy_offset + at, bytes(read_part(handle, at, MAX_KEPT_BYTES)))
