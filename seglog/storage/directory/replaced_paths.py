"""Files of which some have other paths than they are asked for."""

from __future__ import annotations

from pathlib import Path

from seglog.storage.files.files import DiskUsage, Entry, Files, HeldLock, OpenFile


class ReplacedPaths:
    """Files over other files; a derived class says which path stands for which.

    Args:
        files: The files below.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    @property
    def shows_one_log(self) -> bool:
        """Whether all files of a log in several folders appear in ``commitlog``."""
        return bool(getattr(self._files, "shows_one_log", False))

    def _path(self, path: Path) -> Path:
        """Returns the path below.

        Raises:
            FileNotFoundError: There is nothing of that name.
        """
        return path

    def list_dir(self, path: Path) -> list[Entry]:
        """Returns the entries of a directory sorted by name."""
        return self._files.list_dir(path)

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name."""
        try:
            return self._files.exists(self._path(path))
        except FileNotFoundError:
            return False

    def is_dir(self, path: Path) -> bool:
        """Whether there is a directory of that name."""
        return self._files.is_dir(path)

    def open(self, path: Path, *, writable: bool) -> OpenFile:
        """Opens an existing file."""
        return self._files.open(self._path(path), writable=writable)

    def read_file(self, path: Path) -> bytes:
        """Returns the whole content."""
        return self._files.read_file(self._path(path))

    def usage(self, path: Path) -> DiskUsage:
        """Returns how full the file system is."""
        return self._files.usage(path)

    def create(self, path: Path, size_bytes: int) -> OpenFile:
        """Creates a file of that size."""
        return self._files.create(self._path(path), size_bytes)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Creates or replaces a small file."""
        self._files.write_file(self._path(path), data, sync=sync)

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Creates a directory and its parents."""
        self._files.make_dirs(path, sync=sync)

    def rename(self, source: Path, target: Path) -> None:
        """Renames a file."""
        self._files.rename(self._path(source), self._path(target))

    def remove(self, path: Path) -> None:
        """Removes a file."""
        self._files.remove(self._path(path))

    def remove_dir(self, path: Path) -> None:
        """Removes an empty directory."""
        self._files.remove_dir(path)

    def sync_dir(self, path: Path) -> None:
        """Returns once the names in the directory are on the disk."""
        self._files.sync_dir(path)

    def lock(self, root: Path) -> HeldLock:
        """Takes the lock of a store directory."""
        return self._files.lock(root)
