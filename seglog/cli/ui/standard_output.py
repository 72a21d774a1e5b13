"""Standard output of the commands: a write error is reported as such, not as an error of the store.

The shell decides what standard output is: a file on a full disk, or a closed descriptor. If the write fails
after a command stored messages, the messages are stored, so the error must not look like one of the store. A
pipe whose reader is gone still raises :class:`BrokenPipeError`.
"""

from __future__ import annotations

import io
import os
import sys

from typing_extensions import Buffer, override

from seglog.errors import OutputError


class _Output(io.FileIO):
    """A descriptor whose write errors are raised as :class:`~seglog.errors.OutputError`."""

    @override
    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"standard output could not be written: {error.strerror}") from error


def take_standard_output() -> None:
    """Replaces ``sys.stdout`` with a stream of :class:`_Output`; replaces streams that the shell closed."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    stream = sys.stdout
    if stream is None:
        # A placeholder: writing to it fails, and its number cannot be given to a file of the store.
        descriptor, encoding, is_terminal = os.open(os.devnull, os.O_RDONLY), "utf-8", False
    else:
        stream.flush()
        descriptor, encoding, is_terminal = stream.fileno(), stream.encoding, stream.isatty()
    # A character that the terminal or pipe cannot encode is printed as an escape instead of a traceback.
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor, "w", closefd=False)),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=is_terminal,
    )
