"""Runs coroutines in the calling thread that wait there, if at all, and never for an event loop or a home.

So what is written once, as a coroutine that is given how it asks, serves callers that await it and those that
do not.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from seglog.errors import InvalidArgumentError

R = TypeVar("R")


def run_at_once(steps: Coroutine[Any, Any, R]) -> R:
    """Runs a coroutine to its end, and returns its result.

    Raises:
        InvalidArgumentError: It awaits what is not here yet.
        BaseException: What it raises.
    """
    try:
        awaited = steps.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    steps.close()
    raise InvalidArgumentError(f"{steps!r} awaits {awaited!r} where nothing can be awaited")
