"""A broker that runs in a process of its own: RocketMQ's or ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from perf.figures.sample import SanityError
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.errors import SeglogError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_header
from seglog.remoting.headers import GetMaxOffsetHeader, GetRouteInfoHeader, OffsetResponseHeader

QUEUES: Final = 4
_START_LIMIT_S: Final = 120
_LOOK_EVERY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker that runs.

    Attributes:
        name_server: Address of its name server.
        address: Its own; the same where it is both.
        pid: Its process.
    """

    name_server: str
    address: str
    pid: int

    def stored(self, topic: str) -> int:
        """Returns the number of messages of a topic, once it no longer changes.

        RocketMQ acknowledges a message before it is in its queue.
        """
        with make_client(self.name_server) as client:
            count = -1
            while count != (found := sum(self._max_offsets(client, topic))):
                count = found
                time.sleep(_LOOK_EVERY_S)
        return count

    def _max_offsets(self, client: Client, topic: str) -> Iterator[int]:
        for queue_id in range(QUEUES):
            asked = Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(topic, queue_id))
            answer = client.link.invoke(asked, to=self.address)
            yield expect_header(answer, OffsetResponseHeader).offset

    def wait_for_topic(self, topic: str) -> None:
        """Waits until the name server knows where a topic is."""
        with make_client(self.name_server) as client:

            def is_known() -> bool:
                asked = Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic))
                with suppress(SeglogError):  # it has just been started
                    return client.link.invoke(asked).code is ResponseCode.SUCCESS
                return False

            wait_until(is_known, f"a route of topic {topic}")


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Waits for the start of a process.

    Raises:
        SanityError: It does not.
    """
    end_s = time.monotonic() + _START_LIMIT_S
    while not is_so():
        if time.monotonic() > end_s:
            raise SanityError(f"{what} did not come within {_START_LIMIT_S} s")
        time.sleep(_LOOK_EVERY_S)
