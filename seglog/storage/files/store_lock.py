"""The lock that excludes every other writer, seglog or RocketMQ.

RocketMQ holds an exclusive record lock on byte 0 of the file ``lock`` while it runs. ``flock`` does not
conflict with it. A POSIX lock of ours would be lost as soon as any code in this process closed another
descriptor of the file, and would not exclude a second opening in this process. So on Linux the lock is an
open-file-description lock: it is tied to our descriptor, which forked children close, and conflicts with
Java's lock in both directions. On other systems it is a POSIX lock, with a table of the stores that this
process has open.

The lock is taken before anything in the store is written.

The content of the file shows its last user: RocketMQ writes four bytes over its start whenever it starts,
before it appends anything. If our mark is there, no RocketMQ has written since (``DefaultMessageStore.java
start``).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from seglog.errors import ReadOnlyError, StoreLockedError
from seglog.storage.files.beneath import FOLDER_FLAGS
from seglog.storage.files.file_kinds import FILE, kind_error, kind_of
from seglog.storage.files.file_owner import give_file
from seglog.storage.format.names import ABORT_FILE, LOCK_FILE
from seglog.text import shell_text

_CONTENT: Final = b"lock"
_MOST_CONTENT_BYTES: Final = 64
_MOST_PID_DIGITS: Final = 10
_MOST_TRIES: Final = 8
LOCK_MARK: Final = b"seglog"
"""Must differ from the four bytes of RocketMQ within their length."""
# struct flock of 64-bit Linux: short type, short whence, off_t start, off_t length, pid_t.
_FLOCK: Final = struct.Struct("hhqqi4x")
_HAS_OFD: Final = sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")

_held: dict[int, StoreLock] = {}
_held_lock = threading.Lock()


class StoreLock:
    """The exclusive lock of one store, held until :meth:`release`.

    Args:
        root: The store directory; its ``lock`` file is created if it is missing.
        folder: Its descriptor; None to use the path.

    Raises:
        StoreLockedError: Another process, or this one, holds it.
        ReadOnlyError: The directory cannot be written.
        FileKindError: ``lock`` is no regular file.
    """

    def __init__(self, root: Path, folder: int | None = None) -> None:
        self._identity = (0, 0)
        self._descriptor = -1
        for _try in range(_MOST_TRIES):
            try:
                if self._hold(root, folder):
                    return
            except BaseException:  # also an interrupt: no other code releases the lock
                self.release()
                raise
        raise StoreLockedError(f"another process keeps replacing the lock file of {root}")

    def _hold(self, root: Path, folder: int | None) -> bool:
        """Takes the lock of the file with this name; returns False if the file was replaced meanwhile."""
        try:
            descriptor = _open(root, folder, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                path = root / LOCK_FILE
                raise ReadOnlyError(f"{path} cannot be opened for writing: {error.strerror}") from error
            raise
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise kind_error(LOCK_FILE, kind_of(status.st_mode), FILE)
        self._identity = (status.st_dev, status.st_ino)
        try:
            self._take(descriptor)
            self._descriptor = descriptor
        except OSError as error:
            holder = lock_holder(root, folder)
            os.close(descriptor)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            holder = holder if holder is not None and holder > 0 else _noted_holder(root, folder)
            if holder == os.getpid():
                raise StoreLockedError(
                    f"this process has {root} open for writing already",
                    help="use the store that is open, or close it first; a second one can be opened with"
                    " read_only=True",
                ) from error
            if not holder:
                raise StoreLockedError(
                    f"another process, or this one, has {root} open for writing"
                ) from error
            raise StoreLockedError(
                f"process {holder} has {root} open for writing",
                help="one process writes a store: for several, run `seglog serve` on it and let them be its"
                " clients; or stop that process in its own way; or read beside it: with read_only=True, or a"
                f" command that reads, such as `seglog info {shell_text(root)}`",
            ) from error
        except BaseException:  # an interrupt: nothing would ever release the lock
            with _held_lock:
                _held.pop(descriptor, None)
                os.close(descriptor)
            raise
        if not self._is_named(root, folder):
            self.release()
            return False
        if status.st_nlink > 1:
            self._replace(root, folder)
        if status.st_size < len(_CONTENT):  # it is new
            _give(self._descriptor, root, folder)
            os.pwrite(self._descriptor, _CONTENT, 0)
        return True

    def _take(self, descriptor: int) -> None:
        with _held_lock:
            if any(held._identity == self._identity for held in _held.values()):
                raise BlockingIOError(errno.EAGAIN, "held by this process")
            _take(descriptor)
            _held[descriptor] = self

    def _is_named(self, root: Path, folder: int | None) -> bool:
        name = root / LOCK_FILE if folder is None else LOCK_FILE
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _replace(self, root: Path, folder: int | None) -> None:
        """Replaces a ``lock`` file that has further names, whose bytes must not change, by a new file.

        The new file is locked before it gets the name, so that no other process can lock it first.
        """
        base = "" if folder is not None else f"{root}/"
        made = f"{base}{LOCK_FILE}.own"
        with suppress(FileNotFoundError):
            os.unlink(made, dir_fd=folder)
        shared = self._descriptor
        own = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
        try:
            _give(own, root, folder)
            os.pwrite(own, os.pread(shared, _MOST_CONTENT_BYTES, 0), 0)
            status = os.fstat(own)
            with _held_lock:
                self._identity = (status.st_dev, status.st_ino)
                _take(own)
                _held[own] = self
            os.replace(made, f"{base}{LOCK_FILE}", src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            self.release()
            self._descriptor = own
            self.release()
            raise
        self.release()
        self._descriptor = own

    def is_marked(self) -> bool:
        """Returns whether the mark is still there: no RocketMQ has started on the store since."""
        return os.pread(self._descriptor, len(LOCK_MARK), 0) == LOCK_MARK

    def mark(self) -> None:
        """Writes the mark, durably."""
        if not self.is_marked():
            os.pwrite(self._descriptor, LOCK_MARK, 0)
            os.fsync(self._descriptor)

    def release(self) -> None:
        """Releases the lock, also where a child process has its descriptor still."""
        with _held_lock:
            if _held.pop(self._descriptor, None) is not None:
                if _HAS_OFD:
                    unlocked = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 1, 0)
                    fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, unlocked)
                os.close(self._descriptor)


def lock_holder(root: Path, folder: int | None = None) -> int | None:
    """Returns the id of the process that holds the store, -1 if the system does not know it, None for none.

    Args:
        root: The store directory.
        folder: Its descriptor; None to use the path.
    """
    try:
        descriptor = _open(root, folder, os.O_RDONLY)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    try:
        if not _HAS_OFD:
            status = os.fstat(descriptor)
            with _held_lock:
                mine = any(held._identity == (status.st_dev, status.st_ino) for held in _held.values())
            return os.getpid() if mine else None
        # An OFD query sees the locks of all processes, including this one.
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted))
        return None if answer[0] == fcntl.F_UNLCK else answer[4]
    finally:
        if _HAS_OFD:
            os.close(descriptor)
        else:
            _close_unless_held(descriptor)


def _noted_holder(root: Path, folder: int | None) -> int:
    """Returns the process id in the store's ``abort`` file, if that process runs; otherwise 0.

    The system does not know the holder of an open-file-description lock; but a process that opens a store
    writes its id into ``abort``, as RocketMQ does.
    """
    name = root / ABORT_FILE if folder is None else ABORT_FILE
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return 0
    try:
        text = os.pread(descriptor, _MOST_CONTENT_BYTES, 0).strip()
    except OSError:
        return 0
    finally:
        os.close(descriptor)
    holder = int(text) if text.isdigit() and len(text) < _MOST_PID_DIGITS else 0
    return holder if _is_running(holder) else 0


def _is_running(process: int) -> bool:
    if process <= 0:
        return False
    try:
        os.kill(process, 0)
    except PermissionError:  # the process exists, and belongs to another user
        return True
    except OSError:
        return False
    return True


def _open(root: Path, folder: int | None, flags: int) -> int:
    """Opens the lock file, through no link, and without waiting for the other end of a pipe."""
    name = root / LOCK_FILE if folder is None else LOCK_FILE
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=folder)


def _give(descriptor: int, root: Path, folder: int | None) -> None:
    """Gives a lock file that was just created the owner of the store."""
    beside = os.open(root, FOLDER_FLAGS) if folder is None else folder
    try:
        give_file(descriptor, beside)
    finally:
        if folder is None:
            os.close(beside)


def _take(descriptor: int) -> None:
    if _HAS_OFD:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)


def _close_unless_held(descriptor: int) -> None:
    """Closes a descriptor where closing does not drop a POSIX lock of this process."""
    status = os.fstat(descriptor)
    with _held_lock:
        if not any(held._identity == (status.st_dev, status.st_ino) for held in _held.values()):
            os.close(descriptor)


def _forget_in_child() -> None:
    # The child shares the open file description: if it kept the descriptor, the lock would outlive the
    # parent.
    for descriptor in list(_held):
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
