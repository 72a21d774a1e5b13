"""Waits for the first word of a process that is to be killed at work."""

from __future__ import annotations

import select

from tests.support.machine.children import Process
from tests.support.machine.patience import LateError, patience_s
from tests.support.narrow import not_none


def wait_for_first_word(process: Process, *, idle_s: float = 15) -> None:
    """Returns once there is something to read of a process, or it has ended; reads nothing.

    Raises:
        LateError: It says nothing.
    """
    limit_s = patience_s(idle_s)
    if not select.select([not_none(process.stdout)], [], [], limit_s)[0]:
        raise LateError(f"{process.args!r} said nothing for {limit_s:.1f} s")
