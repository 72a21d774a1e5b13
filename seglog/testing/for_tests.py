"""ForTests: the common part of both brokers for tests: clients, and the messages of a topic.

Each call that makes a client has all parameters of its class, and returns it with the types given by
``encode`` and ``decode``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, Unpack, overload

from seglog.arguments import as_flag
from seglog.broker.broker import Broker
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.client.home import start, wait_for
from seglog.client.links import LocalLink
from seglog.client.routes import NEW_TOPIC_QUEUE_NUMS
from seglog.clock import Clock
from seglog.consumer.consumer import Consumer
from seglog.consumer.listener import ConcurrentListener, ConsumeFrom, EitherListener, OrderlyListener
from seglog.consumer.lite import LitePullConsumer
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.payloads import DecodedMessage, P
from seglog.consumer.push import PushConsumer
from seglog.consumer.send_back import SendBack
from seglog.consumer.settings import ConsumerOptions, LiteOptions, Wanted
from seglog.producer.producer import B, Producer
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.record import Message

C = TypeVar("C", bound=Producer[Any] | Consumer[Any] | LitePullConsumer[Any])
_PAGE: Final = 1_024
_BROADCASTING: Final = (MessageModel.BROADCASTING, MessageModel.BROADCASTING.value)


class ForTests(ABC):
    """Makes clients of a broker for tests, which are closed with the broker; and returns its messages."""

    @overload
    def producer(
        self,
        group: str = "test-producer",
        *,
        clock: Clock | None = None,
        ids: UniqueIds | None = None,
        new_topic_queue_nums: int = NEW_TOPIC_QUEUE_NUMS,
        first_turn: int | None = None,
        trace: bool = False,
        encode: None = None,
    ) -> Producer: ...
    @overload
    def producer(
        self,
        group: str = "test-producer",
        *,
        clock: Clock | None = None,
        ids: UniqueIds | None = None,
        new_topic_queue_nums: int = NEW_TOPIC_QUEUE_NUMS,
        first_turn: int | None = None,
        trace: bool = False,
        encode: Callable[[B], bytes],
    ) -> Producer[B]: ...
    def producer(
        self,
        group: str = "test-producer",
        *,
        clock: Clock | None = None,
        ids: UniqueIds | None = None,
        new_topic_queue_nums: int = NEW_TOPIC_QUEUE_NUMS,
        first_turn: int | None = None,
        trace: bool = False,
        encode: Callable[[Any], bytes] | None = None,
    ) -> Producer[Any]:
        """Returns a new producer.

        Args:
            group: As for :class:`~seglog.producer.producer.Producer`, and so are the others.
            clock: Stamps the messages; that of the broker by default.
            ids: Makes the message ids; on virtual time the same ones in each run by default.
            new_topic_queue_nums: Queues that a topic gets if the first send creates it, at most.
            first_turn: Which queue has the first turn; on virtual time the first one by default.
            trace: Whether RocketMQ's trace topic is to hear of each message.
            encode: Makes a body of what is sent; None where that is bytes.
        """
        kind: Callable[..., Producer[Any]] = Producer
        target = self._address()
        usual_ids, usual_turn = self._usual_of_producers()
        made = kind(
            target,
            group,
            clock=clock,
            ids=usual_ids if ids is None else ids,
            new_topic_queue_nums=new_topic_queue_nums,
            first_turn=usual_turn if first_turn is None else first_turn,
            trace=trace,
            encode=encode,
        )
        return self._own(made)

    @overload
    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: OrderlyListener | None = None,
        *,
        in_order: Literal[True] = True,
        decode: None = None,
        **options: Unpack[ConsumerOptions],
    ) -> OrderlyConsumer: ...
    @overload
    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: OrderlyListener[DecodedMessage[P]] | None = None,
        *,
        in_order: Literal[True] = True,
        decode: Callable[[bytes], P],
        **options: Unpack[ConsumerOptions],
    ) -> OrderlyConsumer[DecodedMessage[P]]: ...
    @overload
    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: ConcurrentListener | None = None,
        *,
        in_order: Literal[False],
        decode: None = None,
        **options: Unpack[ConsumerOptions],
    ) -> PushConsumer: ...
    @overload
    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: ConcurrentListener[DecodedMessage[P]] | None = None,
        *,
        in_order: Literal[False],
        decode: Callable[[bytes], P],
        **options: Unpack[ConsumerOptions],
    ) -> PushConsumer[DecodedMessage[P]]: ...
    @overload
    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: EitherListener | None = None,
        *,
        in_order: bool,
        decode: None = None,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer: ...
    @overload
    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: EitherListener[DecodedMessage[P]] | None = None,
        *,
        in_order: bool,
        decode: Callable[[bytes], P],
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[DecodedMessage[P]]: ...
    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: Callable[..., object] | None = None,
        *,
        in_order: bool = True,
        decode: Callable[[bytes], object] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[Any]:
        """Returns a new member of a group, which consumes from the first message on.

        After ``start()`` it consumes: on virtual time in ``advance``, over a connection on real time.
        ``run_until_idle`` starts it too.

        Args:
            group: As for :class:`~seglog.consumer.consumer.Consumer`, and so are the others.
            subscription: A topic, or topics and what is wanted of each.
            listener: Called with each message.
            in_order: Whether it is an ``OrderlyConsumer``, where a message that fails stays first in its
                queue; else a ``PushConsumer``, where it comes again later, and ends as a dead letter.
            decode: Makes the ``value`` of a message of its body.
            options: Settings. ``consume_from`` is the first message by default, and the folder of the offsets
                of one that broadcasts is beside the store.
        """
        kind: Callable[..., Consumer[Any]] = (
            OrderlyConsumer if as_flag("in_order", in_order) else PushConsumer
        )
        target = self._target(is_broadcasting=options.get("message_model") in _BROADCASTING)
        usual = self._usual_of_consumers()
        return self._own(kind(target, group, subscription, listener, decode=decode, **{**usual, **options}))

    @overload
    def polled_consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        *,
        decode: None = None,
        **options: Unpack[LiteOptions],
    ) -> LitePullConsumer: ...
    @overload
    def polled_consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        *,
        decode: Callable[[bytes], P],
        **options: Unpack[LiteOptions],
    ) -> LitePullConsumer[DecodedMessage[P]]: ...
    def polled_consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        *,
        decode: Callable[[bytes], Any] | None = None,
        **options: Unpack[LiteOptions],
    ) -> LitePullConsumer[Any]:
        """Returns a new member of a group that is polled, from the first message on.

        On virtual time none passes in a poll, and a ``for`` loop ends once nothing is left.

        Args:
            group: As for :class:`~seglog.consumer.lite.lite_pull.LitePullConsumer`, and so are the others.
            subscription: A topic, or topics and what is wanted of each; None where that is said later.
            decode: Makes the ``value`` of a message of its body.
            options: As for :meth:`consumer`.
        """
        kind: Callable[..., LitePullConsumer[Any]] = LitePullConsumer
        target = self._target(is_broadcasting=options.get("message_model") in _BROADCASTING)
        usual = self._usual_of_consumers()
        return self._own(kind(target, group, subscription, decode=decode, **{**usual, **options}))

    def messages(self, topic: str) -> list[Message]:
        """Returns all messages of a topic that can be consumed now, by queue, consumed before or not."""
        store = self._served().store
        found: list[Message] = []
        for queue in store.queues():
            queue_offset = queue.min_offset
            while queue.topic == topic and queue_offset < queue.max_offset:
                page = store.get(topic, queue.queue_id, queue_offset, _PAGE)
                found += page.messages
                queue_offset = max(queue_offset + 1, page.next_offset)
        return found

    def send_back(self, group: str, message: Message, delay_level: int = 0) -> None:
        """Sends a message back as a consumer of a group that failed at it.

        Args:
            group: The group.
            message: The consumed message.
            delay_level: The delay of the retry; by default it grows with each failure, up to a dead letter.

        Raises:
            ProtocolError: The broker refuses.
        """
        broker_name = self._served().config.broker_name
        with make_client(self._address()) as client:
            client.routes.to_read(message.topic)
            sending = SendBack(client, group).retry_later(message, broker_name, delay_level)
            wait_for(client.home, start(client.home, sending, "a message that is sent back"))

    def _usual_of_consumers(self) -> dict[str, Any]:
        """Returns default settings of consumers: broadcasting ones leave no file in the home folder."""
        path = self._served().store.path
        folder = path.with_name(f"{path.name}.offsets")
        return {"consume_from": ConsumeFrom.FIRST, "offset_folder": folder}

    @abstractmethod
    def _served(self) -> Broker:
        """Returns the broker."""

    @abstractmethod
    def _address(self) -> LocalLink | str:
        """Returns the target of the next client."""

    def _target(self, *, is_broadcasting: bool) -> LocalLink | Client | str:
        """Returns the target of the next consumer.

        Args:
            is_broadcasting: Whether it keeps its own offsets, under its own name.
        """
        return self._address()

    @abstractmethod
    def _usual_of_producers(self) -> tuple[UniqueIds | None, int | None]:
        """Returns the default ``ids`` and ``first_turn`` of the next producer."""

    @abstractmethod
    def _own(self, client: C) -> C:
        """Closes a client with the broker."""
