"""Typed headers of the requests and responses in use, and the table of their names on the wire.

A header travels as ext fields, string to string. ``WIRE`` of each class has the names of its fields in
RocketMQ's spelling, made of the fields' own names by :func:`wire_names`; :func:`encode_header` and
:func:`decode_header` are derived from that table and from the types of the fields. Fields without a default
are required, as RocketMQ's ``@CFNotNull``.

Source: ``remoting/.../protocol/header/*.java``.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from seglog.errors import ProtocolError
from seglog.remoting.command import Header, WireNames
from seglog.storage.kernels.made import quickly_made
from seglog.storage.kernels.wire_headers import (
    BOOL,
    BYTES,
    I32,
    I64,
    REQUIRED,
    TEXT,
    FieldPlan,
    native_read_fields,
    native_write_fields,
)

H = TypeVar("H", bound=Header)
Int32 = typing.Annotated[int, "32 bits, Java's Integer"]
"""Of a field that Java does not read where it is greater."""


def wire_names(**others: str) -> Callable[[type[H]], type[H]]:
    """Gives a class its table ``WIRE``: each field in camel case, without ``is_`` and ``_ms``.

    Args:
        others: Names on the wire that differ from that, by field.
    """

    def with_names(kind: type[H]) -> type[H]:
        kind.WIRE = {
            field.name: others.get(field.name) or _camel_case(field.name)
            for field in dataclasses.fields(kind)
        }
        return kind

    return with_names


def _camel_case(name: str) -> str:
    first, *others = name.removeprefix("is_").removesuffix("_ms").split("_")
    return first + "".join(word.capitalize() for word in others)


@wire_names(broker_name="bname")
@quickly_made
@dataclass(frozen=True, slots=True)
class SendMessageHeader(Header):
    """SEND_MESSAGE, and with the one-letter names of ``WIRE_V2`` SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE.

    SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2 have the same.

    Attributes:
        queue_id: Below 0 lets the broker choose.
        properties: Stored form, ``name 0x01 value 0x02`` and so on.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp_ms: int
    flag: Int32
    properties: bytes = b""
    reconsume_times: Int32 = 0
    is_unit_mode: bool = False
    max_reconsume_times: Int32 | None = None
    is_batch: bool = False
    broker_name: str | None = None
    WIRE_V2: ClassVar[WireNames]


SendMessageHeader.WIRE_V2 = dict(zip(SendMessageHeader.WIRE, "abcdefghijklmn", strict=True))


@wire_names(durability="seglogDurability")
@quickly_made
@dataclass(frozen=True, slots=True)
class SendMessageResponseHeader(Header):
    """Answer to all sends.

    Attributes:
        msg_id: The offsetMsgId; those of a batch are joined by commas.
        queue_offset: Of the message, or of the first one of a batch.
        transaction_id: The UNIQ_KEY, where it is known.
        durability: What was reached before the answer; seglog's own, other clients do not read it.
    """

    msg_id: str
    queue_id: Int32
    queue_offset: int
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    durability: str | None = None


# "Froward" is RocketMQ's spelling.
@wire_names(
    suspend_timeout_ms="suspendTimeoutMillis", proxy_client_id="proxyFrowardClientId", owner="seglogOwner"
)
@quickly_made
@dataclass(frozen=True, slots=True)
class PullMessageHeader(Header):
    """PULL_MESSAGE and LITE_PULL_MESSAGE.

    Attributes:
        sys_flag: Bits of ``PullFlag``.
        commit_offset: Stored as the group's offset if ``PullFlag.COMMIT_OFFSET`` is set.
        sub_version: Of the subscription that the client has; without ``PullFlag.SUBSCRIPTION`` the broker
            must know one at least as new from a heartbeat.
        max_msg_bytes: Java's broker ignores it; ours stops there, but never before the first message. Below 1
            it is ignored here too.
        request_source: Which kind of proxy pulls for a client, below 0 for none.
        proxy_client_id: The client of a proxy.
        owner: As in :class:`UpdateConsumerOffsetHeader`.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: int
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: int
    suspend_timeout_ms: int
    sub_version: int
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None
    proxy_client_id: str | None = None
    owner: str | None = None


@wire_names()
@quickly_made
@dataclass(frozen=True, slots=True)
class PullMessageResponseHeader(Header):
    """Answer to a pull, with every status of the store.

    Attributes:
        topic_sys_flag: Of the topic's settings.
        group_sys_flag: Of the group's settings.
    """

    suggest_which_broker_id: int
    next_begin_offset: int
    min_offset: int
    max_offset: int
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class QueryConsumerOffsetHeader(Header):
    """QUERY_CONSUMER_OFFSET.

    Attributes:
        set_zero_if_not_found: False asks for QUERY_NOT_FOUND at any age of the queue.
    """

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool = True


@wire_names(owner="seglogOwner")
@dataclass(frozen=True, slots=True)
class UpdateConsumerOffsetHeader(Header):
    """UPDATE_CONSUMER_OFFSET; ``owner`` is seglog's own: the member that must have the queue, if any."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: int
    owner: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class GetMaxOffsetHeader(Header):
    """GET_MAX_OFFSET."""

    topic: str
    queue_id: Int32
    is_committed: bool = True


@wire_names()
@dataclass(frozen=True, slots=True)
class GetMinOffsetHeader(Header):
    """GET_MIN_OFFSET."""

    topic: str
    queue_id: Int32


@wire_names()
@dataclass(frozen=True, slots=True)
class SearchOffsetHeader(Header):
    """SEARCH_OFFSET_BY_TIMESTAMP.

    Attributes:
        boundary_type: ``lower`` (the default) or ``upper``.
    """

    topic: str
    queue_id: Int32
    timestamp_ms: int
    boundary_type: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class OffsetResponseHeader(Header):
    """Answer to every request for one offset."""

    offset: int


@wire_names(is_forced="isForce")
@dataclass(frozen=True, slots=True)
class ResetOffsetHeader(Header):
    """INVOKE_BROKER_TO_RESET_OFFSET.

    Attributes:
        queue_id: -1 for every queue of the topic; then ``offset`` is not looked at.
        offset: Where the group continues; -1 or None for where ``timestamp_ms`` leads.
        timestamp_ms: Messages stored from then on are delivered; below 0 for none that exists.
        is_forced: Not looked at, as in RocketMQ's reset on the side of the broker.
    """

    group: str
    topic: str
    timestamp_ms: int
    is_forced: bool
    queue_id: Int32 = -1
    offset: int | None = None


@wire_names(source_group="srcGroup", target_group="destGroup")
@dataclass(frozen=True, slots=True)
class CloneGroupOffsetHeader(Header):
    """CLONE_GROUP_OFFSET.

    Attributes:
        topic: Only the offsets of this topic; None or empty for all.
    """

    source_group: str
    target_group: str
    topic: str | None = None
    is_offline: bool = False


@wire_names(cleans_offsets="cleanOffset")
@dataclass(frozen=True, slots=True)
class DeleteGroupHeader(Header):
    """DELETE_SUBSCRIPTIONGROUP."""

    group_name: str
    cleans_offsets: bool = False


@wire_names()
@dataclass(frozen=True, slots=True)
class CreateTopicHeader(Header):
    """UPDATE_AND_CREATE_TOPIC.

    Attributes:
        perm: 4 read, 2 write, 1 inherit.
        topic_filter_type: ``SINGLE_TAG``, which is meant where it is absent, or ``MULTI_TAG``.
        attributes: ``+name=value,-name``.
    """

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str | None = "SINGLE_TAG"
    topic_sys_flag: Int32 = 0
    is_order: bool = False
    attributes: str | None = None


@wire_names(accepts_standard_json_only="acceptStandardJsonOnly")
@dataclass(frozen=True, slots=True)
class GetRouteInfoHeader(Header):
    """GET_ROUTEINFO_BY_TOPIC; without the field no topic is found, as in RocketMQ."""

    topic: str = ""
    accepts_standard_json_only: bool = False


@wire_names(phy_offset="offset", origin_message_id="originMsgId")
@dataclass(frozen=True, slots=True)
class SendBackHeader(Header):
    """CONSUMER_SEND_MSG_BACK.

    Attributes:
        phy_offset: Of the record that was consumed.
        delay_level: 0 leaves it to the broker, below 0 asks for the group's dead letters.
        origin_message_id: The message's id as the client knows it.
        origin_topic: Where the client got it from.
        max_reconsume_times: Instead of the group's own.
    """

    phy_offset: int
    group: str
    delay_level: Int32
    origin_message_id: str | None = None
    origin_topic: str | None = None
    is_unit_mode: bool = False
    max_reconsume_times: Int32 | None = None


def encode_header(header: Header, names: WireNames | None = None) -> dict[str, str]:
    """Returns the ext fields of a header; what is None is left out, as Java leaves out null.

    Args:
        header: Any header of this module.
        names: Other names than the class's ``WIRE``, such as ``SendMessageHeader.WIRE_V2``.
    """
    if native_write_fields is not None:
        usual = native_write_fields(header, _known(type(header), names).plan)
        if usual is not None:
            return usual
    found: dict[str, str] = {}
    for field in fields_of(type(header), names):
        value = getattr(header, field.name)
        if value is not None:
            found[field.wire_name] = field.encode(value)
    return found


def decode_header(kind: type[H], ext: Mapping[str, str], names: WireNames | None = None) -> H:
    """Returns the header that ext fields hold; fields it does not know are left alone.

    Raises:
        ProtocolError: A required field is missing, or a value is not of its type.
    """
    if native_read_fields is not None:
        usual = native_read_fields(kind, ext, _known(kind, names).plan)
        if usual is not None:
            return usual
    values: dict[str, object] = {}
    for field in fields_of(kind, names):
        text = ext.get(field.wire_name)
        if text is not None:
            try:
                values[field.name] = field.decode(text)
            except ValueError as error:
                raise ProtocolError(f"the field {field.wire_name} holds {text[:40]!r}: {error}") from error
        elif field.is_required:
            raise ProtocolError(f"the custom field <{field.wire_name}> is null")
    return kind(**values)


def has_required(kind: type[Header], ext: Mapping[str, str]) -> bool:
    """Returns whether ext fields hold all that a header must have."""
    fields = fields_of(kind)
    return bool(fields) and all(field.wire_name in ext for field in fields if field.is_required)


class WireField(typing.NamedTuple):
    """A field of a header.

    Attributes:
        name: Of the attribute.
        wire_name: Of the ext field.
        is_required: Whether a header without it is refused.
        usual: Its value where it is missing.
        kind: As :data:`~seglog.storage.kernels.wire_headers.FieldPlan` has it.
    """

    name: str
    wire_name: str
    is_required: bool
    usual: object
    kind: int
    encode: Callable[[typing.Any], str]
    decode: Callable[[str], object]

    @property
    def bits(self) -> int | None:
        """How many a whole number of its kind has; None for other values."""
        return _BITS.get(self.kind)


def fields_of(kind: type[Header], names: WireNames | None = None) -> tuple[WireField, ...]:
    """Returns the fields of a class of headers, with other names than its own if there are any.

    Args:
        kind: The class.
        names: A table that lives as long as the module that states it, such as ``SendMessageHeader.WIRE_V2``:
            what follows from it is kept.
    """
    return _known(kind, names).fields


class _Known(typing.NamedTuple):
    """What follows from a class and a table of names; it keeps the table, so that no other has its id."""

    names: WireNames | None
    fields: tuple[WireField, ...]
    plan: FieldPlan


def _known(kind: type[Header], names: WireNames | None) -> _Known:
    known = _KNOWN.get((kind, id(names)))
    if known is None:
        fields = tuple(_iter_fields(kind, names or kind.WIRE))
        known = _KNOWN[kind, id(names)] = _Known(names, fields, tuple(map(_plan_of, fields)))
    return known


def _plan_of(field: WireField) -> tuple[str, str, int, object]:
    kind = field.kind | (REQUIRED if field.is_required else 0)
    return field.name, field.wire_name, kind, field.usual


class _Codec(typing.NamedTuple):
    """How values of one type travel: the last three fields of :class:`WireField`."""

    kind: int
    encode: Callable[[typing.Any], str]
    decode: Callable[[str], object]


_BITS: typing.Final[Mapping[int, int]] = {I32: 32, I64: 64}


def _whole(kind: int) -> _Codec:
    bits = _BITS[kind]
    end = 1 << (bits - 1)

    def decode(text: str) -> int:
        if not _WHOLE.fullmatch(text):
            raise ValueError("a whole number is expected")
        number = int(text)
        if not -end <= number < end:
            raise ValueError(f"{bits} bits are too few for it")
        return number

    return _Codec(kind, str, decode)


# As Java's Long.parseLong, but for digits of other scripts.
_WHOLE: typing.Final = re.compile(r"[+-]?[0-9]{1,20}")
_CODECS: typing.Final[Mapping[object, _Codec]] = {
    str: _Codec(TEXT, str, str),
    int: _whole(I64),
    Int32: _whole(I32),
    # As Java's Boolean.parseBoolean: everything but "true" is false.
    bool: _Codec(BOOL, lambda value: "true" if value else "false", lambda text: text.lower() == "true"),
    bytes: _Codec(
        BYTES,
        lambda value: value.decode("utf-8", "replace"),
        lambda text: text.encode("utf-8", "replace"),
    ),
}
_KNOWN: typing.Final[dict[tuple[type[Header], int], _Known]] = {}


def _iter_fields(kind: type[Header], names: WireNames) -> Iterator[WireField]:
    types = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        found = types[field.name]
        # One that may be None is a union of that and its type; Int32 itself has arguments too.
        if found not in _CODECS:
            (found,) = (option for option in typing.get_args(found) if option is not type(None))
        is_required = field.default is dataclasses.MISSING
        usual = None if is_required else field.default
        yield WireField(field.name, names[field.name], is_required, usual, *_CODECS[found])
