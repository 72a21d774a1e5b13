"""Client: the part that producers and consumers of an application share, RocketMQ's ``MQClientInstance``.

    with make_client("127.0.0.1:9876") as client:
        producer = Producer(client, "shop")
        consumer = OrderlyConsumer(client, "billing", "orders", handle)

A client has one id, one link, one table of routes, and heartbeats for all of them. A producer or consumer
that is given an address or a broker makes a client of its own.

Only the home changes the state of a client: a thread with an event loop that all clients of the process
share, the loop of an application, or the virtual time of a broker.

Truth: memory only; brokers know a client by its heartbeats, and remove it two minutes after the last one.

Source: ``MQClientInstance.java startScheduledTask, sendHeartbeatToAllBroker, shutdown``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self

from typing_extensions import override

from seglog.arguments import as_number
from seglog.client.answers import Answers
from seglog.client.home.at_once import run_at_once
from seglog.client.home.flows import Bell, Flow, Steps, late, sleep, start, until
from seglog.client.home.home import Home
from seglog.client.home.waiting import Wait, await_for, check_may_wait, wait_beside, wait_here
from seglog.client.links.events import Connected, LinkEvent
from seglog.client.links.link import Link
from seglog.client.links.lookup import FIRST_LOOKUP_MS, LOOKUP_MS, Lookup
from seglog.client.links.troubles import Troubles
from seglog.client.member import Member, wait_to_leave
from seglog.client.routes import MASTER, REFRESH_MS, Routes
from seglog.clock import Clock
from seglog.closing import Closing
from seglog.errors import ClientClosedError, ConsumerError, SeglogError
from seglog.logs import logger
from seglog.remoting.client_headers import UnregisterClientHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.heartbeat import HeartbeatBody
from seglog.remoting.later import Deferred, is_loop_here

FIRST_ROUTES_MS: Final = 10
FIRST_HEARTBEAT_MS: Final = 1_000
HEARTBEAT_MS: Final = 30_000
"""``heartbeatBrokerInterval``."""
LINK_CLOSE_S: Final = 2.0
"""Longest wait for the end of connections, which may still have bytes to write."""

_log = logger(__name__)


class Client(Closing):
    """Connections, routes and timers of producers and consumers; use it in ``with`` or ``async with``.

    Args:
        link: The link to the brokers; closed with the client.
        home: The thread or loop that changes its state.

    Attributes:
        troubles: Limits how often failures are logged.
    """

    def __init__(self, link: Link, home: Home) -> None:
        self._link = link
        self._home = home
        self.routes = Routes(link, home.clock)
        self.troubles = Troubles(home.clock)
        self._members: dict[str, Member] = {}
        self._claims: dict[str, Member] = {}
        self._producers: dict[str, int] = {}
        self._flows: list[Flow[None]] = []
        self._last_steps: list[Callable[[], Steps[None]]] = []
        self._answers = Answers(link, home, self._members)
        self._beat_soon = Bell(home)
        self._has_member = Bell(home)
        self._released = Bell(home)
        self._is_closed = False
        self._is_ended = False
        self._closing: Deferred[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @override
    def __repr__(self) -> str:
        state = " closed" if self._is_closed else ""
        return f"<Client {self.client_id} of {len(self._members)} consumers{state}>"

    @property
    def client_id(self) -> str:
        """Its id at brokers."""
        return self._link.client_id

    @property
    def link(self) -> Link:
        """Its link to the brokers."""
        return self._link

    @property
    def is_in_process(self) -> bool:
        """Whether its broker is in this process, and so is ours."""
        return self._link.is_in_process

    @property
    def home(self) -> Home:
        """Where its state is changed."""
        return self._home

    @property
    def clock(self) -> Clock:
        """The clock of its timers."""
        return self._home.clock

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or is being closed."""
        return self._is_closed

    @property
    def is_over(self) -> bool:
        """Whether nothing can be sent any more: the client, or the broker in this process, was closed."""
        return self._link.is_over

    def check_open(self) -> None:
        """Raises if the client was closed; any thread may call it.

        Raises:
            ClientClosedError: It was closed.
        """
        if self._is_closed:
            raise ClientClosedError(f"client {self.client_id} was closed")

    def check_live(self) -> None:
        """Raises if answers can no longer arrive; any thread may call it.

        Raises:
            ClientClosedError: It was closed, or the broker in this process was, or its home is over.
        """
        self.check_open()
        self._check_home()
        if self.is_over:
            raise ClientClosedError(
                f"client {self.client_id}: the broker in this process was closed",
                help="open the broker again, and make new clients",
            )

    def _check_home(self) -> None:
        why_over = self._home.why_over
        if why_over is not None:
            raise ClientClosedError(f"client {self.client_id} runs nothing any more: {why_over}")

    def begin(self) -> None:
        """Starts the timed work, when the first user needs it; called on its home."""
        if not self._flows and not self._is_closed:
            keepers = [(self._keep_routes(), "refresh of routes"), (self._keep_beating(), "heartbeats")]
            lookup = self._link.lookup
            if lookup is not None:
                lookup.look()  # first: a failure is reported by the requests for routes
                keepers.append((self._keep_looking(lookup), "addresses of name servers"))
            for steps, name in keepers:
                self._flows.append(start(self._home, steps, f"{name} of client {self.client_id}"))

    # Producers and consumers

    def add_producer(self, group: str) -> None:
        """Adds a producer group to heartbeats; any thread may call it."""
        self.check_open()
        self._producers[group] = self._producers.get(group, 0) + 1
        self._home.post(self.begin)

    def remove_producer(self, group: str) -> None:
        """Removes a producer group from heartbeats unless another producer has it; any thread may call it."""
        left = self._producers.get(group, 0) - 1
        if left > 0:
            self._producers[group] = left
        elif self._producers.pop(group, None) is not None and not self._is_closed:
            farewell = late(partial(self._unregister, producer=group))
            start(self._home, farewell, f"farewell of producer group {group}")

    def claim(self, member: Member) -> None:
        """Reserves a group for a consumer that is about to start; any thread may call it.

        Raises:
            ConsumerError: Another consumer has it: brokers know a group's members by client id.
            ClientClosedError: The client was closed, or its home is over.
        """
        self.check_open()
        self._check_home()
        if self._claims.setdefault(member.group, member) is not member:
            raise self._taken(member.group)

    def release(self, member: Member) -> None:
        """Releases a group reserved by :meth:`claim`."""
        if self._claims.get(member.group) is member:
            del self._claims[member.group]
            self._released.ring()

    def add_member(self, member: Member) -> None:
        """Adds a consumer; called on its home."""
        self.check_open()
        self.claim(member)
        self._members[member.group] = member
        self._has_member.ring()
        self.begin()

    def check_free(self, group: str) -> None:
        """Refuses a second consumer of a group, before it is started.

        Raises:
            ConsumerError: As :meth:`claim`.
        """
        if group in self._claims:
            raise self._taken(group)

    async def remove_member(self, member: Member) -> None:
        """Notifies the brokers that a consumer left its group, which stays reserved until it is released."""
        if self._members.get(member.group) is member:
            del self._members[member.group]
            await self._unregister(consumer=member.group)

    def at_end(self, step: Callable[[], Steps[None]]) -> None:
        """Registers work for the client's end: after its consumers have left, before its link is closed.

        Args:
            step: Makes the coroutine, which runs on the client's home and takes no longer than some requests.
        """
        self._last_steps.append(step)

    def not_at_end(self, step: Callable[[], Steps[None]]) -> None:
        """Removes such work."""
        with suppress(ValueError):
            self._last_steps.remove(step)

    # Notices and requests of brokers; any thread

    def on_notice(self, request: Request) -> None:
        """Takes what a broker says unasked."""
        self._answers.on_notice(request)

    def on_event(self, event: LinkEvent) -> None:
        """Handles a connection made or lost: a broker that is back needs a heartbeat."""
        is_back = isinstance(event, Connected)
        self._home.post(partial(self._doubt, event.address, is_back=is_back))
        if is_back:
            self._home.post(self.beat_soon)

    def _doubt(self, address: str, *, is_back: bool) -> None:
        """Notes in consumers that the broker of a connection may have lost their offsets."""
        names = {name for name, known in self.routes.brokers().items() if address in known.values()}
        for member in list(self._members.values()) if names else ():
            member.doubt(names, are_back=is_back)

    def on_request(self, request: Request) -> Response | Deferred[Response]:
        """Answers what a broker asks."""
        return self._answers.on_request(request)

    # Timed work

    async def _keep_looking(self, lookup: Lookup) -> None:
        """Asks for the addresses of name servers periodically, since they may change."""
        await sleep(self._home, FIRST_LOOKUP_MS)
        while not self.is_over:
            next_ms = self.clock.monotonic_ms() + LOOKUP_MS
            try:
                await until(lookup.look())
            except SeglogError as error:
                level = self.troubles.seldom("addresses of name servers")  # it is logged nowhere else
                _log.log(level, "the name servers stay as they were: %s", error)
            await sleep(self._home, max(0.0, next_ms - self.clock.monotonic_ms()))

    async def _keep_routes(self) -> None:
        await sleep(self._home, FIRST_ROUTES_MS)
        while True:
            # Producers request an old route themselves: without consumers there is nothing to do.
            if not self._members:
                await self._has_member.wait()
            if self.is_over:
                return
            await self.refresh_routes()
            await sleep(self._home, REFRESH_MS)

    async def refresh_routes(self) -> None:
        """Asks for the route of each topic that is known or subscribed to."""
        subscribed = {topic for member in self._members.values() for topic in member.topics}
        for topic in sorted(subscribed.union(self.routes.topics)):
            before = self.routes.known_to_read(topic)
            try:
                await self.routes.refresh(topic)
            except SeglogError as error:
                level = self.troubles.level(f"route of {topic}", error)
                _log.log(level, "the route of topic %s stays as it was: %s", topic, error)
            if self.routes.known_to_read(topic) != before:
                for member in list(self._members.values()):
                    if topic in member.topics:
                        member.look_again()

    async def _keep_beating(self) -> None:
        await sleep(self._home, FIRST_HEARTBEAT_MS)
        while not self.is_over:
            await self.beat()
            await self._beat_soon.wait(HEARTBEAT_MS)

    async def beat(self) -> None:
        """Sends a heartbeat to each broker; slaves get only the consumers."""
        body = HeartbeatBody(
            self.client_id,
            tuple(sorted(self._producers)),
            tuple(member.heartbeat() for member in self._members.values()),
        )
        if body.producer_groups or body.consumers:
            await self._tell_brokers(
                Request(RequestCode.HEART_BEAT, body=body), to_slaves=bool(body.consumers)
            )

    def beat_soon(self) -> None:
        """Requests a heartbeat now: a broker has answered that it does not know this client."""
        self._beat_soon.ring()

    async def _unregister(self, *, producer: str | None = None, consumer: str | None = None) -> None:
        header = UnregisterClientHeader(self.client_id, producer, consumer)
        await self._tell_brokers(Request(RequestCode.UNREGISTER_CLIENT, header), to_slaves=True)

    async def _tell_brokers(self, request: Request, *, to_slaves: bool) -> None:
        asked: list[tuple[str, Deferred[Response]]] = []
        for addresses in self.routes.brokers().values():
            for broker_id, address in addresses.items():
                if to_slaves or broker_id == MASTER:
                    asked.append((address, self._link.ask(request, to=address)))
        for address, answer in asked:
            try:
                response = await until(answer)
            except SeglogError as error:
                _log.log(
                    self.troubles.level(f"heartbeat to {address}", error),
                    "broker %s does not hear of client %s: %s",
                    address,
                    self.client_id,
                    error,
                )
            else:
                if response.code is not ResponseCode.SUCCESS:
                    _log.warning("broker %s refuses: %s", address, response.remark or response.code.name)

    # Its end

    @override
    def close(self, timeout_s: float | None = None) -> None:
        """Closes its consumers and producers, unregisters from the brokers, and closes the link.

        A second call does nothing.

        Args:
            timeout_s: Longest wait for running listeners; None for no limit. The link is closed in any case;
                if an orderly listener still runs in a thread, the link is kept for its result, for a minute
                at most.

        Raises:
            TimeoutError: A listener ran for longer; the error names its messages.
            SeglogError: The last offsets of a consumer cannot be written; all is closed.
            ConsumerError: A listener that it would wait for calls it, see ``Consumer.close``. Nothing is
                closed.
            InvalidArgumentError: An event loop runs the caller, and it has consumers or connections. Nothing
                is closed.
        """
        self.check_end(timeout_s, is_awaited=False)
        run_at_once(self.end(timeout_s, wait_here, is_awaited=False))

    async def aclose(self, timeout_s: float | None = None) -> None:
        """Closes it as :meth:`close` does, awaited; the only way in the event loop that is its home.

        Cancelling the task ends the wait early: the link is closed. After its loop was closed only its
        sockets are closed: brokers see the end of the connections.

        Args:
            timeout_s: As for :meth:`close`.

        Raises:
            TimeoutError: As :meth:`close`.
            ConsumerError: Likewise.
        """
        self.check_end(timeout_s, is_awaited=True)
        await self.end(timeout_s, await_for, is_awaited=True)

    def check_end(self, timeout_s: float | None, *, is_awaited: bool, face: str | None = None) -> None:
        """Refuses a close that the caller could never finish waiting for, before anything is closed.

        Args:
            timeout_s: As for :meth:`close`.
            is_awaited: Whether the caller awaits it.
            face: The class of the closed object, for the error; with the prefix Async it is the class for
                event loops.

        Raises:
            ConsumerError: As :meth:`close`.
            InvalidArgumentError: Likewise.
        """
        if timeout_s is not None:
            timeout_s = as_number("timeout_s", timeout_s)
        if self._is_ended or self._home.why_over is not None or self._is_of_producers:
            return
        for member in list(self._members.values()):
            member.refuse_from_inside("close() of its client", is_bounded=timeout_s is not None)
        check_may_wait(self._home, is_awaited=is_awaited, face=face)

    async def end(self, timeout_s: float | None, wait: Wait, *, is_awaited: bool) -> None:
        """Closes as :meth:`close` does, for either face, after :meth:`check_end`.

        Args:
            timeout_s: As for :meth:`close`.
            wait: How the caller waits.
            is_awaited: Whether it awaits.
        """
        if self._is_ended:
            return
        if self._is_of_producers and not is_awaited and (self._home.is_here() or is_loop_here()):
            self._is_closed = self._is_ended = True
            wait_beside(self._home, start(self._home, self._end_alone(), f"end of client {self.client_id}"))
            return
        members = list(self._members.values())
        try:
            if self._home.why_over is None:
                await wait_to_leave(wait, self._home, self.leave(), members, timeout_s)
        finally:
            self._is_ended = True
            late_ms = max((late.late_ms for late in list(self._claims.values())), default=0)
            if self._home.why_over is not None:
                for member in members:
                    member.end_listeners()
                self._link.close()
            elif late_ms and not is_awaited:
                start(self._home, self._close_late(late_ms), f"late close of client {self.client_id}")
            else:
                self._link.close()
                if is_awaited:  # in a thread the close of the link has waited already
                    with suppress(TimeoutError):
                        await wait(self._home, self._link.closed, LINK_CLOSE_S)

    @property
    def _is_of_producers(self) -> bool:
        """Whether its broker is in this process, and it has no consumer: any loop may run its end."""
        return self.is_in_process and not self._members and not self._claims

    async def _end_alone(self) -> None:
        await until(self.leave())
        self._link.close()

    def hang_up(self) -> None:
        """Ends it without notifying the brokers, which see the connections end; called on its home."""
        self._is_closed = self._is_ended = True
        for flow in self._flows:
            flow.stop()
        self._link.close()

    def leave(self) -> Deferred[None]:
        """Begins to close all members, and returns a deferred that is resolved when that is done."""
        if self._closing is None:
            self._closing = start(self._home, self._leave(), f"close of client {self.client_id}")
        return self._closing

    async def _leave(self) -> None:
        self._is_closed = True
        leaving = [start(self._home, one.leave(), f"close of {one.group}") for one in self._members.values()]
        for flow in leaving:
            await until(flow)
        for step in tuple(self._last_steps):
            await step()
        for group in sorted(self._producers):
            await self._unregister(producer=group)
        self._producers.clear()
        for flow in self._flows:
            flow.stop()

    async def _close_late(self, late_ms: float) -> None:
        """Keeps the link for running listeners, as long as their results count."""
        end_ms = self.clock.monotonic_ms() + late_ms
        while self._claims and await self._released.wait(max(0.0, end_ms - self.clock.monotonic_ms())):
            pass
        self._link.close()

    def _taken(self, group: str) -> ConsumerError:
        return ConsumerError(
            f"client {self.client_id} has a consumer of group {group} already",
            help="make the second one from a Client of its own, or give it another group",
        )
