"""What gives the messages of queues to the listener."""

from __future__ import annotations

from typing import Protocol

from seglog.consumer.process_queue import ProcessQueue


class Service(Protocol):
    """Serves the queues of one consumer; its flows run on the client's home."""

    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and the listener has ended with what it was at."""
