"""What the fixtures of consumers give to tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Unpack

from seglog.client.connect import Target
from seglog.consumer.listener import PlainListener
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.settings import ConsumerOptions


class Send(Protocol):
    """Sends ``count`` messages with the bodies 0, 1, ... to one queue."""

    def __call__(
        self, count: int = 1, *, queue_id: int = 0, tags: str | None = None, topic: str = "T"
    ) -> None: ...


class NewConsumer(Protocol):
    """Makes a consumer of group ``g`` and the list that its listener fills with (queue id, offset)."""

    def __call__(
        self,
        subscription: str | Mapping[str, str] = "T",
        *,
        listener: PlainListener | None = None,
        via: Target | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> tuple[OrderlyConsumer, list[tuple[int, int]]]: ...
