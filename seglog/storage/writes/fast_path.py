"""What appends are tried with first, before the ordinary way; see :mod:`seglog.storage.kernels.fast_path`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from seglog.storage.kernels.tails import QueueTail
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult


class FastPath(Protocol):
    """Appends usual messages to queues that have room, and waits for nothing.

    Attributes:
        lacks_window: Whether an append was left to the ordinary way that a write window would have spared it.
    """

    lacks_window: bool

    def try_put(
        self,
        topic: str,
        body: bytes | memoryview,
        queue_id: int,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        durability: Durability | None,
        /,
    ) -> PutResult | None:
        """Appends one message; None where the ordinary way must, and nothing was done."""

    def try_put_batch(
        self,
        topic: str,
        messages: Sequence[NewMessage | bytes],
        queue_id: int,
        durability: Durability | None,
        /,
    ) -> BatchResult | None:
        """Appends messages; None where the ordinary way must, and nothing was done."""

    def add(self, topic: str, queue_id: int, tail: QueueTail, /) -> None:
        """Serves a queue from now on, whenever windows are granted."""

    def forget(self) -> None:
        """Serves no queue any more until it is added again."""

    def close(self) -> None:
        """Leaves everything to the ordinary way from now on."""


class NoFastPath:
    """That of a store which is open for reading: everything is left to the ordinary way."""

    lacks_window = False

    def try_put(self, *_arguments: object) -> None:
        """Returns None."""

    def try_put_batch(self, *_arguments: object) -> None:
        """Returns None."""

    def add(self, *_arguments: object) -> None:
        """Does nothing."""

    def forget(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


NO_FAST_PATH: Final = NoFastPath()
