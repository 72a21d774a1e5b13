"""Sends long text through a pager when a person reads it, as git does.

A pager is used if standard output is a terminal and the text is longer than the screen. The pager is
``SEGLOG_PAGER``, else ``PAGER``, else ``less -FRX`` if that is installed. An empty value, ``cat`` and
``--no-pager`` turn paging off. Lines of JSON are never paged. If the pager cannot start, or fails at once,
the text is printed without it; quitting it early is no error.
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
"""Key in the ``meta`` of a click context: whether ``--no-pager`` was given."""
VARIABLES: Final = ("SEGLOG_PAGER", "PAGER")

_USUAL: Final = ("less", "-FRX")
_LESS: Final = "FRX"
"""Options for ``less`` if ``PAGER`` names it without options; git uses the same."""
_NONE: Final = ((), ("cat",))
_MOST_AGAIN_BYTES: Final = 256 << 10
"""More than a pipe holds: a pager that read more than this has shown a part of the text."""
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;]*m")


def paged(*, stops: bool = False) -> Callable[[CommandFunction], CommandFunction]:
    """Returns a decorator that sends the text of a command through a pager.

    The command is not paged if its ``follow`` or ``as_json`` is set.

    Args:
        stops: Whether the command ends, with exit code 0, when the pager is quit. Otherwise the command runs
            to its end, without output, because its exit code states what it found.
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
    """Returns the words of the command that starts the pager; empty if the text must not be paged."""
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
    """The pager was quit before it had read all of the text."""


class _Held(io.RawIOBase):
    """Buffers standard output until the text is longer than the terminal, then writes it to the pager.

    Args:
        terminal: Standard output.
        words: The words of the command that starts the pager.
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
        """Writes the rest, and waits until the pager is quit."""
        if self._pager is None:
            self._is_plain = True
            self._send(bytes(self._kept))
            return
        self._do_without_failed()

    def _do_without_failed(self) -> bool:
        """Waits until the pager has ended. If it failed at once, the text is printed without it."""
        pager = self._pager
        assert pager is not None
        assert pager.stdin is not None
        with suppress(BrokenPipeError):
            pager.stdin.close()
        while pager.returncode is None:
            with suppress(KeyboardInterrupt):  # Ctrl-C is for the pager
                pager.wait()
        if pager.returncode <= 0 or self._sent is None:  # below 0: a person killed it
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
