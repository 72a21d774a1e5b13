"""One file of a rolling sequence, mapped into memory while it is used.

A file has its full length from the start but gets space in steps: :meth:`MappedFile.reserve` allocates ahead
of the write position, because a write into a hole of a full file system kills the process with SIGBUS. A file
is mapped for reading until room is reserved in it: a file that is only read may have further names, in
backups and branches, and nothing must be written through its map. Opening a file and mapping it are separate
steps: maps are scarce (each keeps a descriptor), so a :class:`MapPool` may release the map of one file when
    another needs it;
the next access maps the file again. Releasing a map never invalidates views that readers still hold: the
memory is unmapped with the last view.
"""

from __future__ import annotations

import mmap
import resource
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from seglog.errors import FullError, TruncatedError
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.kernels.calls.tails import LogTail, QueueTail
from seglog.storage.kernels.warm import populate
from seglog.storage.threads.whole_steps import done_whole

if TYPE_CHECKING:
    from seglog.storage.kernels import _native

_KEPT_DESCRIPTORS: Final = 256
_MIN_MAPS: Final = 64
_LONG_STEP_BYTES: Final = 1 << 20
"""The step of a file that began with short steps and has grown."""
_SHORT_BYTES: Final = 64 << 10
"""The system reads ahead in the map of a file with short steps once the file holds more than this."""
_T = TypeVar("_T")


def _created(files: Files, path: Path, size_bytes: int, step_bytes: int) -> OpenFile:
    """Creates the file, in place of one that an interrupt of the caller left: that holds nothing yet."""
    try:
        return files.create(path, size_bytes)
    except FileExistsError:
        with closing(files.open(path, writable=False)) as left:
            is_blank = _is_blank(left, step_bytes)
        if not is_blank:
            raise
        files.remove(path)
        return files.create(path, size_bytes)


def _is_blank(file: OpenFile, step_bytes: int) -> bool:
    """Returns whether a file has zeros alone, and no space behind its first step."""
    if file.next_data(step_bytes) is not None:
        return False
    first = bytearray(min(step_bytes, file.size_bytes))
    file.read_into(memoryview(first), 0)
    return not any(first)


class MapPool:
    """Bounds the number of mapped files; releases the map that was created first.

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
        """Removes a file that needs no map any more."""
        with self._lock:
            self._mapped.pop(file, None)


class MappedFile:
    """One file of a sequence.

    Attributes:
        path: Its path.
        first_offset: Offset in the sequence of its first byte.
        size_bytes: Its length.
        maps: The table of maps for native kernels, None without native kernels.

    Thread rule: any thread may read; one at a time may write, and one reserve.
    """

    __slots__ = (
        "_borrower",
        "_files",
        "_held",
        "_is_short",
        "_length_now",
        "_map_lock",
        "_pool",
        "_reserved",
        "_scattered",
        "_step_bytes",
        "_view",
        "first_offset",
        "maps",
        "path",
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
        self.maps: _native.Maps | None = None
        self._step_bytes = step_bytes
        self._held: OpenFile | None = None
        self._borrower: LogTail | QueueTail | None = None
        self._view: memoryview | None = None
        self._length_now: Callable[[], int] | None = None  # asks the system, through the map's descriptor
        self._map_lock = threading.RLock()  # also between opening by name and a new name
        self._scattered = 0  # how many searches read single pages of it
        self._is_short = False  # its map is not read ahead: the first unit of 6,000,000 bytes is one page
        self._reserved = (0, 0)  # one value, for threads that look while another reserves

    @classmethod
    def create(
        cls, files: Files, path: Path, first_offset: int, size_bytes: int, pool: MapPool, step_bytes: int
    ) -> MappedFile:
        """Creates the file with its first step reserved; leaves none behind if that fails.

        Raises:
            FullError: The file system is full.
        """
        made = cls(files, path, first_offset, size_bytes, pool, step_bytes)
        handle = _created(files, path, size_bytes, step_bytes)
        try:
            made._reserve(handle, 0, min(step_bytes, size_bytes))
        except BaseException:
            files.remove(path)
            raise
        finally:
            handle.close()
        return made

    @property
    def reserved_end(self) -> int:
        """End of the space that :meth:`reserve` allocated last."""
        return self._reserved[1]

    @property
    def view(self) -> memoryview:
        """The whole file as memory, writable once room was reserved in it."""
        view = self._view
        if view is not None:
            return view
        with self._map_lock:
            if self._view is None:
                view = self._with_handle(self._map, writable=self._is_written)
                under = view.obj
                self._length_now = under.size if isinstance(under, mmap.mmap) else None
                if self.maps is not None:
                    self.maps.set(self.first_offset, view.toreadonly(), self._length_now)
                self._view = view
            else:
                return self._view
        self._pool.enter(self)
        return view

    def check_whole(self) -> None:
        """Checks that the file is as long as its map.

        An access to a page of the map behind the end of the file ends the process with SIGBUS. No process may
        cut the file of a locked store, but a process that ignores the lock can.

        Raises:
            TruncatedError: The file was cut.
        """
        length = self._length_now
        if length is None:
            _mapped = self.view  # mapping checks the length too
        elif (found := length()) < self.size_bytes:
            raise self._cut(found)

    def check_held(self) -> None:
        """Checks as :meth:`check_whole`, for the thread that writes to the file and keeps its descriptor.

        It reads only the length from the descriptor. A call that reads times as well, such as ``mmap.size``,
        makes Linux note the time of the next write, and the next sync write that time too: 90 µs more for
        each SYNC put on ext4 without a journal.

        Raises:
            TruncatedError: The file was cut.
        """
        held = self._held
        if held is None or self._view is None:
            self.check_whole()
        elif (found := held.size_bytes) < self.size_bytes:
            raise self._cut(found)

    def rename(self, path: Path) -> None:
        """Gives the file another name."""
        before = self.path

        def step() -> None:
            try:
                self._files.rename(before, path)
            except FileNotFoundError:
                if not self._files.exists(path):
                    raise  # else an interrupt came when the file had its new name
            self.path = path

        with self._map_lock:
            done_whole(step)

    def park(self) -> None:
        """Releases the map and revokes a granted window; views that exist stay valid."""
        self._view = self._length_now = None
        if self.maps is not None:
            self.maps.drop(self.first_offset)
        borrower, self._borrower = self._borrower, None
        if borrower is not None:
            borrower.revoke()

    def grant(self, borrower: LogTail | QueueTail, position: int, end: int) -> None:
        """Grants the memory for writing from ``position`` to the end of the space, at most to ``end``.

        Only an existing map is granted; the grant ends when the map is released.
        """
        view, (reserved_start, reserved_end) = self._view, self._reserved
        if view is None or not reserved_start <= position < reserved_end:
            return
        self._borrower = borrower
        first, held = self.first_offset, self._held
        descriptor = -1 if held is None else held.descriptor
        borrower.grant(view, first, first + min(end, reserved_end), self._length_now, descriptor)
        if self._view is not view:  # another thread released the map meanwhile
            borrower.revoke()

    def hold(self) -> None:
        """Keeps one descriptor open, for a file that is synced often.

        A descriptor that was open when a write-back failed reports the failure for sure; one that was opened
        later may not.
        """
        if self._held is None:
            self._held = self._files.open(self.path, writable=True)

    def release(self) -> None:
        """Closes the descriptor of :meth:`hold`; no thread may be syncing."""
        held, self._held = self._held, None
        if held is None:
            return
        if self._borrower is not None:
            self._borrower.revoke()  # its window uses the descriptor
        held.close()

    def close(self) -> None:
        """Releases the map, its place in the pool and the descriptor."""
        self._pool.leave(self)
        self.park()
        self.release()

    def reserve(self, start: int, end: int) -> None:
        """Allocates space for ``[start, end)``, and one step more if there is space.

        Steps grow with the file, so that a file that is filled fast needs few of them.

        Raises:
            FullError: Not even the range itself fits on the file system.
        """
        if self.has_reserved(start, end):
            return
        reserved_start, reserved_end = self._reserved
        base = max(start, reserved_end) if reserved_start <= start else start
        step_bytes = max(self._step_bytes, min(base, max(16 * self._step_bytes, _LONG_STEP_BYTES)))
        ahead = min(self.size_bytes, max(end, base + step_bytes))
        if self._is_written:
            self._reserve_ahead(start, end, ahead)
        else:
            with self._map_lock:
                # The old map is for reading. It is released first: a thread that sees the room maps for
                # writing.
                self.park()
                self._reserve_ahead(start, end, ahead)
        self._outgrow()

    def _reserve_ahead(self, start: int, end: int, ahead: int) -> None:
        self._with_handle(lambda handle: self._reserve_or_less(handle, start, end, ahead), writable=True)

    def has_reserved(self, start: int, end: int) -> bool:
        """Returns whether ``[start, end)`` can be written."""
        reserved_start, reserved_end = self._reserved
        return reserved_start <= start and end <= reserved_end

    def reserve_more(self, goal: int) -> None:
        """Reserves behind what is reserved: up to ``goal`` and another step.

        Raises:
            FullError: The file system has no space for all of it.
        """
        start, end = self._reserved
        further = min(self.size_bytes, max(end, goal) + self._step_bytes)
        self._with_handle(lambda handle: handle.reserve(end, further - end), writable=True)
        self._reserved = (start, further)
        self._outgrow()

    def warm(self, start: int, end: int) -> bool:
        """Populates the pages of ``[start, end)`` for writing; returns whether it could.

        Space must be reserved there.
        """
        view = self.view
        return isinstance(view.obj, mmap.mmap) and populate(view[start:end])

    def read_no_further(self) -> None:
        """Makes the system read only the pages that are accessed, while this map exists.

        Otherwise it reads megabytes around them, and creates as many pages of zeros for unwritten parts.
        """
        _advise(self.view, mmap.MADV_RANDOM)

    def scatter(self) -> None:
        """Has the system read the pages alone that are touched, until :meth:`gather`; maps the file."""
        view = self.view
        with self._map_lock:
            self._scattered += 1
            _advise(view, mmap.MADV_RANDOM)

    def gather(self) -> None:
        """Ends what :meth:`scatter` began; others may have begun it too, or the file is short."""
        with self._map_lock:
            self._scattered -= 1
            if self._view is not None and not self._scattered and not self._is_short:
                _advise(self._view, mmap.MADV_NORMAL)

    def read(self, position: int, size_bytes: int) -> memoryview:
        """Returns a copy of ``size_bytes`` from ``position`` on; fewer if the file was cut."""
        buffer = memoryview(np.empty(size_bytes, np.uint8))  # type: ignore[arg-type]  # numpy is a buffer
        return buffer[: self._with_handle(lambda handle: handle.read_into(buffer, position), writable=False)]

    def sync(self) -> None:
        """Returns once everything written to the file is on the disk."""
        self._with_handle(lambda handle: handle.sync(), writable=False)

    @property
    def _is_written(self) -> bool:
        return self._held is not None or self._reserved[1] > self._reserved[0]

    def _map(self, handle: OpenFile) -> memoryview:
        if (found := handle.size_bytes) < self.size_bytes:
            raise self._cut(found)
        view = handle.map()
        if self._step_bytes < _SHORT_BYTES < self.size_bytes and handle.next_data(_SHORT_BYTES) is None:
            self._is_short = _advise(view, mmap.MADV_RANDOM)
        return view

    def _outgrow(self) -> None:
        """Turns on read-ahead in the map of a file that is not short any more."""
        if self._is_short and self.reserved_end > _SHORT_BYTES:
            with self._map_lock:
                if self._view is not None and not self._scattered:
                    _advise(self._view, mmap.MADV_NORMAL)
                self._is_short = False

    def _cut(self, found: int) -> TruncatedError:
        name = "/".join(self.path.parts[-2:])
        return TruncatedError(
            "cut-by-others", file=name, position_bytes=found, expected=self.size_bytes, found=found
        )

    def _reserve_or_less(self, handle: OpenFile, start: int, end: int, ahead: int) -> None:
        try:
            self._reserve(handle, start, ahead)
        except FullError:
            # Space that the failed call did allocate is ahead of the write position: later writes use it.
            if ahead == end:
                raise
            self._reserve(handle, start, end)

    def _reserve(self, handle: OpenFile, start: int, end: int) -> None:
        handle.reserve(start, end - start)
        self._reserved = (start, end)

    def _with_handle(self, action: Callable[[OpenFile], _T], *, writable: bool) -> _T:
        if self._held is not None:
            return action(self._held)
        with self._map_lock:
            handle = self._files.open(self.path, writable=writable)
        try:
            return action(handle)
        finally:
            handle.close()


def _advise(view: memoryview, advice: int) -> bool:
    """Advises the system about the use of a map; returns whether the view is of a map."""
    under = view.obj
    if not isinstance(under, mmap.mmap):
        return False
    try:
        under.madvise(advice)
    except OSError:  # a kernel without it
        return False
    return True
