"""Long text goes through a pager where a person reads it, as git's does.

That is where standard output is a terminal and the text is longer than it. The pager is what ``SEGLOG_PAGER``
says, or ``PAGER``, or ``less -FRX`` where that is installed; an empty text or ``cat`` is none, and
``--no-pager`` asks for none. Lines of JSON are never paged. A pager that cannot start, or fails at once, is
done without, and one that is quit early is no error.
"""

from __future__ import annotations

import functools
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TextIO

import click
from typing_extensions import Buffer, override

from seglog.cli.ui import render
from seglog.cli.ui.options import CommandFunction
from seglog.text import shell_line

NO_PAGER: Final = "seglog.no-pager"
"""In what a click context keeps: whether ``--no-pager`` was given."""
VARIABLES: Final = ("SEGLOG_PAGER", "PAGER")

_USUAL: Final = ("less", "-FRX")
_LESS: Final = "FRX"
"""Options of a less that ``PAGER`` names without any: git's."""
_NONE: Final = ((), ("cat",))
_MOST_AGAIN_BYTES: Final = 256 << 10
"""A pager that took more has shown some of it; it is more than a pipe holds."""
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;]*m")


def paged(*, stops: bool = False) -> Callable[[CommandFunction], CommandFunction]:
    """Has a command's text go through a pager; ``follow`` and ``as_json`` of the command ask for none.

    Args:
        stops: Whether the command ends, with 0, when the pager is quit. Without it the command goes on
            unseen: its exit code says what it found.
    """

    def with_pager(command: CommandFunction) -> CommandFunction:
        @functools.wraps(command)
        def call(**values: object) -> object:
            if values["as_json"] or values.get("follow") or not (words := pager_words()):
                return command(**values)
            return _run(command, values, words, stops=stops)

        return call

    return with_pager


def pager_words() -> list[str]:
    """Returns the words that start the pager; none where no text is to be paged."""
    context = click.get_current_context(silent=True)
    if context is not None and context.meta.get(NO_PAGER):
        return []
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return []
    for name in VARIABLES:
        if (text := os.environ.get(name)) is not None:
            with suppress(ValueError):  # a quote that is not closed
                words = shlex.split(text)
                return [] if tuple(words) in _NONE else words
            return []
    return list(_USUAL) if shutil.which(_USUAL[0]) else []


def _run(command: CommandFunction, values: dict[str, object], words: list[str], *, stops: bool) -> object:
    terminal = sys.stdout
    terminal.flush()
    held = _Held(terminal, words, stops=stops)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(held), encoding=terminal.encoding, errors="backslashreplace"
    )
    try:
        return command(**values)
    except _QuitError:
        return None
    finally:
        with suppress(_QuitError):
            sys.stdout.flush()
        sys.stdout = terminal
        held.finish()


class _QuitError(BrokenPipeError):
    """The pager was quit before it had everything."""


class _Held(io.RawIOBase):
    """Standard output that is kept until it is more than the terminal shows; the pager gets it then.

    Args:
        terminal: Standard output.
        words: What starts the pager.
        stops: Whether to raise :class:`_QuitError` once the pager was quit.
    """

    def __init__(self, terminal: TextIO, words: list[str], *, stops: bool) -> None:
        super().__init__()
        self._terminal, self._words, self._stops = terminal, words, stops
        self._columns, self._rows_left = shutil.get_terminal_size()
        self._kept = bytearray()
        self._pager: subprocess.Popen[bytes] | None = None
        self._sent: bytearray | None = bytearray()  # what the pager got, while that is little
        self._is_plain = self._is_quit = False

    @override
    def writable(self) -> bool:
        return True

    @override
    def isatty(self) -> bool:
        return True  # lines are folded and coloured as for the terminal

    @override
    def fileno(self) -> int:
        return self._terminal.fileno()

    @override
    def write(self, data: Buffer, /) -> int:
        piece = bytes(data)
        if self._pager is None and not self._is_plain:
            self._kept += piece
            for line in piece.split(b"\n")[:-1]:
                self._rows_left -= 1 + max(len(_COLOUR.sub(b"", line)) - 1, 0) // self._columns
            if self._rows_left < 1:
                self._open()
        else:
            self._send(piece)
        return len(piece)

    def finish(self) -> None:
        """Shows what is left, and waits until the pager is quit."""
        if self._pager is None:
            self._is_plain = True
            self._send(bytes(self._kept))
            return
        self._do_without_failed()

    def _do_without_failed(self) -> bool:
        """Waits until the pager has ended; shows what it got, and all that follows, if it failed at once."""
        pager = self._pager
        assert pager is not None
        assert pager.stdin is not None
        with suppress(BrokenPipeError):
            pager.stdin.close()
        while pager.returncode is None:
            with suppress(KeyboardInterrupt):  # Ctrl-C is the pager's
                pager.wait()
        if pager.returncode <= 0 or self._sent is None:  # below 0 it was killed, which a person did
            return False
        self._pager, self._is_plain = None, True
        self._terminal.flush()
        render.say(f"note: the pager `{shell_line(self._words)}` failed, with {pager.returncode}", err=True)
        self._send(bytes(self._sent))
        return True

    def _open(self) -> None:
        environment = {"LESS": _LESS} | os.environ
        try:
            self._pager = subprocess.Popen(self._words, stdin=subprocess.PIPE, env=environment)
        except OSError:
            self._is_plain = True
        kept, self._kept = bytes(self._kept), bytearray()
        self._send(kept)

    def _send(self, piece: bytes) -> None:
        if self._is_quit:
            return
        if self._pager is None:
            self._terminal.buffer.write(piece)
            self._terminal.flush()
            return
        assert self._pager.stdin is not None
        if self._sent is not None:
            self._sent += piece
            if len(self._sent) > _MOST_AGAIN_BYTES:
                self._sent = None
        try:
            self._pager.stdin.write(piece)
            self._pager.stdin.flush()
        except BrokenPipeError:
            if self._do_without_failed():
                return
            self._is_quit = True
            if self._stops:
                raise _QuitError from None
