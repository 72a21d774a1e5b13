"""Work as a number of calls: seconds, also those of CPU time, vary with what else a machine does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Yields a list of one number, the calls by this thread."""
    calls, before = [0], sys.getprofile()

    def count(_frame: object, event: str, _argument: object) -> None:
        calls[0] += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)
