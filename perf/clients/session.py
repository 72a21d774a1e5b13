"""A client that has its connections, and does a piece of work as often as it is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from perf.clients.work import Kind, Work
from perf.figures.sample import check


class Session(Protocol):
    """A client at one piece of work."""

    def do(self) -> float:
        """Does it, and returns the seconds from the first message to the last."""

    def check(self) -> None:
        """Ends the begun work, and checks it.

        Raises:
            SanityError: It did not do what was asked.
        """

    def close(self) -> None:
        """Closes the client."""


def send_all(work: Work, send: Callable[[int], None]) -> float:
    """Sends the messages of a piece of work: from one thread, or from many; returns the seconds.

    Args:
        work: How many, and how.
        send: Sends the message of a number, and returns once it is stored.
    """
    begun_s = time.perf_counter()
    if work.kind is Kind.SEND:
        for number in range(work.messages):
            send(number)
        return time.perf_counter() - begun_s
    sent: list[int] = []

    def send_share(first: int) -> None:
        for number in range(first, work.messages, work.senders):
            send(number)
            sent.append(number)

    threads = [threading.Thread(target=send_share, args=(first,)) for first in range(work.senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(work.messages, len(sent), "messages that threads have sent")
    return time.perf_counter() - begun_s
