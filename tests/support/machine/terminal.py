"""A command on a terminal of a width, in a process of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Sequence

import pytest
from click import unstyle

from tests.support.machine.patience import patience_s


def shown_on_terminal(command: Sequence[object], columns: int) -> list[str]:
    """Returns the lines that a command shows on a terminal, without colours; it has to succeed.

    Args:
        command: The words that start it.
        columns: How wide the terminal is.
    """
    try:
        ours, its = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminals here: {error}")
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    env |= {"TERM": "xterm", "SEGLOG_PAGER": ""}
    with subprocess.Popen(
        [*map(str, command)],
        stdin=its,
        stdout=its,
        stderr=subprocess.PIPE,
        env=env,
    ) as process:
        os.close(its)
        shown = b""
        with contextlib.suppress(OSError):  # Linux ends a terminal that no process has open with EIO
            while chunk := os.read(ours, 1 << 16):
                shown += chunk
        os.close(ours)
        _, said = process.communicate(timeout=patience_s(60))
    assert process.returncode == 0, said
    return unstyle(shown.decode()).splitlines()
