"""Requests that wait for their turn: a bounded queue for each kind, and in it a lane for each connection.

A broker of RocketMQ has a pool of threads and a queue for each kind of request. Here is one thread: it serves
the kinds in turn, and in a kind the connections in turn, a few requests each, so that neither a flood of
sends nor one greedy client makes the others wait. What keeps clients in their groups does not wait at all.

A request that has waited for longer than its kind may is answered SYSTEM_BUSY, and is not carried out: its
client is about to give up, and would do it again. So that it does not come to that while all goes well, a
connection is not read from where what waits will take half of that time.

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
"""What is served as soon as it is read: without it a client loses its share, its locks or its progress."""
PULLS: Final = frozenset((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE))
_HEAD_BYTES: Final = 512
"""What a request takes beside its body, roughly."""
_AT_ONCE: Final = 16
"""Requests of a connection that are served in one go: their answers share a write."""
_USUAL_S: Final = 0.000_1
"""What a request takes, until that is known."""
_WEIGHT: Final = 0.2
"""Of the last turn, in what a request is known to take."""


class Loop(Protocol):
    """What of an event loop is needed here."""

    def time(self) -> float:
        """Returns the time in seconds; it never goes back."""

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Calls something in its next turn."""


class Waits(Protocol):
    """A connection whose requests wait."""

    @property
    def takes_answers(self) -> bool:
        """Whether its client reads what it gets; until then none of its requests has a turn."""

    def serve(self, asked: Asked) -> None:
        """Has one carried out."""

    def turn_away(self, asked: Asked, answer: Response) -> None:
        """Answers one that is not carried out."""


class _Kind:
    """A kind of request, and the lanes of it that are not empty, in the order of their turns."""

    def __init__(self, most: int, wait_ms: int) -> None:
        self.most = most
        self.wait_ms = wait_ms
        self.count = 0
        self.lanes: deque[_Lane] = deque()

    def oldest_ms(self, now_s: float) -> int:
        """Returns how long the request has waited that came first."""
        since_s = [lane.requests[0][1] for lane in tuple(self.lanes) if lane.requests]
        return round((now_s - min(since_s, default=now_s)) * 1_000)

    def lent_wait(self) -> Lent:
        """Returns how long its requests may wait, as a setting."""
        return Lent(lambda: self.wait_ms, partial(setattr, self, "wait_ms"))


class _Lane:
    """What waits of one connection and one kind: requests, since when, and their sizes in bytes."""

    def __init__(self, queued: Queued, kind: _Kind) -> None:
        self.queued = queued
        self.kind = kind
        self.requests: deque[tuple[Asked, float, int]] = deque()
        self.is_aside = False


class Queued:
    """What waits of one connection; :class:`Processors` fills and empties it.

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
        loop: The loop, which serves what waits for a turn at a time.
        limits: How much may wait, and for how long.
        complaints: What is logged of clients.

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
        """Whether what waits will take half of what a send may wait: no more of it is to be read."""
        return self.count * self._each_s * 2_000 >= self._sends.wait_ms

    def figures(self) -> dict[str, str]:
        """Returns how many requests wait, may wait, and how many ms the oldest has, by RocketMQ's names.

        Its pools have queues of their own; here pulls of all kinds share one, and so does what is neither a
        send nor a pull.
        """
        kinds = {"send": self._sends, "pull": self._pulls, "litePull": self._pulls, "query": self._others}
        found: dict[str, str] = {}
        for name, kind in kinds.items():
            found[f"{name}ThreadPoolQueueSize"] = str(kind.count)
            found[f"{name}ThreadPoolQueueCapacity"] = str(kind.most)
            found[f"{name}ThreadPoolQueueHeadWaitTimeMills"] = str(kind.oldest_ms(self._loop.time()))
        return found

    def waits(self) -> dict[str, Lent]:
        """Returns how many milliseconds requests may wait for their turn, by RocketMQ's name of that."""
        kinds = {"Send": self._sends, "Pull": self._pulls, "AdminBroker": self._others}
        return {f"waitTimeMillsIn{name}Queue": kind.lent_wait() for name, kind in kinds.items()}

    def take(self, queued: Queued, asked: Asked) -> None:
        """Has a request wait, or turns it away where too many do.

        Args:
            queued: What waits of its connection.
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
        """Gives a connection its turns again: its client has read, or has gone."""
        for lane in queued.lanes.values():
            if lane.is_aside:
                lane.is_aside = False
                self._line_up(lane)

    def drop(self) -> None:
        """Forgets what waits: the server has stopped."""
        for kind in self._turns:
            kind.lanes.clear()
        self.count = 0

    def _turn(self) -> None:
        """Serves what waits: a few of each kind in turn, and again until the turn is over."""
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
    """Returns what a client gets where too much waits already."""
    return _busy("[OVERLOAD]system busy, start flow control for a while")


def late(waited_ms: int, count: int) -> Response:
    """Returns what a client gets whose request has waited for too long.

    Args:
        waited_ms: How long it has waited.
        count: How many of its kind wait.
    """
    return _busy(
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        f"period in queue: {waited_ms}ms, size of queue: {count}"
    )


def _busy(remark: str) -> Response:
    return refuse(ResponseCode.SYSTEM_BUSY, remark)
