"""SEND_MESSAGE, SEND_MESSAGE_V2 and SEND_BATCH_MESSAGE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, wraps
from typing import Final, TypeAlias

from seglog.broker.access import Action, Resource
from seglog.broker.delay.delay_levels import hold
from seglog.broker.handlers.handler import Answer, Call, Handler
from seglog.broker.handlers.touching import named, of_topic
from seglog.broker.sends.dead_letters import dead_letter_topic, note_dead_letter, without_delay
from seglog.broker.sends.send import choose_queue, complete_properties, find_batch_topic, find_topic
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.topics import MULTI_TAG
from seglog.errors import ProtocolError, SeglogError
from seglog.remoting.batch import decode_batch, encoded_size
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Body, Request, Response, refuse
from seglog.remoting.headers import SendMessageHeader, SendMessageResponseHeader
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.queue import lmq_names, topic_allows_lmq
from seglog.storage.format.record import MULTI_TAGS, TRANSACTION_MASK, stored_tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.writes import Durability, RawMessage

MOST_OF_BATCH: Final = 250_000
"""Most messages of one batch: their ids, of up to 57 characters, must fit into the frame of the answer."""


def send_message(state: BrokerState, call: Call[SendMessageHeader]) -> Response:
    """Stores one message."""
    header = call.header
    topic = find_topic(state, header, call.peer)
    if isinstance(topic, Response):
        return topic
    raw, queue_id = header.properties, choose_queue(state, topic, header.queue_id)
    end = dead_letter_topic(state, header) if topic.name.startswith(RETRY_PREFIX) else None
    if isinstance(end, Response):
        return end
    if end is not None:
        topic, raw, queue_id = end, without_delay(raw), 0
    properties = complete_properties(state, raw, header.sys_flag, header.reconsume_times)
    if isinstance(properties, Response):
        return properties
    raw, level = properties.raw, properties.delay_level
    place, place_id = topic.name, queue_id
    append = call.appends.append
    if level > 0:
        place, place_id, raw = hold(raw, topic.name, queue_id, level)
        delay_ms = state.delivery.levels.own_delay_ms(level)
        if delay_ms is not None:  # native appends do not take it, and leave such a call to the slow path
            append = partial(append, delay_ms=delay_ms)
    state.disk.check()
    put = append(
        place,
        place_id,
        bytes_of(call.request.body),
        raw,
        properties.tags_code,
        sys_flag=header.sys_flag | MULTI_TAGS if topic.filter_type == MULTI_TAG else header.sys_flag,
        flag=header.flag,
        born_timestamp_ms=header.born_timestamp_ms,
        born_host=call.peer.host,
        reconsume_times=header.reconsume_times,
        durability=None if properties.waits_for_disk else Durability.ASYNC,
    )
    if level > 0:
        state.delivery.note_sent(level)
    if end is not None:
        note_dead_letter(header)
    return Response(
        ResponseCode.SUCCESS,
        SendMessageResponseHeader(
            put.message_id,
            queue_id,
            put.queue_offset,
            properties.unique_id,
            durability=_SYNC if put.durability is Durability.SYNC else _ASYNC,
        ),
        ext=state.send_ext,
    )


def send_batch(state: BrokerState, call: Call[SendMessageHeader]) -> Response:
    """Stores the messages of a batch, all or none, one after another in one queue."""
    header = call.header
    topic = find_batch_topic(state, header, call.peer)
    if isinstance(topic, Response):
        return topic
    level = state.delivery.levels.level_of(props.decode_properties(header.properties).get(props.DELAY))
    if level > 0 or header.sys_flag & TRANSACTION_MASK:
        return refuse(ResponseCode.MESSAGE_ILLEGAL, "a batch is neither delayed nor in a transaction")
    body = call.request.body
    batch = _batch_of(body)
    if len(batch.messages) > MOST_OF_BATCH:
        remark = f"the batch has {len(batch.messages)} messages, at most {MOST_OF_BATCH}"
        return refuse(ResponseCode.MESSAGE_ILLEGAL, remark)
    size, limit = encoded_size(batch), state.config.max_message_size_bytes
    if size > limit:
        return refuse(ResponseCode.MESSAGE_ILLEGAL, f"the batch has {size} bytes, at most {limit}")
    state.disk.check()
    put = call.appends.append_batch(
        header.topic,
        choose_queue(state, topic, header.queue_id),
        [_raw_message(message) for message in batch.messages],
        sys_flag=header.sys_flag | MULTI_TAGS if topic.filter_type == MULTI_TAG else header.sys_flag,
        born_timestamp_ms=header.born_timestamp_ms,
        born_host=call.peer.host,
        reconsume_times=header.reconsume_times,
        durability=_batch_durability(header.properties),
    )
    return Response(
        ResponseCode.SUCCESS,
        SendMessageResponseHeader(
            ",".join(put.message_ids),
            put.queue_id,
            put.queue_offset,
            _unique_id_of_batch(header.properties),
            durability=_SYNC if put.durability is Durability.SYNC else _ASYNC,
        ),
        ext=state.send_ext,
    )


def completed(send: Send) -> Send:
    """Returns the function with the fields of a send's answer added to its refusals too, as RocketMQ does."""

    @wraps(send)
    def answer(state: BrokerState, call: Call[SendMessageHeader]) -> Answer:
        try:
            made = send(state, call)
        except SeglogError as error:
            made = state.refusals.of(call.request.code, error)
        if isinstance(made, Response) and made.ext is None:
            return replace(made, ext=state.send_ext)
        return made

    return answer


def _raw_message(message: BatchMessage) -> RawMessage:
    raw = message.properties
    return RawMessage(message.body, raw, stored_tags_code(props.find_property(raw, b"TAGS")), message.flag)


def _batch_of(body: Body) -> MessageBatch:
    return body if isinstance(body, MessageBatch) else decode_batch(bytes_of(body))


def bytes_of(body: Body) -> bytes | memoryview:
    """Returns the body of a message.

    Raises:
        ProtocolError: It is not bytes.
    """
    if body is None:
        return b""
    if isinstance(body, bytes | memoryview):
        return body
    raise ProtocolError(f"a message came with {type(body).__name__}, not with bytes")


def _unique_id_of_batch(properties: bytes) -> str | None:
    """Returns the UNIQ_KEY that newer clients give a batch itself; its messages have their own."""
    found = props.find_property(properties, b"UNIQ_KEY")
    return None if found is None else found.decode(errors="replace")


def _batch_durability(properties: bytes) -> Durability | None:
    return Durability.ASYNC if props.find_property(properties, b"WAIT") == b"false" else None


def _further_queues(header: SendMessageHeader, _request: Request, _state: BrokerState) -> list[str]:
    """Returns the queues that a message asks to appear in besides that of its topic."""
    return lmq_names(header.properties) if topic_allows_lmq(header.topic) else []


def _further_queues_of_batch(
    header: SendMessageHeader, request: Request, _state: BrokerState
) -> Iterator[str]:
    if topic_allows_lmq(header.topic):
        for message in _batch_of(request.body).messages:
            yield from lmq_names(message.properties)


Send: TypeAlias = Callable[[BrokerState, Call[SendMessageHeader]], Answer]
"""A function that answers a send."""
_SYNC: Final = Durability.SYNC.value
_ASYNC: Final = Durability.ASYNC.value
_OF_ONE: Final = (of_topic(Action.PUB), named(Resource.TOPIC, _further_queues, Action.PUB))
_OF_BATCH: Final = (of_topic(Action.PUB), named(Resource.TOPIC, _further_queues_of_batch, Action.PUB))
HANDLERS: Final = (
    Handler(RequestCode.SEND_MESSAGE, SendMessageHeader, completed(send_message), _OF_ONE),
    Handler(RequestCode.SEND_MESSAGE_V2, SendMessageHeader, completed(send_message), _OF_ONE),
    Handler(RequestCode.SEND_BATCH_MESSAGE, SendMessageHeader, completed(send_batch), _OF_BATCH),
)
