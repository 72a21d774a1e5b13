"""A draft of a store: files that can be changed while the real ones stay unchanged.

A repair runs on a draft first, with the same code as on a store. The differences between draft and store are
the plan, byte by byte, and a repair writes nothing else.
"""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from seglog.doctor.draft.draft_file import DraftFile, DraftNode
from seglog.doctor.draft.draft_pages import PagePool
from seglog.storage.files import DiskUsage, Entry, Files, HeldLock, Stamp, read_whole
from seglog.storage.format.names import COMMIT_LOG


class DraftFiles:
    """Files over other files; changes exist in this process only.

    Attributes:
        files: The real files, which are only read.
        nodes: Files that were opened or changed, by path; None for a removed real file.
        folders: Folders that the draft made.

    One thread at a time.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.nodes: dict[Path, DraftNode | None] = {}
        self.folders: set[Path] = set()
        self._pool = PagePool()
        self._names: defaultdict[Path, set[str]] = defaultdict(set)  # names of the nodes in each folder

    @property
    def shows_one_log(self) -> bool:
        """Whether all files of a log in several folders appear in ``commitlog``."""
        return bool(getattr(self.files, "shows_one_log", False))

    def list_dir(self, path: Path) -> list[Entry]:
        """Returns the entries of a directory sorted by name; an absent directory has none."""
        entries = {entry.name: entry for entry in self.files.list_dir(path)}
        for made in self.folders:
            if made.parent == path:
                entries[made.name] = Entry(made.name, is_dir=True, size_bytes=0)
        for name in self._names.get(path, ()):
            entries.pop(name, None)
            node = self.nodes[path / name]
            if node is not None:
                entries[name] = Entry(name, is_dir=False, size_bytes=node.size_bytes)
        return [entries[name] for name in sorted(entries)]

    def usage(self, path: Path) -> DiskUsage:
        """Returns the usage of the real file system; for a folder of the draft that of its real parent."""
        while not self.files.exists(path):
            path = path.parent
        return self.files.usage(path)

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name."""
        if path in self.nodes:
            return self.nodes[path] is not None
        return path in self.folders or self.files.exists(path)

    def is_dir(self, path: Path) -> bool:
        """Whether there is a directory of that name."""
        return path in self.folders or (path not in self.nodes and self.files.is_dir(path))

    def open(self, path: Path, *, writable: bool) -> DraftFile:
        """Opens a file."""
        is_log = path.parent.name == COMMIT_LOG
        return DraftFile(self._node(path), self.files, writable=writable, is_copied=not is_log)

    def create(self, path: Path, size_bytes: int) -> DraftFile:
        """Creates a file of that size, all zeros; it must not exist."""
        if self.exists(path):
            raise _os_error(errno.EEXIST, path)
        if not self.is_dir(path.parent):
            raise _os_error(errno.ENOENT, path)
        node = DraftNode(None, 0, self._pool)
        node.resize(size_bytes)
        self._put(path, node)
        return DraftFile(node, self.files)

    def read_file(self, path: Path) -> bytes:
        """Returns the whole content."""
        with closing(self.open(path, writable=False)) as handle:
            return read_whole(handle, path)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Creates or replaces a small file."""
        if not self.exists(path):
            self.create(path, 0).close()
        node = self._node(path)
        node.empty()
        with closing(DraftFile(node, self.files)) as handle:
            handle.write_at(data, 0)

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Creates a directory and its parents where they are missing."""
        if self.is_dir(path):
            return
        if self.exists(path):
            raise _os_error(errno.EEXIST, path)
        self.make_dirs(path.parent)
        self.folders.add(path)

    def rename(self, source: Path, target: Path) -> None:
        """Renames a file, replacing ``target``."""
        if not self.is_dir(target.parent):
            raise _os_error(errno.ENOENT, target)
        node = self._node(source)
        self._put(source, None)
        self._put(target, node)

    def remove_dir(self, path: Path) -> None:
        """Removes a folder that the draft created; a real folder is kept, because no repair removes one."""
        self.folders.discard(path)

    def remove(self, path: Path) -> None:
        """Removes a file."""
        self._node(path)
        self._put(path, None)

    def set_stamp(self, path: Path, stamp: Stamp) -> None:
        """Does nothing: a draft has no rights and times."""

    def sync_dir(self, path: Path) -> None:
        """Does nothing: a draft has nothing on a disk."""

    def lock(self, root: Path) -> HeldLock:
        """Takes the lock of the real store."""
        return self.files.lock(root)

    def _put(self, path: Path, node: DraftNode | None) -> None:
        self.nodes[path] = node
        self._names[path.parent].add(path.name)

    def _node(self, path: Path) -> DraftNode:
        if path not in self.nodes:
            if self.is_dir(path):
                raise _os_error(errno.EISDIR, path)
            if not self.files.exists(path):
                raise _os_error(errno.ENOENT, path)
            with closing(self.files.open(path, writable=False)) as handle:
                self._put(path, DraftNode(path, handle.size_bytes, self._pool))
        node = self.nodes[path]
        if node is None:
            raise _os_error(errno.ENOENT, path)
        return node


def _os_error(code: int, path: Path) -> OSError:
    return OSError(code, os.strerror(code), str(path))
