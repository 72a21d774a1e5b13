"""What a scenario of the C++ client works with: clients of its own, and names that no other scenario has.

The client is ``rocketmq`` 0.4.4 from PyPI, RocketMQ's library in C++ of 2019 called through ctypes. What came
of a scenario is looked at with requests of ours, the same at both brokers.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from rocketmq.client import Message, Producer, PullConsumer, PushConsumer, RecvMessage
from rocketmq.exceptions import RocketMQException, ffi_check
from rocketmq.ffi import MessageModel, dll

from seglog.client.client import Client
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.record.message import Message as Stored
from seglog.storage.format.record.message import decode_message
from tests.interop.judging.requests import make_topic, pull

QUEUES: Final = 4
Facts = dict[str, Any]
"""What two brokers have in common: no ids, times, addresses, but whether they are there."""

_SUCCESS: Final = 0
_LATER: Final = 1
_LOOK_S: Final = 0.02
_SEND_LIMIT_MS: Final = 30_000
_LONGEST_SHOWN: Final = 100
_VARYING: Final = frozenset(
    {"UNIQ_KEY", "ORIGIN_MESSAGE_ID", "DLQ_ORIGIN_MESSAGE_ID", "MIN_OFFSET", "MAX_OFFSET", "INSTANCE_ID"}
)
_CRC: Final = "__CRC32#"
"""Of a broker that is set so, as ours is."""


class Seen:
    """What listeners were given, in its order; any thread may add to it.

    Args:
        fails: Whether a listener fails at a message, given its body and how often it was given before.
    """

    def __init__(self, fails: Callable[[str, int], bool] = lambda _body, _before: False) -> None:
        self._fails = fails
        self._lock = threading.Lock()
        self.messages: list[Facts] = []

    def take(self, message: RecvMessage) -> bool:
        """Notes a message; returns whether the listener is done with it."""
        facts: Facts = {
            "topic": message.topic,
            "body": message.body.decode(),
            "tags": text(message.tags),
            "keys": text(message.keys),
            "colour": text(message.get_property("colour")),
            "queueId": message.queue_id,
            "queueOffset": message.queue_offset,
            "reconsumeTimes": message.reconsume_times,
            "hasId": bool(message.id),
        }
        with self._lock:
            before = sum(one["body"] == facts["body"] for one in self.messages)
            self.messages.append(facts)
        return not self._fails(facts["body"], before)

    def count(self, prefix: str = "") -> int:
        """Returns how many messages came whose bodies begin so."""
        with self._lock:
            return sum(one["body"].startswith(prefix) for one in self.messages)

    def bodies(self, prefix: str = "") -> list[str]:
        """Returns their bodies, sorted."""
        with self._lock:
            return sorted(one["body"] for one in self.messages if one["body"].startswith(prefix))

    def sorted(self) -> list[Facts]:
        """Returns all, by queue and place in it."""
        with self._lock:
            return sorted(self.messages, key=lambda one: (one["queueId"], one["queueOffset"], one["body"]))

    def attempts(self) -> list[tuple[str, str, int]]:
        """Returns each attempt of each message: body, topic, and its number."""
        with self._lock:
            return sorted((one["body"], one["topic"], one["reconsumeTimes"]) for one in self.messages)

    def of_queues(self) -> dict[int, list[str]]:
        """Returns bodies in the order in which they came, queue by queue."""
        with self._lock:
            return {
                queue_id: [one["body"] for one in self.messages if one["queueId"] == queue_id]
                for queue_id in range(QUEUES)
            }


class PatientProducer(Producer):  # type: ignore[misc] # the library has no types
    """A producer that tries again while it is told that there is no route.

    It is told so at times of a topic that exists, while another thread of the library looks for routes.

    Args:
        group: Its group.
        limit_s: How long it tries.
    """

    def __init__(self, group: str, limit_s: float) -> None:
        super().__init__(group, timeout=_SEND_LIMIT_MS)
        self._limit_s = limit_s

    def send_sync(self, *arguments: Any) -> Any:
        """As that of the library."""
        return self._sent(super().send_sync, *arguments)

    def send_orderly(self, *arguments: Any, **options: Any) -> Any:
        """As that of the library."""
        return self._sent(super().send_orderly, *arguments, **options)

    def send_batch(self, *arguments: Any) -> Any:
        """As that of the library."""
        return self._sent(super().send_batch, *arguments)

    def _sent(self, send: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        end_s = time.monotonic() + self._limit_s
        while True:
            try:
                return send(*arguments, **options)
            except RocketMQException as error:
                if "No route info" not in str(error) or time.monotonic() > end_s:
                    raise
            time.sleep(_LOOK_S)


class Site:
    """Clients of one scenario. They end with the process.

    Args:
        scenario: Its name.
        name_server: Where clients find the broker.
        broker: Its address.
        looking: A client of ours.
        limit_s: How long to wait for what is to come.
    """

    def __init__(self, scenario: str, name_server: str, broker: str, looking: Client, limit_s: float) -> None:
        self._scenario = scenario
        self._name_server = name_server
        self._broker = broker
        self._looking = looking
        self._limit_s = limit_s
        self._producer: Producer | None = None
        self.clients: list[Any] = []

    def name(self, what: str) -> str:
        """Returns a name that only this scenario has."""
        return f"cpp-{self._scenario}-{what}"

    def ask(self, request: Request) -> Response:
        """Returns the broker's answer."""
        return self._looking.link.invoke(request, 30_000, self._broker)

    def topic(self, queues: int = QUEUES, name: str | None = None) -> str:
        """Makes a topic, and returns its name once clients can find it."""
        topic = name or self.name("T")
        self._must(make_topic(topic, queues, queues))
        self.wait(f"the route of {topic}", lambda: self.queues_of(topic) == queues)
        return topic

    def queues_of(self, topic: str) -> int:
        """Returns how many queues the route of a topic has now; 0 where there is none."""
        self._looking.routes.doubt(topic, ResponseCode.TOPIC_NOT_EXIST)
        return len(self._looking.routes.to_read(topic))

    def group(self, retry_max_times: int = 16) -> str:
        """Makes a group and its retry topic: these clients look for a new topic every 30 s."""
        group = self.name("g")
        settings = SubscriptionGroup(group, retry_max_times=retry_max_times)
        self._must(Request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=settings))
        self.topic(1, f"%RETRY%{group}")
        return group

    def _must(self, request: Request) -> None:
        answer = self.ask(request)
        if answer.code is not ResponseCode.SUCCESS:
            raise RuntimeError(f"request {request.code}: {answer.code} {answer.remark}")

    def producer(self) -> Producer:
        """Returns the producer that this scenario has."""
        if self._producer is not None:
            return self._producer
        made = PatientProducer(self.name("P"), self._limit_s)
        made.set_namesrv_addr(self._name_server)
        ffi_check(dll.SetProducerInstanceName(ctypes.c_void_p(made._handle), self.name("P").encode()))
        made.start()
        self.clients.append(made)
        self._producer = made
        return made

    def consumer(
        self,
        group: str,
        topic: str,
        seen: Seen,
        *,
        expression: str = "*",
        instance: str = "c",
        is_orderly: bool = False,
        is_broadcast: bool = False,
    ) -> PushConsumer:
        """Starts a consumer.

        The package has a listener that fails answer as one that is done, since it raises what the listener
        did: this one answers as the library wants it.
        """
        model = MessageModel.BROADCASTING if is_broadcast else MessageModel.CLUSTERING
        made = PushConsumer(group, orderly=is_orderly, message_model=model)
        made.set_namesrv_addr(self._name_server)
        made.set_instance_name(self.name(instance))
        made.set_thread_count(2)
        ffi_check(dll.Subscribe(ctypes.c_void_p(made._handle), topic.encode(), expression.encode()))

        def listener(_consumer: int, handle: int) -> int:
            return _SUCCESS if seen.take(RecvMessage(handle)) else _LATER

        made._register_callback(listener)
        made.start()
        self.clients.append(made)
        return made

    def puller(self, group: str) -> PullConsumer:
        """Starts a consumer that pulls."""
        made = PullConsumer(group)
        made.set_namesrv_addr(self._name_server)
        made.start()
        self.clients.append(made)
        return made

    def stored(self, topic: str, *counts: int) -> list[list[Facts]]:
        """Returns what is in the queues of a topic, once each has so many messages."""
        found: list[list[Facts]] = []
        for queue_id, count in enumerate(counts):
            queue: list[Facts] = []

            def are_there(queue_id: int = queue_id, count: int = count, queue: list[Facts] = queue) -> bool:
                queue += self._pulled(topic, queue_id, len(queue))
                return len(queue) >= count

            self.wait(f"{count} messages in queue {queue_id} of {topic}", are_there)
            found.append(queue)
        return found

    def _pulled(self, topic: str, queue_id: int, begin: int) -> list[Facts]:
        answer = self.ask(pull(self.name("looking"), topic, begin, queue_id=queue_id))
        if answer.code is not ResponseCode.SUCCESS or not isinstance(answer.body, RecordsBody):
            return []
        return [facts_of(decode_message(record)) for record in answer.body.records]

    def wait(self, what: str, is_so: Callable[[], object]) -> None:
        """Returns once something is so."""
        end_s = time.monotonic() + self._limit_s
        while not is_so():
            if time.monotonic() > end_s:
                raise TimeoutError(f"it did not come to {what}")
            time.sleep(_LOOK_S)


def message(topic: str, number: int, tags: str = "A") -> Message:
    """Returns a message to send."""
    made = Message(topic)
    made.set_body(f"m{number}")
    made.set_tags(tags)
    made.set_keys(f"key{number} order")
    made.set_property("colour", f"größe {number % 3}")
    return made


def facts_of(one: Stored) -> Facts:
    """Returns what two brokers have in common of a stored message."""
    body = one.payload()
    properties = {
        name: "" if name in _VARYING else value for name, value in one.properties.items() if name != _CRC
    }
    return {
        "topic": one.topic,
        "queueId": one.queue_id,
        "queueOffset": one.queue_offset,
        "body": body.decode() if len(body) <= _LONGEST_SHOWN else f"{len(body)} bytes",
        "storedBytes": len(one.body),
        "bodyCrc": one.body_crc,
        "flag": one.flag,
        "sysFlag": one.sys_flag,
        "reconsumeTimes": one.reconsume_times,
        "properties": properties,
    }


def facts_of_send(sent: Any) -> Facts:
    """Returns them of the answer to a send."""
    return {"status": sent.status.name, "queueOffset": sent.offset, "idLength": len(sent.msg_id)}


def bodies(stored: Sequence[Facts]) -> list[str]:
    """Returns the bodies of stored messages, sorted."""
    return sorted(one["body"] for one in stored)


def text(value: bytes | None) -> str | None:
    """Returns what a message holds as text."""
    return None if value is None else value.decode()
