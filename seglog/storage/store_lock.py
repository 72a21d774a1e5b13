"""The lock that keeps every other writer out, seglog or RocketMQ.

RocketMQ holds an exclusive record lock on byte 0 of the file ``lock`` while it runs. ``flock`` does not
meet it, and a POSIX lock of ours would be lost as soon as anything in this process closed another
descriptor of the file, and would let this process in twice. So on Linux it is an open-file-description
lock: tied to our descriptor, shut in forked children, seen by Java and stopped by Java. Elsewhere it is a
POSIX lock with a table of the process's own stores beside it.

It is taken before anything in the store is written.

The content of the file tells whose it was last: RocketMQ writes four bytes over its start whenever it
starts, before it appends anything. A mark of ours there says that no RocketMQ has written since
(``DefaultMessageStore.java start``).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
from pathlib import Path
from typing import Final

from seglog.errors import ReadOnlyError, StoreLockedError
from seglog.storage.format.names import LOCK_FILE

_CONTENT: Final = b"lock"
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
        root: The store directory; its ``lock`` file is created where it is missing.

    Raises:
        StoreLockedError: Another process, or this one, holds it.
        ReadOnlyError: The directory cannot be written.
    """

    def __init__(self, root: Path) -> None:
        path = root / LOCK_FILE
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise ReadOnlyError(f"{path} cannot be opened for writing: {error.strerror}") from error
            raise
        status = os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)
        try:
            with _held_lock:
                if any(held._identity == self._identity for held in _held.values()):
                    raise BlockingIOError(errno.EAGAIN, "held by this process")
                _take(descriptor)
                _held[descriptor] = self
        except OSError as error:
            holder = lock_holder(root)
            os.close(descriptor)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            who = (
                f"process {holder}" if holder is not None and holder > 0 else "another process, or this one,"
            )
            raise StoreLockedError(f"{who} has {root} open for writing") from error
        self._descriptor = descriptor
        if status.st_size < len(_CONTENT):
            os.pwrite(descriptor, _CONTENT, 0)

    def is_marked(self) -> bool:
        """Returns whether the mark is still there: no RocketMQ has started on the store since."""
        return os.pread(self._descriptor, len(LOCK_MARK), 0) == LOCK_MARK

    def mark(self) -> None:
        """Leaves the mark, durably."""
        if not self.is_marked():
            os.pwrite(self._descriptor, LOCK_MARK, 0)
            os.fsync(self._descriptor)

    def release(self) -> None:
        """Lets others in."""
        with _held_lock:
            if _held.pop(self._descriptor, None) is not None:
                os.close(self._descriptor)


def lock_holder(root: Path) -> int | None:
    """Returns the id of the process that holds the store, -1 if the system does not tell, None if nobody."""
    try:
        descriptor = os.open(root / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not _HAS_OFD:
            status = os.fstat(descriptor)
            with _held_lock:
                mine = any(held._identity == (status.st_dev, status.st_ino) for held in _held.values())
            return os.getpid() if mine else None
        # An OFD query sees everyone's locks, those of this process too.
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted))
        return None if answer[0] == fcntl.F_UNLCK else answer[4]
    finally:
        if _HAS_OFD:
            os.close(descriptor)
        else:
            _close_unless_held(descriptor)


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
    # The child shares the open file description: while it keeps the descriptor, the lock outlives us.
    for descriptor in list(_held):
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
