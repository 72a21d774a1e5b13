"""SEND_REPLY_MESSAGE and SEND_REPLY_MESSAGE_V2: a consumer's reply is sent to the producer that asked.

The reply names the producer (REPLY_TO_CLIENT) and its request (CORRELATION_ID). The reply is also stored, in
a topic of the cluster, and the answer says whether it reached the producer.

Difference: the reply is stored first, and without CLUSTER as in RocketMQ; if it cannot be stored the producer
gets it all the same. The answer has no place then if the producer could not be reached either, and else the
place that RocketMQ states: id "0", offset 0.

Source: ``ReplyMessageProcessor.java``.
"""

from __future__ import annotations

from typing import Final

from seglog.broker.access import Action
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.relays import CALL_MS, ask_client
from seglog.broker.handlers.send import bytes_of, completed
from seglog.broker.handlers.touching import of_topic
from seglog.broker.sends.send import choose_queue, find_topic
from seglog.broker.state.state import BrokerState
from seglog.errors import SeglogError
from seglog.logs import logger
from seglog.remoting.client_headers import ReplyMessageHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import NO_HEADER, Request, Response
from seglog.remoting.headers import SendMessageHeader, SendMessageResponseHeader
from seglog.remoting.later import CancelledError, Deferred
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import stored_tags_code

REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"

_log = logger(__name__)


def send_reply(state: BrokerState, call: Call[SendMessageHeader]) -> Response | Deferred[Response]:
    """Stores a reply, and hands it to the producer that waits for it."""
    header = call.header
    topic = find_topic(state, header, call.peer)
    if isinstance(topic, Response):
        return topic
    queue_id = choose_queue(state, topic, header.queue_id)
    named = {**props.decode_properties(header.properties), **state.send_ext}
    stored = _store(state, call, queue_id, props.encode_properties(named))
    producer_id = named.get(REPLY_TO_CLIENT)
    if producer_id is None:
        return _answer(state, stored, queue_id, f"reply message properties[{REPLY_TO_CLIENT}] is null")
    producer = state.clients.producer(producer_id)
    if producer is None:
        return _answer(
            state, stored, queue_id, f"push reply message fail, channel of <{producer_id}> not found."
        )
    ask = ask_client(producer, _push(state, call, named), CALL_MS)

    def answer() -> Response:
        try:
            code = ask.result().code
        except (SeglogError, CancelledError) as error:
            _log.warning("a reply to producer %s did not reach it: %s", producer_id, error)
            code = ResponseCode.SYSTEM_ERROR
        has_come = code is ResponseCode.SUCCESS
        problem = None if has_come else f"push reply message to{producer_id}fail."
        return _answer(state, stored, queue_id, problem)

    return state.relays.relay([ask], CALL_MS, answer)


def _store(
    state: BrokerState, call: Call[SendMessageHeader], queue_id: int, properties: bytes
) -> SendMessageResponseHeader | None:
    """Stores a reply, and returns its place; None for one that cannot be stored."""
    header = call.header
    try:
        state.disk.check()
        put = call.appends.append(
            header.topic,
            queue_id,
            bytes_of(call.request.body),
            properties,
            stored_tags_code(props.find_property(properties, b"TAGS")),
            sys_flag=header.sys_flag,
            flag=header.flag,
            born_timestamp_ms=header.born_timestamp_ms,
            born_host=call.peer.host,
            reconsume_times=header.reconsume_times,
        )
    except SeglogError as error:
        _log.warning("a reply is not stored: %s", error)
        return None
    return SendMessageResponseHeader(put.message_id, queue_id, put.queue_offset)


def _push(state: BrokerState, call: Call[SendMessageHeader], named: dict[str, str]) -> Request:
    """Returns the request to send to the producer."""
    header, now_ms = call.header, state.now_ms()
    reply = ReplyMessageHeader(
        header.producer_group,
        header.topic,
        header.default_topic,
        header.default_topic_queue_nums,
        header.queue_id,
        header.sys_flag,
        header.born_timestamp_ms,
        header.flag,
        str(call.peer.host),
        state.config.address,
        now_ms,
        props.encode_properties(named | {PUSH_REPLY_TIME: str(now_ms)}),
        header.reconsume_times,
        header.is_unit_mode,
    )
    return Request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, reply, bytes_of(call.request.body))


def _answer(
    state: BrokerState, stored: SendMessageResponseHeader | None, queue_id: int, problem: str | None
) -> Response:
    if problem is None:
        place = SendMessageResponseHeader("0", queue_id, 0) if stored is None else stored
        return Response(ResponseCode.SUCCESS, place, ext=state.send_ext)
    refused = NO_HEADER if stored is None else stored
    return Response(ResponseCode.SYSTEM_ERROR, refused, remark=problem, ext=state.send_ext)


HANDLERS: Final = (
    Handler(
        RequestCode.SEND_REPLY_MESSAGE, SendMessageHeader, completed(send_reply), (of_topic(Action.PUB),)
    ),
    Handler(
        RequestCode.SEND_REPLY_MESSAGE_V2, SendMessageHeader, completed(send_reply), (of_topic(Action.PUB),)
    ),
)
