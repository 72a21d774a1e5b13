"""What a client needs of the consumers that are in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from seglog.remoting.heartbeat import ConsumedDirectlyBody, ConsumerData, RunningInfoBody
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message


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

    async def leave(self) -> None:
        """Ends it: no new work, then commits and gives its queues back."""


def late_error(error: TimeoutError, members: Iterable[Member]) -> TimeoutError:
    """Returns what a close fails with that took too long: it says what listeners are at.

    Args:
        error: Of the wait.
        members: Those that were to end.
    """
    at_work = [f"{member.group}: {what}" for member in members for what in member.at_work()]
    return TimeoutError(f"{error}; listeners are at work still: {'; '.join(at_work) or 'none'}")
