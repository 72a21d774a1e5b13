"""GET_CONSUMER_RUNNING_INFO, CONSUME_MESSAGE_DIRECTLY and INVOKE_BROKER_TO_GET_CONSUMER_STATUS.

A request about one client is passed on to it with all its fields, and its answer is returned unchanged.

Differences: several clients are asked at once; RocketMQ asks one after the other, each with the same timeout,
and blocks a thread for it. If a client leaves meanwhile, the broker does not wait for it: the answer is 1,
and not 207 after the rest of the time. Only a client that is asked can be too old.

Source: ``AdminBrokerProcessor.java getConsumerRunningInfo, consumeMessageDirectly, callConsumer,
getConsumerStatus``, ``Broker2Client.java callClient, getConsumeStatus``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named, of_consumer_group, of_group, of_topic
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.clients import Client
from seglog.errors import AskTimeoutError, InvalidArgumentError, NotFoundError, SeglogError
from seglog.logs import logger
from seglog.remoting.bodies import ConsumerStatusBody
from seglog.remoting.client_headers import ConsumeDirectlyHeader, ConsumerStatusHeader, RunningInfoHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_body, refuse
from seglog.remoting.headers import encode_header
from seglog.remoting.later import CancelledError, Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.versions import V3_0_7_SNAPSHOT, V3_1_8_SNAPSHOT, old_version_name
from seglog.storage.format.record import decode_message_id

CALL_MS: Final = 10_000
"""Timeout in ms for a single client."""
STATUS_MS: Final = 5_000
"""Timeout in ms for each client that is asked for its offsets."""

_log = logger(__name__)


def get_running_info(state: BrokerState, call: Call[RunningInfoHeader]) -> Response | Deferred[Response]:
    """Asks a client of a group how it runs."""
    header, request = call.header, call.request
    return _call(state, header.consumer_group, header.client_id, replace(request, is_oneway=False))


def consume_directly(state: BrokerState, call: Call[ConsumeDirectlyHeader]) -> Response | Deferred[Response]:
    """Has a client of a group consume a message, regardless of the group's offsets."""
    header = call.header
    try:
        record = state.store.record_at(_place(header))
    except (InvalidArgumentError, NotFoundError) as error:
        return refuse(ResponseCode.SYSTEM_ERROR, str(error))
    topic = state.topics.get(header.topic) if header.topic else None
    group = state.groups.get(header.consumer_group)
    said = replace(
        header,
        broker_name=state.config.broker_name,
        topic_sys_flag=header.topic_sys_flag if topic is None else topic.sys_flag,
        group_sys_flag=header.group_sys_flag if group is None else group.sys_flag,
    )
    fields = call.request.ext
    ext = None if fields is None else {**fields, **encode_header(said)}
    request = Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, said, record, ext, sender=call.request.sender)
    return _call(state, header.consumer_group, header.client_id, request)


def get_consumer_status(
    state: BrokerState, call: Call[ConsumerStatusHeader]
) -> Response | Deferred[Response]:
    """Asks the clients of a group how far they are in a topic; those that do not answer are left out."""
    header = call.header
    online = state.clients.consumers(header.group)
    if online is None:
        return refuse(
            ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{header.group}]"
        )
    clients = list(online.clients.values())
    if header.client_id is not None and header.client_id.strip():
        clients = [client for client in clients if client.client_id == header.client_id][:1]
    for client in clients:
        if client.peer.version < V3_0_7_SNAPSHOT:
            return refuse(
                ResponseCode.SYSTEM_ERROR,
                f"the client does not support this feature. version={old_version_name(client.peer.version)}",
            )
    request = Request(
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ConsumerStatusHeader(header.topic, header.group)
    )
    asks = [(client.client_id, ask_client(client, request, STATUS_MS)) for client in clients]

    def answer() -> Response:
        found = {name: status for name, ask in asks if (status := _status(name, ask)) is not None}
        return Response(ResponseCode.SUCCESS, body=ConsumerStatusBody(clients=found))

    return state.relays.relay([ask for _, ask in asks], STATUS_MS, answer)


def _call(
    state: BrokerState, group: str, client_id: str | None, request: Request
) -> Response | Deferred[Response]:
    """Asks one client of a group, and returns the deferred answer."""
    online = state.clients.consumers(group)
    clients = () if online is None else online.clients.values()
    client = next((one for one in clients if one.client_id == client_id), None)
    if client is None:
        shown = "null" if client_id is None else client_id
        return refuse(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{shown}> not online")
    if client.peer.version < V3_1_8_SNAPSHOT:
        return refuse(
            ResponseCode.SYSTEM_ERROR,
            f"The Consumer <{client_id}> Version <{old_version_name(client.peer.version)}> too low to finish,"
            " please upgrade it to V3_1_8_SNAPSHOT",
        )
    ask = ask_client(client, request, CALL_MS)

    def answer() -> Response:
        try:
            return ask.result()
        except AskTimeoutError as error:
            return refuse(
                ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer <{group}> <{client_id}> Timeout: {error}"
            )
        except (SeglogError, CancelledError) as error:
            return refuse(
                ResponseCode.SYSTEM_ERROR, f"invoke consumer <{group}> <{client_id}> Exception: {error}"
            )

    return state.relays.relay([ask], CALL_MS, answer)


def ask_client(client: Client, request: Request, timeout_ms: int) -> Deferred[Response]:
    """Asks a client, and returns the deferred answer, which fails if the client cannot be reached."""
    if client.peer.channel is not None:
        return client.peer.channel.ask(request, timeout_ms)
    failed: Deferred[Response] = Deferred()
    failed.fail(NotFoundError(f"client {client.client_id} has no connection that it could be asked over"))
    return failed


def _status(client_id: str, ask: Deferred[Response]) -> Mapping[MessageQueue, int] | None:
    """Returns the offsets in a client's answer, None if it has none."""
    try:
        answer = ask.result()
        if answer.code is not ResponseCode.SUCCESS or answer.body is None:
            return None
        return expect_body(answer, ConsumerStatusBody).queues
    except (SeglogError, CancelledError) as error:
        _log.warning("client %s did not say how far it is: %s", client_id, error)
        return None


def _place(header: ConsumeDirectlyHeader) -> int:
    """Returns the physical offset of a message; the host in its id may be another name of this one."""
    if header.message_id is None:
        raise InvalidArgumentError("there is no msgId")
    return decode_message_id(header.message_id)[1]


def _read(header: ConsumeDirectlyHeader, _request: Request, state: BrokerState) -> tuple[str | None, ...]:
    """Returns the topic that the header names, and that of the record, which may be another.

    A record that does not exist yet may exist when the handler looks, and may be of any topic.
    """
    try:
        read: str | None = state.store.message_at(_place(header)).topic
    except (InvalidArgumentError, NotFoundError):
        read = None
    return (header.topic, read) if header.topic else (read,)


HANDLERS: Final = (
    Handler(
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RunningInfoHeader,
        get_running_info,
        (of_consumer_group(Action.GET),),
    ),
    Handler(
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        ConsumeDirectlyHeader,
        consume_directly,
        (of_consumer_group(Action.SUB), named(Resource.TOPIC, _read, Action.SUB)),
    ),
    Handler(
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        ConsumerStatusHeader,
        get_consumer_status,
        (of_topic(Action.GET), of_group(Action.GET)),
    ),
)
