"""The messages that are put into a store, and the results of puts, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import message_id, message_ids
from seglog.storage.writes.flush import Durability


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to put, as part of a batch.

    Attributes:
        body: The payload.
        tags: The tag that consumers filter by.
        keys: Index keys: one text with blanks between them, or several texts without blanks.
        properties: More properties.
        flag: The application's own 32 bits.
    """

    body: bytes | bytearray | memoryview
    tags: str | None = None
    keys: str | Iterable[str] | None = None
    properties: Mapping[str, str] | None = None
    flag: int = 0


class RawMessage(NamedTuple):
    """A message to append as part of a batch, its properties encoded already.

    Attributes:
        properties: Stored as they are, but for a ``__CRC32#`` entry.
        tags_code: Written into the queue unit; in the delay topic the unit holds the delivery time instead.
    """

    body: bytes | bytearray | memoryview
    properties: bytes
    tags_code: int
    flag: int = 0


class PutResult(NamedTuple):
    """The place of a stored message; a tuple, because creating a frozen dataclass takes three times as long.

    Native puts return an object that creates the numbers and the tuple on first use. It is an instance of
    this class, and is compared, shown, unpacked, copied and pickled as one; but ``%`` of text and ``json``
    look for the type ``tuple`` itself: give them ``tuple(result)``.

    Attributes:
        queue_offset: Its index in the queue; 0 for PREPARED and ROLLBACK records, which have none.
        store_host: The broker's address in the record.
        durability: The durability that was reached before the call returned.
    """

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    size_bytes: int
    store_timestamp_ms: int
    store_host: Host
    durability: Durability

    @property
    def message_id(self) -> str:
        """The offsetMsgId, which finds the message again."""
        return message_id(self.store_host, self.phy_offset)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The places of a stored batch.

    Attributes:
        queue_offset: Queue offset of the first message; the others follow without gap.
        phy_offsets: Physical offset of each record.
        size_bytes: Size of all records.
        store_host: The broker's address in the records.
    """

    topic: str
    queue_id: int
    queue_offset: int
    phy_offsets: list[int]
    size_bytes: int
    store_timestamp_ms: int
    store_host: Host
    durability: Durability

    @property
    def count(self) -> int:
        """Number of messages."""
        return len(self.phy_offsets)

    @property
    def phy_offset(self) -> int:
        """Physical offset of the first record."""
        return self.phy_offsets[0]

    @property
    def message_ids(self) -> list[str]:
        """The offsetMsgId of each message."""
        return message_ids(self.store_host, self.phy_offsets)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue and its range.

    Attributes:
        max_phy_offset: Where the record of its last unit ends, -1 if it never had one.
    """

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    max_phy_offset: int
