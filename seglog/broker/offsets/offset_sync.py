"""Brings commits to the disk for clients in this process that wait for it.

A broker in an application dies with it, so an explicit commit to one with SYNC durability returns once the
offsets are on the disk, as its sends do. A thread that waits writes the history of offsets itself, and one
thread writes for all that await: those that come during a write are served by the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from typing_extensions import override

from seglog.broker.offsets.offsets import ConsumerOffsets
from seglog.closing import Closing
from seglog.errors import ClosedError, SeglogError
from seglog.remoting.later import Deferred, resolved
from seglog.storage.threads import OnDemand


class OffsetSync(Closing):
    """Writes the changes of the offsets of a broker for those that wait. Any thread may call it.

    Args:
        offsets: The offsets.
        is_waited_for: Whether commits wait for the disk: SYNC durability.
        is_inline: Whether the caller writes, and no thread does: on virtual time.
    """

    def __init__(self, offsets: ConsumerOffsets, *, is_waited_for: bool, is_inline: bool) -> None:
        self._offsets = offsets
        self._is_waited_for = is_waited_for
        self._is_inline = is_inline
        self._lock = threading.Lock()
        self._waiting: list[Deferred[None]] = []
        self._is_closed = False
        self._thread = OnDemand("seglog-offsets", self._sync)

    def settle(self) -> Deferred[None]:
        """Returns what is resolved once all present offsets are as durable as the broker's sends.

        It fails with a SeglogError, such as FullError, where they cannot be written, and with a ClosedError
        once the broker is closed: the store may be another's then, and its close has said what is not saved.
        """
        if self._is_closed:
            over: Deferred[None] = Deferred()
            over.fail(ClosedError("the broker was closed: it writes no offsets any more"))
            return over
        if not self._is_waited_for or not self._offsets.has_unsynced:
            return resolved(None)
        unsettled = _Unsettled(self)
        if self._is_inline:
            self.bring([unsettled])
        return unsettled

    def bring(self, waiting: Iterable[Deferred[None]]) -> None:
        """Writes all present offsets, in the calling thread; then what waits for them is over."""
        error: SeglogError | None = None
        try:
            self._offsets.sync()
        except SeglogError as why:
            error = why
        for each in waiting:
            if error is None:
                each.resolve(None)
            else:
                each.fail(error)

    def ask_for(self, unsettled: Deferred[None]) -> None:
        """Has the thread write all present offsets; it returns at once."""
        with self._lock:
            self._waiting.append(unsettled)
        self._thread.ask()
        if self._is_closed:
            self._sync()

    def _sync(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if waiting:
            self.bring(waiting)

    @override
    def close(self) -> None:
        """Ends the thread, and writes for those that wait still."""
        self._is_closed = True
        self._thread.stop()
        self._sync()


class _Unsettled(Deferred[None]):
    """What is resolved once the offsets are on the disk: nothing is written before someone waits for that.

    A thread that waits writes them itself. To wake another one, and to be woken by it, takes longer than a
    write does.
    """

    __slots__ = ("_sync",)

    def __init__(self, sync: OffsetSync) -> None:
        super().__init__()
        self._sync = sync

    @override
    def then(self, follower: Callable[[Deferred[None]], object]) -> None:
        super().then(follower)
        if not self.is_done:
            self._sync.ask_for(self)

    @override
    def wait(self, timeout_s: float | None = None) -> None:
        if not self.is_done:
            self._sync.bring([self])
        return self.result()
