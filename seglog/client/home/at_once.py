"""Runs coroutines in the calling thread; they may block that thread, but never await a loop or a home.

So one coroutine, which is given its way of sending requests, serves both awaiting and blocking callers.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from seglog.errors import InvalidArgumentError

R = TypeVar("R")


def run_at_once(steps: Coroutine[Any, Any, R]) -> R:
    """Runs a coroutine to its end, and returns its result.

    Raises:
        InvalidArgumentError: It awaits a result that does not exist yet.
        BaseException: The exception that it raises.
    """
    try:
        awaited = steps.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    steps.close()
    raise InvalidArgumentError(f"{steps!r} awaits {awaited!r} where nothing can be awaited")
