"""The way from a client to a broker.

A producer or consumer knows only :class:`BrokerLink`. In process it is a ``LocalLink``, which hands
requests over as they are; what works through it works over a connection.
"""

from __future__ import annotations

import os
import secrets
from typing import Protocol

from seglog.arguments import as_doing
from seglog.clock import CLOCK_CALLS, Clock, SystemClock
from seglog.remoting.command import Request, Response


class BrokerLink(Protocol):
    """Carries requests to a broker. Any thread may call it."""

    @property
    def client_id(self) -> str:
        """What this end is called, unique among the clients of the broker."""

    def invoke(self, request: Request, timeout_ms: int | None = None) -> Response:
        """Returns the broker's answer, refusals included.

        Args:
            request: What is asked.
            timeout_ms: How long to wait beyond what the request itself may be held; None for the link's own.

        Raises:
            ProtocolError: There is no answer: the link is gone or the time has passed.
        """


def clock_for(link: BrokerLink, clock: Clock | None) -> Clock:
    """Returns the clock of a client: the given one, that of a link which has one, or else the machine's.

    Args:
        link: To the broker; in process it has the clock of the broker.
        clock: None if none is given.

    Raises:
        InvalidArgumentError: Something else than a clock is given.
    """
    of_link: Clock = getattr(link, "clock", None) or SystemClock()
    return as_doing("clock", of_link if clock is None else clock, CLOCK_CALLS, "a clock")


def new_client_id(address: str = "127.0.0.1", process_id: int | None = None, life: str | None = None) -> str:
    """Returns an id in RocketMQ's form, ``address@process#life``.

    Args:
        address: Of this machine.
        process_id: Defaults to this process's.
        life: Distinguishes clients of one process; random by default.
    """
    return f"{address}@{os.getpid() if process_id is None else process_id}#{life or secrets.token_hex(6)}"
