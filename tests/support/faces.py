"""Both faces of producers and consumers, called alike: a loop of the test runs what is awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Driven:
    """An object whose calls are run to their end, be they plain or awaited.

    Args:
        made: The object.
        runner: Has the loop that it lives in.
    """

    def __init__(self, made: object, runner: asyncio.Runner) -> None:
        self.made = made
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.made, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *args, **settings: self._runner.run(found(*args, **settings))


def is_awaited(kind: object) -> bool:
    """Returns whether the calls of a class, or of an object, are awaited."""
    return bool(getattr(kind, "_is_awaited", hasattr(kind, "__aenter__")))


@contextmanager
def driven(kind: Callable[..., Any], *args: object, **settings: object) -> Iterator[Any]:
    """Lends an object of a class of either face, and closes it.

    Args:
        kind: The class.
        args: What it is made with.
        settings: Likewise.
    """

    async def make() -> object:
        return kind(*args, **settings)

    with asyncio.Runner() as runner:
        # A plain one must not be made in a loop, where it would wait for itself.
        made = runner.run(make()) if is_awaited(kind) else kind(*args, **settings)
        one = Driven(made, runner)
        try:
            yield one
        finally:
            one.close()
