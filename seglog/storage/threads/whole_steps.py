"""A step that an interrupt cannot leave half done.

A signal handler runs between two instructions of the main thread and may raise an exception: Python's own
raises KeyboardInterrupt, one of an application may raise any other. Between the log and its queue that must
not happen: the log would have a record that no unit names, and the next message would get its queue offset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_MOST_TRIES: Final = 8
"""A step that raises so often raises by itself, or is interrupted faster than it can be done."""


def done_whole(step: Callable[[], T]) -> T:
    """Returns what a step returns; an exception that interrupted the step is raised once the step is done.

    Args:
        step: What to do. All that can fail was done before, and a repetition from its beginning, after it was
            interrupted anywhere, leaves the same as one call.
    """
    interrupt: BaseException | None = None
    for _ in range(_MOST_TRIES):
        try:
            result = step()
        except BaseException as error:  # noqa: BLE001 - raised below
            interrupt = error
            continue
        if interrupt is None:
            return result
        break
    assert interrupt is not None
    raise interrupt
