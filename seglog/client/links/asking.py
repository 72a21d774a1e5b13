"""How a coroutine asks over a link: where it runs decides how it waits for the answer.

A thread that may be kept waiting asks by ``Link.invoke``, which returns the answer; a task of an event loop,
or what is stepped on virtual time, by ``Link.ask``, and a flow by :func:`in_flow`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from seglog.client.home.flows import until
from seglog.client.links.link import Link
from seglog.errors import AskTimeoutError
from seglog.remoting.command import Request, Response

Ask: TypeAlias = Callable[[Request, float | None, str | None], Response | Awaitable[Response]]
"""Given the arguments of ``Link.ask``; returns the answer, or what it comes by, see :func:`answer_of`."""


async def answer_of(asked: Response | Awaitable[Response]) -> Response:
    """Returns what a broker answers."""
    return asked if isinstance(asked, Response) else await asked


def in_flow(link: Link) -> Ask:
    """Returns how a flow asks."""

    def ask(request: Request, timeout_ms: float | None, to: str | None) -> Awaitable[Response]:
        return until(link.ask(request, timeout_ms, to))

    return ask


def within(ask: Ask, now_ms: Callable[[], float], end_ms: float) -> Ask:
    """Returns how to ask so that all that is asked is over at one moment, at most.

    Args:
        ask: How, one by one.
        now_ms: Monotonic time.
        end_ms: The moment; the time that a call of the result names is not looked at.
    """

    def ask_in_time(request: Request, _: float | None, to: str | None) -> Response | Awaitable[Response]:
        left_ms = end_ms - now_ms()
        if left_ms <= 0:
            raise AskTimeoutError(f"request {int(request.code)} was not asked: the time of the call was over")
        return ask(request, left_ms, to)

    return ask_in_time
