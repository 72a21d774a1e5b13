"""The thread that seals full segments of the log, slowly enough to leave the machine to other work.

It seals segments that are full and on the disk, oldest first, and never holds a lock of the store, because
such segments do not change any more. A store without any seals gets them in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from seglog.clock import Clock
from seglog.errors import FullError, StoreFailedError
from seglog.storage.files.files import Files
from seglog.storage.format.ours.seal import Seal
from seglog.storage.seals.seal import make_seal
from seglog.storage.seals.seal_files import list_seals, remove_seal, remove_unfinished, seal_file, write_seal
from seglog.storage.threads.background import Background

_REST: Final = 4
"""The thread rests four times as long as it worked: it uses at most a fifth of one core."""


class Sealer:
    """Seals full segments as they come, until :meth:`stop`.

    Args:
        files: The file layer of the store.
        root: The store directory.
        clock: The time.
        segment_size_bytes: Length of every segment.
        first_phy_offset: Physical offset of the log's first byte.
        flushed: Returns the offset below which the log is on the disk.

    Thread rule: :meth:`start` and :meth:`stop` belong to one owner.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        clock: Clock,
        segment_size_bytes: int,
        first_phy_offset: int,
        flushed: Callable[[], int],
    ) -> None:
        self._files = files
        self._root = root
        self._clock = clock
        self._segment_size_bytes = segment_size_bytes
        self._first_phy_offset = self._next = first_phy_offset
        self._flushed = flushed
        self._background = Background(clock, "seglog-seal", self._round)
        self._is_tidy = False
        self._resumed_ms = 0.0

    def expire(self, phy_offset: int) -> None:
        """Notes that the log begins at a segment now: segments below get no seals."""
        self._first_phy_offset = phy_offset

    def start(self, interval_ms: float) -> None:
        """Starts the thread, which checks every ``interval_ms`` whether a segment has become full."""
        self._background.start(interval_ms)

    def stop(self) -> None:
        """Returns once the thread has ended; waits for its current piece of work."""
        self._background.stop()

    def seal_due(self) -> int:
        """Seals every full segment that has no seal yet; returns their number.

        Raises:
            FullError: There is no space for a seal; the next call tries again.
        """
        made = 0
        while self._next + self._segment_size_bytes <= self._flushed():
            is_there = self._next >= self._first_phy_offset
            if is_there and not self._files.exists(self._root / seal_file(self._next)):
                seal = self._make()
                if self._background.is_stopping:
                    break
                if seal is not None and self._next >= self._first_phy_offset:
                    write_seal(self._files, self._root, seal)
                    made += 1
            self._next += self._segment_size_bytes
        return made

    def _make(self) -> Seal | None:
        """Returns the seal of the next segment; None if it is missing or damaged: ``verify`` reports that."""
        self._resumed_ms = self._clock.monotonic_ms()
        try:
            made = make_seal(
                self._files,
                self._root,
                self._next,
                self._segment_size_bytes,
                self._clock.now_ms(),
                self._pause,
            )
        except OSError:  # removed by retention, or the disk cannot read it
            return None
        return made if isinstance(made, Seal) else None

    def _pause(self) -> bool:
        """Rests after a piece of work; returns whether to continue."""
        worked_ms = self._clock.monotonic_ms() - self._resumed_ms
        go_on = self._background.pause(worked_ms * _REST)
        self._resumed_ms = self._clock.monotonic_ms()
        return go_on

    def _round(self) -> bool:
        try:
            if not self._is_tidy:
                self._tidy()
                self._is_tidy = True
            self.seal_due()
        except FullError:
            return True  # the next round tries the same segment
        except (OSError, StoreFailedError):
            return False  # the disk fails or cannot be written; `verify` lists segments without a seal
        return True

    def _tidy(self) -> None:
        """Removes unfinished files of killed processes, and seals of segments that retention removed."""
        remove_unfinished(self._files, self._root)
        for first in list_seals(self._files, self._root):
            if first < self._first_phy_offset:
                remove_seal(self._files, self._root, first)
