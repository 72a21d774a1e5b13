"""Waiting requests: a bounded queue for each kind, with a lane for each connection.

RocketMQ's broker has a pool of threads and a queue for each kind of request. Here one thread serves the kinds
in turn, and within a kind the connections in turn, a few requests each, so that neither many sends nor one
busy client delay the others. Requests that keep clients in their groups never wait.

A request that has waited longer than the limit of its kind is answered SYSTEM_BUSY, and is not carried out:
its client is about to time out and to send it again. To avoid that under normal load, connections are not
read from once the waiting requests will take half of that time.

Source: ``BrokerController.java``, ``registerProcessor``; ``BrokerFastFailure.java``;
``NettyRemotingAbstract.java``, ``processRequestCommand``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from seglog.broker.settings import Lent
from seglog.complaints import Complaints
from seglog.remoting.codec import Asked
from seglog.remoting.codes import SENDS, RequestCode, ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.server.limits import ServerLimits

LIVENESS: Final = frozenset(
    (
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.CHECK_CLIENT_CONFIG,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.QUERY_ASSIGNMENT,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UNLOCK_BATCH_MQ,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
    )
)
"""Requests served as soon as they are read: a delay would cost a client its share, locks or offsets."""
PULLS: Final = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
_HEAD_BYTES: Final = 512
"""Approximate bytes of a request besides its body."""
_AT_ONCE: Final = 16
"""Requests of a connection served together: their answers share a write."""
_USUAL_S: Final = 0.000_1
"""The assumed duration of a request, before any was measured."""
_WEIGHT: Final = 0.2
"""Weight of the last turn in the measured duration of a request."""


class Loop(Protocol):
    """The part of an event loop that is used here."""

    def time(self) -> float:
        """Returns the time in seconds; it never goes back."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Calls a function in its next turn."""


class Waits(Protocol):
    """A connection with waiting requests."""

    @property
    def takes_answers(self) -> bool:
        """Whether its client reads its answers; otherwise none of its requests has a turn."""

    def serve(self, asked: Asked) -> None:
        """Carries a request out."""

    def turn_away(self, asked: Asked, answer: Response) -> None:
        """Answers a request that is not carried out."""


class _Kind:
    """A kind of request, and its non-empty lanes in the order of their turns."""

    def __init__(self, most: int, wait_ms: int) -> None:
        self.most = most
        self.wait_ms = wait_ms
        self.count = 0
        self.lanes: deque[_Lane] = deque()

    def oldest_ms(self, now_s: float) -> int:
        """Returns the wait of the oldest request in ms."""
        since_s = [lane.requests[0][1] for lane in tuple(self.lanes) if lane.requests]
        return round((now_s - min(since_s, default=now_s)) * 1_000)

    def lent_wait(self) -> Lent:
        """Returns the longest wait of its requests, as a setting."""
        return Lent(lambda: self.wait_ms, partial(setattr, self, "wait_ms"))


class _Lane:
    """The waiting requests of one connection and one kind, with arrival times and sizes in bytes."""

    def __init__(self, queued: Queued, kind: _Kind) -> None:
        self.queued = queued
        self.kind = kind
        self.requests: deque[tuple[Asked, float, int]] = deque()
        self.is_aside = False


class Queued:
    """The waiting requests of one connection; :class:`Processors` fills and empties it.

    Attributes:
        count: How many requests wait.
        waiting_bytes: How much they take.
    """

    def __init__(self, connection: Waits) -> None:
        self.connection = connection
        self.lanes: dict[_Kind, _Lane] = {}
        self.count = self.waiting_bytes = 0


class Processors:
    """The queues of one server. Its loop calls it.

    Args:
        loop: The loop, which serves waiting requests for one turn at a time.
        limits: Bound the waiting requests and their waits.
        complaints: Logs errors of clients.

    Attributes:
        count: How many requests wait.
    """

    def __init__(self, loop: Loop, limits: ServerLimits, complaints: Complaints) -> None:
        self._loop = loop
        self._limits = limits
        self._complaints = complaints
        self._sends = _Kind(limits.queued_sends, limits.send_wait_ms)
        self._pulls = _Kind(limits.queued_pulls, limits.pull_wait_ms)
        self._others = _Kind(limits.queued_others, limits.other_wait_ms)
        self._turns = deque((self._sends, self._pulls, self._others))
        self._waiting_bytes = 0
        self._each_s = _USUAL_S
        self._is_called = False
        self.count = 0

    @property
    def is_behind(self) -> bool:
        """Whether the waiting requests will take half of a send's longest wait; then reading stops."""
        return self.count * self._each_s * 2_000 >= self._sends.wait_ms

    def figures(self) -> dict[str, str]:
        """Returns the lengths and capacities of the queues and the oldest waits in ms, by RocketMQ's names.

        RocketMQ's pools have queues of their own; here pulls of all kinds share one queue, and so do all
        requests that are neither sends nor pulls.
        """
        kinds = {"send": self._sends, "pull": self._pulls, "litePull": self._pulls, "query": self._others}
        found: dict[str, str] = {}
        for name, kind in kinds.items():
            found[f"{name}ThreadPoolQueueSize"] = str(kind.count)
            found[f"{name}ThreadPoolQueueCapacity"] = str(kind.most)
            found[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = str(kind.oldest_ms(self._loop.time()))
        return found

    def waits(self) -> dict[str, Lent]:
        """Returns the longest waits of requests in ms, by RocketMQ's names."""
        kinds = {"Send": self._sends, "Pull": self._pulls, "AdminBroker": self._others}
        return {f"waitTimeMillsIn{name}Queue": kind.lent_wait() for name, kind in kinds.items()}

    def take(self, queued: Queued, asked: Asked) -> None:
        """Queues a request, or turns it away if too many wait.

        Args:
            queued: The waiting requests of its connection.
            asked: The request.
        """
        kind = self._kind_of(asked.request.code)
        body = asked.request.body
        size_bytes = _HEAD_BYTES + (len(body) if isinstance(body, bytes | memoryview) else 0)
        if kind.count >= kind.most or self._waiting_bytes + size_bytes > self._limits.all_queued_bytes:
            self._complaints.tell("overload", f"{self.count} requests wait: more are answered SYSTEM_BUSY")
            queued.connection.turn_away(asked, overload())
            return
        lane = queued.lanes.get(kind)
        if lane is None:
            lane = queued.lanes[kind] = _Lane(queued, kind)
        lane.requests.append((asked, self._loop.time(), size_bytes))
        self._count(lane, 1, size_bytes)
        if len(lane.requests) == 1:
            self._line_up(lane)

    def go_on(self, queued: Queued) -> None:
        """Gives a connection its turns again: its client has read, or has disconnected."""
        for lane in queued.lanes.values():
            if lane.is_aside:
                lane.is_aside = False
                self._line_up(lane)

    def drop(self) -> None:
        """Drops the waiting requests: the server has stopped."""
        for kind in self._turns:
            kind.lanes.clear()
        self.count = 0

    def _turn(self) -> None:
        """Serves waiting requests: a few of each kind in turn, and again until the turn is over."""
        self._is_called = False
        begin_s = now_s = self._loop.time()
        end_s, before = begin_s + self._limits.turn_ms / 1_000, self.count
        while now_s < end_s and any(kind.lanes for kind in self._turns):
            self._turns.rotate(-1)
            kind = self._turns[-1]
            if kind.lanes:
                now_s = self._serve_lane(kind, now_s, end_s)
        served = before - self.count
        if served:
            self._each_s += ((now_s - begin_s) / served - self._each_s) * _WEIGHT
        if any(kind.lanes for kind in self._turns):
            self._call()

    def _serve_lane(self, kind: _Kind, now_s: float, end_s: float) -> float:
        """Serves a few requests of the connection whose turn it is, and returns the time."""
        lane = kind.lanes.popleft()
        for _ in range(_AT_ONCE):
            if not lane.queued.connection.takes_answers:
                lane.is_aside = True
                return now_s
            self._serve(lane, now_s)
            now_s = self._loop.time()
            if not lane.requests:
                return now_s
            if now_s >= end_s:
                break
        kind.lanes.append(lane)
        return now_s

    def _serve(self, lane: _Lane, now_s: float) -> None:
        asked, since_s, size_bytes = lane.requests.popleft()
        self._count(lane, -1, -size_bytes)
        waited_ms, kind = round((now_s - since_s) * 1_000), lane.kind
        if waited_ms < kind.wait_ms:
            lane.queued.connection.serve(asked)
            return
        self._complaints.tell("late", f"requests that waited for {kind.wait_ms} ms are answered SYSTEM_BUSY")
        lane.queued.connection.turn_away(asked, late(waited_ms, kind.count))

    def _line_up(self, lane: _Lane) -> None:
        lane.kind.lanes.append(lane)
        self._call()

    def _call(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._turn)

    def _count(self, lane: _Lane, requests: int, size_bytes: int) -> None:
        lane.kind.count += requests
        self.count += requests
        lane.queued.count += requests
        self._waiting_bytes += size_bytes
        lane.queued.waiting_bytes += size_bytes

    def _kind_of(self, code: int) -> _Kind:
        if code in SENDS:
            return self._sends
        return self._pulls if code in PULLS else self._others


def overload() -> Response:
    """Returns the answer if too many requests wait already."""
    return _busy("[OVERLOAD]system busy, start flow control for a while")


def late(waited_ms: int, count: int) -> Response:
    """Returns the answer to a request that has waited for too long.

    Args:
        waited_ms: Its wait.
        count: The number of waiting requests of its kind.
    """
    return _busy(
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        f"period in queue: {waited_ms}ms, size of queue: {count}"
    )


def _busy(remark: str) -> Response:
    return refuse(ResponseCode.SYSTEM_BUSY, remark)
