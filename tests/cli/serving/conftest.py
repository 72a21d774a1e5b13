"""Processes that serve a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.machine.serving import Serving


@pytest.fixture
def serving() -> Iterator[Callable[..., Serving]]:
    """Starts ``seglog serve``; what still runs in the end is killed."""
    with ExitStack() as running:

        def start(*arguments: object, **options: Any) -> Serving:
            one = Serving([str(argument) for argument in arguments], **options)
            running.callback(one.close)
            return one

        yield start
