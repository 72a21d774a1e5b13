"""The common base of both faces of a polled consumer."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection
from datetime import datetime
from typing import ClassVar, Final, Generic, Literal, TypeVar, Unpack, cast

from seglog.arguments import as_int, as_number, as_text, refusal
from seglog.client.connect import Target, client_for
from seglog.client.home import VirtualHome, start
from seglog.consumer.listener import M
from seglog.consumer.lite.handing import Handing
from seglog.consumer.lite.lite_member import LiteMember, Place
from seglog.consumer.member_parts import MemberParts, as_queue, offsets_of
from seglog.consumer.options import OF_POLLS, OptionsOf
from seglog.consumer.settings import MOST_IN_ALL, ConsumerSettings, LiteOptions, Wanted, subscriptions_of
from seglog.errors import ClientClosedError, ConsumerError
from seglog.other_names import OF_POLL_CALLS, OF_POLLING
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import Subscription
from seglog.storage.format.names import check_client_topic

LOOK_MS: Final = 1_000
"""How often a waiting poll checks that its broker is open: a broker in process does not announce its end."""
POLL_S: Final = 5.0
"""``pollTimeoutMillis``."""
_PLACE: Final = 'an offset, "begin", "end" or a datetime'
R = TypeVar("R")
_MAX_OFFSET: Final = (1 << 63) - 1


class LiteParts(MemberParts, Generic[M]):
    """One polled member of a consumer group, of either face.

    Args:
        target: A broker in this process, the address of a name server, or a Client that is shared.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, ``TagA || TagB``, or
            ``Subscription.by_sql("price > 5")``; None where that is said by ``subscribe()``, or the queues
            by ``assign()``.
        decode: Makes of a body what the message has as ``value``: ``json.loads``, say. Where it raises, so
            does ``value``, and the message is polled all the same. None for messages without ``value``.
        options: Settings, see :class:`~seglog.consumer.settings.ConsumerSettings`.

    Raises:
        InvalidNameError: The group's name is not valid.
        InvalidArgumentError: A subscription names no tag, or a setting is out of its bounds.
        ConsumerError: The client has a consumer of the group already.
        InvalidArgumentError: Or no event loop runs, for a consumer with awaited calls.
    """

    _elsewhere = OF_POLLING
    _arguments_elsewhere = OF_POLL_CALLS
    _use: ClassVar[str] = "poll()"
    _goes_on_alone: ClassVar[bool] = False
    _options: ClassVar[OptionsOf] = OF_POLLS
    _member: LiteMember

    def __init__(
        self,
        target: Target,
        group: str,
        subscription: Wanted | None = None,
        *,
        decode: Callable[[bytes], object] | None = None,
        **options: Unpack[LiteOptions],
    ) -> None:
        """Makes the consumer; the help of its class explains each argument and each setting."""
        wanted = {} if subscription is None else subscriptions_of(subscription)
        given: LiteOptions = {"max_cached_all": MOST_IN_ALL, **options}
        self._settings = settings = ConsumerSettings(group, wanted, decode=decode, **given)
        client, is_own = client_for(target, in_loop=self._is_awaited, keeps_its_name=settings.is_broadcasting)
        client.check_free(group)
        self._handing = Handing(client, settings)
        member = LiteMember(client, settings, offsets_of(client, settings), self._handing)
        self._set_up(target, client, member, is_own=is_own)
        self._how: Literal["subscribe()", "assign()"] | None = "subscribe()" if wanted else None
        self._polling = _Polling()

    @property
    def assignment(self) -> tuple[MessageQueue, ...]:
        """The queues of the consumer, in order: its share, or those given to :meth:`assign`."""
        return self.queues

    async def _subscribe(self, topic: str, wanted: str | Subscription) -> None:
        self._check_open()
        self._refuse_both("subscribe()")
        found = subscriptions_of({as_text("topic", topic): wanted})[topic]
        self._check_may_wait()
        self._how = "subscribe()"
        await self._ask(self._member.subscribe(topic, found), f"subscription to {topic}")

    async def _queues_of(self, topic: str) -> tuple[MessageQueue, ...]:
        self._check_open()
        known = check_client_topic(topic)
        self._check_may_wait()
        return await self._ask(self._member.queues_of(known), f"a question of the queues of {topic}")

    async def _unsubscribe(self, topic: str) -> None:
        self._check_open()
        self._check_may_wait()
        steps = self._member.unsubscribe(check_client_topic(topic))
        await self._wait(self._home, start(self._home, steps, f"end of the subscription to {topic}"))

    async def _assign(self, queues: Collection[MessageQueue]) -> None:
        self._check_open()
        self._refuse_both("assign()")
        wanted = _queues(queues)
        self._refuse_in_loop()
        self._check_may_wait()
        await self._ask(self._member.check_there(wanted), "a check of queues")
        self._how = "assign()"
        await self._wait(self._home, start(self._home, self._member.assign(wanted), "an assignment"))
        await self._begin()

    async def _poll(self, timeout_s: float, count: int | None) -> list[M]:
        timeout_s = as_number("timeout_s", timeout_s)
        most = self._settings.pull_count if count is None else as_int("count", count, 1, 1_024)
        until_ms = self._home.clock.monotonic_ms() + 1_000 * timeout_s
        self._check_open()
        with self._alone("poll()"):
            try:
                await self._begin(until_ms)
            except TimeoutError:
                if isinstance(self._home, VirtualHome):
                    raise
                return []
            self._handing.end_loop()
            self._member.done_with_given()
            polled = await self._until(until_ms, lambda: self._handing.take(most)) or []
            return cast("list[M]", polled)  # M is the type that decode gives, or Message without it

    def _open_loop(self) -> None:
        """Begins a loop, with the message at which the last loop was left."""
        self._check_open()
        with self._alone("a loop"):
            self._handing.end_loop()

    async def _next_of_loop(self) -> M | None:
        """Returns the next message, None if the loop ends; the one before is done."""
        with self._alone("a loop"):
            count = self._settings.pull_count
            if self._beginning is None:
                await self._begin()
            self._member.make_room()
            found = await self._until(None, lambda: self._handing.next_of_loop(count))
            return cast("M | None", found)  # as for polls

    async def _until(self, until_ms: float | None, take: Callable[[], R | None]) -> R | None:
        """Waits until ``take`` returns a result, and returns it; None after the timeout or a close."""
        home = self._home
        while not self._is_closed:
            self._client.check_live()
            if isinstance(home, VirtualHome):
                home.run_due()
            found = take()
            if found or isinstance(home, VirtualHome):
                return found
            if until_ms is not None and until_ms <= home.clock.monotonic_ms():
                return None
            left_ms = math.inf if until_ms is None else until_ms - home.clock.monotonic_ms()
            left_ms = min(left_ms, LOOK_MS)
            waiting = start(home, self._member.wait_for_messages(left_ms), "a poll")
            try:
                await self._wait(home, waiting)
            finally:
                home.post(waiting.stop)
        return None

    async def _seek(self, queue: MessageQueue, place: Place) -> int:
        as_queue("queue", queue)
        _check_place(place)
        self._check_open()
        await self._begin()
        return await self._ask(self._member.seek(queue, place), f"a seek of {queue}")

    async def _pause(self, queues: Collection[MessageQueue], *, is_paused: bool) -> None:
        self._check_open()
        self._member.pause(_queues(queues), is_paused=is_paused)

    async def _commit_polled(self) -> None:
        self._check_open()
        self._check_may_wait()
        self._client.check_live()
        with self._alone("commit()"):
            await self._wait(self._home, await self._ask(self._member.commit_given(), "commit"))

    async def _begin(self, until_ms: float | None = None) -> None:
        """Joins the group if it has not joined, and waits for that until a moment.

        Raises:
            TimeoutError: It takes longer; joining continues.
        """
        if self._beginning is None:
            self._refuse_in_loop()
        self._check_may_wait()
        if self._beginning is None:
            try:
                await self._start(until_ms)
            except ConsumerError:
                if self._beginning is None:  # else another thread has begun it meanwhile
                    raise
        if self._beginning is not None and not self._beginning.is_done:
            await self._wait(self._home, self._beginning, self._left_s(until_ms))

    def _refuse_both(self, call: Literal["subscribe()", "assign()"]) -> None:
        if self._how not in (None, call):
            raise ConsumerError(
                f"the consumer of group {self.group} has its queues by {self._how}, and not by {call} too",
                help="make another consumer: one shares queues with its group, or is told which it has",
            )

    def _alone(self, call: str) -> _Polling:
        """Refuses a second thread or task: its poll would mark the messages of the first as done.

        A forked child is refused too: it has copies of pulled messages, which the parent consumes.

        Returns:
            What the caller enters at once; the next may poll once it leaves that.
        """
        if self._home.why_over is not None:
            raise ClientClosedError(f"{call} of a consumer of group {self.group}: {self._home.why_over}")
        if not self._polling.begin():
            raise ConsumerError(
                f"{call} of a consumer of group {self.group} in which another thread or task is",
                help="poll in one place, and hand messages on from there; or make more consumers",
            )
        return self._polling


class _Polling:
    """The turn of the one thread or task that polls; a block that is entered for each poll."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Takes the turn; returns whether no other has it. The caller enters the block at once."""
        return self._lock.acquire(blocking=False)

    def __enter__(self) -> None: ...

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


def _check_place(place: Place) -> None:
    if isinstance(place, datetime):
        try:
            place.timestamp()
        except (ValueError, OverflowError) as error:
            raise refusal("place", place, f"{_PLACE} that this machine's clock can show ({error})") from None
    elif place not in ("begin", "end"):
        if isinstance(place, bool) or not isinstance(place, int):
            raise refusal("place", place, _PLACE)
        as_int("place", place, 0, _MAX_OFFSET)


def _queues(queues: Collection[MessageQueue]) -> tuple[MessageQueue, ...]:
    if isinstance(queues, MessageQueue | str) or not isinstance(queues, Collection):
        is_one = isinstance(queues, MessageQueue)
        advice = "give a list, of one queue too: [queue]" if is_one else None
        raise refusal("queues", queues, "a list of MessageQueue", advice)
    return tuple(sorted(as_queue("queues", queue) for queue in queues))
