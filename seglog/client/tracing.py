"""Sends traces of messages to the brokers, in the background and many at a time.

Any thread adds traces here, without waiting. They are sent to RMQ_SYS_TRACE_TOPIC every 5 s, or once there
are 20. If brokers are too slow or unreachable, traces are dropped, and that is logged; no send and no
listener waits for traces, or fails because of them.

Truth: memory only; traces that cannot be sent within one request's timeout at the client's end are lost.

Source: ``AsyncTraceDispatcher.java``, 5.4.0.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Final

from seglog.client.client import Client
from seglog.client.home import Bell, Flow, start, until
from seglog.client.traces import Trace, TraceText, encode_trace, split_texts
from seglog.errors import BrokerNotFoundError, RemoteProtocolError, SeglogError
from seglog.forked import abandon_in_children
from seglog.logs import logger
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import AUTO_CREATE_TOPIC, TRACE_TOPIC

MOST_WAITING: Final = 2_048
"""Most waiting traces; further ones are dropped."""
BATCH: Final = 20
"""This many waiting traces are sent at once, before the interval has passed."""
FLUSH_MS: Final = 5_000
MOST_BYTES: Final = 128_000
"""Longest body of a trace message."""
MOST_KEY_BYTES: Final = 16_000
"""Longest keys of a trace message: all properties have 32,767 bytes at most."""
_QUEUES: Final = 4
_STORED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
)

_log = logger(__name__)


class Tracer:
    """The traces of one producer or consumer.

    Args:
        client: Its home, link and routes are used.
        group: Of the producer or consumer.
        kind: ``PRODUCE`` or ``CONSUME``, for the name of the group that sends traces.

    Attributes:
        dropped: How many traces were not sent.
    """

    def __init__(self, client: Client, group: str, kind: str) -> None:
        self._client = client
        self.ids = UniqueIds(client.clock)
        self._group = f"_INNER_TRACE_PRODUCER-{group}-{kind}-1"
        self._lock = threading.Lock()
        self._waiting: deque[Trace] = deque()
        self._some, self._many = Bell(client.home), Bell(client.home)
        self._turn = 0
        self._sending: Flow[None] | None = None
        self._closing: Flow[None] | None = None
        self._is_forked = False
        self.dropped = 0
        client.at_end(self._wait_for_end)
        abandon_in_children(self, Tracer._abandon)

    def add(self, traces: Iterable[Trace]) -> None:
        """Queues traces; any thread may call it, without waiting. A forked child sends none."""
        if self._is_forked:
            return
        with self._lock:
            room = 0 if self._closing is not None else MOST_WAITING - len(self._waiting)
            for trace in traces:
                if room > 0:
                    self._waiting.append(trace)
                    room -= 1
                else:
                    self.dropped += 1
            count = len(self._waiting)
            if self._sending is None and count:
                self._sending = start(self._client.home, self._keep_sending(), f"traces of {self._group}")
        if count >= BATCH:
            self._many.ring()
        self._some.ring()

    def _abandon(self) -> None:
        self._is_forked = True
        self._lock = threading.Lock()  # another thread of the parent may have held it

    def close(self) -> Flow[None]:
        """Sends the waiting traces, and takes no more; returns the flow that does this.

        Only its client waits for that flow, when it ends.
        """
        with self._lock:
            if self._closing is None:
                self._closing = start(self._client.home, self._end(), f"last traces of {self._group}")
                self._closing.then(lambda _: self._client.not_at_end(self._wait_for_end))
            return self._closing

    async def _wait_for_end(self) -> None:
        await until(self.close())

    async def _end(self) -> None:
        if self._sending is not None:
            self._sending.stop()
        await self._send_all()

    async def _keep_sending(self) -> None:
        while not self._client.is_over:
            await self._some.wait()
            if len(self._waiting) < BATCH:
                await self._many.wait(FLUSH_MS)
            await self._send_all()

    async def _send_all(self) -> None:
        """Sends all waiting traces, in one message for each topic, or in more if it would be too long."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        by_topic: defaultdict[str, list[TraceText]] = defaultdict(list)
        for trace in waiting:
            text = encode_trace(trace)
            by_topic[text.topic].append(text)
        for texts in by_topic.values():
            for part in split_texts(texts, MOST_BYTES, MOST_KEY_BYTES):
                try:
                    await self._send(part)
                except SeglogError as error:
                    self.dropped += len(part)
                    level = self._client.troubles.level(f"traces of {self._group}", error)
                    _log.log(level, "%d traces of %s are lost: %s", len(part), self._group, error)

    async def _send(self, texts: list[TraceText]) -> None:
        client = self._client
        queues = client.routes.fresh_to_publish(TRACE_TOPIC)
        queues = queues or await client.routes.ask_to_publish(TRACE_TOPIC, _QUEUES)
        queue = queues[self._turn % len(queues)]
        self._turn += 1
        address = client.routes.address_of(queue.broker_name)
        if address is None:
            raise BrokerNotFoundError(f"no route says where broker {queue.broker_name} is")
        keys = props.KEY_SEPARATOR.join(dict.fromkeys(key for text in texts for key in text.keys))
        found = {props.KEYS: keys, props.UNIQ_KEY: self.ids.next(), props.WAIT: "true"}
        header = SendMessageHeader(
            self._group,
            TRACE_TOPIC,
            AUTO_CREATE_TOPIC,
            _QUEUES,
            queue.queue_id,
            0,
            client.clock.now_ms(),
            0,
            props.encode_properties(found),
            broker_name=queue.broker_name,
        )
        body = "".join(text.text for text in texts).encode()
        asked = client.link.ask(Request(RequestCode.SEND_MESSAGE_V2, header, body), to=address)
        answer = await until(asked)
        if answer.code not in _STORED:
            client.routes.doubt(TRACE_TOPIC, answer.code)
            raise RemoteProtocolError(answer.code, answer.remark or answer.code.name)
