"""The stretch of the log ahead of its end whose pages are ready before a record comes.

It is as long as what was written since the last sync, up to :data:`WINDOW_BYTES`. A sync writes every page
that is ready, empty ones too, so that it writes at most twice what it must; a store that syncs each put, or
gets few, has no window. A store that puts much has the whole window all the time: it is ready when a
sync ends, and is as long again before half of it is used up.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.segments.segments import Segments

WINDOW_BYTES: Final = 16 << 20
STRIDE_BYTES: Final = 4 << 20
"""How far the log grows before the window follows: 4 ms at 1 GB a second, about as long as a busy
interpreter takes to let another thread run."""
NEVER: Final = (1 << 63) - 1


class WarmWindow:
    """Follows the end of a log.

    Args:
        segments: Its files.

    Thread rule: one thread at a time, any number that append meanwhile.
    """

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._ready = 0
        self._is_possible = True

    def follow(self, end_phy_offset: int, flushed: int) -> int:
        """Makes pages ready where the log is going to be.

        Args:
            end_phy_offset: Where it ends now.
            flushed: How far it is on the disk.

        Returns:
            Where its end will be when there is something to do again.
        """
        if not self._is_possible:
            return NEVER
        unsynced = end_phy_offset - flushed
        if unsynced >= STRIDE_BYTES:
            self._ready = max(self._ready, end_phy_offset)
            self._is_possible = self._reach(end_phy_offset + min(unsynced, WINDOW_BYTES))
        return end_phy_offset + STRIDE_BYTES if self._is_possible else NEVER

    def _reach(self, goal: int) -> bool:
        """Makes pages ready up to ``goal``, as far as there is space; returns whether it could."""
        while self._ready < goal:
            segment = self._segments.find(self._ready)
            if segment is None:
                break
            start = self._ready - segment.first_offset
            end = min(goal - segment.first_offset, segment.reserved_end)
            if start >= end or not segment.has_reserved(start, end):
                break
            if not segment.warm(start, end):
                return False
            self._ready = segment.first_offset + end
        return True
