"""One file of a rolling sequence, mapped into memory while it is used.

Files have their full length from the start but take space only in steps: :meth:`MappedFile.reserve`
allocates ahead of the write position, because a store into a hole of a full file system kills the
process with SIGBUS. Opening or creating a file and mapping it are separate: maps are scarce (each keeps a
descriptor), so a :class:`MapPool` may take the map away from a file that others need it for; the next
access maps it again. Taking a map away never invalidates views that readers still hold: the memory goes
when the last view does.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from seglog.errors import FullError
from seglog.storage.files import Files, OpenFile

_KEPT_DESCRIPTORS: Final = 256
_MIN_MAPS: Final = 64
_T = TypeVar("_T")


class MapPool:
    """Bounds how many files are mapped at once; the one mapped longest ago gives way.

    Args:
        capacity: Maps at most; None for what the process's descriptor limit allows.
    """

    def __init__(self, capacity: int | None = None) -> None:
        if capacity is None:
            soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            capacity = max(_MIN_MAPS, min(soft, 1 << 16) - _KEPT_DESCRIPTORS)
        self._capacity = capacity
        self._mapped: dict[MappedFile, None] = {}  # in the order of mapping
        self._lock = threading.Lock()

    def enter(self, file: MappedFile) -> None:
        """Counts a file that was just mapped."""
        with self._lock:
            self._mapped[file] = None
            while len(self._mapped) > self._capacity:
                oldest = next(iter(self._mapped))
                del self._mapped[oldest]
                oldest.park()

    def leave(self, file: MappedFile) -> None:
        """Forgets a file that needs no map any more."""
        with self._lock:
            self._mapped.pop(file, None)


class MappedFile:
    """One file of a sequence.

    Attributes:
        path: Where it is.
        first_offset: Offset in the sequence of its first byte.
        size_bytes: Its length.
        reserved_end: Where the space ends that :meth:`reserve` last made sure of.

    Thread rule: any thread may read; one at a time may write or reserve.
    """

    __slots__ = (
        "_files",
        "_held",
        "_map_lock",
        "_name_lock",
        "_pool",
        "_reserved_start",
        "_step_bytes",
        "_view",
        "first_offset",
        "path",
        "reserved_end",
        "size_bytes",
    )

    def __init__(
        self, files: Files, path: Path, first_offset: int, size_bytes: int, pool: MapPool, step_bytes: int
    ) -> None:
        self._files = files
        self.path = path
        self.first_offset = first_offset
        self.size_bytes = size_bytes
        self._pool = pool
        self._step_bytes = step_bytes
        self._held: OpenFile | None = None
        self._view: memoryview | None = None
        self._map_lock = threading.Lock()
        self._name_lock = threading.Lock()
        self._reserved_start = 0
        self.reserved_end = 0

    @classmethod
    def create(
        cls, files: Files, path: Path, first_offset: int, size_bytes: int, pool: MapPool, step_bytes: int
    ) -> MappedFile:
        """Creates the file with its first step reserved; leaves none behind if that fails.

        Raises:
            FullError: The file system is full.
        """
        made = cls(files, path, first_offset, size_bytes, pool, step_bytes)
        handle = files.create(path, size_bytes)
        try:
            made._reserve(handle, 0, min(step_bytes, size_bytes))
        except BaseException:
            files.remove(path)
            raise
        finally:
            handle.close()
        return made

    @property
    def view(self) -> memoryview:
        """The whole file as writable memory."""
        view = self._view
        if view is not None:
            return view
        with self._map_lock:
            if self._view is None:
                view = self._with_handle(lambda handle: handle.map())
                self._view = view
            else:
                return self._view
        self._pool.enter(self)
        return view

    def move(self, path: Path) -> None:
        """Gives the file another name; whoever syncs it meanwhile finds it under the one or the other."""
        with self._name_lock:
            self._files.rename(self.path, path)
            self.path = path

    def park(self) -> None:
        """Gives up the map; views that exist stay valid."""
        self._view = None

    def hold(self) -> None:
        """Keeps one descriptor open, for a file that is synced often.

        A descriptor that was open when a write-back failed is sure to be told; one opened later may not be.
        """
        if self._held is None:
            self._held = self._files.open(self.path, writable=True)

    def release(self) -> None:
        """Closes the descriptor of :meth:`hold`; nobody may be syncing."""
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def close(self) -> None:
        """Gives up the map, its place in the pool and the descriptor."""
        self._pool.leave(self)
        self.park()
        self.release()

    def reserve(self, start: int, end: int) -> None:
        """Makes sure that ``[start, end)`` can be written; reserves a step ahead where there is space.

        Raises:
            FullError: Not even the range itself fits on the file system.
        """
        if self._reserved_start <= start and end <= self.reserved_end:
            return
        ahead = min(self.size_bytes, max(end, start + self._step_bytes))
        self._with_handle(lambda handle: self._reserve_or_less(handle, start, end, ahead))

    def sync(self) -> None:
        """Returns once everything written to the file is on the disk."""
        self._with_handle(lambda handle: handle.sync())

    def _reserve_or_less(self, handle: OpenFile, start: int, end: int, ahead: int) -> None:
        try:
            self._reserve(handle, start, ahead)
        except FullError:
            # What the failed call did allocate lies ahead of the write position and will be used.
            if ahead == end:
                raise
            self._reserve(handle, start, end)

    def _reserve(self, handle: OpenFile, start: int, end: int) -> None:
        handle.reserve(start, end - start)
        self._reserved_start, self.reserved_end = start, end

    def _with_handle(self, action: Callable[[OpenFile], _T]) -> _T:
        if self._held is not None:
            return action(self._held)
        with self._name_lock:
            handle = self._files.open(self.path, writable=True)
        try:
            return action(handle)
        finally:
            handle.close()
