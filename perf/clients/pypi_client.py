"""``rocketmq`` 0.4.4 from PyPI: RocketMQ's C++ client of 2019, which Python calls through ctypes.

Its wheels are for Linux on x86-64 and for macOS. It takes a body up to its first zero.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any, Final

from rocketmq.client import Message, Producer, PushConsumer, SendStatus
from rocketmq.exceptions import ProducerSendSyncFailed
from typing_extensions import override

from perf.clients.seen import Seen
from perf.clients.session import Session, send_all
from perf.clients.work import IN_FLIGHT, LIMIT_S, Kind, Work, body_of, check_seen
from perf.figures.sample import SanityError, check

_TIMEOUT_MS: Final = 10_000


def session(work: Work) -> Session:
    """Returns a session at a name server."""
    if work.kind is Kind.FLIGHT:
        return _SendsInFlight(work)
    return _Sends(work) if work.kind.is_send else _Consumes(work)


class _Sends:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._producer = Producer(work.name, timeout=_TIMEOUT_MS)
        self._producer.set_namesrv_addr(work.target)
        self._producer.start()

    def do(self) -> float:
        return send_all(self._work, self._send)

    def _message(self, number: int) -> Any:  # noqa: ANN401 - the library has no types
        message = Message(self._work.topic)
        message.set_body(body_of(number))
        message.set_tags("TagA")
        return message

    def _send(self, number: int) -> None:
        sent = self._stored(number)
        if sent.status is not SendStatus.OK:
            raise SanityError(f"message {number} was answered with {sent.status.name}")

    def _stored(self, number: int) -> Any:  # noqa: ANN401 - as above
        while True:
            try:
                return self._producer.send_sync(self._message(number))
            except ProducerSendSyncFailed as error:
                # Of threads that look at the routes at the same time one is told so; nothing was sent.
                if "No route info" not in str(error):
                    raise

    def check(self) -> None:
        """Does nothing: each send was answered; the stored messages are counted at the broker."""

    def close(self) -> None:
        self._producer.shutdown()


class _SendsInFlight(_Sends):
    @override
    def do(self) -> float:
        """Sends by calls that do not wait; the answers are counted."""
        free = threading.BoundedSemaphore(IN_FLIGHT)
        failed: list[Exception] = []

        def ended(_: object) -> None:
            free.release()

        def lost(error: Exception) -> None:
            failed.append(error)
            free.release()

        begun_s = time.perf_counter()
        for number in range(self._work.messages):
            free.acquire()
            self._producer.send_async(self._message(number), ended, lost)
        for _ in range(IN_FLIGHT):
            if not free.acquire(timeout=LIMIT_S):
                raise SanityError("sends were not answered")
        check(0, len(failed), "sends that failed")
        return time.perf_counter() - begun_s


class _Consumes:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._numbers = itertools.count()
        self._consumer: Any = None
        self._seen = Seen(work.messages)

    def do(self) -> float:
        """Consumes the topic; it cannot be told to begin with the first message, but a new group does."""
        work, seen = self._work, Seen(self._work.messages)
        self._seen = seen
        group = f"{work.name}-{next(self._numbers)}"
        self._consumer = PushConsumer(group, orderly=work.kind is Kind.ORDERLY)
        self._consumer.set_namesrv_addr(work.target)
        self._consumer.set_instance_name(group)
        self._consumer.subscribe(work.topic, lambda message: seen.take(message.body))
        self._consumer.start()
        return seen.wait()

    def check(self) -> None:
        self._consumer.shutdown()
        check_seen(self._seen.bodies, self._work.messages)

    def close(self) -> None:
        """Its consumers were ended."""
