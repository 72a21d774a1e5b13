"""A command on a real pseudo-terminal of a given size."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest
from click import unstyle

from tests.support.command_line.loaded import Running, loaded


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
    words: Sequence[object],
    columns: int,
    environment: Mapping[str, str | None] | None = None,
    stdin: bytes = b"",
    look: Callable[[Running, bytes], object] = lambda _running, _sent: None,
) -> Shown:
    """Runs a command whose input, output and errors are a terminal.

    Args:
        words: What stands behind ``seglog``.
        columns: How wide the terminal is.
        environment: Variables beside those of this process, None for one that is not set; NO_COLOR, COLUMNS,
            LINES, PAGER and TERM are not taken over, and there is no pager unless they name one.
        stdin: What a person types.
        look: Sees the command and all that was sent, after each piece of it.
    """
    try:
        ours, its = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminals here: {error}")
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    known = {
        name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES"}
    }
    known |= {"TERM": "xterm-256color", "SEGLOG_PAGER": ""}
    for name, value in (environment or {}).items():
        known.pop(name, None)
        if value is not None:
            known[name] = value
    with loaded().running(words, [its, its, its], known) as running:
        os.close(its)
        if stdin:
            os.write(ours, stdin)
        sent = b""
        with contextlib.suppress(OSError):  # Linux ends a terminal that no process has open with EIO
            while piece := os.read(ours, 1 << 16):
                sent += piece
                look(running, sent)
        os.close(ours)
        return Shown(running.wait(), sent.decode())


def shown_on_terminal(words: Sequence[object], columns: int) -> list[str]:
    """Returns the lines that a command shows on a terminal, without colours; it has to succeed.

    Args:
        words: What stands behind ``seglog``.
        columns: How wide the terminal is.
    """
    shown = on_screen(words, columns)
    assert shown.exit_code == 0, shown.text
    return unstyle(shown.text).splitlines()
