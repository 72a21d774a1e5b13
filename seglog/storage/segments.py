"""A rolling sequence of equally long files, each named by the offset of its first byte.

The commit log and every consume queue are such sequences. A file may be missing in the middle (lost, or
never needed); looking up an offset finds its file or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from seglog.storage.files import Files
from seglog.storage.format.names import segment_file_name
from seglog.storage.mapped_file import MappedFile, MapPool


class Segments:
    """The files of one sequence.

    Attributes:
        directory: Where they are.
        file_size_bytes: Length of each.

    Thread rule: any thread may look up; one at a time may add.
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
    ) -> None:
        self.directory = directory
        self.file_size_bytes = file_size_bytes
        self._files = files
        self._pool = pool
        self._step_bytes = step_bytes
        self._by_offset = {
            first: MappedFile(
                files, directory / segment_file_name(first), first, file_size_bytes, pool, step_bytes
            )
            for first in sorted(first_offsets)
        }
        self._unsynced_names = False

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
        """Returns the file that holds ``offset``, None if it is not there."""
        return self._by_offset.get(offset - offset % self.file_size_bytes)

    def between(self, start: int, end: int) -> list[MappedFile]:
        """Returns the files that hold some of ``[start, end)``, in order."""
        first = start - start % self.file_size_bytes
        return [
            self._by_offset[at] for at in range(first, end, self.file_size_bytes) if at in self._by_offset
        ]

    def add(self, offset: int, *, sync: bool) -> MappedFile:
        """Returns the file that holds ``offset``, created with its first step reserved if it is missing.

        Args:
            offset: Any offset that the file shall hold.
            sync: Whether its length and name must be on the disk before it is used; otherwise
                :meth:`sync_names` does that later.

        Raises:
            FullError: The file system is full; nothing is left behind.
        """
        found = self.find(offset)
        if found is not None:
            return found
        first = offset - offset % self.file_size_bytes
        if not self._by_offset:
            self._files.make_dirs(self.directory)
        path = self.directory / segment_file_name(first)
        made = MappedFile.create(self._files, path, first, self.file_size_bytes, self._pool, self._step_bytes)
        if sync:
            try:
                made.sync()
                self._files.sync_dir(self.directory)
            except BaseException:
                self._files.remove(path)
                raise
        else:
            self._unsynced_names = True
        self._by_offset[first] = made
        return made

    def sync_names(self) -> None:
        """Returns once the names of all files are on the disk."""
        if self._unsynced_names:
            self._unsynced_names = False
            self._files.sync_dir(self.directory)

    def close(self) -> None:
        """Gives up maps and descriptors."""
        for file in self._by_offset.values():
            file.close()
