"""The ways in which a coroutine sends requests over a link, by the place where it runs.

A thread that may block uses ``Link.invoke``, which returns the answer; a task of an event loop, or a
coroutine on virtual time, uses ``Link.ask``; and a flow uses :func:`in_flow`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from seglog.client.home.flows import until
from seglog.client.links.link import Link
from seglog.errors import AskTimeoutError
from seglog.remoting.command import Request, Response

Ask: TypeAlias = Callable[[Request, float | None, str | None], Response | Awaitable[Response]]
"""Takes the arguments of ``Link.ask``; returns the answer or an awaitable of it, see :func:`answer_of`."""


async def answer_of(asked: Response | Awaitable[Response]) -> Response:
    """Returns the answer of a broker."""
    return asked if isinstance(asked, Response) else await asked


def in_flow(link: Link) -> Ask:
    """Returns the request function of a flow."""

    def ask(request: Request, timeout_ms: float | None, to: str | None) -> Awaitable[Response]:
        return until(link.ask(request, timeout_ms, to))

    return ask


def within(ask: Ask, now_ms: Callable[[], float], end_ms: float) -> Ask:
    """Returns a request function whose requests all end by one moment.

    Args:
        ask: The function for single requests.
        now_ms: Monotonic time.
        end_ms: The moment; the timeout argument of the returned function is ignored.
    """

    def ask_in_time(request: Request, _: float | None, to: str | None) -> Response | Awaitable[Response]:
        left_ms = end_ms - now_ms()
        if left_ms <= 0:
            raise AskTimeoutError(f"request {int(request.code)} was not asked: the time of the call was over")
        return ask(request, left_ms, to)

    return ask_in_time
