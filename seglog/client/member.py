"""What a client needs of the consumers that are in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from seglog.client.home import Home, Wait, start
from seglog.remoting.heartbeat import ConsumedDirectlyBody, ConsumerData, RunningInfoBody
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message

CANCELLED_S: Final = 1.0
"""How long a listener that was cancelled may take to end."""
FAREWELL_S: Final = 3.0
"""How long brokers may take to hear that a client ends, beside the time of its listeners: as one request."""


class Member(Protocol):
    """A consumer as its client sees it; all calls come on the client's home and return at once."""

    @property
    def group(self) -> str:
        """Its group."""

    @property
    def topics(self) -> Iterable[str]:
        """What it subscribes to, its retry topic included."""

    def heartbeat(self) -> ConsumerData:
        """Returns what it says of itself in heartbeats."""

    def look_again(self) -> None:
        """Has it share the queues anew: its group, or a route, has changed."""

    def doubt(self, broker_names: Collection[str], *, are_back: bool) -> None:
        """Has it not rely on what brokers had of it: a connection to them was lost, or made once more."""

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns how far it is in the queues of a topic that it has."""

    def running_info(self) -> RunningInfoBody:
        """Returns how it runs."""

    def reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Has it go on elsewhere in queues of a topic; those that it does not have are passed."""

    async def consume_directly(self, message: Message, broker_name: str) -> ConsumedDirectlyBody:
        """Gives a message to its listener, wherever its queue is; nothing is committed by it."""

    def at_work(self) -> Sequence[str]:
        """Returns what listeners have now, for errors."""

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of its own listener that would wait for that; any thread may call it.

        Args:
            call: What was called, for the error.
            is_bounded: Whether the caller waits for a time only, and leaves the listener to itself then.

        Raises:
            ConsumerError: Its listener is what calls.
        """

    @property
    def late_ms(self) -> float:
        """For how long what a listener brings after the end still counts; 0 where it does not."""

    def end_listeners(self) -> bool:
        """Has no listener called any more, and its threads end; any thread may call it.

        Returns:
            Whether what is at work was cancelled, so that it ends soon.
        """

    async def leave(self) -> None:
        """Ends it: no new work, then commits and gives its queues back."""

    async def cut_short(self) -> None:
        """Has it leave its group while listeners are at work still; what is done beside that is committed."""


async def wait_to_leave(
    wait: Wait,
    home: Home,
    leaving: Deferred[None],
    members: Collection[Member],
    timeout_s: float | None,
) -> None:
    """Waits for consumers to end, and ends their pools in any case.

    Args:
        wait: How.
        home: Of their client.
        leaving: Comes once they have ended.
        members: The consumers.
        timeout_s: How long their listeners may take; what is left then is waited for, as long as a broker
            may take to answer.

    Raises:
        TimeoutError: It took longer; the error says what listeners are at. All that they were done with is
            committed, they begin nothing more, and other members of their groups take over.
    """
    try:
        await _wait_for_listeners(wait, home, leaving, members, timeout_s)
    finally:
        were_cancelled = [member.end_listeners() for member in members]
        if any(were_cancelled):
            with suppress(TimeoutError):  # there is an error already
                await wait(home, leaving, CANCELLED_S)


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
        _raise_if_at_work(error, members)  # one has begun a moment before it was told to end
        raise TimeoutError(f"{error}; no listener is at work, brokers have not answered yet") from error


def _raise_if_at_work(error: TimeoutError, members: Iterable[Member]) -> None:
    at_work = [f"{member.group}: {what}" for member in members for what in member.at_work()]
    if at_work:
        raise TimeoutError(f"{error}; listeners are at work still: {'; '.join(at_work)}") from error
