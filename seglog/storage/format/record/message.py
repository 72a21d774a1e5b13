"""A stored message as a value, decoded from its record.

Decoding copies what it keeps, so a :class:`Message` outlives the map it was read from. Properties are
decoded on first use: most readers want the body.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from typing_extensions import override

from seglog.arguments import as_text
from seglog.errors import CorruptError, InvalidArgumentError, MissingDependencyError, TruncatedError
from seglog.storage.format.layout import Field, Layout
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.record.compression import inflate
from seglog.storage.format.record.host import IPV4_BYTES, IPV6_BYTES, Host
from seglog.storage.format.record.own_names import OWN_NAMES
from seglog.storage.format.record.placeholder import is_placeholder
from seglog.storage.format.record.record import HEAD_V4, Damage, examine, head_layout
from seglog.storage.format.record.tombstone import would_be_lost

MESSAGE_ID: Final = Layout(
    "Message id (offsetMsgId), behind the address bytes",
    "MessageDecoder.java createMessageId",
    (Field("port", "i32", "–", "of the store host"), Field("phy_offset", "i64", "bytes", "of the record")),
)

_COMPRESSION_NAMES = {0: "zlib", flags.COMPRESSION_LZ4: "lz4", flags.COMPRESSION_ZSTD: "zstd"}
_SHOWN_BODY_BYTES: Final = 64
new_host = lru_cache(maxsize=4096)(Host)
"""Few hosts write many messages."""


class ReadBody(NamedTuple):
    """The body of a message for who reads it.

    Attributes:
        payload: As the producer gave it, or as stored.
        reason: Why it is as stored; empty if it is not.
        error: The same behind the message's place; None if it is not.
    """

    payload: bytes
    reason: str
    error: str | None


@dataclass(frozen=True)
class Message:
    """One message.

    What the native kernels read is of this class for ``isinstance``, ``__class__``, patterns and copies, and
    equal to it; only ``type`` of it is another.

    Attributes:
        body: As stored, possibly compressed; see :meth:`payload` and :attr:`body_error`.
        properties_raw: As stored; see :attr:`properties`.
    """

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    size_bytes: int
    body_crc: int
    sys_flag: int
    flag: int
    born_timestamp_ms: int
    store_timestamp_ms: int
    born_host: Host
    store_host: Host
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    properties_raw: bytes

    @override
    def __repr__(self) -> str:
        more = len(self.body) - _SHOWN_BODY_BYTES
        body = f"{bytes(self.body[:_SHOWN_BODY_BYTES])!r}{f' and {more} more bytes' if more > 0 else ''}"
        return f"<Message {self.topic}/{self.queue_id}/{self.queue_offset} tags={self.tags!r} body={body}>"

    @cached_property
    def properties(self) -> props.Properties:
        """The properties that RocketMQ would see; they refuse changes."""
        return props.Properties.of(self.properties_raw)

    @property
    def user_properties(self) -> dict[str, str]:
        """A new dictionary of the properties without RocketMQ's own, to send the message on with.

        Tags, keys, ids, delays, and what retries and dead letters note, are RocketMQ's.
        """
        return {name: value for name, value in self.properties.items() if name not in OWN_NAMES}

    @property
    def tags(self) -> str | None:
        """The message's tag."""
        return self.properties.get(props.TAGS)

    @property
    def keys(self) -> list[str]:
        """The index keys, none for a message without."""
        return props.split_keys(self.properties.get(props.KEYS, ""))

    @property
    def unique_key(self) -> str | None:
        """The id that the producer gave."""
        return self.properties.get(props.UNIQ_KEY)

    @property
    def sharding_key(self) -> str | None:
        """The sharding key, which chose the queue: messages of one key are in order."""
        return self.properties.get(props.SHARDING_KEY)

    @property
    def message_id(self) -> str:
        """The offsetMsgId: store host and physical offset in hexadecimal."""
        return message_id(self.store_host, self.phy_offset)

    @property
    def compression(self) -> str | None:
        """``zlib``, ``lz4`` or ``zstd`` if the body is compressed."""
        if not self.sys_flag & flags.COMPRESSED:
            return None
        return _COMPRESSION_NAMES.get(self.sys_flag & flags.COMPRESSION_MASK, "zlib")

    @property
    def is_tombstone(self) -> bool:
        """Whether it stands for a message that was lost."""
        return would_be_lost(self.flag, self.store_host.port, self.body)

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for a message that a compaction dropped, and is none itself."""
        return is_placeholder(self.flag, self.body, self.properties_raw)

    @cached_property
    def body_error(self) -> str | None:
        """Why :meth:`payload` returns the body as stored although it is compressed; None if it does not.

        It may not inflate, or inflate beyond ``MAX_INFLATED_BYTES``, or its codec is not installed.
        The text names the message. Asking inflates the body.
        """
        return self.read_body().error

    def payload(self) -> bytes:
        """Returns the body as the producer gave it, or as stored where :attr:`body_error` says why."""
        return self.read_body().payload

    def read_body(self) -> ReadBody:
        """Returns :meth:`payload` and why it is as stored, inflating once."""
        compression = self.compression
        if compression is None:
            return ReadBody(self.body, "", None)
        try:
            return ReadBody(inflate(self.body, compression), "", None)
        except CorruptError as error:
            reason = (
                f"the {compression} body does not inflate: expected {error.expected}, found {error.found}"
            )
        except MissingDependencyError as error:
            reason = f"the {compression} body is not inflated here: {error.help}"
        place = f"{self.topic}/{self.queue_id} @{self.queue_offset}, record at {self.phy_offset}"
        return ReadBody(self.body, reason, f"{place}: {reason}")


def message_id(store_host: Host, phy_offset: int) -> str:
    """Returns the offsetMsgId: 32 hexadecimal digits with IPv4, 56 with IPv6."""
    return (store_host.address + MESSAGE_ID.struct.pack(store_host.port, phy_offset)).hex().upper()


def message_ids(store_host: Host, phy_offsets: Iterable[int]) -> list[str]:
    """Returns the offsetMsgId of each of some messages, as :func:`message_id` does."""
    host = (store_host.address + store_host.port.to_bytes(4, "big", signed=True)).hex().upper()
    return [f"{host}{phy_offset:016X}" for phy_offset in phy_offsets]


def decode_message_id(text: str) -> tuple[Host, int]:
    """Returns the store host and the physical offset that an offsetMsgId names.

    Raises:
        InvalidArgumentError: That is no offsetMsgId.
    """
    as_text("message_id", text)
    size = len(text) // 2 - MESSAGE_ID.size_bytes
    try:
        raw = bytes.fromhex(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{text!r} is no message id: {error}") from error
    if size not in (IPV4_BYTES, IPV6_BYTES) or len(raw) != size + MESSAGE_ID.size_bytes:
        raise InvalidArgumentError(f"{text!r} is no message id: 32 or 56 hexadecimal digits are")
    port, phy_offset = MESSAGE_ID.struct.unpack_from(raw, size)
    return Host(raw[:size], port), phy_offset


def decode_message(record: bytes | bytearray | memoryview, *, verify: bool = False) -> Message:
    """Returns the message of a whole record.

    Args:
        record: Starts with the record.
        verify: Whether to check the checksums as well.

    Raises:
        CorruptError: The bytes are no record.
        TruncatedError: The record is longer than the buffer.
    """
    view = memoryview(record)
    if len(view) < HEAD_V4.size_bytes:
        raise TruncatedError("short", expected=f"at least {HEAD_V4.size_bytes} bytes", found=len(view))
    layout = head_layout(view)
    if len(view) < layout.size_bytes:
        raise TruncatedError("short", expected=f"at least {layout.size_bytes} bytes", found=len(view))
    head = layout.struct.unpack_from(view)
    row = examine(view, 0, head[6], verify=verify)
    if isinstance(row, Damage):
        error = TruncatedError if row.kind in ("short", "size") and head[0] > len(view) else CorruptError
        raise error(row.kind, expected=row.expected, found=row.found)
    # What Message(...) does, without the 16 guarded assignments that a frozen dataclass makes: they cost
    # more than everything else here.
    message = object.__new__(Message)
    vars(message).update(
        topic=row.topic.decode("utf-8", "replace"),
        queue_id=row.queue_id,
        queue_offset=row.queue_offset,
        phy_offset=head[6],
        size_bytes=row.size_bytes,
        body_crc=head[2],
        sys_flag=row.sys_flag,
        flag=head[4],
        born_timestamp_ms=head[8],
        store_timestamp_ms=row.store_timestamp_ms,
        born_host=new_host(head[9], head[10]),
        store_host=new_host(head[12], head[13]),
        reconsume_times=head[14],
        prepared_transaction_offset=head[15],
        body=view[row.body_at : row.body_at + row.body_bytes].tobytes(),
        properties_raw=view[row.properties_at : row.properties_at + row.properties_bytes].tobytes(),
    )
    return message
