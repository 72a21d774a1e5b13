"""What workloads need of a log. A log is made in the process that measures it, and starts empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Log(Protocol):
    """Queues of messages, numbered from 0.

    Calls are loops over the log's own, so that what a bench adds to each call is next to nothing.
    """

    def put_some(self, times: int) -> None:
        """Puts single messages, one call each, to the queues in turn; any thread."""
        ...

    def put_batch(self, count: int) -> None:
        """Puts one batch to one queue."""
        ...

    def settle(self) -> None:
        """Returns once all that was put can be consumed, and found by its keys."""
        ...

    def view_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Reads ``count`` messages at each place, as queue and offset, without a copy; returns how many."""
        ...

    def copy_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Reads as :meth:`view_some` does, and copies every byte."""
        ...

    def loop_some(self, places: Sequence[tuple[int, int]], count: int) -> int:
        """Reads as :meth:`view_some` does, message by message, and makes a ``bytes`` of each body."""
        ...

    def count(self, queue_id: int) -> int:
        """Returns how many messages of a queue can be read."""
        ...

    def stored_bytes(self) -> int:
        """Returns the bytes of records and queue units; 0 where that is not known."""
        ...

    def close(self) -> None:
        """Closes it."""
        ...
