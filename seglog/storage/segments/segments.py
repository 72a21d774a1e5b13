"""A rolling sequence of equally long files, each named by the offset of its first byte.

The commit log and every consume queue are such sequences. A file may be missing in the middle (lost, or never
needed); a lookup of an offset then returns None.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from seglog.storage.files.files import Files
from seglog.storage.files.folder_names import FolderNames
from seglog.storage.format.names import segment_file_name
from seglog.storage.kernels.calls.native_reads import new_maps
from seglog.storage.segments.mapped_file import MappedFile, MapPool

STAGED_SUFFIX: Final = ".new"


def staged_path(directory: Path, first_offset: int) -> Path:
    """Returns the path of a queue file that has no unit yet: beside the queue's folder.

    RocketMQ ignores files there; a file of another name in the folder itself would keep it from starting.
    """
    return directory.with_name(f"{directory.name}-{segment_file_name(first_offset)}{STAGED_SUFFIX}")


class Segments:
    """The files of one sequence.

    Attributes:
        directory: Their directory.
        file_size_bytes: Length of each.
        maps: The table of maps for native kernels, None without native kernels.

    Args:
        are_names_synced: Whether the names of the files are known to be on the disk.
        folders: Creates the folder of the first staged file, and syncs its name later; None to sync it at
            once.

    Thread rule: any thread may look up, publish and sync; one at a time may add, stage or remove.
    """

    def __init__(
        self,
        files: Files,
        directory: Path,
        file_size_bytes: int,
        pool: MapPool,
        *,
        step_bytes: int,
        first_offsets: Iterable[int] = (),
        are_names_synced: bool = True,
        folders: FolderNames | None = None,
    ) -> None:
        self.directory = directory
        self.file_size_bytes = file_size_bytes
        self._files = files
        self._pool = pool
        self._step_bytes = step_bytes
        self.maps = new_maps(file_size_bytes)
        self._by_offset = {
            first: MappedFile(
                files, directory / segment_file_name(first), first, file_size_bytes, pool, step_bytes
            )
            for first in sorted(first_offsets)
        }
        for file in self._by_offset.values():
            file.maps = self.maps
        self._unsynced_names = not are_names_synced
        self._make_folder = files.make_dirs if folders is None else folders.make
        self._staged: list[MappedFile] = []
        self._names_lock = threading.Lock()
        self._sync_lock = threading.Lock()

    def __iter__(self) -> Iterator[MappedFile]:
        """Yields the files in order."""
        return iter([self._by_offset[first] for first in sorted(self._by_offset)])

    def __len__(self) -> int:
        return len(self._by_offset)

    @property
    def first_offset(self) -> int | None:
        """Offset of the first byte of the first file, None without files."""
        return min(self._by_offset, default=None)

    def find(self, offset: int) -> MappedFile | None:
        """Returns the file that holds ``offset``, None if there is none."""
        return self._by_offset.get(offset - offset % self.file_size_bytes)

    def holds(self, start: int, end: int) -> bool:
        """Returns whether one file holds all of ``[start, end)``."""
        file = self.find(start)
        return file is not None and end <= file.first_offset + file.size_bytes

    def between(self, start: int, end: int) -> list[MappedFile]:
        """Returns the files that hold parts of ``[start, end)``, in order."""
        first = start - start % self.file_size_bytes
        return [
            self._by_offset[at] for at in range(first, end, self.file_size_bytes) if at in self._by_offset
        ]

    def add(self, offset: int) -> MappedFile:
        """Creates the file for ``offset``, reserves its first step and keeps one descriptor open.

        Lookups find the file only after its name is durable.

        Raises:
            FullError: The file system is full; no file is left.
        """
        first = offset - offset % self.file_size_bytes
        made = self._create(self.directory / segment_file_name(first), first)
        try:
            made.hold()
            made.sync()
            self._files.sync_dir(self.directory)
        except BaseException:
            made.close()
            self._files.remove(made.path)
            raise
        self._by_offset[first] = made
        return made

    def stage(self, offset: int) -> MappedFile:
        """Creates the file for ``offset`` at a path where no reader takes it for a file of the sequence.

        RocketMQ takes the first bytes of a queue file for a unit, even zeros, so the file must not have its
        name before its first unit is written; :meth:`publish` gives it its name.

        Raises:
            FullError: The file system is full; no file is left.
        """
        first = offset - offset % self.file_size_bytes
        made = self._create(staged_path(self.directory, first), first)
        with self._names_lock:
            # An interrupt of an earlier call may have left its file here, which `made` replaced on the disk.
            self._staged[:] = [*(one for one in self._staged if one.first_offset != first), made]
        self._by_offset[first] = made
        return made

    def is_staging(self, end: int) -> bool:
        """Returns whether a file that begins before ``end`` waits for :meth:`publish`."""
        staged = self._staged[:1]
        return bool(staged) and staged[0].first_offset < end

    def publish(self, end: int) -> None:
        """Gives staged files that begin before ``end`` their names; :meth:`sync_names` makes them durable."""
        with self._names_lock:
            while self._staged and self._staged[0].first_offset < end:
                file = self._staged[0]
                file.rename(self.directory / segment_file_name(file.first_offset))
                self._unsynced_names = True
                del self._staged[0]

    def remove(self, file: MappedFile) -> None:
        """Removes a file that holds nothing; the removal is durable once the folder is synced."""
        del self._by_offset[file.first_offset]
        file.close()
        self._files.remove(file.path)
        self._unsynced_names = True

    def remove_first(self, end: int) -> MappedFile | None:
        """Removes the first file if it ends at or below an offset; returns it, None if it stays.

        The removal is durable once the folder is synced.
        """
        file = self._by_offset.get(min(self._by_offset, default=-1))
        if file is None or file.first_offset + self.file_size_bytes > end:
            return None
        self.remove(file)
        return file

    def remove_all(self) -> int:
        """Removes every file; returns their number."""
        with self._names_lock:
            for file in self._staged:
                del self._by_offset[file.first_offset]
                file.close()
                self._files.remove(file.path)
            self._staged.clear()
        files = list(self._by_offset.values())
        for file in files:
            self.remove(file)
        return len(files)

    def _create(self, path: Path, first: int) -> MappedFile:
        if not self._by_offset:
            self._make_folder(self.directory)
        made = MappedFile.create(self._files, path, first, self.file_size_bytes, self._pool, self._step_bytes)
        made.maps = self.maps
        return made

    def sync_names(self) -> None:
        """Returns once the names of all files are on the disk."""
        with self._sync_lock:
            with self._names_lock:  # not held during the sync: appends publish names
                is_due, self._unsynced_names = self._unsynced_names, False
            if is_due:
                try:
                    self._files.sync_dir(self.directory)
                except BaseException:
                    self._unsynced_names = True
                    raise

    def close(self) -> None:
        """Closes maps and descriptors, and removes files that never got a unit."""
        with self._names_lock:
            for file in self._staged:
                with suppress(OSError):  # the next open removes it
                    self._files.remove(file.path)
            self._staged.clear()
        for file in self._by_offset.values():
            file.close()
