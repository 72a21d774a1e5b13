"""Producer and AsyncProducer: send messages, and return the place of each.

    with Producer(broker, "orders-service") as producer:  # or Producer("127.0.0.1:9876", ...)
        sent = producer.send("orders", b"42 apples", tags="fruit", sharding_key="customer-7")

    async with AsyncProducer("127.0.0.1:9876", "orders-service") as producer:
        sent = await producer.send("orders", b"42 apples", tags="fruit", sharding_key="customer-7")

A send returns when the broker has stored the message with its configured durability; anything else is an
error. Messages with one sharding key go to one queue, in the order of their sends.

Source: ``DefaultMQProducer.java``.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from inspect import Signature, signature
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Self

from typing_extensions import TypeVar, override

from seglog.arguments import MAX_I32, as_body, as_doing, as_flag, as_int, as_kind
from seglog.client.connect import Target, client_for
from seglog.client.dropped import watch
from seglog.client.home import await_for, run_at_once, wait_here
from seglog.client.routes import NEW_TOPIC_QUEUE_NUMS
from seglog.clock import CLOCK_CALLS, Clock
from seglog.closing import AsyncClosing, Closing
from seglog.errors import AskTimeoutError
from seglog.other_names import (
    OF_NEW_PRODUCERS,
    OF_PRODUCERS,
    OF_SENDS,
    LoopFace,
    NamesElsewhere,
    PlainFace,
    with_advice,
)
from seglog.producer.encoding import encoding, fixed, unchanging
from seglog.producer.pauses import TaskPauses, ThreadPauses
from seglog.producer.send_result import BatchSendResult, SendResult
from seglog.producer.send_traces import SendTraces
from seglog.producer.sender import Sender, check_timeout
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.names import check_group
from seglog.storage.writes import NewMessage

if TYPE_CHECKING:
    from asyncio import Semaphore

B = TypeVar("B", default=bytes | bytearray | memoryview)
"""The payload of a producer: bytes, or the argument type of its ``encode``."""
DEFAULT_GROUP: Final = "DEFAULT_PRODUCER"
MOST_SENT: Final = 512
"""Most sends of one ``AsyncProducer`` in flight at a time; a connection takes 1,024 requests."""


class ProducerParts(NamesElsewhere, ABC, Generic[B]):
    """The common base of both faces.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Which application sends.
        clock: Stamps the messages; that of the client if it is not given.
        ids: Makes the message ids; of this process by default.
        new_topic_queue_nums: Queues that a topic gets if the first send creates it, at most.
        first_turn: Which queue has the first turn; any by default.
        trace: Whether RocketMQ's trace topic is to hear of each message that was stored: ``mqadmin
            queryMsgTraceById`` shows that. It is sent in the background.
        encode: Makes a body of what is sent, in the thread or task that sends; None where that is bytes.

    Raises:
        InvalidNameError: The group's name is not valid.
        InvalidArgumentError: A setting is out of its bounds, or an ``AsyncProducer`` is made where no event
            loop runs.
    """

    _elsewhere = OF_PRODUCERS
    _arguments_elsewhere = OF_SENDS
    _is_awaited: ClassVar[bool]

    __signature__: ClassVar[Signature]

    @override
    def __init_subclass__(cls) -> None:
        """Sets the signature of a producer class."""
        super().__init_subclass__()
        made = signature(cls.__init__)
        cls.__signature__ = made.replace(parameters=[*made.parameters.values()][1:])

    def __new__(cls, *args: object, **settings: object) -> Self:
        """Makes a producer; errors in the call name the class that was called.

        Raises:
            TypeError: An argument is missing, there is one too many, or none has this name.
        """
        try:
            cls.__signature__.bind(*args, **settings)
        except TypeError as error:
            text = with_advice(f"{cls.__name__}(): {error}", settings, OF_NEW_PRODUCERS)
            raise TypeError(text) from None
        return super().__new__(cls)

    def __init__(
        self,
        target: Target,
        group: str = DEFAULT_GROUP,
        *,
        clock: Clock | None = None,
        ids: UniqueIds | None = None,
        new_topic_queue_nums: int = NEW_TOPIC_QUEUE_NUMS,
        first_turn: int | None = None,
        trace: bool = False,
        encode: Callable[[B], bytes] | None = None,
    ) -> None:
        """Makes the producer; the help of its class explains each argument."""
        to_body = as_body if encode is None else encoding(encode)
        as_int("new_topic_queue_nums", new_topic_queue_nums, 1, MAX_I32)
        if first_turn is not None:
            as_int("first_turn", first_turn, 0)
        as_flag("trace", trace)
        self._group = check_group(group)
        if clock is not None:
            as_doing("clock", clock, CLOCK_CALLS, "a clock")
        self._client, self._is_own = client_for(target, in_loop=self._is_awaited)
        link = self._client.link
        self._traces = SendTraces(self._client, self._group) if trace else None
        self._sender = Sender(
            self._client,
            self._group,
            link.ask if self._is_awaited else link.invoke,
            TaskPauses(self._client.home) if self._is_awaited else ThreadPauses(self._client.home),
            clock,
            None if ids is None else as_kind("ids", UniqueIds, ids),
            new_topic_queue_nums,
            first_turn,
            to_body,
            self._traces,
        )
        self._client.add_producer(self._group)
        self._end_if_dropped = watch(self, self._client) if isinstance(target, str) else None

    @override
    def __repr__(self) -> str:
        state = " closed" if self._sender.is_closed else ""
        return f"<{type(self).__name__} {self._group} of client {self._client.client_id}{state}>"

    def _stop(self) -> bool:
        """Refuses further sends; returns whether it was open before.

        Raises:
            InvalidArgumentError: The caller would wait for itself at the end of the client. Sends continue.
            ConsumerError: Likewise.
        """
        if self._is_own:
            self._client.check_end(None, is_awaited=self._is_awaited, face=type(self).__name__)
        if self._end_if_dropped is not None:
            self._end_if_dropped.detach()
        is_first = self._sender.close()
        if (
            is_first and self._traces is not None and not self._is_own
        ):  # else its client sends the last traces
            self._traces.tracer.close()
        return is_first


class Producer(ProducerParts[B], Closing, PlainFace):
    """Sends messages. Any thread may call it; close it, or use it in a ``with`` statement.

    If it is dropped while open, a ResourceWarning is raised, and a client that it made ends.

    A send that is not answered, or is refused for a reason that may pass, is tried again, twice at most, and
    at another broker if there are several and no queue was chosen; so a message may be stored twice, with one
    id. A broker that is down or busy (SYSTEM_BUSY, GO_AWAY) has stored nothing; the send waits for it as long
    as its timeout allows. On virtual time only an async listener waits.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Which application sends.
        clock: Stamps the messages; that of the client if it is not given.
        ids: Makes the message ids; of this process by default.
        new_topic_queue_nums: Queues that a topic gets if the first send creates it, at most.
        first_turn: Which queue has the first turn; any by default.
        trace: Whether RocketMQ's trace topic is to hear of each message that was stored: ``mqadmin
            queryMsgTraceById`` shows that. It is sent in the background.
        encode: Makes a body of what is sent, in the thread or task that sends; None where that is bytes.
    """

    _is_awaited: ClassVar[bool] = False

    @override
    def close(self) -> None:
        """Refuses further sends and closes a client of its own. A second call does nothing."""
        if self._stop():
            if self._is_own:
                run_at_once(self._client.end(None, wait_here, is_awaited=False))
            else:
                self._client.remove_producer(self._group)

    def send(
        self,
        topic: str,
        body: B,
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
            body: The payload: bytes, or what ``encode`` takes.
            tags: The tag that consumers filter by.
            keys: Index keys: one text with blanks between them, or several texts without blanks.
            properties: More properties; a UNIQ_KEY among them becomes the message's id. Names that RocketMQ
                uses itself are refused: see ``Message.user_properties``.
            flag: The application's own 32 bits.
            queue_id: Which queue; without it, the one of ``sharding_key`` or the next one in turn.
            sharding_key: Messages that share it keep their order. It is stored with the message.
            wait_for_disk: False lets a broker that syncs every message answer before it has.
            delay_level: From 1 on, keeps the message from consumers for 1s, 5s, 10s and so on up to 2h; a
                broker takes a level beyond its last one (18) for the last one. The offsets of the result are
                those in SCHEDULE_TOPIC_XXXX, where the message waits.
            ttl_ms: After this time consumers pass the message; 0 for never.
            timeout_ms: How long the whole call may take, from 1 ms on: the question for the route, the
                attempts and the pauses between them. None for the time of the link (3,000 ms) for each of its
                requests, and as much for a broker that is away or busy.

        Raises:
            AskTimeoutError: There is no answer in time; whether the message is stored is not known.
            ConnectionEndedError: The connection ended before the answer; likewise.
            CannotConnectError: There is no connection, and none can be made; the message was not sent.
            BrokerNotFoundError: No route says where the broker is; likewise.
            AskLimitError: Too many sends wait for their answers; likewise.
            ClientClosedError: The producer or its client was closed, or its process forked; likewise.
            RemoteProtocolError: The broker refuses; the message is not stored.
            ProtocolError: The answer cannot be read; whether the message is stored is not known.
            InvalidNameError: The topic's name is not valid.
            MessageIllegalError: Properties that cannot be stored.
            InvalidArgumentError: The topic has no such queue; or ``encode`` has raised.
        """
        return run_at_once(
            self._sender.send(
                topic,
                body,
                tags,
                keys,
                properties,
                flag,
                queue_id,
                sharding_key,
                wait_for_disk,
                delay_level,
                ttl_ms,
                timeout_ms,
            )
        )

    def send_batch(
        self,
        topic: str,
        messages: Sequence[NewMessage | B],
        *,
        queue_id: int | None = None,
        sharding_key: str | None = None,
        wait_for_disk: bool = True,
        timeout_ms: int | None = None,
    ) -> BatchSendResult:
        """Sends messages to one queue, all or none, 4 MiB together at most.

        Args:
            topic: As for :meth:`send`.
            messages: At least one; a body by itself as for :meth:`send`, that of a ``NewMessage`` in bytes.
            queue_id: As for :meth:`send`, for all of them.
            sharding_key: As for :meth:`send`, for all of them.
            wait_for_disk: As for :meth:`send`.
            timeout_ms: As for :meth:`send`.

        Raises:
            InvalidArgumentError: There is no message, or no such queue; or, as in Java, the topic is a retry
                topic, a message has a delay, or messages differ in ``WAIT``.
            As :meth:`send`, for the rest.
        """
        sending = self._sender.send_batch(topic, messages, queue_id, sharding_key, wait_for_disk, timeout_ms)
        return run_at_once(sending)

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues that messages of a topic can be sent to.

        Raises:
            RemoteProtocolError: There is none.
        """
        return run_at_once(self._sender.queues(topic))


class AsyncProducer(ProducerParts[B], AsyncClosing, LoopFace):
    """Sends messages; its calls are awaited. It has the methods and settings of a :class:`Producer`.

    It is made and used in one event loop, where its client lives if it has made it; close it, or use it in
    ``async with``. What several tasks send to one queue is stored in the order in which their sends began,
    but for a message that was sent again.
    So many wait for their answers as a connection takes (``MOST_SENT``); others wait for their turn.
    A send whose task is cancelled may have been stored.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Which application sends.
        clock: Stamps the messages; that of the client if it is not given.
        ids: Makes the message ids; of this process by default.
        new_topic_queue_nums: Queues that a topic gets if the first send creates it, at most.
        first_turn: Which queue has the first turn; any by default.
        trace: Whether RocketMQ's trace topic is to hear of each message that was stored: ``mqadmin
            queryMsgTraceById`` shows that. It is sent in the background.
        encode: Makes a body of what is sent, in the thread or task that sends; None where that is bytes.
    """

    _is_awaited: ClassVar[bool] = True

    @cached_property
    def _room(self) -> Semaphore:
        from asyncio import Semaphore  # which a plain producer in process does not load

        return Semaphore(MOST_SENT)

    async def _turn(self, timeout_ms: float | None) -> float | None:
        """Waits until a send may begin; returns what is left of its time."""
        if timeout_ms is None or not self._room.locked():
            await self._room.acquire()
            return timeout_ms
        import asyncio

        check_timeout(timeout_ms)
        clock = self._client.clock
        began_ms = clock.monotonic_ms()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._room.acquire()
        except TimeoutError:
            raise AskTimeoutError(
                f"not sent within {timeout_ms:.0f} ms: {MOST_SENT} sends of this producer wait already",
                help="wait for some of them, or give it more time",
            ) from None
        return max(1, timeout_ms - (clock.monotonic_ms() - began_ms))

    @override
    async def close(self) -> None:
        """Refuses further sends and closes a client of its own. A second call does nothing."""
        if self._stop():
            if self._is_own:
                await self._client.end(None, await_for, is_awaited=True)
            else:
                self._client.remove_producer(self._group)

    async def send(
        self,
        topic: str,
        body: B,
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
        """Sends one message; see :meth:`Producer.send`."""
        body, keys, properties = unchanging(body), fixed(keys), fixed(properties)
        left_ms = await self._turn(timeout_ms)
        try:
            return await self._sender.send(
                topic,
                body,
                tags,
                keys,
                properties,
                flag,
                queue_id,
                sharding_key,
                wait_for_disk,
                delay_level,
                ttl_ms,
                left_ms,
            )
        finally:
            self._room.release()

    async def send_batch(
        self,
        topic: str,
        messages: Sequence[NewMessage | B],
        *,
        queue_id: int | None = None,
        sharding_key: str | None = None,
        wait_for_disk: bool = True,
        timeout_ms: int | None = None,
    ) -> BatchSendResult:
        """Sends messages to one queue, all or none; see :meth:`Producer.send_batch`."""
        if isinstance(messages, list | tuple):
            messages = [unchanging(message) for message in messages]
        left_ms = await self._turn(timeout_ms)
        try:
            return await self._sender.send_batch(
                topic, messages, queue_id, sharding_key, wait_for_disk, left_ms
            )
        finally:
            self._room.release()

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the queues that messages of a topic can be sent to; see :meth:`Producer.queues`."""
        return await self._sender.queues(topic)
