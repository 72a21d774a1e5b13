"""Sender: the common part of both faces of a producer. It checks messages, makes requests, and retries.

A send is a coroutine that is given its request function. A ``Producer`` runs it in the calling thread, which
only its requests and pauses block; an ``AsyncProducer`` awaits it.

Source: ``DefaultMQProducerImpl.java sendDefaultImpl, sendKernelImpl``, ``Message.java``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from seglog.arguments import (
    MAX_I32,
    MIN_I32,
    as_body,
    as_flag,
    as_int,
    as_mapping,
    as_number,
    as_text,
    refusal,
)
from seglog.client.client import Client
from seglog.client.links import Ask, within
from seglog.clock import Clock
from seglog.errors import (
    BrokerNotFoundError,
    ClientClosedError,
    InvalidArgumentError,
    RemoteProtocolError,
    SeglogError,
)
from seglog.logs import logger
from seglog.producer.batch_rules import (
    as_delay_level,
    check_batch_topic,
    check_not_delayed,
    check_waits_alike,
    waits,
)
from seglog.producer.pauses import Pauses
from seglog.producer.queue_choice import RoundRobin, by_id, by_key
from seglog.producer.retries import Tries
from seglog.producer.send_result import HELP_OF, STATUS_OF, BatchSendResult, SendResult, SendStatus
from seglog.producer.send_traces import SendTraces
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Body, Request, Response, expect_header
from seglog.remoting.headers import SendMessageHeader, SendMessageResponseHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import BETWEEN_TAGS
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.names import RETRY_PREFIX, check_client_topic
from seglog.storage.format.record import SYSTEM_NAMES, all_properties
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import AUTO_CREATE_TOPIC
from seglog.storage.writes import Durability, NewMessage

_log = logger(__name__)

# The look-up of an enum member is slow, and would be done for every message.
_SUCCESS: Final = ResponseCode.SUCCESS
_SEND_OK: Final = SendStatus.SEND_OK
_SEND: Final = RequestCode.SEND_MESSAGE_V2
_SEND_BATCH: Final = RequestCode.SEND_BATCH_MESSAGE

_OPEN: Final = frozenset((props.UNIQ_KEY, "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"))
"""RocketMQ's own properties that an application may set, since no argument exists for them."""
_REFUSED: Final = SYSTEM_NAMES - _OPEN
_REFUSED_TO_RETRY: Final = _REFUSED - {props.RETRY_TOPIC}
"""Permitted in a retry topic, where it names the topic that the message came from."""
_REFUSED_IN_BATCH: Final = _REFUSED - {props.DELAY, props.WAIT}
"""The rules of a batch are about those."""
_INSTEAD: Final = {
    props.TAGS: "tags=",
    props.KEYS: "keys=",
    props.DELAY: "delay_level=",
    props.WAIT: "wait_for_disk=",
    props.TTL: "ttl_ms=",
}


class Sender:
    """Sends messages of one group. Any thread or task may call it that may call its ``ask``.

    Args:
        client: Whose routes, and whose clock without ``clock``.
        group: Which application sends.
        ask: Sends requests.
        pauses: Waits between attempts.
        clock: As for a ``Producer``, as the others.
        ids: Makes the message ids.
        new_topic_queue_nums: Of a topic that the first send creates.
        first_turn: The queue of the first turn.
        to_body: Makes a body from a payload: ``as_body``, or a function that calls ``encode``.
        traces: Traces sends; None if they are not traced.

    Attributes:
        is_closed: Whether it refuses to send.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        ask: Ask,
        pauses: Pauses,
        clock: Clock | None,
        ids: UniqueIds | None,
        new_topic_queue_nums: int,
        first_turn: int | None,
        to_body: Callable[[str, Any], bytes | memoryview],
        traces: SendTraces | None = None,
    ) -> None:
        self._group = group
        self._traces = traces
        self._to_body = to_body
        self._ask = ask
        self._pauses = pauses
        self._clock = client.clock if clock is None else clock
        self._ids = UniqueIds(self._clock) if ids is None else ids
        self._new_topic_queue_nums = new_topic_queue_nums
        self._routes = client.routes
        self._troubles = client.troubles
        self._now_ms = client.clock.monotonic_ms
        self._turns = RoundRobin(secrets.randbelow(1 << 16) if first_turn is None else first_turn)
        self.is_closed = False

    def close(self) -> bool:
        """Refuses further sends; returns whether it was open before."""
        was_closed, self.is_closed = self.is_closed, True
        self._pauses.end()
        return not was_closed

    async def send(
        self,
        topic: str,
        payload: object,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        queue_id: int | None,
        sharding_key: str | None,
        wait_for_disk: bool,
        delay_level: int,
        ttl_ms: int,
        timeout_ms: float | None,
    ) -> SendResult:
        """Sends one message; see ``Producer.send``."""
        body = self._to_body("body", payload)
        flag = as_int("flag", flag, MIN_I32, MAX_I32)
        delay_level = as_delay_level(delay_level)
        ttl_ms = as_int("ttl_ms", ttl_ms, 0)
        as_flag("wait_for_disk", wait_for_disk)
        check_timeout(timeout_ms)
        if properties is not None:
            is_retry = as_text("topic", topic).startswith(RETRY_PREFIX)
            _check_names(properties, _REFUSED_TO_RETRY if is_retry else _REFUSED)
        found = self._properties(tags, keys, properties, sharding_key)
        if not wait_for_disk:
            found[props.WAIT] = "false"
        if delay_level > 0:
            found[props.DELAY] = str(delay_level)
        if ttl_ms > 0:
            found[props.TTL] = str(ttl_ms)
        raw = props.encode_properties(found, is_new=True)
        traces, began_ms = self._traces, self._now_ms()
        queue, status, response, answer = await self._send(
            topic, queue_id, sharding_key, flag, raw, body, timeout_ms
        )
        if traces is not None:
            traces.sent(queue, status, response, found, found[props.UNIQ_KEY], len(body), began_ms)
        if answer.queue_id != queue.queue_id:
            queue = MessageQueue(topic, queue.broker_name, answer.queue_id)
        return SendResult(
            status, found[props.UNIQ_KEY], answer.msg_id, queue, answer.queue_offset, _durability(answer)
        )

    async def send_batch(
        self,
        topic: str,
        messages: Sequence[object],
        queue_id: int | None,
        sharding_key: str | None,
        wait_for_disk: bool,
        timeout_ms: float | None,
    ) -> BatchSendResult:
        """Sends messages to one queue; see ``Producer.send_batch``."""
        if isinstance(messages, str | bytes | bytearray | memoryview) or not isinstance(messages, Iterable):
            raise refusal("messages", messages, "a sequence of messages", "put several in a list")
        messages = list(messages)
        if not messages:
            raise refusal("messages", messages, "at least one message")
        as_flag("wait_for_disk", wait_for_disk)
        check_timeout(timeout_ms)
        check_batch_topic(check_client_topic(topic))
        batch: list[BatchMessage] = []
        first: dict[str, str] | None = None
        ids: list[str] = []
        for item in messages:
            try:
                message = item if isinstance(item, NewMessage) else NewMessage(self._to_body("body", item))
                if message.properties is not None:
                    _check_names(message.properties, _REFUSED_IN_BATCH)
                found = self._properties(message.tags, message.keys, message.properties, sharding_key)
                body = as_body("body", message.body)
                flag = as_int("flag", message.flag, MIN_I32, MAX_I32)
                check_not_delayed(found)
                first = found if first is None else first
                check_waits_alike(found, first)
                batch.append(BatchMessage(body, props.encode_properties(found, is_new=True), flag))
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"messages[{len(batch)}]: {error}", help=error.help) from error
            ids.append(found[props.UNIQ_KEY])
        wait_for_disk = wait_for_disk and (first is None or waits(first))
        raw = b"" if wait_for_disk else props.encode_properties({props.WAIT: "false"})
        traces, began_ms, whole = self._traces, self._now_ms(), MessageBatch(batch)
        queue, status, response, answer = await self._send(
            topic, queue_id, sharding_key, 0, raw, whole, timeout_ms
        )
        if traces is not None:
            size_bytes = sum(len(message.body) for message in batch)
            traces.sent(queue, status, response, {}, ",".join(ids), size_bytes, began_ms)
        return BatchSendResult(
            status,
            tuple(ids),
            tuple(answer.msg_id.split(",")),
            queue,
            answer.queue_offset,
            _durability(answer),
        )

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues that messages of a topic can be sent to; see ``Producer.queues``."""
        return await self._routes.ask_to_publish(check_client_topic(topic), ask=self._ask)

    async def _send(
        self,
        topic: str,
        queue_id: int | None,
        sharding_key: str | None,
        flag: int,
        raw: bytes,
        body: Body,
        timeout_ms: float | None,
    ) -> tuple[MessageQueue, SendStatus, Response, SendMessageResponseHeader]:
        """Sends until a broker has stored it, or no further attempt is made; see ``Tries``."""
        routes = self._routes
        is_batch = isinstance(body, MessageBatch)
        is_free = queue_id is None and sharding_key is None
        ask, began_ms, end_ms = self._ask, self._now_ms(), None
        if timeout_ms is not None:
            end_ms = began_ms + timeout_ms
            ask = within(ask, self._now_ms, end_ms)
        tries: Tries | None = None
        queue: MessageQueue | None = None
        queues: tuple[MessageQueue, ...]
        while True:
            broker_name, queues = None, ()
            try:
                if self.is_closed:
                    raise ClientClosedError("the producer was closed", help="make a new one")
                queues = routes.fresh_to_publish(as_text("topic", topic))
                if not queues:
                    check_client_topic(topic)
                    queues = await routes.ask_to_publish(topic, self._new_topic_queue_nums, ask)
                if is_free:
                    queue = self._turns.next(queues if tries is None else tries.elsewhere(queues))
                elif queue is None or queue not in queues:
                    queue = _chosen(queues, queue_id, sharding_key)
                broker_name = queue.broker_name
                header = SendMessageHeader(
                    self._group,
                    topic,
                    AUTO_CREATE_TOPIC,
                    self._new_topic_queue_nums,
                    queue.queue_id,
                    0,
                    self._clock.now_ms(),
                    flag,
                    raw,
                    is_batch=is_batch,
                    broker_name=broker_name,
                )
                request = Request(_SEND_BATCH if is_batch else _SEND, header, body)
                address = routes.address_of(broker_name)
                if address is None:
                    raise BrokerNotFoundError(f"no route says where broker {broker_name} is")
                asked = ask(request, None, address)
                answer = asked if isinstance(asked, Response) else await asked
                code = answer.code
                status = _SEND_OK if code is _SUCCESS else STATUS_OF.get(code)
                if status is None:
                    routes.doubt(topic, code)
                    raise RemoteProtocolError(code, answer.remark or code.name, help=HELP_OF.get(code))
                return queue, status, answer, expect_header(answer, SendMessageResponseHeader)
            except SeglogError as error:
                tries = tries or Tries(
                    topic, raw, self._now_ms, began_ms, end_ms, self._pauses, self._troubles
                )
                await tries.wait_after(error, broker_name, queues if is_free else ())

    def _properties(
        self,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        sharding_key: str | None,
    ) -> dict[str, str]:
        if sharding_key is not None:
            as_text("sharding_key", sharding_key)
        found = all_properties(tags, keys, properties)
        if tags is not None and BETWEEN_TAGS in tags:
            self._warn_of_tags(tags)
        if sharding_key is not None:
            found[props.SHARDING_KEY] = sharding_key
        if not found.get(props.UNIQ_KEY):
            found[props.UNIQ_KEY] = self._ids.next()
        return found

    def _warn_of_tags(self, tags: str) -> None:
        _log.log(
            self._troubles.seldom(f"tag {tags}"),
            "a message is sent with the tag %r, by which no consumer can subscribe to it: a message has one"
            " tag, and || in a subscription is between those of which any will do",
            tags,
        )


def _check_names(properties: Mapping[str, str], refused: frozenset[str]) -> None:
    as_mapping("properties", properties)
    if refused.isdisjoint(properties):
        return
    names = sorted(refused.intersection(properties))
    arguments = [_INSTEAD[name] for name in names if name in _INSTEAD]
    instead = f"give {', '.join(arguments)} instead; " if arguments else ""
    raise InvalidArgumentError(
        f"properties: RocketMQ uses {', '.join(names)} itself, and no application sets it so",
        help=f"{instead}message.user_properties is what a message is passed on with",
    )


def _chosen(queues: tuple[MessageQueue, ...], queue_id: int | None, sharding_key: str | None) -> MessageQueue:
    if queue_id is not None:
        return by_id(queues, as_int("queue_id", queue_id))
    assert sharding_key is not None  # it was checked with the properties
    return by_key(queues, sharding_key)


def check_timeout(timeout_ms: float | None) -> None:
    """Refuses an invalid timeout.

    Raises:
        InvalidArgumentError: It is not a number in 1..2147483647.
    """
    if timeout_ms is not None and as_number("timeout_ms", timeout_ms, 1) > MAX_I32:
        raise refusal("timeout_ms", timeout_ms, f"a number in 1..{MAX_I32}")


def _durability(answer: SendMessageResponseHeader) -> Durability | None:
    return None if answer.durability is None else _DURABILITIES.get(answer.durability)


_DURABILITIES: Final = {durability.value: durability for durability in Durability}
