"""Producer: sends messages and says where each went.

    producer = Producer(broker, "orders-service")      # or Producer("127.0.0.1:9876", ...)
    sent = producer.send("orders", b"42 apples", tags="fruit", sharding_key="customer-7")

A send returns when the broker has stored the message as durably as it is set to; everything else is an
error. Messages with one sharding key go to one queue, in the order of their sends.

Source: ``DefaultMQProducerImpl.java sendKernelImpl``, ``Message.java``.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from seglog.arguments import (
    MAX_I32,
    MIN_I32,
    as_body,
    as_doing,
    as_flag,
    as_int,
    as_kind,
    as_text,
    as_timeout_ms,
    refusal,
)
from seglog.client.connect import Target, client_for
from seglog.client.routes import NEW_TOPIC_QUEUE_NUMS
from seglog.clock import CLOCK_CALLS, Clock
from seglog.errors import (
    BrokerNotFoundError,
    InvalidArgumentError,
    LocalProtocolError,
    RemoteProtocolError,
    SeglogError,
)
from seglog.producer.queue_choice import RoundRobin, by_id, by_key
from seglog.producer.send_result import STATUS_OF, BatchSendResult, SendResult, SendStatus
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Body, Request, expect_header
from seglog.remoting.headers import SendMessageHeader, SendMessageResponseHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.names import check_group
from seglog.storage.format.record import all_properties
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import AUTO_CREATE_TOPIC
from seglog.storage.writes import Durability, NewMessage

SHARDING_KEY: Final = "__SHARDINGKEY"
DEFAULT_GROUP: Final = "DEFAULT_PRODUCER"
RETRIES: Final = 2
"""``retryTimesWhenSendFailed``."""
RETRIED: Final = frozenset(
    (
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    )
)
"""``retryResponseCodes``, and what a broker says that is about to stop."""

_log = logging.getLogger(__name__)


class Producer:
    """Sends messages. Any thread may call it; close it, or use it in a ``with`` statement.

    A send that is not answered, or refused for a reason that may pass, is tried again, twice at most, and at
    another broker where there are several; so a message may be stored twice, with one id.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Which application sends.
        clock: Stamps the messages; that of the client if it is not given.
        ids: Makes the message ids; of this process by default.
        new_topic_queue_nums: Queues that a topic gets if the first send creates it, at most.
        first_turn: Which queue has the first turn; any by default.
    """

    def __init__(
        self,
        target: Target,
        group: str = DEFAULT_GROUP,
        *,
        clock: Clock | None = None,
        ids: UniqueIds | None = None,
        new_topic_queue_nums: int = NEW_TOPIC_QUEUE_NUMS,
        first_turn: int | None = None,
    ) -> None:
        as_int("new_topic_queue_nums", new_topic_queue_nums, 1, MAX_I32)
        if first_turn is not None:
            as_int("first_turn", first_turn, 0)
        self._group = check_group(group)
        if clock is not None:
            as_doing("clock", clock, CLOCK_CALLS, "a clock")
        self._client, self._is_own = client_for(target)
        self._clock = self._client.clock if clock is None else clock
        self._ids = UniqueIds(self._clock) if ids is None else as_kind("ids", UniqueIds, ids)
        self._new_topic_queue_nums = new_topic_queue_nums
        self._routes = self._client.routes
        self._turns = RoundRobin(secrets.randbelow(1 << 16) if first_turn is None else first_turn)
        self._is_closed = False
        self._client.add_producer(self._group)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Refuses further sends; a client that it has made ends with it. A second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_own:
            self._client.close()
        else:
            self._client.remove_producer(self._group)

    def send(
        self,
        topic: str,
        body: bytes | memoryview,
        *,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        queue_id: int | None = None,
        sharding_key: str | None = None,
        wait_for_disk: bool = True,
        delay_level: int = 0,
        ttl_ms: int = 0,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Sends one message.

        Args:
            topic: Created by the first send if the broker allows it.
            body: The payload.
            tags: The tag that consumers filter by.
            keys: Index keys: one text with blanks between them, or several texts without blanks.
            properties: More properties; a UNIQ_KEY among them becomes the message's id.
            flag: The application's own 32 bits.
            queue_id: Which queue; without it, the one of ``sharding_key`` or the next one in turn.
            sharding_key: Messages that share it keep their order. It is stored with the message.
            wait_for_disk: False lets a broker that syncs every message answer before it has.
            delay_level: From 1 on, keeps the message from consumers for 1s, 5s, 10s and so on up to 2h.
            ttl_ms: After this time consumers pass the message; 0 for never.
            timeout_ms: As for ``BrokerLink.invoke``.

        Raises:
            LocalProtocolError: The producer was closed.
            RemoteProtocolError: The broker refuses; the message is not stored.
            ProtocolError: There is no answer; whether the message is stored is not known.
            MessageIllegalError: Properties that cannot be stored.
            InvalidArgumentError: The topic has no such queue.
        """
        body = as_body("body", body)
        flag = as_int("flag", flag, MIN_I32, MAX_I32)
        delay_level, ttl_ms = as_int("delay_level", delay_level, 0), as_int("ttl_ms", ttl_ms, 0)
        as_flag("wait_for_disk", wait_for_disk)
        _check_timeout(timeout_ms)
        found = self._properties(tags, keys, properties, sharding_key)
        if not wait_for_disk:
            found[props.WAIT] = "false"
        if delay_level > 0:
            found[props.DELAY] = str(delay_level)
        if ttl_ms > 0:
            found[props.TTL] = str(ttl_ms)
        raw = props.encode_properties(found, is_new=True)
        queue, status, answer = self._send(topic, queue_id, sharding_key, flag, raw, body, timeout_ms)
        if answer.queue_id != queue.queue_id:
            queue = MessageQueue(topic, queue.broker_name, answer.queue_id)
        return SendResult(
            status, found[props.UNIQ_KEY], answer.msg_id, queue, answer.queue_offset, _durability(answer)
        )

    def send_batch(
        self,
        topic: str,
        messages: Sequence[NewMessage | bytes],
        *,
        queue_id: int | None = None,
        sharding_key: str | None = None,
        wait_for_disk: bool = True,
        timeout_ms: int | None = None,
    ) -> BatchSendResult:
        """Sends messages to one queue, all or none, 4 MiB together at most.

        Args:
            topic: As for :meth:`send`.
            messages: At least one.
            queue_id: As for :meth:`send`, for all of them.
            sharding_key: As for :meth:`send`, for all of them.
            wait_for_disk: As for :meth:`send`.
            timeout_ms: As for :meth:`send`.

        Raises:
            InvalidArgumentError: There is no message, or no such queue.
            As :meth:`send`, for the rest.
        """
        if isinstance(messages, str | bytes | bytearray | memoryview) or not isinstance(messages, Iterable):
            raise refusal("messages", messages, "a sequence of messages", "put several in a list")
        messages = list(messages)
        if not messages:
            raise refusal("messages", messages, "at least one message")
        as_flag("wait_for_disk", wait_for_disk)
        _check_timeout(timeout_ms)
        batch: list[BatchMessage] = []
        ids: list[str] = []
        for item in messages:
            message = item if isinstance(item, NewMessage) else NewMessage(item)
            try:
                found = self._properties(message.tags, message.keys, message.properties, sharding_key)
                body = as_body("body", message.body)
                flag = as_int("flag", message.flag, MIN_I32, MAX_I32)
                batch.append(BatchMessage(body, props.encode_properties(found, is_new=True), flag))
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"messages[{len(batch)}]: {error}", help=error.help) from error
            ids.append(found[props.UNIQ_KEY])
        raw = b"" if wait_for_disk else props.encode_properties({props.WAIT: "false"})
        whole = MessageBatch(batch)
        queue, status, answer = self._send(topic, queue_id, sharding_key, 0, raw, whole, timeout_ms)
        return BatchSendResult(
            status,
            tuple(ids),
            tuple(answer.msg_id.split(",")),
            queue,
            answer.queue_offset,
            _durability(answer),
        )

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues that messages of a topic can be sent to.

        Raises:
            RemoteProtocolError: There is none.
        """
        return self._routes.to_publish(as_text("topic", topic))

    def _send(
        self,
        topic: str,
        queue_id: int | None,
        sharding_key: str | None,
        flag: int,
        raw: bytes,
        body: Body,
        timeout_ms: int | None,
    ) -> tuple[MessageQueue, SendStatus, SendMessageResponseHeader]:
        """Sends until a broker has stored it; to a queue that was chosen it is sent once, as in Java."""
        left = 0 if queue_id is not None or sharding_key is not None else RETRIES
        failed: str | None = None
        while True:
            queue = self._choose(topic, queue_id, sharding_key, failed)
            request = self._request(queue, flag, raw, body)
            try:
                return queue, *self._invoke(request, queue, timeout_ms)
            except SeglogError as error:
                if not left or not _may_pass(error):
                    raise
                _log.warning("a message of topic %s is sent again: %s", topic, error)
            left -= 1
            failed = queue.broker_name

    def _choose(
        self, topic: str, queue_id: int | None, sharding_key: str | None, failed: str | None
    ) -> MessageQueue:
        if self._is_closed:
            raise LocalProtocolError("the producer was closed", help="make a new one")
        queues = self._routes.to_publish(as_text("topic", topic), self._new_topic_queue_nums)
        if queue_id is not None:
            return by_id(queues, as_int("queue_id", queue_id))
        if sharding_key is not None:
            return by_key(queues, as_text("sharding_key", sharding_key))
        if failed is not None:
            queues = tuple(queue for queue in queues if queue.broker_name != failed) or queues
        return self._turns.next(queues)

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
        if sharding_key is not None:
            found[SHARDING_KEY] = sharding_key
        if not found.get(props.UNIQ_KEY):
            found[props.UNIQ_KEY] = self._ids.next()
        return found

    def _request(self, queue: MessageQueue, flag: int, raw: bytes, body: Body) -> Request:
        is_batch = isinstance(body, MessageBatch)
        header = SendMessageHeader(
            self._group,
            queue.topic,
            AUTO_CREATE_TOPIC,
            self._new_topic_queue_nums,
            queue.queue_id,
            0,
            self._clock.now_ms(),
            flag,
            raw,
            is_batch=is_batch,
            broker_name=queue.broker_name,
        )
        return Request(
            RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2, header, body
        )

    def _invoke(
        self, request: Request, queue: MessageQueue, timeout_ms: int | None
    ) -> tuple[SendStatus, SendMessageResponseHeader]:
        address = self._routes.address_of(queue.broker_name)
        if address is None:
            raise BrokerNotFoundError(f"no route says where broker {queue.broker_name} is")
        response = self._client.link.invoke(request, timeout_ms, address)
        end = response.code
        status = SendStatus.SEND_OK if end is ResponseCode.SUCCESS else STATUS_OF.get(end)
        if status is None:
            self._routes.forget(queue.topic)
            raise RemoteProtocolError(end, response.remark or end.name)
        return status, expect_header(response, SendMessageResponseHeader)


def _may_pass(error: SeglogError) -> bool:
    """Returns whether a send that failed so is tried again."""
    return error.code in RETRIED if isinstance(error, RemoteProtocolError) else error.is_retryable


def _check_timeout(timeout_ms: int | None) -> None:
    if timeout_ms is not None:
        as_timeout_ms("timeout_ms", timeout_ms)


def _durability(answer: SendMessageResponseHeader) -> Durability | None:
    return None if answer.durability is None else _DURABILITIES.get(answer.durability)


_DURABILITIES: Final = {durability.value: durability for durability in Durability}
