"""A command on a real pseudo-terminal of a given size."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shown:
    """What a terminal was sent, and how the command ended."""

    exit_code: int
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines, with their escapes."""
        return self.text.replace("\r\n", "\n").splitlines()


def on_screen(
    command: Sequence[str], columns: int, environment: Mapping[str, str] | None = None, stdin: bytes = b""
) -> Shown:
    """Runs a command whose input and output are a terminal.

    Args:
        command: What to run.
        columns: How wide the terminal is.
        environment: Variables beside those of this process; NO_COLOR, COLUMNS, PAGER and TERM are not taken
            over, and there is no pager unless they name one.
        stdin: What a person types.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
    known |= {"TERM": "xterm-256color", "SEGLOG_PAGER": "", **(environment or {})}
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=known)
    os.close(theirs)
    if stdin:
        os.write(ours, stdin)
    sent = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        sent += piece
    os.close(ours)
    return Shown(running.wait(), sent.decode())
