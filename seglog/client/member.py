"""The interface between a client and its consumers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from seglog.client.home import Home, Wait, start
from seglog.errors import SeglogError
from seglog.remoting.heartbeat import ConsumedDirectlyBody, ConsumerData, RunningInfoBody
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message

CANCELLED_S: Final = 1.0
"""Longest time of a cancelled listener to end."""
FAREWELL_S: Final = 3.0
"""Longest time for requests to brokers at the end of a client, besides that of its listeners."""


class Member(Protocol):
    """A consumer, from the side of its client; all calls are made on the client's home and return at once.

    Attributes:
        unwritten: Why its last offsets could not be written when it left; None if they are.
    """

    unwritten: SeglogError | None

    @property
    def group(self) -> str:
        """Its group."""

    @property
    def topics(self) -> Iterable[str]:
        """Its topics, including its retry topic."""

    def heartbeat(self) -> ConsumerData:
        """Returns its data for heartbeats."""

    def look_again(self) -> None:
        """Requests a rebalance: its group, or a route, has changed."""

    def taken(self, queue: MessageQueue) -> None:
        """Gives no more of a queue that another member has begun in; any thread may call it."""

    def doubt(self, broker_names: Collection[str], *, are_back: bool) -> None:
        """Notes that brokers may have lost its offsets: a connection to them was lost or restored."""

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns its offsets in its queues of a topic."""

    def running_info(self) -> RunningInfoBody:
        """Returns its running info."""

    def reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Moves it to other offsets in queues of a topic; queues that it does not have are ignored."""

    async def consume_directly(self, message: Message, broker_name: str) -> ConsumedDirectlyBody:
        """Gives a message to its listener, whichever queue it is of; commits nothing."""

    def at_work(self) -> Sequence[str]:
        """Returns the messages that listeners are processing, for errors."""

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of its own listener that would wait for that; any thread may call it.

        Args:
            call: What was called, for the error.
            is_bounded: Whether the caller waits with a timeout, and then leaves the listener to itself.

        Raises:
            ConsumerError: The caller is its listener.
        """

    @property
    def late_ms(self) -> float:
        """How long, in ms, a listener's result after the end still counts; 0 if it does not."""

    def end_listeners(self) -> bool:
        """Stops calls of listeners, and ends their threads; any thread may call it.

        Returns:
            Whether running work was cancelled, so that it ends soon.
        """

    async def leave(self) -> None:
        """Ends it: starts no new work, then commits and releases its queues."""

    async def cut_short(self) -> None:
        """Leaves the group while listeners still run; other finished messages are committed."""


async def wait_to_leave(
    wait: Wait,
    home: Home,
    leaving: Deferred[None],
    members: Collection[Member],
    timeout_s: float | None,
) -> None:
    """Waits for consumers to end, and ends their pools in any case.

    Args:
        wait: Waits.
        home: The home of their client.
        leaving: Resolved when they have ended.
        members: The consumers.
        timeout_s: The longest wait for their listeners; after it the remaining work may take as long as a
            broker's answer.

    Raises:
        TimeoutError: It took longer; the error names the messages of listeners. All finished messages are
            committed, no further ones begin, and other members of their groups take over.
        SeglogError: They have ended, but the last offsets of one could not be written, for lack of space say.
    """
    try:
        await _wait_for_listeners(wait, home, leaving, members, timeout_s)
    finally:
        were_cancelled = [member.end_listeners() for member in members]
        if any(were_cancelled):
            with suppress(TimeoutError):  # an error is being raised already
                await wait(home, leaving, CANCELLED_S)
    for member in members:
        if member.unwritten is not None:
            raise member.unwritten


async def _wait_for_listeners(
    wait: Wait,
    home: Home,
    leaving: Deferred[None],
    members: Collection[Member],
    timeout_s: float | None,
) -> None:
    try:
        await wait(home, leaving, timeout_s)
    except TimeoutError as error:
        cut = [start(home, member.cut_short(), f"cut of group {member.group}") for member in members]
        with suppress(TimeoutError):  # brokers have not answered
            for each in cut:
                await wait(home, each, FAREWELL_S)
        _raise_if_at_work(error, members)
    else:
        return
    try:
        await wait(home, leaving, FAREWELL_S)
    except TimeoutError as error:
        _raise_if_at_work(error, members)  # a listener may have begun just before the end
        raise TimeoutError(f"{error}; no listener is at work, brokers have not answered yet") from error


def _raise_if_at_work(error: TimeoutError, members: Iterable[Member]) -> None:
    at_work = [f"{member.group}: {what}" for member in members for what in member.at_work()]
    if at_work:
        raise TimeoutError(f"{error}; listeners are at work still: {'; '.join(at_work)}") from error
