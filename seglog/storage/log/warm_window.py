"""The warm window: the stretch of the log ahead of its end whose pages are in memory before a record comes.

The window is as long as the bytes written since the last sync, up to :data:`WINDOW_BYTES`. A sync writes
every page of the window, empty pages too: at most twice the bytes that it must write. A store that
syncs each put, or gets few puts, has no window. A store with many puts has the whole window all the time: it
is ready when a sync ends, and has its full length again before half of it is used up.

A log that grows by large batches has no window: they are written past the map, by ``pwrite``, which fills
fresh pages without zeroing them first.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.segments.segments import Segments

WINDOW_BYTES: Final = 16 << 20
STRIDE_BYTES: Final = 4 << 20
"""The window is moved each time the log has grown by this much: every 4 ms at 1 GB a second, about the time
that a busy interpreter takes to let another thread run."""
NEVER: Final = (1 << 63) - 1


class WarmWindow:
    """Follows the end of a log.

    Args:
        segments: Its files.

    Thread rule: one thread at a time; any number of other threads may append meanwhile.
    """

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self._ready = 0
        self._seen_end = self._seen_past_map = 0
        self._is_past_map = False
        self._is_possible = True

    def follow(self, end_phy_offset: int, flushed: int, past_map_bytes: int) -> int:
        """Prepares the pages behind the end of the log.

        Args:
            end_phy_offset: The end of the log now.
            flushed: The log is on the disk below this offset.
            past_map_bytes: Bytes that appends have written past the map until now.

        Returns:
            The end of the log at which this must be called again.
        """
        if not self._is_possible:
            return NEVER
        unsynced = end_phy_offset - flushed
        grown, past_map = end_phy_offset - self._seen_end, past_map_bytes - self._seen_past_map
        if grown >= STRIDE_BYTES:  # over less, a batch that is being written decides
            self._seen_end, self._seen_past_map = end_phy_offset, past_map_bytes
            self._is_past_map = 2 * past_map > grown
        if self._is_past_map:
            return end_phy_offset + STRIDE_BYTES
        if unsynced >= STRIDE_BYTES:
            self._ready = max(self._ready, end_phy_offset)
            self._is_possible = self._reach(end_phy_offset + min(unsynced, WINDOW_BYTES))
        return end_phy_offset + STRIDE_BYTES if self._is_possible else NEVER

    def _reach(self, goal: int) -> bool:
        """Prepares pages up to ``goal`` within reserved space; returns False if the system cannot do it."""
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
