"""Signals that ask the process to end, at any time of its life; none of them ends the process by itself.

SIGTERM and SIGINT are such signals, and SIGHUP, which a closed terminal sends, unless it was ignored when the
process began (``nohup``). While the store is being opened they are noted, and :class:`StoppableFiles` ends
the opening before its next file access. The store is then as after a crash at that point, and the next
opening recovers it.
"""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from typing_extensions import override

from seglog.closing import Closing
from seglog.storage.directory import LogPaths, LogRoot
from seglog.storage.files import Entry, RealFile

_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopAskedError(KeyboardInterrupt):
    """The process was asked to end while the store was being opened.

    Attributes:
        signal: The signal.
    """

    def __init__(self, by: signal.Signals) -> None:
        super().__init__(f"stopped by {by.name}")
        self.signal = by


class EndSignals(Closing):
    """Notes signals until it is closed; created by the main thread, because only that receives signals.

    Attributes:
        first: The first signal; None before it.
    """

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self._count = 0
        self._is_raised = False
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)
        self._fd_before = signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        kinds = [one for one in _ENDING if one is not signal.SIGHUP or not _is_ignored(one)]
        self._before = {one: signal.signal(one, self._note) for one in kinds}

    @override
    def close(self) -> None:
        """Restores the former signal handlers."""
        for one, before in self._before.items():
            signal.signal(one, before)
        signal.set_wakeup_fd(self._fd_before)
        self._woken.close()
        self._wake.close()

    def check(self) -> None:
        """Raises an error once if the process was asked to end; does nothing in other threads.

        Raises:
            StopAskedError: The process was asked to end.
        """
        if self.first is not None and not self._is_raised and _is_main():
            self._is_raised = True
            raise StopAskedError(self.first)

    def end(self) -> None:
        """Asks the process to end without a signal; any thread may call it."""
        self._count += 1
        with suppress(OSError):  # the pipe is full, so the loop wakes up anyway; or it is closed
            self._wake.send(b"\0")

    @contextmanager
    def told(self, loop: asyncio.AbstractEventLoop, asked: Callable[[], None]) -> Iterator[None]:
        """Makes an event loop call a function for each request to end, also for earlier ones.

        Args:
            loop: The loop of the main thread.
            asked: The function, called in the loop.
        """
        done = 0

        def come() -> None:
            nonlocal done
            with suppress(BlockingIOError):
                while self._woken.recv(4_096):
                    continue
            while done < self._count:
                done += 1
                asked()

        loop.add_reader(self._woken, come)
        loop.call_soon(come)
        try:
            yield
        finally:
            loop.remove_reader(self._woken)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.first is None:
            self.first = signal.Signals(number)
        self._count += 1


class StoppableFiles(LogRoot):
    """The files of a store; at each access the opening of the store may be ended.

    Args:
        path: The store directory.
        follow: As for :class:`~seglog.storage.files.StoreRoot`.
        check: Called before each access.
        log: The folders of the log that the configuration states.
    """

    def __init__(
        self, path: Path, follow: Collection[str], check: Callable[[], None], log: LogPaths | None = None
    ) -> None:
        super().__init__(path, follow=follow, log=log)
        self._check = check

    def opened(self) -> None:
        """Ends the checks, because the store is open."""
        self._check = _go_on

    @override
    def list_dir(self, path: Path) -> list[Entry]:
        self._check()
        return super().list_dir(path)

    @override
    def open(self, path: Path, *, writable: bool) -> RealFile:
        self._check()
        return super().open(path, writable=writable)

    @override
    def create(self, path: Path, size_bytes: int) -> RealFile:
        self._check()
        return super().create(path, size_bytes)

    @override
    def read_file(self, path: Path) -> bytes:
        self._check()
        return super().read_file(path)

    @override
    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self._check()
        super().write_file(path, data, sync=sync)


def _go_on() -> None:
    """Does nothing."""


def _is_ignored(one: signal.Signals) -> bool:
    return signal.getsignal(one) is signal.SIG_IGN


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def stacks_on_quit() -> Iterator[None]:
    """Makes SIGQUIT print the stack of each thread, as in a JVM; by default it ends the process."""
    is_registered = False
    with suppress(OSError, ValueError, RuntimeError):  # standard error is closed, or no file
        faulthandler.register(signal.SIGQUIT, all_threads=True)
        is_registered = True
    try:
        yield
    finally:
        if is_registered:
            faulthandler.unregister(signal.SIGQUIT)
