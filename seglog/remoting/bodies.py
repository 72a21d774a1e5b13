"""Bodies that are values: queue sets of locks, routes, batches, and the records of a pull.

Source: ``remoting/.../protocol/body/LockBatchRequestBody.java``, ``.../route/TopicRouteData.java``,
``.../body/GetConsumerStatusBody.java``, ``MessageDecoder.java encodeMessages/decodeMessages``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from seglog.remoting.command import TypedBody
from seglog.remoting.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class LockBatchBody(TypedBody):
    """Asks to lock or unlock queues for one client of a group."""

    consumer_group: str
    client_id: str
    queues: frozenset[MessageQueue]
    is_only_this_broker: bool = False


@dataclass(frozen=True, slots=True)
class LockedQueuesBody(TypedBody):
    """The queues of a lock request that are now the client's."""

    queues: frozenset[MessageQueue]


@dataclass(frozen=True, slots=True)
class ResetOffsetsBody(TypedBody):
    """Where a group continues after a reset, queue by queue."""

    offsets: Mapping[MessageQueue, int]


@dataclass(frozen=True, slots=True)
class ConsumerStatusBody(TypedBody):
    """How far clients of a group are in the queues of a topic, by what they have in memory.

    Attributes:
        queues: Of the client that answers.
        clients: What several clients answered, by their id.
    """

    queues: Mapping[MessageQueue, int] = field(default_factory=dict)
    clients: Mapping[str, Mapping[MessageQueue, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueData:
    """How many queues of a topic one broker has, and what may be done with them."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int = 0


@dataclass(frozen=True, slots=True)
class BrokerData:
    """Where a broker can be reached, by broker id."""

    cluster: str
    broker_name: str
    broker_addresses: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class TopicRouteBody(TypedBody):
    """Where a topic's queues are."""

    queues: tuple[QueueData, ...]
    brokers: tuple[BrokerData, ...]


class FoundRecords(Protocol):
    """Records of the store, cut in two ways."""

    @property
    def records(self) -> Sequence[memoryview]:
        """Each record by itself."""

    @property
    def runs(self) -> Sequence[memoryview]:
        """The same bytes in as few pieces as possible."""

    def __len__(self) -> int:
        """How many records there are."""


@dataclass(frozen=True, slots=True)
class RecordsBody(TypedBody):
    """Records of a pull, as the commit log has them.

    Attributes:
        found: What the store found; neither runs nor records are cut out of it before they are asked for.
    """

    found: FoundRecords

    @property
    def records(self) -> Sequence[memoryview]:
        """One view a record; views of the store's maps, valid until it is closed."""
        return self.found.records

    @property
    def runs(self) -> Sequence[memoryview]:
        """The body as it travels: all of it, in as few views as possible."""
        return self.found.runs

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.found)


@dataclass(frozen=True, slots=True)
class BatchMessage:
    """One message of a batch.

    Attributes:
        properties: Stored form; the broker stores it as it is.
    """

    body: bytes | memoryview
    properties: bytes = b""
    flag: int = 0


@dataclass(frozen=True, slots=True)
class MessageBatch(TypedBody):
    """Body of SEND_BATCH_MESSAGE."""

    messages: Sequence[BatchMessage]
