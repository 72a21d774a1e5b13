"""What the fixtures of consumers give to tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypedDict, Unpack

from seglog.client.links.link import Link
from seglog.consumer.listener import ConsumeFrom, Listener
from seglog.consumer.orderly import OrderlyConsumer


class Send(Protocol):
    """Sends ``count`` messages with the bodies 0, 1, ... to one queue."""

    def __call__(
        self, count: int = 1, *, queue_id: int = 0, tags: str | None = None, topic: str = "T"
    ) -> None: ...


class ConsumerOptions(TypedDict, total=False):
    """What an ``OrderlyConsumer`` takes by name and tests set."""

    members: Iterable[str]
    consume_from: ConsumeFrom
    pull_count: int
    pull_bytes: int
    suspend_ms: float
    max_reconsume_times: int


class NewConsumer(Protocol):
    """Makes a consumer of group ``g`` and the list that its listener fills with (queue id, offset)."""

    def __call__(
        self,
        client_id: str = "a",
        subscription: str | Mapping[str, str] = "T",
        *,
        listener: Listener | None = None,
        via: Link | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> tuple[OrderlyConsumer, list[tuple[int, int]]]: ...
