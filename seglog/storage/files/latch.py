"""The latch of a store: after the first failed sync, nothing is acknowledged or changed any more.

The kernel reports a lost write once and then forgets it: the next sync of the same file succeeds, reads
return the new bytes, and the disk has the old ones. A retry would acknowledge messages that are not on the
disk. Only opening the store again helps, because it reads the bytes that are on the disk.

All files of a store that is open for writing are behind its latch, so that no failed sync is missed: log,
queues, index, checkpoint, config, seals and every folder. Reads continue.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from seglog.errors import StoreError, StoreFailedError, TruncatedError
from seglog.forked import forked_error
from seglog.storage.files.files import DiskUsage, Entry, Files, HeldLock, OpenFile
from seglog.storage.files.os_errors import explain_os_error, is_passing
from seglog.text import shell_text

_OF_NAMES: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR}
)
"""Errors of creating or opening a file that do not mean a failing disk."""


class Latch:
    """Closes once, and stays closed.

    Args:
        root: The store directory, for messages.

    Thread rule: any thread.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._failure: tuple[Exception, str] | None = None
        self._is_forked = False
        self._wake: list[Callable[[], None]] = []

    @property
    def is_closed(self) -> bool:
        """Whether a sync or write has failed."""
        return self._failure is not None

    def on_close(self, wake: Callable[[], None]) -> None:
        """Calls ``wake`` when the latch closes, in the thread that met the failure."""
        self._wake.append(wake)

    def fail(self, error: Exception, what: str) -> None:
        """Closes the latch; only the first failure is kept.

        Args:
            error: The error of the operating system, or the one that was raised here.
            what: The call and the file that failed.
        """
        with self._lock:
            if self._failure is not None:
                return
            self._failure = (error, what)
        for wake in self._wake:
            wake()

    def abandon(self) -> None:
        """Refuses all changes in a forked child: the files belong to the parent."""
        self._is_forked = True

    def check_process(self) -> None:
        """Does nothing in the process that opened the store.

        Raises:
            ClosedError: This is a forked child.
        """
        if self._is_forked:
            raise forked_error(f"the store {self._root}")

    def check(self) -> None:
        """Does nothing while the latch is open.

        Raises:
            StoreFailedError: The latch is closed.
            ClosedError: This is a forked child.
        """
        self.check_process()
        if self._failure is not None:
            raise self.error() from self._failure[0]

    def error(self) -> StoreFailedError:
        """Returns the error of a closed latch; a new object each time, because each raise adds to it."""
        if self._failure is None:
            raise RuntimeError("the latch is open")
        error, what = self._failure
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return StoreFailedError(
            f"{what} failed ({reason}); nothing is acknowledged since, reads go on",
            help=f"look at the disk (dmesg), end this process, run `seglog verify {shell_text(self._root)}`,"
            " and open the store again: recovery finds what is really there",
        )

    @contextmanager
    def failing(self, what: str) -> Iterator[None]:
        """Translates an ``OSError`` of the block, see :meth:`explained`."""
        try:
            yield
        except (OSError, TruncatedError) as error:
            raise self.explained(error, what) from error

    def explained(self, error: OSError | TruncatedError, what: str) -> StoreError:
        """Returns the error to raise; closes the latch, except for a temporary lack of resources.

        Args:
            error: The error of the operating system, or that of a file that another process cut.
            what: The call that failed.
        """
        if isinstance(error, OSError) and is_passing(error):
            return self.error() if self.is_closed else explain_os_error(error)
        self.fail(error, what if isinstance(error, OSError) else "writing")
        return self.error()

    def name_of(self, path: Path) -> str:
        """Returns the name of a file in messages."""
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else str(path)


class LatchedFile:
    """An open file behind a latch."""

    __slots__ = (
        "_file",
        "_latch",
        "_path",
        "close",
        "map",
        "next_data",
        "read_into",
        "reserve",
        "set_size",
        "write_at",
    )

    def __init__(self, file: OpenFile, path: Path, latch: Latch) -> None:
        self._file = file
        self._path = path
        self._latch = latch
        self.read_into = file.read_into
        self.write_at = file.write_at
        self.next_data = file.next_data
        self.set_size = file.set_size
        self.reserve = file.reserve
        self.map = file.map
        self.close = file.close

    @property
    def size_bytes(self) -> int:
        """Length of the file now."""
        return self._file.size_bytes

    @property
    def descriptor(self) -> int:
        """The descriptor of the file; code that writes to it must check the latch first."""
        return self._file.descriptor

    def sync(self) -> None:
        """Syncs, unless a sync failed before.

        Raises:
            StoreFailedError: A sync failed before.
        """
        self._latch.check()
        try:
            self._file.sync()
        except OSError as error:
            self._latch.fail(error, f"the sync of {self._latch.name_of(self._path)}")
            raise


class LatchedFiles:
    """The files of a store behind its latch.

    Once the latch is closed, every call that changes a file raises StoreFailedError, except ``remove`` and
    ``remove_dir``, which remove half-written files. In a forked child all of them raise ClosedError.
    """

    def __init__(self, files: Files, latch: Latch) -> None:
        self._files = files
        self._latch = latch
        self.list_dir: Callable[[Path], list[Entry]] = files.list_dir
        self.exists: Callable[[Path], bool] = files.exists
        self.is_dir: Callable[[Path], bool] = files.is_dir
        self.lock: Callable[[Path], HeldLock] = files.lock
        self.read_file: Callable[[Path], bytes] = files.read_file
        self.usage: Callable[[Path], DiskUsage] = files.usage

    def open(self, path: Path, *, writable: bool) -> OpenFile:
        """Opens an existing file."""
        # A file that is opened for reading may be synced too, as segments are before they are sealed.
        return LatchedFile(self._files.open(path, writable=writable), path, self._latch)

    def create(self, path: Path, size_bytes: int) -> OpenFile:
        """Creates a file of that size, all holes."""
        self._latch.check()
        return LatchedFile(self._files.create(path, size_bytes), path, self._latch)

    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Creates or replaces a small file in place."""
        self._latch.check()
        try:
            self._files.write_file(path, data, sync=sync)
        except OSError as error:
            self._note(error, f"writing {self._latch.name_of(path)}")
            raise

    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        """Creates a directory and its parents where they are missing; ``sync`` makes the names durable."""
        self._latch.check()
        try:
            self._files.make_dirs(path, sync=sync)
        except OSError as error:
            self._note(error, f"making the folder {self._latch.name_of(path)}")
            raise

    def remove(self, path: Path) -> None:
        """Removes a file."""
        self._latch.check_process()
        self._files.remove(path)

    def remove_dir(self, path: Path) -> None:
        """Removes an empty directory."""
        self._latch.check_process()
        self._files.remove_dir(path)

    def rename(self, source: Path, target: Path) -> None:
        """Renames atomically."""
        self._latch.check()
        self._files.rename(source, target)

    def sync_dir(self, path: Path) -> None:
        """Syncs the names in a directory, unless a sync failed before."""
        self._latch.check()
        try:
            self._files.sync_dir(path)
        except OSError as error:
            self._note(error, f"the sync of the folder {self._latch.name_of(path)}")
            raise

    def _note(self, error: OSError, what: str) -> None:
        """Closes the latch, unless the call failed before the disk could have lost anything."""
        if not is_passing(error) and error.errno not in _OF_NAMES:
            self._latch.fail(error, what)
