"""Waiting for the end of a thread whose start Ctrl-C may have interrupted."""

from __future__ import annotations

import threading


def join(thread: threading.Thread) -> None:
    """Returns once a thread has ended, and at once if its start was interrupted.

    ``Thread.start`` waits until the thread runs, and Ctrl-C ends that wait: a thread that was not seen to run
    cannot be joined. It runs a moment later or never; its owner has asked it to stop by then.

    Args:
        thread: The thread, which was asked to stop.

    Raises:
        RuntimeError: It is the calling thread.
    """
    try:
        thread.join()
    except RuntimeError:
        if thread is threading.current_thread():
            raise
