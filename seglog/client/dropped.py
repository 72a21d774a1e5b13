"""What is done for a producer or consumer over sockets that an application has dropped open.

Nothing would close its client: the thread that clients of the process share keeps the connections. Python
warns, as of a file, and the connections end.

A finalizer may run at any place in any thread, under any lock. So it takes none: it has the loop do it.
"""

from __future__ import annotations

import warnings
import weakref
from contextlib import suppress

from seglog.client.client import Client


def watch(face: object, client: Client) -> weakref.finalize[[Client, str], object]:
    """Has a client end with what it was made for, if nothing refers to that any more.

    At the end of the program nothing is said or done: connections end with their process.

    Args:
        face: The producer or consumer; the client does not refer to it.
        client: Its own, of an address: in process nothing is held open.

    Returns:
        What is to be detached once it was closed, or goes on by itself.
    """
    end = weakref.finalize(face, _end, client, repr(face))
    end.atexit = False
    return end


def _end(client: Client, name: str) -> None:
    loop = client.home.loop
    if loop is None or client.is_over:
        return
    try:
        warnings.warn(
            f"{name} was dropped open: close() it, or use it in a with statement",
            ResourceWarning,
            stacklevel=2,
        )
    finally:  # where warnings are errors Python prints it
        with suppress(RuntimeError):  # the loop was closed since
            loop.call_soon_threadsafe(client.hang_up)
