"""How a coroutine asks over a link: where it runs decides how it waits for the answer.

A thread that may be kept waiting asks by ``Link.invoke``, which returns the answer; a task of an event loop,
or what is stepped on virtual time, by ``Link.ask``, and a flow by :func:`in_flow`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from seglog.client.home.flows import until
from seglog.client.links.link import Link
from seglog.errors import AskTimeoutError, ClientClosedError, SeglogError
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


def level_of(error: SeglogError) -> int:
    """Returns the level at which the log says that what was asked has failed.

    What fails only because the client was closed is the consequence of a close that came to an end before its
    listeners: its error has said so to the caller.

    Args:
        error: What it failed with.
    """
    return logging.DEBUG if isinstance(error, ClientClosedError) else logging.WARNING


def within(ask: Ask, now_ms: Callable[[], float], timeout_ms: float) -> Ask:
    """Returns how to ask so that all that is asked takes a time together, at most.

    Args:
        ask: How, one by one.
        now_ms: Monotonic time; the wait begins with this call.
        timeout_ms: The time; what a call of the result names is not looked at.
    """
    end_ms = now_ms() + timeout_ms

    def ask_in_time(request: Request, _: float | None, to: str | None) -> Response | Awaitable[Response]:
        left_ms = end_ms - now_ms()
        if left_ms <= 0:
            raise AskTimeoutError(
                f"request {int(request.code)} was not asked: the {timeout_ms:.0f} ms of the call were over"
            )
        return ask(request, left_ms, to)

    return ask_in_time
